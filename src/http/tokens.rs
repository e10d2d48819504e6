//! The tokens of an account, as those who administer it see them: never the token itself.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::changes::instant;
use crate::http::described::errors::{ADMIN, Errors};
use crate::http::error::ApiError;
use crate::http::state::AppState;
use crate::store::accounts::Caller;
use crate::store::operators::TokenListing;

/// The tokens of an account.
#[derive(Serialize, ToSchema)]
pub(super) struct TokenList {
    /// By user and age, at most 1,000.
    items: Vec<TokenAnswer>,
}

/// A token in force.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TokenAnswer {
    /// By which it is named where it is to be ended.
    token_id: String,
    /// The name that histories show.
    user: String,
    /// READ, EDIT or ADMIN.
    #[schema(pattern = "^(READ|EDIT|ADMIN)$")]
    level: String,
    /// When it was made.
    created_at: String,
    /// From when on it is no longer good; without it, it does not expire.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    /// When it was used last, to the hour; without it, it never was.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_used_at: Option<String>,
}

impl From<TokenListing> for TokenAnswer {
    fn from(token: TokenListing) -> TokenAnswer {
        TokenAnswer {
            token_id: token.token_id,
            user: token.user_name,
            level: token.level,
            created_at: instant(token.created_at),
            expires_at: token.expires_at.map(instant),
            last_used_at: token.last_used_at.map(instant),
        }
    }
}

#[utoipa::path(get, path = "/tokens", tag = "Changes", operation_id = "listTokens",
    summary = "List access tokens",
    description = "The tokens of the account that are in force, by their ids. Needs ADMIN. They are made and ended on the command line of the service.",
    responses((status = 200, description = "The tokens.", body = TokenList),
        Errors<{ ADMIN }>))]
pub(super) async fn list(State(state): State<AppState>, caller: Caller) -> Result<Json<TokenList>, ApiError> {
    let tokens = state.store.tokens_in_force(caller.account).await?;
    Ok(Json(TokenList { items: tokens.into_iter().map(TokenAnswer::from).collect() }))
}
