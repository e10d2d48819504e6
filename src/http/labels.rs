//! Labels: their definition, and attaching them to assignments.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::domain::Fault;
use crate::domain::forms::{forms, not_empty};
use crate::http::allowed::MAX_LABEL_CHARACTERS;
use crate::http::body::{Document, JsonBody, body_as};
use crate::http::described::errors::{ADMIN, ASSIGNMENT, BODY, EDIT, Errors, LABEL, PLAIN, TAKEN, WRONG_LABEL};
use crate::http::described::kinds::{ColorForm, LabelForm};
use crate::http::error::ApiError;
use crate::http::params::require_no_nul;
use crate::http::state::AppState;
use crate::store::StoreError;
use crate::store::accounts::Caller;
use crate::store::labels::Label;
use crate::store::tx;

/// Steps in which a label that leaves is taken from assignments before the answer.
const SHED_BEFORE_ANSWER: usize = 10;
/// Most assignments, and most labels, of one request.
pub(super) const MAX_LABELLED: usize = 1_000;

/// A label.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AssignmentLabel {
    /// 1 to 100 characters, no comma, not beginning with `!`.
    #[schema(inline, value_type = LabelForm)]
    label: String,
    /// `#RRGGBB`.
    #[schema(inline, value_type = ColorForm)]
    color: String,
}

/// All labels of the account.
#[derive(Serialize, ToSchema)]
pub(super) struct LabelList {
    items: Vec<AssignmentLabel>,
}

/// What is to change of a label: at least one of both.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = LabelChangeFields)]
pub(super) struct LabelChange {
    /// Its new name.
    #[schema(inline, nullable = false, value_type = Option<LabelForm>)]
    label: Option<String>,
    /// Its new colour, `#RRGGBB`.
    #[schema(inline, nullable = false, value_type = Option<ColorForm>)]
    color: Option<String>,
}

forms! {
    /// Of a change of a label, at least one field.
    LabelChangeForm "LabelChange" = not_empty(LabelChange::schema());
}

/// Which labels on which assignments.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Labelling {
    /// Assignments, 1 to 1,000.
    #[schema(min_items = 1, max_items = 1000, value_type = Vec<Uuid>)]
    assignment_uuids: Vec<String>,
    /// Labels defined before, 1 to 1,000.
    #[schema(min_items = 1, max_items = 1000)]
    labels: Vec<String>,
}

fn faults(label: &AssignmentLabel) -> Vec<Fault> {
    let mut faults = Vec::new();
    let characters = label.label.chars().count();
    if !(1..=MAX_LABEL_CHARACTERS).contains(&characters) || label.label.contains(',') || label.label.starts_with('!') {
        let message = "a label has 1 to 100 characters, no comma, and does not begin with !";
        faults.push(Fault::at("label", "INVALID_LABEL", message));
    }
    let hexadecimal = label
        .color
        .strip_prefix('#')
        .is_some_and(|digits| digits.len() == 6 && digits.bytes().all(|b| b.is_ascii_hexdigit()));
    if !hexadecimal {
        faults.push(Fault::at("color", "INVALID_COLOR", "a colour is written #RRGGBB, such as #00AAFF"));
    }
    faults
}

#[utoipa::path(post, path = "/assignments/assignment-labels", tag = "Labels", operation_id = "defineAssignmentLabel",
    summary = "Define a label",
    description = "Defines a label.", request_body = AssignmentLabel,
    responses(
        (status = 200, description = "It was defined so already.", body = AssignmentLabel),
        (status = 201, description = "The label.", body = AssignmentLabel),
        Errors<{ ADMIN | TAKEN | WRONG_LABEL | BODY }>))]
pub(super) async fn define(
    State(state): State<AppState>,
    caller: Caller,
    JsonBody(body): JsonBody,
) -> Result<(StatusCode, Json<AssignmentLabel>), ApiError> {
    let sent: AssignmentLabel = body_as(body).await?;
    let faults = faults(&sent);
    if !faults.is_empty() {
        return Err(StoreError::Unprocessable(faults).into());
    }
    let label = Label { label: sent.label.clone(), color: sent.color.clone() };
    let new = state.store.define_label(caller.account, &label).await?;
    Ok((if new { StatusCode::CREATED } else { StatusCode::OK }, Json(sent)))
}

#[utoipa::path(get, path = "/assignments/assignment-labels", tag = "Labels", operation_id = "listAssignmentLabels",
    summary = "List labels",
    description = "Lists the defined labels.",
    responses((status = 200, description = "The labels, by name.", body = LabelList),
        Errors<{ PLAIN }>))]
pub(super) async fn list(State(state): State<AppState>, caller: Caller) -> Result<Json<LabelList>, ApiError> {
    let labels = state.store.labels(caller.account).await?;
    let items = labels.into_iter().map(|label| AssignmentLabel { label: label.label, color: label.color });
    Ok(Json(LabelList { items: items.collect() }))
}

