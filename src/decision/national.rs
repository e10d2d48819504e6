//! The line of a national list that a product's own words single out below a subheading.
//!
//! The classifier ends at six digits: no corpus has the national lines of every customs territory. Their labels do have
//! words, though, and where a product has those of one line and of no other beside it, that line is named. Lines that
//! differ by a limit of weight or by "other" are not, so that most subheadings stay what they are.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use crate::classify::{Classifier, LanguageText, ProductText};
use crate::domain::ClassCode;
use crate::domain::nomenclature::{Labels, Nomenclature};

/// Least share of the weight of a label's words that the product has.
const LEAST_SHARE: f32 = 0.4;
/// Most of that share that any other line beside it may have.
const MOST_BESIDE: f32 = 0.6;
/// Share of the lines so named that are taken to be right where the subheading is: a careful reading of a measurement on
/// few texts (BENCHMARKS.md).
pub const SHARE_RIGHT: f32 = 0.8;
/// Most lines below one class whose labels are read.
const MAX_LINES: usize = 100;
/// Most labels of a language whose words are kept, some 100 bytes each: more than the list of the EU has.
const MAX_LABELS: usize = 50_000;

/// The words of labels as the model in use knows them, each read when it is first asked for: a candidate is compared with up
/// to [`MAX_LINES`] of them in two languages, each of which is a text to read.
#[derive(Default)]
pub struct LabelWords(Mutex<ReadLabels>);

#[derive(Default)]
struct ReadLabels {
    /// The version of the model that read them.
    model: String,
    german: HashMap<String, Arc<[(u32, f32)]>>,
    english: HashMap<String, Arc<[(u32, f32)]>>,
}

impl LabelWords {
    fn of(&self, classifier: &Classifier, language: &'static str, label: &str) -> Arc<[(u32, f32)]> {
        let mut read = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if read.model != classifier.info().version {
            *read = ReadLabels { model: classifier.info().version.clone(), ..ReadLabels::default() };
        }
        let known = if language == "de" { &mut read.german } else { &mut read.english };
        if let Some(words) = known.get(label) {
            return Arc::clone(words);
        }
        if known.len() >= MAX_LABELS {
            known.clear();
        }
        let text = LanguageText { language, name: Some(label), ..LanguageText::default() };
        let words: Arc<[(u32, f32)]> = classifier.vector(&ProductText { languages: vec![text] }).into();
        known.insert(label.to_owned(), Arc::clone(&words));
        words
    }
}

/// The words of a product, as the classifier knows them.
pub struct Words(HashSet<u32>);

impl Words {
    /// Reads them.
    pub fn of(classifier: &Classifier, text: &ProductText<'_>) -> Words {
        Words(classifier.vector(text).into_iter().map(|(word, _)| word).collect())
    }

    /// The class at or below `code`, of at most so many digits, that the words name.
    pub fn line(
        &self,
        classifier: &Classifier,
        known: &LabelWords,
        list: &Nomenclature,
        code: ClassCode,
        digits: usize,
    ) -> ClassCode {
        let mut named = code;
        while named.digits() < digits {
            let lines = list.children(named).into_iter().take(MAX_LINES);
            // What has no label of its own cannot be told from its neighbours by words.
            let labelled = lines.filter_map(|(line, _)| Some((line, list.own_labels(line)?)));
            let mut shares: Vec<(f32, ClassCode)> =
                labelled.map(|(line, labels)| (self.share(classifier, known, labels), line)).collect();
            shares.sort_by(|a, b| b.0.total_cmp(&a.0));
            let beside = shares.get(1).map_or(0.0, |(share, _)| *share);
            match shares.first() {
                Some(&(share, line))
                    if line.digits() <= digits && share >= LEAST_SHARE && beside <= MOST_BESIDE * share =>
                {
                    named = line;
                }
                _ => break,
            }
        }
        named
    }

