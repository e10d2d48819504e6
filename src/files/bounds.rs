//! What an XLSX file may make its reader keep. A few bytes of it unpack to very many, and what is made of them may be
//! larger still; so every part of a file is looked at before it is read.

use std::io::{self, BufReader, Read};

use quick_xml::events::Event;
use quick_xml::{Error, Reader};
use zip::ZipArchive;

use crate::files::limited::{Limited, Open};
use crate::files::{FileError, MAX_STRETCH_BYTES, Source};

/// Most bytes of the sheets of a file, unpacked, rows without cells included: a million rows of a hundred cells.
const MAX_SHEETS_BYTES: u64 = 4 << 30;
/// Most bytes of what is held in memory while a sheet is read, unpacked: the shared texts above all.
const MAX_SHARED_BYTES: u64 = 64 << 20;
/// How the names of sheets begin, which are read row by row, in lower case. No folder lies below.
const SHEETS: &str = "xl/worksheets/sheet";
/// Most digits of the number of shared texts that a table announces: ten millions have no room in what it may hold.
const MAX_COUNT_DIGITS: usize = 7;
/// Most bytes of what the reader makes of styles and lists, about: 64,000 styles, as many as a book may have, are few.
const MAX_KEPT_BYTES: u64 = 128 << 20;
/// Tags of which the reader keeps something that is larger than they are.
const KEPT: [&str; 8] = ["xf", "font", "fill", "border", "numFmt", "sheet", "definedName", "Relationship"];
/// Bytes that it keeps for each, about.
const KEPT_BYTES: u64 = 512;
/// Tags whose texts it copies into every style.
const COPIED: [&str; 2] = ["numFmt", "name"];
/// Tags of a book that no sheet has: of a sheet that is named as the book, the reader would make a list.
const OF_BOOKS: [&str; 2] = ["sheet", "definedName"];

/// Refuses a file of which more would have to be held in memory, or read, than may be.
pub(super) fn require_bounds(source: &mut impl Source) -> Result<(), FileError> {
    require(source, MAX_SHEETS_BYTES)
}

fn require(source: &mut impl Source, most: u64) -> Result<(), FileError> {
    let unreadable = |error: &dyn std::fmt::Display| FileError::at(1, format!("not a readable XLSX file: {error}"));
    let too_large = |most: u64, of: &str| {
        let message = format!("the file has more than {} MiB of {of}; send CSV", most >> 20);
        Err(FileError::at(1, message))
    };
    let mut archive = ZipArchive::new(BufReader::new(&mut *source)).map_err(|error| unreadable(&error))?;
    let (mut sheets, mut shared, mut kept) = (0, 0, 0);
    for at in 0..archive.len() {
        let part = archive.by_index(at).map_err(|error| unreadable(&error))?;
        let name = part.name().map_err(|error| unreadable(&error))?.into_owned();
        if is_sheet(&name) {
            let mut rest = part.take(most + 1 - sheets);
            let read = require_short_cells(&mut rest);
            sheets = most + 1 - rest.limit();
            if sheets > most {
                return too_large(most, "sheets");
            }
            read.map_err(|error| unreadable(&error))?;
        } else {
            // Whatever it is called: the names of parts are told by the file itself.
            let mut rest = part.take(MAX_SHARED_BYTES + 1 - shared);
            require_small(&mut rest, &mut kept).map_err(|error| unreadable(&error))?;
            shared = MAX_SHARED_BYTES + 1 - rest.limit();
            if shared > MAX_SHARED_BYTES {
                return too_large(MAX_SHARED_BYTES, "shared texts");
            }
        }
    }
    drop(archive);
    Ok(source.rewind()?)
}

/// Whether a part is read row by row, if at all. Names are compared as the reader of sheets compares them.
fn is_sheet(name: &str) -> bool {
    let name = name.replace('\\', "/").to_ascii_lowercase();
    let rest = name.trim_start_matches('/').strip_prefix(SHEETS);
    rest.is_some_and(|rest| rest.ends_with(".xml") && !rest.contains('/'))
}

/// Refuses a part of which the reader would keep too much. What is no XML, such as a picture, ends here where it ends
/// for the reader.
fn require_small(part: impl Read, kept: &mut u64) -> Result<(), Error> {
    let mut reader = Reader::from_reader(BufReader::new(part));
    // As the reader of sheets has it.
    reader.config_mut().check_end_names = false;
    let (mut buffer, mut open, mut copied) = (Vec::new(), Open::default(), 0);
    loop {
        buffer.clear();
        let event = match reader.read_event_into(&mut buffer) {
            Ok(Event::Eof) => return Ok(()),
            Ok(event) => event,
            // Behind these a reader can go on, and behind no others.
            Err(Error::IllFormed(_)) => continue,
            Err(_) => return Ok(()),
        };
        open.follow(&event)?;
        let (Event::Start(start) | Event::Empty(start)) = event else { continue };
        let name = start.local_name().into_inner();
        if name == "sst" {
            require_small_count(&start)?;
        }
        if COPIED.contains(&name) {
            copied = copied.max(start.len() as u64);
        }
        if KEPT.contains(&name) {
            *kept += KEPT_BYTES + if name == "xf" { 2 * copied } else { 0 };
        }
        if *kept > MAX_KEPT_BYTES {
            return Err(io::Error::other("it has too many styles or names").into());
        }
    }
}

