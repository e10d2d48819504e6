//! The document of a product, as clients send it and as it is stored.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};
use utoipa::ToSchema;

use crate::domain::Taxonomy;
use crate::domain::forms::{
    Amount, AttributeName, AttributeValue, Conditions, CountryCode, CustomsCodeForm, DescriptionText, LanguageKey,
    ManufacturerText, NameText, ReferenceText, ReviewWeight, Tags, TaxonomyName, Uids, UnitName,
};

/// Values for declared merchant attributes, by field name.
pub type AttributeValues = Map<String, Value>;

/// What a client writes of a product.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Product {
    /// Shops with which the product is associated.
    pub shop_ids: Vec<i64>,
    /// Everything else.
    pub product_details: Details,
}

/// The details of a product.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = ProductDetails)]
pub struct Details {
    /// Texts by language code of ISO 639 (any part), in lower case. Auto-assignment reads `de`, `deu`, `ger`, `en`, `eng`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<BTreeMap<LanguageKey, LanguageAttributes>>)]
    pub language_attributes: Option<BTreeMap<String, LanguageAttributes>>,
    /// Customs codes, as given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub customs_codes: Option<CustomsCodes>,
    /// Who made the product; at most 1,000 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(inline, value_type = Option<ManufacturerText>)]
    pub manufacturer_name: Option<String>,
    /// Unique identifiers by kind: `gtin` (8, 12, 13 or 14 digits with a right check digit), `asin` and any further key.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(inline, value_type = Option<Uids>)]
    pub product_uids: Option<BTreeMap<String, String>>,
    /// Facts for customs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub customs: Option<Customs>,
    /// How much the product matters to the merchant, such as its turnover: a number of at least 0, 1 where nothing is
    /// said. What matters more comes sooner in the queue of reviewers that `sort=impact` gives.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(inline, value_type = Option<ReviewWeight>)]
    pub review_weight: Option<Number>,
    /// URLs of the product's assignments. Made by the service; ignored in requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub product_assignments: Option<Vec<String>>,
    /// Values of merchant attributes declared as not language specific.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(inline, value_type = Option<BTreeMap<AttributeName, AttributeValue>>)]
    pub merchant_product_attributes: Option<AttributeValues>,
}

/// A product's texts in one language.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LanguageAttributes {
    /// At most 1,000 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(inline, value_type = Option<NameText>)]
    pub product_name: Option<String>,
    /// At most 50,000 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(inline, value_type = Option<DescriptionText>)]
    pub product_description: Option<String>,
    /// At most 100 tags of 200 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(inline, value_type = Option<Tags>)]
    pub product_tags: Option<Vec<String>>,
    /// Values of merchant attributes declared as language specific.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(inline, value_type = Option<BTreeMap<AttributeName, AttributeValue>>)]
    pub merchant_product_attributes: Option<AttributeValues>,
}

/// Customs codes of a product: 4 to 11 digits each, with spaces and dots allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CustomsCodes {
    /// A customs tariff number; speaks for its first six digits, eight in the EU.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(inline, value_type = Option<CustomsCodeForm>)]
    pub customs_tariff_code: Option<String>,
    /// A code of TARIC.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(inline, value_type = Option<CustomsCodeForm>)]
    pub taric_code: Option<String>,
    /// A code of the German EZT, which is TARIC with an eleventh digit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(inline, value_type = Option<CustomsCodeForm>)]
    pub ezt_code: Option<String>,
    /// A code of TARES.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(inline, value_type = Option<CustomsCodeForm>)]
    pub tares_code: Option<String>,
    /// A code of UKGT.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(inline, value_type = Option<CustomsCodeForm>)]
    pub ukgt_code: Option<String>,
    /// A code of the Norwegian tariff; speaks for its first six digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(inline, value_type = Option<CustomsCodeForm>)]
    pub tolletaten_code: Option<String>,
    /// A code of the taxonomy that it names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform_code: Option<PlatformCode>,
}

/// A code together with its taxonomy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlatformCode {
    /// The code.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(inline, required = true, value_type = Option<CustomsCodeForm>)]
    pub code: Option<String>,
    /// `TARIC`, `TARES` or `UKGT`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(inline, required = true, value_type = Option<TaxonomyName>)]
    pub taxonomy: Option<String>,
}

/// Facts for customs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Customs {
    /// How much of the product one piece is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub physical_measure: Option<PhysicalMeasure>,
    /// ISO 3166-1 alpha-2, in capitals.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(inline, value_type = Option<CountryCode>)]
    pub country_of_origin: Option<String>,
    /// Reference of a binding tariff information.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(inline, value_type = Option<ReferenceText>)]
    pub bti_id: Option<String>,
    /// Conditions of tariff measures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measure_condition: Option<MeasureCondition>,
}

/// An amount with its unit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PhysicalMeasure {
    /// `g kg t ml l hl m cm mm m2 m3 pcs pair kWh`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(inline, required = true, value_type = Option<UnitName>)]
    pub unit: Option<String>,
    /// Greater than 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(inline, required = true, value_type = Option<Amount>)]
    pub amount: Option<Number>,
}

