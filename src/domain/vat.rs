//! VAT: which rate a country takes on the goods of a class, and whether a class decides it.
//!
//! A country's rules name goods by code prefix. On any day the rows of the longest prefix of a code govern it; what no
//! row names bears the standard rate. A row is `whole` when all goods of its prefix qualify, and `partial` when only
//! some do. The rest of a partial row's goods bears what the whole row of the same or the next shorter prefix says.
//!
//! A `gap` row says that some goods of its prefix have a rate that the file does not know. It governs like a rule, and
//! a class that touches it is not sufficient: what is not known is not the standard rate.
//!
//! The goods on one side of a partial row form a segment `NN-NNN` of the code. A segment settles all countries: goods
//! are on exactly the sides that it stands for, one or, where the list of sides says so, several at once. A country
//! that has rows for one of these sides takes their rate, and every other country treats the goods as the rest. Side
//! `02` is none of the sides that any country of the taxonomy names for the code. The plain segment `00-000` says
//! nothing, so every side is possible.

mod answer;
mod audit;
mod decide;
mod parse;
mod rate;
mod side;

use chrono::NaiveDate;

pub use answer::{AppliedRate, CountryVat, Sufficiency};
pub use audit::{ToldGap, ToldRate};
pub use parse::parse_country;
pub use rate::{Percent, RateType};
pub use side::{SegmentName, SideName, parse_sides};

use rate::Period;

use crate::domain::file_fault::FileFault;
use crate::domain::{ClassCode, Nomenclature, Segment, Taxonomy};

/// The side of goods that no partial row names.
pub const REST_SIDE: u8 = 2;
/// The category of goods that no rule names.
pub const STANDARD_CATEGORY: &str = "STANDARD";
/// The category of goods whose rate the rules do not know.
pub const UNKNOWN_CATEGORY: &str = "UNKNOWN";
/// The kind of rate that goods bear when no rule names them.
pub const STANDARD_KIND: &str = "standard";

/// The rules of all countries.
#[derive(Debug, Default)]
pub struct VatRules {
    /// In the order of [`Taxonomy::countries`], by [`Taxonomy::index`].
    taxonomies: [Vec<CountryRules>; 3],
    /// Territories with rates or borders of their own, by [`Taxonomy::index`], in the order of their codes.
    territories: [Vec<CountryRules>; 3],
    /// In the order of their numbers.
    sides: Vec<SideName>,
}

/// The rules of one country, or of a territory.
#[derive(Debug, Clone)]
pub struct CountryRules {
    /// ISO 3166-1 alpha-2, or the code of a territory.
    country: String,
    /// The name of a territory; none of a country.
    name: Option<String>,
    /// The taxonomies in which a territory is shown; none where they are those of its country.
    shown_in: Vec<Taxonomy>,
    /// The country whose rules were taken over.
    like: Option<String>,
    /// Why no VAT of a member state or of the country is due in a territory.
    outside: Option<String>,
    /// Kinds of rates of which it is not known what they are in a territory.
    unknown_kinds: Vec<String>,
    /// How complete the rules are, in words.
    completeness: String,
    /// The day from which the rules are known; before it no rate is told.
    since: NaiveDate,
    /// The day on which the rules were last compared with the law.
    read: NaiveDate,
    /// The last day on which a rate or a rule begins, or is no longer in force: after it nothing changes.
    last_change: NaiveDate,
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
    rate_type: RateType,
    percent: Percent,
    valid: Period,
    source: String,
    /// Whether it was taken over from another country, and gives way to a rate of the territory's own.
    inherited: bool,
}

/// One row of a country's rules for one code.
#[derive(Debug, Clone)]
struct Rule {
    code: ClassCode,
    /// The goods on a side of the code; none where all goods of the code are meant.
    segment: Option<Segment>,
    valid: Period,
    text: u16,
    /// Whether the row says that the rate is not known.
    gap: bool,
    /// Whether the code lies inside a range, so that it need not be listed.
    ranged: bool,
}

/// What the rules of one line of a file share.
#[derive(Debug, Clone)]
struct RuleText {
    line: usize,
    /// Empty for a gap.
    kind: String,
    category: String,
    goods: String,
    source: String,
}

