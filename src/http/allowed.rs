//! What parameters, fields and headers may hold, where handlers read it and the OpenAPI document says it.

use crate::store::assignments::{AssignmentOrder, CountBy};

/// Selects every status.
pub(super) const ALL_STATUSES: &str = "ALL";
/// The states of auto-assignment.
pub(super) const AUTO_STATES: [&str; 3] = ["PENDING", "DONE", "ABORTED"];

/// Orders by their names.
pub(super) const ORDERS: [(&str, AssignmentOrder); 5] = [
    ("confidence", AssignmentOrder::Confidence),
    ("-confidence", AssignmentOrder::ConfidenceDown),
    ("updatedAt", AssignmentOrder::Updated),
    ("-updatedAt", AssignmentOrder::UpdatedDown),
    ("impact", AssignmentOrder::Impact),
];

/// What answers embed, by name.
pub(super) const EMBEDDED: [&str; 4] = ["EVENTS", "PRODUCT", "CANDIDATES", "VAT_RATES"];

/// Most values by which one answer is grouped.
pub(super) const MAX_GROUPED_BY: usize = 2;

/// What assignments can be grouped by, by name.
pub(super) const GROUPED_BY: [(&str, CountBy); 9] = [
    ("assignmentStatus", CountBy::Status),
    ("strategy", CountBy::Strategy),
    ("autoAssignment", CountBy::AutoAssignment),
    ("reviewNeeded", CountBy::ReviewNeeded),
    ("chapter", CountBy::Chapter),
    ("heading", CountBy::Heading),
    ("label", CountBy::Label),
    ("confidenceBand", CountBy::ConfidenceBand),
    ("day", CountBy::Day),
];

/// Depths at which candidates may be asked for.
pub(super) const DEPTHS: [usize; 5] = [2, 4, 6, 8, 10];

/// Most characters of a comment.
pub(super) const MAX_COMMENT_CHARACTERS: usize = 1_000;

/// Most characters of a label.
pub(super) const MAX_LABEL_CHARACTERS: usize = 100;

/// The header that carries an idempotency key.
pub(super) const KEY_HEADER: &str = "idempotency-key";
/// Most characters of such a key.
pub(super) const MAX_KEY_CHARACTERS: usize = 255;
