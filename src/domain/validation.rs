//! The rules that a well-formed product must keep: lengths, known codes, declared attributes.

use std::collections::HashMap;

use serde_json::Value;

use crate::domain::attributes::Declaration;
use crate::domain::product::{AttributeValues, Customs, CustomsCodes, Details, LanguageAttributes, Product};
use crate::domain::{Fault, ShopId, Taxonomy, countries, gtin, languages};

pub use crate::domain::limits::{
    MAX_ATTRIBUTE_CHARACTERS, MAX_ATTRIBUTE_VALUES, MAX_CONDITIONS, MAX_DESCRIPTION_CHARACTERS,
    MAX_MANUFACTURER_CHARACTERS, MAX_NAME_CHARACTERS, MAX_PRODUCT_BYTES, MAX_REFERENCE_CHARACTERS, MAX_REVIEW_WEIGHT,
    MAX_SHOP_IDS, MAX_TAG_CHARACTERS, MAX_TAGS, MAX_UIDS, UNITS,
};

/// An account's declared attributes by field name.
pub type Declarations = HashMap<String, Declaration>;

/// Every rule that the product breaks.
///
/// `shop` is where it belongs: a local product's shopIds, where given, are exactly its shop.
pub fn faults(product: &Product, shop: ShopId, declarations: &Declarations) -> Vec<Fault> {
    let mut check = Check { faults: Vec::new(), declarations };
    check.shops(&product.shop_ids, shop);
    check.details(&product.product_details);
    check.faults
}

/// A fault when details are larger than a product may be, in bytes of JSON as it is stored.
pub fn size_fault(bytes: usize) -> Option<Fault> {
    let message = || format!("a product is stored in at most {MAX_PRODUCT_BYTES} bytes, this one would take {bytes}");
    (bytes > MAX_PRODUCT_BYTES).then(|| Fault::at("productDetails", "PRODUCT_TOO_LARGE", message()))
}

/// Whether the text is a customs code on input: 4 to 11 digits, with spaces and dots between them.
pub fn is_customs_code(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    (4..=11).contains(&digits) && text.bytes().all(|b| b.is_ascii_digit() || b == b' ' || b == b'.')
}

struct Check<'a> {
    faults: Vec<Fault>,
    declarations: &'a Declarations,
}

