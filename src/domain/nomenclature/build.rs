//! Puts a nomenclature together from the text of its files.

use std::collections::BTreeMap;

use chrono::NaiveDate;

use super::{Facts, Line, NO_PARENT, Nomenclature, chapter_of, key_of, search, without_zero_pairs};
use crate::domain::file_fault::{FileFault, content_lines};
use crate::domain::{ClassCode, Taxonomy};

/// Characters of a label that we wrote, at most: labels are short by purpose.
const MAX_LABEL_CHARS: usize = 200;
/// Two leading digits are 00 to 99.
const CHAPTERS: usize = 100;

/// One code with our labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelledRow {
    /// 2, 4 or 6 digits in the chapters of the Harmonized System, 8 or 10 in those of national lines.
    pub code: ClassCode,
    /// German label.
    pub de: String,
    /// English label.
    pub en: String,
}

/// One code of a national list, as `training import-nomenclature` writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NationalRow {
    /// Up to the taxonomy's width; zeros that only pad are gone.
    pub code: ClassCode,
    /// Whether goods are declared under this code.
    pub declarable: bool,
    /// First day of validity.
    pub valid_from: Option<NaiveDate>,
    /// Last day of validity.
    pub valid_to: Option<NaiveDate>,
    /// The code that takes its place when it has ended.
    pub successor: Option<ClassCode>,
    /// German text; empty where the list has none.
    pub de: String,
    /// English text; empty where the list has none.
    pub en: String,
}

/// Reads one chapter file: code, German and English label, tab between.
pub fn parse_harmonized(file: &str, text: &str, faults: &mut Vec<FileFault>) -> Vec<LabelledRow> {
    parse_labelled(file, text, &[2, 4, 6], faults)
}

/// Reads our labels of national lines: code of 8 or 10 digits, German and English label, tab between.
pub fn parse_line_labels(file: &str, text: &str, faults: &mut Vec<FileFault>) -> Vec<LabelledRow> {
    parse_labelled(file, text, &[8, 10], faults)
}

fn parse_labelled(file: &str, text: &str, digits: &[usize], faults: &mut Vec<FileFault>) -> Vec<LabelledRow> {
    let mut rows: Vec<LabelledRow> = Vec::new();
    for (line, content) in content_lines(text) {
        match labelled_row(content, digits) {
            Ok(row) => rows.push(row),
            Err(message) => faults.push(FileFault::at(file, line, message)),
        }
    }
    rows
}

fn labelled_row(content: &str, digits: &[usize]) -> Result<LabelledRow, String> {
    let cells: Vec<&str> = content.split('\t').collect();
    let [code, de, en] = cells[..] else {
        return Err(format!(
            "expected code, German label and English label with tabs between, found {} cells",
            cells.len()
        ));
    };
    let code = ClassCode::new(code)
        .filter(|code| digits.contains(&code.digits()))
        .ok_or_else(|| format!("`{code}` is not a code of {digits:?} digits"))?;
    for (language, label) in [("German", de), ("English", en)] {
        if label.trim().is_empty() {
            return Err(format!("code {code} has no {language} label"));
        }
        if label.chars().count() > MAX_LABEL_CHARS {
            return Err(format!("the {language} label of {code} has more than {MAX_LABEL_CHARS} characters"));
        }
    }
    Ok(LabelledRow { code, de: de.trim().to_owned(), en: en.trim().to_owned() })
}

/// Reads the list of ended codes: code and successor, tab between.
pub fn parse_successors(file: &str, text: &str, faults: &mut Vec<FileFault>) -> Vec<(ClassCode, ClassCode)> {
    let mut pairs = Vec::new();
    for (line, content) in content_lines(text) {
        match content.split_once('\t').and_then(|(old, new)| Some((ClassCode::new(old)?, ClassCode::new(new)?))) {
            Some(pair) => pairs.push(pair),
            None => {
                faults.push(FileFault::at(file, line, "expected an ended code and its successor with a tab between"))
            }
        }
    }
    pairs
}

