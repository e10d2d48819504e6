//! Global and local products. Both have the same operations; they differ in the path and in whose the ids are.

pub(super) mod bulk;
pub(super) mod listing;

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::openapi::schema::ObjectBuilder;
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::domain::applications::ApplicationIssue;
pub(super) use crate::domain::changes::instant;
use crate::domain::forms::{AnyVersion, ProductIdForm, VersionNumber, product_id};
use crate::domain::product::{CustomsCodes, Details, LanguageAttributes, Product};
use crate::domain::{Fault, ShopId, merge_patch};
use crate::http::body::{
    JsonBody, PRODUCT_MIB, PRODUCTS_MIB, Part, PatchBody, aside, bad, misfits_of, misfits_with_nulls, shape, shape_part,
};
use crate::http::described::errors::{BODY, EDIT, EXISTING, Errors, PRODUCT, QUOTA, STALE, WRONG};
use crate::http::described::kinds::{ApplicationList, ConflictRule, DetailName};
use crate::http::described::patch::PatchOf;
use crate::http::error::ApiError;
use crate::http::links::Links;
use crate::http::params::Params;
use crate::http::state::AppState;
use crate::store::accounts::Caller;
use crate::store::products::{NewProduct, ProductRecord};

/// Most products of one creation.
pub(super) const MAX_PRODUCTS_PER_CREATION: usize = 10_000;
/// Misfits of a request from which on only the first one of each further product is told.
const MANY_MISFITS: usize = 1_000;

/// What a client writes of a product. What it may have read besides is accepted and ignored.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ProductBody {
    /// Shops with which the product is associated, each at least 1.
    #[schema(max_items = 1000, minimum = 1)]
    shop_ids: Option<Vec<i64>>,
    /// Ignored.
    #[expect(dead_code, reason = "checked for its type only")]
    #[schema(inline, value_type = Option<AnyVersion>)]
    version: Option<u64>,
    /// Required.
    #[schema(required = true, nullable = false)]
    product_details: Option<Details>,
    /// Ignored.
    #[expect(dead_code, reason = "read-only")]
    #[schema(value_type = Option<String>, read_only)]
    product_id: Option<IgnoredAny>,
    /// Ignored.
    #[expect(dead_code, reason = "read-only")]
    #[schema(value_type = Option<Vec<String>>, read_only)]
    application_tags: Option<IgnoredAny>,
    /// Ignored.
    #[expect(dead_code, reason = "read-only")]
    #[schema(value_type = Option<Vec<ApplicationIssue>>, read_only)]
    application_issues: Option<IgnoredAny>,
    /// Ignored.
    #[expect(dead_code, reason = "read-only")]
    #[schema(value_type = Option<String>, read_only)]
    created_at: Option<IgnoredAny>,
    /// Ignored.
    #[expect(dead_code, reason = "read-only")]
    #[schema(value_type = Option<String>, read_only)]
    updated_at: Option<IgnoredAny>,
    /// Ignored.
    #[expect(dead_code, reason = "read-only")]
    #[schema(value_type = Option<ProductPicture>, read_only)]
    picture: Option<IgnoredAny>,
}

/// A merge patch of a product, as it is described.
type ProductPatch = PatchOf<ProductBody>;

/// Products to create by their ids, as they are described.
struct ProductsById;

impl PartialSchema for ProductsById {
    fn schema() -> RefOr<Schema> {
        let product = Ref::from_schema_name(ProductBody::name());
        let mut products = ObjectBuilder::new().additional_properties(Some(product)).build();
        products.property_names = Some(Box::new(product_id().into()));
        products.min_properties = Some(1);
        products.into()
    }
}

impl ToSchema for ProductsById {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((ProductBody::name().into_owned(), ProductBody::schema()));
        ProductBody::schemas(schemas);
    }
}

/// A product.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProductAnswer {
    /// Its id.
    product_id: String,
    /// Shops with which it is associated; of a local product always its shop.
    shop_ids: Vec<i64>,
    /// To be sent as `currentVersion` with the next change.
    version: i64,
    /// Applications for which it is complete.
    application_tags: Vec<String>,
    /// What it lacks for the others that were asked for.
    application_issues: Vec<ApplicationIssue>,
    /// Absent with `detail=Small`.
    #[serde(skip_serializing_if = "Option::is_none")]
    product_details: Option<Details>,
    /// When it was created, in ISO 8601.
    created_at: String,
    /// When a client last changed it, in ISO 8601.
    updated_at: String,
    /// Its picture, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    picture: Option<ProductPicture>,
}

/// The picture of a product.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProductPicture {
    /// Answers the bytes.
    url: String,
    /// image/jpeg, image/png, image/gif or image/webp.
    content_type: String,
    /// Pixels across.
    width: i32,
    /// Pixels down.
    height: i32,
    /// Bytes.
    size: i64,
}

/// How much of a product is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    Small,
    Medium,
    Large,
}

impl Detail {
    fn parse(params: &Params) -> Result<Detail, ApiError> {
        Detail::named(params.one("detail")?)
    }

    fn named(name: Option<&str>) -> Result<Detail, ApiError> {
        match name.map(str::to_ascii_lowercase).as_deref() {
            Some("small") => Ok(Detail::Small),
            Some("medium") => Ok(Detail::Medium),
            None | Some("large") => Ok(Detail::Large),
            Some(_) => Err(ApiError::malformed_at("detail", "is Small, Medium or Large")),
        }
    }
}

