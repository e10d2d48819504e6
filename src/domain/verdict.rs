//! What is decided about a product in one taxonomy, as it goes from whoever decides to where it is stored.

use crate::domain::assignment::{Status, Strategy};
use crate::domain::product_class::ProductClass;

/// A class found, and why.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    /// The class.
    pub class: ProductClass,
    /// What it follows from.
    pub strategy: Strategy,
    /// 0 to 1.
    pub confidence: f32,
    /// Whether every country's rate follows from it.
    pub sufficient: bool,
}

/// What auto-assignment stores.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Verdict {
    /// None when the evidence does not carry even a heading.
    pub found: Option<Found>,
    /// What is at stake where it is wrong: the chance of that, times how far the rates of the classes in question lie
    /// apart, in percentage points.
    pub risk: f32,
}

impl Verdict {
    /// The status that follows.
    pub fn status(&self) -> Status {
        Status::from_auto_assignment(self.found.is_some(), self.found.is_some_and(|found| found.sufficient))
    }
}
