//! How much can be decided at which risk, and how much of it is one text in many copies.

use std::collections::{BTreeMap, HashSet};

use vat_classification::classify::Ranking;
use vat_classification::classify::features::Extractor;
use vat_classification::domain::ClassCode;

use super::Case;

/// Digits at which risk is measured.
const DIGITS: usize = 4;
/// Shares of right answers for which the coverage is told.
const GOALS: [f64; 3] = [0.90, 0.95, 0.98];
/// Texts of one code that share this much of their words (of both together) are near-duplicates.
const LEAST_SHARED: f64 = 0.6;

/// The best answers of a set, surest first.
pub(crate) struct RiskCurve(Vec<bool>);

impl RiskCurve {
    /// Reads confidence and rightness of the best heading of each text; without an answer a text is never decided.
    pub(crate) fn of(answers: impl Iterator<Item = (ClassCode, Option<(ClassCode, f32)>)>) -> RiskCurve {
        let mut best: Vec<(f32, bool)> = answers
            .filter(|(code, _)| code.digits() >= DIGITS)
            .map(|(code, best)| best.map_or((0.0, false), |(best, sure)| (sure, best == code.prefix(DIGITS))))
            .collect();
        best.sort_by(|a, b| b.0.total_cmp(&a.0));
        RiskCurve(best.into_iter().map(|(_, right)| right).collect())
    }

    /// The largest share of texts, 0 to 1, of which that share is right when the surest are taken.
    pub(crate) fn coverage(&self, goal: f64) -> f64 {
        let (mut right, mut taken) = (0usize, 0usize);
        for (index, is_right) in self.0.iter().enumerate() {
            right += usize::from(*is_right);
            if right as f64 >= goal * (index + 1) as f64 {
                taken = index + 1;
            }
        }
        taken as f64 / self.0.len().max(1) as f64
    }

    /// Mean risk over all coverages, 0 to 1.
    pub(crate) fn area(&self) -> f64 {
        let mut wrong = 0usize;
        let risks = self.0.iter().enumerate().map(|(index, right)| {
            wrong += usize::from(!right);
            wrong as f64 / (index + 1) as f64
        });
        risks.sum::<f64>() / self.0.len().max(1) as f64
    }
}

/// Prints for each set how much can be decided at each risk, and top-1 by cluster of near-duplicates.
pub(crate) fn print(cases: &[Case], rankings: &[&Ranking]) {
    let mut sets: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, case) in cases.iter().enumerate().filter(|(_, case)| case.code.digits() >= DIGITS) {
        for name in [format!("{} {}", case.set, case.language), "all".to_owned()] {
            sets.entry(name).or_default().push(index);
        }
    }
    println!("share of texts decidable at four digits with 90, 95, 98 % right; mean risk; clusters and their top-1");
    for (name, indices) in sets {
        let best = |index: &usize| rankings[*index].roll_up(DIGITS).first().map(|best| (best.code, best.confidence));
        let curve = RiskCurve::of(indices.iter().map(|index| (cases[*index].code, best(index))));
        let coverages = GOALS.map(|goal| format!("{:>5.1}", 100.0 * curve.coverage(goal))).join(" ");
        let clusters = clusters(cases, &indices);
        let is_right = |index: &&usize| best(index).is_some_and(|(code, _)| code == cases[**index].code.prefix(DIGITS));
        let shares = clusters.iter().map(|of| of.iter().filter(is_right).count() as f64 / of.len() as f64);
        let (count, top1) = (clusters.len(), shares.sum::<f64>());
        println!(
            "{name:<14} {:>6} | {coverages} | {:.3} | {count:>6} {:>5.1}",
            indices.len(),
            curve.area(),
            100.0 * top1 / count.max(1) as f64
        );
    }
}

/// Texts of one set, language and code that share most of their words, each group once.
fn clusters(cases: &[Case], indices: &[usize]) -> Vec<Vec<usize>> {
    let mut extractor = Extractor::default();
    type Words = HashSet<String>;
    type Group = Vec<(usize, Words)>;
    let mut by_code: BTreeMap<(&str, &str, ClassCode), Group> = BTreeMap::new();
    for &index in indices {
        let case = &cases[index];
        let words = extractor.content_words(&case.name).map(str::to_owned).collect();
        by_code.entry((&case.set, &case.language, case.code)).or_default().push((index, words));
    }
    let mut clusters: Vec<Vec<usize>> = Vec::new();
    for texts in by_code.into_values() {
        let mut heads: Vec<(Words, usize)> = Vec::new();
        for (index, words) in texts {
            let near = |(head, _): &&(Words, usize)| {
                let shared = head.intersection(&words).count() as f64;
                let all = head.len() as f64 + words.len() as f64 - shared;
                shared >= LEAST_SHARED * all
            };
            match heads.iter().find(near) {
                Some(&(_, at)) => clusters[at].push(index),
                None => {
                    heads.push((words, clusters.len()));
                    clusters.push(vec![index]);
                }
            }
        }
    }
    clusters
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(name: &str, code: &str) -> Case {
        let code = ClassCode::new(code).expect("digits");
        Case {
            set: "set".to_owned(),
            language: "en".to_owned(),
            name: name.to_owned(),
            description: String::new(),
            tags: Vec::new(),
            code,
            given: code,
        }
    }

    #[test]
    fn coverage_is_the_longest_beginning_with_enough_right() {
        let right = ClassCode::new("6109").expect("digits");
        let wrong = ClassCode::new("6110").expect("digits");
        let answers = [(right, 0.9), (right, 0.8), (wrong, 0.7), (right, 0.6), (wrong, 0.5)];
        let mut answers: Vec<_> = answers.into_iter().map(|best| (right, Some(best))).collect();
        answers.push((right, None));
        let curve = RiskCurve::of(answers.into_iter());
        for (goal, expected) in [(0.98, 2.0 / 6.0), (0.75, 4.0 / 6.0), (0.6, 5.0 / 6.0), (0.0, 1.0)] {
            assert!((curve.coverage(goal) - expected).abs() < 1e-9, "{goal}");
        }
        assert!((curve.area() - (1.0 / 3.0 + 0.25 + 0.4 + 0.5) / 6.0).abs() < 1e-9, "{}", curve.area());
    }

    #[test]
    fn copies_of_a_text_are_one_cluster_and_other_codes_are_not() {
        let cases = [
            case("red cotton shirt", "610910"),
            case("blue cotton shirt red", "610910"),
            case("red cotton shirt", "610990"),
            case("wool jumper", "610910"),
        ];
        assert_eq!(clusters(&cases, &[0, 1, 2, 3]), [vec![0, 1], vec![3], vec![2]]);
    }
}