impl VatRules {
    /// Puts countries and territories together. A country without rules, and a side without a name, is a fault.
    pub fn new(
        countries: &[CountryRules],
        territories: &[CountryRules],
        sides: Vec<SideName>,
        faults: &mut Vec<FileFault>,
    ) -> VatRules {
        let mut rules = VatRules { sides, ..VatRules::default() };
        rules.sides.sort_unstable_by_key(|known| known.side);
        for taxonomy in Taxonomy::ALL {
            for country in taxonomy.countries() {
                match countries.iter().find(|known| known.country == *country) {
                    Some(known) => rules.taxonomies[taxonomy.index()].push(known.clone()),
                    None => faults.push(FileFault::at("vat", 0, format!("there are no rules for {country}"))),
                }
            }
            let shown = territories.iter().filter(|territory| territory.is_shown_in(taxonomy));
            rules.territories[taxonomy.index()].extend(shown.cloned());
        }
        for country in rules.taxonomies.iter().flatten() {
            for rule in &country.rules {
                if let Some(segment) = rule.segment.filter(|segment| rules.side(segment.side).is_none()) {
                    let message = format!("side {:02} has no name in the list of sides", segment.side);
                    faults.push(FileFault::at(&country.file(), country.line_of(rule), message));
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
                    let message = format!("{} is not in the {} nomenclature", rule.code, nomenclature.taxonomy());
                    faults.push(FileFault::at(&country.file(), country.line_of(rule), message));
                }
            }
        }
    }

    /// The countries of a taxonomy, in the order of their codes.
    pub fn countries(&self, taxonomy: Taxonomy) -> &[CountryRules] {
        &self.taxonomies[taxonomy.index()]
    }

    /// The territories that are shown in a taxonomy, in the order of their codes.
    pub fn territories(&self, taxonomy: Taxonomy) -> &[CountryRules] {
        &self.territories[taxonomy.index()]
    }

    /// How complete the rules are, by country, in the order of taxonomies and countries.
    pub fn completeness(&self) -> impl Iterator<Item = (&str, &str)> {
        self.taxonomies.iter().flatten().map(|country| (country.country.as_str(), country.completeness.as_str()))
    }

    /// The segments that the rules define for a code besides the plain one, in order: the sides of partial rows, what
    /// stands for several of them at once, and the rest side whenever there is another.
    pub fn segments(&self, taxonomy: Taxonomy, code: ClassCode) -> Vec<SegmentName<'_>> {
        let mut found: Vec<Segment> = Vec::new();
        for country in &self.taxonomies[taxonomy.index()] {
            country.sides_of(code, |segment| found.push(segment));
        }
        let of_side = |side| Segment { side, detail: 0 };
        if !found.is_empty() {
            let mut sides: Vec<u8> = found.iter().map(|segment| segment.side).collect();
            sides.sort_unstable();
            sides.dedup();
            let known = |part: &u8| sides.binary_search(part).is_ok();
            let combined = self.sides.iter().filter(|side| side.is_combined() && side.parts.iter().all(known));
            found.extend(combined.map(|side| of_side(side.side)));
            found.extend(sides.iter().copied().map(of_side));
            found.push(of_side(REST_SIDE));
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
        self.sides.binary_search_by_key(&side, |known| known.side).ok().map(|index| &self.sides[index])
    }
}

impl CountryRules {
    /// ISO 3166-1 alpha-2, or the code of a territory.
    pub fn country(&self) -> &str {
        &self.country
    }

    fn is_shown_in(&self, taxonomy: Taxonomy) -> bool {
        match self.shown_in.as_slice() {
            [] => self.like.as_deref().is_some_and(|country| taxonomy.countries().contains(&country)),
            shown => shown.contains(&taxonomy),
        }
    }

    /// The name of the country's file, for faults found after reading.
    fn file(&self) -> String {
        format!("vat/{}.tsv", self.country)
    }

    fn line_of(&self, rule: &Rule) -> usize {
        self.text_of(rule).line
    }

    fn text_of(&self, rule: &Rule) -> &RuleText {
        &self.texts[usize::from(rule.text)]
    }
}

#[cfg(test)]
mod tests;
