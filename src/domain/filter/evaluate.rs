//! The rules read over one product as plainly as possible: what every search engine must agree with.

use crate::domain::Details;
use crate::domain::filter::element::{Criteria, Element, Operation};
use crate::domain::filter::text;
use crate::domain::filter::value::{Phrase, Term, Value, ValueExpression};
use crate::domain::product::LanguageAttributes;

impl Criteria {
    /// Whether a product satisfies them.
    pub fn matches(&self, product_id: &str, details: &Details) -> bool {
        let mut elements = self.elements.iter();
        let Some(first) = elements.next() else { return true };
        let mut holds = element_holds(first, product_id, details);
        let mut operation = first.operation;
        for element in elements {
            let next = element_holds(element, product_id, details);
            holds = match operation {
                Operation::And => holds && next,
                Operation::Or => holds || next,
            };
            operation = element.operation;
        }
        holds
    }
}

fn element_holds(element: &Element, product_id: &str, details: &Details) -> bool {
    let texts = details.language(&element.language);
    let name = || texts.and_then(|texts| texts.product_name.as_deref());
    let description = || texts.and_then(|texts| texts.product_description.as_deref());
    let country = || details.customs.as_ref().and_then(|customs| customs.country_of_origin.as_deref());
    let holds = |expression: &Option<ValueExpression>, texts: Vec<&str>| {
        expression.as_ref().is_none_or(|expression| expression_holds(expression, &texts))
    };
    holds(&element.keywords, name().into_iter().chain(description()).collect())
        && holds(&element.product_name, name().into_iter().collect())
        && holds(&element.product_tag, tags(texts))
        && element.product_id.as_ref().is_none_or(|part| text::normalise(product_id).contains(part))
        && element.country_of_origin.as_ref().is_none_or(|code| country() == Some(code))
}

fn tags(texts: Option<&LanguageAttributes>) -> Vec<&str> {
    texts.and_then(|texts| texts.product_tags.as_ref()).into_iter().flatten().map(String::as_str).collect()
}

fn expression_holds(expression: &ValueExpression, texts: &[&str]) -> bool {
    expression.groups.iter().any(|group| group.iter().all(|term| term_holds(term, texts)))
}

fn term_holds(term: &Term, texts: &[&str]) -> bool {
    texts.iter().any(|text| occurs(&term.value, text)) != term.negated
}

fn occurs(value: &Value, text: &str) -> bool {
    match value {
        Value::Plain(plain) => text::normalise(text).contains(plain),
        Value::Phrase(phrase) => phrase_occurs(phrase, &text::words(&text::nfkc(text)).collect::<Vec<_>>()),
    }
}

