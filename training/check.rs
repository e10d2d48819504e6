//! `check-corpus`: whether the corpus and the table of labels are whole and clean.
//!
//! Errors make it fail: malformed lines, unknown codes, one text under two codes, digits of the code in a text, text in the
//! other language, the same words in whatever order and with whatever numbers under two headings unless the table of
//! allowed ones has them, texts of the table of traps, gaps and doubles in the labels, coverage that names no code.
//! Warnings do not: the same words under two subheadings, and, unless `--complete` is given, headings and subheadings with
//! too few rows.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Args;
use vat_classification::classify::features::Extractor;
use vat_classification::classify::text::fold;
use vat_classification::classify::words::{Language, role};
use vat_classification::domain::ClassCode;

use crate::brands;
use crate::corpus;
use crate::labels::{self, Label};
use crate::rows::{Corpus, Row};
use allowed::{Allowed, Difference};

mod allowed;
mod coverage;
mod traps;

/// Fewest rows of a heading, its subheadings included, in each language.
const MIN_ROWS_OF_HEADING: usize = 15;
/// Fewest rows of a subheading in each language.
const MIN_ROWS_OF_SUBHEADING: usize = 4;
/// Chapters of the Harmonized System: 01 to 97, where 77 is reserved.
const CHAPTERS: usize = 96;
/// Function words of the other language from which on a text without any of its own counts as mixed up.
const MIN_FOREIGN_WORDS: usize = 2;

/// Options of `check-corpus`.
#[derive(Args)]
pub(crate) struct Options {
    /// Directory of the corpus.
    #[arg(long, default_value = "training/corpus")]
    pub(crate) corpus: PathBuf,
    /// Directory of the label tables.
    #[arg(long, default_value = "models/taxonomy/hs2022")]
    pub(crate) labels: PathBuf,
    /// Words that may stand under several headings, in any order: language, folded words, codes of four digits, reason.
    #[arg(long, default_value = "training/allowed.tsv")]
    pub(crate) allowed: PathBuf,
    /// Directory of tables that say which kinds of goods are covered: category, code, rows.
    #[arg(long, default_value = "training/coverage")]
    pub(crate) coverage: PathBuf,
    /// Texts that the model is tested with, and that no row may be.
    #[arg(long, default_value = "training/traps.tsv")]
    pub(crate) traps: PathBuf,
    /// Codes with too few rows are errors too.
    #[arg(long)]
    pub(crate) complete: bool,
    /// Most findings of one kind that are printed.
    #[arg(long, default_value_t = 20)]
    pub(crate) show: usize,
}

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// What makes the check fail, by kind.
    pub(crate) errors: BTreeMap<&'static str, Vec<String>>,
    /// What deserves a look, by kind.
    pub(crate) warnings: BTreeMap<&'static str, Vec<String>>,
}

impl Findings {
    fn error(&mut self, kind: &'static str, what: String) {
        self.errors.entry(kind).or_default().push(what);
    }

    fn warning(&mut self, kind: &'static str, what: String) {
        self.warnings.entry(kind).or_default().push(what);
    }
}

/// Checks corpus and labels, prints counts and findings, and fails when there are errors.
pub(crate) fn run(options: &Options) -> Result<()> {
    let corpus = corpus::read(&options.corpus, &[])?;
    let labels = labels::read(&options.labels)?;
    print_counts(&corpus.rows, &labels);
    let mut findings = Findings::default();
    check_labels(&labels, &mut findings);
    check_rows(&corpus, &labels, &allowed::read(&options.allowed)?, &mut findings);
    coverage::check(&options.coverage, &corpus.rows, &labels, &mut findings)?;
    traps::check(&options.traps, &corpus.rows, &mut findings)?;
    check_counts(&corpus.rows, &labels, options.complete, &mut findings);
    for (title, kinds) in [("warning", &findings.warnings), ("error", &findings.errors)] {
        for (kind, found) in kinds {
            println!("{title}: {kind}: {}", found.len());
            found.iter().take(options.show).for_each(|what| println!("    {what}"));
        }
    }
    let errors: usize = findings.errors.values().map(Vec::len).sum();
    ensure!(errors == 0, "{errors} errors in corpus and labels");
    println!("no errors");
    Ok(())
}

