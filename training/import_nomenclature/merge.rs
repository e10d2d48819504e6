//! Puts a new list in the place of the old one: what was added, ended and changed, and what follows ended codes.

use std::collections::BTreeMap;

use chrono::{Days, NaiveDate};

use super::line::{Line, PRODUCT_LINE};

/// Digits that the Harmonized System has at most.
const HARMONIZED_DIGITS: usize = 6;

/// Chapters of national lists whose codes stand for consignments (plants in parts, provisions, returned goods), never for
/// a product.
const CHAPTERS_OF_CONSIGNMENTS: [&str; 2] = ["98", "99"];

/// A merged list, and how it differs from the old one.
pub(super) struct Merged {
    pub(super) lines: Vec<Line>,
    pub(super) added: usize,
    pub(super) ended: usize,
    pub(super) changed: usize,
    pub(super) unchanged: usize,
}

/// Merges a new list into the old one. Texts in a language that the new list lacks stay. With `ends`, codes that are
/// missing from the new list ended the day before `date`. Its successor is the new code of the same heading with the same
/// text, where there is exactly one; of a list of facts, which has no texts, the one new line that took the place of the
/// one line that ended in a subheading.
pub(super) fn merge(old: Vec<Line>, new: Vec<Line>, ends: bool, date: NaiveDate) -> Merged {
    let mut lines: BTreeMap<(String, String), Line> = old.into_iter().map(|line| (line.key(), line)).collect();
    let mut merged = Merged { lines: Vec::new(), added: 0, ended: 0, changed: 0, unchanged: 0 };
    let mut fresh: Vec<(String, String)> = Vec::new();
    let mut listed: Vec<(String, String)> = Vec::new();
    for mut line in new {
        let key = line.key();
        listed.push(key.clone());
        match lines.get(&key) {
            None => {
                merged.added += 1;
                fresh.push(key.clone());
            }
            Some(known) => {
                for (text, kept) in [(&mut line.de, &known.de), (&mut line.en, &known.en)] {
                    if text.is_empty() {
                        text.clone_from(kept);
                    }
                }
                if !ends {
                    let texts = (std::mem::take(&mut line.de), std::mem::take(&mut line.en));
                    line = Line { de: texts.0, en: texts.1, ..known.clone() };
                }
                if line == *known { merged.unchanged += 1 } else { merged.changed += 1 }
            }
        }
        lines.insert(key, line);
    }
    if ends {
        merged.ended = end_others(&mut lines, &listed, &fresh, date);
    }
    merged.lines = lines.into_values().collect();
    merged
}

fn end_others(
    lines: &mut BTreeMap<(String, String), Line>,
    listed: &[(String, String)],
    fresh: &[(String, String)],
    date: NaiveDate,
) -> usize {
    let listed: std::collections::BTreeSet<&(String, String)> = listed.iter().collect();
    let last = date.checked_sub_days(Days::new(1));
    let gone: Vec<(String, String)> = lines
        .iter()
        .filter(|(key, line)| !listed.contains(key) && line.to.is_none_or(|to| to >= date))
        .map(|(key, _)| key.clone())
        .collect();
    let candidates: Vec<Line> = fresh.iter().filter_map(|key| lines.get(key)).cloned().collect();
    let ended: Vec<Line> = gone.iter().filter_map(|key| lines.get(key)).cloned().collect();
    for key in &gone {
        if let Some(line) = lines.get_mut(key) {
            line.to = last;
            line.successor = successor(line, &candidates, &ended);
        }
    }
    gone.len()
}

