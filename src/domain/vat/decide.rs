//! The decision: which rates the goods of a class have on a day.

use std::ops::Range;

use chrono::NaiveDate;

use super::{
    AppliedRate, CountryRules, CountryVat, Percent, Rate, Rule, STANDARD_CATEGORY, STANDARD_KIND, Sufficiency, VatRules,
};
use crate::domain::{ClassCode, Nomenclature, ProductClass, Segment};

/// Digits that the prefix of a rule may have, longest first.
const PREFIX_DIGITS: [usize; 5] = [10, 8, 6, 4, 2];

/// A rule that applies to some goods of a class; none for goods that no rule names.
type Applied<'a> = Option<&'a Rule>;

impl VatRules {
    /// The rates of all countries for the goods of a class on a day.
    ///
    /// `nomenclature` is the table of the taxonomy for which the class is meant. A class that is not in it is judged by
    /// its digits, as if nothing were below it.
    pub fn sufficiency(&self, nomenclature: &Nomenclature, class: ProductClass, date: NaiveDate) -> Sufficiency<'_> {
        let countries: Vec<CountryVat<'_>> = self.taxonomies[nomenclature.taxonomy().index()]
            .iter()
            .map(|country| country.vat(nomenclature, class, date))
            .collect();
        Sufficiency { sufficient: countries.iter().all(|country| country.sufficient), countries }
    }

    /// Whether every country has one and the same rate for all goods of a class on a day; the same answer as
    /// [`VatRules::sufficiency`], found without gathering the rates.
    pub fn is_sufficient(&self, nomenclature: &Nomenclature, class: ProductClass, date: NaiveDate) -> bool {
        self.taxonomies[nomenclature.taxonomy().index()].iter().all(|country| {
            let mut only: Option<Percent> = None;
            country.each_rate(nomenclature, class, date, |applied| {
                let Some(rate) = country.rate_of(applied, date) else { return false };
                *only.get_or_insert(rate.percent) == rate.percent
            }) && only.is_some()
        })
    }
}

