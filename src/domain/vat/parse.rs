//! Reads the files of VAT rules: one a country, and the list of sides.
//!
//! Cells are separated by tabs, and the first one says what the line is:
//!
//! ```text
//! completeness  text
//! like          country whose rates and rules are taken over
//! rate          kind  percent  first-day  last-day  source
//! rule          codes  whole|partial  NN-NNN  kind  category  goods  first-day  last-day  source
//! ```
//!
//! `codes` are prefixes of 2, 4, 6, 8 or 10 digits with spaces between, or ranges such as `0801-0813` of equal length.

use chrono::NaiveDate;

use super::{CountryRules, Percent, Period, REST_SIDE, Rate, Rule, RuleText, STANDARD_KIND, SegmentName};
use crate::domain::file_fault::{FileFault, content_lines};
use crate::domain::{ClassCode, Segment};

/// Codes in one range, at most: longer ones are mistakes.
const MAX_RANGE: u64 = 100;
/// Rules of one country, at most: their indexes are kept in 16 bits.
const MAX_RULES: usize = 20_000;
/// Two leading digits are 00 to 99.
const CHAPTERS: usize = 100;

/// What rules may be about.
pub(super) const CATEGORIES: [&str; 25] = [
    "AGRICULTURE",
    "AIDS",
    "ALCOHOL",
    "ANIMALS",
    "ART",
    "AUDIO",
    "BEVERAGES",
    "BICYCLES",
    "BOOKS",
    "CHILDREN",
    "CLOTHING",
    "ENERGY",
    "EXCLUDED",
    "FEED",
    "FOOD",
    "FUEL",
    "HOUSEHOLD",
    "HYGIENE",
    "MEDICINES",
    "NEWSPAPERS",
    "PLANTS",
    "SAFETY",
    "STANDARD",
    "TOBACCO",
    "WATER",
];

/// The name of the goods on a side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SideName {
    /// 1 to 99.
    pub(super) side: u8,
    de: String,
    en: String,
}

impl SideName {
    pub(super) fn named(&self, segment: Segment) -> SegmentName<'_> {
        SegmentName { segment, de: &self.de, en: &self.en }
    }
}

/// Reads the list of sides: two digits, German name, English name.
pub fn parse_sides(file: &str, text: &str, faults: &mut Vec<FileFault>) -> Vec<SideName> {
    let mut sides: Vec<SideName> = Vec::new();
    for (line, content) in content_lines(text) {
        let cells: Vec<&str> = content.split('\t').collect();
        let read = match cells[..] {
            [side, de, en] if side.len() == 2 && !de.is_empty() && !en.is_empty() => {
                side.parse().ok().map(|side| SideName { side, de: de.to_owned(), en: en.to_owned() })
            }
            _ => None,
        };
        match read {
            Some(side) if side.side > 0 && sides.iter().all(|known| known.side != side.side) => sides.push(side),
            Some(side) => faults.push(FileFault::at(file, line, format!("side {:02} is taken", side.side))),
            None => faults.push(FileFault::at(file, line, "expected two digits, a German and an English name")),
        }
    }
    sides
}

/// Reads the rules of one country. `known` are countries read before, for `like`.
pub fn parse_country(
    country: &str,
    file: &str,
    text: &str,
    known: &[CountryRules],
    faults: &mut Vec<FileFault>,
) -> CountryRules {
    let mut rules = CountryRules {
        country: country.to_owned(),
        completeness: String::new(),
        rates: Vec::new(),
        rules: Vec::new(),
        chapters: Vec::new(),
        texts: Vec::new(),
    };
    for (line, content) in content_lines(text) {
        let cells: Vec<&str> = content.split('\t').collect();
        let read = match cells[..] {
            ["completeness", text] if !text.is_empty() => {
                rules.completeness = text.to_owned();
                Ok(())
            }
            ["like", other] => rules.take_over(other, known),
            ["rate", kind, percent, from, to, source] => rules.add_rate(kind, percent, from, to, source),
            ["rule", codes, extent, segment, kind, category, goods, from, to, source] => {
                rules.add_rule(line, codes, (extent, segment), (kind, category), (goods, source), (from, to))
            }
            [first, ..] => Err(format!("`{first}` with {} cells is no line of this file", cells.len())),
            [] => Ok(()),
        };
        faults.extend(read.err().map(|message| FileFault::at(file, line, message)));
    }
    rules.finish(file, faults);
    rules
}

impl CountryRules {
    /// The name of the country's file, for faults found after reading.
    pub(super) fn file(&self) -> String {
        format!("vat/{}.tsv", self.country)
    }

    fn take_over(&mut self, other: &str, known: &[CountryRules]) -> Result<(), String> {
        let other = known
            .iter()
            .find(|known| known.country == other)
            .ok_or_else(|| format!("there are no rules for {other}, or they have not been read before these"))?;
        self.rates.extend(other.rates.iter().cloned());
        self.rules.extend(other.rules.iter().cloned());
        self.texts.extend(other.texts.iter().cloned());
        Ok(())
    }

