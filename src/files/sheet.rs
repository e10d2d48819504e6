//! XLSX: the first sheet, row by row.

use std::io::{BufReader, Read};

use calamine::{Data, DataRef, Reader, Xlsx};
use quick_xml::events::Event;
use zip::ZipArchive;

use crate::files::limited::Limited;
use crate::files::{FileError, Line, Lines, MAX_CELL_BYTES, MAX_COLUMNS, MAX_STRETCH_BYTES, Source};

/// Most bytes of what is held in memory while a sheet is read, unpacked: the shared texts above all.
const MAX_SHARED_BYTES: u64 = 64 << 20;
/// Where the sheets of a file lie, which are read row by row.
const SHEETS: &str = "xl/worksheets/";

/// Rows that may wait for whoever reads them.
const ROWS_AHEAD: usize = 256;

/// The rows of a sheet. The reader of cells borrows the file that it reads, so that it runs on a thread of its own,
/// which ends with the last row, or when nobody wants a row any more.
pub(super) struct SheetLines {
    header: Vec<String>,
    rows: std::sync::mpsc::Receiver<Result<Line, FileError>>,
}

impl SheetLines {
    pub(super) fn open(source: impl Source) -> Result<SheetLines, FileError> {
        let (sender, rows) = std::sync::mpsc::sync_channel(ROWS_AHEAD);
        std::thread::spawn(move || {
            let send = |row| sender.send(row).is_ok();
            if let Err(error) = read(source, &send) {
                send(Err(error));
            }
        });
        let first = rows.recv().unwrap_or_else(|_| Err(FileError::at(1, "the first sheet is empty")))?;
        let header: Vec<String> = first.cells.into_iter().map(|name| name.trim().to_owned()).collect();
        Ok(SheetLines { header, rows })
    }
}

impl Lines for SheetLines {
    fn header(&self) -> &[String] {
        &self.header
    }

    fn next_line(&mut self) -> Result<Option<Line>, FileError> {
        let Ok(row) = self.rows.recv() else { return Ok(None) };
        let mut line = row?;
        // A sheet says nothing of cells that are empty.
        if line.cells.len() < self.header.len() {
            line.cells.resize(self.header.len(), String::new());
        }
        Ok(Some(line))
    }
}

/// Sends the rows that have anything in them, until there are no more or nobody takes them.
fn read(source: impl Source, send: &impl Fn(Result<Line, FileError>) -> bool) -> Result<(), FileError> {
    let broken =
        |line: u64, error: calamine::XlsxError| FileError::at(line, format!("not a readable XLSX file: {error}"));
    let mut source = source;
    require_bounds(&mut source)?;
    let mut book = Xlsx::new(BufReader::new(source)).map_err(|error| broken(1, error))?;
    let sheet = book.sheet_names().first().cloned().ok_or_else(|| FileError::at(1, "the file has no sheet"))?;
    let mut cells = book.worksheet_cells_reader(&sheet).map_err(|error| broken(1, error))?;
    let mut line = Line { number: 1, cells: Vec::new() };
    loop {
        let cell = cells.next_cell().map_err(|error| broken(line.number, error))?;
        let next = cell.as_ref().map(|cell| u64::from(cell.get_position().0) + 1);
        if next != Some(line.number) {
            let done = std::mem::replace(&mut line, Line { number: next.unwrap_or_default(), cells: Vec::new() });
            if done.cells.iter().any(|cell| !cell.is_empty()) && !send(Ok(done)) {
                return Ok(());
            }
        }
        let Some(cell) = cell else { return Ok(()) };
        let at = cell.get_position().1 as usize;
        if at >= MAX_COLUMNS {
            return Err(FileError::at(line.number, format!("the sheet has more than {MAX_COLUMNS} columns")));
        }
        let text = text(cell.get_value());
        if text.len() > MAX_CELL_BYTES {
            return Err(FileError::at(line.number, format!("a cell has more than {MAX_CELL_BYTES} bytes")));
        }
        if line.cells.len() <= at {
            line.cells.resize(at + 1, String::new());
        }
        line.cells[at] = text;
    }
}

