//! The decision: which rates the goods of a class have on a day.

use std::ops::Range;

use chrono::NaiveDate;

use super::{
    AppliedRate, CountryRules, CountryVat, Percent, Rate, Rule, STANDARD_CATEGORY, STANDARD_KIND, Sufficiency,
    UNKNOWN_CATEGORY, VatRules,
};
use crate::domain::{ClassCode, Nomenclature, ProductClass, Segment};

/// Digits that the prefix of a rule may have, longest first.
const PREFIX_DIGITS: [usize; 5] = [10, 8, 6, 4, 2];

/// A rule that applies to some goods of a class; none for goods that no rule names.
type Applied<'a> = Option<&'a Rule>;

/// The goods that are judged: a class, with the sides on which its segment puts them at once.
#[derive(Clone, Copy)]
struct Goods<'a> {
    class: ProductClass,
    sides: &'a [u8],
}

impl VatRules {
    /// The rates of all countries for the goods of a class on a day; with `territories`, theirs follow.
    ///
    /// `nomenclature` is the table of the taxonomy for which the class is meant. A class that is not in it is judged by
    /// its digits, as if nothing were below it.
    pub fn sufficiency(
        &self,
        nomenclature: &Nomenclature,
        class: ProductClass,
        date: NaiveDate,
        territories: bool,
    ) -> Sufficiency<'_> {
        let taxonomy = nomenclature.taxonomy().index();
        let goods = self.goods(class);
        let vat = |country| self.vat(country, nomenclature, goods, date);
        let mut countries: Vec<CountryVat<'_>> = self.taxonomies[taxonomy].iter().map(vat).collect();
        let sufficient = countries.iter().all(|country| country.sufficient);
        if territories {
            countries.extend(self.territories[taxonomy].iter().map(vat));
        }
        Sufficiency {
            sufficient,
            rule_set_date: self.taxonomies[taxonomy].iter().map(|country| country.read).max().unwrap_or_default(),
            next_change: countries.iter().filter_map(|country| country.next_change).min(),
            countries,
        }
    }

    /// Whether every country has one and the same rate for all goods of a class on a day; the same answer as
    /// [`VatRules::sufficiency`], found without gathering the rates.
    pub fn is_sufficient(&self, nomenclature: &Nomenclature, class: ProductClass, date: NaiveDate) -> bool {
        let goods = self.goods(class);
        self.taxonomies[nomenclature.taxonomy().index()].iter().all(|country| {
            let mut only: Option<Percent> = None;
            country.each_rate(nomenclature, goods, date, |applied| {
                let Some(rate) = country.rate_of(applied, date) else { return false };
                *only.get_or_insert(rate.percent) == rate.percent
            }) && only.is_some()
        })
    }

    fn goods(&self, class: ProductClass) -> Goods<'_> {
        Goods { class, sides: self.side(class.segment.side).map_or(&[], |side| &side.parts) }
    }

    fn vat<'a>(
        &'a self,
        country: &'a CountryRules,
        nomenclature: &Nomenclature,
        goods: Goods<'a>,
        date: NaiveDate,
    ) -> CountryVat<'a> {
        // One rate is what most classes have, so that a place for one is enough.
        let mut rates: Vec<AppliedRate<'a>> = Vec::with_capacity(1);
        if country.is_known_on(date) {
            country.each_rate(nomenclature, goods, date, |applied| {
                rates.push(self.applied(country, applied, goods.class, date));
                true
            });
        }
        let first = rates.first().map(|first| (first.rate, first.rate_type));
        let same = first.is_some_and(|(percent, _)| percent.is_some() && rates.iter().all(|rate| rate.rate == percent));
        if same {
            rates.iter_mut().for_each(|rate| rate.missing = None);
        }
        CountryVat {
            country: &country.country,
            name: country.name.as_deref(),
            sufficient: same,
            rate: first.filter(|_| same).and_then(|(percent, _)| percent),
            rate_type: first.filter(|_| same).and_then(|(_, rate_type)| rate_type),
            reason: rates.is_empty().then(|| country.reason()),
            rates,
            next_change: country.next_change(nomenclature, goods, date),
            completeness: Some(&country.completeness),
        }
    }

    fn applied<'a>(
        &'a self,
        country: &'a CountryRules,
        applied: Applied<'a>,
        class: ProductClass,
        date: NaiveDate,
    ) -> AppliedRate<'a> {
        let rate = country.rate_of(applied, date);
        let text = applied.map(|rule| country.text_of(rule));
        let side = applied.and_then(|rule| rule.segment).and_then(|segment| self.side(segment.side));
        let valid = applied.map(|rule| rule.valid);
        let ends = [valid.and_then(|valid| valid.to), rate.and_then(|rate| rate.valid.to)];
        let starts = [valid.map(|valid| valid.from), rate.map(|rate| rate.valid.from)];
        let category = text.map_or(STANDARD_CATEGORY, |text| text.category.as_str());
        AppliedRate {
            rate: rate.map(|rate| rate.percent),
            rate_type: rate.map(|rate| rate.rate_type),
            category: if rate.is_none() { UNKNOWN_CATEGORY } else { category },
            goods: text.map_or("Goods for which no rule names another rate", |text| &text.goods),
            product_class: applied.map_or(class, |rule| ProductClass {
                code: rule.code,
                segment: rule.segment.unwrap_or(Segment::PLAIN),
            }),
            source: match (text, rate) {
                (Some(text), _) => &text.source,
                (None, Some(rate)) => &rate.source,
                (None, None) => "",
            },
            missing: side.and_then(|side| side.fact.as_deref()),
            valid_from: starts.into_iter().flatten().max().unwrap_or(country.since),
            valid_to: ends.into_iter().flatten().min(),
        }
    }
}