fn phrase_occurs(phrase: &Phrase, words: &[String]) -> bool {
    let is_at = |begin: usize| phrase.offsets().all(|(at, word)| words.get(begin + at).is_some_and(|w| w == word));
    (0..words.len()).any(is_at)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;

    fn holds(criteria: &Json, product: &Json) -> bool {
        let details: Details = serde_json::from_value(product.clone()).expect("details");
        Criteria::parse(&criteria.to_string()).expect("criteria").matches("Art. 4711-b", &details)
    }

    /// Whether a value is found in a German name.
    fn found(value: &str, name: &str) -> bool {
        let product = json!({"languageAttributes": {"de": {"productName": name}}});
        holds(&json!([{"languageKey": "de", "productName": value}]), &product)
    }

    #[test]
    fn a_value_is_found_in_a_name_as_the_contract_says() {
        let cases: [(&str, &[&str], &[&str]); 18] = [
            ("a b or c", &["ab", "b xa", "c"], &["a", "x"]),
            ("a or -b", &["a b", "x", "a"], &["b"]),
            (r#"a -"b c""#, &["a", "a b c", "a b x y c"], &["a b x c", "b x c"]),
            ("t-shirt", &["T-Shirts", "ein t-shirt"], &["t shirt", "tshirt"]),
            (r#"24""#, &[r#"Schirm 24" neu"#], &["24"]),
            ("-", &["a-b"], &["ab"]),
            ("--a", &["a", "b"], &["-a"]),
            ("a -or b", &["a b"], &["a b or"]),
            (r#""a b""#, &["a x b", "x a y b z", "a-x-b"], &["a b", "a x y b", "b x a", "ax x b"]),
            (r#""a  b""#, &["a x y b"], &["a x b", "a b"]),
            (r#"" a ""#, &["a", "x a y"], &["ab"]),
            (r#""a""#, &["A", "x-a"], &["aa"]),
            (r#""T-Shirt""#, &["T-Shirt", "t shirt", "T... Shirt"], &["t x shirt", "t-shirts"]),
            ("jacke", &["Damenlederjacke", "JACKEN"], &["Jake"]),
            ("äpfel", &["A\u{308}pfelkorb", "ÄPFEL"], &["Apfel", "Aepfel"]),
            ("strasse", &["STRASSE"], &["Straße"]),
            ("σ", &["ΟΔΟΣ", "οδος"], &["ο"]),
            ("👍🏽", &["gut 👍🏽!"], &["👍🏿"]),
        ];
        for (value, with, without) in cases {
            for name in with {
                assert!(found(value, name), "{value} in {name}");
            }
            for name in without {
                assert!(!found(value, name), "{value} not in {name}");
            }
        }
    }

    #[test]
    fn properties_are_matched_where_the_contract_says() {
        let product = json!({
            "languageAttributes": {
                "en": {"productName": "Red shirt", "productDescription": "Cotton, washable"},
                "de": {"productName": "Rotes Hemd", "productTags": ["Baumwolle neu", "Herren Sommer"]},
            },
            "customs": {"countryOfOrigin": "PT"},
        });
        let cases = [
            (json!({"keywords": "shirt cotton"}), true),
            (json!({"keywords": "-silk -wool"}), true),
            (json!({"keywords": "shirt -cotton"}), false),
            (json!({"keywords": "\"shirt cotton\""}), false),
            (json!({"keywords": "hemd"}), false),
            (json!({"keywords": "hemd", "languageKey": "de"}), true),
            (json!({"keywords": "-hemd", "languageKey": "fr"}), true),
            (json!({"productName": "cotton", "languageKey": "en"}), false),
            (json!({"productTag": "wolle sommer", "languageKey": "de"}), true),
            (json!({"productTag": "\"baumwolle neu\"", "languageKey": "de"}), false),
            (json!({"productTag": "\"neu\" \"herren\"", "languageKey": "de"}), true),
            (json!({"productTag": "\"baumwolle  sommer\"", "languageKey": "de"}), false),
            (json!({"productTag": "-leinen", "languageKey": "de"}), true),
            (json!({"productTag": "-leinen", "languageKey": "en"}), true),
            (json!({"productId": ". 4711-B"}), true),
            (json!({"productId": "4711 b"}), false),
            (json!({"countryOfOrigin": "PT"}), true),
            (json!({"countryOfOrigin": "ES"}), false),
            (json!({"countryOfOrigin": "PT", "keywords": "silk"}), false),
        ];
        for (element, expected) in cases {
            assert_eq!(holds(&json!([element]), &product), expected, "{element}");
        }
        assert!(holds(&json!([]), &product));
        assert!(!holds(&json!([{"countryOfOrigin": "PT"}]), &json!({})));
    }

    #[test]
    fn elements_are_chained_from_left_to_right() {
        let product = json!({"languageAttributes": {"en": {"productName": "y"}}});
        let chain = |steps: &str| {
            let elements: Vec<Json> = steps
                .split(' ')
                .map(|step| {
                    let operation = if step.ends_with('|') { json!("OR") } else { json!("AND") };
                    json!({"keywords": step[..1], "operation": operation})
                })
                .collect();
            holds(&Json::from(elements), &product)
        };
        // `y` holds and `n` does not; `y| n& y` stands for (y or n) and y.
        for (steps, expected) in [
            ("y", true),
            ("n", false),
            ("y| n& n", false),
            ("n& n| y", true),
            ("y| y& n| n", false),
            ("n| y& y|", true),
        ] {
            assert_eq!(chain(steps), expected, "{steps}");
        }
    }
}
