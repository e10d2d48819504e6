//! Reads the lists of codes that customs authorities publish into the reference data: national lines below the six
//! digits of the Harmonized System, with their texts, days of validity and, for ended codes, their successors.
//!
//! Four forms are understood, told by the names of their columns: the goods nomenclature of the EU (XLSX, one language a
//! file), its self-explanatory texts of the Combined Nomenclature (CSV), the commodities of the UK Trade Tariff (CSV,
//! with the parent or the indent of each) and the customs tariff of Switzerland (XLSX or CSV, several languages a row):
//! its structure with texts between the numbers, its list of days of validity, or one table of eight-digit numbers.
//!
//! An import is one transaction: the list of the taxonomy is written beside the old one and takes its place in one step,
//! or nothing changes. Importing the same files again changes nothing.

mod columns;
mod line;
mod lines;
mod merge;
mod row;
mod table;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, bail, ensure};
use chrono::NaiveDate;
use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};

use vat_classification::domain::Taxonomy;
use vat_classification::domain::nomenclature::parse_national;
use vat_classification::reference::national_file;

use columns::Columns;
use line::Line;
use lines::Lines;
use table::Table;

/// Bad rows shown before the import gives up.
const MAX_FAULTS_SHOWN: usize = 20;

/// Options of `training import-nomenclature`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The taxonomy to which the list belongs.
    #[arg(long, value_parser = parse_taxonomy)]
    pub(crate) taxonomy: Taxonomy,
    /// The language of files that do not say it themselves.
    #[arg(long)]
    pub(crate) lang: Option<Language>,
    /// The directory of reference data that gets the list.
    #[arg(long, env = "TAXONOMY_DIR", default_value = "models")]
    pub(crate) taxonomy_dir: PathBuf,
    /// Skips and counts rows that cannot be read, instead of giving up.
    #[arg(long)]
    pub(crate) skip_bad_rows: bool,
    /// Writes codes, days and successors alone, without the texts of the authority: the form of the lists that ship.
    #[arg(long)]
    pub(crate) facts_only: bool,
    /// The day of the list; codes that it no longer has ended the day before. Today unless given.
    #[arg(long)]
    pub(crate) date: Option<NaiveDate>,
    /// The files, all of one list.
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
}

/// A language of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    /// German.
    De,
    /// English.
    En,
}

pub(crate) fn parse_taxonomy(name: &str) -> Result<Taxonomy, String> {
    Taxonomy::from_name(&name.to_uppercase()).ok_or_else(|| "expected TARIC, TARES or UKGT".to_owned())
}

/// Runs the import and tells what it changed.
///
/// # Errors
/// When a file cannot be read or has bad rows that were not to be skipped; then nothing has changed.
pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    let started = Instant::now();
    let date = args.date.unwrap_or_else(|| chrono::Utc::now().date_naive());
    let mut list = Lines::new(args.taxonomy, args.lang);
    let mut files = args.files.iter().map(|path| open(path, &mut list)).collect::<anyhow::Result<Vec<_>>>()?;
    // Days of validity are added to lines that are known already.
    files.sort_by_key(|file| !file.columns.has_texts());
    for file in &files {
        read_file(file, &mut list);
    }
    report_faults(&list, args.skip_bad_rows)?;
    ensure!(!list.is_empty(), "the files have no line that names a code");

    let target = national_file(&args.taxonomy_dir, args.taxonomy);
    let before = read_old(&target, args.taxonomy)?;
    let ends = list.ends_others();
    let merged = merge::merge(before, list.finish(), ends, date);
    let text = if args.facts_only { merge::to_facts(&merged.lines) } else { merge::to_text(&merged.lines) };
    let mut faults = Vec::new();
    parse_national(&target.display().to_string(), &text, args.taxonomy, &mut faults);
    if let Some(fault) = faults.first() {
        bail!("the list would not be readable: {fault}");
    }
    write_atomically(&target, &text)?;
    println!(
        "{}: {} lines, {} added, {} ended, {} changed, {} unchanged, in {:.1} s",
        args.taxonomy,
        merged.lines.len(),
        merged.added,
        merged.ended,
        merged.changed,
        merged.unchanged,
        started.elapsed().as_secs_f64()
    );
    Ok(())
}

/// A file of the list, not read yet.
struct File {
    name: String,
    table: Table,
    columns: Columns,
}

fn open(path: &Path, list: &mut Lines) -> anyhow::Result<File> {
    let name = path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
    let table = table::read(path).with_context(|| path.display().to_string())?;
    let columns = list.columns(&name, &table.header)?;
    Ok(File { name, table, columns })
}

fn read_file(file: &File, list: &mut Lines) {
    let (lines, faults) = (list.read, list.faults.len());
    let bar = ProgressBar::new(file.table.rows.len() as u64);
    if let Ok(style) = ProgressStyle::with_template("{msg} {bar:40} {pos}/{len} lines") {
        bar.set_style(style);
    }
    bar.set_message(file.name.clone());
    for (index, row) in file.table.rows.iter().enumerate() {
        list.add(&file.name, file.table.first_row + index, row, &file.columns);
        bar.inc(1);
    }
    bar.finish_and_clear();
    println!("{}: {} lines read, {} bad", file.name, list.read - lines, list.faults.len() - faults);
}

fn report_faults(list: &Lines, skip: bool) -> anyhow::Result<()> {
    for fault in list.faults.iter().take(MAX_FAULTS_SHOWN) {
        eprintln!("{fault}");
    }
    if list.faults.len() > MAX_FAULTS_SHOWN {
        eprintln!("and {} more", list.faults.len() - MAX_FAULTS_SHOWN);
    }
    ensure!(
        skip || list.faults.is_empty(),
        "{} bad rows; nothing was changed. --skip-bad-rows imports the others",
        list.faults.len()
    );
    Ok(())
}

/// The list as the last import left it; empty before the first one.
fn read_old(target: &Path, taxonomy: Taxonomy) -> anyhow::Result<Vec<Line>> {
    if !target.exists() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(target).with_context(|| target.display().to_string())?;
    let mut faults = Vec::new();
    parse_national(&target.display().to_string(), &text, taxonomy, &mut faults);
    if let Some(fault) = faults.first() {
        bail!("{fault}; repair the list or remove it");
    }
    Ok(merge::from_text(&text))
}

fn write_atomically(target: &Path, text: &str) -> anyhow::Result<()> {
    let folder = target.parent().context("the list needs a folder")?;
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let beside = target.with_extension("tsv.new");
    let mut file = fs::File::create(&beside).with_context(|| beside.display().to_string())?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&beside, target).with_context(|| target.display().to_string())
}

#[cfg(test)]
mod tests;