/// Works through assignments that carry a label which leaves; a job goes on where they are many.
async fn shed(state: &AppState, caller: &Caller) {
    if tx::is_held() {
        return;
    }
    for _ in 0..SHED_BEFORE_ANSWER {
        match state.store.shed_label(Some(caller.account)).await {
            Ok(true) => {}
            Ok(false) => return,
            // The label leaves in any case; the job tries again.
            Err(error) => {
                tracing::warn!(%error, "a label has to leave later");
                return;
            }
        }
    }
    state.wake.review.notify_one();
}

#[utoipa::path(patch, path = "/assignments/assignment-labels/{label}", tag = "Labels", operation_id = "changeAssignmentLabel",
    summary = "Change a label",
    description = "Gives a label another name or colour. Assignments that carry it carry the new name; where they are many, some moments later.",
    params(("label" = String, Path, description = "The label, percent-encoded.")),
    request_body = LabelChangeForm,
    responses((status = 200, description = "The label as it is now.", body = AssignmentLabel),
        Errors<{ ADMIN | LABEL | TAKEN | WRONG_LABEL | BODY }>))]
pub(super) async fn change(
    State(state): State<AppState>,
    caller: Caller,
    Path(name): Path<String>,
    JsonBody(body): JsonBody,
) -> Result<Json<AssignmentLabel>, ApiError> {
    let sent: LabelChange = body_as(body).await?;
    require_no_nul("label", &name)?;
    if sent.label.is_none() && sent.color.is_none() {
        return Err(ApiError::malformed("the body names neither a label nor a color to change"));
    }
    // What is not to change is right as it is.
    let whole = AssignmentLabel {
        label: sent.label.clone().unwrap_or_else(|| "label".to_owned()),
        color: sent.color.clone().unwrap_or_else(|| "#000000".to_owned()),
    };
    let faults = faults(&whole);
    if !faults.is_empty() {
        state.store.require_label(caller.account, &name).await?;
        return Err(StoreError::Unprocessable(faults).into());
    }
    let label = state.store.change_label(&caller, &name, sent.label.as_deref(), sent.color.as_deref()).await?;
    shed(&state, &caller).await;
    Ok(Json(AssignmentLabel { label: label.label, color: label.color }))
}

#[utoipa::path(delete, path = "/assignments/assignment-labels/{label}", tag = "Labels", operation_id = "removeAssignmentLabel",
    summary = "Remove a label",
    description = "Removes a label and detaches it everywhere; where it is on many assignments, some moments later.",
    params(("label" = String, Path, description = "The label, percent-encoded.")),
    responses((status = 204, description = "Removed."),
        Errors<{ ADMIN | LABEL }>))]
pub(super) async fn remove(
    State(state): State<AppState>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<StatusCode, ApiError> {
    require_no_nul("label", &name)?;
    state.store.remove_label(&caller, &name).await?;
    shed(&state, &caller).await;
    Ok(StatusCode::NO_CONTENT)
}

#[utoipa::path(put, path = "/assignments", tag = "Labels", operation_id = "attachLabels",
    summary = "Attach labels",
    description = "Attaches labels to assignments, all or none; what is attached already stays so. An assignment carries at most 50.",
    request_body = Labelling, responses((status = 200, description = "What was sent.", body = Labelling),
        Errors<{ EDIT | ASSIGNMENT | WRONG_LABEL | BODY }>))]
pub(super) async fn attach(
    State(state): State<AppState>,
    caller: Caller,
    JsonBody(body): JsonBody,
) -> Result<Json<Labelling>, ApiError> {
    label(&state, &caller, body, true).await
}

#[utoipa::path(delete, path = "/assignments", tag = "Labels", operation_id = "detachLabels",
    summary = "Detach labels",
    description = "Detaches labels from assignments, all or none.",
    request_body = Labelling, responses((status = 200, description = "What was sent.", body = Labelling),
        Errors<{ EDIT | ASSIGNMENT | WRONG_LABEL | BODY }>))]
pub(super) async fn detach(
    State(state): State<AppState>,
    caller: Caller,
    JsonBody(body): JsonBody,
) -> Result<Json<Labelling>, ApiError> {
    label(&state, &caller, body, false).await
}

async fn label(state: &AppState, caller: &Caller, body: Document, attach: bool) -> Result<Json<Labelling>, ApiError> {
    let sent: Labelling = body_as(body).await?;
    for (field, count) in [("assignmentUuids", sent.assignment_uuids.len()), ("labels", sent.labels.len())] {
        if !(1..=MAX_LABELLED).contains(&count) {
            return Err(ApiError::malformed_at(field, format!("has 1 to {MAX_LABELLED} items")));
        }
    }
    let mut uuids: Vec<Uuid> = Vec::with_capacity(sent.assignment_uuids.len());
    let mut unknown = Vec::new();
    for (index, text) in sent.assignment_uuids.iter().enumerate() {
        match Uuid::try_parse(text) {
            Ok(uuid) => uuids.push(uuid),
            Err(_) => {
                let message = format!("there is no assignment \"{text}\"");
                unknown.push(Fault::at(format!("assignmentUuids[{index}]"), "UNKNOWN_ASSIGNMENT", message));
            }
        }
    }
    if !unknown.is_empty() {
        return Err(StoreError::NotFound(unknown).into());
    }
    state.store.label_assignments(caller, &uuids, &sent.labels, attach).await?;
    Ok(Json(sent))
}
