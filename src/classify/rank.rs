//! Probabilities of candidates, and the reasons for them.

use super::dense::{self, OPINIONS};
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
    let ranker = &model.info().ranker;
    let dense = scorer.candidates.iter().map(|candidate| &candidate.dense[..]);
    let mut shares = probabilities(ranker, dense, &scorer.text);
    if scorer.query.is_described() {
        let named: Vec<_> = scorer.candidates.iter().map(|candidate| dense::by_name(&candidate.dense)).collect();
        let by_name = probabilities(ranker, named.iter().map(|dense| &dense[..]), &dense::text_by_name(&scorer.text));
        let headings: Vec<usize> = scorer.candidates.iter().map(|one| model.heading_of(one.leaf)).collect();
        keep_first(&headings, &by_name, &mut shares);
    }
    let scored = scorer.candidates.iter().zip(shares).filter(|(_, confidence)| *confidence >= MIN_CONFIDENCE);
    let scored = scored
        .filter_map(|(candidate, confidence)| Some(Scored { code: model.leaf_code(candidate.leaf)?, confidence }));
    let mut candidates: Vec<Scored> = scored.collect();
    candidates.sort_by(|a, b| b.confidence.total_cmp(&a.confidence).then(a.code.cmp(&b.code)));
    Ranking { candidates, is_described: scorer.query.is_described() }
}

/// Keeps the heading first that the name alone puts there, unless the description makes another surer than the name had made
/// its own: what speaks of other goods makes doubt, and doubt is no reason to change the answer. The two headings exchange
/// their shares.
fn keep_first(headings: &[usize], by_name: &[f32], shares: &mut [f32]) {
    let share_of = |shares: &[f32], heading: usize| -> f32 {
        headings.iter().zip(shares).filter(|(other, _)| **other == heading).map(|(_, share)| share).sum()
    };
    let first = |shares: &[f32]| {
        let all = headings.iter().map(|heading| (*heading, share_of(shares, *heading)));
        all.reduce(|best, one| if one.1 > best.1 { one } else { best })
    };
    let (Some((named, sure)), Some((described, now))) = (first(by_name), first(shares)) else { return };
    if named == described || now >= sure || now == 0.0 {
        return;
    }
    let before = share_of(shares, named);
    for ((heading, by_name), share) in headings.iter().zip(by_name).zip(shares) {
        if *heading == named {
            // As the name parts them: with the description there may be next to nothing to part.
            *share = now * by_name / sure;
        } else if *heading == described {
            *share *= before / now;
        }
    }
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{Classifier, LanguageText, ProductText, SCORER};
    use super::*;

    #[test]
    fn the_name_keeps_the_first_place_unless_the_description_is_surer() {
        let headings = [1, 1, 2, 3];
        for (by_name, with, expected) in [
            // The description agrees.
            ([0.5, 0.1, 0.2, 0.1], [0.7, 0.1, 0.1, 0.0], [0.7, 0.1, 0.1, 0.0]),
            // It makes another heading surer than the name had made its own.
            ([0.3, 0.1, 0.2, 0.1], [0.1, 0.1, 0.6, 0.1], [0.1, 0.1, 0.6, 0.1]),
            // It makes another heading first, but doubt larger: the two exchange their shares.
            ([0.6, 0.2, 0.1, 0.1], [0.1, 0.1, 0.4, 0.1], [0.3, 0.1, 0.2, 0.1]),
            // Nothing is left of the heading of the name.
            ([0.6, 0.2, 0.1, 0.1], [0.0, 0.0, 0.4, 0.1], [0.3, 0.1, 0.0, 0.1]),
            ([0.6, 0.2, 0.1, 0.1], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]),
        ] {
            let mut shares = with;
            keep_first(&headings, &by_name, &mut shares);
            let is_near = shares.iter().zip(expected).all(|(share, expected)| (share - expected).abs() < 1e-6);
            assert!(is_near, "{by_name:?} {with:?}: {shares:?}");
        }
        keep_first(&[], &[], &mut []);
    }

    #[test]
    fn what_a_name_says_by_itself_is_told_of_a_described_text() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/classifier.bin");
        let classifier = Classifier::load(&path).expect("the model of the repository");
        let model = &classifier.model;
        const LOG_SHARE: usize = 1;
        const LEAST_SHARE: f32 = 0.05;
        for (name, description) in [
            ("Halloumi", "Grill for burgers, salads and fries, with chilli jam and watermelon"),
            ("Topflappen Baumwolle", "Passt zu Schürze und Geschirrtuch mit Zitronen"),
        ] {
            let features = |description| {
                let text = LanguageText { language: "de", name: Some(name), description, ..LanguageText::default() };
                let text = ProductText { languages: vec![text] };
                SCORER.with_borrow_mut(|scorer| {
                    scorer.query.read(model, &text);
                    scorer.describe(model);
                    (scorer.candidates.clone(), scorer.text)
                })
            };
            let ((with, text), (bare, bare_text)) = (features(Some(description)), features(None));
            // Which candidates there are depends on the description, and with them what a share is a share of: so only near,
            // and only where it is more than next to nothing.
            let is_near = |a: f32, b: f32| (a - b).abs() < 0.1;
            let told = dense::text_by_name(&text);
            assert_ne!(text, told, "{name}: the description says something");
            assert!(told.iter().zip(&bare_text).all(|(a, b)| is_near(*a, *b)), "{name}: {told:?} {bare_text:?}");
            let mut compared = 0;
            for bare in bare.iter().filter(|candidate| candidate.dense[LOG_SHARE] > LEAST_SHARE.ln() / 4.0) {
                let Some(with) = with.iter().find(|candidate| candidate.leaf == bare.leaf) else { continue };
                let told = dense::by_name(&with.dense);
                assert!(
                    told.iter().zip(&bare.dense).all(|(a, b)| is_near(*a, *b)),
                    "{name}: {told:?} {:?}",
                    bare.dense
                );
                compared += 1;
            }
            assert!(compared > 0, "{name}");
        }
    }
}