impl Check<'_> {
    fn report(&mut self, field: impl Into<String>, code: &str, message: impl Into<String>) {
        self.faults.push(Fault::at(field, code, message));
    }

    fn length(&mut self, field: &str, text: Option<&str>, most: usize) {
        // Bytes are never fewer than characters, and cheaper to know.
        if let Some(text) = text.filter(|text| text.len() > most && text.chars().count() > most) {
            let message = format!("at most {most} characters, these are {}", text.chars().count());
            self.report(field, "TOO_LONG", message);
        }
    }

    fn count(&mut self, field: &str, count: usize, most: usize) {
        if count > most {
            self.report(field, "TOO_MANY", format!("at most {most}, these are {count}"));
        }
    }

    fn shops(&mut self, shop_ids: &[i64], shop: ShopId) {
        self.count("shopIds", shop_ids.len(), MAX_SHOP_IDS);
        if let Some(bad) = shop_ids.iter().position(|id| *id < 1) {
            self.report(format!("shopIds[{bad}]"), "INVALID_SHOP_ID", "a shopId is at least 1");
        } else if let Some(own) = shop.number()
            && !shop_ids.is_empty()
            && shop_ids != [own]
        {
            self.report("shopIds", "OTHER_SHOP", format!("a local product of shop {own} has shopIds [{own}] or none"));
        }
    }

    fn details(&mut self, details: &Details) {
        for (key, texts) in details.languages() {
            let path = format!("productDetails.languageAttributes.{key}");
            if languages::is_known(key) {
                self.language(&path, texts);
            } else {
                let message = "a language key is an ISO 639 code in lower case, such as de or en";
                self.report(path, "UNKNOWN_LANGUAGE", message);
            }
        }
        if let Some(codes) = &details.customs_codes {
            self.customs_codes(codes);
        }
        let manufacturer = details.manufacturer_name.as_deref();
        self.length("productDetails.manufacturerName", manufacturer, MAX_MANUFACTURER_CHARACTERS);
        if let Some(uids) = &details.product_uids {
            self.count("productDetails.productUids", uids.len(), MAX_UIDS);
            for (key, value) in uids {
                let path = format!("productDetails.productUids.{key}");
                self.length(&path, Some(key), MAX_REFERENCE_CHARACTERS);
                self.length(&path, Some(value), MAX_REFERENCE_CHARACTERS);
                if key == "gtin" && !gtin::is_valid(value) {
                    let message = "a gtin has 8, 12, 13 or 14 digits, the last of them the right check digit";
                    self.report(path, "INVALID_GTIN", message);
                }
            }
        }
        let weight = details.review_weight.as_ref().map(|weight| weight.as_f64().unwrap_or(f64::NAN));
        if weight.is_some_and(|weight| !(0.0..=MAX_REVIEW_WEIGHT).contains(&weight)) {
            let message = format!("reviewWeight is a number from 0 to {MAX_REVIEW_WEIGHT}");
            self.report("productDetails.reviewWeight", "INVALID_REVIEW_WEIGHT", message);
        }
        if let Some(customs) = &details.customs {
            self.customs(customs);
        }
        self.attributes("productDetails", details.merchant_product_attributes.as_ref(), false);
    }

    fn language(&mut self, path: &str, texts: &LanguageAttributes) {
        self.length(&format!("{path}.productName"), texts.product_name.as_deref(), MAX_NAME_CHARACTERS);
        let description = texts.product_description.as_deref();
        self.length(&format!("{path}.productDescription"), description, MAX_DESCRIPTION_CHARACTERS);
        let tags = texts.product_tags.as_deref().unwrap_or_default();
        self.count(&format!("{path}.productTags"), tags.len(), MAX_TAGS);
        for (index, tag) in tags.iter().enumerate() {
            self.length(&format!("{path}.productTags[{index}]"), Some(tag), MAX_TAG_CHARACTERS);
        }
        self.attributes(path, texts.merchant_product_attributes.as_ref(), true);
    }

    fn customs_codes(&mut self, codes: &CustomsCodes) {
        for (field, code) in codes.given() {
            if !is_customs_code(code) {
                let message = "a customs code has 4 to 11 digits, with spaces and dots allowed between them";
                self.report(format!("productDetails.customsCodes.{field}"), "INVALID_CUSTOMS_CODE", message);
            }
        }
        if let Some(platform) = &codes.platform_code {
            let path = "productDetails.customsCodes.platformCode";
            if platform.code.is_none() {
                self.report(format!("{path}.code"), "MISSING", "platformCode needs a code");
            }
            if platform.taxonomy.as_deref().and_then(Taxonomy::from_name).is_none() {
                let message = "taxonomy is one of TARIC, TARES, UKGT";
                self.report(format!("{path}.taxonomy"), "UNKNOWN_TAXONOMY", message);
            }
        }
    }

    fn customs(&mut self, customs: &Customs) {
        let path = "productDetails.customs";
        if customs.country_of_origin.as_deref().is_some_and(|code| !countries::is_known(code)) {
            let message = "countryOfOrigin is an ISO 3166-1 alpha-2 code in capitals, such as DE";
            self.report(format!("{path}.countryOfOrigin"), "UNKNOWN_COUNTRY", message);
        }
        self.length(&format!("{path}.btiId"), customs.bti_id.as_deref(), MAX_REFERENCE_CHARACTERS);
        if let Some(measure) = &customs.physical_measure {
            let path = format!("{path}.physicalMeasure");
            if !measure.unit.as_deref().is_some_and(|unit| UNITS.contains(&unit)) {
                self.report(format!("{path}.unit"), "UNKNOWN_UNIT", format!("unit is one of {}", UNITS.join(" ")));
            }
            let amount = measure.amount.as_ref().and_then(serde_json::Number::as_f64);
            if !amount.is_some_and(|amount| amount.is_finite() && amount > 0.0) {
                self.report(format!("{path}.amount"), "INVALID_AMOUNT", "amount is a number greater than 0");
            }
        }
        if let Some(condition) = &customs.measure_condition {
            let codes = condition.taric.as_deref().unwrap_or_default();
            let path = format!("{path}.measureCondition.taric");
            self.count(&path, codes.len(), MAX_CONDITIONS);
            for (index, code) in codes.iter().enumerate() {
                self.length(&format!("{path}[{index}]"), Some(code), MAX_REFERENCE_CHARACTERS);
            }
        }
    }

    fn attributes(&mut self, place: &str, values: Option<&AttributeValues>, in_language: bool) {
        let Some(values) = values else { return };
        let place = format!("{place}.merchantProductAttributes");
        self.count(&place, values.len(), MAX_ATTRIBUTE_VALUES);
        let declarations = self.declarations;
        for (name, value) in values {
            let path = format!("{place}.{name}");
            match declarations.get(name) {
                None => {
                    let message = format!("the attribute {name} is not declared; declare it first");
                    self.report(path, "UNDECLARED_ATTRIBUTE", message);
                }
                Some(declared) if declared.is_language_specific != in_language => {
                    let right = if in_language { "productDetails" } else { "a language of languageAttributes" };
                    let message = format!("the attribute {name} belongs into merchantProductAttributes of {right}");
                    self.report(path, "MISPLACED_ATTRIBUTE", message);
                }
                Some(declared) => {
                    if let Err(message) = declared.check_value(value) {
                        self.report(path.as_str(), "INVALID_ATTRIBUTE_VALUE", message);
                    }
                    self.length(&path, value.as_str(), MAX_ATTRIBUTE_CHARACTERS);
                }
            }
        }
    }
}

