//! The answer: which rates the goods of a class have, where the law says so, and what is not known.

use chrono::NaiveDate;
use serde::Serialize;
use utoipa::ToSchema;

use super::{Percent, RateType};
use crate::domain::ProductClass;

/// Whether a class decides the VAT rate, and of every country what it is.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sufficiency<'a> {
    /// Whether every country has one and the same rate for all goods of the class. Territories do not count.
    pub sufficient: bool,
    /// The day on which any of the rules was last compared with the law.
    pub rule_set_date: NaiveDate,
    /// The next day, after the day asked about, on which the rates of the class change somewhere by rules that are
    /// enacted already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_change: Option<NaiveDate>,
    /// The countries of the taxonomy, in the order of their codes; then the territories, where they were asked for.
    pub countries: Vec<CountryVat<'a>>,
}

/// What a country takes on the goods of a class.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CountryVat<'a> {
    /// ISO 3166-1 alpha-2; of a territory its ISO 3166 code, or country and name.
    pub country: &'a str,
    /// The name of a territory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<&'a str>,
    /// Whether all goods of the class have one and the same rate here.
    pub sufficient: bool,
    /// Per cent; null when the class does not decide it.
    #[schema(value_type = Option<f64>)]
    pub rate: Option<Percent>,
    /// The type of that rate; absent when the class does not decide it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_type: Option<RateType>,
    /// Every rate that goods of the class may have; where they differ, these are the rules that disagree.
    pub rates: Vec<AppliedRate<'a>>,
    /// Why no rate is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The next day on which the rates change by rules that are enacted already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_change: Option<NaiveDate>,
    /// How complete the rules of the country are. `/vat-rates` tells it; an assignment does not repeat it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub completeness: Option<&'a str>,
}

/// A rate that goods of a class have.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedRate<'a> {
    /// Per cent; null where some goods have a rate that the rules do not know.
    #[schema(value_type = Option<f64>)]
    pub rate: Option<Percent>,
    /// The type of the rate; absent where it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_type: Option<RateType>,
    /// What kind of goods the rule is about, such as `FOOD`; `STANDARD` where no rule names the goods, `UNKNOWN` where
    /// the rate is not known.
    pub category: &'a str,
    /// The goods, in words.
    pub goods: &'a str,
    /// The class that the rule names, with the side of it that it is about.
    #[schema(value_type = String)]
    #[serde(serialize_with = "as_text")]
    pub product_class: ProductClass,
    /// Where the law says so.
    pub source: &'a str,
    /// What the class or the product must tell for this rate to be settled, such as `age`; only where it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<&'a str>,
    /// First day of the rule or of its rate, whichever is later.
    pub valid_from: NaiveDate,
    /// Last day, where one is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_to: Option<NaiveDate>,
}

fn as_text<S: serde::Serializer>(class: &ProductClass, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(class)
}
