//! Applications of the service for which a product can be validated.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::domain::languages;
use crate::domain::product::{CustomsCodes, Details};

/// Something that a product can be complete for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Application {
    /// Finding VAT rates: a German or English name, or a customs code.
    VatRules,
    /// A customs declaration: a name, a customs code, the country of origin and a physical measure.
    Customs,
    /// A listing on a market place: a name, the manufacturer, and a GTIN or ASIN.
    Marketplace,
}

/// What a product still lacks for an application that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApplicationIssue {
    /// The application's name.
    pub application: String,
    /// Paths of the fields that are missing; where one of several would do, each of them.
    pub missing: Vec<String>,
}

const NAME_PATHS: [&str; 2] =
    ["productDetails.languageAttributes.de.productName", "productDetails.languageAttributes.en.productName"];

impl Application {
    /// Every application.
    pub const ALL: [Application; 3] = [Application::VatRules, Application::Customs, Application::Marketplace];

    /// The name in the parameter `applications` and in tags.
    pub const fn name(self) -> &'static str {
        match self {
            Application::VatRules => "VAT_RULES",
            Application::Customs => "CUSTOMS",
            Application::Marketplace => "MARKETPLACE",
        }
    }

    /// The application of that name, in any case.
    pub fn from_name(name: &str) -> Option<Application> {
        Application::ALL.into_iter().find(|application| application.name().eq_ignore_ascii_case(name))
    }

    /// Paths of the fields that the product lacks; none when it is complete.
    pub fn missing(self, details: &Details) -> Vec<String> {
        let name = NAME_PATHS.map(str::to_owned);
        let mut read = details.languages().filter(|(key, _)| languages::is_read(key));
        let named = read.any(|(_, texts)| filled(texts.product_name.as_deref()));
        let coded = details.customs_codes.as_ref().is_some_and(|codes| CustomsCodes::given(codes).next().is_some());
        let codes = "productDetails.customsCodes".to_owned();
        let customs = details.customs.as_ref();
        let mut missing = Vec::new();
        match self {
            Application::VatRules => {
                if !named && !coded {
                    missing.extend(name);
                    missing.push(codes);
                }
            }
            Application::Customs => {
                if !named {
                    missing.extend(name);
                }
                if !coded {
                    missing.push(codes);
                }
                if customs.and_then(|customs| customs.country_of_origin.as_ref()).is_none() {
                    missing.push("productDetails.customs.countryOfOrigin".to_owned());
                }
                if customs.and_then(|customs| customs.physical_measure.as_ref()).is_none() {
                    missing.push("productDetails.customs.physicalMeasure".to_owned());
                }
            }
            Application::Marketplace => {
                if !named {
                    missing.extend(name);
                }
                if !filled(details.manufacturer_name.as_deref()) {
                    missing.push("productDetails.manufacturerName".to_owned());
                }
                let identified = ["gtin", "asin"].iter().any(|key| {
                    filled(details.product_uids.as_ref().and_then(|uids| uids.get(*key)).map(String::as_str))
                });
                if !identified {
                    missing.push("productDetails.productUids.gtin".to_owned());
                    missing.push("productDetails.productUids.asin".to_owned());
                }
            }
        }
        missing
    }
}

fn filled(text: Option<&str>) -> bool {
    text.is_some_and(|text| !text.trim().is_empty())
}

/// The tags of those applications that the product is complete for, and what the others lack.
pub fn validate(details: &Details, asked: &[Application]) -> (Vec<String>, Vec<ApplicationIssue>) {
    let mut tags = Vec::new();
    let mut issues = Vec::new();
    for application in asked {
        let missing = application.missing(details);
        let name = application.name().to_owned();
        if missing.is_empty() {
            tags.push(name);
        } else {
            issues.push(ApplicationIssue { application: name, missing });
        }
    }
    (tags, issues)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn tags_are_for_complete_applications_and_issues_name_the_rest() {
        let tags = |value: Value| {
            let details: Details = serde_json::from_value(value).expect("details");
            let (tags, issues) = validate(&details, &Application::ALL);
            assert_eq!(tags.len() + issues.len(), 3);
            tags.join(" ")
        };
        let name = json!({"de": {"productName": "Seife"}});
        assert_eq!(tags(json!({})), "");
        assert_eq!(tags(json!({"languageAttributes": {"fr": {"productName": "Savon"}}})), "");
        assert_eq!(tags(json!({"languageAttributes": {"en": {"productName": " "}}})), "");
        assert_eq!(tags(json!({"languageAttributes": name})), "VAT_RULES");
        assert_eq!(tags(json!({"customsCodes": {"taricCode": "3401"}})), "VAT_RULES");
        assert_eq!(tags(json!({"customsCodes": {}})), "");
        assert_eq!(
            tags(json!({"languageAttributes": name, "manufacturerName": "M", "productUids": {"asin": "B0"}})),
            "VAT_RULES MARKETPLACE"
        );
        assert_eq!(
            tags(json!({"languageAttributes": name, "customsCodes": {"eztCode": "3401"},
                "customs": {"countryOfOrigin": "DE", "physicalMeasure": {"unit": "g", "amount": 1}}})),
            "VAT_RULES CUSTOMS"
        );
    }
}
