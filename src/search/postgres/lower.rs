//! Lowers an expression to SQL over `search_documents`, with every value bound.

use sqlx::{Postgres, QueryBuilder};

use crate::domain::filter::{Expr, Field, Leaf, Phrase, Value};

/// Most words of a phrase that the trigram index is asked for; the rest is compared with the rows it finds.
const MAX_INDEXED_WORDS: usize = 8;
/// Most repetitions that a regular expression of PostgreSQL may ask for at once (its DUPMAX).
const MAX_REPETITIONS: usize = 255;

/// The columns of a field: texts by language, words by language, texts of all languages.
struct Columns {
    texts: &'static str,
    words: &'static str,
    all: &'static str,
}

fn columns(field: Field) -> Columns {
    match field {
        Field::Keywords => Columns { texts: "keyword_texts", words: "keyword_words", all: "all_keywords" },
        Field::Name => Columns { texts: "name_texts", words: "name_words", all: "all_names" },
        Field::Tags => Columns { texts: "tag_texts", words: "tag_words", all: "all_tags" },
    }
}

/// Appends a condition that is never null.
pub(super) fn push_condition(query: &mut QueryBuilder<Postgres>, expression: &Expr) {
    match expression {
        Expr::All(items) => push_joined(query, items, " and ", "true"),
        Expr::Any(items) => push_joined(query, items, " or ", "false"),
        Expr::Not(item) => {
            query.push("not ");
            push_condition(query, item);
        }
        Expr::Leaf(leaf) => push_leaf(query, leaf),
    }
}

fn push_joined(query: &mut QueryBuilder<Postgres>, items: &[Expr], joint: &str, of_none: &str) {
    query.push("(");
    for (i, item) in items.iter().enumerate() {
        query.push(if i == 0 { "" } else { joint });
        push_condition(query, item);
    }
    query.push(if items.is_empty() { of_none } else { "" }).push(")");
}

fn push_leaf(query: &mut QueryBuilder<Postgres>, leaf: &Leaf) {
    match leaf {
        Leaf::ProductId(part) => {
            query.push("id_text like ").push_bind(containing(part));
        }
        Leaf::Country(code) => {
            query.push("coalesce(country = ").push_bind(code.clone()).push(", false)");
        }
        Leaf::Text { field, language, value: Value::Plain(plain) } => {
            let columns = columns(*field);
            let pattern = containing(plain);
            // The column of all languages has the trigram index; the one of the language decides.
            query.push("(").push(columns.all).push(" like ").push_bind(pattern.clone());
            push_of_language(query, columns.texts, language);
            query.push(" like ").push_bind(pattern).push(", false))");
        }
        Leaf::Text { field, language, value: Value::Phrase(phrase) } => push_phrase(query, *field, language, phrase),
    }
}

/// Appends ` and coalesce(column ->> language`, to be compared and closed.
fn push_of_language(query: &mut QueryBuilder<Postgres>, column: &str, language: &str) {
    query.push(" and coalesce(").push(column).push(" ->> ").push_bind(language.to_owned());
}

fn push_phrase(query: &mut QueryBuilder<Postgres>, field: Field, language: &str, phrase: &Phrase) {
    let columns = columns(field);
    query.push("(true");
    for word in phrase.words.iter().take(MAX_INDEXED_WORDS) {
        query.push(" and ").push(columns.all).push(" like ").push_bind(containing(&word.word));
    }
    push_of_language(query, columns.words, language);
    if phrase.words.iter().all(|word| word.gap == 0) {
        let words: Vec<&str> = phrase.words.iter().map(|word| word.word.as_str()).collect();
        query.push(" like ").push_bind(containing(&format!(" {} ", words.join(" "))));
    } else {
        query.push(" ~ ").push_bind(regular_expression(phrase));
    }
    query.push(", false))");
}

/// A pattern of `like` for texts that contain this one.
fn containing(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len() + 2);
    pattern.push('%');
    for character in text.chars() {
        if matches!(character, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern.push('%');
    pattern
}

/// A regular expression for lines of words that contain a phrase with gaps. Nothing of a word is special in it.
fn regular_expression(phrase: &Phrase) -> String {
    let mut pattern = String::new();
    for word in &phrase.words {
        let mut gap = word.gap;
        while gap > 0 {
            let repeated = gap.min(MAX_REPETITIONS);
            pattern.push_str(&format!("( [^ \n]+){{{repeated}}}"));
            gap -= repeated;
        }
        pattern.push(' ');
        for character in word.word.chars() {
            if character.is_ascii_punctuation() {
                pattern.push('\\');
            }
            pattern.push(character);
        }
    }
    pattern.push(' ');
    pattern
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::filter::Criteria;

    fn lowered(element: serde_json::Value) -> String {
        let criteria = Criteria::parse(&json!([element]).to_string()).expect("criteria");
        let mut query = QueryBuilder::new("");
        push_condition(&mut query, &criteria.expression());
        query.into_string()
    }

    #[test]
    fn criteria_become_conditions_with_bound_values() {
        for (element, sql) in [
            (json!({"productId": "a'; drop"}), "id_text like $1"),
            (json!({"countryOfOrigin": "DE"}), "coalesce(country = $1, false)"),
            (
                json!({"productName": "a", "languageKey": "de"}),
                "(all_names like $1 and coalesce(name_texts ->> $2 like $3, false))",
            ),
            (
                json!({"productTag": "-a or \"b c\"", "languageKey": "de"}),
                "(not (all_tags like $1 and coalesce(tag_texts ->> $2 like $3, false)) or \
                 (true and all_tags like $4 and all_tags like $5 and coalesce(tag_words ->> $6 ~ $7, false)))",
            ),
            (
                json!({"keywords": "\"T-Shirt\""}),
                "(true and all_keywords like $1 and all_keywords like $2 and \
                 coalesce(keyword_words ->> $3 like $4, false))",
            ),
        ] {
            assert_eq!(lowered(element), sql);
        }
    }

    #[test]
    fn nothing_of_a_value_is_special_in_a_pattern() {
        assert_eq!(containing(r"50%_\x"), r"%50\%\_\\x%");
        let phrase = |text: &str| {
            let criteria = json!([{"keywords": text}]).to_string();
            let Expr::Leaf(Leaf::Text { value: Value::Phrase(phrase), .. }) =
                Criteria::parse(&criteria).expect("criteria").expression()
            else {
                panic!("a phrase")
            };
            regular_expression(&phrase)
        };
        assert_eq!(phrase("\"a.b c_d\""), " a\\.b( [^ \n]+){1} c\\_d ");
        let far = phrase(&format!("\"a{}b\"", " ".repeat(300)));
        assert_eq!(far, " a( [^ \n]+){255}( [^ \n]+){45} b ");
    }
}
