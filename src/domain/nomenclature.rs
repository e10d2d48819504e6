//! The classes of one taxonomy: one sorted table of codes with their labels.
//!
//! Codes sort as text, so a code is followed by everything below it, and the longest listed prefix of any digits is
//! the line just before them or one of that line's ancestors. Every lookup is one binary search inside a chapter.

mod build;
mod search;

use chrono::NaiveDate;

pub use build::{
    Builder, LabelledRow, NationalRow, parse_harmonized, parse_line_labels, parse_national, parse_successors,
};
pub use search::Hit;

use crate::domain::{ClassCode, Taxonomy};

/// Steps along successors of ended codes before the search gives up: longer chains are mistakes in the data.
const MAX_SUCCESSIONS: usize = 8;
/// Index of a line that has no parent.
const NO_PARENT: u32 = u32::MAX;

/// A class's name in the two languages of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Labels<'a> {
    /// German.
    pub de: &'a str,
    /// English.
    pub en: &'a str,
}

/// What else is known about a listed code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Whether goods are declared under this very code; false for a code known from the Harmonized System alone.
    pub declarable: bool,
    /// First day on which the code is valid, where a national list says so.
    pub valid_from: Option<NaiveDate>,
    /// Last day on which the code is valid, where a national list says so.
    pub valid_to: Option<NaiveDate>,
}

/// How digits led to a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// The digits name the class, up to trailing zeros.
    Listed,
    /// The digits go below a class that the table does not divide further.
    Extension,
    /// The digits are of an ended code, and this is its successor.
    Successor,
    /// The digits are of an ended code without successor; this is the nearest living class above it.
    LivingParent,
    /// The digits name nothing; this is the longest prefix that does.
    Prefix,
}

/// A class that digits led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The class.
    pub code: ClassCode,
    /// How it was found.
    pub via: Via,
}

/// One taxonomy, as it stood on the day for which it was built.
#[derive(Debug)]
pub struct Nomenclature {
    taxonomy: Taxonomy,
    /// Sort keys of the lines, apart from them so that a search touches little memory.
    keys: Vec<u64>,
    lines: Vec<Line>,
    /// For each two leading digits the index of the first line; one more entry closes the last chapter.
    chapters: Vec<u32>,
    texts: String,
    /// Labels folded for search, in the order of the lines: German, a tab, English; one behind the other, since tens of
    /// thousands of texts of their own take a megabyte more.
    folded: String,
    /// For each line where its folded labels end.
    folded_ends: Vec<u32>,
    /// Ended codes by key, with their successors.
    outdated: Vec<(u64, Option<ClassCode>)>,
    /// Codes of a national list that are valid on other days only, by key, with their first and last day.
    other_days: Vec<(u64, Option<NaiveDate>, Option<NaiveDate>)>,
    /// Whether a national list is part of the table: a code that it lacks then does not exist.
    national: bool,
}

/// One listed code.
#[derive(Debug)]
struct Line {
    code: ClassCode,
    parent: u32,
    /// Index just behind the last line below this one.
    end: u32,
    /// Where the German label begins in the texts; the English one follows it, and ends at the third figure.
    texts: (u32, u32, u32),
    facts: Facts,
}

impl Nomenclature {
    /// The taxonomy of these classes.
    pub fn taxonomy(&self) -> Taxonomy {
        self.taxonomy
    }

    /// How many codes are listed.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether nothing is listed.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Whether a product may be given this class: its code is listed. Without a national list, which alone knows them,
    /// also whatever extends a listed code that has no listed children, up to the taxonomy's width.
    pub fn contains(&self, code: ClassCode) -> bool {
        code.digits() <= self.taxonomy.width()
            && self.longest_prefix(code).is_some_and(|index| self.names(code, index).is_some())
    }

    /// Whether the code itself is in the table.
    pub fn is_listed(&self, code: ClassCode) -> bool {
        self.index_of(code).is_some()
    }

    /// Whether a code that the table leaves out is a line of the national list on a given day, before or after the day
    /// for which the table was built.
    pub fn is_listed_on(&self, code: ClassCode, day: NaiveDate) -> bool {
        let key = key_of(without_zero_pairs(code));
        let valid = |from: Option<NaiveDate>, to: Option<NaiveDate>| {
            from.is_none_or(|first| first <= day) && to.is_none_or(|last| day <= last)
        };
        self.other_days.iter().any(|(known, from, to)| *known == key && valid(*from, *to))
    }

