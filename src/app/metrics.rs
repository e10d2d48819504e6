//! What the metrics mean, and how they are shown.

use anyhow::Context;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

/// What begins every name.
const PREFIX: &str = "vat_classification_";
/// Bounds of histograms of times, in seconds.
const BOUNDS: [f64; 13] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// Names without the prefix, and what they mean. Counters without labels begin at 0.
const COUNTERS: [(&str, &str); 16] = [
    ("action_batches_total", "Batches of actions by filter that were worked off"),
    ("account_requests_total", "Requests by the number of their account; accounts beyond the first 200 together"),
    ("assignments_judged_again_total", "Assignments judged again because a VAT rule began or ended"),
    ("auto_assignment_parked_total", "Products whose auto-assignment failed"),
    ("auto_assignments_total", "Assignments that auto-assignment stored"),
    ("http_requests_total", "Answers by method, route and status"),
    ("job_panics_total", "Jobs that panicked and were begun again, by job"),
    ("memory_decisions_left_out_total", "Decisions of people that could not be learnt"),
    ("memory_lessons_given_up_total", "Decisions whose alike products could not be looked at, and are not again"),
    ("memory_requeued_total", "Products classified again because of what people decided about alike ones"),
    ("orphaned_objects_removed_total", "Pictures removed from their store because nothing refers to them"),
    ("search_changes_total", "Changes written to the search index"),
    ("search_parked_total", "Products that the search index refused"),
    ("spans_dropped_total", "Spans of traces that the collector did not take"),
    ("unreadable_products_total", "Stored products that could not be read"),
    ("webhook_attempts_total", "Attempts to deliver to webhooks, by outcome"),
];
const GAUGES: [(&str, &str); 9] = [
    ("auto_assignment_oldest_seconds", "How long the oldest product waits for auto-assignment"),
    ("auto_assignment_parked_products", "Products that wait for somebody to look why auto-assignment failed"),
    ("auto_assignment_queue_products", "Products that wait for auto-assignment, at most 100,000"),
    ("build_info", "1, with the versions of the program, the model and its corpus"),
    ("database_connections", "Connections to the database, by state"),
    ("orphaned_objects", "Pictures that wait to be removed from their store"),
    ("search_outbox_oldest_seconds", "How long the oldest change waits for the search index"),
    ("search_outbox_rows", "Changes that wait for the search index, at most 100,000"),
    ("search_parked_products", "Products that the search index refused and that wait for somebody to look why"),
];
const HISTOGRAMS: [(&str, &str); 4] = [
    ("decision_seconds", "Time to decide about a batch of products"),
    ("http_request_seconds", "Time from the headers of a request to the first byte of its answer"),
    ("picture_seconds", "Time to look at an uploaded picture"),
    ("search_seconds", "Time of a search for products, by engine"),
];
/// Counters that have labels, which are known with their first event.
const LABELLED: [&str; 4] =
    ["account_requests_total", "http_requests_total", "job_panics_total", "webhook_attempts_total"];

/// Begins to record.
///
/// # Errors
/// When somebody else records already.
pub(super) fn record() -> anyhow::Result<PrometheusHandle> {
    let builder = PrometheusBuilder::new().set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &BOUNDS)?;
    let recorder = builder.install_recorder().context("metrics")?;
    describe();
    Ok(recorder)
}

fn describe() {
    let name = |name: &str| format!("{PREFIX}{name}");
    for (known, help) in COUNTERS {
        metrics::describe_counter!(name(known), help);
        if !LABELLED.contains(&known) {
            metrics::counter!(name(known)).increment(0);
        }
    }
    for (known, help) in GAUGES {
        metrics::describe_gauge!(name(known), help);
    }
    for (known, help) in HISTOGRAMS {
        metrics::describe_histogram!(name(known), help);
    }
}

/// Tells which program and model run.
pub(super) fn tell_build(model: String, corpus: String) {
    let version = env!("CARGO_PKG_VERSION");
    metrics::gauge!("vat_classification_build_info", "version" => version, "model" => model, "corpus" => corpus)
        .set(1.0);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    fn named_in(dir: &Path, names: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(dir).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                named_in(&path, names);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).expect("a source file");
                for (at, _) in text.match_indices("!(\"vat_classification_") {
                    names.insert(text[at + 3..].chars().take_while(|c| *c != '"').collect());
                }
            }
        }
    }

    #[test]
    fn every_metric_has_help_and_begins_with_the_prefix() {
        let mut named = BTreeSet::new();
        named_in(Path::new("src"), &mut named);
        let told = COUNTERS.iter().chain(&GAUGES).chain(&HISTOGRAMS);
        let told: BTreeSet<String> = told.map(|(name, _)| format!("{PREFIX}{name}")).collect();
        assert_eq!(named, told);
    }

    #[test]
    fn what_is_shown_has_help_and_counters_begin_at_nothing() {
        let recorder = PrometheusBuilder::new().build_recorder();
        metrics::with_local_recorder(&recorder, || {
            describe();
            tell_build("m1".to_owned(), "c1".to_owned());
        });
        let shown = recorder.handle().render();
        for line in [
            "# HELP vat_classification_auto_assignments_total Assignments that auto-assignment stored",
            "vat_classification_auto_assignments_total 0",
            "vat_classification_build_info{version=\"",
        ] {
            assert!(shown.contains(line), "{line}: {shown}");
        }
    }
}
