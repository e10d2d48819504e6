//! What stands in a cell: lists, and texts that a spreadsheet would take for a formula.

use std::borrow::Cow;

/// Separates the items of a list within a cell.
const SEPARATOR: char = '|';
/// Separates the items of lists of other programs.
const COMMA: char = ',';
/// Takes what follows as it is.
const ESCAPE: char = '\\';
/// An item without anything in it; one that is left out is none.
const EMPTY_ITEM: &str = "\\-";
/// With these a spreadsheet begins a formula, or what it makes one of; and the sign before which they are only text.
const RISKY: [char; 7] = ['=', '+', '-', '@', '\t', '\r', QUOTE];
/// Behind these a cell may begin for a spreadsheet, though not for us: where it parts cells by semicolons, as in German, it
/// sees no quotes around a cell that begins within one of its own.
const BREAKS: [char; 4] = [';', '\t', '\r', '\n'];
/// Makes what follows text, for a spreadsheet as for this service.
const QUOTE: char = '\'';

/// Where a spreadsheet may take a cell to begin.
fn beginnings(text: &str) -> impl Iterator<Item = usize> {
    std::iter::once(0).chain(text.match_indices(BREAKS).map(|(at, found)| at + found.len()))
}

/// Whether a spreadsheet would take what begins so for a formula. Quotes before it may count as none.
fn is_risky(rest: &str) -> bool {
    rest.trim_start_matches('"').starts_with(RISKY)
}

/// A text that no spreadsheet takes for a formula, nor any part of it.
pub fn safe(text: &str) -> String {
    let (mut cell, mut done) = (String::with_capacity(text.len()), 0);
    for at in beginnings(text).filter(|at| is_risky(&text[*at..])) {
        cell.push_str(&text[done..at]);
        cell.push(QUOTE);
        done = at;
    }
    cell.push_str(&text[done..]);
    cell
}

/// The text that [`safe`] was given; any other as it is.
pub fn unsafe_again(cell: &str) -> Cow<'_, str> {
    let (mut text, mut done) = (String::new(), 0);
    for at in beginnings(cell).filter(|at| cell[*at..].strip_prefix(QUOTE).is_some_and(is_risky)) {
        text.push_str(&cell[done..at]);
        done = at + QUOTE.len_utf8();
    }
    if done == 0 {
        return cell.into();
    }
    text.push_str(&cell[done..]);
    text.into()
}

/// The id or the code in a cell: as [`unsafe_again`], and without the apostrophe by which spreadsheets and shops keep the
/// zeros of a number. One that belongs to an id was written twice by [`safe`].
pub fn id_again(cell: &str) -> Cow<'_, str> {
    let is_number = |rest: &&str| rest.starts_with(|first: char| first.is_ascii_digit());
    match cell.strip_prefix(QUOTE).filter(is_number) {
        Some(rest) => unsafe_again(rest),
        None => unsafe_again(cell),
    }
}

/// Writes a list into a cell.
pub fn join<'a>(items: impl IntoIterator<Item = &'a str>) -> String {
    let mut cell = String::new();
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            cell.push(SEPARATOR);
        }
        if item.is_empty() {
            cell.push_str(EMPTY_ITEM);
        }
        let inner = item.trim();
        let (before, after) = (item.len() - item.trim_start().len(), item.trim_end().len());
        for (place, character) in item.char_indices() {
            // Blanks at the ends are only kept when they are meant.
            let is_end = inner.is_empty() || place < before || place >= after;
            if is_end || matches!(character, SEPARATOR | ESCAPE) {
                cell.push(ESCAPE);
            }
            cell.push(character);
        }
    }
    // Where nothing else says that this is a list of ours, commas would part it, as they do in those of other programs.
    if cell.contains(COMMA) && !cell.contains([SEPARATOR, ESCAPE]) {
        return cell.replace(COMMA, &format!("{ESCAPE}{COMMA}"));
    }
    cell
}