fn print_counts(rows: &[Row], labels: &[Label]) {
    let digits = |digits| labels.iter().filter(|label| label.code.digits() == digits).count();
    println!("labels: {} chapters, {} headings, {} subheadings", digits(2), digits(4), digits(6));
    let mut counts: BTreeMap<ClassCode, [usize; 5]> = BTreeMap::new();
    for row in rows {
        let count = counts.entry(row.code.prefix(2)).or_default();
        count[usize::from(row.language == Language::English)] += 1;
        count[2] += usize::from(row.generated);
        count[3] += usize::from(row.description.is_some());
        count[4] += usize::from(!row.tags.is_empty());
    }
    println!("chapter  German English generated described  tagged");
    for (chapter, [german, english, generated, described, tagged]) in &counts {
        println!("{chapter:<7} {german:>7} {english:>7} {generated:>9} {described:>9} {tagged:>7}");
    }
    let all = |index: usize| counts.values().map(|count| count[index]).sum::<usize>();
    println!("brands and lines: {} rows", rows.iter().filter(|row| brands::is_of(row)).count());
    println!("all     {:>7} {:>7} {:>9} {:>9} {:>7}", all(0), all(1), all(2), all(3), all(4));
}

/// Every chapter, every heading under a chapter, every subheading under a heading, once, with both labels.
pub(crate) fn check_labels(labels: &[Label], findings: &mut Findings) {
    let mut codes = BTreeSet::new();
    for label in labels {
        if !codes.insert(label.code) {
            findings.error("code twice in the labels", label.code.to_string());
        }
        if label.de.is_empty() || label.en.is_empty() {
            findings.error("label missing", label.code.to_string());
        }
    }
    let chapters = codes.iter().filter(|code| code.digits() == 2).count();
    if chapters != CHAPTERS {
        findings.error("number of chapters", format!("{chapters} instead of {CHAPTERS}"));
    }
    for code in &codes {
        let digits = code.digits();
        if digits > 2 && !codes.contains(&code.prefix(digits - 2)) {
            findings.error("code without the one above it", code.to_string());
        }
        let has_below = codes.range(*code..).nth(1).is_some_and(|next| next.is_under(code));
        if digits < 6 && !has_below {
            findings.error("code without any below it", code.to_string());
        }
    }
}

/// A row's words in their order, and its numbers.
#[derive(Clone)]
struct Spoken<'r> {
    row: &'r Row,
    words: Vec<String>,
    numbers: Vec<String>,
}

