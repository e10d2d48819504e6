//! From product texts to product classes: a classifier that ranks, decides, refuses and gives its reasons.
//!
//! [`text`] and [`features`] say what is read from a text; [`model`] is the file that training writes; `score` finds
//! candidate classes and `rank` makes probabilities of their scores. Everything is immutable and may be shared by threads.

pub mod best;
mod dense;
pub mod features;
pub mod lexicon;
pub mod model;
mod query;
mod rank;
pub mod recall;
mod score;
pub mod spelling;
mod sums;
pub mod table;
pub mod text;
pub mod voices;
pub mod words;

use std::cell::RefCell;
use std::path::Path;

use crate::domain::{ClassCode, Precision};
pub use dense::{KNOWN_NAME, OPINIONS};
use features::{Kind, pieces};
use model::Model;
pub use model::{Balance, Limits, ModelError, ModelInfo};
pub use rank::probabilities;
use score::Scorer;

/// What a product says of itself in one language.
#[derive(Clone, Copy, Debug, Default)]
pub struct LanguageText<'a> {
    /// Language key as the merchant wrote it; a voice among others, since it may be wrong.
    pub language: &'a str,
    /// Name of the product.
    pub name: Option<&'a str>,
    /// Description of the product.
    pub description: Option<&'a str>,
    /// Tags.
    pub tags: &'a [String],
}

/// What a product says of itself.
#[derive(Clone, Debug, Default)]
pub struct ProductText<'a> {
    /// Texts by language, at most one each.
    pub languages: Vec<LanguageText<'a>>,
}

/// A class and how sure the classifier is of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scored {
    /// The class.
    pub code: ClassCode,
    /// Calibrated probability, 0 to 1.
    pub confidence: f32,
}

/// Probabilities of disjoint six-digit classes, best first; empty when the text is no evidence.
///
/// They add up to at most one: what is missing is the probability that none of them is right.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ranking {
    /// The classes, best first.
    pub candidates: Vec<Scored>,
    /// Whether a description said something beside a name.
    pub is_described: bool,
}

/// A class that is sure enough to be assigned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// Six or four digits.
    pub code: ClassCode,
    /// Probability that the class is right, 0 to 1.
    pub confidence: f32,
}

/// A word that spoke for a class.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// The word as it stands in the text; two neighbours where they spoke together.
    pub word: String,
    /// How much it added to the score of the class; above 0.
    pub weight: f32,
}

/// A row of the corpus that resembles a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbour {
    /// The text of the row.
    pub text: String,
    /// Cosine of its features and those of the text, 0 to 1.
    pub similarity: f32,
}

/// A model, ready to rank.
pub struct Classifier {
    model: Model,
}

thread_local! {
    /// Buffers of this thread, so that ranking allocates little.
    static SCORER: RefCell<Scorer> = RefCell::default();
}

impl Classifier {
    /// Maps a model file into memory.
    ///
    /// # Errors
    /// When the file cannot be read, is damaged, or was made for another version of the program.
    pub fn load(path: &Path) -> Result<Classifier, ModelError> {
        Ok(Classifier { model: Model::open(path)? })
    }

    /// A classifier over a model that is in memory already.
    ///
    /// # Errors
    /// As [`Classifier::load`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Classifier, ModelError> {
        Ok(Classifier { model: Model::from_bytes(bytes)? })
    }

    /// What the model says of itself: version, corpus, figures, limits.
    pub fn info(&self) -> &ModelInfo {
        self.model.info()
    }

    /// Probabilities of six-digit classes, best first; empty when there is no evidence.
    pub fn rank(&self, text: &ProductText<'_>) -> Ranking {
        self.with_candidates(text, |scorer| rank::ranking(&self.model, scorer)).unwrap_or_default()
    }

    /// The deepest class that is sure enough by the limits of the model for that precision: six or four digits, or none.
    ///
    /// A chapter is no class that a product could have: it leaves the rate open nearly everywhere.
    pub fn decide(&self, ranking: &Ranking, precision: Precision) -> Option<Decision> {
        let limits = self.info().limits_for(precision, ranking.is_described);
        [(6, limits.subheading), (4, limits.heading)].into_iter().find_map(|(digits, limit)| {
            let best = *ranking.roll_up(digits).first()?;
            (best.confidence >= limit).then_some(Decision { code: best.code, confidence: best.confidence })
        })
    }

    /// The words that spoke for a class, heaviest first, at most `max`.
    ///
    /// The weight of a feature for a class of two or four digits is its best weight for a class below.
    pub fn explain(&self, text: &ProductText<'_>, code: ClassCode, max: usize) -> Vec<Evidence> {
        self.with_candidates(text, |scorer| {
            let weights = rank::feature_weights(&self.model, scorer, &code);
            words_of(text, scorer, &weights, max)
        })
        .unwrap_or_default()
    }

    /// The rows of the corpus below a class that resemble the text most, at most `max`.
    pub fn nearest(&self, text: &ProductText<'_>, code: ClassCode, max: usize) -> Vec<Neighbour> {
        self.with_candidates(text, |scorer| rank::nearest(&self.model, scorer, &code, max)).unwrap_or_default()
    }

    /// For each candidate the code and the dense features by which it is ranked, and the features of the text.
    ///
    /// For training: the ranker is fitted on what the service will see.
    pub fn describe(&self, text: &ProductText<'_>) -> Described {
        let describe = |scorer: &mut Scorer| {
            let candidates = scorer.candidates.iter();
            let candidates =
                candidates.filter_map(|c| Some((self.model.leaf_code(c.leaf)?, c.dense.to_vec()))).collect();
            Described { candidates, text: scorer.text.to_vec() }
        };
        self.with_candidates(text, describe).unwrap_or_default()
    }

    /// The text as a normalised vector over the features of the model: feature id and weight.
    ///
    /// For training: rows are learnt in the form in which the service will see texts.
    pub fn vector(&self, text: &ProductText<'_>) -> Vec<(u32, f32)> {
        SCORER.with_borrow_mut(|scorer| {
            scorer.query.read(&self.model, text);
            scorer.query.vector()
        })
    }

    /// A name as a normalised vector over character n-grams alone, as if no word in it were known. For training.
    pub fn gram_vector(&self, name: &str) -> Vec<(u32, f32)> {
        SCORER.with_borrow_mut(|scorer| {
            scorer.query.read_grams(&self.model, name);
            scorer.query.vector()
        })
    }

    fn with_candidates<T>(&self, text: &ProductText<'_>, then: impl FnOnce(&mut Scorer) -> T) -> Option<T> {
        SCORER.with_borrow_mut(|scorer| {
            if !scorer.query.read(&self.model, text) {
                return None;
            }
            scorer.describe(&self.model);
            Some(then(scorer))
        })
    }
}

