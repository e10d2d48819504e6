//! Reads a spreadsheet or a file of separated values into rows of text.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};
use calamine::{Data, DataType as _, Reader as _};
use chrono::{Days, NaiveDate};

use super::columns::is_header;

/// Rows before the header, at most: some authorities put a title above it.
const MAX_TITLE_ROWS: usize = 10;
/// A header has at least this many named columns: a code and what is said of it.
const MIN_COLUMNS: usize = 2;
/// The day from which spreadsheets count.
const SPREADSHEET_EPOCH: NaiveDate = NaiveDate::from_ymd_opt(1899, 12, 30).expect("a date of the calendar");

/// A header and the rows below it.
pub(super) struct Table {
    pub(super) header: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
    /// Number of the first row as a spreadsheet counts, from 1.
    pub(super) first_row: usize,
}

/// Reads a file by its ending.
pub(super) fn read(path: &Path) -> anyhow::Result<Table> {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_lowercase();
    let rows = match ending.as_str() {
        "xlsx" | "xlsm" | "xls" | "ods" => spreadsheet(path)?,
        "csv" | "tsv" | "txt" => separated(&decode(fs::read(path)?))?,
        _ => bail!("expected a file that ends in .xlsx or .csv"),
    };
    let wide = |row: &Vec<String>| row.iter().filter(|cell| !cell.trim().is_empty()).count() >= MIN_COLUMNS;
    let title = || rows.iter().take(MAX_TITLE_ROWS);
    // Where no row names a column with codes, the first wide one is taken, so that the error can tell its columns.
    let at = title().position(|row| wide(row) && is_header(row)).or_else(|| title().position(wide));
    let at = at.context("the file has no header")?;
    let mut rows = rows.into_iter().skip(at);
    let header = rows.next().unwrap_or_default();
    Ok(Table { header, rows: rows.collect(), first_row: at + 2 })
}

fn spreadsheet(path: &Path) -> anyhow::Result<Vec<Vec<String>>> {
    let mut workbook = calamine::open_workbook_auto(path)?;
    let sheet = workbook.worksheet_range_at(0).context("the workbook has no sheet")??;
    Ok(sheet.rows().map(|row| row.iter().map(cell_text).collect()).collect())
}

fn cell_text(cell: &Data) -> String {
    match cell {
        Data::Empty | Data::Error(_) => String::new(),
        Data::Float(number) if number.fract() == 0.0 => format!("{number:.0}"),
        Data::DateTime(_) => cell.as_f64().and_then(spreadsheet_day).map_or_else(String::new, |date| date.to_string()),
        other => other.to_string(),
    }
}

/// The day that a spreadsheet's number means.
pub(super) fn spreadsheet_day(days: f64) -> Option<NaiveDate> {
    let days = Some(days).filter(|days| (0.0..1e6).contains(days))?;
    SPREADSHEET_EPOCH.checked_add_days(Days::new(days as u64))
}

/// Rows of a text. The separator is the one with which a header is found, and among several the one that parts the first
/// lines most often: texts have commas too.
fn separated(text: &str) -> anyhow::Result<Vec<Vec<String>>> {
    let most = |separator: &u8| {
        let count = |line: &str| line.bytes().filter(|byte| byte == separator).count();
        text.lines().take(MAX_TITLE_ROWS).map(count).max()
    };
    let finds_header = |separator: &u8| {
        let title = rows_by(text, *separator).take(MAX_TITLE_ROWS);
        title.flatten().any(|row| row.len() >= MIN_COLUMNS && is_header(&row))
    };
    let best = [b',', b';', b'\t'].into_iter().max_by_key(|separator| (finds_header(separator), most(separator)));
    rows_by(text, best.unwrap_or(b',')).collect()
}

fn rows_by(text: &str, separator: u8) -> impl Iterator<Item = anyhow::Result<Vec<String>>> {
    let reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).delimiter(separator).from_reader(text.as_bytes());
    reader.into_records().map(|row| Ok(row?.iter().map(str::to_owned).collect()))
}

/// UTF-8 with or without its mark, or else Windows-1252, in which older European files are written.
fn decode(bytes: Vec<u8>) -> String {
    /// What Windows-1252 has at 0x80 to 0x9f.
    const HIGH: &str = "€\u{81}‚ƒ„…†‡ˆ‰Š‹Œ\u{8d}Ž\u{8f}\u{90}‘’“”•–—˜™š›œ\u{9d}žŸ";
    match String::from_utf8(bytes) {
        Ok(text) => text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text),
        Err(error) => error
            .into_bytes()
            .into_iter()
            .map(|byte| match byte {
                0x80..=0x9f => HIGH.chars().nth(usize::from(byte - 0x80)).unwrap_or_default(),
                byte => char::from(byte),
            })
            .collect(),
    }
}
