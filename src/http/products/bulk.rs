//! Many products at once: searching by a body, changing, deleting, each with its own fate.

use std::collections::HashSet;

use axum::Json;
use axum::extract::{OriginalUri, Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::domain::filter::Criteria;
use crate::domain::product::Product;
use crate::domain::{Fault, ShopId};
use crate::http::admission::Tab;
use crate::http::body::{JsonBody, PRODUCTS_MIB, aside, body_as, malformed, value_with_nulls_as};
use crate::http::described::errors::{BODY, EDIT, Errors, PRODUCT, QUOTA, SEARCH, STALE, WRONG};
use crate::http::described::filter::FilterObject;
use crate::http::described::kinds::{ConflictRule, DetailName};
use crate::http::error::ApiError;
use crate::http::links::Links;
use crate::http::params::{MAX_LIST_VALUES, MAX_PAGE_SIZE, Params};
use crate::http::products::listing::{self, Listing};
use crate::http::products::{Detail, PathParts, ProductAnswer, ProductPatch, apply_patch, read_patch, show_one};
use crate::http::state::AppState;
use crate::store::accounts::Caller;
use crate::store::products::{Deletion, Fate, NewProduct, Update};

/// Most products of one request to change or delete.
const MAX_PRODUCTS_AT_ONCE: usize = 1_000;
/// Most MiB of a search: 10,000 ids of 65 characters, each escaped.
const SEARCH_MIB: usize = 8;

/// What products are asked for.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::http) struct ProductSearchBody {
    /// Products to select; unknown ids select nothing.
    #[schema(max_items = 10000)]
    product_ids: Option<Vec<String>>,
    /// Filter objects as `filterCriteria` of the list has them, as JSON and not as a string.
    #[schema(max_items = 32, value_type = Option<Vec<FilterObject>>)]
    filter_criteria: Option<Value>,
    /// Products associated with any of these shops.
    #[schema(max_items = 1000, minimum = 1)]
    shop_ids: Option<Vec<i64>>,
    /// Small, Medium or Large, which is the default.
    #[schema(inline, value_type = Option<DetailName>)]
    detail: Option<String>,
    /// Items of a page, 1 to 1,000. Default 50.
    #[schema(minimum = 1, maximum = 1000)]
    size: Option<i64>,
    /// The `cursor` of a link of this service. A cursor in the URL takes its place.
    cursor: Option<String>,
    /// Whether `total` tells how many products there are on all pages. Default false.
    count: Option<bool>,
}

/// Changes of products.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::http) struct UpdatesBody {
    /// 1 to 1,000, of each product once.
    #[schema(min_items = 1, max_items = 1000)]
    updates: Vec<UpdateBody>,
    /// FAIL (the default): none is changed when one cannot be. SKIP: all that can be are.
    #[schema(inline, value_type = Option<ConflictRule>)]
    on_conflict: Option<String>,
}

/// A change of a product.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::http) struct UpdateBody {
    /// The product.
    product_id: String,
    /// The version last read.
    #[schema(minimum = 0)]
    current_version: i64,
    /// A JSON merge patch, as PATCH of a product takes it.
    #[schema(value_type = ProductPatch)]
    patch: Value,
}

/// Products to delete.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::http) struct DeletionsBody {
    /// 1 to 1,000, each once.
    #[schema(min_items = 1, max_items = 1000, value_type = std::collections::BTreeSet<DeletionBody>)]
    products: Vec<DeletionBody>,
    /// FAIL (the default): none is deleted when one cannot be. SKIP: all that can be are.
    #[schema(inline, value_type = Option<ConflictRule>)]
    on_conflict: Option<String>,
}

/// A product to delete.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::http) struct DeletionBody {
    /// The product.
    product_id: String,
    /// The version last read.
    #[schema(minimum = 0)]
    current_version: i64,
}

/// What became of each product.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct BulkAnswer {
    /// In the order of the request; of a creation in the order of ids.
    results: Vec<BulkResult>,
}

/// What became of a product.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct BulkResult {
    /// The product.
    product_id: String,
    /// 200 changed, 201 created, 204 deleted; 404, 409 or 422 where it was left.
    status: u16,
    /// Its version now.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<i64>,
    /// Of a created or changed product, its URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// Why it was left.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Fault>,
    /// Further reasons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<Fault>,
}

