//! The table in which the demonstration ends.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use super::client::Assignment;
use super::samples::Sample;

/// Characters of a product's name, and of a class's label, that are shown.
const NAME_CHARACTERS: usize = 44;
const LABEL_CHARACTERS: usize = 44;

/// One line for each sample, in their order, then the totals by status and strategy.
pub(super) fn render(
    samples: &[Sample],
    assignments: &HashMap<String, Assignment>,
    label: impl Fn(&str) -> Option<String>,
) -> String {
    let mut text = line(["PRODUCT", "CLASS", "LABEL", "STATUS", "CONFIDENCE"]);
    let mut totals: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for sample in samples {
        let Some(assignment) = assignments.get(&sample.product_id) else { continue };
        let code = assignment.product_class_code.as_deref();
        let confidence = assignment.confidence.map(|confidence| format!("{:.0} %", 100.0 * confidence));
        text += &line([
            sample.name(),
            code.unwrap_or("-"),
            &code.and_then(&label).unwrap_or_default(),
            &assignment.assignment_status,
            &confidence.unwrap_or_default(),
        ]);
        let strategy = assignment.strategy.as_deref().unwrap_or("no class found");
        *totals.entry((&assignment.assignment_status, strategy)).or_default() += 1;
    }
    let _ = writeln!(text, "\n{} products", totals.values().sum::<usize>());
    for ((status, strategy), count) in totals {
        let _ = writeln!(text, "{count:>6}  {status} ({strategy})");
    }
    text
}

fn line([name, code, label, status, confidence]: [&str; 5]) -> String {
    let (name, label) = (shorten(name, NAME_CHARACTERS), shorten(label, LABEL_CHARACTERS));
    let line =
        format!("{name:<NAME_CHARACTERS$}  {code:<11}  {label:<LABEL_CHARACTERS$}  {status:<10}  {confidence:>10}");
    format!("{}\n", line.trim_end())
}

/// The text on one line and in so many characters at most.
fn shorten(text: &str, characters: usize) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.chars().count() <= characters {
        return text;
    }
    text.chars().take(characters - 1).chain(['…']).collect()
}
