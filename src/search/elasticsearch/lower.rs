//! Lowers an expression to a query of Elasticsearch. Every value becomes terms, a prefix or a phrase of terms; none
//! reaches a wildcard or a regular expression.
//!
//! A value longer than a part is not known exactly, only between two bounds: wherever it occurs all its parts are
//! terms, and wherever it is a word of its own it occurs. So an expression has two queries, one that finds everything
//! that satisfies it and perhaps more, and one that finds nothing else and perhaps less; a negation takes the other one
//! of what it negates. Searches ask the first.

use serde_json::{Value as Json, json};

use crate::domain::filter::{Expr, Field, Leaf, Phrase, Value};
use crate::search::elasticsearch::tokens::{self, PartQuery};

/// The language under which product ids are kept.
pub(super) const ID_LANGUAGE: &str = "";
/// What the names of the parts and words of product names begin with.
pub(super) const NAME: &str = "name";
/// The same of descriptions.
pub(super) const DESCRIPTION: &str = "description";
/// The same of tags.
pub(super) const TAG: &str = "tag";

/// What Elasticsearch is asked for an expression.
pub(super) struct Lowered {
    /// Finds every product that satisfies the expression.
    pub(super) query: Json,
    /// Whether it finds no other; else what it finds is to be compared with the products.
    pub(super) exact: bool,
}

#[derive(Clone, Copy)]
enum Bound {
    /// All that satisfy, and perhaps more.
    Upper,
    /// None but those that satisfy, and perhaps not all.
    Lower,
}

/// The query of an expression.
pub(super) fn lower(expression: &Expr) -> Lowered {
    let mut lowering = Lowering { exact: true };
    let query = lowering.query(expression, Bound::Upper);
    Lowered { query, exact: lowering.exact }
}

struct Lowering {
    exact: bool,
}

impl Bound {
    fn other(self) -> Bound {
        match self {
            Bound::Upper => Bound::Lower,
            Bound::Lower => Bound::Upper,
        }
    }
}

impl Lowering {
    fn query(&mut self, expression: &Expr, bound: Bound) -> Json {
        match expression {
            Expr::All(items) if items.is_empty() => json!({"match_all": {}}),
            Expr::All(items) => {
                let (mut filter, mut must_not) = (Vec::new(), Vec::new());
                for item in items {
                    match item {
                        Expr::Not(inner) => must_not.push(self.query(inner, bound.other())),
                        item => filter.push(self.query(item, bound)),
                    }
                }
                json!({"bool": {"filter": filter, "must_not": must_not}})
            }
            Expr::Any(items) => any(items.iter().map(|item| self.query(item, bound)).collect()),
            Expr::Not(item) => json!({"bool": {"must_not": [self.query(item, bound.other())]}}),
            Expr::Leaf(leaf) => self.leaf(leaf, bound),
        }
    }

    fn leaf(&mut self, leaf: &Leaf, bound: Bound) -> Json {
        match leaf {
            Leaf::Country(code) => json!({"term": {"country": code}}),
            Leaf::ProductId(part) => self.substring("id", ID_LANGUAGE, part, bound),
            Leaf::Text { field, language, value } => any(fields(*field)
                .iter()
                .map(|field| match value {
                    Value::Plain(plain) => self.substring(field, language, plain, bound),
                    Value::Phrase(phrase) => words(&format!("{field}_words"), language, phrase),
                })
                .collect()),
        }
    }

    fn substring(&mut self, field: &str, language: &str, value: &str, bound: Bound) -> Json {
        let parts = format!("{field}_parts");
        match (tokens::part_query(language, value), bound) {
            (PartQuery::Term(term), _) => json!({"term": {parts: term}}),
            (PartQuery::Prefix(start), _) => json!({"prefix": {parts: start}}),
            (PartQuery::All(terms), Bound::Upper) => {
                self.exact = false;
                let terms: Vec<Json> = terms.into_iter().map(|term| json!({"term": {parts.as_str(): term}})).collect();
                json!({"bool": {"filter": terms}})
            }
            (PartQuery::All(_), Bound::Lower) => {
                self.exact = false;
                match field {
                    // Ids are not kept by words.
                    "id" => json!({"match_none": {}}),
                    _ => json!({"term": {format!("{field}_words"): tokens::word_term(language, value)}}),
                }
            }
        }
    }
}

