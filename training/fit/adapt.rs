//! Fits the ranker's coefficients to listings that shops wrote.
//!
//! Rows of the corpus teach which evidence tells candidates apart, but they are tidier than listings, so that some evidence
//! weighs too much: how near the nearest row is, for one. The coefficients of the corpus are where this fit begins, and a
//! penalty keeps it near them. What it adds is kept in a small file, by which `fit` needs no listing.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use rayon::prelude::*;

/// Strength of the penalty on the distance from the coefficients of the corpus, beside the sum over all texts. Between 0.3
/// and 5 it made no difference on sources that had no part in the fit (2026-11-22).
const PENALTY: f64 = 2.0;
/// Steps of gradient descent over all texts.
const STEPS: usize = 400;
/// Size of a step (Adam).
const STEP: f64 = 0.05;
/// Texts whose slopes are added up on one core.
const CHUNK: usize = 128;

/// A text with the dense features of its candidates.
pub(crate) struct Choice {
    /// The features of each candidate.
    pub(crate) candidates: Vec<Vec<f32>>,
    /// Indices of those that are right, at least one.
    pub(crate) right: Vec<usize>,
}

/// What is to be added to the coefficients of the corpus, so that the right candidates of the texts are likeliest.
pub(crate) fn differences(corpus: &[f32], choices: &[Choice]) -> Vec<f32> {
    let mut added = vec![0.0f64; corpus.len()];
    let (mut mean, mut square) = (vec![0.0; corpus.len()], vec![0.0; corpus.len()]);
    for step in 1..=STEPS {
        let weights: Vec<f64> = corpus.iter().zip(&added).map(|(weight, added)| f64::from(*weight) + added).collect();
        let (mean_share, square_share) = (1.0 - 0.9f64.powi(step as i32), 1.0 - 0.999f64.powi(step as i32));
        for (index, slope) in slopes(&weights, choices).into_iter().enumerate() {
            let slope = (slope + 2.0 * PENALTY * added[index]) / choices.len().max(1) as f64;
            mean[index] = 0.9 * mean[index] + 0.1 * slope;
            square[index] = 0.999 * square[index] + 0.001 * slope * slope;
            let (m, s): (f64, f64) = (mean[index] / mean_share, square[index] / square_share);
            added[index] -= STEP * m / (s.sqrt() + 1e-8);
        }
    }
    // Rounded as the file has them, so that `fit` comes to the same model.
    added.into_iter().map(|added| rounded(added as f32)).collect()
}

/// Slopes of the sum of the negative logarithms of the right candidates' shares.
fn slopes(weights: &[f64], choices: &[Choice]) -> Vec<f64> {
    let of_chunk = |choices: &[Choice]| {
        let mut slopes = vec![0.0; weights.len()];
        choices.iter().for_each(|choice| add_slopes(weights, choice, &mut slopes));
        slopes
    };
    // Sums of chunks are added in their order, so that the same texts give the same slopes.
    let chunks: Vec<Vec<f64>> = choices.par_chunks(CHUNK).map(of_chunk).collect();
    let mut slopes = vec![0.0; weights.len()];
    chunks.into_iter().for_each(|chunk| slopes.iter_mut().zip(chunk).for_each(|(sum, slope)| *sum += slope));
    slopes
}

fn add_slopes(weights: &[f64], choice: &Choice, slopes: &mut [f64]) {
    let logit = |dense: &Vec<f32>| dense.iter().zip(weights).map(|(x, w)| f64::from(*x) * w).sum::<f64>();
    let logits: Vec<f64> = choice.candidates.iter().map(logit).collect();
    let highest = logits.iter().copied().fold(f64::MIN, f64::max);
    let shares: Vec<f64> = logits.iter().map(|logit| (logit - highest).exp()).collect();
    let total: f64 = shares.iter().sum();
    let of_right: f64 = choice.right.iter().map(|&at| shares[at]).sum::<f64>().max(f64::MIN_POSITIVE);
    for (at, (dense, share)) in choice.candidates.iter().zip(&shares).enumerate() {
        let truth = if choice.right.contains(&at) { share / of_right } else { 0.0 };
        let error = share / total - truth;
        slopes.iter_mut().zip(dense).for_each(|(slope, x)| *slope += error * f64::from(*x));
    }
}

/// The coefficients with what listings add; those of the corpus where there is nothing, or of another width.
pub(crate) fn applied(corpus: &[f32], added: &[f32]) -> Vec<f32> {
    if added.len() != corpus.len() {
        return corpus.to_vec();
    }
    corpus.iter().zip(added).map(|(weight, added)| weight + added).collect()
}

/// Reads what is added, a number a line; an absent file is nothing.
pub(crate) fn read(path: &Path) -> Result<Vec<f32>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let numbers = text.lines().enumerate().filter(|(_, line)| !line.starts_with('#'));
    let numbers = numbers.map(|(index, line)| {
        let number = line.parse::<f32>().with_context(|| format!("{}:{}: no number", path.display(), index + 1))?;
        ensure!(number.is_finite(), "{}:{}: no number", path.display(), index + 1);
        Ok(number)
    });
    numbers.collect()
}

/// Writes what is added.
pub(crate) fn write(path: &Path, added: &[f32]) -> Result<()> {
    let heading = "# what listings of shops add to the coefficients of the ranker, in the order of its features; see training/fit/adapt.rs\n";
    let lines: String = added.iter().map(|added| format!("{added:.4}\n")).collect();
    fs::write(path, heading.to_owned() + &lines).with_context(|| path.display().to_string())
}

fn rounded(value: f32) -> f32 {
    (value * 10_000.0).round() / 10_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts in which the second feature tells the right candidate, and the first one misleads.
    fn choices() -> Vec<Choice> {
        let one = |at: usize| Choice {
            candidates: vec![vec![1.0, 0.0], vec![0.0, 1.0], vec![0.5, at as f32 / 100.0]],
            right: vec![1],
        };
        (0..50).map(one).collect()
    }

    #[test]
    fn what_misleads_in_listings_loses_weight() {
        let corpus = [3.0, 0.5];
        let added = differences(&corpus, &choices());
        assert!(added[0] < -0.5 && added[1] > 0.5, "{added:?}");
        let weights = applied(&corpus, &added);
        assert!(weights[1] > weights[0], "{weights:?}");
        assert_eq!(added, differences(&corpus, &choices()), "the same texts give the same coefficients");
    }

    #[test]
    fn without_listings_or_with_those_of_another_model_the_corpus_alone_counts() {
        assert_eq!(differences(&[3.0, 0.5], &[]), [0.0, 0.0]);
        assert_eq!(applied(&[3.0, 0.5], &[]), [3.0, 0.5]);
        assert_eq!(applied(&[3.0, 0.5], &[1.0]), [3.0, 0.5]);
    }

    #[test]
    fn what_was_written_is_read_back_and_faults_are_named() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("ranker.tsv");
        assert_eq!(read(&path).expect("an absent file"), Vec::<f32>::new());
        let added = differences(&[3.0, 0.5], &choices());
        write(&path, &added).expect("written");
        assert_eq!(read(&path).expect("read"), added);
        std::fs::write(&path, "# heading\n1.5\nx\n").expect("written");
        assert!(read(&path).expect_err("a fault").to_string().contains("ranker.tsv:3"));
    }
}
