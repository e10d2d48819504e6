//! Lines of a list of codes, whatever the form in which they were published.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::bail;
use chrono::NaiveDate;

use vat_classification::domain::Taxonomy;

use super::Language;

/// The suffix of lines under which goods are declared; others are headings between them.
pub(super) const PRODUCT_LINE: &str = "80";
/// Names that authorities give to a column, without case, spaces and punctuation.
const CODE: &[&str] = &[
    "goodscode",
    "cncode",
    "code",
    "commoditycode",
    "commodity",
    "goodsnomenclatureitemid",
    "itemid",
    "hs8",
    "tarifnummer",
    "zolltarifnummer",
    "tarifnr",
    "tariffnumber",
    "tarifnumber",
    "numerodetarif",
    "numerodutarif",
];
const SUFFIX: &[&str] =
    &["commoditysuffix", "productlinesuffix", "producline", "productline", "suffix", "pls", "producelinesuffix"];
const START: &[&str] = &[
    "startdate",
    "validitystart",
    "commodityvaliditystart",
    "validitystartdate",
    "validfrom",
    "gultigab",
    "gueltigab",
];
const END: &[&str] =
    &["enddate", "validityend", "commodityvalidityend", "validityenddate", "validto", "gultigbis", "gueltigbis"];
const LANGUAGE: &[&str] = &["language", "lang", "sprache"];
const LEVEL: &[&str] = &["hierpos", "hierarchicalposition"];
const INDENT: &[&str] = &["indent", "indents", "numberofindents", "numberindents", "indentation", "commodityindent"];
const TEXT: &[&str] =
    &["description", "commoditydescription", "text", "designation", "bezeichnung", "selfexplanatorytext"];
const GERMAN: &[&str] = &[
    "designationde",
    "descriptionde",
    "textde",
    "bezeichnungde",
    "bezeichnungd",
    "textd",
    "deutsch",
    "german",
    "de",
    "d",
];
const ENGLISH: &[&str] = &[
    "designationen",
    "descriptionen",
    "texten",
    "bezeichnungen",
    "bezeichnunge",
    "texte",
    "englisch",
    "english",
    "en",
    "e",
];
const PARENT: &[&str] = &["parentcode", "parentcommoditycode", "parent"];
const PARENT_SUFFIX: &[&str] = &["parentsuffix", "parentproductlinesuffix"];

/// One line of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    /// The code without the zeros that only pad it.
    pub(super) code: String,
    pub(super) suffix: String,
    /// How deep the line lies below its chapter.
    pub(super) depth: usize,
    /// Code and suffix of the line above, with a dash between; empty for a chapter.
    pub(super) parent: String,
    pub(super) declarable: bool,
    pub(super) from: Option<NaiveDate>,
    pub(super) to: Option<NaiveDate>,
    pub(super) successor: String,
    pub(super) de: String,
    pub(super) en: String,
}

impl Line {
    /// What tells lines apart: the code as published, then the suffix.
    pub(super) fn key(&self) -> (String, String) {
        (format!("{:0<10}", self.code), self.suffix.clone())
    }
}

/// A row that cannot be read.
#[derive(Debug)]
pub(super) struct BadRow {
    file: String,
    row: usize,
    column: String,
    message: String,
}

impl fmt::Display for BadRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: row {}, column {}: {}", self.file, self.row, self.column, self.message)
    }
}

/// Where a file has what.
pub(super) struct Columns {
    names: Vec<String>,
    code: usize,
    suffix: Option<usize>,
    start: Option<usize>,
    end: Option<usize>,
    language: Option<usize>,
    level: Option<usize>,
    indent: Option<usize>,
    text: Option<(usize, Option<Language>)>,
    german: Option<usize>,
    english: Option<usize>,
    parent: Option<(usize, Option<usize>)>,
}

/// The lines of all files of one list, by code and suffix.
pub(super) struct Lines {
    taxonomy: Taxonomy,
    language: Option<Language>,
    lines: BTreeMap<(String, String), Line>,
    whole: bool,
    pub(super) read: usize,
    pub(super) faults: Vec<BadRow>,
}