/// What is kept of a field, each for itself: what is asked of keywords is asked of two.
fn fields(field: Field) -> &'static [&'static str] {
    match field {
        Field::Keywords => &[NAME, DESCRIPTION],
        Field::Name => &[NAME],
        Field::Tags => &[TAG],
    }
}

fn any(mut queries: Vec<Json>) -> Json {
    match queries.len() {
        0 => json!({"match_none": {}}),
        1 => queries.remove(0),
        _ => json!({"bool": {"should": queries, "minimum_should_match": 1}}),
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

    fn lowered(criteria: Json) -> (Json, bool) {
        let lowered = lower(&Criteria::parse(&criteria.to_string()).expect("criteria").expression());
        (lowered.query, lowered.exact)
    }

    #[test]
    fn criteria_become_terms_prefixes_and_phrases() {
        let de = |property: &str, value: &str| json!([{"languageKey": "de", property: value}]);
        for (criteria, expected) in [
            (json!([]), json!({"match_all": {}})),
            (de("productName", "ab"), json!({"term": {"name_parts": "de:ab"}})),
            (de("productName", "a*?"), json!({"prefix": {"name_parts": "de:a*?"}})),
            (json!([{"productId": "A 1"}]), json!({"prefix": {"id_parts": ":a\\20;1"}})),
            (json!([{"countryOfOrigin": "DE"}]), json!({"term": {"country": "DE"}})),
            (de("productTag", "\"a\""), json!({"match_phrase": {"tag_words": "de:a"}})),
            (
                de("keywords", "\"T-Shirt\""),
                json!({"bool": {"minimum_should_match": 1, "should": [
                    {"match_phrase": {"name_words": "de:t de:shirt"}},
                    {"match_phrase": {"description_words": "de:t de:shirt"}}]}}),
            ),
            (
                de("productName", "\"a  b\""),
                json!({"span_near": {"slop": 0, "in_order": true, "clauses": [
                    {"span_term": {"name_words": "de:a"}}, {"span_gap": {"name_words": 2}},
                    {"span_term": {"name_words": "de:b"}}]}}),
            ),
            (de("productName", "-a"), json!({"bool": {"must_not": [{"term": {"name_parts": "de:a"}}]}})),
            (
                de("productName", "a -b or c"),
                json!({"bool": {"minimum_should_match": 1, "should": [
                    {"bool": {"filter": [{"term": {"name_parts": "de:a"}}], "must_not": [{"term": {"name_parts": "de:b"}}]}},
                    {"term": {"name_parts": "de:c"}}]}}),
            ),
        ] {
            assert_eq!(lowered(criteria.clone()), (expected, true), "{criteria}");
        }
    }

    #[test]
    fn a_long_value_is_looked_for_by_its_parts_and_kept_out_by_its_word() {
        let de = |value: &str| lowered(json!([{"languageKey": "de", "productTag": value}]));
        let parts =
            json!({"bool": {"filter": [{"term": {"tag_parts": "de:lederh"}}, {"term": {"tag_parts": "de:ederho"}}]}});
        assert_eq!(de("Lederho"), (parts, false));
        let word = json!({"term": {"tag_words": "de:lederho"}});
        assert_eq!(de("-Lederho"), (json!({"bool": {"must_not": [word]}}), false));
        let (query, exact) = lowered(json!([{"productId": "abcdefg"}]));
        assert_eq!((query["bool"]["filter"].as_array().map(Vec::len), exact), (Some(2), false));
    }
}