impl CountryRules {
    fn is_known_on(&self, date: NaiveDate) -> bool {
        self.outside.is_none() && date >= self.since
    }

    /// Why the country tells no rate.
    fn reason(&self) -> String {
        match &self.outside {
            Some(why) => why.clone(),
            None => format!(
                "The rules of {} have been checked from {} on; nothing is told before",
                self.country, self.since
            ),
        }
    }

    /// The rate behind a rule; none where the day is not covered or the rule is a gap.
    fn rate_of(&self, applied: Applied<'_>, date: NaiveDate) -> Option<&Rate> {
        if !self.is_known_on(date) || applied.is_some_and(|rule| rule.gap) {
            return None;
        }
        let kind = applied.map_or(STANDARD_KIND, |rule| self.text_of(rule).kind.as_str());
        self.rates.iter().find(|rate| rate.kind == kind && rate.valid.contains(date))
    }

    /// The first day after a day on which the rates of the goods are others.
    fn next_change(&self, nomenclature: &Nomenclature, goods: Goods<'_>, date: NaiveDate) -> Option<NaiveDate> {
        let known_from = date.max(self.since);
        if self.outside.is_some() || self.last_change <= known_from {
            return None;
        }
        let code = goods.class.code;
        let above = PREFIX_DIGITS.into_iter().filter(|digits| *digits <= code.digits());
        let groups = above.map(|digits| self.group_of(code.prefix(digits))).chain([self.below(code)]);
        let touching: Vec<&Rule> = groups.flat_map(|group| &self.rules[group]).collect();
        let is_used = |kind: &str| touching.iter().any(|rule| self.text_of(rule).kind == kind);
        let rates = self.rates.iter().filter(|rate| rate.valid.changes().any(|day| day > known_from));
        let rates = rates.filter(|rate| rate.kind == STANDARD_KIND || is_used(&rate.kind));
        let boundaries = touching.iter().map(|rule| rule.valid).chain(rates.map(|rate| rate.valid));
        let mut days: Vec<NaiveDate> =
            boundaries.flat_map(|valid| valid.changes()).filter(|day| *day > known_from).collect();
        days.sort_unstable();
        days.dedup();
        if days.is_empty() {
            return None;
        }
        let rates_on = |day: NaiveDate| {
            let mut rates: Vec<Option<Percent>> = Vec::new();
            self.each_rate(nomenclature, goods, day, |applied| {
                rates.push(self.rate_of(applied, day).map(|rate| rate.percent));
                true
            });
            rates.sort_unstable();
            rates.dedup();
            rates
        };
        let now = rates_on(date);
        days.into_iter().find(|day| rates_on(*day) != now)
    }

