//! What people do with assignments: the six actions, and queueing again.

use std::collections::HashSet;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use chrono::Utc;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::domain::assignment::{Action, JudgedClass, MIN_CLASS_DIGITS, Status};
use crate::domain::forms::TaxonomyName;
use crate::domain::product_class::MalformedProductClass;
use crate::domain::{Fault, ProductClass, ShopId, Taxonomy};
use crate::http::allowed::MAX_COMMENT_CHARACTERS;
use crate::http::assignment_answers::ClassFields;
use crate::http::body::{JsonBody, body_as, malformed};
use crate::http::described::errors::{BODY, EDIT, Errors, PRODUCT, QUOTA, STALE, STATE, TAXONOMY, WRONG_CLASS};
use crate::http::described::kinds::{ActionName, AssignedClass, CommentText, ConflictRule, StatusName};
use crate::http::error::ApiError;
use crate::http::params::Params;
use crate::http::products::bulk::skips;
use crate::http::state::AppState;
use crate::http::taxonomies::taxonomy;
use crate::store::accounts::Caller;
use crate::store::assignments::{ActionItem, ActionRequest, AssignmentRecord, OnConflict, Refusal};

/// Most products of one action, and of one request to queue again.
const MAX_PRODUCTS_PER_ACTION: usize = 1_000;

/// To which products an action applies.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ActionBody {
    /// 1 to 1,000, each once.
    #[schema(min_items = 1, max_items = 1000, value_type = std::collections::BTreeSet<ActionProduct>)]
    products: Vec<ActionProduct>,
    /// Why, for the history.
    #[schema(inline, nullable = false, value_type = Option<CommentText>)]
    comment: Option<String>,
    /// FAIL (the default): none is changed when one cannot be. SKIP: all that can be are, and `results` tells of each.
    #[schema(inline, nullable = false, value_type = Option<ConflictRule>)]
    on_conflict: Option<String>,
}

/// A product of an action.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ActionProduct {
    /// The product.
    product_id: String,
    /// The shop of a local product; absent for a global one.
    #[schema(nullable = false, minimum = 1)]
    shop_id: Option<i64>,
    /// The version last read.
    assignment_version: ActionVersion,
    /// With ASSIGN: its own class, `code-NN-NNN`, in place of the one in the query.
    #[schema(inline, nullable = false, value_type = Option<AssignedClass>)]
    product_class: Option<String>,
}

/// Versions by platform service.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ActionVersion {
    /// The version of the assignment.
    #[schema(minimum = 0)]
    vat_rules: i64,
}

/// What an action did.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ActionAnswer {
    /// By which the action can be read and taken back.
    action_id: Uuid,
    /// The products that were changed as they are now, in the order of the request.
    products: Vec<ActedProduct>,
    /// With `onConflict` SKIP: what became of each product, in the order of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    results: Option<Vec<ActionResult>>,
}

/// A product after an action.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ActedProduct {
    /// The product.
    product_id: String,
    /// The shop of a local product.
    #[serde(skip_serializing_if = "Option::is_none")]
    shop_id: Option<i64>,
    /// The assignment.
    assignment_uuid: Uuid,
    /// Its status now.
    #[schema(value_type = StatusName)]
    assignment_status: String,
    /// The code of its class: absent when UNASSIGNED, null without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    product_class_code: Option<Option<String>>,
    /// Its class, `code-NN-NNN`: absent when UNASSIGNED, null without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    product_class: Option<Option<String>>,
    /// Its version now.
    assignment_version: ActionVersion,
}

/// What became of a product of an action.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ActionResult {
    /// The product.
    product_id: String,
    /// The shop of a local product.
    #[serde(skip_serializing_if = "Option::is_none")]
    shop_id: Option<i64>,
    /// 200 where it was changed; 404, 409 or 422 where it was left.
    status: u16,
    /// The assignment's version after the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<i64>,
    /// What stood against it.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Fault>,
}

/// Names each product once and its shop.
fn named_products(products: impl Iterator<Item = (String, Option<i64>)>) -> Result<Vec<(String, ShopId)>, ApiError> {
    let mut named = Vec::new();
    let mut seen = HashSet::new();
    let mut faults = Vec::new();
    for (index, (product_id, shop)) in products.enumerate() {
        let shop = match shop.map(ShopId::local) {
            None => ShopId::GLOBAL,
            Some(Some(shop)) => shop,
            Some(None) => {
                let message = "a shopId is at least 1";
                faults.push(Fault::at(format!("products[{index}].shopId"), "MALFORMED", message).on(&product_id));
                continue;
            }
        };
        if !seen.insert((product_id.clone(), shop)) {
            let message = "the product is named twice";
            faults.push(Fault::at(format!("products[{index}].productId"), "NAMED_TWICE", message).on(&product_id));
        }
        named.push((product_id, shop));
    }
    if named.is_empty() && faults.is_empty() {
        return Err(ApiError::malformed_at("products", "names no product"));
    }
    if named.len() > MAX_PRODUCTS_PER_ACTION {
        return Err(ApiError::malformed_at("products", format!("has at most {MAX_PRODUCTS_PER_ACTION} items")));
    }
    if faults.is_empty() { Ok(named) } else { Err(malformed(faults)) }
}

