//! Tables as files: CSV, and XLSX with its rows streamed.

use std::fmt::Write as _;
use std::io::{self, Write};

use zip::write::{SimpleFileOptions, StreamWriter, ZipWriter};

use crate::files::safe;

/// A table that is written row by row. Texts that a spreadsheet would take for formulas are made safe.
pub trait Table: Send {
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

/// CSV in UTF-8, separated by commas.
pub struct CsvTable<W: Write>(csv::Writer<W>);

impl<W: Write + Send> CsvTable<W> {
    /// A table without rows.
    pub fn new(output: W) -> CsvTable<W> {
        CsvTable(csv::Writer::from_writer(output))
    }
}

impl<W: Write + Send> Table for CsvTable<W> {
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

/// XLSX with all cells as texts, so that no leading zero is lost and nothing is a formula.
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
        for (at, cell) in cells.iter().enumerate().filter(|(_, cell)| !cell.is_empty()) {
            let _ = write!(self.row, "<c r=\"{}{}\"", letters(at), self.rows);
            self.row.push_str(" t=\"inlineStr\"><is><t xml:space=\"preserve\">");
            let cell = safe(cell);
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
    use super::*;

    #[test]
    fn columns_of_a_sheet_are_named_by_letters() {
        for (at, name) in [(0, "A"), (25, "Z"), (26, "AA"), (51, "AZ"), (52, "BA"), (701, "ZZ"), (702, "AAA")] {
            assert_eq!(letters(at), name);
        }
    }

    #[test]
    fn no_cell_of_a_table_is_a_formula() {
        let mut bytes = Vec::new();
        let mut table = Box::new(CsvTable::new(&mut bytes));
        table.row(&["=1+1".to_owned(), "a,b".to_owned(), "-5".to_owned()]).expect("a row");
        table.finish().expect("a file");
        assert_eq!(String::from_utf8(bytes).expect("text"), "'=1+1,\"a,b\",'-5\n");
    }
}