impl ProductAnswer {
    fn new(record: ProductRecord, detail: Detail, links: &Links) -> ProductAnswer {
        let shop = ShopId::from_stored(record.shop_id);
        let picture = record.picture.map(|facts| ProductPicture {
            url: links.picture(shop, &record.product_id),
            content_type: facts.0.content_type,
            width: facts.0.width,
            height: facts.0.height,
            size: facts.0.size,
        });
        let mut details = record.details.0;
        details.product_assignments = Some(record.assignments.iter().map(|uuid| links.assignment(*uuid)).collect());
        let shown = match detail {
            Detail::Small => None,
            Detail::Medium => Some(medium(details)),
            Detail::Large => Some(details),
        };
        ProductAnswer {
            picture,
            product_id: record.product_id,
            // A local product is associated with its shop, whether or not the client said so.
            shop_ids: shop.number().map_or(record.shop_ids, |own| vec![own]),
            version: record.version,
            application_tags: record.application_tags,
            application_issues: record.application_issues.0,
            product_details: shown,
            created_at: instant(record.created_at),
            updated_at: instant(record.updated_at),
        }
    }
}

/// Names, customs codes and assignments.
fn medium(details: Details) -> Details {
    let names = details.language_attributes.map(|languages| {
        let name =
            |texts: LanguageAttributes| LanguageAttributes { product_name: texts.product_name, ..Default::default() };
        languages.into_iter().map(|(key, texts)| (key, name(texts))).collect()
    });
    Details {
        language_attributes: names,
        customs_codes: details.customs_codes.filter(|codes| *codes != CustomsCodes::default()),
        product_assignments: details.product_assignments,
        ..Details::default()
    }
}

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
        match self.product_id.as_deref() {
            Some(id) if id.contains('\0') => Err(ApiError::malformed_at("productId", "holds the character U+0000")),
            id => Ok(id.unwrap_or_default()),
        }
    }
}

impl ProductBody {
    fn product(self) -> Result<Product, Fault> {
        match self.product_details {
            Some(product_details) => Ok(Product { shop_ids: self.shop_ids.unwrap_or_default(), product_details }),
            None => Err(Fault::at("productDetails", "MISSING", "productDetails is required")),
        }
    }
}

/// Reads a product strictly; everything about it that is malformed, or with `briefly` the first thing.
fn read_product(part: Part<'_>, briefly: bool) -> Result<Product, Vec<Fault>> {
    match shape_part(part, "").and_then(client_product) {
        Ok(product) => Ok(product),
        Err(first) => {
            let all = if briefly { Vec::new() } else { misfits_of::<ProductBody>(part) };
            Err(if all.is_empty() { vec![first] } else { all })
        }
    }
}

fn faults_of(product_id: &str, faults: Vec<Fault>) -> impl Iterator<Item = Fault> {
    faults.into_iter().map(move |fault| fault.on(product_id))
}

fn client_product(body: ProductBody) -> Result<Product, Fault> {
    let mut product = body.product()?;
    product.product_details.product_assignments = None;
    Ok(product)
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
    aside(body.length(), || {
        for (product_id, part) in entries {
            match read_product(part, faults.len() > MANY_MISFITS) {
                Ok(product) => products.push(NewProduct { product_id, product }),
                Err(misfits) => faults.extend(faults_of(&product_id, misfits)),
            }
        }
    });
    drop(body);
    if !faults.is_empty() {
        return Err(bad(faults));
    }
    if skip {
        return bulk::create_what_can_be(&state, &caller, shop, &products, &params).await;
    }
    state.store.create_products(&caller, shop, &products, &asked, update_if_exists).await?;
    state.products_changed();
    let urls: BTreeMap<&str, String> =
        products.iter().map(|new| (new.product_id.as_str(), state.links.product(shop, &new.product_id))).collect();
    Ok((StatusCode::CREATED, Json(urls)).into_response())
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
    let read = aside(body.length(), || read_product(body.whole(), false));
    let product = read.map_err(|faults| bad(faults_of(&product_id, faults).collect()))?;
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
    let patch = read_patch(body.into_value()).map_err(|faults| bad(faults_of(product_id, faults).collect()))?;
    let apply = |before: &Product| apply_patch(before, patch.clone());
    let record = state.store.patch_product(&caller, shop, product_id, current_version, &asked, apply).await?;
    state.products_changed();
    Ok(Json(ProductAnswer::new(record, Detail::Large, &state.links)))
}

/// What a patch makes of a product.
fn apply_patch(before: &Product, patch: Value) -> Result<Product, Vec<Fault>> {
    let mut document = serde_json::to_value(before).unwrap_or_default();
    merge_patch::apply(&mut document, patch);
    shape(document.clone(), "").and_then(client_product).map_err(|first| {
        let all = misfits_with_nulls::<ProductBody>(document);
        if all.is_empty() { vec![first] } else { all }
    })
}

/// Checks the shape of a patch, in which null is a value like any other wherever a field may be removed.
fn read_patch(patch: Value) -> Result<Value, Vec<Fault>> {
    let mut shown = patch.clone();
    if let Some(details) = shown.get_mut("productDetails").and_then(Value::as_object_mut) {
        // Entries of maps by name are removed by null too; serde would take null for a malformed entry.
        for map in ["languageAttributes", "productUids"] {
            if let Some(entries) = details.get_mut(map).and_then(Value::as_object_mut) {
                entries.retain(|_, entry| !entry.is_null());
            }
        }
    }
    match shown.get("productDetails") {
        Some(Value::Null) => Err(vec![Fault::at("productDetails", "MISSING", "productDetails cannot be removed")]),
        _ if !shown.is_object() => Err(vec![Fault::at("", "MALFORMED", "a patch is an object")]),
        _ => match misfits_with_nulls::<ProductBody>(shown) {
            none if none.is_empty() => Ok(patch),
            misfits => Err(misfits),
        },
    }
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
