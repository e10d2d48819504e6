//! The corpus: one text file a chapter, with sections by code and language, and templates that generate rows.
//!
//! ```text
//! # a comment
//! $colour = black | white | {$dark}       a slot: alternatives, for the whole file
//! [610910 en]                             a section: every line is a row for this code and language
//! Basic tee men :: Soft jersey shirt      ` :: ` parts name and description
//! Basic tee men :: Soft ## Men > Tops | Sale   ` ## ` parts off the tags, which are shelves of shops
//! [610910 en x60]                         60 distinct rows are generated from the lines, which are templates
//! {Men's|Ladies'} T-shirt {$colour|}
//! ```
//!
//! Generation is deterministic: splitmix64, seeded by the FNV-1a hash of the section.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use vat_classification::classify::words::Language;
use vat_classification::domain::ClassCode;

use crate::brands;
use crate::marks::Marks;
use crate::random::{Random, fnv};
use crate::rows::{Corpus, Fault, Place, Row};

/// Most rows that one section may generate.
const MAX_GENERATED: usize = 1000;
/// Templates are tried this many times for each row that is wanted, before we settle for fewer.
const TRIES_PER_ROW: usize = 8;
/// What parts a name from its description, and both from the tags.
pub(crate) const DESCRIPTION_MARK: &str = " :: ";
pub(crate) const TAGS_MARK: &str = " ## ";
/// Deepest nesting of slots.
const MAX_DEPTH: usize = 8;

/// Name of the file with the words that are no evidence.
pub(crate) const VAGUE_FILE: &str = "vague.txt";

/// Directory of the tables of brands, beside that of the corpus.
const BRANDS_DIRECTORY: &str = "brands";

/// Reads every `NN.txt` of a directory, its list of vague words, further files in the same form, and the brands.
pub(crate) fn read(directory: &Path, extra: &[PathBuf]) -> Result<Corpus> {
    let mut corpus = Corpus::default();
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).with_context(|| format!("corpus in {}", directory.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "txt") {
            files.push(path);
        }
    }
    files.sort();
    files.extend(extra.iter().cloned());
    for path in files {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let bytes = fs::read(&path).with_context(|| path.display().to_string())?;
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let line =
                    error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|&&b| b == b'\n').count() + 1;
                let place = Place { file: name, line };
                corpus.faults.push(Fault { place, what: "not UTF-8; the file is left out".to_owned() });
                continue;
            }
        };
        if name == VAGUE_FILE {
            corpus.marks = Marks::read(&text);
        } else {
            let mut reader = Reader::new(name);
            reader.read(&text);
            corpus.rows.append(&mut reader.rows);
            corpus.faults.append(&mut reader.faults);
        }
    }
    if let Some(beside) = directory.parent() {
        brands::add(&mut corpus, &beside.join(BRANDS_DIRECTORY))?;
    }
    Ok(corpus)
}

/// The section that is being read.
struct Section {
    code: ClassCode,
    code_text: String,
    language: Language,
    language_text: String,
    /// How many rows to generate; none when lines are rows.
    generate: Option<usize>,
    templates: Vec<(usize, String)>,
}

struct Reader {
    file: String,
    slots: HashMap<String, Vec<String>>,
    section: Option<Section>,
    rows: Vec<Row>,
    faults: Vec<Fault>,
}

impl Reader {
    fn new(file: String) -> Reader {
        Reader { file, slots: HashMap::new(), section: None, rows: Vec::new(), faults: Vec::new() }
    }

    fn read(&mut self, text: &str) {
        for (index, line) in text.lines().enumerate() {
            if let Err(what) = self.line(index + 1, line) {
                self.fault(index + 1, what);
            }
        }
        self.generate();
    }

    fn line(&mut self, number: usize, line: &str) -> Result<(), String> {
        if line.trim().is_empty() || line.starts_with('#') {
            return Ok(());
        }
        if let Some(slot) = line.strip_prefix('$') {
            return self.slot(slot);
        }
        if line.starts_with('[') {
            self.generate();
            self.section = None;
            self.section = Some(self.header(line)?);
            return Ok(());
        }
        let Some(section) = &mut self.section else { return Err("a row before a section".to_owned()) };
        for mark in [DESCRIPTION_MARK, TAGS_MARK] {
            if line.matches(mark).count() > 1 {
                return Err(format!("two \"{mark}\" in one row"));
            }
        }
        if section.generate.is_some() {
            section.templates.push((number, line.to_owned()));
            return Ok(());
        }
        let (code, language) = (section.code, section.language);
        self.push(code, language, number, line.trim(), line.trim(), false);
        Ok(())
    }

    fn slot(&mut self, slot: &str) -> Result<(), String> {
        let malformed = || "a slot is written `$name = one | two`".to_owned();
        let (name, alternatives) = slot.split_once('=').ok_or_else(malformed)?;
        let name = name.trim_end();
        if name.is_empty() || !name.chars().all(|c| c.is_alphanumeric() || c == '_') {
            return Err(malformed());
        }
        let alternatives = split_alternatives(alternatives.trim_start()).into_iter().map(str::trim).map(str::to_owned);
        self.slots.insert(name.to_owned(), alternatives.collect());
        Ok(())
    }

