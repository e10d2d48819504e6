//! Files into the database: one thread reads, while parts of what it has read are stored.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use futures::{StreamExt, stream};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::domain::{Fault, ShopId};
use crate::exchange::Spool;
use crate::exchange::seen::Seen;
use crate::files::{self, Columns, CsvTable, FileError, Given, MappingError, Row, RowFault, Rows, Source, Table};
use crate::store::accounts::Caller;
use crate::store::products::Merged;
use crate::store::{Store, StoreError};

/// Rows that are stored in one transaction.
const PART_ROWS: usize = 1_000;
/// Parts that are stored at one time.
const PARTS_AT_ONCE: usize = 4;
/// Parts that are read ahead.
const PARTS_AHEAD: usize = 2;
/// Memory for parts of a file that are read, wait or are being stored, about: one row may be larger than a part.
pub const MEMORY_BYTES: usize = 16 << 20;
/// Bytes of cells, about, that are stored in one transaction: one part is being read while another waits for room.
const PART_BYTES: usize = MEMORY_BYTES / (PARTS_AT_ONCE + PARTS_AHEAD + 2);
/// Faults that a summary shows where nothing else is said; a report has all.
const FAULTS_SHOWN: usize = 20;

/// How a file is imported.
#[derive(Clone, Debug)]
pub struct ImportSettings {
    /// How its columns are named.
    pub columns: Given,
    /// Judge everything and store nothing.
    pub dry_run: bool,
    /// Faults that the summary shows.
    pub faults_shown: usize,
    /// Rows that the file may have.
    pub most_rows: u64,
    /// Where lies what is known of its rows and does not fit into memory.
    pub spool: Spool,
}

impl Default for ImportSettings {
    fn default() -> ImportSettings {
        ImportSettings {
            columns: Given::default(),
            dry_run: false,
            faults_shown: FAULTS_SHOWN,
            most_rows: u64::MAX,
            spool: Spool::new(&std::env::temp_dir()),
        }
    }
}

/// How far an import is; read while it runs.
#[derive(Debug, Default)]
pub struct Progress {
    /// Bytes of the file that are read.
    pub bytes: AtomicU64,
    /// Rows that are done with, stored or refused.
    pub rows: AtomicU64,
}

/// What became of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Products made.
    pub created: u64,
    /// Products changed.
    pub updated: u64,
    /// Products that were as the file wants them already.
    pub unchanged: u64,
    /// Lines that were left because of what is wrong with them.
    pub refused: u64,
    /// Columns that mean nothing to this service and were left.
    pub left_columns: Vec<String>,
    /// The first faults, by line.
    pub faults: Vec<RowFault>,
    /// How many faults there are beyond those.
    pub more_faults: u64,
}

