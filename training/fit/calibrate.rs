//! Makes probabilities of the ranker's logits, on rows that nothing was trained on, and chooses the limits of decisions.

use anyhow::Result;
use rayon::prelude::*;
use vat_classification::classify::model::{Balance, Limits, Ranker};
use vat_classification::classify::words::Language;
use vat_classification::classify::{Classifier, Described, KNOWN_NAME, ModelInfo, OPINIONS, ProductText, Ranking};
use vat_classification::domain::{ClassCode, Precision};

use super::{Metrics, Prepared, Sample, prepared, product_text};

/// Steps of gradient descent over all texts.
const STEPS: usize = 400;
/// Most rows of a code, so that templates do not drown what people wrote.
const MAX_ROWS_OF_CODE: usize = 6;
/// Cases whose slopes are added up on one core.
const CHUNK: usize = 512;
/// Size of a step (Adam).
const STEP: f64 = 0.05;
/// How much more often than promised decisions must be right on rows of the corpus, where no listings have been judged.
const STRICTER: f32 = 0.4;

/// Limits lie between these.
const LIMIT_RANGE: (f32, f32) = (0.3, 0.999);

/// Logit of "none of them", beside what else speaks for it, of a name that the corpus has as a whole under the heading that
/// seems best. Hardly any held-out row has such a name, so it is not learnt from them; of the corpus' rows, read a second
/// time without their codes, one in two hundred was wrong.
const NONE_OF_KNOWN_NAME: f64 = -3.0;

/// A text with what the ranker says of its candidates.
pub(crate) struct Case {
    pub(crate) logits: Vec<f64>,
    /// The second and the third voice's opinion of each candidate; empty where they are not weighed anew.
    pub(crate) opinions: Vec<[f64; OPINIONS.len()]>,
    /// Indices of the candidates that are right; none when "none of them" is.
    pub(crate) right: Vec<usize>,
    pub(crate) text: Vec<f64>,
}

/// Coefficients over features of the text, of the logarithm of the sharpness and then of "none of them"; behind them what
/// is added to the weights of the voices' opinions.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Calibration(Vec<f64>);

impl Calibration {
    /// These coefficients, as many of each.
    pub(crate) fn new(sharpness: Vec<f64>, none: Vec<f64>) -> Calibration {
        Calibration(sharpness.into_iter().chain(none).chain([0.0; OPINIONS.len()]).collect())
    }

    /// What the corpus alone has given.
    pub(crate) fn of_corpus(ranker: &Ranker) -> Calibration {
        let doubles = |values: &[f32]| values.iter().map(|value| f64::from(*value)).collect();
        Calibration::new(doubles(&ranker.corpus_sharpness), doubles(&ranker.corpus_none))
    }

    /// How many features of the text there are.
    pub(crate) fn width(&self) -> usize {
        (self.0.len() - OPINIONS.len()) / 2
    }

    /// Its three parts.
    fn parts(&self) -> (&[f64], &[f64], &[f64]) {
        let (sharpness, rest) = self.0.split_at(self.width());
        let (none, opinions) = rest.split_at(self.width());
        (sharpness, none, opinions)
    }

    /// Makes a ranker use it.
    pub(crate) fn put_into(&self, ranker: &mut Ranker) {
        let (sharpness, none, opinions) = self.parts();
        ranker.sharpness = sharpness.iter().map(|value| *value as f32).collect();
        ranker.none = none.iter().map(|value| *value as f32).collect();
        ranker.opinions = opinions.iter().map(|value| *value as f32).collect();
    }

    /// Keeps it in a ranker as that of the corpus.
    pub(crate) fn put_into_corpus(&self, ranker: &mut Ranker) {
        let (sharpness, none, _) = self.parts();
        ranker.corpus_sharpness = sharpness.iter().map(|value| *value as f32).collect();
        ranker.corpus_none = none.iter().map(|value| *value as f32).collect();
    }

    /// Sharpness and logit of "none of them" of a text.
    fn of_text(&self, text: &[f64]) -> (f64, f64) {
        let (sharpness, none, _) = self.parts();
        let dot = |weights: &[f64]| weights.iter().zip(text).map(|(w, x)| w * x).sum::<f64>();
        (dot(sharpness).clamp(-3.0, 2.0).exp(), dot(none))
    }

    /// The ranker's logits with the voices' opinions.
    fn logits(&self, case: &Case) -> Vec<f64> {
        let (_, _, weights) = self.parts();
        let opinion = |at: usize| -> f64 {
            case.opinions.get(at).map_or(0.0, |opinions| opinions.iter().zip(weights).map(|(x, w)| x * w).sum())
        };
        case.logits.iter().enumerate().map(|(at, logit)| logit + opinion(at)).collect()
    }

