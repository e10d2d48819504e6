//! The terms under which Elasticsearch finds a product. The service makes them all, and Elasticsearch only compares.
//!
//! Every term begins with the language and a colon, so that one field serves every language. Of a text there are
//!
//! * parts: at every character of a run (characters without white space) the next one, the next two, and, where there
//!   are at least three, the next [`LONGEST_PART`]. A value of one or two characters is one of these terms; a longer
//!   one, up to that length, begins one of them: a substring is a prefix of a suffix. Of a value that is longer still
//!   every [`LONGEST_PART`] characters are a term wherever it occurs. That they all are terms of a text does not yet
//!   mean that it occurs there: what is found by them is compared with the product itself.
//! * words, with their positions, for phrases.
//!
//! Longer parts would answer longer values without that comparison, but nearly every one of them would be a term of
//! its own: with 24 characters the index has four times the size of the texts, with six less than twice.

use std::fmt::Write as _;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use crate::domain::filter::text;

/// Most characters of a part.
pub(super) const LONGEST_PART: usize = 6;
/// Fewest characters of a part that ends where its run ends; shorter ones are terms at every place.
const SHORTEST_SUFFIX: usize = 3;
/// Most parts that a longer value is looked for by.
const MAX_PARTS_OF_VALUE: usize = 8;
/// Most bytes of a word that is a term as it is. Elasticsearch's white-space analyzer cuts terms of more than 255
/// UTF-16 units, so that a longer word is known by its SHA-256.
const LONGEST_WORD: usize = 200;

/// Most bytes of a part that is kept as a number until it is written.
const PACKED_BYTES: usize = 15;

/// Appends the parts of runs of a language, each once, separated by blanks.
pub(super) fn push_parts<'a>(terms: &mut String, language: &str, runs: impl Iterator<Item = &'a str>) {
    let mut parts = Parts::default();
    for run in runs {
        parts.add_run(run);
    }
    parts.for_each(|part| {
        push_term_start(terms, language);
        push_visible(terms, part);
    });
}

/// Parts that may be there several times. A document has hundreds, and sorting texts would be half the work of indexing
/// it: those of a few bytes are kept as numbers, their bytes first and their length last.
#[derive(Default)]
struct Parts<'a> {
    packed: Vec<u128>,
    long: Vec<&'a str>,
    places: Vec<usize>,
}

impl<'a> Parts<'a> {
    fn add_run(&mut self, run: &'a str) {
        let mut places = std::mem::take(&mut self.places);
        boundaries(run, &mut places);
        let length = places.len() - 1;
        for begin in 0..length {
            let mut add = |characters: usize| self.add(&run[places[begin]..places[begin + characters]]);
            add(1);
            if begin + 2 <= length {
                add(2);
            }
            if begin + SHORTEST_SUFFIX <= length {
                add((length - begin).min(LONGEST_PART));
            }
        }
        self.places = places;
    }

    fn add(&mut self, part: &'a str) {
        if part.len() > PACKED_BYTES {
            self.long.push(part);
            return;
        }
        let mut bytes = [0; PACKED_BYTES + 1];
        bytes[..part.len()].copy_from_slice(part.as_bytes());
        bytes[PACKED_BYTES] = part.len() as u8;
        self.packed.push(u128::from_be_bytes(bytes));
    }

    /// Hands out every part once.
    fn for_each(mut self, mut each: impl FnMut(&str)) {
        self.packed.sort_unstable();
        self.packed.dedup();
        self.long.sort_unstable();
        self.long.dedup();
        for packed in self.packed {
            let bytes = packed.to_be_bytes();
            each(std::str::from_utf8(&bytes[..usize::from(bytes[PACKED_BYTES])]).unwrap_or_default());
        }
        self.long.into_iter().for_each(each);
    }
}

/// How a part is looked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PartQuery {
    /// A term.
    Term(String),
    /// The beginning of a term.
    Prefix(String),
    /// Terms that are all there where the value occurs, and may all be there where it does not.
    All(Vec<String>),
}

/// How a substring is looked for in a language.
pub(super) fn part_query(language: &str, value: &str) -> PartQuery {
    let mut places = Vec::new();
    boundaries(value, &mut places);
    let length = places.len() - 1;
    match length {
        0..SHORTEST_SUFFIX => PartQuery::Term(part_term(language, value)),
        SHORTEST_SUFFIX..=LONGEST_PART => PartQuery::Prefix(part_term(language, value)),
        _ => {
            // The first and the last, and others evenly between.
            let last = length - LONGEST_PART;
            let steps = last.min(MAX_PARTS_OF_VALUE - 1);
            let begins = (0..=steps).map(|step| last * step / steps);
            PartQuery::All(
                begins.map(|begin| part_term(language, &value[places[begin]..places[begin + LONGEST_PART]])).collect(),
            )
        }
    }
}

fn part_term(language: &str, part: &str) -> String {
    let mut term = format!("{language}:");
    push_visible(&mut term, part);
    term
}

/// Appends words in their order, separated by blanks.
pub(super) fn push_words<'a>(terms: &mut String, language: &str, words: impl Iterator<Item = &'a str>) {
    for word in words {
        push_term_start(terms, language);
        push_word(terms, word);
    }
}

