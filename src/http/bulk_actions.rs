//! Actions on everything that a filter selects, and what becomes of actions: their progress, and taking them back.

use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::domain::Fault;
use crate::domain::assignment::Action;
use crate::domain::forms::TaxonomyName;
use crate::http::actions::{action_named, class_at, comment, judged};
use crate::http::admission::Tab;
use crate::http::assignment_filter::SentFilter;
use crate::http::body::{JsonBody, body_as};
use crate::http::described::errors::{ACTION, BODY, COUNTED, EDIT, Errors, RUNNING, SEARCH, TAXONOMY, WRONG_CLASS};
use crate::http::described::filter::ActionFilter;
use crate::http::described::kinds::{ActionName, AssignedClass, CommentText};
use crate::http::error::ApiError;
use crate::http::products::instant;
use crate::http::state::AppState;
use crate::http::taxonomies::taxonomy;
use crate::store::accounts::Caller;
use crate::store::assignments::{ActionProgress, BATCH_ASSIGNMENTS, BulkAction, LeftItem};
use crate::store::tx;

/// Batches of an action that the request itself works off; a job goes on with the rest.
const BATCHES_AT_ONCE: usize = 5;

/// How long writing down what an action is about may take: 100,000 assignments take about a second on two processors
/// that have nothing else to do.
const WRITING_DOWN: Duration = Duration::from_secs(20);

/// An action on everything that a filter selects.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct BulkActionBody {
    /// ASSIGN, APPROVE, REJECT, DENY, RECONFIRM or UNASSIGN.
    #[schema(inline, value_type = ActionName)]
    action: String,
    /// `code-NN-NNN`, with at least four digits; required with ASSIGN.
    #[schema(inline, value_type = Option<AssignedClass>)]
    product_class: Option<String>,
    /// Why, for the history.
    #[schema(inline, value_type = Option<CommentText>)]
    comment: Option<String>,
    /// The filters of the list of assignments, under the names of its parameters: `{"assignmentStatus": ["ASSIGNED"],
    /// "confidenceFrom": 0.95}`. assignmentStatus is required; filterCriteria is an array as it is. At most 100,000
    /// assignments are selected.
    #[schema(value_type = ActionFilter)]
    filter: Map<String, Value>,
    /// How many assignments the filter is expected to select; where it selects another number, nothing is done (409).
    #[schema(minimum = 0)]
    expected_count: Option<i64>,
    /// Only tells how many would be selected, and how many of them left. Default false.
    dry_run: Option<bool>,
}

/// How far an action has come.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ActionProgressAnswer {
    /// By which it can be read and taken back; absent in a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    action_id: Option<Uuid>,
    /// RUNNING, DONE or DRY_RUN.
    #[schema(pattern = "^(RUNNING|DONE|DRY_RUN)$")]
    state: String,
    /// How many assignments it is about.
    selected: i64,
    /// How many it has changed so far.
    done: i64,
    /// How many it has left as they were: changed by somebody since, gone, or in a state that does not allow it.
    skipped: i64,
    /// How many it could not change.
    failed: i64,
    /// TARIC, TARES or UKGT.
    #[schema(value_type = TaxonomyName)]
    taxonomy: &'static str,
    /// One of the six actions, or UNDO.
    action: String,
    /// The class given with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    product_class: Option<String>,
    /// What the person wrote beside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    comment: Option<String>,
    /// Whose it is.
    actor: String,
    /// The filter that selected, where one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<std::collections::BTreeMap<String, Value>>)]
    filter: Option<Value>,
    /// The action that it takes back.
    #[serde(skip_serializing_if = "Option::is_none")]
    undoes: Option<Uuid>,
    /// The action that takes it back.
    #[serde(skip_serializing_if = "Option::is_none")]
    undone_by: Option<Uuid>,
    /// When it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<String>,
    /// When it was through.
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_at: Option<String>,
    /// What it has left as it was, by productId: the first 1,000.
    left: Vec<LeftAnswer>,
}

/// An assignment that an action has left as it was.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct LeftAnswer {
    /// The product.
    product_id: String,
    /// The shop of a local product.
    #[serde(skip_serializing_if = "Option::is_none")]
    shop_id: Option<i64>,
    /// SKIPPED or FAILED.
    outcome: String,
    /// Why: UNKNOWN_PRODUCT, STALE_VERSION, CHANGED_SINCE or ACTION_NOT_ALLOWED.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
}

impl ActionProgressAnswer {
    fn new((progress, left): (ActionProgress, Vec<LeftItem>)) -> ActionProgressAnswer {
        let left = left.into_iter().map(|item| LeftAnswer {
            product_id: item.product_id,
            shop_id: (item.shop_id > 0).then_some(item.shop_id),
            outcome: item.outcome,
            code: item.reason,
        });
        ActionProgressAnswer {
            action_id: Some(progress.action_id),
            taxonomy: progress.taxonomy().name(),
            state: progress.state,
            selected: progress.selected.into(),
            done: progress.done.into(),
            skipped: progress.skipped.into(),
            failed: progress.failed.into(),
            action: progress.action,
            product_class: progress.product_class,
            comment: progress.comment,
            actor: progress.actor,
            filter: progress.filter,
            undoes: progress.undoes,
            undone_by: progress.undone_by,
            created_at: Some(instant(progress.created_at)),
            finished_at: progress.finished_at.map(instant),
            left: left.collect(),
        }
    }
}

