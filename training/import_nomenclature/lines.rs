//! Lines of a list of codes, whatever the form in which they were published.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::fmt;

use vat_classification::domain::Taxonomy;

use super::Language;
use super::columns::Columns;
use super::line::{Line, PRODUCT_LINE};
use super::row::{Kind, kind, read_heading, read_row};

/// Headings directly above one line, at most: each takes a suffix of its own below that of product lines.
const MAX_HEADINGS: usize = 7;

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

/// The lines of all files of one list, by code and suffix.
pub(super) struct Lines {
    taxonomy: Taxonomy,
    language: Option<Language>,
    lines: BTreeMap<(String, String), Line>,
    /// Texts between codes, whose line is still to come.
    headings: Vec<Line>,
    whole: bool,
    /// Whether a file tells by indents or parents what lies below what; otherwise the digits do.
    tells_depth: bool,
    pub(super) read: usize,
    pub(super) faults: Vec<BadRow>,
}

impl Lines {
    pub(super) fn new(taxonomy: Taxonomy, language: Option<Language>) -> Lines {
        Lines {
            taxonomy,
            language,
            lines: BTreeMap::new(),
            headings: Vec::new(),
            whole: false,
            tells_depth: false,
            read: 0,
            faults: Vec::new(),
        }
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
        let columns = Columns::find(file, header, self.language)?;
        self.whole |= columns.is_of_whole_list();
        self.tells_depth |= columns.indent.is_some() || columns.parent.is_some();
        Ok(columns)
    }

    /// Reads one row; a bad one is remembered, and an empty one left out.
    pub(super) fn add(&mut self, file: &str, row: usize, cells: &[String], columns: &Columns) {
        if cells.iter().all(|cell| cell.trim().is_empty()) {
            return;
        }
        if let Err((column, message)) = self.add_row(cells, columns) {
            let column = columns.names.get(column).cloned().unwrap_or_default();
            self.faults.push(BadRow { file: file.to_owned(), row, column, message });
        }
    }

    fn add_row(&mut self, cells: &[String], columns: &Columns) -> Result<(), (usize, String)> {
        match kind(cells, columns)? {
            Kind::Title => return Ok(()),
            Kind::Heading => {
                self.headings.push(read_heading(cells, columns)?);
                return Ok(());
            }
            Kind::Line => {}
        }
        let line = read_row(cells, columns, self.taxonomy)?;
        for (number, heading) in self.headings.drain(..).enumerate() {
            // Headings have suffixes below that of product lines, so that they sort before the line to which they lead.
            let suffix = format!("{:02}", (number + 1).min(MAX_HEADINGS) * 10);
            let heading = Line { code: line.code.clone(), suffix, ..heading };
            self.lines.insert(heading.key(), heading);
        }
        match self.lines.entry(line.key()) {
            Entry::Vacant(_) if !columns.has_texts() => {
                return Err((columns.code, format!("no file says what {} means", line.code)));
            }
            Entry::Vacant(place) => {
                place.insert(line);
            }
            Entry::Occupied(mut known) => {
                let known = known.get_mut();
                for (text, new) in [(&mut known.de, line.de), (&mut known.en, line.en)] {
                    if !new.is_empty() {
                        *text = new;
                    }
                }
                known.from = known.from.or(line.from);
                known.to = known.to.or(line.to);
            }
        }
        self.read += 1;
        Ok(())
    }

    /// The lines in order, with parents, declarable lines, and the headings between lines put before the texts.
    pub(super) fn finish(self) -> Vec<Line> {
        let tells_depth = self.tells_depth;
        let mut lines: Vec<Line> = self.lines.into_values().collect();
        // A list that names parents is believed; without a parent the indent decides.
        let places: HashMap<String, usize> =
            lines.iter().enumerate().map(|(index, line)| (format!("{}-{}", line.code, line.suffix), index)).collect();
        // What lies above the line at hand: its place in the list, deepest last.
        let mut open: Vec<usize> = Vec::new();
        let mut above: Vec<Option<usize>> = Vec::with_capacity(lines.len());
        for index in 0..lines.len() {
            let named = places.get(lines[index].parent.as_str()).copied();
            if let Some(parent) = named {
                lines[index].depth = lines[parent].depth + 1;
            }
            let depth = lines[index].depth;
            let is_above = |known: &usize| {
                let shared = if tells_depth { 2 } else { lines[*known].code.len() };
                lines[*known].depth < depth && lines[index].code.get(..shared) == lines[*known].code.get(..shared)
            };
            open.truncate(open.iter().take_while(|known| is_above(known)).count());
            above.push(named.or_else(|| open.last().copied()));
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
