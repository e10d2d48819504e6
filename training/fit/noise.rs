//! Makes rows of the corpus as untidy as real listings: words missing, words of other goods and unknown words among them.
//!
//! Ranker and calibration see such rows beside the tidy ones; without them confidence is too high on texts of real shops.

use super::Prepared;
use super::Sample;
use crate::random::Random;

/// Probability that a word is missing. This and the two below are so high since confidence was too high with less: on
/// texts of other writers, answers given at 80 % were right in 60 %.
const MISSING: f32 = 0.5;
/// Probability that the longest word, often the noun that names the good, is one that stands in no corpus.
const NEW_GOOD: f32 = 0.8;
/// Probability that a foreign word is added, tried this many times.
const FOREIGN: f32 = 0.4;
const FOREIGN_TRIES: usize = 6;
/// Probability that it stands before the others, as the words do by which a good is described; behind them it would
/// often be another good that has the first one's name, as in "shoe rack".
const FOREIGN_AT_FRONT: f32 = 0.9;
/// Rows that are tried for a word of the same language; nearly half of all are of it.
const BORROWING_TRIES: usize = 16;
/// Share of foreign words that stand in no corpus, as brands do.
const UNKNOWN: f32 = 0.65;

/// An untidy copy of a row; words are borrowed from `others`.
pub(crate) fn untidy(sample: &Sample, others: &[&Sample], random: &mut Random) -> Prepared {
    let mut words: Vec<String> = Vec::new();
    let longest = sample.name.split_whitespace().max_by_key(|word| word.len()).unwrap_or_default();
    let is_new_good = random.unit() < NEW_GOOD;
    for word in sample.name.split_whitespace() {
        if is_new_good && word == longest {
            words.push(invented(random));
        } else if random.unit() >= MISSING {
            words.push(word.to_owned());
        }
    }
    for _ in 0..FOREIGN_TRIES {
        if random.unit() >= FOREIGN {
            continue;
        }
        let word = if random.unit() < UNKNOWN { Some(invented(random)) } else { borrowed(others, sample, random) };
        let at = if random.unit() < FOREIGN_AT_FRONT { 0 } else { words.len() };
        words.splice(at..at, word);
    }
    Prepared { name: words.join(" "), ..Prepared::plain(sample) }
}

/// A word of another row of the same language.
fn borrowed(others: &[&Sample], sample: &Sample, random: &mut Random) -> Option<String> {
    for _ in 0..BORROWING_TRIES {
        let other = others[(random.next() % others.len() as u64) as usize];
        let words: Vec<&str> = other.name.split_whitespace().collect();
        if other.language == sample.language && !words.is_empty() {
            return Some(words[(random.next() % words.len() as u64) as usize].to_owned());
        }
    }
    None
}

/// A word like a brand, of syllables.
fn invented(random: &mut Random) -> String {
    const CONSONANTS: &[u8] = b"bdfghjklmnprstvwxz";
    const VOWELS: &[u8] = b"aeiou";
    let mut pick = |letters: &[u8]| char::from(letters[(random.next() % letters.len() as u64) as usize]);
    let mut word = String::new();
    for _ in 0..3 {
        word.push(pick(CONSONANTS));
        word.push(pick(VOWELS));
    }
    word
}

#[cfg(test)]
mod tests {
    use vat_classification::classify::words::Language;
    use vat_classification::domain::ClassCode;

    use super::super::SampleKind;
    use super::*;

    #[test]
    fn untidy_rows_lose_words_and_gain_others_of_their_language_and_keep_what_is_beside_the_name() {
        let sample = |language, name: &str| Sample {
            code: ClassCode::new("610910").expect("digits"),
            language,
            name: name.to_owned(),
            description: Some("soft jersey".to_owned()),
            tags: vec!["Tops".to_owned()],
            bucket: 1,
            group: 1,
            kind: SampleKind::Written,
        };
        let samples = [
            sample(Language::English, "basic undershirt men"),
            sample(Language::English, "kettle"),
            sample(Language::German, "Wasserkocher"),
        ];
        let others: Vec<&Sample> = samples.iter().collect();
        let rows = |seed| -> Vec<Prepared> {
            let mut random = Random(seed);
            (0..500).map(|_| untidy(&samples[0], &others, &mut random)).collect()
        };
        let names = |rows: &[Prepared]| rows.iter().map(|row| row.name.clone()).collect::<Vec<_>>();
        let untidied = rows(1);
        let with = |word: &str| untidied.iter().filter(|row| row.name.split(' ').any(|one| one == word)).count();
        // The longest word is nearly always another one, the others are missing in half of the rows.
        assert!((20..160).contains(&with("undershirt")), "{}", with("undershirt"));
        assert!((180..330).contains(&with("basic")) && with("kettle") > 20, "{} {}", with("basic"), with("kettle"));
        assert_eq!(with("Wasserkocher"), 0);
        assert!(untidied.iter().all(|row| row.description.as_deref() == Some("soft jersey") && row.tags == ["Tops"]));
        assert_eq!(names(&untidied), names(&rows(1)));
        assert_ne!(names(&untidied), names(&rows(2)));
    }
}
