//! How sure a decision by memory is: a logistic regression over what speaks for it and against it.
//!
//! Coefficients and limits are made by `training evaluate-memory --fit` from streams of listings.

use std::sync::{Arc, LazyLock};

use super::turns::Turns;
use crate::domain::Precision;

/// The file as it is made.
const SHIPPED: &str = include_str!("../../models/memory/confidence.tsv");

/// Names of what is weighed, in the order of [`Evidence`].
pub const NAMES: [&str; EVIDENCE] = [
    "bias",
    "similarity",
    "nearness",
    "agreeing",
    "contradiction",
    "support",
    "model",
    "model-other",
    "overlap",
    "turns",
    "worst-turn",
    "own-word",
    "other-word",
    "words",
];
/// How many things are weighed.
pub const EVIDENCE: usize = 14;

/// What speaks for a class that was decided for alike products.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Evidence(pub [f32; EVIDENCE]);

/// Coefficients, and how sure a decision must be.
#[derive(Clone, Debug, PartialEq)]
pub struct Confidence {
    /// One for each piece of evidence.
    pub weights: [f32; EVIDENCE],
    /// The least confidence for each of [`Precision::ALL`].
    pub limits: [f32; Precision::ALL.len()],
    /// Which words turn a class.
    pub turns: Arc<Turns>,
}

static CONFIDENCE: LazyLock<Confidence> = LazyLock::new(|| Confidence::read(SHIPPED).unwrap_or_default());

impl Default for Confidence {
    /// Never sure; with the words of the program.
    fn default() -> Self {
        Confidence { weights: [0.0; EVIDENCE], limits: [1.0; Precision::ALL.len()], turns: Turns::shipped() }
    }
}

impl Confidence {
    /// That of the program.
    pub fn shipped() -> Confidence {
        CONFIDENCE.clone()
    }

    /// Reads the form that [`Confidence::write`] gives; none when a line is missing or is not understood.
    pub fn read(text: &str) -> Option<Confidence> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let values: Option<Vec<(&str, f32)>> = lines
            .map(|line| line.split_once('\t').and_then(|(name, value)| Some((name, value.parse().ok()?))))
            .collect();
        let values = values?;
        let value = |name: &str| values.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        let mut confidence = Confidence::default();
        for (weight, name) in confidence.weights.iter_mut().zip(NAMES) {
            *weight = value(name)?;
        }
        for (limit, precision) in confidence.limits.iter_mut().zip(Precision::ALL) {
            *limit = value(&limit_name(precision))?;
        }
        Some(confidence)
    }

    /// A line for each coefficient and each limit: name, tab, value.
    pub fn write(&self) -> String {
        let weights = NAMES.iter().map(|name| (*name).to_owned()).zip(self.weights);
        let limits = Precision::ALL.into_iter().map(limit_name).zip(self.limits);
        weights.chain(limits).map(|(name, value)| format!("{name}\t{value:.4}\n")).collect()
    }

    /// How sure the evidence makes, 0 to 1.
    pub fn of(&self, evidence: &Evidence) -> f32 {
        let logit: f32 = self.weights.iter().zip(evidence.0).map(|(weight, x)| weight * x).sum();
        (1.0 + (-logit).exp()).recip()
    }

    /// How sure a decision must be at least.
    pub fn limit(&self, precision: Precision) -> f32 {
        let at = Precision::ALL.iter().position(|known| *known == precision);
        at.map_or(1.0, |at| self.limits[at])
    }
}

fn limit_name(precision: Precision) -> String {
    format!("limit-{:.2}", precision.share())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_what_is_shipped_is_whole() {
        let shipped = Confidence::read(SHIPPED).expect("the file of the repository");
        assert_eq!(Confidence::read(&shipped.write()), Some(shipped.clone()));
        assert_eq!(Confidence::read("bias\t1"), None);
        assert_eq!(Confidence::read("bias\tx"), None);
        assert!(shipped.limits.is_sorted() && shipped.limits[0] >= 0.5, "{shipped:?}");
    }
}