/// The first null in a document that does not allow any, as a path.
pub fn first_null(value: &Value) -> Option<String> {
    fn find(value: &Value, path: &str) -> Option<String> {
        match value {
            Value::Null => Some(path.to_owned()),
            Value::Array(items) => {
                items.iter().enumerate().find_map(|(index, item)| find(item, &format!("{path}[{index}]")))
            }
            Value::Object(fields) => fields.iter().find_map(|(name, item)| {
                find(item, &if path.is_empty() { name.clone() } else { format!("{path}.{name}") })
            }),
            _ => None,
        }
    }
    find(value, "")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::attributes::DeclarationInput;

    fn broken(product: Value, shop: ShopId) -> Vec<String> {
        let mut declarations = Declarations::new();
        for (name, in_language) in [("plain", false), ("text", true)] {
            let declaration = DeclarationInput {
                field_name: Some(name.to_owned()),
                is_language_specific: Some(in_language),
                ..DeclarationInput::default()
            };
            declarations.insert(name.to_owned(), declaration.check().expect("a declaration"));
        }
        let mut document = json!({"shopIds": [], "productDetails": {}});
        crate::domain::merge_patch::apply(&mut document, product);
        let product: Product = serde_json::from_value(document).expect("a product");
        faults(&product, shop, &declarations)
            .into_iter()
            .map(|fault| format!("{} {}", fault.field.unwrap_or_default(), fault.code))
            .collect()
    }

    #[test]
    fn every_broken_rule_is_named_with_its_place() {
        let details = |details: Value| json!({"productDetails": details});
        let language = |texts: Value| details(json!({"languageAttributes": {"de": texts}}));
        for (product, expected) in [
            (json!({"shopIds": [1, i64::MAX]}), vec![]),
            (json!({"shopIds": [1, 0]}), vec!["shopIds[1] INVALID_SHOP_ID"]),
            (json!({"shopIds": vec![1; 1_001]}), vec!["shopIds TOO_MANY"]),
            (language(json!({"productName": "ä".repeat(1_000), "productTags": vec!["t"; 100]})), vec![]),
            (
                language(json!({"productName": "ä".repeat(1_001)})),
                vec!["productDetails.languageAttributes.de.productName TOO_LONG"],
            ),
            (
                language(json!({"productDescription": "x".repeat(50_001)})),
                vec!["productDetails.languageAttributes.de.productDescription TOO_LONG"],
            ),
            (
                language(json!({"productTags": ["x".repeat(201)]})),
                vec!["productDetails.languageAttributes.de.productTags[0] TOO_LONG"],
            ),
            (
                language(json!({"productTags": vec!["t"; 101]})),
                vec!["productDetails.languageAttributes.de.productTags TOO_MANY"],
            ),
            (details(json!({"languageAttributes": {"deu": {}, "ger": {}, "gsw": {}, "fr": {}, "gem": {}}})), vec![]),
            (
                details(json!({"languageAttributes": {"DE": {}, "german": {}, "xx": {}, "": {}}})),
                vec![
                    "productDetails.languageAttributes. UNKNOWN_LANGUAGE",
                    "productDetails.languageAttributes.DE UNKNOWN_LANGUAGE",
                    "productDetails.languageAttributes.german UNKNOWN_LANGUAGE",
                    "productDetails.languageAttributes.xx UNKNOWN_LANGUAGE",
                ],
            ),
            (details(json!({"customsCodes": {"taricCode": "6109 10.00", "eztCode": "12345678901"}})), vec![]),
            (
                details(json!({"customsCodes": {"taricCode": "610", "eztCode": "123456789012", "ukgtCode": "61a9"}})),
                vec![
                    "productDetails.customsCodes.taricCode INVALID_CUSTOMS_CODE",
                    "productDetails.customsCodes.eztCode INVALID_CUSTOMS_CODE",
                    "productDetails.customsCodes.ukgtCode INVALID_CUSTOMS_CODE",
                ],
            ),
            (
                details(json!({"customsCodes": {"platformCode": {"taxonomy": "HS"}}})),
                vec![
                    "productDetails.customsCodes.platformCode.code MISSING",
                    "productDetails.customsCodes.platformCode.taxonomy UNKNOWN_TAXONOMY",
                ],
            ),
            (details(json!({"productUids": {"gtin": "4006381333931", "own": "x"}})), vec![]),
            (details(json!({"productUids": {"gtin": "1"}})), vec!["productDetails.productUids.gtin INVALID_GTIN"]),
            (
                details(json!({"customs": {"countryOfOrigin": "de", "physicalMeasure": {"unit": "G", "amount": 0}}})),
                vec![
                    "productDetails.customs.countryOfOrigin UNKNOWN_COUNTRY",
                    "productDetails.customs.physicalMeasure.unit UNKNOWN_UNIT",
                    "productDetails.customs.physicalMeasure.amount INVALID_AMOUNT",
                ],
            ),
            (details(json!({"reviewWeight": 0})), vec![]),
            (details(json!({"reviewWeight": 1.5e12})), vec!["productDetails.reviewWeight INVALID_REVIEW_WEIGHT"]),
            (details(json!({"reviewWeight": -1})), vec!["productDetails.reviewWeight INVALID_REVIEW_WEIGHT"]),
            (details(json!({"merchantProductAttributes": {"plain": "x"}})), vec![]),
            (
                details(json!({"merchantProductAttributes": {"text": "x", "other": 1, "plain": 2}})),
                vec![
                    "productDetails.merchantProductAttributes.other UNDECLARED_ATTRIBUTE",
                    "productDetails.merchantProductAttributes.plain INVALID_ATTRIBUTE_VALUE",
                    "productDetails.merchantProductAttributes.text MISPLACED_ATTRIBUTE",
                ],
            ),
            (language(json!({"merchantProductAttributes": {"text": "x"}})), vec![]),
        ] {
            assert_eq!(broken(product.clone(), ShopId::GLOBAL), expected, "{product}");
        }
    }

    #[test]
    fn a_local_product_names_its_own_shop_or_none() {
        let shop = ShopId::local(7).expect("a shop");
        assert!(broken(json!({"shopIds": []}), shop).is_empty());
        assert!(broken(json!({"shopIds": [7]}), shop).is_empty());
        assert_eq!(broken(json!({"shopIds": [8]}), shop), ["shopIds OTHER_SHOP"]);
        assert_eq!(broken(json!({"shopIds": [7, 8]}), shop), ["shopIds OTHER_SHOP"]);
    }

    #[test]
    fn the_first_null_is_named_by_its_path() {
        assert_eq!(first_null(&json!({"a": {"b": [1, {"c": null}]}})), Some("a.b[1].c".to_owned()));
        assert_eq!(first_null(&json!({"a": [null]})), Some("a[0]".to_owned()));
        assert_eq!(first_null(&json!({"a": [1, "", {}]})), None);
    }
}
