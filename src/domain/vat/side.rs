//! The sides of partial rules: goods that share a code and differ for VAT.

use crate::domain::Segment;
use crate::domain::file_fault::{FileFault, content_lines};

/// The cell of a side that stands for no others, or for which no fact is missing.
const NONE: &str = "-";

/// What products may lack to be on a side or not: the names under which an answer says what is missing.
const FACTS: [&str; 13] = [
    "advertising",
    "age",
    "alcohol",
    "fat",
    "ingredients",
    "juice",
    "kind",
    "power",
    "prescription",
    "seller",
    "sugar",
    "use",
    "weight",
];

/// The name of the goods on a side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SideName {
    /// 1 to 99.
    pub(super) side: u8,
    /// The sides on which the goods are at once; this one alone where it stands for no others.
    pub(super) parts: Vec<u8>,
    /// What a product must tell to be on this side or not.
    pub(super) fact: Option<String>,
    de: String,
    en: String,
}

impl SideName {
    pub(super) fn named(&self, segment: Segment) -> SegmentName<'_> {
        SegmentName { segment, parts: &self.parts, de: &self.de, en: &self.en }
    }

    pub(super) fn is_combined(&self) -> bool {
        self.parts.len() > 1
    }
}

/// A segment that a code has, with the goods that it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentName<'a> {
    /// The segment.
    pub segment: Segment,
    /// The sides on which the goods are at once, in order; the segment's own alone where it stands for no others.
    pub parts: &'a [u8],
    /// German name of the goods.
    pub de: &'a str,
    /// English name of the goods.
    pub en: &'a str,
}

/// Reads the list of sides: two digits; the sides that it stands for, such as `22 23`, or `-`; what a product must tell
/// to be on it, or `-`; German name; English name.
pub fn parse_sides(file: &str, text: &str, faults: &mut Vec<FileFault>) -> Vec<SideName> {
    let mut sides: Vec<SideName> = Vec::new();
    for (line, content) in content_lines(text) {
        match side(content, &sides) {
            Ok(side) => sides.push(side),
            Err(message) => faults.push(FileFault::at(file, line, message)),
        }
    }
    sides
}

fn side(content: &str, known: &[SideName]) -> Result<SideName, String> {
    let cells: Vec<&str> = content.split('\t').collect();
    let [side, parts, fact, de, en] = cells[..] else {
        return Err("expected two digits, parts, a fact, a German and an English name".to_owned());
    };
    let number = |text: &str| text.parse::<u8>().ok().filter(|side| text.len() == 2 && *side > 0);
    let side = number(side).ok_or_else(|| format!("`{side}` is no side of two digits"))?;
    if known.iter().any(|known| known.side == side) {
        return Err(format!("side {side:02} is taken"));
    }
    if de.is_empty() || en.is_empty() {
        return Err("a side needs a German and an English name".to_owned());
    }
    let parts = match parts {
        NONE => vec![side],
        parts => {
            let single = |part: u8| known.iter().any(|known| known.side == part && !known.is_combined());
            let read = parts.split(' ').map(|part| number(part).filter(|part| single(*part)));
            let mut read: Vec<u8> = read.collect::<Option<_>>().unwrap_or_default();
            read.sort_unstable();
            read.dedup();
            if read.len() < 2 {
                return Err(format!("`{parts}` are not several sides that stand above"));
            }
            read
        }
    };
    let fact = match fact {
        NONE => None,
        fact if FACTS.contains(&fact) => Some(fact.to_owned()),
        fact => return Err(format!("`{fact}` is no fact of a product; there are {}", FACTS.join(", "))),
    };
    Ok(SideName { side, parts, fact, de: de.to_owned(), en: en.to_owned() })
}
