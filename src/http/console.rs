//! The pages of the console and its session: a cookie that holds the access token where scripts cannot read it.

use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};

use crate::console::{self, ASSETS_PATH};
use crate::domain::access::hash_token;
use crate::http::body::JsonBody;
use crate::http::body::body_as;
use crate::http::error::ApiError;
use crate::http::state::AppState;
use crate::store::StoreError;
use crate::store::accounts::Credential;

/// The cookie of a session.
const COOKIE: &str = "vat_session";
/// The header that the console's scripts send: no other site can make a browser send it.
const SCRIPT_HEADER: &str = "x-console";
/// What a page of the console may load and do: its own files and requests, nothing inline, nothing of others.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// The console, below `/`.
pub(super) fn pages() -> Router<AppState> {
    Router::new()
        .route("/", get(index))
        .route(&format!("{ASSETS_PATH}/{{hash}}/{{name}}"), get(asset))
        .route("/console/session", post(begin).get(present).delete(end))
}

async fn index() -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "no-cache"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "same-origin"),
    ];
    (headers, console::INDEX.as_str()).into_response()
}

async fn asset(Path((hash, name)): Path<(String, String)>) -> Response {
    let Some(asset) = console::asset(&hash, &name) else { return StatusCode::NOT_FOUND.into_response() };
    let headers = [(header::CONTENT_TYPE, asset.kind), (header::CACHE_CONTROL, "public, max-age=31536000, immutable")];
    (headers, asset.text).into_response()
}

/// What begins a session.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SignIn {
    token: String,
}

/// Who has signed in, and what they may do.
#[derive(Serialize)]
struct SignedIn {
    user: String,
    level: &'static str,
}

async fn begin(
    State(state): State<AppState>,
    headers: HeaderMap,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    from_script(&headers)?;
    let sent: SignIn = body_as(body).await?;
    let signed_in = bearer(&state, sent.token.trim()).await?;
    Ok((cookie(&state, sent.token.trim()), Json(signed_in)).into_response())
}

/// Who has signed in, as long as the token holds.
async fn present(State(state): State<AppState>, headers: HeaderMap) -> Result<Json<SignedIn>, ApiError> {
    from_script(&headers)?;
    Ok(Json(bearer(&state, session_token(&headers, true).unwrap_or_default()).await?))
}

/// Whose a token is.
async fn bearer(state: &AppState, token: &str) -> Result<SignedIn, ApiError> {
    let unknown = ApiError::Unauthorized("this is no access token of the service, or it has expired");
    let Some(hash) = hash_token(token) else { return Err(unknown) };
    match state.store.authenticate(&hash).await? {
        Credential::Unknown => Err(unknown),
        Credential::Withdrawn => {
            Err(ApiError::Forbidden("this access token no longer has access to the account".to_owned()))
        }
        Credential::Moving => Err(StoreError::Moving.into()),
        Credential::Valid(caller, level) => Ok(SignedIn { user: caller.user.clone(), level: level.name() }),
    }
}

async fn end(State(state): State<AppState>, headers: HeaderMap) -> Result<Response, ApiError> {
    from_script(&headers)?;
    Ok((StatusCode::NO_CONTENT, cookie(&state, "")).into_response())
}

/// Sets the cookie, or ends it when there is no token.
fn cookie(state: &AppState, token: &str) -> [(header::HeaderName, String); 1] {
    let secure = if state.links.base().starts_with("https://") { "; Secure" } else { "" };
    let life = if token.is_empty() { "; Max-Age=0" } else { "" };
    [(header::SET_COOKIE, format!("{COOKIE}={token}; Path=/; HttpOnly; SameSite=Strict{secure}{life}"))]
}

fn from_script(headers: &HeaderMap) -> Result<(), ApiError> {
    if headers.contains_key(SCRIPT_HEADER) && same_origin(headers).unwrap_or(true) {
        return Ok(());
    }
    Err(ApiError::Forbidden("a session begins and ends in the console".to_owned()))
}

/// Whether the browser says that its own page of this origin asks; none when it does not say.
fn same_origin(headers: &HeaderMap) -> Option<bool> {
    headers.get("sec-fetch-site").map(|site| site == HeaderValue::from_static("same-origin"))
}

/// The token of the session's cookie, when the request is one that only the console can have made: with the header of its
/// scripts, or a picture that its page shows.
pub(super) fn session_token(headers: &HeaderMap, reads: bool) -> Option<&str> {
    let same_origin = same_origin(headers);
    let of_script = headers.contains_key(SCRIPT_HEADER) && same_origin.unwrap_or(true);
    let of_page = reads && same_origin == Some(true);
    if !(of_script || of_page) {
        return None;
    }
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == COOKIE).map(|(_, token)| token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_counts_only_where_the_console_asks() {
        for (sent, reads, wanted) in [
            (&[("cookie", "a=b; vat_session=t"), ("x-console", "1")][..], false, Some("t")),
            (&[("cookie", "vat_session=t"), ("x-console", "1"), ("sec-fetch-site", "same-origin")], false, Some("t")),
            (&[("cookie", "vat_session=t"), ("x-console", "1"), ("sec-fetch-site", "cross-site")], false, None),
            (&[("cookie", "vat_session=t")], false, None),
            (&[("cookie", "vat_session=t")], true, None),
            (&[("cookie", "vat_session=t"), ("sec-fetch-site", "same-origin")], true, Some("t")),
            (&[("cookie", "vat_session=t"), ("sec-fetch-site", "same-origin")], false, None),
            (&[("cookie", "vat_session=t"), ("sec-fetch-site", "same-site")], true, None),
            (&[("cookie", "other=t"), ("x-console", "1")], true, None),
            (&[("x-console", "1")], true, None),
        ] {
            let mut headers = HeaderMap::new();
            for (name, value) in sent {
                headers.append(*name, HeaderValue::from_static(value));
            }
            assert_eq!(session_token(&headers, reads), wanted, "{sent:?} {reads}");
        }
    }
}