/// What the ranker sees of a text.
#[derive(Clone, Debug, Default)]
pub struct Described {
    /// Code and dense features of each candidate.
    pub candidates: Vec<(ClassCode, Vec<f32>)>,
    /// Features of the text.
    pub text: Vec<f32>,
}

impl Ranking {
    /// Probabilities of the classes of that many digits, best first: those of disjoint classes below are added.
    pub fn roll_up(&self, digits: usize) -> Vec<Scored> {
        let mut classes: Vec<Scored> = Vec::new();
        for candidate in &self.candidates {
            let code = candidate.code.prefix(digits);
            match classes.iter_mut().find(|class| class.code == code) {
                Some(class) => class.confidence += candidate.confidence,
                None => classes.push(Scored { code, confidence: candidate.confidence }),
            }
        }
        classes.sort_by(|a, b| b.confidence.total_cmp(&a.confidence).then(a.code.cmp(&b.code)));
        classes
    }
}

/// Adds the weights of features up by the word they stand for.
fn words_of(text: &ProductText<'_>, scorer: &Scorer, weights: &[(usize, f32)], max: usize) -> Vec<Evidence> {
    let mut contents = Vec::new();
    pieces(text, |_, _, content| contents.push(content));
    // The last number stands for all pieces from there on, so that it tells of no word which it is.
    contents.truncate(usize::from(u16::MAX));
    let mut evidence: Vec<Evidence> = Vec::new();
    for &(index, weight) in weights {
        let feature = &scorer.query.features[index];
        if feature.vague && feature.kind != Kind::Quantity {
            continue;
        }
        let range = feature.source.0 as usize..feature.source.1 as usize;
        let Some(word) = contents.get(usize::from(feature.piece)).and_then(|content| content.get(range)) else {
            continue;
        };
        match evidence.iter_mut().find(|known| known.word == word) {
            Some(known) => known.weight += weight,
            None => evidence.push(Evidence { word: word.to_owned(), weight }),
        }
    }
    evidence.retain(|known| known.weight > 0.0);
    evidence.sort_by(|a, b| b.weight.total_cmp(&a.weight).then_with(|| a.word.cmp(&b.word)));
    evidence.truncate(max);
    evidence
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shipped() -> Classifier {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/classifier.bin");
        Classifier::load(&path).expect("the model of the repository")
    }

    fn named<'a>(language: &'a str, name: &'a str) -> ProductText<'a> {
        ProductText { languages: vec![LanguageText { language, name: Some(name), ..LanguageText::default() }] }
    }

    #[test]
    fn plain_goods_get_their_class_in_both_languages_and_whatever_the_key() {
        let classifier = shipped();
        for (language, name, code) in [
            ("de", "Herren T-Shirt aus Baumwolle", "6109"),
            ("en", "Men's cotton t-shirt", "6109"),
            ("en", "Herren T-Shirt aus Baumwolle", "6109"),
            ("fr", "Men's cotton t-shirt", "6109"),
            ("de", "DAMEN JEANSHOSE BLAU", "6204"),
            ("en", "Shampoo for dry hair 250 ml", "3305"),
        ] {
            let best = classifier.rank(&named(language, name)).roll_up(4)[0];
            assert_eq!(best.code.as_str(), code, "{language} {name}: {best:?}");
        }
    }

    #[test]
    fn a_shelf_settles_doubt_and_never_overrules_the_name() {
        let classifier = shipped();
        for (language, name, shelf, heading) in [
            ("de", "Speisesalz jodiert", "Gewürze", "2501"),
            ("de", "Speisesalz jodiert", "Küche", "2501"),
            ("de", "Wasserkocher 1,7 l", "Küche", "8516"),
            ("de", "Wasserkocher 1,7 l", "Töpfe", "8516"),
            ("de", "Herren Jeanshose", "Sale", "6203"),
            ("en", "Men's cotton t-shirt", "Shoes", "6109"),
            ("en", "Electric kettle", "Kitchen", "8516"),
            ("en", "Iodised table salt", "Spices", "2501"),
        ] {
            let tags = [shelf.to_owned()];
            let mut text = named(language, name);
            let best = |text: &ProductText<'_>| {
                let ranking = classifier.rank(text);
                (ranking.roll_up(4)[0].code.to_string(), classifier.decide(&ranking, Precision::P90).is_some())
            };
            let without = best(&text);
            text.languages[0].tags = &tags;
            let with = best(&text);
            assert_eq!((without.0.as_str(), with.0.as_str()), (heading, heading), "{name} {shelf}");
            // A wrong shelf may leave the name in doubt; it does not put another good in its place.
            let is_wrong = ["Töpfe", "Shoes"].contains(&shelf);
            assert!(is_wrong || with.1 || !without.1, "{name} {shelf}");
        }
        let tags = ["Schuhe".to_owned()];
        let text = |tags| ProductText {
            languages: vec![LanguageText { language: "de", name: Some("Lina 38"), tags, ..LanguageText::default() }],
        };
        let share = |text: &ProductText<'_>| {
            let classes = classifier.rank(text).roll_up(2);
            classes.iter().find(|class| class.code.as_str() == "64").map_or(0.0, |class| class.confidence)
        };
        assert!(share(&text(&tags)) > 2.0 * share(&text(&[])));
    }

    #[test]
    fn texts_without_evidence_get_no_class() {
        let classifier = shipped();
        for name in [
            "",
            "   ",
            "—!?",
            "Set",
            "Geschenk",
            "blue, size M",
            "spare part 4711",
            "Ersatzteil",
            "xqzvkp wrrtlm",
            "12345",
            "кожаная куртка",
            "革のジャケット",
            "Geschenk für Frauen",
            "new 2024 hot sale",
        ] {
            for language in ["de", "en", "ru"] {
                let ranking = classifier.rank(&named(language, name));
                for precision in Precision::ALL {
                    assert_eq!(classifier.decide(&ranking, precision), None, "{language} {name}");
                }
            }
        }
        assert_eq!(classifier.rank(&ProductText::default()), Ranking::default());
    }

    #[test]
    fn confidences_are_disjoint_ordered_and_roll_up() {
        let ranking = shipped().rank(&named("de", "Damen Lederjacke schwarz"));
        let sum: f32 = ranking.candidates.iter().map(|candidate| candidate.confidence).sum();
        assert!(sum > 0.0 && sum <= 1.0 + 1e-4, "{sum}");
        for digits in [2, 4, 6] {
            let classes = ranking.roll_up(digits);
            assert!(classes.windows(2).all(|pair| pair[0].confidence >= pair[1].confidence));
            assert!((classes.iter().map(|class| class.confidence).sum::<f32>() - sum).abs() < 1e-4);
        }
    }

    #[test]
    fn reasons_are_words_of_the_text() {
        let classifier = shipped();
        let text = named("de", "Damen Lederjacke, schwarz");
        let best = classifier.rank(&text).candidates[0].code;
        let evidence = classifier.explain(&text, best, 3);
        assert!(evidence.iter().any(|evidence| evidence.word == "Lederjacke" && evidence.weight > 0.0), "{evidence:?}");
        let nearest = classifier.nearest(&text, best, 2);
        assert!(nearest.len() <= 2 && nearest.iter().all(|row| row.similarity > 0.0 && !row.text.is_empty()));
    }

    #[test]
    fn damaged_and_foreign_files_are_refused() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/classifier.bin");
        let good = std::fs::read(path).expect("the model of the repository");
        let refused = |bytes: Vec<u8>| Classifier::from_bytes(bytes).map(|_| ()).expect_err("refused");
        let mut flipped = good.clone();
        flipped[good.len() / 2] ^= 1;
        assert!(matches!(refused(flipped), ModelError::Checksum));
        assert!(matches!(refused(good[..good.len() / 2].to_vec()), ModelError::Checksum));
        assert!(matches!(refused(b"no model".to_vec()), ModelError::Malformed(_)));
        let mut newer = good;
        newer[8] = 99;
        assert!(matches!(refused(newer), ModelError::Version { found: 99, .. }));
    }
}