    /// Probabilities of the candidates of a text; what they lack of one is that of "none of them".
    pub(crate) fn probabilities(&self, case: &Case) -> Vec<f64> {
        let (sharpness, none) = self.of_text(&case.text);
        let logits = self.logits(case);
        let highest = logits.iter().map(|logit| logit * sharpness).fold(none, f64::max);
        let shares: Vec<f64> = logits.iter().map(|logit| (logit * sharpness - highest).exp()).collect();
        let total = (none - highest).exp() + shares.iter().sum::<f64>();
        shares.into_iter().map(|share| share / total).collect()
    }

    /// The calibration that makes the cases likeliest, with a penalty on its distance from this one. The features of the
    /// text at `reassuring` never make an answer less sure.
    pub(crate) fn fitted(&self, cases: &[Case], penalty: f64, reassuring: &[usize]) -> Calibration {
        let mut next = self.clone();
        let (mut mean, mut square) = (vec![0.0; self.0.len()], vec![0.0; self.0.len()]);
        for step in 1..=STEPS {
            let slopes = next.slopes(cases);
            let (mean_share, square_share) = (1.0 - 0.9f64.powi(step as i32), 1.0 - 0.999f64.powi(step as i32));
            for (index, slope) in slopes.into_iter().enumerate() {
                let slope = slope + penalty * (next.0[index] - self.0[index]) / cases.len().max(1) as f64;
                mean[index] = 0.9 * mean[index] + 0.1 * slope;
                square[index] = 0.999 * square[index] + 0.001 * slope * slope;
                let (m, s): (f64, f64) = (mean[index] / mean_share, square[index] / square_share);
                next.0[index] -= STEP * m / (s.sqrt() + 1e-8);
            }
            for &at in reassuring.iter().filter(|at| **at < self.width()) {
                next.0[at] = next.0[at].max(0.0);
                let none = self.width() + at;
                next.0[none] = next.0[none].min(0.0);
            }
        }
        next
    }

    /// Slopes of the mean negative log-likelihood.
    fn slopes(&self, cases: &[Case]) -> Vec<f64> {
        // Sums of chunks are added in their order, so that the same cases give the same slopes.
        let of_chunk = |cases: &[Case]| {
            let mut slopes = vec![0.0; self.0.len()];
            cases.iter().for_each(|case| self.add_slopes(case, &mut slopes));
            slopes
        };
        let chunks: Vec<Vec<f64>> = cases.par_chunks(CHUNK).map(of_chunk).collect();
        let mut slopes = vec![0.0; self.0.len()];
        for chunk in chunks {
            slopes.iter_mut().zip(chunk).for_each(|(sum, slope)| *sum += slope / cases.len() as f64);
        }
        slopes
    }

    fn add_slopes(&self, case: &Case, slopes: &mut [f64]) {
        let (sharpness, _) = self.of_text(&case.text);
        let shares = self.probabilities(case);
        let of_right: f64 = case.right.iter().map(|&at| shares[at]).sum::<f64>().max(1e-12);
        let mut of_sharpness = 0.0;
        for (at, (logit, share)) in self.logits(case).into_iter().zip(&shares).enumerate() {
            let truth = if case.right.contains(&at) { share / of_right } else { 0.0 };
            of_sharpness += (share - truth) * logit;
            for (index, opinion) in case.opinions.get(at).into_iter().flatten().enumerate() {
                slopes[2 * self.width() + index] += (share - truth) * sharpness * opinion;
            }
        }
        let of_none = (1.0 - shares.iter().sum::<f64>()) - f64::from(u8::from(case.right.is_empty()));
        for (index, x) in case.text.iter().enumerate() {
            slopes[index] += of_sharpness * sharpness * x;
            slopes[self.width() + index] += of_none * x;
        }
    }
}

