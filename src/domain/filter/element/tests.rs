use proptest::prelude::*;
use serde_json::json;

use super::*;

fn faults(json: &str) -> Vec<String> {
    let faults = Criteria::parse(json).expect_err(json);
    faults.into_iter().map(|fault| format!("{} {}", fault.field.unwrap_or_default(), fault.code)).collect()
}

#[test]
fn an_element_is_read() {
    let criteria = json!([
        {"languageKey": "de", "productName": "Hose or Rock", "operation": "OR"},
        {"keywords": "-a", "countryOfOrigin": "DE", "productId": "A 1"},
    ]);
    let criteria = Criteria::parse(&criteria.to_string()).expect("criteria");
    assert_eq!(criteria.elements[0].language, "de");
    assert_eq!(criteria.elements[0].operation, Operation::Or);
    assert_eq!(criteria.elements[0].product_name.as_ref().map(ValueExpression::len), Some(2));
    assert_eq!(criteria.elements[1].language, "en");
    assert_eq!(criteria.elements[1].product_id.as_deref(), Some("a 1"));
    assert_eq!(Criteria::parse("[]"), Ok(Criteria::default()));
}

#[test]
fn mistakes_name_the_element_and_the_property() {
    for (json, expected) in [
        ("", "filterCriteria NOT_JSON"),
        ("[{]", "filterCriteria NOT_JSON"),
        ("[] []", "filterCriteria NOT_JSON"),
        ("{}", "filterCriteria WRONG_TYPE"),
        ("null", "filterCriteria WRONG_TYPE"),
        ("[1]", "filterCriteria[0] WRONG_TYPE"),
        ("[[]]", "filterCriteria[0] WRONG_TYPE"),
        ("[{}]", "filterCriteria[0] NO_PROPERTY"),
        (r#"[{"languageKey":"de","operation":"OR"}]"#, "filterCriteria[0] NO_PROPERTY"),
        (r#"[{"keywords":"a"},{"keyword":"a","productId":"1"}]"#, "filterCriteria[1].keyword UNKNOWN_PROPERTY"),
        (r#"[{"keywords":1}]"#, "filterCriteria[0].keywords WRONG_TYPE"),
        (r#"[{"keywords":null}]"#, "filterCriteria[0].keywords WRONG_TYPE"),
        (r#"[{"keywords":"a","keywords":"b"}]"#, "filterCriteria[0].keywords DUPLICATE_PROPERTY"),
        (r#"[{"keywords":"a","languageKey":"xx"}]"#, "filterCriteria[0].languageKey UNKNOWN_LANGUAGE"),
        (r#"[{"keywords":"a","languageKey":"EN"}]"#, "filterCriteria[0].languageKey UNKNOWN_LANGUAGE"),
        (r#"[{"productName":"a"}]"#, "filterCriteria[0].productName MISSING_LANGUAGE"),
        (r#"[{"productTag":"a"}]"#, "filterCriteria[0].productTag MISSING_LANGUAGE"),
        (r#"[{"countryOfOrigin":"XX"}]"#, "filterCriteria[0].countryOfOrigin UNKNOWN_COUNTRY"),
        (r#"[{"productId":""}]"#, "filterCriteria[0].productId EMPTY"),
        (r#"[{"productId":"a\u0000"}]"#, "filterCriteria[0].productId NUL"),
        (r#"[{"keywords":"a","operation":"XOR"}]"#, "filterCriteria[0].operation UNKNOWN_OPERATION"),
        (r#"[{"keywords":" "}]"#, "filterCriteria[0].keywords BAD_EXPRESSION"),
    ] {
        assert_eq!(faults(json), [expected], "{json}");
    }
}

#[test]
fn a_mistake_in_a_value_is_told_with_its_position_as_written() {
    for (value, at) in [("a or", 3), ("½ or", 3), ("A\u{308} or", 4), ("", 1), ("x \"a", 3)] {
        let faults = Criteria::parse(&json!([{"keywords": value}]).to_string()).expect_err("a mistake");
        assert!(faults[0].message.starts_with(&format!("at character {at}: ")), "{value}: {}", faults[0].message);
    }
}

#[test]
fn limits_hold() {
    let elements = |count| Json::from(vec![json!({"keywords": "a"}); count]).to_string();
    assert!(Criteria::parse(&elements(MAX_ELEMENTS)).is_ok());
    assert_eq!(faults(&elements(MAX_ELEMENTS + 1)), ["filterCriteria TOO_MANY_ELEMENTS"]);
    let values = |count| json!([{"keywords": "a ".repeat(count - 2), "productId": "1", "countryOfOrigin": "DE"}]);
    assert!(Criteria::parse(&values(MAX_VALUES).to_string()).is_ok());
    assert_eq!(faults(&values(MAX_VALUES + 1).to_string()), ["filterCriteria TOO_MANY_VALUES"]);
    let long = |bytes: usize| format!("[{{\"keywords\":\"{}\"}}]", "a".repeat(bytes - 17));
    assert!(Criteria::parse(&long(MAX_CRITERIA_BYTES)).is_ok());
    assert_eq!(faults(&long(MAX_CRITERIA_BYTES + 1)), ["filterCriteria TOO_LONG"]);
}

proptest! {
    #[test]
    fn nothing_panics(text in "\\PC*|\\[[]{}\":,a-z0-9 \\\\]{0,60}") {
        let _ = Criteria::parse(&text);
    }

    #[test]
    fn no_value_panics(value in "\\PC{0,60}|[-a\" or\u{308}½]{0,40}") {
        let _ = Criteria::parse(&json!([{"keywords": value, "productId": value}]).to_string());
    }
}