/// Reads a national list, in either of two forms, with tabs between:
///
/// - facts alone, as the lists that ship: code, declarable, first day, last day, successor;
/// - with texts: code, suffix, indent, parent, declarable, first day, last day, successor, German, English. Only product
///   lines (suffix 80) become classes; the others carry headings between them.
pub fn parse_national(file: &str, text: &str, taxonomy: Taxonomy, faults: &mut Vec<FileFault>) -> Vec<NationalRow> {
    let mut rows = Vec::new();
    for (line, content) in content_lines(text) {
        match national_row(content, taxonomy) {
            Ok(row) => rows.extend(row),
            Err(message) => faults.push(FileFault::at(file, line, message)),
        }
    }
    rows
}

fn national_row(content: &str, taxonomy: Taxonomy) -> Result<Option<NationalRow>, String> {
    let cells: Vec<&str> = content.split('\t').collect();
    let (code, suffix, declarable, from, to, successor, de, en) = match cells[..] {
        [code, declarable, from, to, successor] => (code, "80", declarable, from, to, successor, "", ""),
        [code, suffix, _indent, _parent, declarable, from, to, successor, de, en] => {
            (code, suffix, declarable, from, to, successor, de, en)
        }
        _ => return Err(format!("expected 5 or 10 cells with tabs between, found {}", cells.len())),
    };
    if suffix != "80" {
        return Ok(None);
    }
    let code = ClassCode::new(code)
        .filter(|code| code.digits() <= taxonomy.width())
        .ok_or_else(|| format!("`{code}` is not a code of 2 to {} digits", taxonomy.width()))?;
    let date = |cell: &str| match cell {
        "" => Ok(None),
        cell => NaiveDate::parse_from_str(cell, "%Y-%m-%d").map(Some).map_err(|_| format!("`{cell}` is not a date")),
    };
    let successor = match successor {
        "" => None,
        cell => Some(ClassCode::new(cell).ok_or_else(|| format!("`{cell}` is not a code"))?),
    };
    Ok(Some(NationalRow {
        code,
        declarable: declarable == "1",
        valid_from: date(from)?,
        valid_to: date(to)?,
        successor,
        de: de.to_owned(),
        en: en.to_owned(),
    }))
}

/// Gathers the rows of one taxonomy, then builds its table.
#[derive(Debug)]
pub struct Builder {
    taxonomy: Taxonomy,
    as_of: NaiveDate,
    rows: BTreeMap<u64, Row>,
    outdated: BTreeMap<u64, Option<ClassCode>>,
    other_days: Vec<(u64, Option<NaiveDate>, Option<NaiveDate>)>,
    /// Whether a national list was added, so that a code it lacks does not exist.
    national: bool,
}

#[derive(Debug)]
struct Row {
    code: ClassCode,
    de: String,
    en: String,
    facts: Facts,
    /// Whether the Harmonized System has the code, which then lies below another code of it.
    harmonized: bool,
}

impl Builder {
    /// An empty table of a taxonomy, for the codes that are alive on a day.
    pub fn new(taxonomy: Taxonomy, as_of: NaiveDate) -> Builder {
        Builder {
            taxonomy,
            as_of,
            rows: BTreeMap::new(),
            outdated: BTreeMap::new(),
            other_days: Vec::new(),
            national: false,
        }
    }

    /// Adds codes of the Harmonized System; a code that is there already is a fault.
    pub fn harmonized(&mut self, file: &str, rows: &[LabelledRow], faults: &mut Vec<FileFault>) {
        for LabelledRow { code, de, en } in rows {
            let row = Row { code: *code, de: de.clone(), en: en.clone(), facts: Facts::default(), harmonized: true };
            if self.rows.insert(key_of(*code), row).is_some() {
                faults.push(FileFault::at(file, 0, format!("code {code} is listed twice")));
            }
        }
    }

    /// Adds ended codes with their successors; a listed code has not ended, and is left as it is.
    pub fn successors(&mut self, pairs: &[(ClassCode, ClassCode)]) {
        for (old, new) in pairs {
            self.outdated.insert(key_of(*old), Some(*new));
        }
    }