fn check_rows(corpus: &Corpus, labels: &[Label], allowed: &Allowed, findings: &mut Findings) {
    corpus.faults.iter().for_each(|fault| findings.error("malformed", fault.to_string()));
    let codes: BTreeSet<ClassCode> = labels.iter().map(|label| label.code).collect();
    let mut texts: HashMap<(Language, String), &Row> = HashMap::new();
    let mut words: HashMap<(Language, Vec<String>), Spoken<'_>> = HashMap::new();
    let mut extractor = Extractor::default();
    for row in corpus.rows.iter().filter(|row| brands::is_of(row) && !codes.contains(&row.code)) {
        findings.error("unknown code", format!("{} [{}] {}", row.place, row.code, row.name));
    }
    // A brand stands for several goods by its nature.
    for row in corpus.rows.iter().filter(|row| !brands::is_of(row)) {
        let shown = || format!("{} [{}] {}", row.place, row.code, row.name);
        if !codes.contains(&row.code) {
            findings.error("unknown code", shown());
        }
        if names_its_code(row) {
            findings.error("digits of the code in the text", shown());
        }
        if is_mixed_up(row) {
            findings.error("text in the other language", shown());
        }
        let differs = |other: &&Row| !other.code.is_under(&row.code) && !row.code.is_under(&other.code);
        let text = fold(&whole(row));
        let spoken = Spoken {
            row,
            words: extractor.content_words(&text).map(str::to_owned).collect(),
            numbers: text.split(|c: char| !c.is_ascii_digit()).map(str::to_owned).filter(|n| !n.is_empty()).collect(),
        };
        let mut sorted = spoken.words.clone();
        sorted.sort_unstable();
        if let Some(other) = texts.insert((row.language, text), row).filter(differs) {
            findings.error("one text under two codes", format!("{} and {} [{}]", shown(), other.place, other.code));
            continue;
        }
        let known = words.insert((row.language, sorted.clone()), spoken.clone());
        let Some(known) = known.filter(|known| differs(&known.row)) else { continue };
        let other = known.row;
        let pair = format!("{} and {} [{}] {} ({})", shown(), other.place, other.code, other.name, sorted.join(" "));
        let difference =
            Difference { in_numbers: spoken.numbers != known.numbers, in_order: spoken.words != known.words };
        if row.code.prefix(4) == other.code.prefix(4) {
            findings.warning("the same words under two subheadings", pair);
        } else if !allowed.has(row.language, &sorted, [row.code, other.code], difference) {
            findings.error("the same words under two headings", pair);
        }
    }
}

fn whole(row: &Row) -> String {
    format!("{} {} {}", row.name, row.description.as_deref().unwrap_or_default(), row.tags.join(" "))
}

/// Whether the heading's digits stand in the text as a code would be written: alone, or before more digits or a dot.
fn names_its_code(row: &Row) -> bool {
    let heading = row.code.prefix(4);
    if heading.digits() < 4 {
        return false;
    }
    let text = whole(row);
    let mut words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '.');
    let code = row.code.as_str();
    words.any(|word| {
        let digits: String = word.chars().filter(|c| *c != '.').collect();
        digits.len() >= 6 && digits.bytes().all(|b| b.is_ascii_digit()) && digits.starts_with(code) && code.len() >= 4
    })
}

/// Whether a text has function words of the other language only, and several different ones.
fn is_mixed_up(row: &Row) -> bool {
    let text = fold(&whole(row));
    let words: BTreeSet<&str> = text.split(|c: char| !c.is_alphanumeric()).collect();
    let languages: Vec<Language> = words.into_iter().filter_map(|word| role(word).1).collect();
    languages.len() >= MIN_FOREIGN_WORDS && languages.iter().all(|language| *language != row.language)
}

