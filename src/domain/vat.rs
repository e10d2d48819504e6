//! VAT: which rate a country takes on the goods of a class, and whether a class decides it.
//!
//! A country's rules name goods by code prefix. On any day the rows of the longest prefix of a code govern it; what no
//! row names bears the standard rate. A row is `whole` when all goods of its prefix qualify, and `partial` when only
//! some do. The rest of a partial row's goods bears what the whole row of the same or the next shorter prefix says.
//!
//! The goods on one side of a partial row form a segment `NN-NNN` of the code. Sides of one code do not overlap: goods
//! belong to one of the sides that any country of the taxonomy names for that code, or to none of them, which is side
//! `02`. So one segment settles all countries: a country that has a row for the side takes that row's rate, and every
//! other country treats the goods as the rest. The plain segment `00-000` says nothing, so every side is possible.

mod decide;
mod parse;

use std::fmt;

use chrono::NaiveDate;
use serde::Serialize;
use utoipa::ToSchema;

pub use parse::{SideName, parse_country, parse_sides};

use crate::domain::file_fault::FileFault;
use crate::domain::{ClassCode, Nomenclature, ProductClass, Segment, Taxonomy};

/// The side of goods that no partial row names.
pub const REST_SIDE: u8 = 2;
/// The category of goods that no rule names.
pub const STANDARD_CATEGORY: &str = "STANDARD";
/// The kind of rate that goods bear when no rule names them.
pub const STANDARD_KIND: &str = "standard";

/// A rate of tax in hundredths of a per cent, so that equal rates are equal numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Percent(u16);

impl Percent {
    /// Reads `19`, `2.1` or `25.5`: at most two decimals, at most 100.
    pub fn parse(text: &str) -> Option<Percent> {
        let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
        if whole.is_empty() || decimals.is_empty() || decimals.len() > 2 {
            return None;
        }
        let hundredths = format!("{decimals:0<2}").parse::<u16>().ok()?;
        let all = whole.parse::<u16>().ok()?.checked_mul(100)?.checked_add(hundredths)?;
        (all <= 10_000 && text.bytes().all(|b| b.is_ascii_digit() || b == b'.')).then_some(Percent(all))
    }

    /// The rate in per cent.
    pub fn value(self) -> f64 {
        f64::from(self.0) / 100.0
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.value())
    }
}

impl Serialize for Percent {
    /// A whole rate is written without decimals.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0 % 100 == 0 { serializer.serialize_u16(self.0 / 100) } else { serializer.serialize_f64(self.value()) }
    }
}

/// The rules of all countries.
#[derive(Debug, Default)]
pub struct VatRules {
    /// In the order of [`Taxonomy::countries`], by [`Taxonomy::index`].
    taxonomies: [Vec<CountryRules>; 3],
    sides: Vec<SideName>,
}

/// The rules of one country.
#[derive(Debug, Clone)]
pub struct CountryRules {
    /// ISO 3166-1 alpha-2.
    country: String,
    /// How complete the rules are, in words.
    completeness: String,
    rates: Vec<Rate>,
    /// Sorted by code, then partial rows after the whole one.
    rules: Vec<Rule>,
    /// For each two leading digits the index of the first rule; one more entry closes the last.
    chapters: Vec<u16>,
    texts: Vec<RuleText>,
}

/// What a kind of rate amounts to, for a time.
#[derive(Debug, Clone)]
struct Rate {
    kind: String,
    percent: Percent,
    valid: Period,
    source: String,
}

/// One row of a country's rules for one code.
#[derive(Debug, Clone)]
struct Rule {
    code: ClassCode,
    /// The goods on a side of the code; none where all goods of the code are meant.
    segment: Option<Segment>,
    valid: Period,
    text: u16,
    /// Whether the code lies inside a range, so that it need not be listed.
    ranged: bool,
}

/// What the rules of one line of a file share.
#[derive(Debug, Clone)]
struct RuleText {
    line: usize,
    kind: String,
    category: String,
    goods: String,
    source: String,
}

/// First and last day; open where no last day is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Period {
    from: NaiveDate,
    to: Option<NaiveDate>,
}

impl Period {
    fn contains(&self, date: NaiveDate) -> bool {
        self.from <= date && self.to.is_none_or(|to| date <= to)
    }

    fn overlaps(&self, other: &Period) -> bool {
        self.to.is_none_or(|to| other.from <= to) && other.to.is_none_or(|to| self.from <= to)
    }
}

/// Whether a class decides the VAT rate, and of every country what it is.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sufficiency<'a> {
    /// Whether every country has one and the same rate for all goods of the class.
    pub sufficient: bool,
    /// The countries of the taxonomy, in the order of their codes.
    pub countries: Vec<CountryVat<'a>>,
}

