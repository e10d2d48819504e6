//! XLSX: the first sheet, row by row.

use std::io::BufReader;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use calamine::{Data, DataRef, ExcelDateTime, Reader, Xlsx};

use crate::files::bounds::require_bounds;
use crate::files::{FileError, Line, Lines, MAX_CELL_BYTES, MAX_COLUMNS, MAX_LINE_BYTES, Source};

/// Bytes of rows that are handed over together, so that small rows cost no switch of threads each. Only the last of
/// them may pass it.
const HANDED_BYTES: usize = 256 << 10;

/// The rows of a sheet. The reader of cells borrows the file that it reads, so that it runs on a thread of its own,
/// which ends with the last row, when nobody wants a row any more, or when the source fails. Much may be unpacked
/// before there is a row to send, so that whoever gives up a file has to let its source fail.
pub(super) struct SheetLines {
    header: Vec<String>,
    handed_over: Receiver<Vec<Line>>,
    /// Rows that were handed over and are not read yet.
    rows: std::vec::IntoIter<Line>,
    /// The row that was read last.
    last: u64,
    /// The thread, until it is known how it ended.
    thread: Option<JoinHandle<Result<(), FileError>>>,
}

impl SheetLines {
    pub(super) fn open(source: impl Source) -> Result<SheetLines, FileError> {
        // The channel itself holds nothing: rows wait on either side of it, which bounds them by their bytes.
        let (sender, handed_over) = sync_channel(0);
        let thread = std::thread::spawn(move || {
            let mut ahead = Ahead { sender, rows: Vec::new(), bytes: 0 };
            let outcome = read(source, &mut ahead);
            ahead.hand_over();
            outcome
        });
        let rows = Vec::new().into_iter();
        let mut lines = SheetLines { header: Vec::new(), handed_over, rows, last: 0, thread: Some(thread) };
        let first = lines.next_row()?.ok_or_else(|| FileError::at(1, "the first sheet is empty"))?;
        lines.header = first.cells.into_iter().map(|name| name.trim().to_owned()).collect();
        Ok(lines)
    }

    fn next_row(&mut self) -> Result<Option<Line>, FileError> {
        loop {
            if let Some(row) = self.rows.next() {
                self.last = row.number;
                return Ok(Some(row));
            }
            match self.handed_over.recv() {
                Ok(rows) => self.rows = rows.into_iter(),
                Err(_) => return self.end().map(|()| None),
            }
        }
    }

    /// How the thread ended. That nothing more comes is not the end of the sheet: the reader of cells is not ours, and
    /// where it panics rows are missing.
    fn end(&mut self) -> Result<(), FileError> {
        let outcome = self.thread.take().map_or(Ok(Ok(())), JoinHandle::join);
        outcome.unwrap_or_else(|_| {
            let message = "not a readable XLSX file: reading it broke off at this row or after it; send CSV";
            Err(FileError::at(self.last + 1, message))
        })
    }
}

impl Lines for SheetLines {
    fn header(&self) -> &[String] {
        &self.header
    }

    fn next_line(&mut self) -> Result<Option<Line>, FileError> {
        let Some(mut line) = self.next_row()? else { return Ok(None) };
        // A sheet says nothing of cells that are empty.
        if line.cells.len() < self.header.len() {
            line.cells.resize(self.header.len(), String::new());
        }
        Ok(Some(line))
    }
}

/// Rows that the thread has read ahead.
struct Ahead {
    sender: SyncSender<Vec<Line>>,
    rows: Vec<Line>,
    bytes: usize,
}

impl Ahead {
    /// Whether somebody still takes rows.
    fn push(&mut self, row: Line) -> bool {
        let cells = row.cells.iter().map(|cell| size_of::<String>() + cell.len());
        let faults = row.faults.values().map(|fault| size_of::<(usize, String)>() + fault.len());
        self.bytes += size_of::<Line>() + cells.sum::<usize>() + faults.sum::<usize>();
        self.rows.push(row);
        self.bytes < HANDED_BYTES || self.hand_over()
    }

    /// Waits until somebody takes the rows; whether somebody did.
    fn hand_over(&mut self) -> bool {
        self.bytes = 0;
        self.sender.send(std::mem::take(&mut self.rows)).is_ok()
    }
}