/// Refuses a file of which more would have to be held in memory than it may: a few bytes can be packed for very many.
fn require_bounds(source: &mut impl Source) -> Result<(), FileError> {
    let unreadable = |error: &dyn std::fmt::Display| FileError::at(1, format!("not a readable XLSX file: {error}"));
    let mut archive = ZipArchive::new(BufReader::new(&mut *source)).map_err(|error| unreadable(&error))?;
    let mut shared = 0;
    for at in 0..archive.len() {
        let part = archive.by_index(at).map_err(|error| unreadable(&error))?;
        let name = part.name().map_err(|error| unreadable(&error))?.to_lowercase();
        if name.trim_start_matches('/').starts_with(SHEETS) && name.ends_with(".xml") {
            require_short_cells(part).map_err(|error| unreadable(&error))?;
        } else if name.ends_with(".xml") || name.ends_with(".rels") {
            let mut rest = part.take(MAX_SHARED_BYTES + 1 - shared);
            shared += std::io::copy(&mut rest, &mut std::io::sink()).map_err(|error| unreadable(&error))?;
            if shared > MAX_SHARED_BYTES {
                let most = MAX_SHARED_BYTES >> 20;
                return Err(FileError::at(1, format!("the file has more than {most} MiB of shared texts; send CSV")));
            }
        }
    }
    drop(archive);
    Ok(source.rewind()?)
}

fn require_short_cells(sheet: impl Read) -> Result<(), quick_xml::Error> {
    let sheet = Limited::new(sheet, MAX_STRETCH_BYTES);
    let stretch = sheet.stretch();
    let mut reader = quick_xml::Reader::from_reader(BufReader::new(sheet));
    let (mut buffer, mut in_cell) = (Vec::new(), false);
    loop {
        buffer.clear();
        if !in_cell {
            stretch.begin();
        }
        match reader.read_event_into(&mut buffer)? {
            Event::Start(start) if start.local_name().into_inner() == "c" => in_cell = true,
            Event::End(end) if end.local_name().into_inner() == "c" => in_cell = false,
            Event::Eof => return Ok(()),
            _ => {}
        }
    }
}

/// A cell as it would be written: whole numbers without a point, however the sheet holds them.
fn text(value: &DataRef<'_>) -> String {
    match value {
        DataRef::Float(number) if number.fract() == 0.0 && number.abs() < 1e15 => format!("{number:.0}"),
        other => Data::from(other.clone()).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use crate::files::{Table, XlsxTable, open, unsafe_again};

    #[test]
    fn a_sheet_is_read_as_it_was_written() {
        let mut file = Cursor::new(Vec::new());
        let mut table = XlsxTable::new(&mut file).expect("a table");
        let rows =
            [["productId", "de:productName", "gtin"], ["1", "Käse & <Brot> \"x\"", "4006381333931"], ["2", "", "=x y"]];
        for row in rows {
            table.row(&row.map(str::to_owned)).expect("a row");
        }
        Box::new(table).finish().expect("a file");
        let mut lines = open(Cursor::new(file.into_inner())).expect("a sheet");
        assert_eq!(lines.header(), rows[0]);
        for (at, row) in rows.iter().enumerate().skip(1) {
            let line = lines.next_line().expect("readable").expect("a line");
            let cells: Vec<&str> = line.cells.iter().map(|cell| unsafe_again(cell)).collect();
            assert_eq!((line.number, cells.as_slice()), (at as u64 + 1, row.as_slice()));
        }
        assert_eq!(lines.next_line().expect("readable"), None);
    }

    #[test]
    fn a_file_that_unpacks_to_more_than_it_may_is_refused() {
        let cell = |text: &str| format!("<worksheet><sheetData><row r=\"1\"><c r=\"A1\" t=\"inlineStr\"><is>{text}");
        let texts = "<t>xxxxxxxx</t>".repeat(400_000);
        for (name, content, told) in [
            ("xl/sharedStrings.xml", "x".repeat(65 << 20), "shared texts"),
            ("xl/worksheets/sheet1.xml", cell(&"x".repeat(5 << 20)), "belong together"),
            ("xl/worksheets/sheet1.xml", cell(&texts), "belong together"),
        ] {
            let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
            zip.start_file(name, SimpleFileOptions::default()).expect("a part");
            zip.write_all(content.as_bytes()).expect("written");
            let packed = zip.finish().expect("a file").into_inner();
            assert!(packed.len() < 1 << 20, "{}", packed.len());
            let refused = open(Cursor::new(packed)).map(|_| ()).expect_err("refused").to_string();
            assert!(refused.contains(told), "{refused}");
        }
    }
}
