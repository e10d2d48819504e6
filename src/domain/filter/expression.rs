//! Parses the expression inside a value.

use crate::domain::filter::text;
use crate::domain::filter::value::{Phrase, PhraseWord, Term, Value, ValueExpression};

/// A mistake in an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mistake {
    /// Where, in bytes of the value's NFKC form.
    pub(super) at: usize,
    /// What is wrong, and how to write it.
    pub(super) message: &'static str,
}

const BLANK: &str = "the value is empty";
const OR_FIRST: &str = "\"or\" needs a value before it; quote it to look for the word: \\\"or\\\"";
const OR_LAST: &str = "\"or\" needs a value behind it; quote it to look for the word: \\\"or\\\"";
const OPEN_QUOTE: &str = "the quote is never closed";
const QUOTE_END: &str = "the closing quote must be followed by white space or the end";
const NO_WORDS: &str = "the quotes hold no word";

/// What stands between white space: a term, or the word `or`.
enum Token {
    Or(usize),
    Term(Term),
}

/// Parses a value that is in NFKC but not yet folded. Time is linear in its length.
pub(super) fn parse(value: &str) -> Result<ValueExpression, Mistake> {
    let mut groups: Vec<Vec<Term>> = Vec::new();
    let mut group = Vec::new();
    let mut last_or = None;
    let mut rest = Rest { value, at: 0 };
    while let Some(token) = rest.token()? {
        match token {
            Token::Or(at) if group.is_empty() => return Err(Mistake { at, message: OR_FIRST }),
            Token::Or(at) => {
                groups.push(std::mem::take(&mut group));
                last_or = Some(at);
            }
            Token::Term(term) => group.push(term),
        }
    }
    if group.is_empty() {
        return Err(match last_or {
            Some(at) => Mistake { at, message: OR_LAST },
            None => Mistake { at: 0, message: BLANK },
        });
    }
    groups.push(group);
    Ok(ValueExpression { groups })
}

/// What is left of a value.
struct Rest<'a> {
    value: &'a str,
    at: usize,
}