/// What a country takes on the goods of a class.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CountryVat<'a> {
    /// ISO 3166-1 alpha-2.
    pub country: &'a str,
    /// Whether all goods of the class have one and the same rate here.
    pub sufficient: bool,
    /// Per cent; null when the class does not decide it.
    #[schema(value_type = Option<f64>)]
    pub rate: Option<Percent>,
    /// Every rate that goods of the class may have; where they differ, these are the rules that disagree.
    pub rates: Vec<AppliedRate<'a>>,
    /// How complete the rules of the country are.
    pub completeness: &'a str,
}

/// A rate that goods of a class have.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedRate<'a> {
    /// Per cent.
    #[schema(value_type = f64)]
    pub rate: Percent,
    /// What kind of goods the rule is about, such as `FOOD`; `STANDARD` where no rule names the goods.
    pub category: &'a str,
    /// The goods, in words.
    pub goods: &'a str,
    /// The class that the rule names, with the side of it that it is about.
    #[schema(value_type = String)]
    #[serde(serialize_with = "as_text")]
    pub product_class: ProductClass,
    /// Where the law says so.
    pub source: &'a str,
    /// First day of the rule or of its rate, whichever is later.
    pub valid_from: NaiveDate,
    /// Last day, where one is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_to: Option<NaiveDate>,
}

fn as_text<S: serde::Serializer>(class: &ProductClass, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(class)
}

/// A segment that a code has, with the goods that it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentName<'a> {
    /// The segment.
    pub segment: Segment,
    /// German name of the goods.
    pub de: &'a str,
    /// English name of the goods.
    pub en: &'a str,
}

impl VatRules {
    /// Puts the countries together. One without rules, and a side without a name, is a fault.
    pub fn new(countries: Vec<CountryRules>, sides: Vec<SideName>, faults: &mut Vec<FileFault>) -> VatRules {
        let mut rules = VatRules { taxonomies: Default::default(), sides };
        for taxonomy in Taxonomy::ALL {
            for country in taxonomy.countries() {
                match countries.iter().find(|known| known.country == *country) {
                    Some(known) => rules.taxonomies[taxonomy.index()].push(known.clone()),
                    None => faults.push(FileFault::at("vat", 0, format!("there are no rules for {country}"))),
                }
            }
        }
        for country in rules.taxonomies.iter().flatten() {
            for rule in &country.rules {
                if let Some(segment) = rule.segment.filter(|segment| rules.side(segment.side).is_none()) {
                    let message = format!("side {:02} has no name in the list of sides", segment.side);
                    faults.push(FileFault::at(&country.file(), country.texts[usize::from(rule.text)].line, message));
                }
            }
        }
        rules
    }

    /// Names every rule whose code is not of the Harmonized System as listed; digits after the sixth are not checked,
    /// since national lists may be absent.
    pub fn check_codes(&self, nomenclatures: &[Nomenclature; 3], faults: &mut Vec<FileFault>) {
        for (countries, nomenclature) in self.taxonomies.iter().zip(nomenclatures) {
            for country in countries {
                let unlisted = |rule: &&Rule| !rule.ranged && !nomenclature.contains(rule.code.prefix(6));
                for rule in country.rules.iter().filter(unlisted) {
                    let line = country.texts[usize::from(rule.text)].line;
                    let message = format!("{} is not in the {} nomenclature", rule.code, nomenclature.taxonomy());
                    faults.push(FileFault::at(&country.file(), line, message));
                }
            }
        }
    }

    /// How complete the rules are, by country, in the order of taxonomies and countries.
    pub fn completeness(&self) -> impl Iterator<Item = (&str, &str)> {
        self.taxonomies.iter().flatten().map(|country| (country.country.as_str(), country.completeness.as_str()))
    }

    /// The segments that the rules define for a code besides the plain one, in order; the rest side is among them
    /// whenever there is another.
    pub fn segments(&self, taxonomy: Taxonomy, code: ClassCode) -> Vec<SegmentName<'_>> {
        let mut found: Vec<Segment> = Vec::new();
        for country in &self.taxonomies[taxonomy.index()] {
            country.sides_of(code, |segment| found.push(segment));
        }
        if !found.is_empty() {
            found.push(Segment { side: REST_SIDE, detail: 0 });
        }
        found.sort_unstable();
        found.dedup();
        let name = |segment: Segment| self.side(segment.side).map(|side| (segment, side));
        found.into_iter().filter_map(name).map(|(segment, side)| side.named(segment)).collect()
    }

    /// Whether a class of that code may carry the segment: the plain one always, another when the rules define it.
    pub fn defines_segment(&self, taxonomy: Taxonomy, code: ClassCode, segment: Segment) -> bool {
        segment == Segment::PLAIN || self.segments(taxonomy, code).iter().any(|known| known.segment == segment)
    }

    fn side(&self, side: u8) -> Option<&SideName> {
        self.sides.iter().find(|known| known.side == side)
    }
}

#[cfg(test)]
mod tests;