/// Fits sharpness and "none of them".
pub(crate) fn fit(classifier: &Classifier, held_out: &[&Sample], vague: &[String], info: &mut ModelInfo) -> Result<()> {
    let rows = prepared(held_out, MAX_ROWS_OF_CODE);
    let of_row = |row: &Prepared| case(classifier, &row.text(), Some(row.code), &info.ranker.weights);
    let mut cases: Vec<Case> = rows.par_iter().filter_map(of_row).collect();
    let languages = [Language::German, Language::English];
    let phrases = vague.iter().flat_map(|phrase| languages.map(|language| product_text(language, phrase, None, &[])));
    cases.extend(phrases.filter_map(|text| case(classifier, &text, None, &info.ranker.weights)));
    let Some(width) = cases.first().map(|case| case.text.len()) else { return Ok(()) };
    let mut none = vec![0.0; width];
    none[0] = -4.0;
    let mut calibration = Calibration::new(vec![0.0; width], none).fitted(&cases, 0.0, &[]);
    calibration.0[width + KNOWN_NAME] = NONE_OF_KNOWN_NAME;
    calibration.put_into(&mut info.ranker);
    calibration.put_into_corpus(&mut info.ranker);
    Ok(())
}

fn case(classifier: &Classifier, text: &ProductText<'_>, code: Option<ClassCode>, weights: &[f32]) -> Option<Case> {
    let Described { candidates, text } = classifier.describe(text);
    if candidates.is_empty() {
        return None;
    }
    let right = code.and_then(|code| candidates.iter().position(|(candidate, _)| *candidate == code));
    let logits = candidates.iter().map(|(_, dense)| f64::from(logit(dense, weights))).collect();
    let text = text.into_iter().map(f64::from).collect();
    Some(Case { logits, opinions: Vec::new(), right: right.into_iter().collect(), text })
}

/// The ranker's logit of a candidate.
pub(crate) fn logit(dense: &[f32], weights: &[f32]) -> f32 {
    dense.iter().zip(weights).map(|(x, w)| x * w).sum()
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

/// The lowest limits at which enough of the decisions are right on tidy and untidy rows of the corpus.
pub(crate) fn choose_limits(classifier: &Classifier, held_out: &[&Sample], info: &mut ModelInfo) {
    let rows = prepared(held_out, MAX_ROWS_OF_CODE);
    let ranked: Vec<(ClassCode, Ranking)> =
        rows.par_iter().map(|row| (row.code, classifier.rank(&row.text()))).collect();
    let limit = |digits: usize, goal: f32| {
        let answer = |(code, ranking): &(ClassCode, Ranking)| {
            let best = *ranking.roll_up(digits).first()?;
            Some((best.confidence, best.code == code.prefix(digits), 1.0))
        };
        lowest_limit(goal, ranked.iter().filter_map(answer).collect())
    };
    let balance = |precision: Precision| {
        let goal = 1.0 - STRICTER * (1.0 - precision.share() as f32);
        let heading = limit(4, goal);
        let limits = Limits { subheading: limit(6, goal).max(heading), heading };
        Balance {
            percent: precision.percent(),
            named: limits,
            described: limits,
            promised_wrong: 1.0 - precision.share(),
            ..Balance::default()
        }
    };
    info.balances = Precision::ALL.map(balance).to_vec();
}

fn rank(classifier: &Classifier, samples: &[&Sample]) -> Vec<(ClassCode, Ranking)> {
    samples.par_iter().map(|sample| (sample.code, classifier.rank(&sample.text()))).collect()
}

/// The lowest confidence from which on enough answers are right, of answers with confidence, whether they are right, and
/// weight; one more wrong answer than was seen is reckoned with.
pub(crate) fn lowest_limit(goal: f32, mut answers: Vec<(f32, bool, f32)>) -> f32 {
    answers.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.2.total_cmp(&b.2)));
    let (mut all, mut right, mut limit) = (0.0, 0.0, LIMIT_RANGE.1);
    for (confidence, is_right, weight) in answers {
        all += weight;
        right += if is_right { weight } else { 0.0 };
        if right >= goal * (all + weight) {
            limit = confidence;
        }
    }
    limit.clamp(LIMIT_RANGE.0, LIMIT_RANGE.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_the_lowest_with_enough_right_and_one_to_spare() {
        let answers: Vec<(f32, bool, f32)> = (0..100).map(|at| (1.0 - at as f32 / 200.0, at < 80, 1.0)).collect();
        let limit = lowest_limit(0.95, answers.clone());
        assert!((limit - (1.0 - 83.0 / 200.0)).abs() < 0.01, "{limit}");
        assert!(lowest_limit(0.98, answers.clone()) > limit);
        // A few wrong answers of a source with few listings weigh as much as many of another.
        let small = answers.iter().map(|(sure, right, _)| (*sure, *right, if *right { 0.5 } else { 5.0 })).collect();
        assert!(lowest_limit(0.95, small) > limit);
        assert_eq!(lowest_limit(0.9, Vec::new()), LIMIT_RANGE.1);
    }
}
