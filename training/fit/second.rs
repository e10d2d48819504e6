//! Learns the second voice: a multinomial over headings, from zero, over the pairs of feature and heading that occur.
//!
//! The first voice begins as a profile, which holds strong opinions about rare words from the start; this one begins with
//! none, and so doubts where the first is sure.

use std::ops::Range;

use rayon::prelude::*;
use vat_classification::classify::voices::exponential;

use super::learn::{Rows, Tree};
use crate::random::Random;

/// Rounds over all rows.
const ROUNDS: usize = 4;
/// Rows whose gradients are computed from the same weights.
const BATCH: usize = 256;
/// Step of a weight whose gradients were small so far.
const STEP: f32 = 0.5;
/// What is added to the root of the gradients' squares.
const DAMPING: f32 = 0.05;
/// Gradients below this are not worth a step.
const MIN_GRADIENT: f32 = 1e-3;
/// Weights below this are not kept.
const MIN_WEIGHT: f32 = 0.7;

/// Weights by feature, in compressed rows.
#[derive(Default)]
pub(crate) struct Second {
    starts: Vec<usize>,
    headings: Vec<u16>,
    weights: Vec<f32>,
}

impl Second {
    /// Headings of a feature, by index, with the weights worth keeping.
    pub(crate) fn of(&self, feature: usize) -> impl Iterator<Item = (u16, f32)> + '_ {
        let range = match self.starts.get(feature..feature + 2) {
            Some(&[start, end]) => start..end,
            _ => 0..0,
        };
        let pairs = range.map(|at| (self.headings[at], self.weights[at]));
        pairs.filter(|(_, weight)| weight.abs() >= MIN_WEIGHT)
    }

    fn range(&self, feature: u32) -> Range<usize> {
        self.starts[feature as usize]..self.starts[feature as usize + 1]
    }

    /// Zero for every pair that occurs.
    fn zeros(targets: &[Range<usize>], rows: &Rows, features: usize) -> Second {
        let mut pairs: Vec<(u32, u16)> = Vec::new();
        for (vector, target) in rows.vectors.iter().zip(targets) {
            for &(feature, _) in vector {
                pairs.extend(target.clone().map(|heading| (feature, heading as u16)));
            }
        }
        pairs.par_sort_unstable();
        pairs.dedup();
        let mut starts = vec![0; features + 1];
        for &(feature, _) in &pairs {
            starts[feature as usize + 1] += 1;
        }
        for feature in 0..features {
            starts[feature + 1] += starts[feature];
        }
        let headings: Vec<u16> = pairs.into_iter().map(|(_, heading)| heading).collect();
        Second { starts, weights: vec![0.0; headings.len()], headings }
    }
}

/// Learns the weights; the same rows give the same weights.
pub(crate) fn learn(tree: &Tree, rows: &Rows, features: usize) -> Second {
    let targets: Vec<Range<usize>> = rows.targets.iter().map(|target| tree.headings_of(target)).collect();
    let mut second = Second::zeros(&targets, rows, features);
    let mut squares = vec![0.0f32; second.weights.len()];
    let mut order: Vec<usize> = (0..rows.vectors.len()).collect();
    let mut random = Random(3);
    for round in 0..ROUNDS {
        random.mix(&mut order);
        let step = STEP * (1.0 - round as f32 / ROUNDS as f32);
        for batch in order.chunks(BATCH) {
            let one = |scores: &mut Vec<f32>, &row: &usize| gradient(&second, rows, &targets[row], row, scores);
            let buffer = || vec![0.0f32; tree.headings.len()];
            let gradients: Vec<Vec<(u32, f32)>> = batch.par_iter().map_init(buffer, one).collect();
            for (at, gradient) in gradients.into_iter().flatten() {
                let at = at as usize;
                squares[at] += gradient * gradient;
                second.weights[at] -= step * gradient / (squares[at].sqrt() + DAMPING);
            }
        }
    }
    second
}

/// Gradient of a row's loss: index of the weight, slope. All headings compete, those without a weight with a score of 0.
fn gradient(second: &Second, rows: &Rows, target: &Range<usize>, row: usize, scores: &mut [f32]) -> Vec<(u32, f32)> {
    scores.fill(0.0);
    for &(feature, x) in &rows.vectors[row] {
        for at in second.range(feature) {
            scores[usize::from(second.headings[at])] += x * second.weights[at];
        }
    }
    let highest = scores.iter().copied().fold(f32::MIN, f32::max);
    scores.iter_mut().for_each(|score| *score = exponential(*score - highest));
    let total: f32 = scores.iter().sum();
    let of_target: f32 = scores[target.clone()].iter().sum::<f32>().max(1e-12);
    for (heading, share) in scores.iter_mut().enumerate() {
        // Where the heading is open, the truth is spread over those of the target as the model believes.
        let truth = if target.contains(&heading) { *share / of_target } else { 0.0 };
        *share = *share / total - truth;
    }
    let mut gradients = Vec::new();
    for &(feature, x) in &rows.vectors[row] {
        for at in second.range(feature) {
            let error = scores[usize::from(second.headings[at])];
            if error.abs() > MIN_GRADIENT {
                gradients.push((at as u32, error * x * rows.weights[row]));
            }
        }
    }
    gradients
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four headings with a leaf each, and rows whose feature of the same number names them; feature 4 is everywhere.
    fn rows(tree: &Tree) -> Rows {
        let vectors = (0..40u32).map(|row| vec![(row % 4, 0.8), (4, 0.6)]).collect::<Vec<_>>();
        let targets = (0..40usize).map(|row| row % 4..row % 4 + 1).collect();
        assert_eq!(tree.headings.len(), 4);
        Rows { weights: vec![1.0; vectors.len()], vectors, targets }
    }

    #[test]
    fn a_word_speaks_for_its_heading_alone_and_one_that_is_everywhere_for_none() {
        let tree = Tree::new(&[10110, 20110, 30110, 40110]);
        let second = learn(&tree, &rows(&tree), 5);
        for feature in 0..4 {
            let heard: Vec<(u16, f32)> = second.of(feature).collect();
            assert!(
                matches!(heard[..], [(heading, weight)] if usize::from(heading) == feature && weight > 1.0),
                "{heard:?}"
            );
        }
        assert_eq!(second.of(4).count(), 0);
        assert_eq!(second.of(5).count(), 0);
        let again = learn(&tree, &rows(&tree), 5);
        assert_eq!((second.weights, second.headings), (again.weights, again.headings));
    }

    #[test]
    fn a_row_whose_heading_is_open_speaks_for_none_within_it() {
        let vectors = vec![vec![(0, 1.0)], vec![(1, 1.0)], vec![(2, 1.0)]];
        let rows = Rows { vectors, targets: vec![0..2, 0..1, 2..3], weights: vec![1.0; 3] };
        let second = Second::zeros(&[0..2, 0..1, 2..3], &rows, 3);
        let gradient = gradient(&second, &rows, &(0..2), 0, &mut [0.0; 3]);
        let slopes: Vec<f32> = gradient.iter().map(|(_, slope)| *slope).collect();
        assert!(slopes.len() == 2 && slopes[0] == slopes[1] && slopes[0] < 0.0, "{slopes:?}");
    }
}