impl CountryRules {
    fn vat(&self, nomenclature: &Nomenclature, class: ProductClass, date: NaiveDate) -> CountryVat<'_> {
        let mut rates: Vec<AppliedRate<'_>> = Vec::new();
        let mut unknown = false;
        self.each_rate(nomenclature, class, date, |applied| {
            match self.rate_of(applied, date) {
                Some(rate) => rates.push(self.applied(applied, rate, class)),
                None => unknown = true,
            }
            true
        });
        let first = rates.first().map(|first| first.rate);
        let sufficient = !unknown && first.is_some() && rates.iter().all(|rate| Some(rate.rate) == first);
        CountryVat {
            country: &self.country,
            sufficient,
            rate: first.filter(|_| sufficient),
            rates,
            completeness: &self.completeness,
        }
    }

    fn applied<'a>(&'a self, applied: Applied<'a>, rate: &'a Rate, class: ProductClass) -> AppliedRate<'a> {
        match applied {
            None => AppliedRate {
                rate: rate.percent,
                category: STANDARD_CATEGORY,
                goods: "Goods for which no rule names another rate",
                product_class: class,
                source: &rate.source,
                valid_from: rate.valid.from,
                valid_to: rate.valid.to,
            },
            Some(rule) => {
                let text = &self.texts[usize::from(rule.text)];
                let ends = [rule.valid.to, rate.valid.to];
                AppliedRate {
                    rate: rate.percent,
                    category: &text.category,
                    goods: &text.goods,
                    product_class: ProductClass { code: rule.code, segment: rule.segment.unwrap_or(Segment::PLAIN) },
                    source: &text.source,
                    valid_from: rule.valid.from.max(rate.valid.from),
                    valid_to: ends.into_iter().flatten().min(),
                }
            }
        }
    }

    fn rate_of(&self, applied: Applied<'_>, date: NaiveDate) -> Option<&Rate> {
        let kind = applied.map_or(STANDARD_KIND, |rule| self.texts[usize::from(rule.text)].kind.as_str());
        self.rates.iter().find(|rate| rate.kind == kind && rate.valid.contains(date))
    }

    /// Hands every rule that applies to goods of the class, once, to the visitor, until that says no. Answers whether it
    /// never did.
    fn each_rate<'a>(
        &'a self,
        nomenclature: &Nomenclature,
        class: ProductClass,
        date: NaiveDate,
        mut visit: impl FnMut(Applied<'a>) -> bool,
    ) -> bool {
        let mut seen: Vec<Applied<'a>> = Vec::new();
        let mut once = |applied: Applied<'a>| {
            if seen.iter().any(|known| same(*known, applied)) {
                return true;
            }
            seen.push(applied);
            visit(applied)
        };
        let below = self.below(class.code);
        if !self.rules[below.clone()].iter().any(|rule| rule.valid.contains(date)) {
            return self.each_of_group(self.governing(class.code, date), class, date, &mut once);
        }
        // Groups of rules that lie open while the walk is below their code; leaves and rules come in the same order.
        let mut open: Vec<Range<usize>> = vec![self.governing(class.code, date)];
        let mut next = below.start;
        for leaf in nomenclature.leaves(class.code) {
            while next < below.end && (self.rules[next].code <= leaf) {
                next = self.open_group(next, &mut open, date);
            }
            open.truncate(1 + open[1..].iter().filter(|group| leaf.is_under(&self.rules[group.start].code)).count());
            let governing = open.last().cloned().unwrap_or_default();
            if !self.each_of_group(governing, class, date, &mut once) {
                return false;
            }
            while next < below.end && self.rules[next].code.is_under(&leaf) {
                let group = self.group_at(next);
                next = group.end;
                if self.is_alive(&group, date) && !self.each_of_group(group, class, date, &mut once) {
                    return false;
                }
            }
        }
        true
    }

    /// Opens the group of rules that begins at an index; answers where the next one begins.
    fn open_group(&self, start: usize, open: &mut Vec<Range<usize>>, date: NaiveDate) -> usize {
        let group = self.group_at(start);
        let code = self.rules[start].code;
        let above = open[1..].iter().filter(|known| code.is_under(&self.rules[known.start].code)).count();
        open.truncate(1 + above);
        let end = group.end;
        if self.is_alive(&group, date) {
            open.push(group);
        }
        end
    }

    fn is_alive(&self, group: &Range<usize>, date: NaiveDate) -> bool {
        self.rules[group.clone()].iter().any(|rule| rule.valid.contains(date))
    }

    /// Visits what the rules of one code, and what stands behind them, say of goods with the segment of the class.
    fn each_of_group<'a>(
        &'a self,
        group: Range<usize>,
        class: ProductClass,
        date: NaiveDate,
        visit: &mut impl FnMut(Applied<'a>) -> bool,
    ) -> bool {
        let mut settled = false;
        for rule in self.rules[group.clone()].iter().filter(|rule| rule.valid.contains(date)) {
            let Some(segment) = rule.segment else { continue };
            match covers(segment, class.segment) {
                Covers::No => continue,
                Covers::All => settled = true,
                Covers::Some => {}
            }
            if !visit(Some(rule)) {
                return false;
            }
        }
        settled || visit(self.base(group, date))
    }

    /// The whole row behind a group of rules: of its own code, or of the next shorter prefix that has one.
    fn base(&self, group: Range<usize>, date: NaiveDate) -> Applied<'_> {
        let whole = |group: Range<usize>| {
            self.rules[group].iter().find(|rule| rule.segment.is_none() && rule.valid.contains(date))
        };
        let start = group.start;
        if group.is_empty() {
            return None;
        }
        if let Some(rule) = whole(group) {
            return Some(rule);
        }
        let code = self.rules[start].code;
        let shorter = PREFIX_DIGITS.into_iter().filter(|digits| *digits < code.digits());
        shorter.filter_map(|digits| whole(self.group_of(code.prefix(digits)))).next()
    }

    /// The rules of the longest prefix of a code that has any on that day; empty where there are none.
    fn governing(&self, code: ClassCode, date: NaiveDate) -> Range<usize> {
        PREFIX_DIGITS
            .into_iter()
            .filter(|digits| *digits <= code.digits())
            .map(|digits| self.group_of(code.prefix(digits)))
            .find(|group| self.is_alive(group, date))
            .unwrap_or_default()
    }

    /// The segments of the partial rows that govern a code or lie below it.
    pub(super) fn sides_of(&self, code: ClassCode, mut visit: impl FnMut(Segment)) {
        let governing = PREFIX_DIGITS.into_iter().filter(|digits| *digits <= code.digits());
        let governing = governing.map(|digits| self.group_of(code.prefix(digits))).find(|group| !group.is_empty());
        for rule in &self.rules[governing.unwrap_or_default()] {
            rule.segment.into_iter().for_each(&mut visit);
        }
        for rule in &self.rules[self.below(code)] {
            rule.segment.into_iter().for_each(&mut visit);
        }
    }

    /// The rules of exactly that code.
    fn group_of(&self, code: ClassCode) -> Range<usize> {
        let (start, end) = self.chapter(code);
        let rules = &self.rules[start..end];
        let first = rules.partition_point(|rule| rule.code < code);
        let count = rules[first..].iter().take_while(|rule| rule.code == code).count();
        start + first..start + first + count
    }

    /// The rules of the code of the rule at an index.
    fn group_at(&self, start: usize) -> Range<usize> {
        let code = self.rules[start].code;
        start..start + self.rules[start..].iter().take_while(|rule| rule.code == code).count()
    }

    /// The rules of codes that lie below a code.
    fn below(&self, code: ClassCode) -> Range<usize> {
        let (start, end) = self.chapter(code);
        let rules = &self.rules[start..end];
        let first = rules.partition_point(|rule| rule.code <= code);
        let count = rules[first..].iter().take_while(|rule| rule.code.is_under(&code)).count();
        start + first..start + first + count
    }

    fn chapter(&self, code: ClassCode) -> (usize, usize) {
        let chapter = code.prefix(2).as_str().bytes().fold(0, |number, digit| number * 10 + usize::from(digit - b'0'));
        (usize::from(self.chapters[chapter]), usize::from(self.chapters[chapter + 1]))
    }
}

fn same(a: Applied<'_>, b: Applied<'_>) -> bool {
    match (a, b) {
        (None, None) => true,
        // Rows of one line of the file are one rule; those of one line differ only in their code.
        (Some(a), Some(b)) => a.text == b.text && a.segment == b.segment,
        _ => false,
    }
}

/// How many goods of a class's segment a partial row's segment takes in.
enum Covers {
    No,
    Some,
    All,
}

fn covers(rule: Segment, class: Segment) -> Covers {
    match class {
        Segment::PLAIN => Covers::Some,
        class if rule.side != class.side => Covers::No,
        class if rule.detail == 0 || rule.detail == class.detail => Covers::All,
        class if class.detail == 0 => Covers::Some,
        _ => Covers::No,
    }
}