/// The term of a word.
pub(super) fn word_term(language: &str, word: &str) -> String {
    let mut term = format!("{language}:");
    push_word(&mut term, word);
    term
}

/// The runs of a text that has white space between them.
pub(super) fn runs(text: &str) -> impl Iterator<Item = &str> {
    text::runs(text)
}

fn push_term_start(terms: &mut String, language: &str) {
    if !terms.is_empty() {
        terms.push(' ');
    }
    terms.push_str(language);
    terms.push(':');
}

fn push_word(terms: &mut String, word: &str) {
    if word.len() <= LONGEST_WORD {
        terms.push_str(word);
    } else {
        // No word begins with this sign.
        terms.push('#');
        terms.push_str(&HEXLOWER.encode(&Sha256::digest(word.as_bytes())));
    }
}

/// Appends a part so that the white-space analyzer does not take any of it for white space. It goes by Java's
/// `Character.isWhitespace`, which also holds for four separators that Unicode does not count as white space.
fn push_visible(terms: &mut String, part: &str) {
    let plain = |byte: u8| byte > b' ' && byte < 0x7f && byte != b'\\';
    if part.bytes().all(plain) {
        terms.push_str(part);
        return;
    }
    for character in part.chars() {
        match character {
            '\\' => terms.push_str("\\\\"),
            '\u{1c}'..='\u{1f}' => write!(terms, "\\{:x};", u32::from(character)).unwrap_or_default(),
            _ if character.is_whitespace() => write!(terms, "\\{:x};", u32::from(character)).unwrap_or_default(),
            _ => terms.push(character),
        }
    }
}

/// The bytes at which characters begin, and the end.
fn boundaries(run: &str, places: &mut Vec<usize>) {
    places.clear();
    places.extend(run.char_indices().map(|(at, _)| at));
    places.push(run.len());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    use super::*;

    #[test]
    fn parts_are_what_values_are_looked_for_by() {
        for (runs, expected) in [
            (&["rot"][..], "o ot r ro rot t"),
            (&["aaaa", "aaa"], "a aa aaa aaaa"),
            (&["äß"], "ß ä äß"),
            (&["日本語日本語"], "日 日本 日本語 本 本語 本語日本語 語 語日 語日本語 日本語日本語"),
            (&[], ""),
        ] {
            let mut terms = String::new();
            push_parts(&mut terms, "de", runs.iter().copied());
            let expected: Vec<String> = expected.split_whitespace().map(|part| format!("de:{part}")).collect();
            assert_eq!(terms, expected.join(" "));
        }
        assert_eq!(part_query("de", "ab"), PartQuery::Term("de:ab".to_owned()));
        assert_eq!(part_query("de", "abc"), PartQuery::Prefix("de:abc".to_owned()));
        assert_eq!(part_query("de", "abcdef"), PartQuery::Prefix("de:abcdef".to_owned()));
        let terms = ["de:abcdef", "de:bcdefg", "de:cdefgh"].map(str::to_owned);
        assert_eq!(part_query("de", "abcdefgh"), PartQuery::All(terms.to_vec()));
        let PartQuery::All(terms) = part_query("", &"0123456789".repeat(800)) else { panic!("a long value") };
        assert_eq!((terms.len(), terms[0].as_str(), terms[7].as_str()), (MAX_PARTS_OF_VALUE, ":012345", ":456789"));
    }

    #[test]
    fn no_term_holds_what_java_calls_white_space() {
        let mut terms = String::new();
        push_parts(&mut terms, "", std::iter::once("a\u{1c}\\ b"));
        assert_eq!(
            terms,
            [
                ":\\1c;",
                ":\\1c;\\\\",
                ":\\1c;\\\\\\20;b",
                ":\\20;",
                ":\\20;b",
                ":\\\\",
                ":\\\\\\20;",
                ":\\\\\\20;b",
                ":a",
                ":a\\1c;",
                ":a\\1c;\\\\\\20;b",
                ":b"
            ]
            .join(" ")
        );
        assert_eq!(part_query("", "\u{1c}\\ "), PartQuery::Prefix(":\\1c;\\\\\\20;".to_owned()));
    }

    #[test]
    fn a_long_word_is_known_by_its_digest() {
        let word = "ä".repeat(101);
        let term = word_term("de", &word);
        assert_eq!(term.len(), "de:#".len() + 64);
        assert_ne!(term, word_term("de", &"ä".repeat(102)));
        assert_eq!(word_term("de", &"ä".repeat(100)).len(), 203);
    }

    proptest! {
        #[test]
        fn a_value_is_found_by_its_query_wherever_it_occurs(run in "[abä\u{1c}\\\\]{1,40}", value in "[abä\u{1c}\\\\]{1,8}") {
            let mut terms = String::new();
            push_parts(&mut terms, "", std::iter::once(run.as_str()));
            let terms: Vec<&str> = terms.split(' ').collect();
            let occurs = run.contains(&value);
            match part_query("", &value) {
                PartQuery::Term(term) => prop_assert_eq!(terms.contains(&term.as_str()), occurs),
                PartQuery::Prefix(start) => {
                    prop_assert_eq!(terms.iter().any(|term| term.starts_with(&start)), occurs);
                }
                PartQuery::All(parts) => {
                    prop_assert!(!occurs || parts.iter().all(|part| terms.contains(&part.as_str())));
                }
            }
        }
    }
}