/// The one new code that takes the place of an ended one, by its text or, without texts, by its place.
fn successor(ended: &Line, candidates: &[Line], all_ended: &[Line]) -> String {
    if ended.suffix != PRODUCT_LINE {
        return String::new();
    }
    let only = |mut found: Box<dyn Iterator<Item = &Line> + '_>| match (found.next(), found.next()) {
        (Some(only), None) => only.code.clone(),
        _ => String::new(),
    };
    if ended.de.is_empty() && ended.en.is_empty() {
        let beside = |line: &&Line| is_beside(line, ended);
        let others = all_ended.iter().filter(beside).count();
        return if others == 1 { only(Box::new(candidates.iter().filter(beside))) } else { String::new() };
    }
    let same_text =
        |line: &&Line| (!line.de.is_empty() && line.de == ended.de) || (!line.en.is_empty() && line.en == ended.en);
    let same_heading = |line: &&Line| line.suffix == PRODUCT_LINE && line.code.get(..4) == ended.code.get(..4);
    only(Box::new(candidates.iter().filter(same_heading).filter(same_text)))
}

/// Whether a line lies in the same subheading and as deep as another, itself included.
fn is_beside(line: &Line, other: &Line) -> bool {
    let depth = other.code.len();
    line.suffix == PRODUCT_LINE
        && depth > HARMONIZED_DIGITS
        && line.code.len() == depth
        && line.code.get(..HARMONIZED_DIGITS) == other.code.get(..HARMONIZED_DIGITS)
}

/// The list as a file; read by `vat_classification::domain::nomenclature::parse_national`.
pub(super) fn to_text(lines: &[Line]) -> String {
    let mut text =
        String::from("# code\tsuffix\tindent\tparent\tdeclarable\tfirst day\tlast day\tsuccessor\tGerman\tEnglish\n");
    for line in lines {
        let date = |date: Option<NaiveDate>| date.map_or_else(String::new, |date| date.to_string());
        let cells = [
            line.code.clone(),
            line.suffix.clone(),
            line.depth.to_string(),
            line.parent.clone(),
            u8::from(line.declarable).to_string(),
            date(line.from),
            date(line.to),
            line.successor.clone(),
            line.de.clone(),
            line.en.clone(),
        ];
        text.push_str(&cells.join("\t"));
        text.push('\n');
    }
    text
}

/// The facts of the product lines as a file: no text, and no line that only groups others. Lines that the Harmonized
/// System has and under which nothing is declared say nothing more, and are left out.
pub(super) fn to_facts(lines: &[Line]) -> String {
    let mut text = String::from("# code\tdeclarable\tfirst day\tlast day\tsuccessor\n");
    let says_more = |line: &&Line| {
        let goods = !CHAPTERS_OF_CONSIGNMENTS.iter().any(|chapter| line.code.starts_with(chapter));
        goods && line.suffix == PRODUCT_LINE && (line.declarable || line.code.len() > HARMONIZED_DIGITS)
    };
    for line in lines.iter().filter(says_more) {
        let date = |date: Option<NaiveDate>| date.map_or_else(String::new, |date| date.to_string());
        // A heading that nothing divides is declared as its only subheading, whose last digits are zeros.
        let code = if line.declarable { format!("{:0<HARMONIZED_DIGITS$}", line.code) } else { line.code.clone() };
        let declarable = u8::from(line.declarable).to_string();
        let cells = [code, declarable, date(line.from), date(line.to), line.successor.clone()];
        text.push_str(&cells.join("\t"));
        text.push('\n');
    }
    text
}

/// Reads what [`to_text`] or [`to_facts`] wrote; lines of another shape, which the caller has ruled out, are left out.
pub(super) fn from_text(text: &str) -> Vec<Line> {
    let read = |content: &str| {
        let cells: Vec<&str> = content.split('\t').collect();
        let [code, suffix, depth, parent, declarable, from, to, successor, de, en] = match cells[..] {
            [code, declarable, from, to, successor] => {
                [code, PRODUCT_LINE, "0", "", declarable, from, to, successor, "", ""]
            }
            _ => cells.try_into().ok()?,
        };
        Some(Line {
            code: code.to_owned(),
            suffix: suffix.to_owned(),
            depth: depth.parse().ok()?,
            parent: parent.to_owned(),
            declarable: declarable == "1",
            from: from.parse().ok(),
            to: to.parse().ok(),
            successor: successor.to_owned(),
            de: de.to_owned(),
            en: en.to_owned(),
        })
    };
    text.lines().filter(|line| !line.starts_with('#')).filter_map(read).collect()
}