impl BulkAnswer {
    /// The fates of products, in their order.
    pub(super) fn new<'a>(
        ids: impl Iterator<Item = &'a str>,
        fates: Vec<Fate>,
        shop: ShopId,
        links: &Links,
    ) -> BulkAnswer {
        let result = |(id, fate): (&str, Fate)| {
            let (status, version, mut faults) = match fate {
                Fate::Created => (201, Some(1), Vec::new()),
                Fate::Changed(version) => (200, Some(version), Vec::new()),
                Fate::Deleted => (204, None, Vec::new()),
                Fate::Unknown(faults) => (404, None, faults),
                Fate::Stale(faults) => (409, None, faults),
                Fate::Broken(faults) => (422, None, faults),
            };
            let errors = faults.split_off(faults.len().min(1));
            let url = version.map(|_| links.product(shop, id));
            BulkResult { product_id: id.to_owned(), status, version, url, error: faults.pop(), errors }
        };
        BulkAnswer { results: ids.zip(fates).map(result).collect() }
    }
}

/// Whether products that cannot be done are left, by the value of `onConflict`.
pub(in crate::http) fn skips(on_conflict: Option<&str>) -> Result<bool, ApiError> {
    match on_conflict.map(str::to_ascii_uppercase).as_deref() {
        None | Some("FAIL") => Ok(false),
        Some("SKIP") => Ok(true),
        Some(_) => Err(ApiError::malformed_at("onConflict", "is FAIL or SKIP")),
    }
}

/// Creates or replaces what can be.
pub(super) async fn create_what_can_be(
    state: &AppState,
    caller: &Caller,
    shop: ShopId,
    products: &[NewProduct],
    params: &Params,
) -> Result<Response, ApiError> {
    let asked = params.applications()?;
    let update_if_exists = params.boolean("updateIfExists")?.unwrap_or(false);
    let fates = state.store.create_what_can_be(caller, shop, products, &asked, update_if_exists).await?;
    state.products_changed();
    let any = fates.iter().any(|fate| matches!(fate, Fate::Created | Fate::Changed(_)));
    let status = if any { StatusCode::CREATED } else { StatusCode::OK };
    let ids = products.iter().map(|new| new.product_id.as_str());
    Ok((status, Json(BulkAnswer::new(ids, fates, shop, &state.links))).into_response())
}

#[utoipa::path(post, path = "/products/global/search", tag = "Products", operation_id = "searchGlobalProducts",
    summary = "Search products",
    description = "Lists products as GET does, by a body: for many ids, or long filters. Follow links.next by sending the same body to it.",
    params(("cursor" = Option<String>, Query, description = "From a link of this service.")),
    request_body = ProductSearchBody,
    responses((status = 200, description = "A page of products.", body = listing::PageOfProducts),
        Errors<{ SEARCH | BODY }>))]
pub(in crate::http) async fn search(
    State(state): State<AppState>,
    caller: Caller,
    tab: Tab,
    Path(path): Path<PathParts>,
    params: Params,
    RawQuery(query): RawQuery,
    JsonBody(body): JsonBody<SEARCH_MIB>,
) -> Result<Response, ApiError> {
    let shop = path.shop()?;
    let body: ProductSearchBody = body_as(body).await?;
    let ids = body.product_ids.as_ref().map_or(0, Vec::len);
    if ids > MAX_LIST_VALUES {
        return Err(ApiError::malformed_at("productIds", format!("has at most {MAX_LIST_VALUES} values")));
    }
    if body.shop_ids.iter().flatten().any(|shop| *shop < 1) {
        return Err(ApiError::malformed_at("shopIds", "are whole numbers of at least 1"));
    }
    let size = match body.size {
        None => None,
        Some(size) => {
            Some(usize::try_from(size).ok().filter(|size| (1..=MAX_PAGE_SIZE).contains(size)).ok_or_else(|| {
                ApiError::malformed_at("size", format!("is a whole number from 1 to {MAX_PAGE_SIZE}"))
            })?)
        }
    };
    let criteria = match &body.filter_criteria {
        None => None,
        Some(criteria) => Some(Criteria::parse(&criteria.to_string()).map_err(malformed)?),
    };
    let in_url = params.one("cursor")?.map(str::to_owned);
    let listing = Listing {
        product_ids: body.product_ids,
        criteria,
        shop_ids: body.shop_ids,
        detail: Detail::named(body.detail.as_deref())?,
        size,
        cursor: in_url.or(body.cursor),
        count: body.count.unwrap_or(false),
    };
    listing::show(&state, &caller, &tab, shop, listing, "/search", query.as_deref().unwrap_or_default()).await
}

#[utoipa::path(post, path = "/products/global/updates", tag = "Products", operation_id = "updateGlobalProducts",
    summary = "Change many products",
    description = "Changes up to 1,000 products by merge patches: all or none, or with `onConflict` SKIP all that can be changed.",
    request_body = UpdatesBody,
    responses((status = 200, description = "What became of each.", body = BulkAnswer),
        Errors<{ EDIT | PRODUCT | STALE | WRONG | BODY | QUOTA }>))]
