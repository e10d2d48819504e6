//! The sample products: 312 of a department store, in a table beside this file.

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Map, Value, json};

const TABLE: &str = include_str!("samples.tsv");

/// One row of the table; what is empty is absent.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sample {
    /// The department's two letters and a number.
    pub product_id: String,
    name_de: String,
    name_en: String,
    description_de: String,
    description_en: String,
    tags_de: String,
    tags_en: String,
    manufacturer: String,
    country_of_origin: String,
    /// `kind=code`, several with `;` between them; a platformCode is written `platformCode=TAXONOMY:code`.
    customs_codes: String,
}

/// All samples.
///
/// # Errors
///
/// None for the table that ships; a test reads it.
pub fn samples() -> Result<Vec<Sample>> {
    let mut reader = csv::ReaderBuilder::new().delimiter(b'\t').quoting(false).from_reader(TABLE.as_bytes());
    reader.deserialize().collect::<Result<_, _>>().context("the table of samples")
}

impl Sample {
    /// The German name, else the English one.
    pub fn name(&self) -> &str {
        if self.name_de.is_empty() { &self.name_en } else { &self.name_de }
    }

    /// The value that the product has in the map of `POST /products/global`.
    pub(super) fn body(&self) -> Value {
        let mut languages = Map::new();
        let texts = [
            ("de", &self.name_de, &self.description_de, &self.tags_de),
            ("en", &self.name_en, &self.description_en, &self.tags_en),
        ];
        for (language, name, description, tags) in texts {
            if !name.is_empty() {
                languages.insert(language.to_owned(), language_object(name, description, tags));
            }
        }
        let mut details = json!({
            "languageAttributes": languages,
            "manufacturerName": self.manufacturer,
            "customs": {"countryOfOrigin": self.country_of_origin},
        });
        let codes: Map<String, Value> = self.customs_codes.split(';').filter_map(customs_code).collect();
        if !codes.is_empty() {
            details["customsCodes"] = codes.into();
        }
        json!({"productDetails": details})
    }
}

/// The key and the value of `kind=code`.
fn customs_code(text: &str) -> Option<(String, Value)> {
    let (kind, code) = text.split_once('=')?;
    let code = match code.split_once(':') {
        Some((taxonomy, code)) => json!({"taxonomy": taxonomy, "code": code}),
        None => json!(code),
    };
    Some((kind.to_owned(), code))
}

fn language_object(name: &str, description: &str, tags: &str) -> Value {
    let mut object = json!({"productName": name});
    if !description.is_empty() {
        object["productDescription"] = json!(description);
    }
    if !tags.is_empty() {
        object["productTags"] = tags.split(", ").collect();
    }
    object
}
