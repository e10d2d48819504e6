//! The trainer: checks the corpus, fits the classifier's model, and measures it.

mod brands;
mod check;
mod check_vat;
mod compare;
mod corpus;
mod evaluate;
mod evaluate_memory;
mod export;
mod fit;
mod import_nomenclature;
mod labels;
mod limits;
mod marks;
mod random;
mod rows;
mod turns;

use std::process::ExitCode;

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
    /// Checks that corpus and labels are whole and clean.
    CheckCorpus(check::Options),
    /// Checks the VAT rules, and tells how many classes they settle.
    CheckVat(check_vat::Options),
    /// Fits a model on the corpus and writes it to one file.
    Fit(fit::Options),
    /// Fits confidence and limits of a model to listings of shops with known codes.
    FitLimits(limits::Options),
    /// Measures a model on files of texts with known codes.
    Evaluate(evaluate::Options),
    /// Measures what memory learns from reviewers of listings, and fits how sure it is.
    EvaluateMemory(evaluate_memory::Options),
    /// Finds the words of the corpus that turn a class, for memory.
    LearnTurns(turns::Options),
    /// Reads an authority's list of codes into the reference data.
    ImportNomenclature(import_nomenclature::Args),
    /// Writes what merchants approved as rows of the corpus.
    ExportReviewed(export::Options),
    /// Measures a model beside fastText and scikit-learn on the same rows.
    Compare(compare::Options),
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::CheckCorpus(options) => check::run(&options),
        Command::CheckVat(options) => check_vat::run(&options),
        Command::Fit(options) => fit::run(&options),
        Command::FitLimits(options) => limits::run(&options),
        Command::Evaluate(options) => evaluate::run(&options),
        Command::EvaluateMemory(options) => evaluate_memory::run(&options),
        Command::LearnTurns(options) => turns::run(&options),
        Command::ImportNomenclature(args) => import_nomenclature::run(args),
        Command::ExportReviewed(options) => export::run(&options),
        Command::Compare(options) => compare::run(&options),
    }
}
