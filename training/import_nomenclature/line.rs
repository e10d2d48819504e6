//! One line of a list of codes.

use chrono::NaiveDate;

/// The suffix of lines under which goods are declared; others are headings between them.
pub(super) const PRODUCT_LINE: &str = "80";

/// One line of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    /// The code without the zeros that only pad it.
    pub(super) code: String,
    pub(super) suffix: String,
    /// How deep the line lies below its chapter.
    pub(super) depth: usize,
    /// Code and suffix of the line above, with a dash between; empty for a chapter.
    pub(super) parent: String,
    pub(super) declarable: bool,
    pub(super) from: Option<NaiveDate>,
    pub(super) to: Option<NaiveDate>,
    pub(super) successor: String,
    pub(super) de: String,
    pub(super) en: String,
}

impl Line {
    /// What tells lines apart: the code as published, then the suffix.
    pub(super) fn key(&self) -> (String, String) {
        (format!("{:0<10}", self.code), self.suffix.clone())
    }
}