/// Why an import ended before its file. What it had stored by then stays; importing the file again is safe.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file.
    #[error(transparent)]
    File(#[from] FileError),
    /// Its columns.
    #[error(transparent)]
    Mapping(#[from] MappingError),
    /// The database, or the limit of the plan.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The report.
    #[error("the report cannot be written: {0}")]
    Report(#[from] std::io::Error),
    /// The reader ended without saying why.
    #[error("reading the file ended unexpectedly")]
    Reader,
}

/// Rows of one shop, and lines of the same stretch of the file that cannot be rows.
struct Part {
    shop: ShopId,
    rows: Vec<Row>,
    /// Of the cells of these rows, and of what is told of the lines.
    bytes: usize,
    faults: Vec<Vec<RowFault>>,
}

impl Default for Part {
    fn default() -> Part {
        Part { shop: ShopId::GLOBAL, rows: Vec::new(), bytes: 0, faults: Vec::new() }
    }
}

/// Merges the products of a file into those of an account. What the file does not speak of stays. A line with a mistake
/// is left, named in the report, and costs no other line.
///
/// # Errors
/// When it has to end before the file does.
pub async fn import(
    store: &Store,
    caller: &Caller,
    source: impl Source,
    settings: &ImportSettings,
    progress: &Arc<Progress>,
    report: Option<Box<dyn Write + Send>>,
) -> Result<Summary, ImportError> {
    let (summary, stopped) = import_as_far_as_possible(store, caller, source, (), settings, progress, report).await;
    stopped.map_or(Ok(summary), Err)
}

/// As [`import`], and tells what became of the file until it had to end, and why it had to.
///
/// Threads read and unpack the file. When this future is dropped, or ends before the file does, they end a moment
/// later; each holds a clone of `place` until then.
pub async fn import_as_far_as_possible(
    store: &Store,
    caller: &Caller,
    source: impl Source,
    place: impl Clone + Send + 'static,
    settings: &ImportSettings,
    progress: &Arc<Progress>,
    report: Option<Box<dyn Write + Send>>,
) -> (Summary, Option<ImportError>) {
    let ended = CancellationToken::new();
    let counted = Counted { source, progress: progress.clone(), ended: ended.clone(), _place: place.clone() };
    let _ended = ended.drop_guard();
    let (given, held) = (settings.columns.clone(), place.clone());
    let opened = tokio::task::spawn_blocking(move || -> Result<Rows, ImportError> {
        let _held = held;
        let lines = files::open(counted)?;
        let columns = Columns::of(lines.header(), &given)?;
        Ok(Rows::new(lines, columns))
    });
    let rows = match opened.await.unwrap_or(Err(ImportError::Reader)) {
        Ok(rows) => rows,
        Err(error) => return (Summary::default(), Some(error)),
    };
    let mut tally = match Tally::new(rows.columns().clone(), settings.faults_shown, report) {
        Ok(tally) => tally,
        Err(error) => return (Summary::default(), Some(error.into())),
    };
    let stored = store_rows(store, caller, rows, place, settings, progress, &mut tally).await;
    let written = tally.end_report();
    (tally.summary, stored.err().or(written.err()))
}

async fn store_rows(
    store: &Store,
    caller: &Caller,
    rows: Rows,
    place: impl Send + 'static,
    settings: &ImportSettings,
    progress: &Arc<Progress>,
    tally: &mut Tally,
) -> Result<(), ImportError> {
    let (sender, parts) = mpsc::channel(PARTS_AHEAD);
    let (most_rows, seen) = (settings.most_rows, Seen::new(settings.spool.clone()));
    let reader = tokio::task::spawn_blocking(move || {
        let _held = place;
        read(rows, seen, most_rows, &sender)
    });
    // After a failure no further part is begun; those under way are seen to their end, since they may well be stored.
    let failed = Arc::new(AtomicBool::new(false));
    let parts = stream::unfold(
        (parts, failed.clone()),
        |(mut parts, failed): (mpsc::Receiver<Part>, Arc<AtomicBool>)| async move {
            let part = if failed.load(Relaxed) { None } else { parts.recv().await };
            part.map(|part| (part, (parts, failed)))
        },
    );
    let stored = parts.map(|part| async move {
        let patched: Vec<_> = part.rows.iter().map(|row| (row.product_id.as_str(), &row.patch)).collect();
        let merged = store.merge_products(caller, part.shop, &patched, settings.dry_run).await?;
        Ok::<_, StoreError>((part, merged))
    });
    let mut stored = std::pin::pin!(stored.buffered(PARTS_AT_ONCE));
    let mut outcome = Ok(());
    while let Some(next) = stored.next().await {
        let counted = next.map_err(ImportError::from).and_then(|(part, merged)| {
            progress.rows.fetch_add((part.rows.len() + part.faults.len()) as u64, Relaxed);
            Ok(tally.count(part, merged)?)
        });
        if counted.is_err() {
            failed.store(true, Relaxed);
            outcome = outcome.and(counted);
        }
    }
    outcome?;
    reader.await.map_err(|_| ImportError::Reader)??;
    Ok(())
}

/// Reads rows into parts until the file ends, or nobody takes them any more.
fn read(mut rows: Rows, mut seen: Seen, most_rows: u64, parts: &mpsc::Sender<Part>) -> Result<(), FileError> {
    let mut part = Part::default();
    for number in 0_u64.. {
        let next = match next_row(&mut rows, &mut seen) {
            Ok(Some(_)) if number >= most_rows => Err(FileError::TooManyRows(most_rows)),
            next => next,
        };
        let row = match next {
            Ok(row) => row,
            Err(error) => {
                // What was read before the mistake is stored.
                let _ = parts.blocking_send(part);
                return Err(error);
            }
        };
        let is_full = part.rows.len() + part.faults.len() >= PART_ROWS || part.bytes >= PART_BYTES;
        let changes_shop = matches!(&row, Some(Ok(row)) if row.shop != part.shop && !part.rows.is_empty());
        if (is_full || changes_shop || row.is_none()) && parts.blocking_send(std::mem::take(&mut part)).is_err() {
            return Ok(());
        }
        match row {
            None => return Ok(()),
            Some(Ok(row)) => {
                part.shop = row.shop;
                part.bytes += row.bytes;
                part.rows.push(row);
            }
            Some(Err(faults)) => {
                part.bytes += faults.iter().map(RowFault::bytes).sum::<usize>();
                part.faults.push(faults);
            }
        }
    }
    Ok(())
}

/// The next row, or what is wrong with its line; a line that speaks of a product again is left.
fn next_row(rows: &mut Rows, seen: &mut Seen) -> Result<Option<Result<Row, Vec<RowFault>>>, FileError> {
    let row = match rows.next_row()? {
        Some(Ok(row)) => row,
        other => return Ok(other),
    };
    Ok(Some(match seen.before(row.shop, &row.product_id, row.line)? {
        None => Ok(row),
        Some(first) => {
            let column = Rows::column_of(rows.columns(), "productId");
            let message = format!("line {first} speaks of the same product; this line is left");
            Err(vec![RowFault::new(row.line, &row.product_id, column, &message)])
        }
    }))
}

/// A source that tells how far it is read, and that fails once the import has ended. Whatever unpacks it then ends
/// soon, since the few KiB that it has in a buffer unpack to a few MiB at most.
struct Counted<S, P> {
    source: S,
    progress: Arc<Progress>,
    ended: CancellationToken,
    /// A thread that reads a sheet may be the last that has anything of an import.
    _place: P,
}

impl<S: Source, P> Read for Counted<S, P> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.ended.is_cancelled() {
            return Err(io::Error::other("the import has ended"));
        }
        let read = self.source.read(buffer)?;
        self.progress.bytes.fetch_add(read as u64, Relaxed);
        Ok(read)
    }
}