    /// Adds a national list. Labels of codes that the Harmonized System has stay ours; ended codes are kept to lead on,
    /// and codes that begin later are left out until their day; both are known for questions about other days.
    pub fn national(&mut self, rows: Vec<NationalRow>) {
        self.national |= !rows.is_empty();
        for row in rows {
            let key = key_of(row.code);
            let begins = row.valid_from.is_some_and(|first| first > self.as_of);
            let ended = row.valid_to.is_some_and(|last| last < self.as_of);
            if begins || ended {
                let digits = key_of(without_zero_pairs(row.code));
                self.other_days.push((digits, row.valid_from, row.valid_to));
                if ended {
                    self.outdated.insert(digits, row.successor);
                }
                continue;
            }
            let facts = Facts { declarable: row.declarable, valid_from: row.valid_from, valid_to: row.valid_to };
            let (de, en) = match (row.de.is_empty(), row.en.is_empty()) {
                (true, false) => (row.en.clone(), row.en),
                (false, true) => (row.de.clone(), row.de),
                _ => (row.de, row.en),
            };
            self.rows.entry(key).and_modify(|known| known.facts = facts).or_insert(Row {
                code: row.code,
                de,
                en,
                facts,
                harmonized: false,
            });
        }
    }

    /// Adds our own labels of national lines; one of a code that no list has is a fault.
    pub fn labels(&mut self, file: &str, rows: &[LabelledRow], faults: &mut Vec<FileFault>) {
        for LabelledRow { code, de, en } in rows {
            match self.rows.get_mut(&key_of(*code)) {
                Some(row) if !row.harmonized => (row.de, row.en) = (de.clone(), en.clone()),
                Some(_) => faults.push(FileFault::at(file, 0, format!("code {code} has its label elsewhere"))),
                // A line may have ended since its label was written, or belong to another of the taxonomies.
                None => {}
            }
        }
    }

    /// The finished table. A code of the Harmonized System whose parent is not listed is a fault.
    pub fn build(self, file: &str, faults: &mut Vec<FileFault>) -> Nomenclature {
        let mut built = Nomenclature {
            taxonomy: self.taxonomy,
            keys: self.rows.keys().copied().collect(),
            lines: Vec::with_capacity(self.rows.len()),
            chapters: Vec::with_capacity(CHAPTERS + 1),
            texts: String::with_capacity(self.rows.values().map(|row| row.de.len() + row.en.len()).sum()),
            folded: String::new(),
            folded_ends: Vec::with_capacity(self.rows.len()),
            outdated: Vec::new(),
            other_days: self.other_days,
            national: self.national,
        };
        let mut open: Vec<usize> = Vec::new();
        for (index, row) in self.rows.into_values().enumerate() {
            while let Some(last) = open.last().copied().filter(|last| !row.code.is_under(&built.lines[*last].code)) {
                built.lines[last].end = index as u32;
                open.pop();
            }
            let parent = open.last().map_or(NO_PARENT, |parent| *parent as u32);
            let above = row.code.digits().saturating_sub(2);
            let listed = open.last().map_or(0, |parent| built.lines[*parent].code.digits());
            if row.harmonized && listed < above {
                let message = format!("code {} is listed and {} above it is not", row.code, row.code.prefix(above));
                faults.push(FileFault::at(file, 0, message));
            }
            built.push(row, parent);
            open.push(index);
        }
        let count = built.lines.len() as u32;
        for last in open {
            built.lines[last].end = count;
        }
        for chapter in 0..=CHAPTERS {
            let start = built.keys.partition_point(|key| chapter_of(*key) < chapter);
            built.chapters.push(start as u32);
        }
        let listed = |key: &u64| built.keys.binary_search(key).is_ok();
        built.folded.shrink_to_fit();
        built.outdated = self.outdated.into_iter().filter(|(key, _)| !listed(key)).collect();
        built
    }
}

impl Nomenclature {
    fn push(&mut self, row: Row, parent: u32) {
        if row.de.is_empty() && parent != NO_PARENT {
            // A line without a label of its own is called as what it belongs to, and is not found by those words.
            let texts = self.lines[parent as usize].texts;
            self.folded_ends.push(self.folded.len() as u32);
            self.lines.push(Line { code: row.code, parent, end: 0, texts, facts: row.facts });
            return;
        }
        let start = self.texts.len() as u32;
        self.texts.push_str(&row.de);
        let middle = self.texts.len() as u32;
        self.texts.push_str(&row.en);
        let end = self.texts.len() as u32;
        self.folded.push_str(&search::fold(&format!("{}\t{}", row.de, row.en)));
        self.folded_ends.push(self.folded.len() as u32);
        self.lines.push(Line { code: row.code, parent, end: 0, texts: (start, middle, end), facts: row.facts });
    }
}
