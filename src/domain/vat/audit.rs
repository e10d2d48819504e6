//! What the files of rules say as a whole: for people who keep them, and for the page that tells what is covered.

use chrono::NaiveDate;

use super::{CountryRules, Percent, Period, RateType, Rule, STANDARD_KIND, VatRules};
use crate::domain::file_fault::FileFault;
use crate::domain::{ClassCode, Taxonomy};

/// A rate as its file tells it.
#[derive(Clone, Copy, Debug)]
pub struct ToldRate<'a> {
    /// Its type.
    pub rate_type: RateType,
    /// How much.
    pub percent: Percent,
    /// First day.
    pub from: NaiveDate,
    /// Last day, where one is known.
    pub to: Option<NaiveDate>,
    /// Where the law says so.
    pub source: &'a str,
}

/// A line of a file that says what is not known.
#[derive(Clone, Debug)]
pub struct ToldGap<'a> {
    /// The codes of the line in order, with ranges written `0801-0813`.
    pub codes: Vec<String>,
    /// Which goods, and why their rate is not known.
    pub goods: &'a str,
    /// Last day, where one is known.
    pub to: Option<NaiveDate>,
}

impl CountryRules {
    /// The name of a territory; none of a country.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Why no VAT is due in a territory.
    pub fn outside(&self) -> Option<&str> {
        self.outside.as_deref()
    }

    /// How complete the rules are, in words.
    pub fn completeness(&self) -> &str {
        &self.completeness
    }

    /// The day from which the rules are known.
    pub fn since(&self) -> NaiveDate {
        self.since
    }

    /// The day on which the rules were last compared with the law.
    pub fn read(&self) -> NaiveDate {
        self.read
    }

    /// Lines that are rules.
    pub fn rule_lines(&self) -> usize {
        self.texts.iter().filter(|text| !text.kind.is_empty()).count()
    }

    /// The rates of a day, in the order of the file.
    pub fn rates_on(&self, day: NaiveDate) -> Vec<ToldRate<'_>> {
        let valid = self.rates.iter().filter(|rate| rate.valid.contains(day));
        let told = valid.map(|rate| ToldRate {
            rate_type: rate.rate_type,
            percent: rate.percent,
            from: rate.valid.from,
            to: rate.valid.to,
            source: &rate.source,
        });
        told.collect()
    }

    /// The lines that say what is not known on a day.
    pub fn gaps_on(&self, day: NaiveDate) -> Vec<ToldGap<'_>> {
        let lines = self.texts.iter().enumerate().filter(|(_, text)| text.kind.is_empty());
        let told = lines.filter_map(|(line, text)| {
            let rows = || self.rules.iter().filter(|rule| usize::from(rule.text) == line && rule.valid.contains(day));
            let mut codes: Vec<String> = Vec::new();
            let mut last: Option<ClassCode> = None;
            for rule in rows().filter(|rule| last.replace(rule.code).is_none_or(|code| code != rule.code)) {
                match codes.last_mut() {
                    Some(range) if range.ends_with('-') && !rule.ranged => range.push_str(rule.code.as_str()),
                    Some(range) if rule.ranged => range.push_str(if range.ends_with('-') { "" } else { "-" }),
                    _ => codes.push(rule.code.to_string()),
                }
            }
            let to = rows().next()?.valid.to;
            Some(ToldGap { codes, goods: &text.goods, to })
        });
        told.collect()
    }

    /// Names what reads well line by line and not as a whole: days without a rate, sources without any number, and rows for a side that a longer prefix hides.
    fn audit(&self, faults: &mut Vec<FileFault>) {
        let mut fault = |line: usize, message: String| faults.push(FileFault::at(&self.file(), line, message));
        if self.outside.is_some() || self.name.is_some() {
            return;
        }
        if let Some(day) = self.uncovered(STANDARD_KIND, Period { from: self.since, to: None }) {
            fault(0, format!("there is no rate `{STANDARD_KIND}` on {day}"));
        }
        for rule in self.rules.iter().filter(|rule| !rule.gap) {
            let text = self.text_of(rule);
            let from = rule.valid.from.max(self.since);
            let valid = Period { from, to: rule.valid.to };
            if valid.to.is_none_or(|to| from <= to)
                && let Some(day) = self.uncovered(&text.kind, valid)
            {
                fault(text.line, format!("{} has no rate `{}` on {day}", rule.code, text.kind));
            }
        }
        for text in self.texts.iter().filter(|text| !text.kind.is_empty()) {
            if !text.source.bytes().any(|b| b.is_ascii_digit()) && !text.source.contains("nnex") {
                fault(text.line, format!("the source `{}` names no paragraph", text.source));
            }
        }
        for rule in &self.rules {
            if let Some(hidden) = self.hidden_by(rule) {
                let message = format!(
                    "{} says nothing of the side {} that {} names in line {}",
                    rule.code,
                    hidden.segment.unwrap_or_default(),
                    hidden.code,
                    self.line_of(hidden)
                );
                fault(self.line_of(rule), message);
            }
        }
    }

    /// The first day of a period on which a kind of rate is none.
    fn uncovered(&self, kind: &str, period: Period) -> Option<NaiveDate> {
        let mut day = period.from;
        loop {
            let rate = self.rates.iter().find(|rate| rate.kind == kind && rate.valid.contains(day));
            let Some(rate) = rate else { return Some(day) };
            let next = rate.valid.to.and_then(|to| to.succ_opt())?;
            if period.to.is_some_and(|to| next > to) {
                return None;
            }
            day = next;
        }
    }

    /// A row for a side of a shorter prefix that holds no more where this row governs, because no row of its code is
    /// about that side; only where this row is a gap, which is not meant to take away what is known.
    fn hidden_by(&self, rule: &Rule) -> Option<&Rule> {
        let own = |side: u8| {
            let same = self.rules.iter().filter(|other| other.code == rule.code && other.valid.overlaps(&rule.valid));
            same.filter_map(|other| other.segment).any(|segment| segment.side == side)
        };
        let above = |other: &&Rule| {
            rule.gap && rule.code != other.code && rule.code.is_under(&other.code) && other.valid.overlaps(&rule.valid)
        };
        self.rules.iter().filter(above).find(|other| other.segment.is_some_and(|segment| !own(segment.side)))
    }
}

impl VatRules {
    /// Names what is wrong with the files as a whole.
    pub fn audit(&self) -> Vec<FileFault> {
        let mut faults = Vec::new();
        for taxonomy in Taxonomy::ALL {
            self.countries(taxonomy)
                .iter()
                .filter(|country| country.like.is_none())
                .for_each(|country| country.audit(&mut faults));
        }
        faults
    }
}
