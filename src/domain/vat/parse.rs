//! Reads the files of VAT rules: one a country or territory.
//!
//! Cells are separated by tabs, and the first one says what the line is:
//!
//! ```text
//! completeness  text
//! read          day on which the rules were last compared with the law
//! since         first-day from which the rules are known
//! like          country whose rates and rules are taken over
//! rate          kind  TYPE  percent  first-day  last-day  source
//! rule          codes  whole|partial  sides  kind  category  goods  first-day  last-day  source
//! gap           codes  sides  category  goods and why their rate is not known  first-day  last-day
//! ```
//!
//! `codes` are prefixes of 2, 4, 6, 8 or 10 digits with spaces between, or ranges such as `0801-0813` of equal length.
//! `sides` are segments `NN-NNN` with spaces between; `00-000` means all goods of the codes. `TYPE` is a name of
//! [`RateType::ALL`].
//!
//! The file of a territory also has `name text`; `outside why`, where no VAT is due; `taxonomies`, where it is shown
//! elsewhere than its country; and `unknown kind`, where it is not known what a kind of rate is. Its own rates of a kind
//! take the place of all that it took over of that kind, which is why `like` stands before them.

use chrono::NaiveDate;

use super::{
    CountryRules, Percent, Period, REST_SIDE, Rate, RateType, Rule, RuleText, STANDARD_KIND, UNKNOWN_CATEGORY,
};
use crate::domain::file_fault::{FileFault, content_lines};
use crate::domain::{ClassCode, Segment, Taxonomy};

/// Codes in one range, at most: longer ones are mistakes.
const MAX_RANGE: u64 = 100;
/// Rules of one country, at most: their indexes are kept in 16 bits.
const MAX_RULES: usize = 20_000;
/// Two leading digits are 00 to 99.
const CHAPTERS: usize = 100;

/// The sides of a row that is about all goods of its codes.
const WHOLE: &str = "00-000";
/// Where a gap is from.
const GAP_SOURCE: &str = "not settled by the rules";

