//! `learn-turns`: which words turn the class of goods that are otherwise alike, and which do not.
//!
//! Each row of the corpus is put beside rows that resemble it most: some of the same class, some of another. A logistic
//! regression over the words that stand in one of the two alone tells what each of them does: "Leder" and "Kunstleder"
//! turn the class, "blau" and "rot" leave it.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use rayon::prelude::*;
use vat_classification::classify::features::Extractor;
use vat_classification::classify::words::Language;
use vat_classification::classify::{Classifier, LanguageText, ProductText};

use crate::corpus;
use crate::fit;
use crate::random::Random;
use crate::rows::Row;

/// Rows of a kind that a row is put beside.
const BESIDE: usize = 4;
/// Similarity of rows that are put beside each other, 0 to 1: less is another good, more is the same text.
const SIMILARITY: (f32, f32) = (0.35, 0.995);
/// Most rows that are looked at by one word; what stands in more of them tells little.
const MAX_ROWS_OF_WORD: usize = 1_000;
/// Passes over the pairs.
const PASSES: usize = 3;
/// Length of the first step of a weight.
const STEP: f32 = 0.3;
/// How fast weights shrink that nothing speaks for.
const SHRINK: f32 = 1e-5;
/// Fewest pairs in which a word must differ.
const MIN_PAIRS: u32 = 12;
/// Least weight that is written, as log-odds.
const MIN_WEIGHT: f32 = 0.4;
/// Most words that are written.
const MAX_WORDS: usize = 8_000;

/// Options of `learn-turns`.
#[derive(Args)]
pub(crate) struct Options {
    /// Directory of the corpus.
    #[arg(long, default_value = "training/corpus")]
    pub(crate) corpus: PathBuf,
    /// The model, which knows compounds and rarity.
    #[arg(long, default_value = "models/classifier.bin")]
    pub(crate) model: PathBuf,
    /// Where the words are written.
    #[arg(long, default_value = "models/memory/turns.tsv")]
    pub(crate) out: PathBuf,
}

/// A row as words by weight.
type Words = Vec<(u32, f32)>;

/// Words in which two rows differ, and whether their classes do.
struct Pair {
    words: Vec<u32>,
    turned: bool,
}

/// What is known of a word.
#[derive(Clone, Copy, Default)]
struct Turn {
    weight: f32,
    squares: f32,
    pairs: u32,
}

/// Learns the words and writes them.
pub(crate) fn run(options: &Options) -> Result<()> {
    let classifier = Classifier::load(&options.model)?;
    let corpus = corpus::read(&options.corpus, &[])?;
    let rows: Vec<&Row> = corpus.rows.iter().filter(|row| row.code.digits() == 6).collect();
    let words: Vec<Words> = rows.par_iter().map(|row| words_of(&classifier, row.language, &row.name)).collect();
    let mut pairs = Vec::new();
    for language in [Language::German, Language::English] {
        let of_language: Vec<usize> = (0..rows.len()).filter(|at| rows[*at].language == language).collect();
        pairs.extend(beside(&rows, &words, &of_language));
    }
    let turned = pairs.iter().filter(|pair| pair.turned).count();
    eprintln!("{} rows, {} pairs, {turned} of them of two classes", rows.len(), pairs.len());
    let turns = learn(&mut pairs);
    let names = names(&classifier, &rows);
    let mut written: Vec<(u32, Turn)> = turns
        .into_iter()
        .filter(|(word, turn)| turn.pairs >= MIN_PAIRS && turn.weight.abs() >= MIN_WEIGHT && names.contains_key(word))
        .collect();
    let worth = |turn: &Turn| turn.weight.abs() * (turn.pairs as f32).ln();
    written.sort_by(|a, b| worth(&b.1).total_cmp(&worth(&a.1)).then(a.0.cmp(&b.0)));
    written.truncate(MAX_WORDS);
    written.sort_by(|a, b| names[&a.0].cmp(&names[&b.0]).then(a.0.cmp(&b.0)));
    let heading = "# Words that turn a class (above 0), and words that do not; made by `training learn-turns`.\n";
    let lines = written.iter().map(|(word, turn)| format!("{word:08x}\t{:.2}\t{}\n", turn.weight, names[word]));
    let text: String = std::iter::once(heading.to_owned()).chain(lines).collect();
    fit::write(&options.out, text.as_bytes())?;
    eprintln!("{}: {} words", options.out.display(), written.len());
    Ok(())
}

fn words_of(classifier: &Classifier, language: Language, name: &str) -> Words {
    let language = match language {
        Language::German => "de",
        Language::English => "en",
    };
    let text = LanguageText { language, name: Some(name), ..LanguageText::default() };
    classifier.words(&ProductText { languages: vec![text] })
}

