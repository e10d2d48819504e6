//! Words that may stand under several headings, with the reason: language, folded words as they stand, codes of four
//! digits, reason, parted by tabs.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use vat_classification::classify::words::Language;
use vat_classification::domain::ClassCode;

/// Headings by language and words.
#[derive(Debug, Default)]
pub(super) struct Allowed(HashMap<(Language, String), Vec<ClassCode>>);

impl Allowed {
    /// Whether the words may stand under all these codes.
    pub(super) fn has(&self, language: Language, words: &str, codes: &[ClassCode]) -> bool {
        let headings = self.0.get(&(language, words.to_owned()));
        headings.is_some_and(|headings| codes.iter().all(|code| headings.contains(&code.prefix(4))))
    }
}

/// Reads the table; an absent one allows nothing.
pub(super) fn read(path: &Path) -> Result<Allowed> {
    let mut allowed = Allowed::default();
    if !path.exists() {
        return Ok(allowed);
    }
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        let language = match fields.first() {
            Some(&"de") => Some(Language::German),
            Some(&"en") => Some(Language::English),
            _ => None,
        };
        let codes: Option<Vec<ClassCode>> =
            fields.get(2).unwrap_or(&"").split([' ', '|']).map(ClassCode::new).collect();
        let (Some(language), Some(codes), 4) = (language, codes, fields.len()) else {
            anyhow::bail!("{}:{}: not language, words, codes, reason", path.display(), index + 1);
        };
        ensure!(!fields[3].trim().is_empty(), "{}:{}: no reason", path.display(), index + 1);
        allowed.0.entry((language, fields[1].to_owned())).or_default().extend(codes);
    }
    Ok(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_table_names_with_a_reason_is_allowed() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("allowed.tsv");
        fs::write(&path, "# words\nen\ttea\t0902 2101\tleaves, or an extract\n").expect("written");
        let allowed = read(&path).expect("a table");
        let codes = |codes: [&str; 2]| codes.map(|code| ClassCode::new(code).expect("digits"));
        assert!(allowed.has(Language::English, "tea", &codes(["090240", "210120"])));
        assert!(!allowed.has(Language::English, "tea", &codes(["090240", "121190"])));
        assert!(!allowed.has(Language::German, "tea", &codes(["090240", "210120"])));
        for bad in ["en\ttea\t0902 2101\t \n", "fr\ttea\t0902\tx\n", "en\ttea\tx\tx\n", "en\ttea\n"] {
            fs::write(&path, bad).expect("written");
            assert!(read(&path).is_err(), "{bad}");
        }
        assert!(!read(&directory.path().join("none")).expect("none").has(Language::English, "tea", &[]));
    }
}
