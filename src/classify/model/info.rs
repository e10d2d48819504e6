//! What a model says of itself: its versions, figures, limits and coefficients.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::domain::Precision;

/// What a model says of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// Name of the model: date of its corpus and beginning of its checksum.
    pub version: String,
    /// Version of folding and tokens it was made with.
    pub text_version: u32,
    /// Version of the features it was made with.
    pub feature_version: u32,
    /// SHA-256 of the corpus, the label tables and the list of vague words, hexadecimal.
    pub corpus: String,
    /// Rows it was trained on.
    pub rows: u64,
    /// Whether those are all; else some are held back to measure with.
    #[serde(default)]
    pub has_learnt_all: bool,
    /// Six-digit classes it knows.
    pub classes: u64,
    /// Figures measured on held-out rows, by name.
    pub metrics: BTreeMap<String, f64>,
    /// Limits of decisions for each balance between deciding often and deciding rightly.
    pub balances: Vec<Balance>,
    /// Coefficients of the ranker.
    pub ranker: Ranker,
}

impl ModelInfo {
    /// Confidence from which a class is decided on for that precision, where a description says something beside the name or not.
    pub fn limits_for(&self, precision: Precision, is_described: bool) -> Limits {
        let balance = self.balances.iter().find(|balance| balance.percent == precision.percent());
        balance.map_or_else(Limits::default, |balance| if is_described { balance.described } else { balance.named })
    }
}

/// Limits of decisions, and what they promise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Balance {
    /// The [`Precision`] in per cent.
    pub percent: i16,
    /// Confidence from which a class of that depth is decided on where no description says anything beside a name.
    pub named: Limits,
    /// The same where one does: shops write of other goods there, and the surest wrong answers come from it.
    pub described: Limits,
    /// Share of wrong decisions that is promised on texts as shops write them, 0 to 1.
    pub promised_wrong: f64,
    /// Share of wrong decisions on listings of sources that had no part in setting the limits, 0 to 1; 0 without listings.
    pub measured_wrong: f64,
    /// Share of these listings that is decided, 0 to 1.
    pub measured_decided: f64,
}

/// Confidence from which a class is decided on, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Six digits.
    pub subheading: f32,
    /// Four digits.
    pub heading: f32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { subheading: 0.7, heading: 0.7 }
    }
}

/// Coefficients of the ranker: logistic regression over candidates, then calibration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ranker {
    /// One coefficient for each feature of a candidate.
    pub weights: Vec<f32>,
    /// What listings of shops have added to them; empty where none have been judged.
    pub listings: Vec<f32>,
    /// What listings of shops add to the coefficients of the second and the third voice's opinion.
    pub opinions: Vec<f32>,
    /// Coefficients of the logarithm of the sharpness, over features of the text.
    pub sharpness: Vec<f32>,
    /// Coefficients of the logit of "none of them", over features of the text.
    pub none: Vec<f32>,
    /// Both as the corpus alone gives them: where fitting them to listings of shops begins.
    pub corpus_sharpness: Vec<f32>,
    /// See `corpus_sharpness`.
    pub corpus_none: Vec<f32>,
}