    /// Share of the squared weight of a label's words that the product has, in the language in which it has more.
    fn share(&self, classifier: &Classifier, known: &LabelWords, labels: Labels<'_>) -> f32 {
        let of_language = |language, label| {
            let words = known.of(classifier, language, label);
            let common = words.iter().filter(|(word, _)| self.0.contains(word));
            common.map(|(_, weight)| weight * weight).sum::<f32>()
        };
        f32::max(of_language("de", labels.de), of_language("en", labels.en))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use chrono::NaiveDate;

    use super::*;
    use crate::decision::{Basis, Engine};
    use crate::domain::nomenclature::{Builder, parse_harmonized, parse_national};
    use crate::domain::{Details, Precision, Taxonomy};
    use crate::reference::Reference;

    #[test]
    fn a_line_is_named_where_the_product_has_its_words_alone() {
        let classifier = Classifier::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("models/classifier.bin"));
        let classifier = classifier.expect("the model of the repository");
        let mut faults = Vec::new();
        let mut builder = Builder::new(Taxonomy::Taric, NaiveDate::from_ymd_opt(2026, 11, 1).expect("a day"));
        let rows = "04\tMilch\tDairy\n0406\tKäse\tCheese\n040690\tAnderer Käse\tOther cheese\n";
        builder.harmonized("04", &parse_harmonized("04", rows, &mut faults), &mut faults);
        let line = |code: &str, de: &str, en: &str| format!("{code}\t80\t1\t\t1\t\t\t\t{de}\t{en}\n");
        let lines = [
            line("04069013", "Emmentaler", "Emmentaler"),
            line("04069021", "Cheddar", "Cheddar"),
            line("04069099", "andere", "other"),
        ];
        builder.national(parse_national("TARIC", &lines.concat(), Taxonomy::Taric, &mut faults));
        let list = builder.build("taxonomy", &mut faults);
        assert!(faults.is_empty(), "{faults:?}");
        let (code, known) = (ClassCode::new("040690").expect("a code"), LabelWords::default());
        for (name, digits, expected) in [
            ("Emmentaler mild 200 g", 8, "04069013"),
            ("Emmentaler mild 200 g", 10, "04069013"),
            ("Emmentaler mild 200 g", 6, "040690"),
            ("Cheddar Scheiben", 8, "04069021"),
            ("Emmentaler und Cheddar gerieben", 8, "040690"),
            ("Schnittkäse", 8, "040690"),
            ("", 8, "040690"),
        ] {
            let text = LanguageText { language: "de", name: Some(name), ..LanguageText::default() };
            let text = ProductText { languages: vec![text] };
            let found = Words::of(&classifier, &text).line(&classifier, &known, &list, code, digits);
            assert_eq!(found.as_str(), expected, "{name}");
        }
    }

    #[test]
    fn a_label_is_read_once_for_a_model() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/classifier.bin");
        let (classifier, known) =
            (Classifier::load(&path).expect("the model of the repository"), LabelWords::default());
        let first = known.of(&classifier, "de", "Emmentaler");
        assert!(!first.is_empty());
        assert!(Arc::ptr_eq(&first, &known.of(&classifier, "de", "Emmentaler")));
        assert!(!Arc::ptr_eq(&first, &known.of(&classifier, "en", "Emmentaler")), "languages are read apart");
        known.0.lock().expect("no panic").model = "another".to_owned();
        let again = known.of(&classifier, "de", "Emmentaler");
        assert!(!Arc::ptr_eq(&first, &again), "what another model read is forgotten");
        assert_eq!(first, again);
    }

    #[test]
    fn candidates_of_eight_digits_are_lines_of_the_list_of_their_taxonomy() {
        let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::create_dir_all(dir.path().join("taxonomy/national")).expect("a folder");
        for shared in ["taxonomy/hs2022", "vat"] {
            std::os::unix::fs::symlink(models.join(shared), dir.path().join(shared)).expect("a link");
        }
        let line = "04069013\t80\t2\t040690-80\t1\t2000-01-01\t\t\tEmmentaler\tEmmentaler\n";
        let list = line.to_owned() + &line.replace("04069013", "04069099").replace("Emmentaler", "andere");
        std::fs::write(dir.path().join("taxonomy/national/TARIC.tsv"), list).expect("a list");
        let reference = Reference::load(dir.path()).expect("reference data");
        let engine = Engine::load(&models.join("classifier.bin"), Arc::new(reference)).expect("the model");
        let names = serde_json::json!({"languageAttributes": {"de": {"productName": "Emmentaler Käse am Stück"}}});
        let details: Details = serde_json::from_value(names).expect("details");
        let today = NaiveDate::from_ymd_opt(2026, 11, 1).expect("a day");
        let basis = Basis { precision: Precision::default(), account: None };
        let best = |taxonomy, digits| engine.explain(&details, taxonomy, basis, digits, 5, today).candidates[0].clone();
        let (shallow, deep) = (best(Taxonomy::Taric, Some(6)), best(Taxonomy::Taric, Some(8)));
        assert_eq!((shallow.code.as_str(), deep.code.as_str()), ("040690", "04069013"));
        assert!((deep.confidence - shallow.confidence * SHARE_RIGHT).abs() < 1e-6);
        assert_eq!(best(Taxonomy::Taric, None).code.as_str(), "040690");
        assert_eq!(best(Taxonomy::Ukgt, Some(8)).code.as_str(), "040690");
    }
}
