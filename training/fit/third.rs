//! Fits the third voice: linfa's multinomial logistic regression over the directions of texts in the space of words, from
//! the directions of headings that the words were turned with.

use std::collections::HashMap;

use anyhow::{Context, Result, ensure};
use linfa::Dataset;
use linfa::traits::Fit;
use linfa_logistic::MultiLogisticRegression;
use ndarray::{Array1, Array2, Axis};
use rayon::prelude::*;
use vat_classification::classify::Classifier;
use vat_classification::classify::voices::DIMENSIONS;

use super::Sample;
use super::learn::Tree;
use super::tune::Headings;

/// Most rows of a heading and language: the regression is dense, and more rows cost more than they teach.
const MAX_ROWS_OF_HEADING: usize = 24;
/// Strength of the penalty on coefficients; linfa multiplies it to a sum over all rows.
const ALPHA: f32 = 0.05;
/// Iterations of a round: linfa's fit may stop early, so it is restarted from where it stood.
const ITERATIONS: u64 = 12;
/// Most rounds.
const ROUNDS: usize = 2;
/// A round that improves the loss by less than this share is the last.
const MIN_GAIN: f64 = 5e-3;
/// Score of a heading without rows.
const NEVER: f32 = -20.0;

/// Weights as the model file has them: a row over all headings for each dimension, and one of intercepts.
pub(crate) fn fit(tree: &Tree, classifier: &Classifier, samples: &[&Sample], headings: &Headings) -> Result<Vec<f32>> {
    let chosen = choose(tree, samples);
    let directions: Vec<Option<[f32; DIMENSIONS]>> =
        chosen.par_iter().map(|(_, sample)| classifier.direction(&sample.text())).collect();
    let rows: Vec<(usize, [f32; DIMENSIONS])> =
        chosen.iter().zip(directions).filter_map(|((heading, _), direction)| Some((*heading, direction?))).collect();
    ensure!(!rows.is_empty(), "no rows to fit the third voice on");
    let records = Array2::from_shape_fn((rows.len(), DIMENSIONS), |(row, at)| rows[row].1[at]);
    let targets: Array1<usize> = rows.iter().map(|(heading, _)| *heading).collect();
    let mut classes = targets.to_vec();
    classes.sort_unstable();
    classes.dedup();
    let mut parameters = headings.select(Axis(1), &classes);
    let dataset = Dataset::new(records, targets);
    let mut best = loss(&dataset.records, &rows, &classes, &parameters);
    let before = best;
    for _ in 0..ROUNDS {
        let fitted = MultiLogisticRegression::default()
            .alpha(ALPHA)
            .max_iterations(ITERATIONS)
            .gradient_tolerance(1e-3)
            .initial_params(parameters.clone())
            .fit(&dataset)
            .context("the fit of the third voice failed")?;
        let mut next = Array2::zeros((DIMENSIONS + 1, classes.len()));
        next.slice_mut(ndarray::s![..DIMENSIONS, ..]).assign(fitted.params());
        next.row_mut(DIMENSIONS).assign(fitted.intercept());
        let after = loss(&dataset.records, &rows, &classes, &next);
        if after.is_nan() || after > best {
            break;
        }
        let gain = (best - after) / best;
        (parameters, best) = (next, after);
        if gain < MIN_GAIN {
            break;
        }
    }
    eprintln!("          third voice: {} rows, loss {before:.4} to {best:.4}", rows.len());
    ensure!(best < before, "the fit of the third voice did not improve on what it began with");
    let mut weights = vec![0.0; (DIMENSIONS + 1) * tree.headings.len()];
    weights[DIMENSIONS * tree.headings.len()..].fill(NEVER);
    for (at, &heading) in classes.iter().enumerate() {
        for row in 0..=DIMENSIONS {
            weights[row * tree.headings.len() + heading] = parameters[[row, at]];
        }
    }
    Ok(weights)
}

/// Rows with their headings, evenly spread over those of a heading and language.
fn choose<'s>(tree: &Tree, samples: &[&'s Sample]) -> Vec<(usize, &'s Sample)> {
    let mut by_heading: HashMap<_, Vec<&Sample>> = HashMap::new();
    for sample in samples {
        let headings = tree.headings_of(&tree.under(&sample.code));
        if headings.len() == 1 {
            by_heading.entry((headings.start, sample.language)).or_default().push(sample);
        }
    }
    let mut chosen: Vec<(usize, &Sample)> = Vec::new();
    for ((heading, _), rows) in by_heading {
        let count = rows.len().min(MAX_ROWS_OF_HEADING);
        chosen.extend((0..count).map(|at| (heading, rows[at * rows.len() / count])));
    }
    chosen.sort_by(|a, b| (a.0, a.1.language, &a.1.name).cmp(&(b.0, b.1.language, &b.1.name)));
    chosen
}

/// Mean negative log-likelihood, computed safely: linfa's own takes one maximum for all rows.
fn loss(
    records: &Array2<f32>,
    rows: &[(usize, [f32; DIMENSIONS])],
    classes: &[usize],
    parameters: &Array2<f32>,
) -> f64 {
    let weights = parameters.slice(ndarray::s![..DIMENSIONS, ..]);
    let scores = records.dot(&weights) + parameters.row(DIMENSIONS);
    let of_row = |(scores, (heading, _)): (ndarray::ArrayView1<'_, f32>, &(usize, [f32; DIMENSIONS]))| {
        let highest = scores.iter().copied().fold(f32::MIN, f32::max);
        let total: f32 = scores.iter().map(|score| (score - highest).exp()).sum();
        let own = classes.binary_search(heading).map_or(highest, |at| scores[at]);
        f64::from(total.ln() + highest - own)
    };
    scores.rows().into_iter().zip(rows).map(of_row).sum::<f64>() / rows.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::SampleKind;

    #[test]
    fn a_heading_gives_at_most_its_share_of_rows_spread_over_all() {
        let tree = Tree::new(&[10110, 10190, 610910]);
        let sample = |code: &str, at: usize| Sample {
            code: vat_classification::domain::ClassCode::new(code).expect("digits"),
            language: vat_classification::classify::words::Language::German,
            name: format!("{at:04}"),
            description: None,
            tags: Vec::new(),
            bucket: 0,
            group: at as u64,
            kind: SampleKind::Written,
        };
        let many = (0..10 * MAX_ROWS_OF_HEADING).map(|at| sample("0101", at));
        let samples: Vec<Sample> = many.chain([sample("610910", 7), sample("01", 8), sample("61", 9)]).collect();
        let chosen = choose(&tree, &samples.iter().collect::<Vec<_>>());
        // A chapter of one heading is that heading.
        assert_eq!(chosen.iter().filter(|(heading, _)| *heading == 1).count(), 2);
        let first: Vec<&str> = chosen.iter().filter(|row| row.0 == 0).map(|(_, sample)| sample.name.as_str()).collect();
        assert_eq!(first.len(), MAX_ROWS_OF_HEADING);
        assert!(first.last().is_some_and(|last| *last > "0200") && first[0] == "0000", "{first:?}");
    }
}
