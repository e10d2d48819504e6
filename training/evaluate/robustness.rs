//! Whether the answer stays when only the spelling changes.

use std::collections::BTreeMap;

use rayon::prelude::*;
use vat_classification::classify::{Classifier, LanguageText, ProductText};
use vat_classification::domain::ClassCode;

use super::{Case, percent};

/// Fewest letters of the word in which a typo is made.
const MIN_TYPO_LETTERS: usize = 6;
/// Fewest words of a text with a typo.
const MIN_TYPO_WORDS: usize = 3;

/// Kinds of spelling and how each respells a name; none when it does not apply.
const SPELLINGS: [(&str, Respell); 5] = [
    ("capital letters", capitals),
    ("umlauts as two letters", without_umlauts),
    ("dash for joint or blank", dash_apart),
    ("dash left out", dash_joined),
    ("two letters swapped in one word of three or more", typo),
];

/// Respells a name; none when that kind of spelling does not apply to it.
type Respell = fn(&str) -> Option<String>;

/// Pairs and how many of them have the same heading first, by kind of spelling.
pub(crate) type Kept = BTreeMap<&'static str, (usize, usize)>;

/// Respells the names of cases and counts how often the best heading stays.
pub(crate) fn measure(classifier: &Classifier, cases: &[Case]) -> Kept {
    let of_case = |case: &Case| {
        let before = heading(classifier, &case.language, &case.name)?;
        let respelt = SPELLINGS.iter().filter_map(|(kind, respell)| Some((*kind, respell(&case.name)?)));
        let kept = |(kind, name): (&'static str, String)| {
            (kind, heading(classifier, &case.language, &name).is_some_and(|after| after == before))
        };
        Some(respelt.filter(|(_, name)| *name != case.name).map(kept).collect::<Vec<_>>())
    };
    let all: Vec<(&'static str, bool)> = cases.par_iter().filter_map(of_case).flatten_iter().collect();
    let mut counts = Kept::new();
    for (kind, is_kept) in all {
        let count = counts.entry(kind).or_default();
        count.0 += 1;
        count.1 += usize::from(is_kept);
    }
    counts
}

/// Prints the share of kept headings by kind.
pub(crate) fn print(kept: &Kept) {
    for (kind, (pairs, kept)) in kept {
        println!("{:>5.1} % of {pairs} pairs keep their heading: {kind}", percent(*kept, *pairs));
    }
}

fn heading(classifier: &Classifier, language: &str, name: &str) -> Option<ClassCode> {
    let text = ProductText { languages: vec![LanguageText { language, name: Some(name), ..LanguageText::default() }] };
    classifier.rank(&text).roll_up(4).first().map(|best| best.code)
}

fn capitals(name: &str) -> Option<String> {
    Some(name.to_uppercase())
}

fn without_umlauts(name: &str) -> Option<String> {
    let pairs = [("ä", "ae"), ("ö", "oe"), ("ü", "ue"), ("Ä", "Ae"), ("Ö", "Oe"), ("Ü", "Ue"), ("ß", "ss")];
    Some(pairs.iter().fold(name.to_owned(), |name, (umlaut, letters)| name.replace(umlaut, letters)))
}

fn dash_apart(name: &str) -> Option<String> {
    dash(name, " ")
}

fn dash_joined(name: &str) -> Option<String> {
    dash(name, "")
}

/// Replaces the first dash between two words of at least three letters.
fn dash(name: &str, by: &str) -> Option<String> {
    let (at, _) = name.match_indices('-').find(|(at, _)| {
        let word = |text: &str| text.chars().take_while(|c| c.is_alphabetic()).count() >= 3;
        let before: String = name[..*at].chars().rev().collect();
        word(&before) && word(&name[at + 1..])
    })?;
    Some(format!("{}{by}{}", &name[..at], name[at + 1..].to_lowercase()))
}

/// Swaps two letters in the middle of the longest word.
fn typo(name: &str) -> Option<String> {
    let words: Vec<&str> = name.split(' ').collect();
    if words.iter().filter(|word| word.chars().all(char::is_alphabetic)).count() < MIN_TYPO_WORDS {
        return None;
    }
    let longest =
        *words.iter().filter(|word| word.bytes().all(|b| b.is_ascii_alphabetic())).max_by_key(|word| word.len())?;
    if longest.len() < MIN_TYPO_LETTERS {
        return None;
    }
    let mut letters: Vec<char> = longest.chars().collect();
    let middle = letters.len() / 2;
    letters.swap(middle, middle + 1);
    Some(name.replacen(longest, &letters.into_iter().collect::<String>(), 1))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn names_are_respelt_as_described() {
        for (respell, name, expected) in [
            (capitals as Respell, "Tee süß", Some("TEE SÜSS")),
            (without_umlauts, "Öl für Räder", Some("Oel fuer Raeder")),
            (dash_apart, "Baby-Schlafsack rot", Some("Baby schlafsack rot")),
            (dash_joined, "Baby-Schlafsack rot", Some("Babyschlafsack rot")),
            (dash_apart, "T-Shirt", None),
            (typo, "rote Damen Jacken", Some("rote Damen Jacekn")),
            (typo, "Jacke", None),
        ] {
            assert_eq!(respell(name).as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn the_model_of_the_repository_keeps_nine_of_ten_headings_when_spelling_varies() {
        const LEAST: f64 = 90.0;
        const PAIRS: usize = 200;
        const EVERY: usize = 16;
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let classifier = Classifier::load(&root.join("models/classifier.bin")).expect("the model");
        let cases = super::super::held_out(&root.join("training/corpus"), &root.join("models/taxonomy/hs2022"));
        let cases = cases.expect("the corpus");
        let cases: Vec<Case> = cases.into_iter().step_by(EVERY).collect();
        let kept = measure(&classifier, &cases);
        let (pairs, same) = kept.values().fold((0, 0), |all, count| (all.0 + count.0, all.1 + count.1));
        assert!(pairs < PAIRS || percent(same, pairs) >= LEAST, "{kept:?}");
    }
}
