//! Who may do what: the credential comes before every other check.

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::domain::access::{Level, TokenHash, hash_token};
use crate::http::error::ApiError;
use crate::http::state::AppState;
use crate::store::accounts::{Caller, Credential};

/// Definitions are for administrators.
const ADMIN_PATHS: [&str; 2] = ["/products/merchant-product-attributes", "/assignments/assignment-labels"];
/// Requests that store nothing although their method says so.
const READ_PATHS: [&str; 1] = ["/classifications"];

/// The level that an operation needs, by method and path below the base path.
fn required_level(method: &Method, path: &str) -> Level {
    if [Method::GET, Method::HEAD, Method::OPTIONS].contains(method) || READ_PATHS.contains(&path) {
        Level::Read
    } else if ADMIN_PATHS.contains(&path) {
        Level::Admin
    } else {
        Level::Edit
    }
}

/// Lets a request pass when its credential allows it, with its [`Caller`] beside it.
pub(super) async fn authenticate(State(state): State<AppState>, mut request: Request, next: Next) -> Response {
    let token = token(&request);
    let needed = required_level(request.method(), request.uri().path());
    match caller(&state, token, needed).await {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(error) => error.into_response(),
    }
}

/// The hash of the one well-formed token that a request carries.
fn token(request: &Request) -> Option<TokenHash> {
    let mut sent = request.headers().get_all(header::AUTHORIZATION).iter();
    let (value, None) = (sent.next()?, sent.next()) else { return None };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") { hash_token(token.trim()) } else { None }
}

async fn caller(state: &AppState, token: Option<TokenHash>, needed: Level) -> Result<Caller, ApiError> {
    let unknown = ApiError::Unauthorized("send a valid access token: Authorization: Bearer <ACCESS_TOKEN>");
    let Some(hash) = token else { return Err(unknown) };
    match state.store.authenticate(&hash).await? {
        Credential::Unknown => Err(unknown),
        Credential::Withdrawn => Err(ApiError::Forbidden("this access token no longer has access to the account")),
        Credential::Valid(_, level) if level < needed => {
            Err(ApiError::Forbidden("the level of this access token does not allow this"))
        }
        Credential::Valid(caller, _) => Ok(caller),
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let caller = parts.extensions.get::<Caller>().cloned();
        caller.ok_or_else(|| ApiError::Internal("a route is not behind authentication".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_follow_method_and_path() {
        for (method, path, level) in [
            (Method::GET, "/products/global", Level::Read),
            (Method::HEAD, "/products/global", Level::Read),
            (Method::GET, "/assignments/assignment-labels", Level::Read),
            (Method::POST, "/classifications", Level::Read),
            (Method::POST, "/products/global", Level::Edit),
            (Method::PATCH, "/assignments/TARIC", Level::Edit),
            (Method::PUT, "/assignments", Level::Edit),
            (Method::POST, "/products/merchant-product-attributes", Level::Admin),
            (Method::POST, "/assignments/assignment-labels", Level::Admin),
        ] {
            assert_eq!(required_level(&method, path), level, "{method} {path}");
        }
    }
}
