//! The subcommands `import` and `export`: products of an account from files and into them.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressStyle};

use crate::app::database::Database;
use crate::app::settings::{ExportSettings, FileFormat, ImportCommand};
use crate::exchange::{self, ImportSettings, Progress, Summary};
use crate::files::{CsvTable, Given, Table, XlsxTable};

/// How often the bar is brought up to date.
const BAR_ROUND: Duration = Duration::from_millis(200);

/// Merges a file into the products of an account.
pub(super) async fn import(file: &Path, command: &ImportCommand) -> anyhow::Result<()> {
    let columns = Given::parse(&command.map, &command.language)?;
    let settings = ImportSettings { columns, dry_run: command.dry_run, ..ImportSettings::default() };
    let input = File::open(file).with_context(|| format!("cannot open {}", file.display()))?;
    let length = input.metadata()?.len();
    let database = Database::open(&command.transfer.database).await?;
    let progress = Arc::new(Progress::default());
    let shown = tokio::spawn(show(progress.clone(), length));
    let done = async {
        let caller = database.store.require_account(&command.transfer.account, &command.transfer.user).await?;
        // A file is written over only once it is certain that there is something to write.
        let report: Option<Box<dyn Write + Send>> = match &command.report {
            None => None,
            Some(path) => {
                let output = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
                Some(Box::new(BufWriter::new(output)))
            }
        };
        anyhow::Ok(exchange::import(&database.store, &caller, input, &settings, &progress, report).await?)
    };
    let done = done.await;
    shown.abort();
    database.close().await;
    tell(&done?, command)
}

fn tell(summary: &Summary, command: &ImportCommand) -> anyhow::Result<()> {
    let Summary { created, updated, unchanged, refused, left_columns, faults, more_faults } = summary;
    if !left_columns.is_empty() {
        eprintln!("columns that were left: {}", left_columns.join(", "));
    }
    for fault in faults {
        eprintln!("line {}: {}: {}: {}", fault.line, fault.product_id, fault.column, fault.message);
    }
    if *more_faults > 0 {
        eprintln!("and {more_faults} more");
    }
    let would = if command.dry_run { " (nothing was stored)" } else { "" };
    println!(
        "{} products imported: {created} new, {updated} changed, {unchanged} as before{would}",
        created + updated + unchanged
    );
    if *refused > 0 {
        let hint = if command.report.is_none() { "; --report FILE names all of them" } else { "" };
        bail!("{refused} lines were left because of what is wrong with them{hint}");
    }
    Ok(())
}

/// Shows how far an import is, until it is ended. Rows count when they are stored; the time left goes by the bytes that
/// are read, which are never more than a few thousand rows ahead.
async fn show(progress: Arc<Progress>, length: u64) {
    let bar = bar(length, "[{bar:40}] {percent} % {msg} {elapsed}, {eta} left");
    loop {
        let rows = progress.rows.load(Relaxed);
        bar.set_position(progress.bytes.load(Relaxed).min(length));
        let rate = rows as f64 / bar.elapsed().as_secs_f64().max(0.001);
        bar.set_message(format!("{rows} rows, {rate:.0}/s,"));
        tokio::time::sleep(BAR_ROUND).await;
    }
}

/// Writes all products of an account, global ones first, then those of each shop.
pub(super) async fn export(file: &Path, settings: &ExportSettings) -> anyhow::Result<()> {
    let database = Database::open(&settings.transfer.database).await?;
    let done = async {
        let caller = database.store.require_account(&settings.transfer.account, &settings.transfer.user).await?;
        let output = File::create(file).with_context(|| format!("cannot write {}", file.display()))?;
        let output = BufWriter::new(output);
        let named_xlsx = file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("xlsx"));
        let table: Box<dyn Table> = match settings.format {
            Some(FileFormat::Xlsx) => Box::new(XlsxTable::new(output)?),
            None if named_xlsx => Box::new(XlsxTable::new(output)?),
            _ => Box::new(CsvTable::new(output)),
        };
        let shops = database.store.shops(caller.account).await?;
        let products = shops.iter().map(|(_, products)| products.unsigned_abs()).sum();
        let bar = bar(products, "[{bar:40}] {pos}/{len} products, {per_sec}, {eta} left");
        let written = |count| bar.set_position(count);
        anyhow::Ok(exchange::export(&database.store, caller.account, &settings.languages, table, written).await?)
    };
    let done = done.await;
    database.close().await;
    println!("{} products exported", done?);
    Ok(())
}

fn bar(length: u64, template: &str) -> ProgressBar {
    let bar = ProgressBar::new(length);
    // A constant template: it cannot fail, and without it the bar looks plain.
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}
