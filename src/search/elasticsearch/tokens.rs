//! The terms under which Elasticsearch finds a product. The service makes them all, and Elasticsearch only compares.
//!
//! Every term begins with the language and a colon, so that one field serves every language. Of a text there are
//!
//! * parts: at every character of a run (characters without white space) the next one, the next two, and, where there
//!   are at least three, the next [`LONGEST_PART`]. A value of one or two characters is one of these terms; a longer
//!   one, up to that length, begins one of them: a substring is a prefix of a suffix.
//! * trigrams of runs longer than that, with their positions: a value longer than a part is a phrase of trigrams.
//! * words, with their positions, for phrases.

use std::fmt::Write as _;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use crate::domain::filter::text;

/// Most characters of a part.
pub(super) const LONGEST_PART: usize = 24;
/// Fewest characters of a part that ends where its run ends; shorter ones are terms at every place.
const SHORTEST_SUFFIX: usize = 3;
/// Most bytes of a word that is a term as it is. Elasticsearch's white-space analyzer cuts terms of more than 255
/// UTF-16 units, so that a longer word is known by its SHA-256.
const LONGEST_WORD: usize = 200;
/// Characters in a gram of a long run.
const GRAM: usize = 3;

/// The parts of runs, each once.
pub(super) fn parts<'a>(runs: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut parts = Vec::new();
    let mut places = Vec::new();
    for run in runs {
        boundaries(run, &mut places);
        let length = places.len() - 1;
        for begin in 0..length {
            let mut add = |characters: usize| parts.push(&run[places[begin]..places[begin + characters]]);
            add(1);
            if begin + 2 <= length {
                add(2);
            }
            if begin + SHORTEST_SUFFIX <= length {
                add((length - begin).min(LONGEST_PART));
            }
        }
    }
    parts.sort_unstable();
    parts.dedup();
    parts
}

/// How a part is looked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PartQuery {
    /// A term.
    Term(String),
    /// The beginning of a term.
    Prefix(String),
    /// Trigrams that follow each other, separated by blanks.
    Grams(String),
}

/// How a substring is looked for in a language.
pub(super) fn part_query(language: &str, value: &str) -> PartQuery {
    match value.chars().count() {
        0..SHORTEST_SUFFIX => PartQuery::Term(format!("{language}:{value}")),
        SHORTEST_SUFFIX..=LONGEST_PART => PartQuery::Prefix(format!("{language}:{value}")),
        _ => {
            let mut grams = String::new();
            push_grams(&mut grams, language, value);
            PartQuery::Grams(grams)
        }
    }
}

/// Whether a run has trigrams, since it may hold values that are longer than a part.
pub(super) fn is_long(run: &str) -> bool {
    run.chars().nth(LONGEST_PART).is_some()
}

/// Appends the trigrams of a run in their order, separated by blanks.
pub(super) fn push_grams(grams: &mut String, language: &str, run: &str) {
    let mut places = Vec::new();
    boundaries(run, &mut places);
    for window in places.windows(GRAM + 1) {
        push_term_start(grams, language);
        for character in run[window[0]..window[GRAM]].chars() {
            push_visible(grams, character);
        }
    }
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

/// Appends a character so that the white-space analyzer does not take it for white space. It goes by Java's
/// `Character.isWhitespace`, which also holds for four separators that Unicode does not count as white space.
fn push_visible(terms: &mut String, character: char) {
    match character {
        '\\' => terms.push_str("\\\\"),
        '\u{1c}'..='\u{1f}' => write!(terms, "\\{:x};", u32::from(character)).unwrap_or_default(),
        _ if character.is_whitespace() => write!(terms, "\\{:x};", u32::from(character)).unwrap_or_default(),
        _ => terms.push(character),
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
    use proptest::prelude::{prop_assert_eq, proptest};

    use super::*;

    #[test]
    fn parts_are_what_values_are_looked_for_by() {
        assert_eq!(parts(["rot"].into_iter()), ["o", "ot", "r", "ro", "rot", "t"]);
        assert_eq!(parts(["aaaa", "aaa"].into_iter()), ["a", "aa", "aaa", "aaaa"]);
        assert_eq!(parts(["äß"].into_iter()), ["ß", "ä", "äß"]);
        assert_eq!(parts(std::iter::empty()), Vec::<&str>::new());
        assert_eq!(part_query("de", "ab"), PartQuery::Term("de:ab".to_owned()));
        assert_eq!(part_query("de", "abc"), PartQuery::Prefix("de:abc".to_owned()));
        assert_eq!(part_query("de", &"a".repeat(24)), PartQuery::Prefix(format!("de:{}", "a".repeat(24))));
        let grams = vec!["de:aaa"; 23].join(" ");
        assert_eq!(part_query("de", &"a".repeat(25)), PartQuery::Grams(grams));
    }

    #[test]
    fn no_term_holds_what_java_calls_white_space() {
        let mut grams = String::new();
        push_grams(&mut grams, "", "a\u{1c}\\ b");
        assert_eq!(grams, ":a\\1c;\\\\ :\\1c;\\\\\\20; :\\\\\\20;b");
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
        fn a_value_up_to_the_longest_part_is_found_by_its_query(run in "[abä]{1,40}", value in "[abä]{1,24}") {
            let parts = parts([run.as_str()].into_iter());
            let found = match part_query("", &value) {
                PartQuery::Term(term) => parts.contains(&&term[1..]),
                PartQuery::Prefix(start) => {
                    parts.iter().any(|part| part.chars().count() >= SHORTEST_SUFFIX && part.starts_with(&start[1..]))
                }
                PartQuery::Grams(_) => false,
            };
            prop_assert_eq!(found, run.contains(&value));
        }
    }
}