/// The reader of sheets makes room for as many texts as the table announces, before it has seen any.
fn require_small_count(table: &quick_xml::events::BytesStart<'_>) -> Result<(), Error> {
    for attribute in table.attributes() {
        let attribute = attribute?;
        if attribute.key.into_inner() == "uniqueCount" && attribute.value.len() > MAX_COUNT_DIGITS {
            let told = format!("a number of shared texts has more than {MAX_COUNT_DIGITS} digits");
            return Err(io::Error::other(told).into());
        }
    }
    Ok(())
}

/// Refuses a sheet of which the reader would keep too much at one time.
fn require_short_cells(sheet: impl Read) -> Result<(), Error> {
    let sheet = Limited::new(sheet, MAX_STRETCH_BYTES);
    let stretch = sheet.stretch();
    let mut reader = Reader::from_reader(BufReader::new(sheet));
    let (mut buffer, mut open, mut in_cell) = (Vec::new(), Open::default(), false);
    loop {
        buffer.clear();
        if !in_cell {
            stretch.begin();
        }
        let event = reader.read_event_into(&mut buffer)?;
        open.follow(&event)?;
        match event {
            Event::Start(start) | Event::Empty(start) if OF_BOOKS.contains(&start.local_name().into_inner()) => {
                return Err(io::Error::other("a sheet holds what belongs to a book").into());
            }
            Event::Start(start) if start.local_name().into_inner() == "c" => in_cell = true,
            Event::End(end) if end.local_name().into_inner() == "c" => in_cell = false,
            Event::Eof => return Ok(()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;
    use crate::files::open;

    const SHEET: &str = "xl/worksheets/sheet1.xml";

    /// A file of one part.
    fn packed(name: &str, content: &str) -> Cursor<Vec<u8>> {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        zip.start_file(name, SimpleFileOptions::default()).expect("a part");
        zip.write_all(content.as_bytes()).expect("written");
        Cursor::new(zip.finish().expect("a file").into_inner())
    }

    #[test]
    fn a_file_that_unpacks_to_more_than_it_may_is_refused() {
        let cell = |text: &str| format!("<worksheet><sheetData><row r=\"1\"><c r=\"A1\" t=\"inlineStr\"><is>{text}");
        let texts = "<t>xxxxxxxx</t>".repeat(400_000);
        let wide = format!("<a b=\"{}\"/>", "x".repeat(1_000));
        let format = format!("<numFmts><numFmt formatCode=\"{}\"/></numFmts>", "x".repeat(1 << 20));
        for (name, content, told) in [
            ("xl/sharedStrings.xml", "x".repeat(65 << 20), "shared texts"),
            ("xl/book.dat", format!("<workbook>{}", wide.repeat(70 << 10)), "shared texts"),
            ("xl/worksheets/sheet/sharedStrings.xml", "x".repeat(65 << 20), "shared texts"),
            ("xl/worksheets\\sheet\\sharedStrings.xml", "x".repeat(65 << 20), "shared texts"),
            ("xl/sharedStrings.xml", "<sst uniqueCount=\"1000000000000\">".to_owned(), "digits"),
            ("xl/styles.xml", format!("<styleSheet>{}", "<xf/>".repeat(1 << 19)), "styles"),
            ("xl/styles.xml", format!("<styleSheet>{format}{}", "<xf/>".repeat(100)), "styles"),
            (SHEET, cell(&"x".repeat(5 << 20)), "belong together"),
            (SHEET, cell(&texts), "belong together"),
            (SHEET, format!("<workbook>{}", "<sheet/>".repeat(2)), "belongs to a book"),
        ] {
            let file = packed(name, &content);
            assert!(file.get_ref().len() < 1 << 20, "{}", file.get_ref().len());
            let refused = open(file).map(|_| ()).expect_err("refused").to_string();
            assert!(refused.contains(told), "{name}: {refused}");
        }
    }

    #[test]
    fn tags_that_stay_open_are_refused_before_they_fill_the_memory() {
        for name in [SHEET, "xl/sharedStrings.xml", "xl/workbook.xml", "xl/other", "_rels/.rels"] {
            for (tags, is_refused) in [(60, false), (70, true), (4 << 20, true)] {
                let read = require_bounds(&mut packed(name, &"<a>".repeat(tags)));
                let told = read.err().map(|error| error.to_string()).unwrap_or_default();
                assert_eq!(told.contains("open within each other"), is_refused, "{name}, {tags}: {told}");
            }
        }
    }

    #[test]
    fn breaks_that_excel_leaves_open_are_no_depth() {
        for (breaks, is_refused) in [(500, false), (200_000, true)] {
            let drawing = format!("<xml>{}</xml>", "<div>Run<br>all</div>".repeat(breaks));
            assert_eq!(require_bounds(&mut packed("xl/drawings/vmlDrawing1.vml", &drawing)).is_err(), is_refused);
        }
    }

    #[test]
    fn rows_without_cells_count() {
        for (rows, is_refused) in [(100, false), (300_000, true)] {
            let mut file = packed(SHEET, &format!("<worksheet>{}</worksheet>", "<row/>".repeat(rows)));
            let told = require(&mut file, 1 << 20).err().map(|error| error.to_string()).unwrap_or_default();
            assert_eq!(told.contains("1 MiB of sheets"), is_refused, "{told}");
        }
    }

    #[test]
    fn what_is_no_xml_and_no_part_of_the_book_costs_nothing() {
        for content in ["\u{89}PNG\r\n<\"<<a", "", "<a></b></c><d", "&amp &;<"] {
            require_bounds(&mut packed("xl/media/image1.png", content)).expect(content);
        }
    }
}