/// Reads a list from a cell. Items without anything are none unless they are meant, and blanks around items do not
/// belong to them.
pub fn split(cell: &str) -> Vec<String> {
    let (mut items, mut item, mut kept, mut begin) = (Vec::new(), String::new(), 0, 0);
    let mut finish = |item: &mut String, kept: &mut usize, written: &str| {
        let length = item.trim_end().len().max(*kept);
        item.truncate(length);
        *kept = 0;
        let item = std::mem::take(item);
        if written.trim() == EMPTY_ITEM {
            items.push(String::new());
        } else if !item.is_empty() {
            items.push(item);
        }
    };
    let mut characters = cell.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            SEPARATOR => {
                finish(&mut item, &mut kept, &cell[begin..at]);
                begin = at + SEPARATOR.len_utf8();
            }
            ESCAPE => {
                item.push(characters.next().map_or(ESCAPE, |(_, escaped)| escaped));
                kept = item.len();
            }
            blank if blank.is_whitespace() && item.is_empty() => {}
            other => item.push(other),
        }
    }
    finish(&mut item, &mut kept, &cell[begin..]);
    items
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn formulas_become_text_and_texts_stay() {
        for (text, cell) in [
            ("=HYPERLINK(\"x\")", "'=HYPERLINK(\"x\")"),
            ("+49", "'+49"),
            ("-1", "'-1"),
            ("@a", "'@a"),
            ("\t=1", "'\t'=1"),
            ("x;=1+cmd|'/c calc'!A0;", "x;'=1+cmd|'/c calc'!A0;"),
            ("x;\"=1\"\r\n@y", "x;'\"=1\"\r\n'@y"),
            ("- a\n- b\n'c", "'- a\n'- b\n''c"),
            ("a; b\tc\nd - e", "a; b\tc\nd - e"),
            ("'s Gravenhage", "''s Gravenhage"),
            ("a=1", "a=1"),
            ("", ""),
        ] {
            assert_eq!((safe(text).as_str(), unsafe_again(cell).as_ref()), (cell, text));
        }
        assert_eq!(unsafe_again("'n Beetje"), "'n Beetje", "of another program");
    }

    #[test]
    fn an_id_loses_the_apostrophe_of_a_spreadsheet_and_no_other() {
        for (cell, id) in [("'0123", "0123"), ("0123", "0123"), ("'n1", "'n1"), ("'-1", "-1"), ("", ""), ("'", "'")] {
            assert_eq!(id_again(cell), id);
        }
        for id in ["'0123", "''0123", "-1", "'", "0'1", "1;'=x"] {
            assert_eq!(id_again(&safe(id)), id, "of our own");
        }
    }

    #[test]
    fn lists_are_read_as_people_write_them() {
        assert_eq!((join(["1,5 kg"]), join(["1,5", "2"])), ("1\\,5 kg".to_owned(), "1,5|2".to_owned()));
        assert_eq!(split(" bio | fair trade ||"), ["bio", "fair trade"]);
        assert_eq!(split("a\\|b|c\\\\"), ["a|b", "c\\"]);
        assert_eq!(split(""), Vec::<String>::new());
        assert_eq!((join(["a", "", "b"]), join([""])), ("a|\\-|b".to_owned(), "\\-".to_owned()));
        assert_eq!(split("a|\\-|| \\- |\\-b|\\\\-"), ["a", "", "", "-b", "\\-"]);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(
            text in any::<String>(),
            risky in "[a=+@;\t\r\n\"' -]{0,12}",
            items in proptest::collection::vec(any::<String>(), 0..5),
            odd in proptest::collection::vec("[a|, \\\\-]{0,4}", 0..5),
        ) {
            for text in [text, risky] {
                let cell = safe(&text);
                prop_assert_eq!(unsafe_again(&cell), text.as_str());
                prop_assert_eq!(id_again(&cell), text.as_str());
            }
            prop_assert_eq!(split(&join(odd.iter().map(String::as_str))), odd);
            let cell = join(items.iter().map(String::as_str));
            prop_assert_eq!(split(&cell), items);
        }
    }
}
