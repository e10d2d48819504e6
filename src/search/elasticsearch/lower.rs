//! Lowers an expression to a query of Elasticsearch. Every value becomes a term, a prefix or a phrase of terms; none
//! reaches a wildcard or a regular expression.

use serde_json::{Value as Json, json};

use crate::domain::filter::{Expr, Field, Leaf, Phrase, Value};
use crate::search::elasticsearch::tokens::{self, PartQuery};

/// The language under which product ids are kept.
pub(super) const ID_LANGUAGE: &str = "";

/// What the names of a field's parts, trigrams and words begin with.
pub(super) fn field_name(field: Field) -> &'static str {
    match field {
        Field::Keywords => "keyword",
        Field::Name => "name",
        Field::Tags => "tag",
    }
}

/// The query of an expression.
pub(super) fn query(expression: &Expr) -> Json {
    match expression {
        Expr::All(items) if items.is_empty() => json!({"match_all": {}}),
        Expr::Any(items) if items.is_empty() => json!({"match_none": {}}),
        Expr::All(items) => {
            let negated =
                items.iter().filter_map(|item| if let Expr::Not(inner) = item { Some(query(inner)) } else { None });
            let must_not: Vec<Json> = negated.collect();
            let filter: Vec<Json> = items.iter().filter(|item| !matches!(item, Expr::Not(_))).map(query).collect();
            json!({"bool": {"filter": filter, "must_not": must_not}})
        }
        Expr::Any(items) => {
            json!({"bool": {"should": items.iter().map(query).collect::<Vec<Json>>(), "minimum_should_match": 1}})
        }
        Expr::Not(item) => json!({"bool": {"must_not": [query(item)]}}),
        Expr::Leaf(leaf) => leaf_query(leaf),
    }
}

fn leaf_query(leaf: &Leaf) -> Json {
    match leaf {
        Leaf::Country(code) => json!({"term": {"country": code}}),
        Leaf::ProductId(part) => substring("id", ID_LANGUAGE, part),
        Leaf::Text { field, language, value: Value::Plain(plain) } => substring(field_name(*field), language, plain),
        Leaf::Text { field, language, value: Value::Phrase(phrase) } => {
            words(&format!("{}_words", field_name(*field)), language, phrase)
        }
    }
}

fn substring(field: &str, language: &str, value: &str) -> Json {
    match tokens::part_query(language, value) {
        PartQuery::Term(term) => json!({"term": {format!("{field}_parts"): term}}),
        PartQuery::Prefix(start) => json!({"prefix": {format!("{field}_parts"): start}}),
        PartQuery::Grams(grams) => json!({"match_phrase": {format!("{field}_grams"): grams}}),
    }
}

fn words(field: &str, language: &str, phrase: &Phrase) -> Json {
    if phrase.words.iter().all(|word| word.gap == 0) {
        let mut terms = String::new();
        tokens::push_words(&mut terms, language, phrase.words.iter().map(|word| word.word.as_str()));
        return json!({"match_phrase": {field: terms}});
    }
    // Only spans tell exactly one word between from none: slop and max_gaps also allow fewer.
    let mut clauses = Vec::new();
    for word in &phrase.words {
        if word.gap > 0 {
            clauses.push(json!({"span_gap": {field: word.gap}}));
        }
        clauses.push(json!({"span_term": {field: tokens::word_term(language, &word.word)}}));
    }
    json!({"span_near": {"clauses": clauses, "slop": 0, "in_order": true}})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::filter::Criteria;

    fn lowered(criteria: Json) -> Json {
        query(&Criteria::parse(&criteria.to_string()).expect("criteria").expression())
    }

    #[test]
    fn criteria_become_terms_prefixes_and_phrases() {
        let de = |property: &str, value: &str| json!([{"languageKey": "de", property: value}]);
        for (criteria, expected) in [
            (json!([]), json!({"match_all": {}})),
            (de("productName", "ab"), json!({"term": {"name_parts": "de:ab"}})),
            (de("productName", "a*?"), json!({"prefix": {"name_parts": "de:a*?"}})),
            (json!([{"productId": "A 1"}]), json!({"prefix": {"id_parts": ":a 1"}})),
            (json!([{"countryOfOrigin": "DE"}]), json!({"term": {"country": "DE"}})),
            (de("productTag", "\"a\""), json!({"match_phrase": {"tag_words": "de:a"}})),
            (de("keywords", "\"T-Shirt\""), json!({"match_phrase": {"keyword_words": "de:t de:shirt"}})),
            (
                json!([{"keywords": "\"a  b\""}]),
                json!({"span_near": {"slop": 0, "in_order": true, "clauses": [
                    {"span_term": {"keyword_words": "en:a"}}, {"span_gap": {"keyword_words": 2}},
                    {"span_term": {"keyword_words": "en:b"}}]}}),
            ),
            (de("productName", "-a"), json!({"bool": {"must_not": [{"term": {"name_parts": "de:a"}}]}})),
            (
                de("productName", "a -b or c"),
                json!({"bool": {"minimum_should_match": 1, "should": [
                    {"bool": {"filter": [{"term": {"name_parts": "de:a"}}], "must_not": [{"term": {"name_parts": "de:b"}}]}},
                    {"term": {"name_parts": "de:c"}}]}}),
            ),
        ] {
            assert_eq!(lowered(criteria.clone()), expected, "{criteria}");
        }
    }
}