/// Conditions of tariff measures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MeasureCondition {
    /// Condition codes of TARIC.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(inline, value_type = Option<Conditions>)]
    pub taric: Option<Vec<String>>,
}

impl CustomsCodes {
    /// Every code given, with its field below `customsCodes`.
    pub fn given(&self) -> impl Iterator<Item = (&'static str, &str)> {
        [
            ("customsTariffCode", self.customs_tariff_code.as_deref()),
            ("taricCode", self.taric_code.as_deref()),
            ("eztCode", self.ezt_code.as_deref()),
            ("taresCode", self.tares_code.as_deref()),
            ("ukgtCode", self.ukgt_code.as_deref()),
            ("tolletatenCode", self.tolletaten_code.as_deref()),
            ("platformCode.code", self.platform_code.as_ref().and_then(|platform| platform.code.as_deref())),
        ]
        .into_iter()
        .filter_map(|(field, code)| code.map(|code| (field, code)))
    }

    /// The taxonomy named beside the platform code.
    pub fn platform_taxonomy(&self) -> Option<Taxonomy> {
        self.platform_code.as_ref()?.taxonomy.as_deref().and_then(Taxonomy::from_name)
    }
}

impl Details {
    /// Languages with their texts, in the order of their codes.
    pub fn languages(&self) -> impl Iterator<Item = (&str, &LanguageAttributes)> {
        self.language_attributes.iter().flatten().map(|(key, texts)| (key.as_str(), texts))
    }

    /// How much the product matters to the merchant; 1 where nothing is said.
    pub fn review_weight(&self) -> f32 {
        self.review_weight.as_ref().and_then(Number::as_f64).map_or(1.0, |weight| weight as f32)
    }

    /// The texts in one language.
    pub fn language(&self, key: &str) -> Option<&LanguageAttributes> {
        self.language_attributes.as_ref()?.get(key)
    }

    /// Whether what auto-assignment reads is the same in both: names, descriptions, tags, customs codes, and what VAT rules
    /// ask for: the weight or volume, and merchant attributes.
    pub fn same_evidence(&self, other: &Details) -> bool {
        fn texts(details: &Details) -> impl Iterator<Item = (&str, Option<&str>, Option<&str>, &[String])> {
            let all = details.languages().map(|(key, texts)| {
                let tags = texts.product_tags.as_deref().unwrap_or_default();
                (key, texts.product_name.as_deref(), texts.product_description.as_deref(), tags)
            });
            all.filter(|(_, name, description, tags)| name.is_some() || description.is_some() || !tags.is_empty())
        }
        fn facts(details: &Details) -> Vec<(&str, &String, &Value)> {
            let language = details.languages().map(|(key, texts)| (key, texts.merchant_product_attributes.as_ref()));
            let all = language.chain([("", details.merchant_product_attributes.as_ref())]);
            let named =
                all.flat_map(|(key, values)| values.into_iter().flatten().map(move |(name, value)| (key, name, value)));
            named.filter(|(_, name, _)| crate::domain::sides::is_fact(name)).collect()
        }
        let codes = |details: &Details| details.customs_codes.clone().unwrap_or_default();
        let measure = |details: &Details| details.customs.as_ref().and_then(|customs| customs.physical_measure.clone());
        codes(self) == codes(other)
            && texts(self).eq(texts(other))
            && facts(self) == facts(other)
            && measure(self) == measure(other)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn details(value: Value) -> Details {
        serde_json::from_value(value).expect("details")
    }

    #[test]
    fn only_what_auto_assignment_reads_is_evidence() {
        let base = json!({"languageAttributes": {"de": {"productName": "Hose", "productTags": ["a"]}},
            "customsCodes": {"taricCode": "6203"}});
        let with = |pointer: &str, value: Value| {
            let mut changed = base.clone();
            crate::domain::merge_patch::apply(&mut changed, json!({}));
            let (parent, field) = pointer.rsplit_once('/').expect("a pointer");
            changed
                .pointer_mut(parent)
                .and_then(Value::as_object_mut)
                .expect("a parent")
                .insert(field.to_owned(), value);
            details(changed)
        };
        let before = details(base.clone());
        for (pointer, value) in [
            ("/manufacturerName", json!("M")),
            ("/customs", json!({"countryOfOrigin": "DE"})),
            ("/languageAttributes/en", json!({})),
            ("/languageAttributes/de/merchantProductAttributes", json!({"a": 1})),
        ] {
            assert!(before.same_evidence(&with(pointer, value)), "{pointer}");
        }
        for (pointer, value) in [
            ("/languageAttributes/de/productName", json!("Rock")),
            ("/languageAttributes/de/productDescription", json!("kurz")),
            ("/languageAttributes/de/productTags", json!(["b"])),
            ("/languageAttributes/en", json!({"productName": "Trousers"})),
            ("/merchantProductAttributes", json!({"age": 8})),
            ("/customs", json!({"physicalMeasure": {"unit": "kg", "amount": 25}})),
            ("/customsCodes/taricCode", json!("6204")),
        ] {
            assert!(!before.same_evidence(&with(pointer, value)), "{pointer}");
        }
    }
}