/// The class at a place of the request.
///
/// # Errors
/// When it is not of the shape.
pub(super) fn class_at(field: &str, text: &str) -> Result<ProductClass, ApiError> {
    text.parse().map_err(|error: MalformedProductClass| ApiError::malformed_at(field, error.to_string()))
}

/// A class that an ASSIGN gives, judged as of today; or that it is none of the taxonomy, which is told later.
pub(super) fn judged(
    state: &AppState,
    taxonomy: Taxonomy,
    field: &str,
    sent: ProductClass,
) -> Result<JudgedClass, Fault> {
    if sent.code.digits() < MIN_CLASS_DIGITS {
        let message =
            format!("a class of an assignment has at least {MIN_CLASS_DIGITS} digits; {} is a chapter", sent.code);
        return Err(Fault::at(field, "CLASS_TOO_SHORT", message));
    }
    let class = state.engine.class(taxonomy, sent);
    let class = class.map_err(|message| Fault::at(field, "UNKNOWN_PRODUCT_CLASS", message))?;
    Ok(JudgedClass { class, sufficient: state.engine.is_sufficient(taxonomy, class, Utc::now().date_naive()) })
}

/// The action of that name.
pub(super) fn action_named(field: &str, name: &str) -> Result<Action, ApiError> {
    Action::from_name(name).ok_or_else(|| {
        let known = Action::ALL.map(Action::name).join(", ");
        ApiError::malformed_at(field, format!("\"{name}\" is none of {known}"))
    })
}

/// A comment, an empty one being none, and what is wrong with it, which is told where a wrong class is.
pub(super) fn comment(sent: Option<String>) -> (Option<String>, Option<Fault>) {
    let too_long = sent.as_ref().is_some_and(|text| text.chars().count() > MAX_COMMENT_CHARACTERS);
    let fault = || Fault::at("comment", "TOO_LONG", format!("has at most {MAX_COMMENT_CHARACTERS} characters"));
    (sent.filter(|text| !text.trim().is_empty()), too_long.then(fault))
}

#[utoipa::path(patch, path = "/assignments/{taxonomy}", tag = "Assignments", operation_id = "updateAssignments",
    summary = "Approve, correct or reject",
    description = "Acts on assignments and aborts their auto-assignment: all or none, or with `onConflict` SKIP all that can be changed. The action can be taken back by its `actionId`.",
    params(
        ("taxonomy" = inline(TaxonomyName), Path, description = "TARIC, TARES or UKGT."),
        ("assignmentAction" = inline(ActionName), Query, description = "ASSIGN, APPROVE, REJECT, DENY, RECONFIRM or UNASSIGN."),
        ("productClass" = inline(Option<AssignedClass>), Query, description = "code-NN-NNN, with at least four digits; required with ASSIGN unless each product has its own."),
    ),
    request_body = ActionBody,
    responses((status = 200, description = "The products after it.", body = ActionAnswer),
        Errors<{ EDIT | TAXONOMY | PRODUCT | STALE | STATE | WRONG_CLASS | BODY }>))]
