//! Reads the cells of one row into a line.

use chrono::NaiveDate;

use vat_classification::domain::Taxonomy;

use super::Language;
use super::columns::Columns;
use super::line::{Line, PRODUCT_LINE};
use super::table::spreadsheet_day;

/// What a row of a list is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A code with its text.
    Line,
    /// A text between codes that tells what the lines below it share.
    Heading,
    /// A section or part of a chapter, which has no code.
    Title,
}

/// Tells what a row is: the Swiss tariff structure says it, every other list has only lines.
pub(super) fn kind(cells: &[String], columns: &Columns) -> Result<Kind, (usize, String)> {
    let Some(column) = columns.kind else { return Ok(Kind::Line) };
    match cells.get(column).map_or("", |cell| cell.trim()) {
        "TN2" | "TN4" | "TN6" | "TN8" => Ok(Kind::Line),
        "VT6" | "VT8" => Ok(Kind::Heading),
        "TAB" | "TUK" => Ok(Kind::Title),
        other => Err((column, format!("`{other}` is none of TAB, TN2, TUK, TN4, VT6, TN6, VT8, TN8"))),
    }
}

/// Reads a text between codes; its code and suffix follow from the line below it.
pub(super) fn read_heading(cells: &[String], columns: &Columns) -> Result<Line, (usize, String)> {
    let column = columns.indent.unwrap_or(columns.code);
    let indent = read_indent(cells.get(column).map_or("", |cell| cell.trim())).map_err(|message| (column, message))?;
    let (de, en) = texts(cells, columns)?;
    Ok(Line { depth: indent + 1, de, en, ..Line::default() })
}

/// Reads a row into a line, or says which column is wrong and why.
pub(super) fn read_row(cells: &[String], columns: &Columns, taxonomy: Taxonomy) -> Result<Line, (usize, String)> {
    let cell = |column: usize| cells.get(column).map_or("", |cell| cell.trim());
    let optional = |column: Option<usize>| column.map_or("", cell);
    let (digits, own_suffix) = split_code(cell(columns.code));
    let bad = |message: String| (columns.code, message);
    if digits.is_empty() || digits.len() > taxonomy.width() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(bad(format!("`{}` is not a code of up to {} digits", cell(columns.code), taxonomy.width())));
    }
    let suffix = match optional(columns.suffix) {
        "" => own_suffix,
        given => given.to_owned(),
    };
    if suffix.len() != 2 || !suffix.bytes().all(|b| b.is_ascii_digit()) {
        return Err((columns.suffix.unwrap_or(columns.code), format!("`{suffix}` is not a suffix of two digits")));
    }
    let code = without_padding(&digits, optional(columns.level));
    if code.len() < 2 {
        return Err(bad(format!("`{digits}` names no chapter")));
    }
    let date = |column: Option<usize>| match column {
        None => Ok(None),
        Some(column) => read_date(cell(column)).map_err(|message| (column, message)),
    };
    let indent = match columns.indent {
        Some(column) => Some(read_indent(cell(column)).map_err(|message| (column, message))?),
        None => None,
    };
    let (from, to) = (date(columns.start)?, date(columns.end)?);
    if let (Some(from), Some(to), Some(column)) = (from, to, columns.end)
        && to < from
    {
        return Err((column, format!("the line ends on {to}, before it begins on {from}")));
    }
    let (de, en) = texts(cells, columns)?;
    let parent = columns.parent.map_or_else(String::new, |(code, suffix)| parent(cell(code), optional(suffix)));
    let declarable = suffix == PRODUCT_LINE;
    Ok(Line {
        depth: depth(&code, indent),
        code,
        suffix,
        parent,
        declarable,
        from,
        to,
        successor: String::new(),
        de,
        en,
    })
}

fn texts(cells: &[String], columns: &Columns) -> Result<(String, String), (usize, String)> {
    let cell =
        |column: Option<usize>| column.and_then(|column| cells.get(column)).map_or_else(String::new, |c| tidy(c));
    let (mut de, mut en) = (cell(columns.german), cell(columns.english));
    if let Some((column, given)) = columns.text {
        let language = match columns.language {
            None => given,
            Some(language) => match cells.get(language).map(|cell| cell.trim().to_uppercase()).as_deref() {
                Some("DE") => Some(Language::De),
                Some("EN") => Some(Language::En),
                other => return Err((language, format!("`{}` is neither DE nor EN", other.unwrap_or_default()))),
            },
        };
        match language {
            Some(Language::De) if de.is_empty() => de = cell(Some(column)),
            Some(Language::En) if en.is_empty() => en = cell(Some(column)),
            _ => {}
        }
    }
    if de.is_empty() && en.is_empty() && columns.has_texts() {
        let column = columns.text.map(|(column, _)| column).or(columns.german).or(columns.english).unwrap_or_default();
        return Err((column, "the line has no text".to_owned()));
    }
    Ok((de, en))
}