pub(in crate::http) async fn update(
    State(state): State<AppState>,
    caller: Caller,
    Path(path): Path<PathParts>,
    JsonBody(body): JsonBody<PRODUCTS_MIB>,
) -> Result<Json<BulkAnswer>, ApiError> {
    let shop = path.shop()?;
    let shaped = aside(body.length(), move || value_with_nulls_as::<UpdatesBody>(body.value(), "")).await?;
    let body = shaped.map_err(|fault| malformed(vec![fault]))?;
    let skip = skips(body.on_conflict.as_deref())?;
    let named = body.updates.iter().map(|update| (update.product_id.as_str(), update.current_version));
    let mut faults = named_once("updates", named)?;
    let mut updates = Vec::with_capacity(body.updates.len());
    for (at, UpdateBody { product_id, current_version, patch }) in body.updates.into_iter().enumerate() {
        match read_patch(patch) {
            Ok(patch) => updates.push(Update { product_id, current_version, patch }),
            Err(broken) => faults.extend(broken.into_iter().map(|mut fault| {
                let field = fault.field.take().filter(|field| !field.is_empty());
                let place = format!("updates[{at}].patch");
                fault.field = Some(field.map_or(place.clone(), |field| format!("{place}.{field}")));
                fault.on(&product_id)
            })),
        }
    }
    if !faults.is_empty() {
        return Err(malformed(faults));
    }
    let apply = |before: &Product, patch: &Value| apply_patch(before, patch.clone());
    let fates = state.store.update_products(&caller, shop, &updates, skip, apply).await?;
    state.products_changed();
    let ids = updates.iter().map(|update| update.product_id.as_str());
    Ok(Json(BulkAnswer::new(ids, fates, shop, &state.links)))
}

#[utoipa::path(post, path = "/products/global/deletions", tag = "Products", operation_id = "deleteGlobalProducts",
    summary = "Delete many products",
    description = "Deletes up to 1,000 products with their assignments and pictures: all or none, or with `onConflict` SKIP all that can be deleted.",
    request_body = DeletionsBody,
    responses((status = 200, description = "What became of each.", body = BulkAnswer),
        Errors<{ EDIT | PRODUCT | STALE | BODY }>))]
pub(in crate::http) async fn delete(
    State(state): State<AppState>,
    caller: Caller,
    Path(path): Path<PathParts>,
    JsonBody(body): JsonBody,
) -> Result<Json<BulkAnswer>, ApiError> {
    let shop = path.shop()?;
    let body: DeletionsBody = body_as(body).await?;
    let skip = skips(body.on_conflict.as_deref())?;
    let named = body.products.iter().map(|product| (product.product_id.as_str(), product.current_version));
    let faults = named_once("products", named)?;
    if !faults.is_empty() {
        return Err(malformed(faults));
    }
    let deletions: Vec<Deletion> = body
        .products
        .into_iter()
        .map(|DeletionBody { product_id, current_version }| Deletion { product_id, current_version })
        .collect();
    let fates = state.store.delete_products(&caller, shop, &deletions, skip).await?;
    state.products_changed();
    let ids = deletions.iter().map(|deletion| deletion.product_id.as_str());
    Ok(Json(BulkAnswer::new(ids, fates, shop, &state.links)))
}

/// What is wrong with how a request names its products: twice, or with a version that no product has.
fn named_once<'a>(list: &str, products: impl Iterator<Item = (&'a str, i64)>) -> Result<Vec<Fault>, ApiError> {
    let mut seen = HashSet::new();
    let mut faults = Vec::new();
    for (at, (product_id, version)) in products.enumerate() {
        if !seen.insert(product_id) {
            let message = "the product is named twice";
            faults.push(Fault::at(format!("{list}[{at}].productId"), "DUPLICATE", message).on(product_id));
        }
        if version < 0 {
            let message = "currentVersion is at least 0";
            faults.push(Fault::at(format!("{list}[{at}].currentVersion"), "MALFORMED", message).on(product_id));
        }
    }
    match seen.len() {
        0 => Err(ApiError::malformed_at(list, "names no product")),
        named if named > MAX_PRODUCTS_AT_ONCE => {
            Err(ApiError::malformed_at(list, format!("has at most {MAX_PRODUCTS_AT_ONCE} products")))
        }
        _ => Ok(faults),
    }
}

/// The product whose id is the name of one of these operations.
pub(in crate::http) async fn read_namesake(
    State(state): State<AppState>,
    caller: Caller,
    Path(path): Path<PathParts>,
    OriginalUri(uri): OriginalUri,
    params: Params,
) -> Result<Json<ProductAnswer>, ApiError> {
    let name = uri.path().rsplit('/').next().unwrap_or_default();
    show_one(&state, &caller, path.shop()?, name, &params).await
}
