//! Fits the ranker: linfa's logistic regression over the dense features of candidates.

use anyhow::{Context, Result, ensure};
use linfa::Dataset;
use linfa::traits::Fit;
use linfa_logistic::LogisticRegression;
use ndarray::{Array1, Array2};
use rayon::prelude::*;
use vat_classification::classify::Classifier;

use super::{Sample, prepared};

/// Most rows of a code, so that templates do not drown what people wrote.
const MAX_ROWS_OF_CODE: usize = 6;
/// Most candidates of a text, the right one aside.
const MAX_CANDIDATES: usize = 12;
/// Strength of the penalty on coefficients; linfa multiplies it to a sum over all rows.
const ALPHA: f32 = 1.0;
/// Iterations of a round: linfa's fit may stop early, so it is restarted from where it stood.
const ITERATIONS: u64 = 25;
/// Most rounds.
const ROUNDS: usize = 6;
/// A round that improves the loss by less than this share is the last.
const MIN_GAIN: f64 = 1e-4;
/// Largest slope of the mean loss, per coefficient, at which a fit counts as done.
const MAX_SLOPE: f64 = 0.02;

/// Coefficients for the dense features of a candidate.
pub(crate) fn fit(classifier: &Classifier, samples: &[&Sample]) -> Result<Vec<f32>> {
    let rows = prepared(samples, MAX_ROWS_OF_CODE);
    let described: Vec<_> = rows.par_iter().map(|row| (row.code, classifier.describe(&row.text()))).collect();
    let (mut values, mut right) = (Vec::new(), Vec::new());
    let mut width = 0;
    for (code, described) in &described {
        // Without the right one among them, the candidates teach nothing about telling them apart.
        if !described.candidates.iter().any(|(candidate, _)| candidate == code) {
            continue;
        }
        // Candidates come best first; those far behind teach nothing that the others do not.
        let near = |(at, (candidate, _)): &(usize, &(_, Vec<f32>))| *at < MAX_CANDIDATES || candidate == code;
        for (_, (candidate, dense)) in described.candidates.iter().enumerate().filter(near) {
            width = dense.len();
            values.extend_from_slice(dense);
            right.push(candidate == code);
        }
    }
    ensure!(!right.is_empty(), "no rows to fit the ranker on");
    eprintln!("          {} texts, {} candidates", described.len(), right.len());
    let records = Array2::from_shape_vec((right.len(), width), values).context("candidates of different width")?;
    logistic(records, right)
}

/// Coefficients of a logistic regression, the intercept left out: it does not tell candidates of one text apart.
fn logistic(records: Array2<f32>, right: Vec<bool>) -> Result<Vec<f32>> {
    let targets = Array1::from_vec(right);
    let dataset = Dataset::new(records, targets);
    let mut parameters = Array1::<f32>::zeros(dataset.records.ncols() + 1);
    let (mut best, mut slope) = loss(&dataset.records, &dataset.targets, &parameters);
    // linfa calls the larger class positive, which is the wrong candidates; its coefficients are for that class.
    let mut sign = 1.0;
    for _ in 0..ROUNDS {
        let fitted = LogisticRegression::default()
            .alpha(ALPHA)
            .max_iterations(ITERATIONS)
            .gradient_tolerance(1e-4)
            .initial_params(&parameters * sign)
            .fit(&dataset)
            .context("the fit of the ranker failed")?;
        sign = if fitted.labels().pos.class { 1.0 } else { -1.0 };
        let next: Array1<f32> = fitted.params().iter().chain([&fitted.intercept()]).map(|value| value * sign).collect();
        let (after, after_slope) = loss(&dataset.records, &dataset.targets, &next);
        if after.is_nan() || after > best {
            break;
        }
        let gain = (best - after) / best;
        (parameters, best, slope) = (next, after, after_slope);
        if gain < MIN_GAIN {
            break;
        }
    }
    eprintln!("          loss {best:.5}, slope {slope:.5}");
    ensure!(slope < MAX_SLOPE, "the fit of the ranker did not converge: slope {slope}");
    Ok(parameters.iter().take(dataset.records.ncols()).copied().collect())
}

/// Mean loss and norm of its gradient.
fn loss(records: &Array2<f32>, right: &Array1<bool>, parameters: &Array1<f32>) -> (f64, f64) {
    let width = records.ncols();
    let mut slopes = vec![0.0f64; width + 1];
    let mut total = 0.0f64;
    for (record, &right) in records.rows().into_iter().zip(right) {
        let logit: f32 = record.iter().zip(parameters).map(|(x, w)| x * w).sum::<f32>() + parameters[width];
        let (logit, truth) = (f64::from(logit), f64::from(right));
        total += if logit > 0.0 {
            (-logit).exp().ln_1p() + logit * (1.0 - truth)
        } else {
            logit.exp().ln_1p() - logit * truth
        };
        let error = 1.0 / (1.0 + (-logit).exp()) - truth;
        for (slope, &x) in slopes.iter_mut().zip(record) {
            *slope += error * f64::from(x);
        }
        slopes[width] += error;
    }
    let count = records.nrows() as f64;
    (total / count, slopes.iter().map(|slope| (slope / count).powi(2)).sum::<f64>().sqrt())
}
