//! The taxonomies and the VAT rates that follow from their classes.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use chrono::{NaiveDate, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::vat::{CountryVat, Sufficiency};
use crate::domain::{ClassCode, Fault, ProductClass, Taxonomy};
use crate::http::classifications::{LabelsAnswer, PathStep};
use crate::http::error::ApiError;
use crate::http::params::Params;
use crate::http::state::AppState;

/// The taxonomy that a path names.
pub(super) fn taxonomy(name: &str) -> Result<Taxonomy, ApiError> {
    Taxonomy::from_name(name).ok_or_else(|| {
        let message = format!("there is no taxonomy \"{name}\"; there are TARIC, TARES and UKGT");
        ApiError::NotFound(message.clone(), vec![Fault::at("taxonomy", "UNKNOWN_TAXONOMY", message)])
    })
}

/// The rates that follow from a class.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct VatRatesAnswer<'a> {
    /// The class, `code-NN-NNN`.
    product_class: String,
    #[serde(flatten)]
    rates: Sufficiency<'a>,
    /// What else tells goods of this code apart for VAT.
    segments: Vec<SegmentAnswer>,
}

/// A segment that a code has.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SegmentAnswer {
    /// The class with this segment, `code-NN-NNN`.
    product_class: String,
    /// The goods that it means.
    labels: LabelsAnswer,
}

/// A class of a taxonomy.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClassAnswer {
    /// Its code.
    product_class_code: String,
    /// What it is called.
    labels: LabelsAnswer,
    /// Classes from the chapter down to it.
    path: Vec<PathStep>,
    /// Whether classes lie below it.
    has_children: bool,
}

/// Classes of a taxonomy.
#[derive(Serialize, ToSchema)]
pub(super) struct ClassList {
    items: Vec<ClassAnswer>,
}

#[utoipa::path(get, path = "/vat-rates/{taxonomy}/{productClass}", tag = "Taxonomies", operation_id = "getVatRates",
    description = "The VAT rates that follow from a class, in every country of its taxonomy.",
    params(
        ("taxonomy" = String, Path, description = "TARIC, TARES or UKGT."),
        ("productClass" = String, Path, description = "code-NN-NNN, or the code alone."),
        ("date" = Option<String>, Query, description = "The day, such as 2026-11-21. Default today (UTC). A day to come is answered by the rules that are enacted already."),
        ("territories" = Option<bool>, Query, description = "Whether territories with rates or borders of their own follow the countries. Default false."),
    ),
    responses((status = 200, description = "The rates.", body = VatRatesAnswer)))]
pub(super) async fn vat_rates(
    State(state): State<AppState>,
    Path((name, class)): Path<(String, String)>,
    params: Params,
) -> Result<Response, ApiError> {
    let date = match params.one("date")? {
        None => Utc::now().date_naive(),
        Some(text) => NaiveDate::parse_from_str(text, "%Y-%m-%d")
            .map_err(|_| ApiError::malformed_at("date", "is a day such as 2026-11-21"))?,
    };
    let territories = params.boolean("territories")?.unwrap_or(false);
    let taxonomy = taxonomy(&name)?;
    let sent = class.parse().ok().or_else(|| ClassCode::new(&class).map(ProductClass::plain));
    let unknown = |message: String| {
        ApiError::NotFound(message.clone(), vec![Fault::at("productClass", "UNKNOWN_PRODUCT_CLASS", message)])
    };
    let sent: ProductClass = sent.ok_or_else(|| unknown(format!("there is no product class \"{class}\"")))?;
    let class = state.engine.class(taxonomy, sent).map_err(unknown)?;
    let reference = state.engine.reference();
    let segments = reference.vat.segments(taxonomy, class.code).into_iter().map(|named| SegmentAnswer {
        product_class: ProductClass { code: class.code, segment: named.segment }.to_string(),
        labels: LabelsAnswer { de: named.de.to_owned(), en: named.en.to_owned() },
    });
    let answer = VatRatesAnswer {
        product_class: class.to_string(),
        rates: reference.vat.sufficiency(reference.nomenclature(taxonomy), class, date, territories),
        segments: segments.collect(),
    };
    Ok(Json(answer).into_response())
}

/// The rates of an assignment's class, in every country.
pub(super) fn country_rates(state: &AppState, taxonomy: Taxonomy, class: ProductClass) -> Vec<serde_json::Value> {
    let reference = state.engine.reference();
    let today = Utc::now().date_naive();
    let rates = reference.vat.sufficiency(reference.nomenclature(taxonomy), class, today, false);
    let value = |country: &CountryVat<'_>| {
        let mut value = serde_json::to_value(country).unwrap_or_default();
        // How complete the rules are is told by `/vat-rates`, not once more with every assignment.
        value.as_object_mut().and_then(|country| country.remove("completeness"));
        value
    };
    rates.countries.iter().map(value).collect()
}

#[utoipa::path(get, path = "/product-classes/{taxonomy}", tag = "Taxonomies", operation_id = "listProductClasses",
    description = "Browses a taxonomy, or searches it by words in German and English or by the beginning of a code.",
    params(
        ("taxonomy" = String, Path, description = "TARIC, TARES or UKGT."),
        ("query" = Option<String>, Query, description = "Words, or the first digits of a code. Without it, the classes directly under `under` are listed."),
        ("under" = Option<String>, Query, description = "A code; only what lies below it. Without it, the chapters."),
        ("size" = Option<i64>, Query, minimum = 1, maximum = 1000, description = "Most classes of the answer. Default 50."),
    ),
    responses((status = 200, description = "Classes.", body = ClassList)))]
pub(super) async fn product_classes(
    State(state): State<AppState>,
    Path(name): Path<String>,
    params: Params,
) -> Result<Json<ClassList>, ApiError> {
    let size = params.size()?;
    let query = params.one("query")?.map(str::trim).filter(|query| !query.is_empty());
    let under = match params.one("under")? {
        None => None,
        Some(text) => {
            Some(ClassCode::new(text).ok_or_else(|| ApiError::malformed_at("under", "is a code of 2 to 10 digits"))?)
        }
    };
    let taxonomy = taxonomy(&name)?;
    let reference = state.engine.reference();
    let nomenclature = reference.nomenclature(taxonomy);
    let codes: Vec<ClassCode> = match (query, under) {
        (Some(query), under) if query.bytes().all(|b| b.is_ascii_digit()) => nomenclature
            .codes()
            .filter(|code| code.as_str().starts_with(query) && under.is_none_or(|under| code.is_under(&under)))
            .take(size)
            .collect(),
        (Some(query), under) => nomenclature.search(query, under, size).into_iter().map(|hit| hit.code).collect(),
        (None, Some(under)) => nomenclature.children(under).into_iter().map(|(code, _)| code).take(size).collect(),
        (None, None) => nomenclature.chapters().into_iter().map(|(code, _)| code).take(size).collect(),
    };
    let items = codes.into_iter().map(|code| {
        let path = crate::http::classifications::path(&state.engine, taxonomy, code);
        let (de, en) = path.last().map(|step| (step.labels.de.clone(), step.labels.en.clone())).unwrap_or_default();
        ClassAnswer {
            product_class_code: code.to_string(),
            labels: LabelsAnswer { de, en },
            path,
            has_children: nomenclature.has_children(code),
        }
    });
    Ok(Json(ClassList { items: items.collect() }))
}
