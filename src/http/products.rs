//! Global and local products. Both have the same operations; they differ in the path and in whose the ids are.

pub(super) mod bulk;
pub(super) mod listing;
mod shapes;

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::domain::ShopId;
pub(super) use crate::domain::changes::instant;
use crate::domain::forms::{ProductIdForm, VersionNumber};
use crate::domain::product::Product;
use crate::http::body::{Document, JsonBody, PRODUCT_MIB, PRODUCTS_MIB, PatchBody, aside, malformed};
use crate::http::described::errors::{BODY, EDIT, EXISTING, Errors, PRODUCT, QUOTA, STALE, WRONG};
use crate::http::described::kinds::{ApplicationList, ConflictRule, DetailName};
use crate::http::error::ApiError;
use crate::http::params::{Params, require_no_nul};
use crate::http::state::AppState;
use crate::store::accounts::Caller;
use crate::store::products::NewProduct;
use shapes::{
    Detail, ProductAnswer, ProductBody, ProductPatch, ProductsById, apply_patch, faults_of, read_patch, read_product,
};

/// Most products of one creation.
pub(super) const MAX_PRODUCTS_PER_CREATION: usize = 10_000;
/// Misfits of a request from which on only the first one of each further product is told.
const MANY_MISFITS: usize = 1_000;

/// URLs of products by productId, or with `onConflict=SKIP` what became of each.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes an answer in the OpenAPI document")]
pub(super) enum CreationAnswer {
    /// URLs by productId.
    Urls(BTreeMap<String, String>),
    /// What became of each.
    Fates(bulk::BulkAnswer),
}

/// What a path may name.
#[derive(Deserialize)]
pub(super) struct PathParts {
    #[serde(rename = "shopId")]
    shop_id: Option<String>,
    #[serde(rename = "productId")]
    product_id: Option<String>,
}

impl PathParts {
    /// The shop; global paths name none.
    pub(super) fn shop(&self) -> Result<ShopId, ApiError> {
        let Some(text) = &self.shop_id else { return Ok(ShopId::GLOBAL) };
        let digits = text.bytes().all(|b| b.is_ascii_digit());
        let shop = text.parse().ok().filter(|_| digits).and_then(ShopId::local);
        shop.ok_or_else(|| ApiError::malformed_at("shopId", "is a whole number of at least 1"))
    }

    fn product_id(&self) -> Result<&str, ApiError> {
        let id = self.product_id.as_deref().unwrap_or_default();
        require_no_nul("productId", id)?;
        Ok(id)
    }
}

#[utoipa::path(post, path = "/products/global", tag = "Products", operation_id = "createGlobalProducts",
    summary = "Create products",
    description = "Creates products: at most 10,000 and 32 MiB, all or none, or with `onConflict=SKIP` all that can be. Auto-assignment starts by itself.",
    params(
        ("updateIfExists" = Option<bool>, Query, description = "Replace products that exist, as PUT does; else they are an error. Default false."),
        ("applications" = inline(Option<ApplicationList>), Query, description = "Applications to validate for, comma-separated or repeated: VAT_RULES, CUSTOMS, MARKETPLACE."),
        ("onConflict" = inline(Option<ConflictRule>), Query, description = "FAIL (the default): nothing is stored when one product cannot be. SKIP: all that can be are, and the answer has `results` as POST …/updates does; 200 when there was none."),
    ),
    request_body(content = inline(ProductsById), description = "Products by productId."),
    responses(
        (status = 200, description = "With SKIP: what became of each product, of which none was stored.", body = bulk::BulkAnswer),
        (status = 201, description = "URLs of the products by productId; with SKIP `results`.", body = CreationAnswer),
        Errors<{ EDIT | EXISTING | WRONG | BODY | QUOTA }>))]
pub(super) async fn create(
    State(state): State<AppState>,
    caller: Caller,
    Path(path): Path<PathParts>,
    params: Params,
    JsonBody(body): JsonBody<PRODUCTS_MIB>,
) -> Result<Response, ApiError> {
    let shop = path.shop()?;
    let update_if_exists = params.boolean("updateIfExists")?.unwrap_or(false);
    let skip = bulk::skips(params.one("onConflict")?)?;
    let asked = params.applications()?;
    let products = aside(body.length(), move || products_of(&body)).await??;
    if skip {
        return bulk::create_what_can_be(&state, &caller, shop, &products, &params).await;
    }
    state.store.create_products(&caller, shop, &products, &asked, update_if_exists).await?;
    state.products_changed();
    let urls: BTreeMap<&str, String> =
        products.iter().map(|new| (new.product_id.as_str(), state.links.product(shop, &new.product_id))).collect();
    Ok((StatusCode::CREATED, Json(urls)).into_response())
}

/// The products of a creation, in the order of their ids.
fn products_of(body: &Document) -> Result<Vec<NewProduct>, ApiError> {
    let Some(mut entries) = body.entries() else {
        return Err(ApiError::malformed("the body is an object of products by productId"));
    };
    entries.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    if entries.is_empty() {
        return Err(ApiError::malformed("the body names no product"));
    }
    if entries.len() > MAX_PRODUCTS_PER_CREATION {
        let message = format!("at most {MAX_PRODUCTS_PER_CREATION} products at once, these are {}", entries.len());
        return Err(ApiError::PayloadTooLarge(message));
    }
    let mut products = Vec::with_capacity(entries.len());
    let mut faults = Vec::new();
    for (product_id, part) in entries {
        match read_product(part, faults.len() > MANY_MISFITS) {
            Ok(product) => products.push(NewProduct { product_id, product }),
            Err(misfits) => faults.extend(faults_of(&product_id, misfits)),
        }
    }
    if faults.is_empty() { Ok(products) } else { Err(malformed(faults)) }
}