/// What rules may be about.
pub(super) const CATEGORIES: [&str; 27] = [
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
    "GOLD",
    "HOUSEHOLD",
    "HYGIENE",
    "MEDICINES",
    "NEWSPAPERS",
    "PLANTS",
    "SAFETY",
    "STANDARD",
    "TOBACCO",
    "UNKNOWN",
    "WATER",
];

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
        name: None,
        shown_in: Vec::new(),
        like: None,
        outside: None,
        unknown_kinds: Vec::new(),
        completeness: String::new(),
        since: NaiveDate::MIN,
        read: NaiveDate::MIN,
        last_change: NaiveDate::MIN,
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
            ["since", day] => date(day).map(|day| rules.since = day),
            ["read", day] => date(day).map(|day| rules.read = day),
            ["like", other] => rules.take_over(other, known),
            ["name", name] if !name.is_empty() => {
                rules.name = Some(name.to_owned());
                Ok(())
            }
            ["outside", why] if !why.is_empty() => {
                rules.outside = Some(why.to_owned());
                Ok(())
            }
            ["unknown", kind] => {
                rules.rates.retain(|rate| rate.kind != kind);
                rules.unknown_kinds.push(kind.to_owned());
                Ok(())
            }
            ["taxonomies", names] => {
                rules.shown_in = names.split(' ').filter_map(Taxonomy::from_name).collect();
                Ok(())
            }
            ["rate", kind, rate_type, percent, from, to, source] => {
                rules.add_rate((kind, rate_type), percent, (from, to), source)
            }
            ["rule", codes, extent, sides, kind, category, goods, from, to, source] => {
                let text = RuleText::new(line, (kind, category), goods, source);
                segments(extent, sides).and_then(|sides| rules.add_rules(codes, &sides, text, (from, to)))
            }
            ["gap", codes, sides, category, goods, from, to] => {
                let text = RuleText::new(line, ("", category), goods, GAP_SOURCE);
                let extent = if sides == WHOLE { "whole" } else { "partial" };
                segments(extent, sides).and_then(|sides| rules.add_rules(codes, &sides, text, (from, to)))
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
    /// Takes over what another country has. Only an empty file can: rules know their texts by their places, and own rates
    /// and unknown kinds take the place of what is there when they are read.
    fn take_over(&mut self, other: &str, known: &[CountryRules]) -> Result<(), String> {
        let other = known
            .iter()
            .find(|known| known.country == other)
            .ok_or_else(|| format!("there are no rules for {other}, or they have not been read before these"))?;
        if !self.texts.is_empty() || !self.rates.is_empty() || !self.unknown_kinds.is_empty() {
            return Err("`like` stands once, before all rates, rules, gaps and unknown kinds".to_owned());
        }
        self.like = Some(other.country.clone());
        self.since = other.since;
        self.read = other.read;
        self.rates.extend(other.rates.iter().cloned().map(|rate| Rate { inherited: true, ..rate }));
        self.rules.extend(other.rules.iter().cloned());
        self.texts.extend(other.texts.iter().cloned());
        Ok(())
    }

    fn add_rate(
        &mut self,
        (kind, rate_type): (&str, &str),
        percent: &str,
        (from, to): (&str, &str),
        source: &str,
    ) -> Result<(), String> {
        let percent = Percent::parse(percent).ok_or_else(|| format!("`{percent}` is no per cent from 0 to 100"))?;
        let known_types = || RateType::ALL.map(|(_, name)| name).join(", ");
        let rate_type = RateType::from_name(rate_type)
            .ok_or_else(|| format!("`{rate_type}` is no type of a rate; there are {}", known_types()))?;
        if kind.is_empty() || source.is_empty() {
            return Err("a rate needs a kind and a source".to_owned());
        }
        let (kind, source) = (kind.to_owned(), source.to_owned());
        let rate = Rate { kind, rate_type, percent, valid: period(from, to)?, source, inherited: false };
        self.rates.retain(|known| !known.inherited || known.kind != rate.kind);
        if self.rates.iter().any(|known| known.kind == rate.kind && known.valid.overlaps(&rate.valid)) {
            return Err(format!("the rate `{}` has another percentage on some of these days", rate.kind));
        }
        self.rates.push(rate);
        Ok(())
    }

    /// Adds a rule, or a gap where the text names no kind of rate, for each code and side.
    fn add_rules(
        &mut self,
        codes: &str,
        sides: &[Option<Segment>],
        text: RuleText,
        (from, to): (&str, &str),
    ) -> Result<(), String> {
        if CATEGORIES.binary_search(&text.category.as_str()).is_err() || text.category == UNKNOWN_CATEGORY {
            return Err(format!("`{}` is no category; there are {}", text.category, CATEGORIES.join(", ")));
        }
        if text.goods.is_empty() || text.source.is_empty() {
            return Err("a rule names its goods and its source".to_owned());
        }
        let valid = period(from, to)?;
        let index = u16::try_from(self.texts.len()).map_err(|_| "too many rules".to_owned())?;
        let gap = text.kind.is_empty();
        self.texts.push(text);
        for (code, ranged) in expand(codes)? {
            let rule = |segment: &Option<Segment>| Rule { code, segment: *segment, valid, text: index, gap, ranged };
            self.rules.extend(sides.iter().map(rule));
        }
        if self.rules.len() > MAX_RULES { Err(format!("more than {MAX_RULES} rules")) } else { Ok(()) }
    }

    /// Sorts the rules and names what does not fit together.
    fn finish(&mut self, file: &str, faults: &mut Vec<FileFault>) {
        if self.completeness.is_empty() {
            faults.push(FileFault::at(file, 0, "a line `completeness` is missing"));
        }
        if self.read == NaiveDate::MIN {
            faults.push(FileFault::at(file, 0, "a line `read` is missing"));
        }
        if self.outside.is_none() && !self.rates.iter().any(|rate| rate.kind == STANDARD_KIND) {
            faults.push(FileFault::at(file, 0, "there is no rate `standard`"));
        }
        for text in self.texts.iter().filter(|text| !text.kind.is_empty() && !self.unknown_kinds.contains(&text.kind)) {
            if !self.rates.iter().any(|rate| rate.kind == text.kind) {
                faults.push(FileFault::at(file, text.line, format!("there is no rate `{}`", text.kind)));
            }
        }
        self.rules.sort_by_key(|rule| (rule.code, rule.segment, rule.text));
        for (index, rule) in self.rules.iter().enumerate() {
            let twin = |other: &&Rule| {
                other.segment == rule.segment && other.gap == rule.gap && other.valid.overlaps(&rule.valid)
            };
            let mut same_code = self.rules[index + 1..].iter().take_while(|other| other.code == rule.code);
            if let Some(other) = same_code.find(twin) {
                let message = format!("{} has a row for these days already, in line {}", rule.code, self.line_of(rule));
                faults.push(FileFault::at(file, self.line_of(other), message));
            }
        }
        let start = |chapter: usize| {
            let before = |rule: &Rule| rule.code.prefix(2).as_str().parse::<usize>().unwrap_or_default() < chapter;
            self.rules.partition_point(before) as u16
        };
        self.chapters = (0..=CHAPTERS).map(start).collect();
        let periods = self.rules.iter().map(|rule| rule.valid).chain(self.rates.iter().map(|rate| rate.valid));
        self.last_change = periods.flat_map(|valid| valid.changes()).max().unwrap_or(self.since);
    }
}

impl RuleText {
    fn new(line: usize, (kind, category): (&str, &str), goods: &str, source: &str) -> RuleText {
        let owned = str::to_owned;
        RuleText { line, kind: owned(kind), category: owned(category), goods: owned(goods), source: owned(source) }
    }
}

/// The sides of a row; none stands for all goods.
fn segments(extent: &str, sides: &str) -> Result<Vec<Option<Segment>>, String> {
    let read = |side: &str| Segment::parse(side).ok_or_else(|| format!("`{side}` is no segment NN-NNN"));
    let segments = sides.split(' ').map(read).collect::<Result<Vec<Segment>, String>>()?;
    let own = |segment: &Segment| segment.side != Segment::PLAIN.side && segment.side != REST_SIDE;
    match extent {
        "whole" if segments == [Segment::PLAIN] => Ok(vec![None]),
        "partial" if segments.iter().all(own) => Ok(segments.into_iter().map(Some).collect()),
        _ => Err(format!("`{extent}` with {sides}: whole goes with 00-000, partial with sides of its own")),
    }
}

fn period(from: &str, to: &str) -> Result<Period, String> {
    let valid = Period { from: date(from)?, to: if to.is_empty() { None } else { Some(date(to)?) } };
    if valid.to.is_some_and(|to| to < valid.from) { Err(format!("{to} is before {from}")) } else { Ok(valid) }
}

fn date(text: &str) -> Result<NaiveDate, String> {
    NaiveDate::parse_from_str(text, "%Y-%m-%d").map_err(|_| format!("`{text}` is no date like 2026-11-01"))
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
