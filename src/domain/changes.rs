//! What the feed of changes and webhooks call what happened, and where a reader of the feed stands.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::Taxonomy;
use crate::domain::assignment::Action;

/// A change of a product or an assignment, as feed and webhooks tell it.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ChangeAnswer)]
pub struct ToldChange {
    /// Its place in the feed, to be sent as `after`; otherwise without a meaning.
    pub sequence: String,
    /// `PRODUCT_CREATED`, `PRODUCT_UPDATED`, `PRODUCT_DELETED`, or `ASSIGNMENT_` and the action of an event.
    #[serde(rename = "type")]
    pub kind: String,
    /// The product.
    pub product_id: String,
    /// The shop of a local product.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shop_id: Option<i64>,
    /// The taxonomy of a changed assignment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taxonomy: Option<&'static str>,
    /// The version of the product or the assignment after the change.
    pub version: i64,
    /// The status of a changed assignment after the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assignment_status: Option<String>,
    /// The code of its class after the change, if it had one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub product_class_code: Option<String>,
    /// How far auto-assignment of it is: PENDING, DONE or ABORTED.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_assignment: Option<String>,
    /// When, in ISO 8601.
    pub timestamp: String,
}

/// An instant as answers write it.
pub fn instant(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Micros, true)
}

/// What the type of an assignment's change begins with; the action follows.
const ASSIGNMENT: &str = "ASSIGNMENT_";
/// What happens to products.
const OF_PRODUCTS: [&str; 3] = ["PRODUCT_CREATED", "PRODUCT_UPDATED", "PRODUCT_DELETED"];
/// What happens to assignments, beside what people decide.
const OF_ASSIGNMENTS: [&str; 9] =
    ["CREATE", "AUTO_ASSIGN", "AUTO_ABORT", "PRODUCT_CHANGED", "REQUEUE", "LABEL", "UNLABEL", "UNDO", "RULE_CHANGED"];

/// Every type of change, by which feeds and webhooks select.
pub fn types() -> impl Iterator<Item = String> {
    let decided = Action::ALL.into_iter().map(Action::name);
    let of_assignments = OF_ASSIGNMENTS.into_iter().chain(decided).map(|action| format!("{ASSIGNMENT}{action}"));
    OF_PRODUCTS.into_iter().map(str::to_owned).chain(of_assignments)
}

/// The type of that name, in any case.
pub fn type_of_name(name: &str) -> Option<String> {
    types().find(|known| known.eq_ignore_ascii_case(name))
}

/// The type of a change: an action, of an assignment where it has a taxonomy, else of a product.
pub fn type_of(action: &str, taxonomy: Option<Taxonomy>) -> String {
    if taxonomy.is_some() { format!("{ASSIGNMENT}{action}") } else { action.to_owned() }
}

/// How far auto-assignment is after an action, where the action alone tells.
pub fn auto_assignment_after(action: &str) -> Option<&'static str> {
    match action {
        "CREATE" | "REQUEUE" => Some("PENDING"),
        "AUTO_ASSIGN" => Some("DONE"),
        "AUTO_ABORT" => Some("ABORTED"),
        _ => None,
    }
}

/// A place in the feed as clients see it: no number to count with, but texts that sort as the feed runs.
pub fn write_sequence(sequence: i64) -> String {
    format!("s{:016x}", sequence.max(0))
}

/// The place of that text. Numbers, which were given out before, are read as well.
pub fn read_sequence(text: &str) -> Option<i64> {
    match text.strip_prefix('s') {
        Some(hex) if hex.len() == 16 && hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) => {
            i64::from_str_radix(hex, 16).ok()
        }
        None if text.bytes().all(|b| b.is_ascii_digit()) => text.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_found_by_its_name_in_any_case() {
        let all: Vec<String> = types().collect();
        assert_eq!(all.len(), 18);
        assert!(all.iter().all(|name| type_of_name(&name.to_lowercase()).as_ref() == Some(name)));
        assert_eq!(type_of_name("ASSIGN"), None);
        assert_eq!(type_of("ASSIGN", Some(Taxonomy::Ukgt)), "ASSIGNMENT_ASSIGN");
        assert_eq!(type_of("PRODUCT_DELETED", None), "PRODUCT_DELETED");
    }

    #[test]
    fn a_sequence_is_read_as_it_was_written_and_sorts_as_the_feed_runs() {
        let numbers = [0, 1, 15, 16, 131_072, i64::MAX];
        let texts = numbers.map(write_sequence);
        assert!(texts.is_sorted());
        assert_eq!(texts.each_ref().map(|text| read_sequence(text)), numbers.map(Some));
        assert_eq!(read_sequence("131072"), Some(131_072));
        for bad in ["", "s", "x", "-1", "s-000000000000001", "s000000000000000G", "sffffffffffffffff", "1.5", "latest"]
        {
            assert_eq!(read_sequence(bad), None, "{bad}");
        }
    }
}
