//! Fits how sure memory is: linfa's logistic regression over what memory weighed in streams that were reviewed.

use anyhow::{Context, Result, ensure};
use linfa::Dataset;
use linfa::traits::Fit;
use linfa_logistic::LogisticRegression;
use ndarray::{Array1, Array2};
use vat_classification::domain::Precision;
use vat_classification::memory::{Confidence, EVIDENCE, Evidence, NAMES};

use super::simulate::Outcome;
use super::streams::Truth;
use crate::random::Random;

/// Most rows of a stream at a checkpoint, so that no shop drowns the others.
const MAX_ROWS: usize = 500;
/// The same of a stream of the corpus, whose goods are not all in one shop.
const MAX_CORPUS_ROWS: usize = 100;
/// Strength of the penalty on coefficients.
const ALPHA: f32 = 1.0;
const ITERATIONS: u64 = 500;
/// Fewest decisions from which the share of right ones is told.
const MIN_DECISIONS: usize = 200;

/// Evidence, and whether the class is right.
type Row = (Evidence, bool);

/// Some of the outcomes of one stream at one checkpoint.
pub(super) fn rows(truth: Truth, outcomes: &[Outcome]) -> Vec<Row> {
    let most = if truth == Truth::Corpus { MAX_CORPUS_ROWS } else { MAX_ROWS };
    let mut rows: Vec<Row> =
        outcomes.iter().filter_map(|outcome| outcome.recalled).map(|(evidence, _, right)| (evidence, right)).collect();
    let mut random = Random(rows.len() as u64);
    while rows.len() > most {
        rows.swap_remove(random.next() as usize % rows.len());
    }
    rows
}

/// Coefficients from rows; the limits are still to be set.
pub(super) fn fit(rows: &[Row]) -> Result<Confidence> {
    ensure!(rows.iter().any(|row| row.1) && rows.iter().any(|row| !row.1), "nothing to tell right from wrong by");
    // The first piece of evidence is always 1: linfa has an intercept of its own.
    let width = EVIDENCE - 1;
    let mut records = Array2::from_shape_fn((rows.len(), width), |(row, at)| rows[row].0.0[at + 1]);
    // What the model says for the class and for another one weighs the same: where it says nothing it must not count
    // against what people decided, and goods that it does not know are rare in streams.
    let (model, other) = (place("model")?, place("model-other")?);
    for mut record in records.rows_mut() {
        record[model] -= record[other];
        record[other] = 0.0;
    }
    let mean: Vec<f32> = records.columns().into_iter().map(|column| column.sum() / rows.len() as f32).collect();
    let mut spread = Vec::with_capacity(width);
    for (mut column, mean) in records.columns_mut().into_iter().zip(&mean) {
        column.mapv_inplace(|x| x - mean);
        let deviation = (column.iter().map(|x| x * x).sum::<f32>() / rows.len() as f32).sqrt().max(1e-3);
        column.mapv_inplace(|x| x / deviation);
        spread.push(deviation);
    }
    let targets = Array1::from_iter(rows.iter().map(|row| row.1));
    let fitted = LogisticRegression::default()
        .alpha(ALPHA)
        .max_iterations(ITERATIONS)
        .gradient_tolerance(1e-4)
        .fit(&Dataset::new(records, targets))
        .context("the fit failed")?;
    // linfa calls one of the two positive.
    let sign = if fitted.labels().pos.class { 1.0 } else { -1.0 };
    let mut confidence = Confidence::default();
    confidence.weights[0] = sign * fitted.intercept();
    for (at, weight) in fitted.params().iter().enumerate() {
        confidence.weights[at + 1] = sign * weight / spread[at];
        confidence.weights[0] -= sign * weight / spread[at] * mean[at];
    }
    confidence.weights[other + 1] = -confidence.weights[model + 1];
    Ok(confidence)
}

/// Where a piece of evidence stands among those behind the first.
fn place(name: &str) -> Result<usize> {
    NAMES[1..].iter().position(|known| *known == name).with_context(|| format!("nothing called {name} is weighed"))
}

/// The lowest confidence for each precision: of all that are at least as sure as many are right as it promises, and none is
/// less sure than that itself, since listings differ more from stream to stream than a fit can tell.
pub(super) fn set_limits(confidence: &mut Confidence, rows: &[Row]) {
    let mut sure: Vec<(f32, bool)> = rows.iter().map(|(evidence, right)| (confidence.of(evidence), *right)).collect();
    sure.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (limit, precision) in confidence.limits.iter_mut().zip(Precision::ALL) {
        *limit = lowest(&sure, precision.share()).max(precision.share() as f32);
    }
}

fn lowest(sure: &[(f32, bool)], promised: f64) -> f32 {
    let (mut right, mut limit) = (0, 1.0);
    for (at, (confidence, is_right)) in sure.iter().enumerate() {
        right += usize::from(*is_right);
        if at + 1 >= MIN_DECISIONS && right as f64 >= promised * (at + 1) as f64 {
            limit = *confidence;
        }
    }
    limit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tells_right_from_wrong_gets_weight_and_limits_keep_what_they_promise() {
        let mut random = Random(7);
        let row = |_| {
            let (useful, useless) = (random.unit(), random.unit());
            let mut evidence = Evidence::default();
            evidence.0[..3].copy_from_slice(&[1.0, useful, useless]);
            (evidence, random.unit() < useful)
        };
        let rows: Vec<Row> = (0..4000).map(row).collect();
        let mut confidence = fit(&rows).expect("fitted");
        assert!(confidence.weights[1] > 3.0 && confidence.weights[2].abs() < 0.5, "{confidence:?}");
        set_limits(&mut confidence, &rows);
        assert!(confidence.limits.is_sorted(), "{confidence:?}");
        let sure: Vec<&Row> = rows.iter().filter(|row| confidence.of(&row.0) >= confidence.limits[0]).collect();
        let right = sure.iter().filter(|row| row.1).count() as f64 / sure.len() as f64;
        assert!(right >= 0.9, "{right}");
    }
}
