//! Makes probabilities of the ranker's logits, on rows that nothing was trained on, and chooses the limits of decisions.

use anyhow::Result;
use rayon::prelude::*;
use vat_classification::classify::words::Language;
use vat_classification::classify::{Classifier, Described, ModelInfo, ProductText, Ranking};
use vat_classification::domain::ClassCode;

use super::{Metrics, Prepared, Sample, prepared, product_text};

/// Steps of gradient descent over all texts.
const STEPS: usize = 400;
/// Most rows of a code, so that templates do not drown what people wrote.
const MAX_ROWS_OF_CODE: usize = 6;
/// Size of a step (Adam).
const STEP: f64 = 0.05;
/// Share of decisions that shall be right on held-out rows.
const PRECISION: [f32; 2] = [0.98, 0.97];
/// Limits lie between these.
const LIMIT_RANGE: (f32, f32) = (0.4, 0.95);

/// A text with what the ranker says of its candidates.
struct Case {
    logits: Vec<f64>,
    /// Index of the right candidate; none when no candidate is right.
    right: Option<usize>,
    text: Vec<f64>,
}

/// Fits sharpness and "none of them".
pub(crate) fn fit(classifier: &Classifier, held_out: &[&Sample], vague: &[String], info: &mut ModelInfo) -> Result<()> {
    let rows = prepared(held_out, MAX_ROWS_OF_CODE);
    let of_row = |row: &Prepared| case(classifier, &row.text(), Some(row.code), &info.ranker.weights);
    let mut cases: Vec<Case> = rows.par_iter().filter_map(of_row).collect();
    let languages = [Language::German, Language::English];
    let phrases = vague.iter().flat_map(|phrase| languages.map(|language| product_text(language, phrase, None)));
    cases.extend(phrases.filter_map(|text| case(classifier, &text, None, &info.ranker.weights)));
    let Some(width) = cases.first().map(|case| case.text.len()) else { return Ok(()) };
    let mut parameters = vec![0.0f64; 2 * width];
    parameters[width] = -4.0;
    let (mut mean, mut square) = (vec![0.0; 2 * width], vec![0.0; 2 * width]);
    for step in 1..=STEPS {
        let slopes = slopes(&cases, &parameters);
        for (index, slope) in slopes.into_iter().enumerate() {
            mean[index] = 0.9 * mean[index] + 0.1 * slope;
            square[index] = 0.999 * square[index] + 0.001 * slope * slope;
            let (m, s) =
                (mean[index] / (1.0 - 0.9f64.powi(step as i32)), square[index] / (1.0 - 0.999f64.powi(step as i32)));
            parameters[index] -= STEP * m / (s.sqrt() + 1e-8);
        }
    }
    info.ranker.sharpness = parameters[..width].iter().map(|value| *value as f32).collect();
    info.ranker.none = parameters[width..].iter().map(|value| *value as f32).collect();
    Ok(())
}

fn case(classifier: &Classifier, text: &ProductText<'_>, code: Option<ClassCode>, weights: &[f32]) -> Option<Case> {
    let Described { candidates, text } = classifier.describe(text);
    if candidates.is_empty() {
        return None;
    }
    let right = code.and_then(|code| candidates.iter().position(|(candidate, _)| *candidate == code));
    let logit = |dense: &[f32]| dense.iter().zip(weights).map(|(x, w)| f64::from(x * w)).sum();
    let logits = candidates.iter().map(|(_, dense)| logit(dense)).collect();
    Some(Case { logits, right, text: text.into_iter().map(f64::from).collect() })
}

/// Slopes of the mean negative log-likelihood.
fn slopes(cases: &[Case], parameters: &[f64]) -> Vec<f64> {
    let width = parameters.len() / 2;
    let dot = |weights: &[f64], text: &[f64]| weights.iter().zip(text).map(|(w, x)| w * x).sum::<f64>();
    let mut slopes = vec![0.0; 2 * width];
    for case in cases {
        let sharpness = dot(&parameters[..width], &case.text).clamp(-3.0, 2.0).exp();
        let none = dot(&parameters[width..], &case.text);
        let highest = case.logits.iter().map(|logit| logit * sharpness).fold(none, f64::max);
        let total: f64 =
            (none - highest).exp() + case.logits.iter().map(|logit| (logit * sharpness - highest).exp()).sum::<f64>();
        let mut of_sharpness = 0.0;
        for (index, logit) in case.logits.iter().enumerate() {
            let error = (logit * sharpness - highest).exp() / total - f64::from(case.right == Some(index));
            of_sharpness += error * logit;
        }
        let of_none = (none - highest).exp() / total - f64::from(case.right.is_none());
        for (index, x) in case.text.iter().enumerate() {
            slopes[index] += of_sharpness * sharpness * x;
            slopes[width + index] += of_none * x;
        }
    }
    slopes.iter_mut().for_each(|slope| *slope /= cases.len() as f64);
    slopes
}

/// Figures on held-out rows.
pub(crate) fn measure(classifier: &Classifier, held_out: &[&Sample]) -> Metrics {
    let ranked = rank(classifier, held_out);
    let mut metrics = Metrics::new();
    metrics.insert("held_out_rows".to_owned(), ranked.len() as f64);
    for digits in [2, 4, 6] {
        let of_depth: Vec<_> = ranked.iter().filter(|(code, _)| code.digits() >= digits).collect();
        for top in [1, 5] {
            let found = |(code, ranking): &&&(ClassCode, Ranking)| {
                ranking.roll_up(digits).iter().take(top).any(|class| class.code == code.prefix(digits))
            };
            let share = of_depth.iter().filter(found).count() as f64 / of_depth.len().max(1) as f64;
            metrics.insert(format!("top{top}_digits{digits}"), share);
        }
    }
    metrics
}

/// The lowest limits at which enough of the decisions are right, on tidy and untidy rows.
pub(crate) fn choose_limits(classifier: &Classifier, held_out: &[&Sample], info: &mut ModelInfo) {
    let rows = prepared(held_out, MAX_ROWS_OF_CODE);
    let ranked: Vec<(ClassCode, Ranking)> =
        rows.par_iter().map(|row| (row.code, classifier.rank(&row.text()))).collect();
    let limit = |digits: usize, precision: f32| {
        let mut best: Vec<(f32, bool)> = Vec::new();
        for (code, ranking) in &ranked {
            if let Some(first) = ranking.roll_up(digits).first() {
                best.push((first.confidence, first.code == code.prefix(digits)));
            }
        }
        best.sort_by(|a, b| b.0.total_cmp(&a.0));
        let (mut right, mut limit) = (0usize, LIMIT_RANGE.1);
        for (index, (confidence, is_right)) in best.iter().enumerate() {
            right += usize::from(*is_right);
            if right as f32 >= precision * (index + 1) as f32 {
                limit = *confidence;
            }
        }
        limit.clamp(LIMIT_RANGE.0, LIMIT_RANGE.1)
    };
    info.limits.subheading = limit(6, PRECISION[0]);
    info.limits.heading = limit(4, PRECISION[1]);
}

fn rank(classifier: &Classifier, samples: &[&Sample]) -> Vec<(ClassCode, Ranking)> {
    samples.par_iter().map(|sample| (sample.code, classifier.rank(&sample.text()))).collect()
}