/// The digits of a code and the suffix that may follow it after a space; spreadsheets lose a zero at the beginning.
fn split_code(cell: &str) -> (String, String) {
    let (code, suffix) = match cell.rsplit_once(' ') {
        Some((code, suffix)) if suffix.len() == 2 && code.len() >= 10 => (code, suffix.to_owned()),
        _ => (cell, PRODUCT_LINE.to_owned()),
    };
    let digits: String = code.chars().filter(|c| !c.is_whitespace() && *c != '.').collect();
    (if digits.len() % 2 == 1 { format!("0{digits}") } else { digits }, suffix)
}

/// The code without the zeros that only pad it: to the digits of its level where the list names it, else by pairs.
fn without_padding(digits: &str, level: &str) -> String {
    if let Some(level) =
        level.parse::<f64>().ok().map(|level| level as usize).filter(|level| (2..=digits.len()).contains(level))
    {
        return digits[..level].to_owned();
    }
    let mut code = digits;
    while code.len() > 2 && code.ends_with("00") {
        code = &code[..code.len() - 2];
    }
    code.to_owned()
}

/// Chapters are 0 deep, headings 1 and more, and what lies below them by their indent, or by their digits without one.
fn depth(code: &str, indent: Option<usize>) -> usize {
    match (code.len(), indent) {
        (2, _) => 0,
        (_, Some(indent)) => indent + 1,
        (digits, None) => digits / 2 - 1,
    }
}

fn parent(code: &str, suffix: &str) -> String {
    let digits = split_code(code).0;
    if digits.bytes().all(|b| b.is_ascii_digit()) && !digits.is_empty() {
        format!("{}-{}", without_padding(&digits, ""), if suffix.is_empty() { PRODUCT_LINE } else { suffix })
    } else {
        String::new()
    }
}

/// An indent as a number, or as dashes with spaces between.
fn read_indent(cell: &str) -> Result<usize, String> {
    if cell.chars().all(|c| c == '-' || c.is_whitespace()) {
        return Ok(cell.matches('-').count());
    }
    cell.parse::<f64>()
        .ok()
        .filter(|indent| (0.0..100.0).contains(indent))
        .map(|indent| indent as usize)
        .ok_or_else(|| format!("`{cell}` is no indent"))
}

fn read_date(cell: &str) -> Result<Option<NaiveDate>, String> {
    /// Digits of the numbers that spreadsheets have for the days from 1927 to 2173.
    const SERIAL_DIGITS: usize = 5;
    const FORMATS: [&str; 4] = ["%Y-%m-%d", "%d-%m-%Y", "%d/%m/%Y", "%d.%m.%Y"];
    let day = cell.split([' ', 'T']).next().unwrap_or_default();
    if day.is_empty() || matches!(day, "#NA" | "NA" | "nil" | "NULL") {
        return Ok(None);
    }
    let serial = |day: &str| day.parse().ok().filter(|_| day.len() == SERIAL_DIGITS).and_then(spreadsheet_day);
    let read = FORMATS.iter().find_map(|format| NaiveDate::parse_from_str(day, format).ok()).or_else(|| serial(day));
    read.map(Some).ok_or_else(|| format!("`{cell}` is no date"))
}

/// One line of text: without tags, breaks and runs of spaces; `|` stands for a narrow space in EU lists.
fn tidy(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        plain.push_str(&rest[..start]);
        let tag = rest[start..].find('>').filter(|end| *end <= 10);
        let is_tag = rest[start + 1..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
        match tag.filter(|_| is_tag) {
            Some(end) => {
                plain.push(' ');
                rest = &rest[start + end + 1..];
            }
            None => {
                plain.push('<');
                rest = &rest[start + 1..];
            }
        }
    }
    plain.push_str(rest);
    plain.replace('|', " ").split_whitespace().collect::<Vec<_>>().join(" ")
}
