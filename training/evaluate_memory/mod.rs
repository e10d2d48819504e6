//! `evaluate-memory`: what memory makes of a reviewer's answers on listings of shops.
//!
//! A stream is what one source lists. A simulated reviewer works off its queue and answers with the label; where there is
//! none, with the class that most variants of the good get when all their texts are shown to the model. After some shares
//! of the stream it is measured how many of the other listings are decided and rightly, beside the shipped model alone and
//! beside the class of the nearest reviewed title.

mod fit;
mod nearest;
mod report;
mod simulate;
mod streams;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use chrono::Utc;
use clap::Args;
use rayon::prelude::*;
use vat_classification::classify::Classifier;
use vat_classification::decision::Engine;
use vat_classification::domain::{Precision, Taxonomy};
use vat_classification::memory::{Confidence, Turns};
use vat_classification::reference::Reference;

use crate::evaluate::parse_precision;
use simulate::Outcomes;
use streams::Stream;

/// How often confidence is fitted on the streams as they went with the confidence before.
const ROUNDS: usize = 2;

/// Options of `evaluate-memory`.
#[derive(Args)]
pub(crate) struct Options {
    /// Tab-separated files with a header: set, id, lang, name, description, tags (`|` between), code.
    pub(crate) files: Vec<PathBuf>,
    /// Files of listings without codes (source, category, title, description; the language is the name of the file).
    #[arg(long)]
    pub(crate) pool: Vec<PathBuf>,
    /// Codes that people gave to some of those listings: hash of the title, hash of the source, code.
    #[arg(long, default_value = "training/limits/labels.tsv")]
    pub(crate) labels: PathBuf,
    /// Directory of a corpus, whose held-out rows are fitted on.
    #[arg(long)]
    pub(crate) corpus: Option<PathBuf>,
    /// Directory of the label tables, which tell the held-out rows from those that were learnt.
    #[arg(long, default_value = "models/taxonomy/hs2022")]
    pub(crate) class_labels: PathBuf,
    /// The model.
    #[arg(long, default_value = "models/classifier.bin")]
    pub(crate) model: PathBuf,
    /// Directory of taxonomies and VAT rules, which the order of the queue follows from.
    #[arg(long, default_value = "models")]
    pub(crate) reference: PathBuf,
    /// Share of decisions that are meant to be right: 0.90, 0.95 or 0.98.
    #[arg(long, default_value = "0.95", value_parser = parse_precision)]
    pub(crate) precision: Precision,
    /// Share of the reviewer's answers that are another good's class.
    #[arg(long, default_value_t = 0.0)]
    pub(crate) wrong: f64,
    /// Fits how sure memory is where people know the classes, on two thirds of the sources and on the corpus, and writes
    /// coefficients and limits to this file.
    #[arg(long)]
    pub(crate) fit: Option<PathBuf>,
    /// The words that turn a class, from `learn-turns`; without it those of the program.
    #[arg(long)]
    pub(crate) turns: Option<PathBuf>,
    /// Coefficients and limits to measure with; without them those of the program.
    #[arg(long)]
    pub(crate) confidence: Option<PathBuf>,
    /// Prints each stream, too.
    #[arg(long)]
    pub(crate) streams: bool,
}

/// Measures, and fits where that is wanted.
pub(crate) fn run(options: &Options) -> Result<()> {
    let reference = Arc::new(Reference::load(&options.reference)?);
    let classifier = Classifier::load(&options.model)?;
    let list = reference.nomenclature(Taxonomy::Taric);
    let streams = streams::read(options, &classifier, list)?;
    drop(classifier);
    let engine = Engine::load(&options.model, reference.clone())?;
    let mut confidence = Confidence::shipped();
    if let Some(path) = &options.confidence {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        confidence = Confidence::read(&text).with_context(|| format!("{} is not understood", path.display()))?;
    }
    if let Some(path) = &options.turns {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let turns = Turns::read(&text).with_context(|| format!("{} is not understood", path.display()))?;
        confidence.turns = Arc::new(turns);
    }
    if let Some(out) = &options.fit {
        for _ in 0..ROUNDS {
            let reviewed = review(&engine, &streams, &confidence, options, 0.0);
            let fitted = streams.iter().zip(&reviewed).filter(|(stream, _)| !stream.measures);
            let rows: Vec<_> = fitted
                .flat_map(|(stream, outcomes)| outcomes.iter().flat_map(|some| fit::rows(stream.truth, some)))
                .collect();
            let turns = confidence.turns.clone();
            confidence = Confidence { turns, ..fit::fit(&rows)? };
            fit::set_limits(&mut confidence, &rows);
            eprintln!("{} rows\n{}", rows.len(), confidence.write());
        }
        let heading = "# How sure decisions by memory are; made by `training evaluate-memory --fit`.\n";
        fs::write(out, heading.to_owned() + &confidence.write()).with_context(|| out.display().to_string())?;
    }
    let reviewed = review(&engine, &streams, &confidence, options, options.wrong);
    report::print(&streams, &reviewed, options.precision, options.streams);
    Ok(())
}

fn review(
    engine: &Engine,
    streams: &[Stream],
    confidence: &Confidence,
    options: &Options,
    wrong: f64,
) -> Vec<Outcomes> {
    let engine = engine.as_sure_as(confidence.clone());
    let today = Utc::now().date_naive();
    let streams: Vec<(i64, &Stream)> = (1..).zip(streams).collect();
    let review = |(account, stream): &(i64, &Stream)| {
        simulate::review(&engine, stream, *account, options.precision, wrong, today)
    };
    streams.par_iter().map(review).collect()
}