#[utoipa::path(post, path = "/assignments/{taxonomy}/actions", tag = "Assignments", operation_id = "actOnAssignments",
    summary = "Act on everything in a filter",
    description = "Acts on everything that a filter selects now, at most 100,000 assignments: a small selection before the answer, the rest of a large one afterwards. What somebody changes meanwhile is left. Auto-assignment of what is acted on is aborted in this taxonomy only.",
    params(("taxonomy" = inline(TaxonomyName), Path, description = "TARIC, TARES or UKGT.")),
    request_body = BulkActionBody,
    responses((status = 202, description = "How far it has come, to be read again under its actionId.", body = ActionProgressAnswer),
        Errors<{ EDIT | TAXONOMY | COUNTED | WRONG_CLASS | BODY | SEARCH }>))]
pub(super) async fn act(
    State(state): State<AppState>,
    caller: Caller,
    tab: Tab,
    Path(name): Path<String>,
    JsonBody(body): JsonBody,
) -> Result<(StatusCode, Json<ActionProgressAnswer>), ApiError> {
    let body: BulkActionBody = body_as(body).await?;
    let action = action_named("action", &body.action)?;
    let (comment, wrong_comment) = comment(body.comment);
    if body.expected_count.is_some_and(|count| count < 0) {
        return Err(ApiError::malformed_at("expectedCount", "is a whole number of at least 0"));
    }
    let filter = SentFilter::of_body(&body.filter)?;
    if action == Action::Assign && body.product_class.is_none() {
        return Err(ApiError::malformed_at("productClass", "is required with ASSIGN"));
    }
    // One that another action has no use for is read, too: what is malformed is told, before an unknown taxonomy is.
    let class = body.product_class.map(|text| class_at("productClass", &text)).transpose()?;
    let taxonomy = taxonomy(&name)?;
    let class = class.filter(|_| action == Action::Assign).map(|class| judged(&state, taxonomy, "productClass", class));
    let action = BulkAction {
        taxonomy,
        action,
        class: wrong_comment.map(Err).or(class),
        comment,
        filter: filter.resolve(&state, &caller, &tab).await?,
        sent_filter: Value::Object(body.filter),
        expected: body.expected_count,
    };
    if body.dry_run.unwrap_or(false) {
        return rehearse(&state, &caller, action).await;
    }
    let id = state.store.begin_action(&caller, &action, WRITING_DOWN).await?;
    begun(&state, &caller, id).await
}

async fn rehearse(
    state: &AppState,
    caller: &Caller,
    action: BulkAction,
) -> Result<(StatusCode, Json<ActionProgressAnswer>), ApiError> {
    let found = state.store.rehearse(caller.account, &action, state.search_deadline).await?;
    let answer = ActionProgressAnswer {
        action_id: None,
        state: "DRY_RUN".to_owned(),
        selected: found.selected,
        done: 0,
        skipped: found.refused,
        failed: 0,
        taxonomy: action.taxonomy.name(),
        action: action.action.name().to_owned(),
        product_class: action.class.and_then(Result::ok).map(|class| class.class.to_string()),
        comment: action.comment,
        actor: caller.user.clone(),
        filter: Some(action.sent_filter),
        undoes: None,
        undone_by: None,
        created_at: None,
        finished_at: None,
        left: Vec::new(),
    };
    Ok((StatusCode::ACCEPTED, Json(answer)))
}

/// Works off the beginning of an action, leaves the rest to the job, and tells how far it has come.
async fn begun(
    state: &AppState,
    caller: &Caller,
    id: Uuid,
) -> Result<(StatusCode, Json<ActionProgressAnswer>), ApiError> {
    let at_once = if tx::is_held() { 0 } else { BATCHES_AT_ONCE };
    for _ in 0..at_once {
        // What fails here is tried again by the job: the action stands already.
        match state.store.work_on_action(Some(id), BATCH_ASSIGNMENTS).await {
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(error) => {
                tracing::warn!(%error, action = %id, "an action has to wait");
                break;
            }
        }
    }
    state.wake.review.notify_one();
    let progress = state.store.action(caller.account, id).await?;
    Ok((StatusCode::ACCEPTED, Json(ActionProgressAnswer::new(progress))))
}

/// The identity that a path names; a malformed one is one that does not exist.
fn action_id(text: &str) -> Result<Uuid, ApiError> {
    Uuid::try_parse(text).map_err(|_| {
        let message = format!("there is no action \"{text}\"");
        ApiError::NotFound(message.clone(), vec![Fault::at("actionId", "UNKNOWN_ACTION", message)])
    })
}

#[utoipa::path(get, path = "/assignments/actions/{actionId}", tag = "Assignments", operation_id = "getAction",
    summary = "Read an action",
    description = "How far an action has come: one by filter, one on named products, or one that takes another back. Known for 30 days.",
    params(("actionId" = Uuid, Path, description = "The action.")),
    responses((status = 200, description = "The action.", body = ActionProgressAnswer),
        Errors<{ ACTION }>))]
pub(super) async fn read(
    State(state): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<ActionProgressAnswer>, ApiError> {
    let progress = state.store.action(caller.account, action_id(&id)?).await?;
    Ok(Json(ActionProgressAnswer::new(progress)))
}

#[utoipa::path(post, path = "/assignments/actions/{actionId}/undo", tag = "Assignments", operation_id = "undoAction",
    summary = "Take an action back",
    description = "Restores what an action changed, wherever nobody has changed it since, and tells what it left. Taking back can be taken back.",
    params(("actionId" = Uuid, Path, description = "The action.")),
    responses((status = 202, description = "How far it has come, to be read again under its own actionId.", body = ActionProgressAnswer),
        Errors<{ EDIT | ACTION | RUNNING }>))]
pub(super) async fn undo(
    State(state): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<(StatusCode, Json<ActionProgressAnswer>), ApiError> {
    let id = state.store.begin_undo(&caller, action_id(&id)?).await?;
    begun(&state, &caller, id).await
}
