//! What stands in a cell: lists, and texts that a spreadsheet would take for a formula.

/// Separates the items of a list within a cell.
const SEPARATOR: char = '|';
/// Separates the items of lists of other programs.
const COMMA: char = ',';
/// Takes what follows as it is.
const ESCAPE: char = '\\';
/// With these a spreadsheet begins a formula, or what it makes one of; and the sign before which they are only text.
const RISKY: [char; 7] = ['=', '+', '-', '@', '\t', '\r', QUOTE];
/// Makes what follows text, for a spreadsheet as for this service.
const QUOTE: char = '\'';

/// A text that no spreadsheet takes for a formula.
pub fn safe(text: &str) -> String {
    if text.starts_with(RISKY) { format!("{QUOTE}{text}") } else { text.to_owned() }
}

/// The text that [`safe`] was given; any other as it is.
pub fn unsafe_again(cell: &str) -> &str {
    cell.strip_prefix(QUOTE).filter(|rest| rest.starts_with(RISKY)).unwrap_or(cell)
}

/// Writes a list into a cell.
pub fn join<'a>(items: impl IntoIterator<Item = &'a str>) -> String {
    let mut cell = String::new();
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            cell.push(SEPARATOR);
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

/// Reads a list from a cell. Items without anything are none, and blanks around items do not belong to them.
pub fn split(cell: &str) -> Vec<String> {
    let (mut items, mut item, mut kept) = (Vec::new(), String::new(), 0);
    let mut finish = |item: &mut String, kept: &mut usize| {
        let length = item.trim_end().len().max(*kept);
        item.truncate(length);
        *kept = 0;
        let item = std::mem::take(item);
        if !item.is_empty() {
            items.push(item);
        }
    };
    let mut characters = cell.chars();
    while let Some(character) = characters.next() {
        match character {
            SEPARATOR => finish(&mut item, &mut kept),
            ESCAPE => {
                item.push(characters.next().unwrap_or(ESCAPE));
                kept = item.len();
            }
            blank if blank.is_whitespace() && item.is_empty() => {}
            other => item.push(other),
        }
    }
    finish(&mut item, &mut kept);
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
            ("\t=1", "'\t=1"),
            ("'s Gravenhage", "''s Gravenhage"),
            ("a=1", "a=1"),
            ("", ""),
        ] {
            assert_eq!((safe(text).as_str(), unsafe_again(cell)), (cell, text));
        }
        assert_eq!(unsafe_again("'n Beetje"), "'n Beetje", "of another program");
    }

    #[test]
    fn lists_are_read_as_people_write_them() {
        assert_eq!((join(["1,5 kg"]), join(["1,5", "2"])), ("1\\,5 kg".to_owned(), "1,5|2".to_owned()));
        assert_eq!(split(" bio | fair trade ||"), ["bio", "fair trade"]);
        assert_eq!(split("a\\|b|c\\\\"), ["a|b", "c\\"]);
        assert_eq!(split(""), Vec::<String>::new());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(text in any::<String>(), items in proptest::collection::vec(".+", 0..5)) {
            let cell = safe(&text);
            prop_assert_eq!(unsafe_again(&cell), text.as_str());
            let cell = join(items.iter().map(String::as_str));
            prop_assert_eq!(split(&cell), items);
        }
    }
}