#[utoipa::path(get, path = "/products/global/{productId}", tag = "Products", operation_id = "getGlobalProduct",
    summary = "Read a product",
    description = "One product.",
    params(
        ("productId" = inline(ProductIdForm), Path, description = "The product, percent-encoded."),
        ("detail" = inline(Option<DetailName>), Query, description = "Small, Medium or Large, which is the default."),
    ),
    responses((status = 200, description = "The product.", body = ProductAnswer),
        Errors<{ PRODUCT }>))]
pub(super) async fn read(
    State(state): State<AppState>,
    caller: Caller,
    Path(path): Path<PathParts>,
    params: Params,
) -> Result<Json<ProductAnswer>, ApiError> {
    show_one(&state, &caller, path.shop()?, path.product_id()?, &params).await
}

/// Answers one product.
async fn show_one(
    state: &AppState,
    caller: &Caller,
    shop: ShopId,
    product_id: &str,
    params: &Params,
) -> Result<Json<ProductAnswer>, ApiError> {
    let detail = Detail::parse(params)?;
    let record = state.store.product(caller.account, shop, product_id).await?;
    Ok(Json(ProductAnswer::new(record, detail, &state.links)))
}

#[utoipa::path(put, path = "/products/global", tag = "Products", operation_id = "replaceGlobalProduct",
    summary = "Replace or create a product",
    description = "Replaces a product entirely; creates it when it does not exist and currentVersion is 0.",
    params(
        ("productId" = inline(ProductIdForm), Query, description = "The product, at most 65 characters."),
        ("currentVersion" = inline(VersionNumber), Query, description = "The version last read; 0 for a product that does not exist yet."),
        ("preserveFiles" = Option<bool>, Query, description = "Keep the picture. Default true."),
        ("applications" = inline(Option<ApplicationList>), Query, description = "Applications to validate for."),
    ),
    request_body = ProductBody,
    responses(
        (status = 200, description = "The product, replaced.", body = ProductAnswer),
        (status = 201, description = "The product, created.", body = ProductAnswer),
        Errors<{ EDIT | PRODUCT | STALE | WRONG | BODY | QUOTA }>))]
pub(super) async fn replace(
    State(state): State<AppState>,
    caller: Caller,
    Path(path): Path<PathParts>,
    params: Params,
    JsonBody(body): JsonBody<PRODUCT_MIB>,
) -> Result<Response, ApiError> {
    let shop = path.shop()?;
    let product_id = params.product_id()?.to_owned();
    let current_version = params.current_version()?;
    let preserve_files = params.boolean("preserveFiles")?.unwrap_or(true);
    let asked = params.applications()?;
    let read = aside(body.length(), move || read_product(body.whole(), false));
    let product = read.await?.map_err(|faults| malformed(faults_of(&product_id, faults).collect()))?;
    let new = NewProduct { product_id, product };
    let replaced = state.store.replace_product(&caller, shop, &new, current_version, &asked, preserve_files).await?;
    state.products_changed();
    let status = if replaced.created { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(ProductAnswer::new(replaced.record, Detail::Large, &state.links))).into_response())
}

#[utoipa::path(patch, path = "/products/global", tag = "Products", operation_id = "updateGlobalProduct",
    summary = "Change a product",
    description = "Changes a product by a JSON merge patch: absent keeps, null removes, objects merge, arrays are replaced.",
    params(
        ("productId" = inline(ProductIdForm), Query, description = "The product."),
        ("currentVersion" = inline(VersionNumber), Query, description = "The version last read."),
        ("applications" = inline(Option<ApplicationList>), Query, description = "Further applications to validate for."),
    ),
    request_body(content(
        (ProductPatch = "application/json"),
        (ProductPatch = "application/merge-patch+json"))),
    responses((status = 200, description = "The product, changed.", body = ProductAnswer),
        Errors<{ EDIT | PRODUCT | STALE | WRONG | BODY | QUOTA }>))]
pub(super) async fn patch(
    State(state): State<AppState>,
    caller: Caller,
    Path(path): Path<PathParts>,
    params: Params,
    PatchBody(body): PatchBody,
) -> Result<Json<ProductAnswer>, ApiError> {
    let shop = path.shop()?;
    let product_id = params.product_id()?;
    let current_version = params.current_version()?;
    let asked = params.applications()?;
    let read = aside(body.length(), move || read_patch(body.value()));
    let patch = read.await?.map_err(|faults| malformed(faults_of(product_id, faults).collect()))?;
    let apply = |before: &Product| apply_patch(before, patch.clone());
    let record = state.store.patch_product(&caller, shop, product_id, current_version, &asked, apply).await?;
    state.products_changed();
    Ok(Json(ProductAnswer::new(record, Detail::Large, &state.links)))
}

#[utoipa::path(delete, path = "/products/global", tag = "Products", operation_id = "deleteGlobalProduct",
    summary = "Delete a product",
    description = "Deletes a product, its assignments and its picture.",
    params(
        ("productId" = inline(ProductIdForm), Query, description = "The product."),
        ("currentVersion" = inline(VersionNumber), Query, description = "The version last read."),
    ),
    responses((status = 204, description = "Deleted."),
        Errors<{ EDIT | PRODUCT | STALE }>))]
pub(super) async fn delete(
    State(state): State<AppState>,
    caller: Caller,
    Path(path): Path<PathParts>,
    params: Params,
) -> Result<StatusCode, ApiError> {
    let shop = path.shop()?;
    let current_version = params.current_version()?;
    state.store.delete_product(&caller, shop, params.product_id()?, current_version).await?;
    state.products_changed();
    Ok(StatusCode::NO_CONTENT)
}
