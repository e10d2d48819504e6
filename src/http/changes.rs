//! The feed of changes, and what of the plan is used.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::error::ApiError;
use crate::http::params::Params;
use crate::http::products::instant;
use crate::http::state::AppState;
use crate::store::accounts::Caller;

/// A change of a product or an assignment.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ChangeAnswer {
    /// Grows along the feed.
    sequence: i64,
    /// `PRODUCT_CREATED`, `PRODUCT_UPDATED`, `PRODUCT_DELETED`, or `ASSIGNMENT_` and the action of an event.
    #[serde(rename = "type")]
    kind: String,
    /// The product.
    product_id: String,
    /// The shop of a local product.
    #[serde(skip_serializing_if = "Option::is_none")]
    shop_id: Option<i64>,
    /// The taxonomy of a changed assignment.
    #[serde(skip_serializing_if = "Option::is_none")]
    taxonomy: Option<&'static str>,
    /// The version of the product or the assignment after the change.
    version: i64,
    /// When.
    timestamp: String,
}

/// Changes, oldest first.
#[derive(Serialize, ToSchema)]
pub(super) struct ChangeFeed {
    items: Vec<ChangeAnswer>,
    /// Where to go on: the next `after`.
    next: i64,
}

/// What of the plan is used.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct UsageAnswer {
    /// `UNLIMITED` or `FREE_TRIAL`.
    plan: &'static str,
    /// The calendar month (UTC), `2026-11`.
    month: String,
    /// Checks used in it.
    used: i64,
    /// Checks allowed in it; null without a limit.
    #[schema(required = true)]
    limit: Option<i64>,
    /// Share of the decisions by text that are meant to be right: 0.90, 0.95 or 0.98.
    decision_precision: f64,
}

#[utoipa::path(get, path = "/changes", tag = "Changes", operation_id = "listChanges",
    description = "Changes of products and assignments in an order in which none is ever missed. Start without `after`, then go on with `next`.",
    params(
        ("after" = Option<i64>, Query, minimum = 0, description = "The last sequence already seen."),
        ("size" = Option<i64>, Query, minimum = 1, maximum = 1000, description = "Most changes of the answer. Default 50."),
    ),
    responses((status = 200, description = "Changes, oldest first.", body = ChangeFeed)))]
pub(super) async fn list(
    State(state): State<AppState>,
    caller: Caller,
    params: Params,
) -> Result<Json<ChangeFeed>, ApiError> {
    let after = params.integer("after", 0, i64::MAX)?.unwrap_or(0);
    let size = params.size()?;
    let changes = state.store.changes(caller.account, after, size).await?;
    let next = changes.last().map_or(after, |change| change.sequence);
    let items = changes.into_iter().map(|change| ChangeAnswer {
        sequence: change.sequence,
        kind: match change.taxonomy() {
            Some(_) => format!("ASSIGNMENT_{}", change.action),
            None => change.action.clone(),
        },
        shop_id: (change.shop_id > 0).then_some(change.shop_id),
        taxonomy: change.taxonomy().map(|taxonomy| taxonomy.name()),
        version: change.version,
        timestamp: instant(change.happened_at),
        product_id: change.product_id,
    });
    Ok(Json(ChangeFeed { items: items.collect(), next }))
}

#[utoipa::path(get, path = "/usage", tag = "Changes", operation_id = "getUsage",
    description = "How many checks the account has used this calendar month (UTC), and how sure its decisions by text are.",
    responses((status = 200, description = "Plan and use.", body = UsageAnswer)))]
pub(super) async fn usage(State(state): State<AppState>, caller: Caller) -> Result<Json<UsageAnswer>, ApiError> {
    let usage = state.store.usage(caller.account).await?;
    let limit = caller.plan.monthly_checks();
    let decision_precision = caller.precision.share();
    Ok(Json(UsageAnswer { plan: caller.plan.name(), month: usage.month, used: usage.used, limit, decision_precision }))
}
