//! How products are written by clients and shown to them.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::openapi::schema::ObjectBuilder;
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::domain::applications::ApplicationIssue;
use crate::domain::changes::instant;
use crate::domain::forms::{AnyVersion, product_id};
use crate::domain::product::{CustomsCodes, Details, LanguageAttributes, Product};
use crate::domain::{Fault, ShopId, merge_patch};
use crate::http::body::{Part, misfits_of, misfits_with_nulls, part_as, value_as};
use crate::http::described::patch::PatchOf;
use crate::http::error::ApiError;
use crate::http::links::Links;
use crate::http::params::Params;
use crate::store::products::ProductRecord;

/// What a client writes of a product. What it may have read besides is accepted and ignored.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::http) struct ProductBody {
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
    /// Ignored, whatever it holds.
    #[expect(dead_code, reason = "read-only")]
    #[schema(value_type = Option<Value>, read_only)]
    product_id: Option<IgnoredAny>,
    /// Ignored, whatever it holds.
    #[expect(dead_code, reason = "read-only")]
    #[schema(value_type = Option<Value>, read_only)]
    application_tags: Option<IgnoredAny>,
    /// Ignored, whatever it holds.
    #[expect(dead_code, reason = "read-only")]
    #[schema(value_type = Option<Value>, read_only)]
    application_issues: Option<IgnoredAny>,
    /// Ignored, whatever it holds.
    #[expect(dead_code, reason = "read-only")]
    #[schema(value_type = Option<Value>, read_only)]
    created_at: Option<IgnoredAny>,
    /// Ignored, whatever it holds.
    #[expect(dead_code, reason = "read-only")]
    #[schema(value_type = Option<Value>, read_only)]
    updated_at: Option<IgnoredAny>,
    /// Ignored, whatever it holds.
    #[expect(dead_code, reason = "read-only")]
    #[schema(value_type = Option<Value>, read_only)]
    picture: Option<IgnoredAny>,
}

/// A merge patch of a product, as it is described.
pub(super) type ProductPatch = PatchOf<ProductBody>;

/// Products to create by their ids, as they are described.
pub(super) struct ProductsById;

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
pub(in crate::http) struct ProductAnswer {
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
pub(in crate::http) struct ProductPicture {
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
pub(super) enum Detail {
    Small,
    Medium,
    Large,
}

impl Detail {
    pub(super) fn parse(params: &Params) -> Result<Detail, ApiError> {
        Detail::named(params.one("detail")?)
    }

    pub(super) fn named(name: Option<&str>) -> Result<Detail, ApiError> {
        match name.map(str::to_ascii_lowercase).as_deref() {
            Some("small") => Ok(Detail::Small),
            Some("medium") => Ok(Detail::Medium),
            None | Some("large") => Ok(Detail::Large),
            Some(_) => Err(ApiError::malformed_at("detail", "is Small, Medium or Large")),
        }
    }
}

impl ProductAnswer {
    pub(super) fn new(record: ProductRecord, detail: Detail, links: &Links) -> ProductAnswer {
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

impl ProductBody {
    fn product(self) -> Result<Product, Fault> {
        match self.product_details {
            Some(product_details) => Ok(Product { shop_ids: self.shop_ids.unwrap_or_default(), product_details }),
            None => Err(Fault::at("productDetails", "MISSING", "productDetails is required")),
        }
    }
}

/// Reads a product strictly; everything about it that is malformed, or with `briefly` the first thing.
pub(super) fn read_product(part: Part<'_>, briefly: bool) -> Result<Product, Vec<Fault>> {
    match part_as(part, "").and_then(client_product) {
        Ok(product) => Ok(product),
        Err(first) => {
            let all = if briefly { Vec::new() } else { misfits_of::<ProductBody>(part) };
            Err(if all.is_empty() { vec![first] } else { all })
        }
    }
}

pub(super) fn faults_of(product_id: &str, faults: Vec<Fault>) -> impl Iterator<Item = Fault> {
    faults.into_iter().map(move |fault| fault.on(product_id))
}

fn client_product(body: ProductBody) -> Result<Product, Fault> {
    let mut product = body.product()?;
    product.product_details.product_assignments = None;
    Ok(product)
}

/// What a patch makes of a product.
pub(super) fn apply_patch(before: &Product, patch: Value) -> Result<Product, Vec<Fault>> {
    let unwritable = |error| vec![Fault::at("", "MALFORMED", format!("what is stored cannot be patched: {error}"))];
    let mut document = serde_json::to_value(before).map_err(unwritable)?;
    merge_patch::apply(&mut document, patch);
    value_as(document.clone(), "").and_then(client_product).map_err(|first| {
        let all = misfits_with_nulls::<ProductBody>(document);
        if all.is_empty() { vec![first] } else { all }
    })
}

/// Checks the shape of a patch, in which null is a value like any other wherever a field may be removed.
pub(super) fn read_patch(patch: Value) -> Result<Value, Vec<Fault>> {
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
