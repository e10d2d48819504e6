//! The demonstration: loads sample products through the public API, waits until they are classified, shows the outcome.
//!
//! It is a client like any other and knows nothing of the service but its interface.

mod client;
mod samples;
mod table;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};

pub use samples::{Sample, samples};

use client::{Assignment, Client};

/// Products sent in one request.
const BATCH: usize = 40;
/// How long the samples may take to be classified.
const WAIT_LIMIT: Duration = Duration::from_secs(120);
/// How often it is looked whether they are.
const POLL_PAUSE: Duration = Duration::from_millis(200);

/// Loads the samples into the service at `base_url` (with or without `/api/vat-classification/v1`) with an EDIT token,
/// waits until none is pending, and prints a table with the label that `label` has for a product class code.
///
/// Loading again replaces the samples with themselves. Progress goes to stderr, the table to stdout.
///
/// # Errors
///
/// When the service cannot be reached, refuses a request, or does not classify within two minutes.
pub async fn run(base_url: &str, token: &str, label: impl Fn(&str) -> Option<String>) -> Result<()> {
    let samples = samples()?;
    let client = Client::new(base_url, token)?;
    load(&client, &samples).await?;
    let assignments = wait(&client, &samples).await?;
    print!("{}", table::render(&samples, &assignments, label));
    Ok(())
}

async fn load(client: &Client, samples: &[Sample]) -> Result<()> {
    let bar = progress("Loading products", samples.len());
    for batch in samples.chunks(BATCH) {
        client.create(batch).await.context("cannot load the samples")?;
        bar.inc(batch.len() as u64);
    }
    bar.finish();
    Ok(())
}

/// Asks until no assignment of a sample is pending; answers them by productId.
async fn wait(client: &Client, samples: &[Sample]) -> Result<HashMap<String, Assignment>> {
    let bar = progress("Classifying     ", samples.len());
    let ids: Vec<&str> = samples.iter().map(|sample| sample.product_id.as_str()).collect();
    let started = Instant::now();
    loop {
        let assignments = client.assignments(&ids).await.context("cannot read the assignments")?;
        let done = assignments.values().filter(|assignment| !assignment.is_pending()).count();
        bar.set_position(done as u64);
        if done == samples.len() {
            bar.finish();
            return Ok(assignments);
        }
        if started.elapsed() > WAIT_LIMIT {
            bail!("only {done} of {} products are classified after {} s", samples.len(), WAIT_LIMIT.as_secs());
        }
        tokio::time::sleep(POLL_PAUSE).await;
    }
}

fn progress(what: &'static str, length: usize) -> ProgressBar {
    let bar = ProgressBar::new(length as u64).with_message(what);
    // A constant template: it cannot fail, and without it the bar looks plain.
    if let Ok(style) = ProgressStyle::with_template("{msg} [{bar:40}] {pos}/{len} {elapsed}") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

#[cfg(test)]
mod tests;