    /// The class that the digits name, once zeros at their end are read as "and all below".
    ///
    /// The listed code wins over a shorter one: `8517130000` is that line where it is listed, and `851713` otherwise.
    pub fn canonical(&self, digits: ClassCode) -> Option<ClassCode> {
        let index = self.longest_prefix(digits).filter(|_| digits.digits() <= self.taxonomy.width())?;
        self.named(digits, index).map(|(code, _)| code)
    }

    /// The class that the digits lead to: named, succeeded, or the longest listed prefix. Digits beyond the
    /// taxonomy's width say nothing here and are left out.
    pub fn resolve(&self, digits: ClassCode) -> Option<Resolved> {
        let digits = digits.prefix(self.taxonomy.width());
        let index = self.longest_prefix(digits);
        // A listed code has not ended, so only digits that are not listed are looked for among the ended ones.
        let listed = index.is_some_and(|index| self.lines[index].code == digits);
        if let Some((code, via)) = (!listed).then(|| self.successor(digits)).flatten() {
            return Some(Resolved { code, via });
        }
        let index = index?;
        let (code, via) = self.named(digits, index).unwrap_or((self.lines[index].code, Via::Prefix));
        Some(Resolved { code, via })
    }

    /// The labels of a class: its own, or those of the listed code that it extends.
    pub fn labels(&self, code: ClassCode) -> Option<Labels<'_>> {
        let index = self.longest_prefix(code)?;
        self.names(code, index).map(|()| self.labels_at(index))
    }

    /// The labels of a listed code that it has for itself; none where it is called as what it belongs to.
    pub fn own_labels(&self, code: ClassCode) -> Option<Labels<'_>> {
        let index = self.index_of(code)?;
        let inherited = self.parent_of(index).is_some_and(|parent| self.lines[parent].texts == self.lines[index].texts);
        (!inherited).then(|| self.labels_at(index))
    }

    /// The listed code that is the longest beginning of the digits.
    pub fn longest_listed(&self, digits: ClassCode) -> Option<ClassCode> {
        self.longest_prefix(digits).map(|index| self.lines[index].code)
    }

    /// What is known about a listed code.
    pub fn facts(&self, code: ClassCode) -> Option<Facts> {
        self.index_of(code).map(|index| self.lines[index].facts)
    }

    /// The listed codes from the chapter down to the class, with their labels; empty for what is not a class.
    pub fn path(&self, code: ClassCode) -> Vec<(ClassCode, Labels<'_>)> {
        let mut path = Vec::new();
        let mut at = self.longest_prefix(code).filter(|index| self.names(code, *index).is_some());
        while let Some(index) = at {
            path.push((self.lines[index].code, self.labels_at(index)));
            at = self.parent_of(index);
        }
        path.reverse();
        path
    }

    /// The listed codes directly below a listed code, with their labels.
    pub fn children(&self, code: ClassCode) -> Vec<(ClassCode, Labels<'_>)> {
        let Some(index) = self.index_of(code) else { return Vec::new() };
        let mut children = Vec::new();
        let (mut next, end) = (index + 1, self.lines[index].end as usize);
        while next < end {
            children.push((self.lines[next].code, self.labels_at(next)));
            next = self.lines[next].end as usize;
        }
        children
    }

    /// The chapters, with their labels.
    pub fn chapters(&self) -> Vec<(ClassCode, Labels<'_>)> {
        let chapters = self.lines.iter().enumerate().filter(|(_, line)| line.parent == NO_PARENT);
        chapters.map(|(index, line)| (line.code, self.labels_at(index))).collect()
    }

    /// Every listed code, in order.
    pub fn codes(&self) -> impl Iterator<Item = ClassCode> + '_ {
        self.lines.iter().map(|line| line.code)
    }

    /// Whether the code has listed codes below it.
    pub fn has_children(&self, code: ClassCode) -> bool {
        self.index_of(code).is_some_and(|index| !self.is_leaf(index))
    }

    /// The listed codes without children at or below a class, in order; the class itself where it extends one.
    pub fn leaves(&self, code: ClassCode) -> impl Iterator<Item = ClassCode> + '_ {
        let (range, extension) = match self.index_of(code) {
            Some(index) => (index..self.lines[index].end as usize, None),
            None => (0..0, Some(code)),
        };
        range.filter(|index| self.is_leaf(*index)).map(|index| self.lines[index].code).chain(extension)
    }

    fn labels_at(&self, index: usize) -> Labels<'_> {
        let (start, middle, end) = self.lines[index].texts;
        Labels { de: &self.texts[start as usize..middle as usize], en: &self.texts[middle as usize..end as usize] }
    }

    fn parent_of(&self, index: usize) -> Option<usize> {
        let parent = self.lines[index].parent;
        (parent != NO_PARENT).then_some(parent as usize)
    }

    fn is_leaf(&self, index: usize) -> bool {
        self.lines[index].end as usize == index + 1
    }

    /// Whether digits below the line at the index may be a class of which nothing is known.
    fn may_extend(&self, index: usize) -> bool {
        !self.national && self.is_leaf(index)
    }

    /// Whether the line at the index, the longest listed prefix of the code, makes the code a class.
    fn names(&self, code: ClassCode, index: usize) -> Option<()> {
        (self.lines[index].code.digits() == code.digits() || self.may_extend(index)).then_some(())
    }

    /// The class that the digits name, of which the line at the index is the longest listed prefix.
    fn named(&self, digits: ClassCode, index: usize) -> Option<(ClassCode, Via)> {
        let listed = self.lines[index].code;
        if digits.as_str()[listed.digits()..].bytes().all(|digit| digit == b'0') {
            return Some((listed, Via::Listed));
        }
        self.may_extend(index).then(|| (without_zero_pairs(digits), Via::Extension))
    }

    fn chapter_range(&self, key: u64) -> (usize, usize) {
        let chapter = chapter_of(key);
        (self.chapters[chapter] as usize, self.chapters[chapter + 1] as usize)
    }

    fn index_of(&self, code: ClassCode) -> Option<usize> {
        let key = key_of(code);
        let (start, end) = self.chapter_range(key);
        self.keys[start..end].binary_search(&key).ok().map(|offset| start + offset)
    }

    fn longest_prefix(&self, code: ClassCode) -> Option<usize> {
        let key = key_of(code);
        let (start, end) = self.chapter_range(key);
        let after = start + self.keys[start..end].partition_point(|known| *known <= key);
        let mut at = (after > start).then(|| after - 1);
        while let Some(index) = at {
            if code.is_under(&self.lines[index].code) {
                return Some(index);
            }
            at = self.parent_of(index);
        }
        None
    }

    /// Where an ended code leads; none for digits of no ended code. The digits are not those of a listed code.
    fn successor(&self, digits: ClassCode) -> Option<(ClassCode, Via)> {
        let (mut code, mut ended) = (digits, self.ended(digits)?);
        for _ in 0..MAX_SUCCESSIONS {
            let Some(next) = ended else { break };
            code = next;
            ended = match self.ended(code).filter(|_| !self.is_listed(code)) {
                Some(ended) => ended,
                None => return self.canonical(code).map(|code| (code, Via::Successor)),
            };
        }
        let parent = self.longest_prefix(code)?;
        Some((self.lines[parent].code, Via::LivingParent))
    }

    /// The successor, or its absence, of an ended code; none for digits of no ended code.
    fn ended(&self, digits: ClassCode) -> Option<Option<ClassCode>> {
        let key = key_of(without_zero_pairs(digits));
        self.outdated.binary_search_by_key(&key, |(key, _)| *key).ok().map(|index| self.outdated[index].1)
    }
}

/// A number that sorts as the code does: the digits padded to ten, then how many there were.
fn key_of(code: ClassCode) -> u64 {
    let digits = code.as_str().as_bytes();
    let padded = (0..ClassCode::MAX_DIGITS)
        .fold(0, |number: u64, at| number * 10 + digits.get(at).map_or(0, |digit| u64::from(digit - b'0')));
    padded * 16 + digits.len() as u64
}

/// The two leading digits of a sort key.
fn chapter_of(key: u64) -> usize {
    ((key / 16) / 10_u64.pow(ClassCode::MAX_DIGITS as u32 - 2)) as usize
}

/// The code without pairs of zeros at its end, which in every taxonomy mean "not divided further"; the first six digits,
/// those of the Harmonized System, stay as they are.
fn without_zero_pairs(code: ClassCode) -> ClassCode {
    let mut trimmed = code;
    while trimmed.digits() >= 8 && trimmed.digits().is_multiple_of(2) && trimmed.as_str().ends_with("00") {
        trimmed = trimmed.prefix(trimmed.digits() - 2);
    }
    trimmed
}

#[cfg(test)]
mod tests;