/// Puts each row beside those that resemble it most.
fn beside(rows: &[&Row], words: &[Words], of: &[usize]) -> Vec<Pair> {
    let mut with_word: HashMap<u32, Vec<u32>> = HashMap::new();
    for at in of {
        words[*at].iter().for_each(|(word, _)| with_word.entry(*word).or_default().push(*at as u32));
    }
    let pairs = |at: &usize| {
        let mut shared: HashMap<u32, f32> = HashMap::new();
        for (word, weight) in &words[*at] {
            let all = &with_word[word];
            // Others each time, so that not all rows are put beside the same ones.
            let step = all.len().div_ceil(MAX_ROWS_OF_WORD);
            all.iter()
                .skip(at % step)
                .step_by(step)
                .for_each(|other| *shared.entry(*other).or_default() += weight * weight);
        }
        let mut near: Vec<(f32, usize)> = shared
            .into_iter()
            .filter(|(other, weight)| *other as usize != *at && *weight >= SIMILARITY.0 / 2.0)
            .map(|(other, _)| (similarity(&words[*at], &words[other as usize]), other as usize))
            .filter(|(similarity, _)| (SIMILARITY.0..SIMILARITY.1).contains(similarity))
            .collect();
        near.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let kind = |turned: bool| {
            let of_kind = near.iter().filter(move |(_, other)| (rows[*other].code != rows[*at].code) == turned);
            of_kind.take(BESIDE).map(move |(_, other)| Pair { words: apart(&words[*at], &words[*other]), turned })
        };
        kind(true).chain(kind(false)).collect::<Vec<Pair>>()
    };
    of.par_iter().flat_map_iter(pairs).collect()
}

fn similarity(one: &[(u32, f32)], other: &[(u32, f32)]) -> f32 {
    let weight = |word: u32| other.iter().find(|(known, _)| *known == word).map_or(0.0, |(_, weight)| *weight);
    one.iter().map(|(word, own)| own * weight(*word)).sum()
}

fn apart(one: &[(u32, f32)], other: &[(u32, f32)]) -> Vec<u32> {
    let only = |one: &[(u32, f32)], other: &[(u32, f32)]| {
        let alone = one.iter().map(|(word, _)| *word).filter(|word| !other.iter().any(|(known, _)| known == word));
        alone.collect::<Vec<u32>>()
    };
    let mut words = only(one, other);
    words.extend(only(other, one));
    words
}

/// Weights of a logistic regression: log-odds that a word turns the class.
fn learn(pairs: &mut [Pair]) -> BTreeMap<u32, Turn> {
    let mut turns: HashMap<u32, Turn> = HashMap::new();
    pairs.iter().flat_map(|pair| &pair.words).for_each(|word| turns.entry(*word).or_default().pairs += 1);
    let mut bias = Turn::default();
    let mut random = Random(1);
    let step = |turn: &mut Turn, error: f32| {
        let slope = error + SHRINK * turn.weight;
        turn.squares += slope * slope;
        turn.weight -= STEP * slope / (turn.squares.sqrt() + 1e-6);
    };
    for pass in 0..PASSES {
        random.mix(pairs);
        let mut loss = 0.0;
        for pair in pairs.iter() {
            let logit = bias.weight + pair.words.iter().map(|word| turns[word].weight).sum::<f32>();
            let chance = (1.0 + (-logit).exp()).recip();
            let error = chance - f32::from(u8::from(pair.turned));
            loss -= f64::from(if pair.turned { chance } else { 1.0 - chance }.max(1e-6)).ln();
            step(&mut bias, error);
            for word in &pair.words {
                if let Some(turn) = turns.get_mut(word) {
                    step(turn, error);
                }
            }
        }
        eprintln!("pass {pass}: loss {:.4}", loss / pairs.len().max(1) as f64);
    }
    turns.into_iter().collect()
}

/// For each hash the shortest word of the corpus that has it first.
fn names(classifier: &Classifier, rows: &[&Row]) -> HashMap<u32, String> {
    let mut extractor = Extractor::default();
    let mut all: Vec<(Language, String)> = Vec::new();
    for row in rows {
        all.extend(extractor.content_words(&row.name).map(|word| (row.language, word.to_owned())));
    }
    all.sort_unstable_by(|a, b| {
        (a.1.len(), &a.1, a.0 == Language::English).cmp(&(b.1.len(), &b.1, b.0 == Language::English))
    });
    all.dedup();
    let mut names = HashMap::new();
    for (language, word) in all {
        for (hash, _) in words_of(classifier, language, &word) {
            names.entry(hash).or_insert_with(|| word.clone());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_differ_where_classes_do_turn_and_others_do_not() {
        let (turning, idle) = (7, 9);
        let mut pairs: Vec<Pair> = (0..400)
            .map(|at| match at % 4 {
                0 => Pair { words: vec![turning, 100 + at], turned: true },
                1 => Pair { words: vec![turning, idle], turned: true },
                _ => Pair { words: vec![idle], turned: false },
            })
            .collect();
        let turns = learn(&mut pairs);
        assert!(
            turns[&turning].weight > 1.0 && turns[&idle].weight < -0.4,
            "{} {}",
            turns[&turning].weight,
            turns[&idle].weight
        );
        assert_eq!(turns[&turning].pairs, 200);
        assert_eq!(apart(&[(1, 0.5), (2, 0.5)], &[(2, 0.5), (3, 0.5)]), [1, 3]);
    }
}
