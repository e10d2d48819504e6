//! Who may do what: the credential comes before every other check.
//!
//! A GET needs READ and any other method EDIT, unless the router says otherwise at the route, with [`reads`] or [`admin`].

use std::sync::Arc;
use std::time::Duration;

use axum::body::HttpBody;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{Extensions, Method, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::MethodRouter;

use crate::domain::access::{Level, TokenHash, hash_token};
use crate::http::admission::{Admission, RateLeft, Tab};
use crate::http::console::session_token;
use crate::http::error::ApiError;
use crate::http::layers::{Seen, guarded, time_limit};
use crate::http::links::BASE_PATH;
use crate::http::series;
use crate::http::state::AppState;
use crate::store::StoreError;
use crate::store::accounts::{Caller, Credential};

/// The route, as logs and metrics name it, of requests that were sent away before it was looked for.
const TURNED_AWAY: &str = "turned away";
/// How much sooner than any request one with a credential has to be done.
const AHEAD: Duration = Duration::from_secs(1);

/// The holder of a token, before the level of the operation is asked for.
#[derive(Clone)]
struct Holder {
    caller: Caller,
    level: Level,
}

/// The level that a route asks for.
#[derive(Clone, Copy)]
struct Needed(Level);

/// Operations that need READ although their method is not GET: they store nothing.
pub(super) fn reads(operations: MethodRouter<AppState>) -> MethodRouter<AppState> {
    operations.route_layer(from_fn(|request, next| need(Level::Read, request, next)))
}

/// Operations that need ADMIN.
pub(super) fn admin(operations: MethodRouter<AppState>) -> MethodRouter<AppState> {
    operations.route_layer(from_fn(|request, next| need(Level::Admin, request, next)))
}

async fn need(level: Level, mut request: Request, next: Next) -> Response {
    request.extensions_mut().insert(Needed(level));
    let mut answer = next.run(request).await;
    answer.extensions_mut().insert(Needed(level));
    answer
}

/// The account of a request, and the level of its token.
pub(super) fn account_and_level(extensions: &Extensions) -> Result<(i64, Level), ApiError> {
    let holder = extensions.get::<Holder>().map(|holder| (holder.caller.account, holder.level));
    holder.ok_or_else(|| ApiError::Internal("a route is not behind authentication".to_owned()))
}

/// Sends away whom there is no place for, before anything else is done for them: under four times the load that can be
/// served three of four requests are.
pub(super) async fn turn_away(State(admission): State<Arc<Admission>>, request: Request, next: Next) -> Response {
    if !request.uri().path().starts_with(BASE_PATH) || !admission.is_full(|| token(&request)) {
        return next.run(request).await;
    }
    let token = token(&request);
    let refusal = async { refused(&admission, token, Admission::refusal()) };
    guarded(Seen::of(&request, TURNED_AWAY.to_owned()).answered(refusal).await)
}

/// Answers 503 in place of a request that needs the database while it is away.
pub(super) async fn require_database(State(state): State<AppState>, request: Request, next: Next) -> Response {
    let token = token(&request);
    let answer = state.database.unless_away(next.run(request)).await;
    let away = || ApiError::Unavailable("the database does not answer at present");
    answer.unwrap_or_else(|| refused(&state.admission, token, away()))
}

/// Lets a request pass when it has a credential in force. Whether its level is high enough is judged where the handler
/// takes its [`Caller`].
pub(super) async fn authenticate(State(state): State<AppState>, mut request: Request, next: Next) -> Response {
    let token = token(&request);
    match admit(&state, token, &mut request).await {
        Ok((tab, standing)) => {
            let mut answer = match standing {
                Ok(_) => run(&tab, request, next).await,
                Err(standing) => ApiError::RateLimited(standing.reset).into_response(),
            };
            standing.unwrap_or_else(|standing| standing).tell(answer.headers_mut());
            answer
        }
        Err(error) => refused(&state.admission, token, error),
    }
}

/// An error that is answered before it is certain who asks. It tells the account that the token had what is left of its rate.
fn refused(admission: &Admission, token: Option<TokenHash>, error: ApiError) -> Response {
    let mut answer = error.into_response();
    if let Some(standing) = token.and_then(|token| admission.left(&token)) {
        standing.tell(answer.headers_mut());
    }
    answer
}

/// Runs a request that is within its rate. One with a body takes its place among those at work when the body is there, so
/// that slow senders hold none.
async fn run(tab: &Tab, request: Request, next: Next) -> Response {
    if is_ready(&request)
        && !tab.has_entered()
        && let Err(error) = tab.enter().await
    {
        return error.into_response();
    }
    let longest = time_limit(request.uri().path()).saturating_sub(AHEAD);
    let by_method = level_of_method(request.method());
    let answer = within(longest, tab, next.run(request)).await;
    let needed = answer.extensions().get::<Needed>().map_or(by_method, |needed| needed.0);
    tab.send(answer, needed != Level::Read).await
}

/// The answer, or that there is none in time: for want of the rest of the request, or for want of us.
async fn within(longest: Duration, tab: &Tab, answer: impl Future<Output = Response>) -> Response {
    match tokio::time::timeout(longest, answer).await {
        Ok(answer) => answer,
        Err(_) if tab.has_entered() => ApiError::Unavailable("this took too long at present").into_response(),
        Err(_) => ApiError::RequestTimeout.into_response(),
    }
}

/// Finds out who asks, opens the tab of the request and counts it against the rate of the account.
///
/// A request that is ready waits for its place before its token is looked up, where it is known whose token that was: so
/// that who is sent away has cost the database nothing, and who was looked up is not sent away.
async fn admit(
    state: &AppState,
    token: Option<TokenHash>,
    request: &mut Request,
) -> Result<(Tab, Result<RateLeft, RateLeft>), ApiError> {
    let known = token.and_then(|token| state.admission.known(&token)).filter(|_| is_ready(request));
    let in_place = known.map(|account| state.admission.tab(account));
    let holder = if let Some(tab) = &in_place {
        tab.enter().await?;
        holder(state, token).await?
    } else {
        let _lookup = state.admission.lookup().await?;
        holder(state, token).await?
    };
    if let Some(token) = token {
        state.admission.remember(token, holder.caller.account);
    }
    let in_place = in_place.filter(|_| known == Some(holder.caller.account));
    let tab = in_place.unwrap_or_else(|| state.admission.tab(holder.caller.account));
    tracing::Span::current().record("account", holder.caller.account).record("user", holder.caller.user.as_str());
    metrics::counter!("vat_classification_account_requests_total", "account" => series::of(holder.caller.account))
        .increment(1);
    let announced = request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    let standing = tab.count(announced);
    request.extensions_mut().insert(holder);
    request.extensions_mut().insert(tab.clone());
    Ok((tab, standing))
}

/// Whether a request can be worked on as it is: nothing of it is still to come, and it waits for nothing.
fn is_ready(request: &Request) -> bool {
    request.body().is_end_stream() && !waits(request)
}

/// Whether a request asks to be answered when something happens: it works on nothing until then.
fn waits(request: &Request) -> bool {
    let query = request.uri().query().unwrap_or_default();
    request.uri().path() == "/changes" && query.split('&').any(|pair| pair.starts_with("wait="))
}

/// The hash of the one well-formed token that a request carries, in its header or in the cookie of the console.
fn token(request: &Request) -> Option<TokenHash> {
    if !request.headers().contains_key(header::AUTHORIZATION) {
        let reads = [Method::GET, Method::HEAD].contains(request.method());
        return session_token(request.headers(), reads).and_then(hash_token);
    }
    let mut sent = request.headers().get_all(header::AUTHORIZATION).iter();
    let (value, None) = (sent.next()?, sent.next()) else { return None };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") { hash_token(token.trim()) } else { None }
}

async fn holder(state: &AppState, token: Option<TokenHash>) -> Result<Holder, ApiError> {
    let unknown = ApiError::Unauthorized("send a valid access token: Authorization: Bearer <ACCESS_TOKEN>");
    let Some(hash) = token else { return Err(unknown) };
    match state.store.authenticate(&hash).await? {
        Credential::Unknown => Err(unknown),
        Credential::Withdrawn => {
            Err(ApiError::Forbidden("this access token no longer has access to the account".to_owned()))
        }
        Credential::Moving => Err(StoreError::Moving.into()),
        Credential::Valid(caller, level) => Ok(Holder { caller, level }),
    }
}

/// The level that an operation needs where its route does not say.
fn level_of_method(method: &Method) -> Level {
    if [Method::GET, Method::HEAD, Method::OPTIONS].contains(method) { Level::Read } else { Level::Edit }
}

fn allow(held: Level, needed: Level) -> Result<(), ApiError> {
    if held >= needed {
        return Ok(());
    }
    let (needed, held) = (needed.name(), held.name());
    Err(ApiError::Forbidden(format!("this needs an access token of level {needed}; this one has the level {held}")))
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let Some(holder) = parts.extensions.get::<Holder>() else {
            return Err(ApiError::Internal("a route is not behind authentication".to_owned()));
        };
        let needed = parts.extensions.get::<Needed>().map_or(level_of_method(&parts.method), |needed| needed.0);
        allow(holder.level, needed)?;
        Ok(holder.caller.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::admission::{Admission, AdmissionSettings};

    #[test]
    fn a_level_includes_those_below_it_and_a_refusal_names_both() {
        let levels = [Level::Read, Level::Edit, Level::Admin];
        for (at, held) in levels.into_iter().enumerate() {
            for (needs, needed) in levels.into_iter().enumerate() {
                match allow(held, needed) {
                    Ok(()) => assert!(at >= needs),
                    Err(ApiError::Forbidden(text)) => {
                        assert!(at < needs && text.contains(held.name()) && text.contains(needed.name()), "{text}");
                    }
                    Err(other) => panic!("{other:?}"),
                }
            }
        }
    }

    #[tokio::test]
    async fn a_request_that_takes_too_long_is_the_clients_fault_only_while_its_body_is_missing() {
        let tab = Admission::new(&AdmissionSettings::default()).tab(1);
        let never = || within(Duration::from_millis(1), &tab, std::future::pending());
        assert_eq!(never().await.status(), 408);
        tab.enter().await.expect("a place");
        assert_eq!(never().await.status(), 503);
    }

    #[test]
    fn methods_that_store_nothing_need_the_lowest_level() {
        for (method, level) in [
            (Method::GET, Level::Read),
            (Method::HEAD, Level::Read),
            (Method::POST, Level::Edit),
            (Method::PUT, Level::Edit),
            (Method::PATCH, Level::Edit),
            (Method::DELETE, Level::Edit),
        ] {
            assert_eq!(level_of_method(&method), level, "{method}");
        }
    }
}
