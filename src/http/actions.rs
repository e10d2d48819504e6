//! What people do with assignments: the six actions, and queueing again.

use std::collections::HashSet;

use axum::Json;
use axum::extract::{Path, State};
use chrono::Utc;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::domain::assignment::{Action, Status};
use crate::domain::product_class::MalformedProductClass;
use crate::domain::{Fault, ProductClass, ShopId, Taxonomy};
use crate::http::assignments::ClassFields;
use crate::http::body::{JsonBody, bad, typed};
use crate::http::error::ApiError;
use crate::http::params::Params;
use crate::http::state::AppState;
use crate::http::taxonomies::taxonomy;
use crate::store::accounts::Caller;
use crate::store::assignments::{ActionItem, ActionRequest};

/// Most products of one action, and of one request to queue again.
const MAX_PRODUCTS_PER_ACTION: usize = 1_000;

/// To which products an action applies.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ActionBody {
    /// 1 to 1,000, each once.
    #[schema(min_items = 1, max_items = 1000)]
    products: Vec<ActionProduct>,
}

/// A product of an action.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ActionProduct {
    /// The product.
    product_id: String,
    /// The shop of a local product; absent for a global one.
    #[schema(minimum = 1)]
    shop_id: Option<i64>,
    /// The version last read.
    assignment_version: ActionVersion,
}

/// Versions by platform service.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ActionVersion {
    /// The version of the assignment.
    #[schema(minimum = 0)]
    vat_rules: i64,
}

/// The products as they are after an action.
#[derive(Serialize, ToSchema)]
pub(super) struct ActionAnswer {
    /// In the order of the request.
    products: Vec<ActedProduct>,
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
    assignment_status: String,
    /// Its class: absent when UNASSIGNED, null without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    product_class_code: Option<Option<String>>,
    /// Its version now.
    assignment_version: ActionVersion,
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
    if faults.is_empty() { Ok(named) } else { Err(bad(faults)) }
}

/// The class that an ASSIGN gives, whether it is sufficient, and what is wrong with it.
#[expect(clippy::type_complexity, reason = "two optional halves of an action request, named there")]
fn given_class(
    state: &AppState,
    taxonomy: Taxonomy,
    action: Action,
    params: &Params,
) -> Result<(Option<(ProductClass, bool)>, Option<Fault>), ApiError> {
    if action != Action::Assign {
        return Ok((None, None));
    }
    let sent: ProductClass = params
        .required("productClass")?
        .parse()
        .map_err(|error: MalformedProductClass| ApiError::malformed_at("productClass", error.to_string()))?;
    match state.engine.class(taxonomy, sent) {
        Ok(class) => {
            let sufficient = state.engine.is_sufficient(taxonomy, class, Utc::now().date_naive());
            Ok((Some((class, sufficient)), None))
        }
        Err(message) => Ok((None, Some(Fault::at("productClass", "UNKNOWN_PRODUCT_CLASS", message)))),
    }
}

#[utoipa::path(patch, path = "/assignments/{taxonomy}", tag = "Assignments", operation_id = "updateAssignments",
    description = "Acts on assignments, all or none, and aborts their auto-assignment.",
    params(
        ("taxonomy" = String, Path, description = "TARIC, TARES or UKGT."),
        ("assignmentAction" = String, Query, description = "ASSIGN, APPROVE, REJECT, DENY, RECONFIRM or UNASSIGN."),
        ("productClass" = Option<String>, Query, description = "code-NN-NNN; required with ASSIGN."),
    ),
    request_body = ActionBody,
    responses((status = 200, description = "The products after it.", body = ActionAnswer)))]
pub(super) async fn act(
    State(state): State<AppState>,
    caller: Caller,
    Path(name): Path<String>,
    params: Params,
    JsonBody(body): JsonBody,
) -> Result<Json<ActionAnswer>, ApiError> {
    let action = params.required("assignmentAction")?;
    let action = Action::from_name(action).ok_or_else(|| {
        let known = Action::ALL.map(Action::name).join(", ");
        ApiError::malformed_at("assignmentAction", format!("\"{action}\" is none of {known}"))
    })?;
    let body: ActionBody = typed(body)?;
    let versions: Vec<i64> = body.products.iter().map(|item| item.assignment_version.vat_rules).collect();
    let named = named_products(body.products.into_iter().map(|item| (item.product_id, item.shop_id)))?;
    let taxonomy = taxonomy(&name)?;
    let (class, class_fault) = given_class(&state, taxonomy, action, &params)?;
    let items = named
        .into_iter()
        .zip(versions)
        .map(|((product_id, shop), version)| ActionItem { product_id, shop, version })
        .collect();
    let request = ActionRequest { taxonomy, action, class, class_fault, items };
    let after = state.store.act(&caller, &request).await?;
    let products = after.into_iter().map(|record| ActedProduct {
        product_class_code: ClassFields::new(taxonomy, record.class(), record.status != Status::Unassigned.name())
            .product_class_code,
        shop_id: (record.shop_id > 0).then_some(record.shop_id),
        assignment_uuid: record.assignment_uuid,
        assignment_version: ActionVersion { vat_rules: record.version },
        assignment_status: record.status,
        product_id: record.product_id,
    });
    Ok(Json(ActionAnswer { products: products.collect() }))
}

/// Products to queue again.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RequeueBody {
    /// 1 to 1,000, each once.
    #[schema(min_items = 1, max_items = 1000)]
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
    description = "Queues again what is UNASSIGNED of these products.",
    request_body = RequeueBody,
    responses((status = 200, description = "How many products were queued.", body = RequeueAnswer)))]
pub(super) async fn requeue(
    State(state): State<AppState>,
    caller: Caller,
    JsonBody(body): JsonBody,
) -> Result<Json<RequeueAnswer>, ApiError> {
    let body: RequeueBody = typed(body)?;
    let named = named_products(body.products.into_iter().map(|item| (item.product_id, item.shop_id)))?;
    let queued = state.store.requeue(&caller, &named).await?;
    state.products_changed();
    Ok(Json(RequeueAnswer { queued }))
}