    /// Hands every rule that applies to goods of the class, once, to the visitor, until that says no. Answers whether it
    /// never did.
    fn each_rate<'a>(
        &'a self,
        nomenclature: &Nomenclature,
        goods: Goods<'_>,
        date: NaiveDate,
        mut visit: impl FnMut(Applied<'a>) -> bool,
    ) -> bool {
        let code = goods.class.code;
        let below = self.below(code);
        if !self.rules[below.clone()].iter().any(|rule| rule.valid.contains(date)) {
            // One group names a rule once only.
            return self.each_of_group(self.governing(code, date), goods, date, &mut visit);
        }
        let mut seen: Vec<Applied<'a>> = Vec::new();
        let mut once = |applied: Applied<'a>| {
            if seen.iter().any(|known| same(*known, applied)) {
                return true;
            }
            seen.push(applied);
            visit(applied)
        };
        // Groups of rules that lie open while the walk is below their code; leaves and rules come in the same order.
        let mut open: Vec<Range<usize>> = vec![self.governing(code, date)];
        let mut next = below.start;
        for leaf in nomenclature.leaves(code) {
            while next < below.end && (self.rules[next].code <= leaf) {
                next = self.open_group(next, &mut open, date);
            }
            open.truncate(1 + open[1..].iter().filter(|group| leaf.is_under(&self.rules[group.start].code)).count());
            let governing = open.last().cloned().unwrap_or_default();
            if !self.each_of_group(governing, goods, date, &mut once) {
                return false;
            }
            while next < below.end && self.rules[next].code.is_under(&leaf) {
                let group = self.group_at(next);
                next = group.end;
                if self.is_alive(&group, date) && !self.each_of_group(group, goods, date, &mut once) {
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

    /// Visits what the rules of one code, and what stands behind them, say of the goods.
    fn each_of_group<'a>(
        &'a self,
        group: Range<usize>,
        goods: Goods<'_>,
        date: NaiveDate,
        visit: &mut impl FnMut(Applied<'a>) -> bool,
    ) -> bool {
        let valid = || self.rules[group.clone()].iter().filter(|rule| rule.valid.contains(date));
        // A row for several sides at once goes before the rows for each of them.
        let exact = |rule: &Rule| rule.segment.is_some_and(|segment| segment.side == goods.class.segment.side);
        let only_exact = goods.sides.len() > 1 && valid().any(exact);
        let mut settled = false;
        for rule in valid() {
            let Some(segment) = rule.segment else { continue };
            match covers(segment, goods) {
                Covers::No => continue,
                _ if only_exact && !exact(rule) => continue,
                Covers::All => settled = true,
                Covers::Some => {}
            }
            if !visit(Some(rule)) {
                return false;
            }
        }
        if settled {
            return true;
        }
        let gaps_pass = valid().filter(|rule| rule.gap && rule.segment.is_none()).all(|gap| visit(Some(gap)));
        gaps_pass && visit(self.base(group, date))
    }

    /// The whole row behind a group of rules: of its own code, or of the next shorter prefix that has one.
    fn base(&self, group: Range<usize>, date: NaiveDate) -> Applied<'_> {
        let whole = |group: Range<usize>| {
            self.rules[group].iter().find(|rule| rule.segment.is_none() && !rule.gap && rule.valid.contains(date))
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
        let digits = code.as_str().bytes().take(ClassCode::MIN_DIGITS);
        let chapter = digits.fold(0, |number, digit| number * 10 + usize::from(digit - b'0'));
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

fn covers(rule: Segment, goods: Goods<'_>) -> Covers {
    match goods.class.segment {
        Segment::PLAIN => Covers::Some,
        class if rule.side == class.side && (rule.detail == 0 || rule.detail == class.detail) => Covers::All,
        class if rule.side == class.side && class.detail == 0 => Covers::Some,
        class if rule.side == class.side || !goods.sides.contains(&rule.side) => Covers::No,
        _ if rule.detail == 0 => Covers::All,
        _ => Covers::Some,
    }
}
