//! The feed of changes, and what of the plan is used.

use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::Taxonomy;
use crate::domain::changes::{ToldChange, read_sequence, type_of_name, types, write_sequence};
use crate::domain::forms::TaxonomyName;
use crate::http::described::errors::{Errors, PLAIN};
use crate::http::described::kinds::{PageSize, PlanName, TypeList};
use crate::http::error::ApiError;
use crate::http::params::Params;
use crate::http::state::AppState;
use crate::store::accounts::Caller;
use crate::store::changes::{Changes, Selection};

/// Longest time for which an answer is held, in seconds.
const MAX_WAIT_SECONDS: i64 = 30;
/// The value of `after` that means the present.
const LATEST: &str = "latest";

/// Changes, oldest first.
#[derive(Serialize, ToSchema)]
pub(super) struct ChangeFeed {
    items: Vec<ToldChange>,
    /// Where to go on: the next `after`. Always there.
    next: String,
}

/// What of the plan is used.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct UsageAnswer {
    /// `UNLIMITED` or `FREE_TRIAL`.
    #[schema(value_type = PlanName)]
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

/// Reads `types` and `taxonomy`.
fn selection(params: &Params) -> Result<Selection, ApiError> {
    let mut selection = Selection::default();
    if let Some(names) = params.list("types")? {
        let named = |name: &String| {
            type_of_name(name).ok_or_else(|| {
                let known = types().collect::<Vec<_>>().join(", ");
                ApiError::malformed_at("types", format!("\"{name}\" is none of {known}"))
            })
        };
        selection.types = Some(names.iter().map(named).collect::<Result<_, _>>()?);
    }
    if let Some(name) = params.one("taxonomy")? {
        let taxonomy = Taxonomy::from_name(&name.to_ascii_uppercase());
        selection.taxonomy =
            Some(taxonomy.ok_or_else(|| ApiError::malformed_at("taxonomy", "is TARIC, TARES or UKGT"))?);
    }
    Ok(selection)
}

#[utoipa::path(get, path = "/changes", tag = "Changes", operation_id = "listChanges",
    summary = "Follow changes",
    description = "Changes of products and assignments in an order in which none is ever missed. Start without `after` for everything, or with `after=latest` for what happens from now on, then go on with `next`, which is always there. Of changes of one product that were made at one moment, `version` tells which came first. With `wait` the answer is held until there is something.",
    params(
        ("after" = Option<String>, Query, description = "The `next` or a `sequence` of an earlier answer, or `latest`."),
        ("size" = inline(Option<PageSize>), Query, description = "Most changes of the answer. Default 50."),
        ("types" = inline(Option<TypeList>), Query, description = "Types of changes, comma-separated or repeated."),
        ("taxonomy" = inline(Option<TaxonomyName>), Query, description = "Changes of assignments of this taxonomy only."),
        ("wait" = Option<i64>, Query, minimum = 0, maximum = 30, description = "Seconds to wait for a change when there is none yet."),
    ),
    responses((status = 200, description = "Changes, oldest first.", body = ChangeFeed),
        Errors<{ PLAIN }>))]
pub(super) async fn list(
    State(state): State<AppState>,
    caller: Caller,
    params: Params,
) -> Result<Json<ChangeFeed>, ApiError> {
    let size = params.size()?;
    let selection = selection(&params)?;
    let wait = params.integer("wait", 0, MAX_WAIT_SECONDS)?.unwrap_or(0);
    let after = match params.one("after")? {
        None => 0,
        Some(text) if text.eq_ignore_ascii_case(LATEST) => state.store.latest_change().await?,
        Some(text) => read_sequence(text).ok_or_else(|| {
            ApiError::malformed_at("after", "is latest, or the next or a sequence of an earlier answer, as it stands")
        })?,
    };
    let until = Instant::now() + Duration::from_secs(wait.unsigned_abs());
    let changes = wait_for(&state, &caller, after, size, &selection, until).await?;
    let items = changes.items.iter().map(|change| change.told()).collect();
    Ok(Json(ChangeFeed { items, next: write_sequence(changes.next) }))
}

/// Looks for changes until there is one or the time is over.
async fn wait_for(
    state: &AppState,
    caller: &Caller,
    mut after: i64,
    size: usize,
    selection: &Selection,
    until: Instant,
) -> Result<Changes, ApiError> {
    let mut place = None;
    loop {
        let changes = state.store.changes(caller.account, after, size, selection).await?;
        let left = until.saturating_duration_since(Instant::now());
        if !changes.items.is_empty() || left.is_zero() || state.waiting.is_over() {
            return Ok(changes);
        }
        after = changes.next;
        if !changes.at_end {
            continue;
        }
        let place = match &mut place {
            Some(place) => place,
            none => none.insert(
                state
                    .waiting
                    .take(caller.account)
                    .ok_or(ApiError::Unavailable("too many requests wait for changes"))?,
            ),
        };
        tokio::select! {
            () = state.waiting.over() => {}
            () = tokio::time::sleep(place.pause().min(left)) => {}
        }
    }
}

#[utoipa::path(get, path = "/usage", tag = "Changes", operation_id = "getUsage",
    summary = "Read plan and use",
    description = "How many checks the account has used this calendar month (UTC), and how sure its decisions by text are.",
    responses((status = 200, description = "Plan and use.", body = UsageAnswer),
        Errors<{ PLAIN }>))]
pub(super) async fn usage(State(state): State<AppState>, caller: Caller) -> Result<Json<UsageAnswer>, ApiError> {
    let usage = state.store.usage(caller.account).await?;
    let limit = caller.plan.monthly_checks();
    let decision_precision = caller.precision.share();
    Ok(Json(UsageAnswer { plan: caller.plan.name(), month: usage.month, used: usage.used, limit, decision_precision }))
}