pub(super) async fn act(
    State(state): State<AppState>,
    caller: Caller,
    Path(name): Path<String>,
    params: Params,
    JsonBody(body): JsonBody,
) -> Result<Json<ActionAnswer>, ApiError> {
    let action = action_named("assignmentAction", params.required("assignmentAction")?)?;
    let body: ActionBody = body_as(body).await?;
    let (comment, wrong_comment) = comment(body.comment);
    // A comment that is wrong is so for all products.
    let skips = skips(body.on_conflict.as_deref())? && wrong_comment.is_none();
    let on_conflict = if skips { OnConflict::Skip } else { OnConflict::Fail };
    let mut sent = body.products;
    let named = named_products(sent.iter_mut().map(|item| (std::mem::take(&mut item.product_id), item.shop_id)))?;
    // One that another action has no use for is read, too: what is malformed is told, before an unknown taxonomy is.
    let shared = params.one("productClass")?.map(|text| class_at("productClass", text)).transpose()?;
    let own_field = |index: usize| format!("products[{index}].productClass");
    let mut own = Vec::with_capacity(sent.len());
    for (index, item) in sent.iter().enumerate() {
        own.push(item.product_class.as_deref().map(|text| class_at(&own_field(index), text)).transpose()?);
    }
    if action == Action::Assign && shared.is_none() && own.iter().any(Option::is_none) {
        return Err(ApiError::malformed_at("productClass", "is required with ASSIGN"));
    }
    let taxonomy = taxonomy(&name)?;
    let shared =
        shared.filter(|_| action == Action::Assign).map(|class| judged(&state, taxonomy, "productClass", class));
    let mut items = Vec::with_capacity(named.len());
    for (index, (((product_id, shop), sent), own)) in named.into_iter().zip(sent).zip(own).enumerate() {
        let own = own.filter(|_| action == Action::Assign);
        let own = own.map(|class| judged(&state, taxonomy, &own_field(index), class));
        let class = own.map(|judged| judged.map_err(|fault| fault.on(&product_id))).or_else(|| shared.clone());
        let class = wrong_comment.clone().map(Err).or(class);
        items.push(ActionItem { product_id, shop, version: sent.assignment_version.vat_rules, class });
    }
    let request = ActionRequest { taxonomy, action, comment, on_conflict, items };
    let acted = state.store.act(&caller, &request).await?;
    state.wake.memory.notify_one();
    let results =
        skips.then(|| request.items.iter().zip(&acted.outcomes).map(|(item, outcome)| result(item, outcome)).collect());
    let products = acted.outcomes.into_iter().filter_map(Result::ok).map(|record| {
        let class = ClassFields::new(taxonomy, record.class(), record.status != Status::Unassigned.name());
        ActedProduct {
            product_class_code: class.product_class_code,
            product_class: class.product_class,
            shop_id: (record.shop_id > 0).then_some(record.shop_id),
            assignment_uuid: record.assignment_uuid,
            assignment_version: ActionVersion { vat_rules: record.version },
            assignment_status: record.status,
            product_id: record.product_id,
        }
    });
    Ok(Json(ActionAnswer { action_id: acted.action_id, products: products.collect(), results }))
}

fn result(item: &ActionItem, outcome: &Result<AssignmentRecord, Refusal>) -> ActionResult {
    let (status, version, error) = match outcome {
        Ok(record) => (StatusCode::OK, Some(record.version), None),
        Err(Refusal::NotFound(fault)) => (StatusCode::NOT_FOUND, None, Some(fault.clone())),
        Err(Refusal::Conflict(fault)) => (StatusCode::CONFLICT, None, Some(fault.clone())),
        Err(Refusal::Unprocessable(fault)) => (StatusCode::UNPROCESSABLE_ENTITY, None, Some(fault.clone())),
    };
    ActionResult {
        product_id: item.product_id.clone(),
        shop_id: item.shop.number(),
        status: status.as_u16(),
        version,
        error,
    }
}

/// Products to queue again.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RequeueBody {
    /// 1 to 1,000, each once.
    #[schema(min_items = 1, max_items = 1000, value_type = std::collections::BTreeSet<RequeueProduct>)]
    products: Vec<RequeueProduct>,
}

/// A product to queue again.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RequeueProduct {
    /// The product.
    product_id: String,
    /// The shop of a local product; absent for a global one.
    #[schema(minimum = 1)]
    shop_id: Option<i64>,
}

/// How many products were queued.
#[derive(Serialize, ToSchema)]
pub(super) struct RequeueAnswer {
    queued: usize,
}

#[utoipa::path(post, path = "/assignments/auto-assignment", tag = "Assignments", operation_id = "queueAutoAssignment",
    summary = "Classify again",
    description = "Queues again what is UNASSIGNED of these products.",
    request_body = RequeueBody,
    responses((status = 200, description = "How many products were queued.", body = RequeueAnswer),
        Errors<{ EDIT | PRODUCT | BODY | QUOTA }>))]
pub(super) async fn requeue(
    State(state): State<AppState>,
    caller: Caller,
    JsonBody(body): JsonBody,
) -> Result<Json<RequeueAnswer>, ApiError> {
    let body: RequeueBody = body_as(body).await?;
    let named = named_products(body.products.into_iter().map(|item| (item.product_id, item.shop_id)))?;
    let queued = state.store.requeue(&caller, &named).await?;
    state.products_changed();
    Ok(Json(RequeueAnswer { queued }))
}