/// Reads the rows that have anything in them, until there are no more or nobody takes them.
fn read(source: impl Source, ahead: &mut Ahead) -> Result<(), FileError> {
    let broken =
        |line: u64, error: calamine::XlsxError| FileError::at(line, format!("not a readable XLSX file: {error}"));
    let mut source = source;
    require_bounds(&mut source)?;
    let mut book = Xlsx::new(BufReader::new(source)).map_err(|error| broken(1, error))?;
    let sheet = book.sheet_names().first().cloned().ok_or_else(|| FileError::at(1, "the file has no sheet"))?;
    let mut cells = book.worksheet_cells_reader(&sheet).map_err(|error| broken(1, error))?;
    let (mut line, mut bytes) = (Line { number: 1, ..Line::default() }, 0);
    loop {
        let cell = cells.next_cell().map_err(|error| broken(line.number, error))?;
        let next = cell.as_ref().map(|cell| u64::from(cell.get_position().0) + 1);
        if next != Some(line.number) {
            let new = Line { number: next.unwrap_or_default(), ..Line::default() };
            let done = std::mem::replace(&mut line, new);
            bytes = 0;
            if done.cells.iter().any(|cell| !cell.is_empty()) && !ahead.push(done) {
                return Ok(());
            }
        }
        let Some(cell) = cell else { return Ok(()) };
        let at = cell.get_position().1 as usize;
        if at >= MAX_COLUMNS {
            return Err(FileError::at(line.number, format!("the sheet has more than {MAX_COLUMNS} columns")));
        }
        if let DataRef::Error(error) = cell.get_value() {
            line.faults.insert(at, format!("holds the error {error} instead of a value"));
        }
        let text = text(cell.get_value());
        if text.len() > MAX_CELL_BYTES {
            return Err(FileError::at(line.number, format!("a cell has more than {MAX_CELL_BYTES} bytes")));
        }
        bytes += text.len();
        if bytes > MAX_LINE_BYTES {
            return Err(FileError::at(line.number, format!("the row has more than {MAX_LINE_BYTES} bytes")));
        }
        if line.cells.len() <= at {
            line.cells.resize(at + 1, String::new());
        }
        line.cells[at] = text;
    }
}

/// The days that a sheet knows, by their numbers: to the end of the year 9999.
const DAYS: std::ops::Range<f64> = 0.0..2_958_466.0;

/// A cell as it would be written: whole numbers without a point, however the sheet holds them, and days and times by
/// ISO 8601. How long something takes is a number of days, as the sheet holds it.
fn text(value: &DataRef<'_>) -> String {
    match value {
        DataRef::Float(number) if number.fract() == 0.0 && number.abs() < 1e15 => format!("{number:.0}"),
        DataRef::DateTime(moment) if moment.is_datetime() && DAYS.contains(&moment.as_f64()) => written(*moment),
        // A number that only looks like a day.
        DataRef::DateTime(moment) => text(&DataRef::Float(moment.as_f64())),
        other => Data::from(other.clone()).to_string(),
    }
}

