//! Probabilities of candidates, and the reasons for them.

use super::dense::OPINIONS;
use super::model::{Model, Ranker};
use super::score::Scorer;
use super::{Neighbour, Ranking, Scored};
use crate::domain::ClassCode;

/// Candidates less likely than this are not listed.
const MIN_CONFIDENCE: f32 = 0.001;
/// Weight of a word of tags or description among the reasons, beside a word of the name.
const BESIDE_THE_NAME: f32 = 0.5;
/// Bounds of the logarithm of the sharpness, so that an unusual text cannot break the sums.
const SHARPNESS_RANGE: (f32, f32) = (-3.0, 2.0);

/// The candidates of a scorer with their probabilities, best first.
pub(crate) fn ranking(model: &Model, scorer: &Scorer) -> Ranking {
    let dense = scorer.candidates.iter().map(|candidate| &candidate.dense[..]);
    let probabilities = probabilities(&model.info().ranker, dense, &scorer.text);
    let scored = scorer.candidates.iter().zip(probabilities).filter(|(_, confidence)| *confidence >= MIN_CONFIDENCE);
    let scored = scored
        .filter_map(|(candidate, confidence)| Some(Scored { code: model.leaf_code(candidate.leaf)?, confidence }));
    let mut candidates: Vec<Scored> = scored.collect();
    candidates.sort_by(|a, b| b.confidence.total_cmp(&a.confidence).then(a.code.cmp(&b.code)));
    Ranking { candidates, is_described: scorer.query.is_described() }
}

/// Probabilities of candidates by their dense features: a softmax over the logits of the ranker, made more or less
/// sharp by the text, with "none of them" as one more choice.
pub fn probabilities<'a>(ranker: &Ranker, dense: impl Iterator<Item = &'a [f32]>, text: &[f32]) -> Vec<f32> {
    let sharpness = dot(&ranker.sharpness, text).clamp(SHARPNESS_RANGE.0, SHARPNESS_RANGE.1).exp();
    let none = dot(&ranker.none, text);
    let opinion = |features: &[f32]| -> f32 {
        let heard = ranker.opinions.iter().zip(OPINIONS);
        heard.map(|(weight, at)| weight * features.get(at).copied().unwrap_or(0.0)).sum()
    };
    let logit = |features: &[f32]| sharpness * (dot(&ranker.weights, features) + opinion(features));
    let mut logits: Vec<f32> = dense.map(logit).collect();
    let highest = logits.iter().copied().fold(none, f32::max);
    let mut total = (none - highest).exp();
    for logit in &mut logits {
        *logit = (*logit - highest).exp();
        total += *logit;
    }
    logits.iter_mut().for_each(|logit| *logit /= total);
    logits
}

fn dot(weights: &[f32], features: &[f32]) -> f32 {
    weights.iter().zip(features).map(|(weight, feature)| weight * feature).sum()
}

/// What every known feature of the text adds to the score of a class: index of the feature, weight.
pub(crate) fn feature_weights(model: &Model, scorer: &Scorer, code: &ClassCode) -> Vec<(usize, f32)> {
    let leaves = model.leaves_under(code);
    let mut weights = Vec::new();
    for known in &scorer.query.known {
        let entry = model.feature(known.id);
        // What does not name the good counts less, as it does where classes are ranked.
        let share = scorer.query.naming[known.field as usize].max(BESIDE_THE_NAME);
        let step = known.weight * share * entry.scale;
        let mut of_leaf = vec![0.0f32; leaves.len()];
        let (mut best, mut any) = (f32::MIN, false);
        for &[low, high, weight, _] in model.postings(&entry) {
            let node = usize::from(u16::from_le_bytes([low, high]));
            let learnt = step * f32::from(weight as i8);
            if leaves.contains(&node) {
                of_leaf[node - leaves.start] += learnt;
                any = true;
            } else if (model.leaves()..model.nodes()).contains(&node) {
                let below = leaves.clone().filter(|&leaf| model.heading_of(leaf) == node);
                below.for_each(|leaf| {
                    of_leaf[leaf - leaves.start] += learnt;
                    any = true;
                });
            }
        }
        best = of_leaf.into_iter().fold(best, f32::max);
        if any && best > 0.0 {
            weights.push((known.feature, best));
        }
    }
    weights
}

/// The rows below a class that are most similar to the text.
pub(crate) fn nearest(model: &Model, scorer: &Scorer, code: &ClassCode, max: usize) -> Vec<Neighbour> {
    let rows = model.leaves_under(code).flat_map(|leaf| model.rows_of(leaf));
    let mut similar: Vec<(f32, usize)> = rows.map(|row| (scorer.similarity(model, row), row)).collect();
    similar.retain(|(similarity, _)| *similarity > 0.0);
    similar.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    similar.truncate(max);
    similar.iter().map(|&(similarity, row)| Neighbour { text: model.row_text(row).to_owned(), similarity }).collect()
}