impl Lines {
    pub(super) fn new(taxonomy: Taxonomy, language: Option<Language>) -> Lines {
        Lines { taxonomy, language, lines: BTreeMap::new(), whole: false, read: 0, faults: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Whether codes that are missing here have ended: files of texts alone say nothing about other codes.
    pub(super) fn ends_others(&self) -> bool {
        self.whole
    }

    /// Finds the columns of a file by their names.
    pub(super) fn columns(&mut self, file: &str, header: &[String]) -> anyhow::Result<Columns> {
        let names: Vec<String> = header.iter().map(|name| plain(name)).collect();
        let find = |known: &[&str]| known.iter().find_map(|known| names.iter().position(|name| name == known));
        let Some(code) = find(CODE) else {
            bail!("{file} has no column with codes; its columns are {}", header.join(", "));
        };
        let parent = find(PARENT).map(|parent| (parent, find(PARENT_SUFFIX)));
        let (start, language, indent) = (find(START), find(LANGUAGE), find(INDENT));
        let (german, english) = (find(GERMAN), find(ENGLISH));
        let text_language = self.language.or((parent.is_some() || indent.is_some()).then_some(Language::En));
        let text = find(TEXT).map(|text| (text, text_language));
        if german.is_none() && english.is_none() {
            match text {
                None => bail!("{file} has no column with texts; its columns are {}", header.join(", ")),
                Some((_, None)) if language.is_none() => bail!("{file} does not say its language; give it with --lang"),
                Some(_) => {}
            }
        }
        self.whole |= start.is_some() || language.is_some() || indent.is_some() || parent.is_some() || german.is_some();
        Ok(Columns {
            code,
            suffix: find(SUFFIX),
            start,
            end: find(END),
            language,
            level: find(LEVEL),
            indent,
            text,
            german,
            english,
            parent,
            names: header.to_vec(),
        })
    }

    /// Reads one row; a bad one is remembered, and an empty one left out.
    pub(super) fn add(&mut self, file: &str, row: usize, cells: &[String], columns: &Columns) {
        if cells.iter().all(|cell| cell.trim().is_empty()) {
            return;
        }
        match read_row(cells, columns, self.taxonomy) {
            Ok(line) => {
                self.read += 1;
                match self.lines.entry(line.key()) {
                    std::collections::btree_map::Entry::Vacant(place) => {
                        place.insert(line);
                    }
                    std::collections::btree_map::Entry::Occupied(mut known) => {
                        let known = known.get_mut();
                        for (text, new) in [(&mut known.de, line.de), (&mut known.en, line.en)] {
                            if !new.is_empty() {
                                *text = new;
                            }
                        }
                    }
                }
            }
            Err((column, message)) => {
                let column = columns.names.get(column).cloned().unwrap_or_default();
                self.faults.push(BadRow { file: file.to_owned(), row, column, message });
            }
        }
    }

    /// The lines in order, with parents, declarable lines, and the headings between lines put before the texts.
    pub(super) fn finish(self) -> Vec<Line> {
        let mut lines: Vec<Line> = self.lines.into_values().collect();
        // What lies above the line at hand: its place in the list, deepest last.
        let mut open: Vec<usize> = Vec::new();
        let mut above: Vec<Option<usize>> = Vec::with_capacity(lines.len());
        for index in 0..lines.len() {
            let depth = lines[index].depth;
            let is_above = |known: &usize| {
                lines[*known].depth < depth && lines[index].code.get(..2) == lines[*known].code.get(..2)
            };
            open.truncate(open.iter().take_while(|known| is_above(known)).count());
            above.push(open.last().copied());
            open.push(index);
        }
        for index in 0..lines.len() {
            let Some(parent) = above[index] else { continue };
            if lines[index].parent.is_empty() {
                lines[index].parent = format!("{}-{}", lines[parent].code, lines[parent].suffix);
            }
            lines[parent].declarable = false;
            if lines[parent].suffix != PRODUCT_LINE {
                // A heading comes before its lines, and already carries the headings above it.
                let (de, en) = (lines[parent].de.clone(), lines[parent].en.clone());
                lines[index].de = joined(&de, &lines[index].de);
                lines[index].en = joined(&en, &lines[index].en);
            }
        }
        lines
    }
}

fn joined(heading: &str, text: &str) -> String {
    match (heading.trim_end_matches([':', ' ']), text) {
        ("", text) => text.to_owned(),
        (heading, "") => heading.to_owned(),
        (heading, text) => format!("{heading}: {text}"),
    }
}

/// Reads a row into a line, or says which column is wrong and why.
fn read_row(cells: &[String], columns: &Columns, taxonomy: Taxonomy) -> Result<Line, (usize, String)> {
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
    if de.is_empty() && en.is_empty() {
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
    const FORMATS: [&str; 4] = ["%Y-%m-%d", "%d-%m-%Y", "%d/%m/%Y", "%d.%m.%Y"];
    let day = cell.split([' ', 'T']).next().unwrap_or_default();
    if day.is_empty() || matches!(day, "#NA" | "NA" | "nil" | "NULL") {
        return Ok(None);
    }
    let read = FORMATS.iter().find_map(|format| NaiveDate::parse_from_str(day, format).ok());
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

/// A column's name in lower case, letters and digits only, umlauts without their dots.
fn plain(name: &str) -> String {
    name.chars()
        .flat_map(char::to_lowercase)
        .map(|c| match c {
            'ä' => 'a',
            'ö' => 'o',
            'ü' => 'u',
            'é' | 'è' => 'e',
            c => c,
        })
        .filter(char::is_ascii_alphanumeric)
        .collect()
}