/// A day, a time of the day, or both, whichever it has.
fn written(moment: ExcelDateTime) -> String {
    let (year, month, day, hour, minute, second, _) = moment.to_ymd_hms_milli();
    let time = format!("{hour:02}:{minute:02}:{second:02}");
    if moment.as_f64() < 1.0 {
        return time;
    }
    let date = format!("{year:04}-{month:02}-{day:02}");
    if (hour, minute, second) == (0, 0, 0) { date } else { format!("{date}T{time}") }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;
    use crate::files::write::PARTS;
    use crate::files::{Table, XlsxTable, open, unsafe_again};

    #[test]
    fn a_sheet_is_read_as_it_was_written() {
        let mut file = Cursor::new(Vec::new());
        let mut table = XlsxTable::new(&mut file).expect("a table");
        let rows = [
            ["productId", "de:productName", "gtin"],
            ["1", "Käse & <Brot> \"x\"", "4006381333931"],
            ["2", "", "=x y"],
            ["3", "a_x0041_b _x0041", "\u{1}\u{1f}_"],
        ];
        for row in rows {
            table.row(&row.map(str::to_owned)).expect("a row");
        }
        Box::new(table).finish().expect("a file");
        let mut lines = open(Cursor::new(file.into_inner())).expect("a sheet");
        assert_eq!(lines.header(), rows[0]);
        for (at, row) in rows.iter().enumerate().skip(1) {
            let line = lines.next_line().expect("readable").expect("a line");
            let cells: Vec<String> = line.cells.iter().map(|cell| unsafe_again(cell).into_owned()).collect();
            assert_eq!((line.number, cells), (at as u64 + 1, row.map(str::to_owned).to_vec()));
        }
        assert_eq!(lines.next_line().expect("readable"), None);
    }

    /// A file of these parts beside those that all have.
    fn packed(own: &[(&str, &str)]) -> Cursor<Vec<u8>> {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, content) in PARTS.iter().chain(own) {
            zip.start_file(*name, SimpleFileOptions::default()).expect("a part");
            zip.write_all(content.as_bytes()).expect("written");
        }
        zip.finish().expect("a file")
    }

    #[test]
    fn errors_are_faults_of_their_cells_and_dates_are_written_as_dates() {
        let names = ["productId", "error", "day", "moment", "time", "long", "number"];
        let header = names.map(|name| format!("<c t=\"inlineStr\"><is><t>{name}</t></is></c>")).concat();
        let cells = "<c><v>7</v></c><c t=\"e\"><v>#N/A</v></c><c s=\"1\"><v>45943</v></c><c s=\"1\"><v>45943.5</v></c>\
                     <c s=\"1\"><v>0.75</v></c><c s=\"2\"><v>1.5</v></c><c><v>45943</v></c>";
        let sheet = format!("<worksheet><sheetData><row>{header}</row><row>{cells}</row></sheetData></worksheet>");
        let formats = [0, 22, 46].map(|format| format!("<xf numFmtId=\"{format}\"/>")).concat();
        let styles = format!("<styleSheet><cellXfs>{formats}</cellXfs></styleSheet>");
        let file = packed(&[("xl/styles.xml", &styles), ("xl/worksheets/sheet1.xml", &sheet)]);
        let mut lines = SheetLines::open(file).expect("a sheet");
        let line = lines.next_line().expect("readable").expect("a row");
        assert_eq!(line.cells, ["7", "#N/A", "2025-10-13", "2025-10-13T12:00:00", "18:00:00", "1.5", "45943"]);
        let faults: Vec<(usize, &str)> = line.faults.iter().map(|(at, told)| (*at, told.as_str())).collect();
        assert_eq!(faults, [(1, "holds the error #N/A instead of a value")]);
    }

    /// A file of rows that name one shared text, each as often as it is said.
    fn naming(text: &str, rows: &[usize]) -> Cursor<Vec<u8>> {
        let cells = |times: &usize| format!("<row>{}</row>", "<c t=\"s\"><v>0</v></c>".repeat(*times));
        let rows: String = rows.iter().map(cells).collect();
        let sheet = format!("<worksheet><sheetData>{rows}</sheetData></worksheet>");
        let texts = format!("<sst><si><t>{text}</t></si></sst>");
        packed(&[("xl/sharedStrings.xml", &texts), ("xl/worksheets/sheet1.xml", &sheet)])
    }

    #[test]
    fn a_row_that_names_a_long_shared_text_too_often_is_refused_with_its_place() {
        let most = MAX_LINE_BYTES / MAX_CELL_BYTES;
        let file = naming(&"x".repeat(MAX_CELL_BYTES), &[1, most, most + 1]);
        assert!(file.get_ref().len() < 1 << 20, "{}", file.get_ref().len());
        let mut lines = SheetLines::open(file).expect("a sheet");
        let widest = lines.next_row().expect("readable").expect("a row that is as long as it may be");
        assert_eq!((widest.number, widest.cells.len()), (2, most));
        let refused = lines.next_row().expect_err("refused").to_string();
        assert!(refused.contains("line 3: the row has more than"), "{refused}");
    }

    #[test]
    fn rows_wait_by_their_bytes() {
        let text = "x".repeat(HANDED_BYTES / 4);
        for (cells, most_together) in [(1, 4), (2, 2), (4, 1), (40, 1)] {
            let mut lines = SheetLines::open(naming(&text, &[cells; 50])).expect("a sheet");
            let mut rows = 1;
            while lines.next_row().expect("readable").is_some() {
                rows += 1;
                assert!(lines.rows.len() < most_together, "{} rows of {cells} cells wait", lines.rows.len());
            }
            assert_eq!(rows, 50);
        }
    }

    /// A source whose reader panics after so many reads.
    struct Breaking {
        file: Cursor<Vec<u8>>,
        left: Arc<AtomicUsize>,
    }

    impl Read for Breaking {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            assert!(self.left.fetch_sub(1, Relaxed) > 0, "the reader breaks off");
            self.file.read(buffer)
        }
    }

    impl Seek for Breaking {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.file.seek(to)
        }
    }

    #[test]
    fn a_reader_that_panics_anywhere_is_no_end_of_the_sheet() {
        let read_to_its_end = |left: &Arc<AtomicUsize>| -> Result<(), FileError> {
            let mut lines = SheetLines::open(Breaking { file: naming("x", &[2; 3]), left: left.clone() })?;
            while lines.next_line()?.is_some() {}
            Ok(())
        };
        let left = Arc::new(AtomicUsize::new(usize::MAX));
        read_to_its_end(&left).expect("readable");
        for reads in 0..usize::MAX - left.load(Relaxed) {
            let told = read_to_its_end(&Arc::new(AtomicUsize::new(reads))).expect_err("broken off").to_string();
            assert!(told.contains("broke off"), "after {reads} reads: {told}");
        }
    }
}
