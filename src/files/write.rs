//! Tables as files: CSV, and XLSX with its rows streamed.

use std::fmt::Write as _;
use std::io::{self, Write};

use zip::write::{SimpleFileOptions, StreamWriter, ZipWriter};

use crate::files::safe;

/// A table that is written row by row. Texts that a spreadsheet would take for formulas are made safe.
pub trait Table: Send {
    /// Writes the names of the columns, as the first row of a file.
    ///
    /// # Errors
    /// When they cannot be written.
    fn header(&mut self, names: &[String]) -> io::Result<()> {
        self.row(names)
    }

    /// Writes a row.
    ///
    /// # Errors
    /// When it cannot be written.
    fn row(&mut self, cells: &[String]) -> io::Result<()>;

    /// Writes what is left.
    ///
    /// # Errors
    /// When it cannot be written.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// Says that a text is UTF-8: without it a spreadsheet takes each letter beyond ASCII for two others.
const MARK: char = '\u{feff}';

/// CSV in UTF-8, separated by commas, with a mark before the names of its columns. Codes and ids are written as they are,
/// for programs: where a spreadsheet takes them for numbers, their zeros are found again only where a rule tells of them.
pub struct CsvTable<W: Write>(csv::Writer<W>);

impl<W: Write + Send> CsvTable<W> {
    /// A table without rows.
    pub fn new(output: W) -> CsvTable<W> {
        CsvTable(csv::Writer::from_writer(output))
    }
}

impl<W: Write + Send> Table for CsvTable<W> {
    fn header(&mut self, names: &[String]) -> io::Result<()> {
        // No name of ours needs quotes, within which the mark would be part of it.
        let mark = std::iter::once(MARK.to_string()).chain(std::iter::repeat(String::new()));
        Ok(self.0.write_record(names.iter().zip(mark).map(|(name, mark)| mark + &safe(name)))?)
    }

    fn row(&mut self, cells: &[String]) -> io::Result<()> {
        Ok(self.0.write_record(cells.iter().map(|cell| safe(cell)))?)
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.0.flush()
    }
}

/// What an XLSX file has besides its rows.
pub(super) const PARTS: [(&str, &str); 4] = [
    (
        "[Content_Types].xml",
        "<Types xmlns=\"http://schemas.openxmlformats.org/package/2006/content-types\">\
         <Default Extension=\"rels\" ContentType=\"application/vnd.openxmlformats-package.relationships+xml\"/>\
         <Default Extension=\"xml\" ContentType=\"application/xml\"/>\
         <Override PartName=\"/xl/workbook.xml\" ContentType=\"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml\"/>\
         <Override PartName=\"/xl/worksheets/sheet1.xml\" ContentType=\"application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml\"/></Types>",
    ),
    (
        "_rels/.rels",
        "<Relationships xmlns=\"http://schemas.openxmlformats.org/package/2006/relationships\"><Relationship Id=\"rId1\" \
         Type=\"http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument\" Target=\"xl/workbook.xml\"/></Relationships>",
    ),
    (
        "xl/workbook.xml",
        "<workbook xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\" \
         xmlns:r=\"http://schemas.openxmlformats.org/officeDocument/2006/relationships\">\
         <sheets><sheet name=\"products\" sheetId=\"1\" r:id=\"rId1\"/></sheets></workbook>",
    ),
    (
        "xl/_rels/workbook.xml.rels",
        "<Relationships xmlns=\"http://schemas.openxmlformats.org/package/2006/relationships\"><Relationship Id=\"rId1\" \
         Type=\"http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet\" Target=\"worksheets/sheet1.xml\"/></Relationships>",
    ),
];
const DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n";
const SHEET: &str = "<worksheet xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\"><sheetData>";
/// Rows that a sheet can have, by its format.
pub const MAX_SHEET_ROWS: u64 = 1_048_576;
/// Characters that a cell can have, by its format, in units of UTF-16.
const MAX_SHEET_CHARACTERS: usize = 32_767;

/// XLSX with all cells as texts, so that no leading zero is lost and nothing is a formula. A text that is longer than a
/// cell can be is left out: a spreadsheet would cut it, and an import of what is left erase the rest, whereas an empty cell
/// says nothing.
pub struct XlsxTable<W: Write> {
    zip: ZipWriter<StreamWriter<W>>,
    row: String,
    rows: u64,
}

impl<W: Write + Send> XlsxTable<W> {
    /// A table without rows.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn new(output: W) -> io::Result<XlsxTable<W>> {
        let mut zip = ZipWriter::new_stream(output);
        let options = SimpleFileOptions::default();
        for (name, content) in PARTS {
            zip.start_file(name, options)?;
            zip.write_all(DECLARATION.as_bytes())?;
            zip.write_all(content.as_bytes())?;
        }
        zip.start_file("xl/worksheets/sheet1.xml", options.large_file(true))?;
        zip.write_all(DECLARATION.as_bytes())?;
        zip.write_all(SHEET.as_bytes())?;
        Ok(XlsxTable { zip, row: String::new(), rows: 0 })
    }
}