impl<S: Source, P> Seek for Counted<S, P> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = self.source.seek(to)?;
        self.progress.bytes.store(at, Relaxed);
        Ok(at)
    }
}

/// Counts what became of lines, and reports it.
struct Tally {
    columns: Columns,
    summary: Summary,
    faults_shown: usize,
    report: Option<Box<CsvTable<Box<dyn Write + Send>>>>,
}

impl Tally {
    fn new(columns: Columns, faults_shown: usize, report: Option<Box<dyn Write + Send>>) -> io::Result<Tally> {
        let mut report = report.map(|output| Box::new(CsvTable::new(output)));
        if let Some(report) = &mut report {
            report.header(&["line", "productId", "outcome", "column", "message"].map(str::to_owned))?;
            for name in &columns.left {
                let cells = ["1", "", "left", name, "is no column of this service: its cells were left"];
                report.row(&cells.map(str::to_owned))?;
            }
        }
        let summary = Summary { left_columns: columns.left.clone(), ..Summary::default() };
        Ok(Tally { columns, summary, faults_shown, report })
    }

    fn count(&mut self, part: Part, merged: Vec<Merged>) -> io::Result<()> {
        let mut lines: Vec<(u64, String, &str, Vec<RowFault>)> = Vec::new();
        for (row, merged) in part.rows.into_iter().zip(merged) {
            let faults = match &merged {
                Merged::Refused(faults) => faults.iter().map(|fault| self.told(&row, fault)).collect(),
                _ => Vec::new(),
            };
            let (count, outcome) = match merged {
                Merged::Created => (&mut self.summary.created, "created"),
                Merged::Updated => (&mut self.summary.updated, "updated"),
                Merged::Unchanged => (&mut self.summary.unchanged, "unchanged"),
                Merged::Refused(_) => (&mut self.summary.refused, "refused"),
            };
            *count += 1;
            lines.push((row.line, row.product_id, outcome, faults));
        }
        for faults in part.faults {
            let Some(first) = faults.first() else { continue };
            self.summary.refused += 1;
            lines.push((first.line, first.product_id.clone(), "refused", faults));
        }
        lines.sort_by_key(|(line, ..)| *line);
        for (line, product_id, outcome, faults) in lines {
            if let Some(report) = &mut self.report {
                if faults.is_empty() {
                    report.row(&[line.to_string(), product_id, outcome.to_owned(), String::new(), String::new()])?;
                }
                for RowFault { product_id, column, message, .. } in &faults {
                    let cells = [line.to_string().as_str(), product_id, outcome, column, message].map(str::to_owned);
                    report.row(&cells)?;
                }
            }
            let room = self.faults_shown.saturating_sub(self.summary.faults.len());
            self.summary.more_faults += faults.len().saturating_sub(room) as u64;
            self.summary.faults.extend(faults.into_iter().take(room));
        }
        Ok(())
    }

    /// A fault of a product, with the name that the file has for the place.
    fn told(&self, row: &Row, fault: &Fault) -> RowFault {
        let column = Rows::column_of(&self.columns, fault.field.as_deref().unwrap_or_default());
        RowFault::new(row.line, &row.product_id, column, &fault.message)
    }

    fn end_report(&mut self) -> Result<(), ImportError> {
        self.report.take().map_or(Ok(()), |report| report.finish()).map_err(ImportError::Report)
    }
}
