//! The trainer: checks the corpus, fits the classifier's model, and measures it.

mod corpus;
mod evaluate;
mod fit;
mod import_nomenclature;
mod labels;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Checks the corpus, fits the classifier's model, and measures it.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Fits a model on the corpus and writes it to one file.
    Fit(fit::Options),
    /// Measures a model on files of texts with known codes.
    Evaluate(evaluate::Options),
    /// Reads an authority's list of codes into the reference data.
    ImportNomenclature(import_nomenclature::Args),
}

fn main() -> Result<()> {
    match Arguments::parse().command {
        Command::Fit(options) => fit::run(&options),
        Command::Evaluate(options) => evaluate::run(&options),
        Command::ImportNomenclature(args) => import_nomenclature::run(args),
    }
}
