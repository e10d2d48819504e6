//! The VAT rates that follow from the classes of taxonomies.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use chrono::Utc;
use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::forms::TaxonomyName;
use crate::domain::vat::{CountryVat, Sufficiency};
use crate::domain::{ClassCode, Fault, ProductClass, Taxonomy, dates};
use crate::http::candidates::LabelsAnswer;
use crate::http::described::errors::{CLASS, Errors, TAXONOMY};
use crate::http::described::kinds::{ClassOrCode, Day};
use crate::http::error::ApiError;
use crate::http::params::Params;
use crate::http::state::AppState;
use crate::reference::Reference;

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

#[utoipa::path(get, path = "/vat-rates/{taxonomy}/{productClass}", tag = "Taxonomies", operation_id = "getVatRates",
    summary = "Read the VAT rates of a class",
    description = "The VAT rates that follow from a class, in every country of its taxonomy.",
    params(
        ("taxonomy" = inline(TaxonomyName), Path, description = "TARIC, TARES or UKGT."),
        ("productClass" = inline(ClassOrCode), Path, description = "code-NN-NNN, or the code alone."),
        ("date" = inline(Option<Day>), Query, description = "The day, such as 2026-11-21. Default today (UTC). A day to come is answered by the rules that are enacted already."),
        ("territories" = Option<bool>, Query, description = "Whether territories with rates or borders of their own follow the countries. Default false."),
    ),
    responses((status = 200, description = "The rates.", body = VatRatesAnswer),
        Errors<{ TAXONOMY | CLASS }>))]
pub(super) async fn vat_rates(
    State(state): State<AppState>,
    Path((name, class)): Path<(String, String)>,
    params: Params,
) -> Result<Response, ApiError> {
    let date = match params.one("date")? {
        None => Utc::now().date_naive(),
        Some(text) => dates::day(text).ok_or_else(|| ApiError::malformed_at("date", "is a day such as 2026-11-21"))?,
    };
    let territories = params.boolean("territories")?.unwrap_or(false);
    let taxonomy = taxonomy(&name)?;
    let sent = class.parse().ok().or_else(|| ClassCode::new(&class).map(ProductClass::plain));
    let unknown = |message: String| {
        ApiError::NotFound(message.clone(), vec![Fault::at("productClass", "UNKNOWN_PRODUCT_CLASS", message)])
    };
    let sent: ProductClass = sent.ok_or_else(|| unknown(format!("there is no product class \"{class}\"")))?;
    let reference = state.engine.reference();
    let nomenclature = reference.nomenclature(taxonomy);
    let class = match state.engine.class(taxonomy, sent) {
        // The day asked about counts, not today: a line may have ended since, or begin later.
        Err(_)
            if nomenclature.is_listed_on(sent.code, date)
                && reference.vat.defines_segment(taxonomy, sent.code, sent.segment) =>
        {
            sent
        }
        class => class.map_err(unknown)?,
    };
    let answer = VatRatesAnswer {
        product_class: class.to_string(),
        rates: reference.vat.sufficiency(nomenclature, class, date, territories),
        segments: segments(&reference, taxonomy, class.code),
    };
    Ok(Json(answer).into_response())
}

/// The segments that a code has besides the plain one.
pub(super) fn segments(reference: &Reference, taxonomy: Taxonomy, code: ClassCode) -> Vec<SegmentAnswer> {
    let named = reference.vat.segments(taxonomy, code).into_iter().map(|named| SegmentAnswer {
        product_class: ProductClass { code, segment: named.segment }.to_string(),
        labels: LabelsAnswer { de: named.de.to_owned(), en: named.en.to_owned() },
    });
    named.collect()
}

/// The rates of an assignment's class, in every country.
pub(super) fn country_rates(state: &AppState, taxonomy: Taxonomy, class: ProductClass) -> Vec<serde_json::Value> {
    let reference = state.engine.reference();
    let today = Utc::now().date_naive();
    let rates = reference.vat.sufficiency(reference.nomenclature(taxonomy), class, today, false);
    // The answer is written before the rules, which it borrows from, are let go.
    let value = |country| serde_json::to_value(CountryVat { completeness: None, ..country }).unwrap_or_default();
    rates.countries.into_iter().map(value).collect()
}