    fn add_rate(&mut self, kind: &str, percent: &str, from: &str, to: &str, source: &str) -> Result<(), String> {
        let percent = Percent::parse(percent).ok_or_else(|| format!("`{percent}` is no per cent from 0 to 100"))?;
        if kind.is_empty() || source.is_empty() {
            return Err("a rate needs a kind and a source".to_owned());
        }
        let rate = Rate { kind: kind.to_owned(), percent, valid: period(from, to)?, source: source.to_owned() };
        if self.rates.iter().any(|known| known.kind == kind && known.valid.overlaps(&rate.valid)) {
            return Err(format!("the rate `{kind}` has another percentage on some of these days"));
        }
        self.rates.push(rate);
        Ok(())
    }

    fn add_rule(
        &mut self,
        line: usize,
        codes: &str,
        (extent, segment): (&str, &str),
        (kind, category): (&str, &str),
        (goods, source): (&str, &str),
        (from, to): (&str, &str),
    ) -> Result<(), String> {
        let segment = Segment::parse(segment).ok_or_else(|| format!("`{segment}` is no segment NN-NNN"))?;
        let segment = match extent {
            "whole" if segment == Segment::PLAIN => None,
            "partial" if segment.side != Segment::PLAIN.side && segment.side != REST_SIDE => Some(segment),
            _ => {
                return Err(format!(
                    "`{extent}` with {segment}: whole goes with 00-000, partial with a side of its own"
                ));
            }
        };
        if CATEGORIES.binary_search(&category).is_err() {
            return Err(format!("`{category}` is no category; there are {}", CATEGORIES.join(", ")));
        }
        if goods.is_empty() || source.is_empty() {
            return Err("a rule names its goods and its source".to_owned());
        }
        let valid = period(from, to)?;
        let text = u16::try_from(self.texts.len()).map_err(|_| "too many rules".to_owned())?;
        let owned = str::to_owned;
        let text_row =
            RuleText { line, kind: owned(kind), category: owned(category), goods: owned(goods), source: owned(source) };
        self.texts.push(text_row);
        let rule = |(code, ranged)| Rule { code, segment, valid, text, ranged };
        self.rules.extend(expand(codes)?.into_iter().map(rule));
        if self.rules.len() > MAX_RULES { Err(format!("more than {MAX_RULES} rules")) } else { Ok(()) }
    }

    /// Sorts the rules and names what does not fit together.
    fn finish(&mut self, file: &str, faults: &mut Vec<FileFault>) {
        if self.completeness.is_empty() {
            faults.push(FileFault::at(file, 0, "a line `completeness` is missing"));
        }
        if !self.rates.iter().any(|rate| rate.kind == STANDARD_KIND) {
            faults.push(FileFault::at(file, 0, "there is no rate `standard`"));
        }
        let line_of = |rule: &Rule| self.texts[usize::from(rule.text)].line;
        for text in &self.texts {
            if !self.rates.iter().any(|rate| rate.kind == text.kind) {
                faults.push(FileFault::at(file, text.line, format!("there is no rate `{}`", text.kind)));
            }
        }
        self.rules.sort_by_key(|rule| (rule.code, rule.segment, rule.text));
        for (index, rule) in self.rules.iter().enumerate() {
            let twin = |other: &&Rule| other.segment == rule.segment && other.valid.overlaps(&rule.valid);
            let same_code = self.rules[index + 1..].iter().take_while(|other| other.code == rule.code);
            if let Some(other) = same_code.filter(|other| other.segment == rule.segment).find(twin) {
                let message = format!("{} has a row for these days already, in line {}", rule.code, line_of(rule));
                faults.push(FileFault::at(file, line_of(other), message));
            }
        }
        let start = |chapter: usize| {
            let before = |rule: &Rule| rule.code.prefix(2).as_str().parse::<usize>().unwrap_or_default() < chapter;
            self.rules.partition_point(before) as u16
        };
        self.chapters = (0..=CHAPTERS).map(start).collect();
    }
}

fn period(from: &str, to: &str) -> Result<Period, String> {
    let date = |text: &str| {
        NaiveDate::parse_from_str(text, "%Y-%m-%d").map_err(|_| format!("`{text}` is no date like 2026-11-01"))
    };
    let valid = Period { from: date(from)?, to: if to.is_empty() { None } else { Some(date(to)?) } };
    if valid.to.is_some_and(|to| to < valid.from) { Err(format!("{to} is before {from}")) } else { Ok(valid) }
}

/// Codes and ranges of codes with spaces between; with each whether it lies inside a range, between its ends.
fn expand(codes: &str) -> Result<Vec<(ClassCode, bool)>, String> {
    let mut all = Vec::new();
    for part in codes.split_whitespace() {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let bad = || format!("`{part}` is neither a code of 2, 4, 6, 8 or 10 digits nor a range of such");
        let read = |text: &str| ClassCode::new(text).filter(|code| code.digits() % 2 == 0).ok_or_else(bad);
        let width = read(first)?.digits();
        if read(last)?.digits() != width {
            return Err(bad());
        }
        let number = |text: &str| text.parse::<u64>().map_err(|_| bad());
        let (first, last) = (number(first)?, number(last)?);
        if last < first || last - first > MAX_RANGE {
            return Err(bad());
        }
        all.extend((first..=last).filter_map(|number| {
            let inside = number != first && number != last;
            Some((ClassCode::new(&format!("{number:0width$}"))?, inside))
        }));
    }
    if all.is_empty() { Err("a rule needs a code".to_owned()) } else { Ok(all) }
}
