//! Words that may stand under several headings, with the reason: language, folded words in any order, codes of four digits,
//! reason, parted by tabs. In place of language and words `*` and `<numbers>` or `<order>`: headings that the numbers of a
//! text tell apart, such as the weight of a fabric, or the order of its words, such as which fibre comes first.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use vat_classification::classify::words::Language;
use vat_classification::domain::ClassCode;

/// The marks in place of words.
const NUMBERS: &str = "<numbers>";
const ORDER: &str = "<order>";

/// Headings by language and words, and those that something else tells apart.
#[derive(Debug, Default)]
pub(super) struct Allowed {
    words: HashMap<(Language, Vec<String>), Vec<ClassCode>>,
    numbers: Vec<Vec<ClassCode>>,
    order: Vec<Vec<ClassCode>>,
}

/// In what two texts of the same words differ.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Difference {
    pub(super) in_numbers: bool,
    pub(super) in_order: bool,
}

impl Allowed {
    /// Whether the words, which are in order, may stand under both codes in texts that differ so.
    pub(super) fn has(
        &self,
        language: Language,
        words: &[String],
        codes: [ClassCode; 2],
        difference: Difference,
    ) -> bool {
        let has_both = |headings: &Vec<ClassCode>| codes.iter().all(|code| headings.contains(&code.prefix(4)));
        self.words.get(&(language, words.to_vec())).is_some_and(has_both)
            || difference.in_numbers && self.numbers.iter().any(has_both)
            || difference.in_order && self.order.iter().any(has_both)
    }
}

/// Reads the table; an absent one allows nothing.
pub(super) fn read(path: &Path) -> Result<Allowed> {
    if !path.exists() {
        return Ok(Allowed::default());
    }
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    parse(&text).with_context(|| path.display().to_string())
}

fn parse(text: &str) -> Result<Allowed> {
    let mut allowed = Allowed::default();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        let codes: Option<Vec<ClassCode>> =
            fields.get(2).unwrap_or(&"").split([' ', '|']).map(ClassCode::new).collect();
        let (Some(codes), &[language, words, _, reason]) = (codes, fields.as_slice()) else {
            bail!("line {}: not language, words, codes, reason", index + 1);
        };
        ensure!(!reason.trim().is_empty(), "line {}: no reason", index + 1);
        let language = match (language, words) {
            ("*", NUMBERS) => {
                allowed.numbers.push(codes);
                continue;
            }
            ("*", ORDER) => {
                allowed.order.push(codes);
                continue;
            }
            ("de", _) => Language::German,
            ("en", _) => Language::English,
            _ => bail!("line {}: the language is de or en", index + 1),
        };
        let mut words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        words.sort_unstable();
        allowed.words.entry((language, words)).or_default().extend(codes);
    }
    Ok(allowed)
}

/// The table of a text.
#[cfg(test)]
pub(super) fn parsed(text: &str) -> Allowed {
    parse(text).expect("a table")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_table_names_with_a_reason_is_allowed() {
        let table = "# words\nen\tmint tea\t0902 2101\tleaves, or an extract\n\
                     *\t<numbers>\t5208 5209\t200 g/m²\n*\t<order>\t5210 5513\tthe first fibre\n";
        let allowed = parsed(table);
        let codes = |codes: [&str; 2]| codes.map(|code| ClassCode::new(code).expect("digits"));
        let words = ["mint", "tea"].map(str::to_owned);
        let (english, none) = (Language::English, Difference::default());
        assert!(allowed.has(english, &words, codes(["090240", "210120"]), none));
        assert!(!allowed.has(english, &words, codes(["090240", "121190"]), none));
        assert!(!allowed.has(english, &words[..1], codes(["090240", "210120"]), none));
        assert!(!allowed.has(Language::German, &words, codes(["090240", "210120"]), none));
        let (numbers, order) = (Difference { in_numbers: true, ..none }, Difference { in_order: true, ..none });
        assert_eq!(
            [none, numbers, order].map(|how| allowed.has(english, &words, codes(["520811", "520911"]), how)),
            [false, true, false]
        );
        assert_eq!(
            [none, numbers, order].map(|how| allowed.has(english, &words, codes(["521011", "551311"]), how)),
            [false, false, true]
        );
        for bad in ["en\ttea\t0902 2101\t \n", "fr\ttea\t0902\tx\n", "en\ttea\tx\tx\n", "en\ttea\n"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        let absent = read(Path::new("no such file")).expect("none");
        assert!(!absent.has(english, &words, codes(["090240", "210120"]), none));
    }
}