impl<'a> Rest<'a> {
    fn left(&self) -> &'a str {
        &self.value[self.at..]
    }

    fn token(&mut self) -> Result<Option<Token>, Mistake> {
        self.at += self.left().len() - self.left().trim_start().len();
        let begin = self.at;
        let left = self.left();
        if left.is_empty() {
            return Ok(None);
        }
        // A dash alone is a plain value.
        let negated = left.starts_with('-') && !left[1..].chars().next().is_none_or(char::is_whitespace);
        self.at += usize::from(negated);
        if self.left().starts_with('"') {
            let phrase = self.phrase()?;
            return Ok(Some(Token::Term(Term { negated, value: Value::Phrase(phrase) })));
        }
        let run = self.left().split(char::is_whitespace).next().unwrap_or_default();
        self.at += run.len();
        if !negated && run.eq_ignore_ascii_case("or") {
            return Ok(Some(Token::Or(begin)));
        }
        Ok(Some(Token::Term(Term { negated, value: Value::Plain(text::fold(run)) })))
    }

    /// A phrase, from its opening quote to behind its closing one.
    fn phrase(&mut self) -> Result<Phrase, Mistake> {
        let open = self.at;
        let inner = &self.value[open + 1..];
        let Some(length) = inner.find('"') else { return Err(Mistake { at: open, message: OPEN_QUOTE }) };
        let inner = &inner[..length];
        self.at = open + 1 + length + 1;
        if self.left().chars().next().is_some_and(|next| !next.is_whitespace()) {
            return Err(Mistake { at: self.at, message: QUOTE_END });
        }
        let mut end = 0;
        let mut words = Vec::new();
        for (begin, length, word) in text::words_with_places(inner) {
            let between = &inner[end..begin];
            let gap = if words.is_empty() { 0 } else { between.chars().filter(|c| c.is_whitespace()).count() };
            words.push(PhraseWord { gap, word });
            end = begin + length;
        }
        if words.is_empty() { Err(Mistake { at: open, message: NO_WORDS }) } else { Ok(Phrase { words }) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Writes an expression out: groups joined by ` | `, `!` for negation, phrases as `[a 1 b]` with their gaps.
    fn shown(value: &str) -> Result<String, usize> {
        let expression = parse(&text::nfkc(value)).map_err(|mistake| mistake.at)?;
        let term = |term: &Term| {
            let value = match &term.value {
                Value::Plain(plain) => plain.clone(),
                Value::Phrase(phrase) => {
                    let word = |(i, word): (usize, &PhraseWord)| {
                        if i == 0 { word.word.clone() } else { format!(" {} {}", word.gap, word.word) }
                    };
                    format!("[{}]", phrase.words.iter().enumerate().map(word).collect::<String>())
                }
            };
            if term.negated { format!("!{value}") } else { value }
        };
        let group = |group: &Vec<Term>| group.iter().map(term).collect::<Vec<_>>().join(" ");
        Ok(expression.groups.iter().map(group).collect::<Vec<_>>().join(" | "))
    }

    #[test]
    fn expressions_mean_what_the_contract_says() {
        for (value, meaning) in [
            ("a b or c", "a b | c"),
            ("a or -b", "a | !b"),
            (r#"a -"b c""#, "a ![b 1 c]"),
            ("t-shirt", "t-shirt"),
            (r#"24""#, r#"24""#),
            (r#"a"b"#, r#"a"b"#),
            ("-", "-"),
            ("a - b", "a - b"),
            ("-a", "!a"),
            ("--a", "!-a"),
            ("--", "!-"),
            ("a -or b", "a !or b"),
            ("a OR b oR c", "a | b | c"),
            ("orange nor or more", "orange nor | more"),
            (r#""or""#, "[or]"),
            (r#"a "or" b"#, "a [or] b"),
            (r#""a b""#, "[a 1 b]"),
            (r#""a  b""#, "[a 2 b]"),
            (r#"" a ""#, "[a]"),
            (r#""a""#, "[a]"),
            (r#""T-Shirt""#, "[t 0 shirt]"),
            (r#""a - b""#, "[a 2 b]"),
            (r#""a, b""#, "[a 1 b]"),
            (r#""a b" "c""#, "[a 1 b] [c]"),
            ("Ä\u{2003}B", "ä b"),
            ("Ａ ｏｒ ＂ｂ＂", "a | [b]"),
            ("“a b”", "“a b”"),
            ("a\tb\nc", "a b c"),
            ("* ? .* \\", "* ? .* \\"),
        ] {
            assert_eq!(shown(value).as_deref(), Ok(meaning), "{value}");
        }
    }

    #[test]
    fn mistakes_are_found_where_they_are() {
        for (value, at) in [
            ("", 0),
            ("  \t", 0),
            ("or a", 0),
            ("or", 0),
            ("a or", 2),
            ("a or or b", 5),
            (r#""a"#, 0),
            (r#"b -"a"#, 3),
            (r#""a"b"#, 3),
            (r#""a""b""#, 3),
            (r#""""#, 0),
            (r#"x ".""#, 2),
            (r#"" ""#, 0),
        ] {
            assert_eq!(shown(value), Err(at), "{value}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(value in "\\PC*|[-a\" or\t]{0,40}") {
            let _ = parse(&text::nfkc(&value));
        }

        #[test]
        fn every_plain_value_is_free_of_white_space(value in "[-a\" or\tÄ]{0,40}") {
            for term in parse(&value).into_iter().flat_map(|parsed| parsed.groups).flatten() {
                if let Value::Plain(plain) = term.value {
                    prop_assert!(!plain.is_empty() && !plain.contains(char::is_whitespace));
                }
            }
        }
    }
}
