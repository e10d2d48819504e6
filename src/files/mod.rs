//! Files of products: rows are read from whatever format a file turns out to have, and written as CSV or XLSX.
//!
//! Pure readers and writers over `Read`, `Seek` and `Write`: nothing here knows of accounts, the database or requests.
//! A file is told by its content, never by its name: `PK` begins an XLSX file, `<` a feed in XML, anything else is text
//! with separators. Rows stream; a file is never held in memory (of an XLSX file, its table of shared texts is).

mod bounds;
mod cells;
mod columns;
mod feed;
mod limited;
mod rows;
mod sheet;
mod text;
mod write;
mod zeros;

pub use cells::{id_again, join, safe, split, unsafe_again};
pub use columns::{Column, Columns, Given, MappingError, header};
pub use rows::{Row, RowFault, Rows, patch};
pub use write::{CsvTable, MAX_SHEET_ROWS, Table, XlsxTable};

use std::collections::BTreeMap;
use std::io::{Read, Seek};

/// Most bytes of one cell, well above any text that a product may have.
pub const MAX_CELL_BYTES: usize = 1 << 20;
/// Most bytes of the texts of one row, line or item together: a few bytes of a sheet can name a long text very often,
/// and a quote left open takes the rest of a file.
const MAX_LINE_BYTES: usize = 16 << 20;
/// Most bytes of XML that belong together, such as a cell or an item's field.
const MAX_STRETCH_BYTES: u64 = 4 << 20;
/// Most columns of a file.
pub const MAX_COLUMNS: usize = 1_000;

/// Why a file cannot be read at all, or not any further.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read from where it lies.
    #[error("the file cannot be read: {0}")]
    Io(#[from] std::io::Error),
    /// It is not what it seems to be.
    #[error("line {line}: {message}")]
    Malformed {
        /// The line, or the row of a sheet, counted from 1.
        line: u64,
        /// What is wrong.
        message: String,
    },
    /// It is longer than it may be where it came from.
    #[error("the file has more than {0} rows; send it in parts")]
    TooManyRows(u64),
}

impl FileError {
    fn at(line: u64, message: impl Into<String>) -> FileError {
        FileError::Malformed { line, message: message.into() }
    }
}

/// One line of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// The line, or the row of a sheet or the item of a feed, counted from 1.
    pub number: u64,
    /// Its cells in the order of the header.
    pub cells: Vec<String>,
    /// What is wrong with cells that cannot be read as what they were meant to be, by their places.
    pub faults: BTreeMap<usize, String>,
}

/// The lines of a file, one after the other.
pub trait Lines {
    /// The names of the columns.
    fn header(&self) -> &[String];

    /// The next line with anything in it; none at the end.
    ///
    /// # Errors
    /// When the file cannot be read any further.
    fn next_line(&mut self) -> Result<Option<Line>, FileError>;
}

/// What can be read in any order, such as a file.
pub trait Source: Read + Seek + Send + 'static {}

impl<T: Read + Seek + Send + 'static> Source for T {}

/// Opens a file by what it holds.
///
/// # Errors
/// When it has no header, or is not what it seems to be.
pub fn open(mut source: impl Source) -> Result<Box<dyn Lines + Send>, FileError> {
    let mut start = [0; 512];
    let length = read_start(&mut source, &mut start)?;
    source.rewind()?;
    let start = &start[..length];
    if start.starts_with(b"PK\x03\x04") {
        return Ok(Box::new(sheet::SheetLines::open(source)?));
    }
    let visible = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
    if visible.starts_with(b"<") {
        return Ok(Box::new(feed::FeedLines::open(source)?));
    }
    Ok(Box::new(text::TextLines::open(source)?))
}

fn read_start(source: &mut impl Read, start: &mut [u8]) -> Result<usize, FileError> {
    let mut length = 0;
    while length < start.len() {
        match source.read(&mut start[length..])? {
            0 => break,
            more => length += more,
        }
    }
    Ok(length)
}