impl<W: Write + Send> Table for XlsxTable<W> {
    fn row(&mut self, cells: &[String]) -> io::Result<()> {
        self.rows += 1;
        if self.rows > MAX_SHEET_ROWS {
            return Err(io::Error::other(format!("a sheet has at most {MAX_SHEET_ROWS} rows; export as CSV")));
        }
        self.row.clear();
        let _ = write!(self.row, "<row r=\"{}\">", self.rows);
        let cells = cells.iter().map(|cell| safe(cell)).enumerate();
        for (at, cell) in cells.filter(|(_, cell)| !cell.is_empty() && has_room(cell)) {
            let _ = write!(self.row, "<c r=\"{}{}\"", letters(at), self.rows);
            self.row.push_str(" t=\"inlineStr\"><is><t xml:space=\"preserve\">");
            for (place, character) in cell.char_indices() {
                match character {
                    '&' => self.row.push_str("&amp;"),
                    '<' => self.row.push_str("&lt;"),
                    '>' => self.row.push_str("&gt;"),
                    '\r' => self.row.push_str("&#13;"),
                    // XML has no way to say these; sheets name them.
                    '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => {
                        let _ = write!(self.row, "_x{:04X}_", u32::from(character));
                    }
                    // What only looks like such a name.
                    '_' if is_named(&cell[place..]) => self.row.push_str("_x005F_"),
                    other => self.row.push(other),
                }
            }
            self.row.push_str("</t></is></c>");
        }
        self.row.push_str("</row>");
        self.zip.write_all(self.row.as_bytes())
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.zip.write_all(b"</sheetData></worksheet>")?;
        self.zip.finish()?.into_inner().flush()
    }
}

/// Whether a cell of a sheet can have such a text.
fn has_room(cell: &str) -> bool {
    // Units are never more than bytes.
    cell.len() <= MAX_SHEET_CHARACTERS || cell.encode_utf16().count() <= MAX_SHEET_CHARACTERS
}

/// Whether a text begins as a character does that is named by its number: `_x0041_`.
fn is_named(text: &str) -> bool {
    matches!(text.as_bytes(), [b'_', b'x', a, b, c, d, b'_', ..] if [a, b, c, d].into_iter().all(u8::is_ascii_hexdigit))
}

/// The name of a column: A to Z, then AA.
fn letters(at: usize) -> String {
    let last = char::from(b'A' + (at % 26) as u8);
    if at < 26 { last.to_string() } else { format!("{}{last}", letters(at / 26 - 1)) }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;
    use crate::files::{id_again, open, unsafe_again};

    fn csv(rows: &[&[&str]]) -> String {
        let mut bytes = Vec::new();
        let mut table = Box::new(CsvTable::new(&mut bytes));
        for (at, row) in rows.iter().enumerate() {
            let cells: Vec<String> = row.iter().map(|cell| (*cell).to_owned()).collect();
            let written = if at == 0 { table.header(&cells) } else { table.row(&cells) };
            written.expect("a row");
        }
        table.finish().expect("a file");
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn columns_of_a_sheet_are_named_by_letters() {
        for (at, name) in [(0, "A"), (25, "Z"), (26, "AA"), (51, "AZ"), (52, "BA"), (701, "ZZ"), (702, "AAA")] {
            assert_eq!(letters(at), name);
        }
    }

    #[test]
    fn no_cell_of_a_table_is_a_formula() {
        let rows: [&[&str]; 2] = [&["id", "b", "c"], &["=1+1", "a,b", "-5"]];
        assert_eq!(csv(&rows), "\u{feff}id,b,c\n'=1+1,\"a,b\",'-5\n");
    }

    #[test]
    fn a_text_that_is_longer_than_a_cell_of_a_sheet_says_nothing() {
        let mut file = Cursor::new(Vec::new());
        let mut table = Box::new(XlsxTable::new(&mut file).expect("a table"));
        let text = |long: &str, times: usize| long.repeat(times);
        for row in [
            ["productId".to_owned(), "b".to_owned()],
            ["1".to_owned(), text("ä", MAX_SHEET_CHARACTERS)],
            ["2".to_owned(), text("ä", MAX_SHEET_CHARACTERS + 1)],
            ["3".to_owned(), text("😀", MAX_SHEET_CHARACTERS / 2 + 1)],
            ["4".to_owned(), format!("={}", text("x", MAX_SHEET_CHARACTERS - 1))],
        ] {
            table.row(&row).expect("a row");
        }
        table.finish().expect("a file");
        let mut lines = open(Cursor::new(file.into_inner())).expect("a sheet");
        let mut lengths = Vec::new();
        while let Some(line) = lines.next_line().expect("readable") {
            lengths.push(line.cells[1].chars().count());
        }
        assert_eq!(lengths, [MAX_SHEET_CHARACTERS, 0, 0, 0]);
    }

    proptest! {
        #[test]
        fn no_part_of_a_cell_is_a_formula_for_a_spreadsheet_that_parts_lines_elsewhere(
            texts in proptest::collection::vec("[a=+@;,\t\r\n\"' -]{0,12}", 2),
        ) {
            let rows: [&[&str]; 2] = [&["productId", "b"], &[texts[0].as_str(), texts[1].as_str()]];
            let file = csv(&rows);
            for part in file.split([';', '\t', '\r', '\n']) {
                prop_assert!(!part.trim_start_matches('"').starts_with(['=', '+', '-', '@']), "{file}");
            }
            let mut lines = open(Cursor::new(file.into_bytes())).expect("a file");
            if let Some(line) = lines.next_line().expect("readable") {
                prop_assert_eq!(id_again(&line.cells[0]), texts[0].as_str());
                prop_assert_eq!(unsafe_again(&line.cells[1]), texts[1].as_str());
            }
        }
    }
}