    fn header(&self, line: &str) -> Result<Section, String> {
        let malformed = || format!("a section is written `[610910 de]` or `[610910 de x60]`, not `{line}`");
        let inner = line.trim_end().strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).ok_or_else(malformed)?;
        let mut fields = inner.split(' ');
        let code_text = fields.next().unwrap_or_default();
        let code = ClassCode::new(code_text).filter(|code| [2, 4, 6].contains(&code.digits())).ok_or_else(malformed)?;
        let language_text = fields.next().unwrap_or_default();
        let language = match language_text {
            "de" => Language::German,
            "en" => Language::English,
            _ => return Err(malformed()),
        };
        let generate = match fields.next() {
            None => None,
            Some(count) => {
                let count = count.strip_prefix('x').and_then(|count| count.parse().ok()).ok_or_else(malformed)?;
                (count <= MAX_GENERATED).then_some(Some(count)).ok_or_else(malformed)?.filter(|&count| count > 0)
            }
        };
        if fields.next().is_some() {
            return Err(malformed());
        }
        let chapter = self.file.split('.').next().unwrap_or_default();
        if chapter.len() == 2 && chapter.bytes().all(|b| b.is_ascii_digit()) && !code_text.starts_with(chapter) {
            return Err(format!("code {code_text} belongs to another chapter"));
        }
        let (code_text, language_text) = (code_text.to_owned(), language_text.to_owned());
        Ok(Section { code, code_text, language, language_text, generate, templates: Vec::new() })
    }

    /// Generates the rows of the section that ends here.
    fn generate(&mut self) {
        let Some(section) = self.section.take() else { return };
        let Some(wanted) = section.generate.filter(|_| !section.templates.is_empty()) else { return };
        let lines: Vec<&str> = section.templates.iter().map(|(_, template)| template.as_str()).collect();
        let seed = format!("{}{}{}", section.code_text, section.language_text, lines.join("\n"));
        let mut random = Random(fnv(&seed));
        let mut seen = HashSet::new();
        for attempt in 0..wanted * TRIES_PER_ROW {
            if seen.len() == wanted {
                break;
            }
            let (number, template) = &section.templates[attempt % section.templates.len()];
            match self.expand(template, &mut random, 0) {
                Ok(text) => {
                    if seen.insert(text.clone()) {
                        self.push(section.code, section.language, *number, &text, template, true);
                    }
                }
                Err(what) => {
                    self.fault(*number, what);
                    break;
                }
            }
        }
    }

    fn expand(&self, template: &str, random: &mut Random, depth: usize) -> Result<String, String> {
        if depth > MAX_DEPTH {
            return Err(format!("slots nested over {MAX_DEPTH} deep"));
        }
        let mut out = String::new();
        let mut rest = template;
        while let Some(open) = rest.find('{') {
            out.push_str(&rest[..open]);
            let close = closing(&rest[open..]).ok_or_else(|| format!("brace not closed: {template}"))?;
            let body = &rest[open + 1..open + close];
            rest = &rest[open + close + 1..];
            let alternatives = self.alternatives(body)?;
            let choice = alternatives[(random.next() % alternatives.len() as u64) as usize];
            let of_slot = choice.strip_prefix('$').is_some_and(|name| self.slots.contains_key(name));
            let choice = if of_slot { format!("{{{choice}}}") } else { choice.to_owned() };
            out.push_str(&self.expand(&choice, random, depth + 1)?);
        }
        out.push_str(rest);
        Ok(out.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    fn alternatives<'t>(&'t self, body: &'t str) -> Result<Vec<&'t str>, String> {
        let alternatives = split_alternatives(body);
        match body.strip_prefix('$') {
            Some(name) if alternatives.len() == 1 => {
                let slot = self.slots.get(name).ok_or_else(|| format!("unknown slot {name}"))?;
                Ok(slot.iter().map(String::as_str).collect())
            }
            _ => Ok(alternatives),
        }
    }

    fn push(&mut self, code: ClassCode, language: Language, line: usize, text: &str, source: &str, generated: bool) {
        let (text, tags) = text.split_once(TAGS_MARK).unwrap_or((text, ""));
        let tags = tags.split('|').map(str::trim).filter(|tag| !tag.is_empty()).map(str::to_owned).collect();
        let (name, description) = match text.split_once(DESCRIPTION_MARK) {
            Some((name, description)) => (name, Some(description.trim().to_owned())),
            None => (text, None),
        };
        let place = Place { file: self.file.clone(), line };
        let group = Random(fnv(&format!("{code}{language:?}{source}"))).next();
        self.rows.push(Row {
            code,
            language,
            name: name.trim().to_owned(),
            description,
            tags,
            place,
            group,
            generated,
        });
    }

    fn fault(&mut self, line: usize, what: String) {
        self.faults.push(Fault { place: Place { file: self.file.clone(), line }, what });
    }
}

/// Alternatives parted by `|` outside braces.
fn split_alternatives(body: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0i32, 0);
    for (at, byte) in body.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b'|' if depth == 0 => {
                parts.push(&body[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&body[start..]);
    parts
}

/// Where the brace that opens at the beginning closes.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
#[path = "corpus_tests.rs"]
mod tests;