/// Names headings and subheadings with too few rows.
fn check_counts(rows: &[Row], labels: &[Label], are_errors: bool, findings: &mut Findings) {
    let mut counts: HashMap<(ClassCode, Language), usize> = HashMap::new();
    for row in rows {
        *counts.entry((row.code, row.language)).or_default() += 1;
        if row.code.digits() > 4 {
            *counts.entry((row.code.prefix(4), row.language)).or_default() += 1;
        }
    }
    for label in labels {
        let least = match label.code.digits() {
            4 => MIN_ROWS_OF_HEADING,
            6 => MIN_ROWS_OF_SUBHEADING,
            _ => continue,
        };
        for language in [Language::German, Language::English] {
            let count = counts.get(&(label.code, language)).copied().unwrap_or(0);
            if count < least {
                let what = format!("{} {language:?}: {count} of {least}", label.code);
                match are_errors {
                    true => findings.error("too few rows", what),
                    false => findings.warning("too few rows", what),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Place;

    fn row(code: &str, language: Language, name: &str) -> Row {
        Row {
            code: ClassCode::new(code).expect("digits"),
            language,
            name: name.to_owned(),
            description: None,
            tags: Vec::new(),
            place: Place { file: "61.txt".to_owned(), line: 1 },
            group: 1,
            generated: false,
        }
    }

    fn label(code: &str, de: &str) -> Label {
        Label { code: ClassCode::new(code).expect("digits"), de: de.to_owned(), en: "x".to_owned() }
    }

    #[test]
    fn rows_with_faults_are_named_by_kind() {
        let labels = ["61", "6109", "610910", "610990", "620520"].map(|code| label(code, "a"));
        let (de, en) = (Language::German, Language::English);
        for (rows, kind) in [
            (vec![row("610999", de, "Hemd")], "unknown code"),
            (vec![row("610910", de, "Hemd rot"), row("610990", de, "HEMD rot")], "one text under two codes"),
            (
                vec![row("610910", de, "Hemd aus Wolle"), row("620520", de, "Wolle Hemd 12")],
                "the same words under two headings",
            ),
            (vec![row("610910", de, "Hemd 6109.10.00")], "digits of the code in the text"),
            (vec![row("610910", de, "shirt with sleeves for the beach")], "text in the other language"),
            (vec![row("610910", en, "Hemd mit Kragen und Tasche")], "text in the other language"),
        ] {
            let mut findings = Findings::default();
            check_rows(&Corpus { rows, ..Corpus::default() }, &labels, &Allowed::default(), &mut findings);
            assert_eq!(findings.errors.keys().collect::<Vec<_>>(), [&kind]);
        }
    }

    #[test]
    fn good_rows_give_no_errors() {
        let labels = [label("61", "a"), label("6109", "b"), label("610910", "c")];
        let rows = vec![row("6109", Language::German, "T-Shirt"), row("610910", Language::German, "T-Shirt")];
        let mut findings = Findings::default();
        check_rows(&Corpus { rows, ..Corpus::default() }, &labels, &Allowed::default(), &mut findings);
        assert!(findings.errors.is_empty(), "{findings:?}");
    }

    #[test]
    fn the_same_words_under_two_headings_are_no_error_where_the_table_has_them() {
        let labels = ["610910", "610990", "620520"].map(|code| label(code, "a"));
        let of = |codes: [&str; 2]| {
            vec![row(codes[0], Language::English, "red shirt"), row(codes[1], Language::English, "shirt, red")]
        };
        let check = |codes: [&str; 2], allowed: &Allowed| {
            let mut findings = Findings::default();
            check_rows(&Corpus { rows: of(codes), ..Corpus::default() }, &labels, allowed, &mut findings);
            (findings.errors.len(), findings.warnings.len())
        };
        let allowed = allowed::parsed("en\tshirt red\t6109 6205\twhatever it is");
        assert_eq!(check(["610910", "620520"], &Allowed::default()), (1, 0));
        assert_eq!(check(["610910", "620520"], &allowed), (0, 0));
        assert_eq!(check(["610910", "610990"], &Allowed::default()), (0, 1));
    }

    #[test]
    fn gaps_and_doubles_in_the_labels_are_errors() {
        let mut findings = Findings::default();
        check_labels(&[label("61", "a"), label("61", "a"), label("620910", ""), label("6109", "b")], &mut findings);
        let kinds: Vec<&str> = findings.errors.keys().copied().collect();
        let expected = [
            "code twice in the labels",
            "code without any below it",
            "code without the one above it",
            "label missing",
            "number of chapters",
        ];
        assert_eq!(kinds, expected);
    }

    #[test]
    fn the_corpus_of_the_repository_has_no_errors() {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let corpus = corpus::read(&root.join("training/corpus"), &[]).expect("corpus");
        let Ok(labels) = labels::read(&root.join("models/taxonomy/hs2022")) else { return };
        let mut findings = Findings::default();
        check_labels(&labels, &mut findings);
        let allowed = allowed::read(&root.join("training/allowed.tsv")).expect("a table");
        check_rows(&corpus, &labels, &allowed, &mut findings);
        coverage::check(&root.join("training/coverage"), &corpus.rows, &labels, &mut findings).expect("tables");
        traps::check(&root.join("training/traps.tsv"), &corpus.rows, &mut findings).expect("a table");
        let first: Vec<_> = findings.errors.iter().map(|(kind, found)| (kind, &found[0])).collect();
        assert!(first.is_empty(), "{first:#?}");
    }
}
