//! Deciding by what people decided before for products that are alike.

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use uuid::Uuid;

use super::national::LabelWords;
use super::stakes::Stakes;
use super::{Engine, text};
use crate::classify::{Classifier, Ranking};
use crate::domain::assignment::Strategy;
use crate::domain::{Details, Found, Precision, ProductClass, Taxonomy, Verdict};
use crate::memory::{Confidence, Decision, Judgement, Memory, Opinion, Question, Recalled, Snapshot, packed};

/// Words of a product by which alike ones are looked for.
pub const MAX_KEY_WORDS: usize = 8;

/// On what a decision rests besides the product itself.
#[derive(Clone, Copy, Debug)]
pub struct Basis {
    /// How sure a decision by text must be.
    pub precision: Precision,
    /// The account whose memory is asked; none leaves memory out.
    pub account: Option<i64>,
}

/// The words of a product, to be compared with those of others.
#[derive(Clone, Debug)]
pub struct Words {
    words: Vec<(u32, f32)>,
}

impl Words {
    /// How alike two products are, 0 to 1.
    pub fn similarity(&self, other: &Words) -> f32 {
        let weight =
            |word: u32| other.words.iter().find(|(known, _)| *known == word).map_or(0.0, |(_, weight)| *weight);
        self.words.iter().map(|(word, own)| own * weight(*word)).sum::<f32>().min(1.0)
    }

    /// Hashes of the words with their weights, the weightiest first.
    pub fn weights(&self) -> &[(u32, f32)] {
        &self.words
    }

    /// Hashes of the weightiest words with the account: what products are found by.
    pub fn keys(&self, account: i64) -> Vec<i32> {
        // Spreads accounts over all hashes, so that those of two meet by chance alone.
        let salt = (account as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let key = |word: u32| ((word ^ salt as u32).wrapping_mul(0x85eb_ca6b)) as i32;
        let mut keys: Vec<i32> = self.words.iter().take(MAX_KEY_WORDS).map(|(word, _)| key(*word)).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }
}

/// What is read of a product, each once and only when it is needed.
#[derive(Debug, Default)]
pub struct Texts {
    ranking: OnceLock<Ranking>,
    words: OnceLock<Words>,
    with_words: bool,
}

impl Texts {
    /// For a product whose words will be needed, whatever is asked before.
    pub fn with_words() -> Texts {
        Texts { with_words: true, ..Texts::default() }
    }

    /// What the classifier says of the product.
    pub(super) fn ranking(&self, classifier: &Classifier, details: &Details) -> &Ranking {
        match self.with_words {
            true => self.ranking_and_words(classifier, details).0,
            false => self.ranking.get_or_init(|| classifier.rank(&text(details))),
        }
    }

    /// The same, with its words.
    fn ranking_and_words(&self, classifier: &Classifier, details: &Details) -> (&Ranking, &Words) {
        let ranking = self.ranking.get_or_init(|| {
            let (ranking, words) = classifier.rank_with_words(&text(details));
            // Whoever was faster read the same.
            let _ = self.words.set(Words { words });
            ranking
        });
        (ranking, self.words(classifier, details))
    }

    /// The words alone.
    fn words(&self, classifier: &Classifier, details: &Details) -> &Words {
        self.words.get_or_init(|| Words { words: classifier.words(&text(details)) })
    }
}

impl Engine {
    /// What people decided.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The same classifier and facts with a memory of its own, which is empty: for a service on another database.
    pub fn with_own_memory(&self) -> Engine {
        self.as_sure_as(self.memory.confidence().clone())
    }

    /// The same classifier and facts with an empty memory that is as sure as `confidence` says.
    pub fn as_sure_as(&self, confidence: Confidence) -> Engine {
        Engine {
            model_path: self.model_path.clone(),
            classifier: self.classifier.clone(),
            reference: ArcSwap::new(self.reference()),
            labels: LabelWords::default(),
            stakes: Stakes::default(),
            memory: Arc::new(Memory::new(confidence)),
        }
    }

    /// The words of a product.
    pub fn words(&self, details: &Details) -> Words {
        Words { words: self.classifier.load().words(&text(details)) }
    }

    /// The same; what was read of the product for a decision is not read again.
    pub fn words_by<'a>(&self, texts: &'a Texts, details: &Details) -> &'a Words {
        texts.words(&self.classifier.load(), details)
    }

    /// A person's decision in the form in which it is remembered.
    pub fn remembered(
        &self,
        assignment: Uuid,
        taxonomy: Taxonomy,
        class: ProductClass,
        against: bool,
        details: &Details,
    ) -> Decision {
        let classifier = self.classifier.load();
        let (ranking, words) = classifier.rank_with_words(&text(details));
        Decision {
            assignment,
            taxonomy,
            class,
            against,
            opinion: Opinion::of(&ranking),
            side: self.side(details, taxonomy, class.code),
            words: packed(&words),
        }
    }

    /// What an account remembers, if it is to be asked and remembers anything.
    pub(super) fn remembering(&self, basis: Basis) -> Option<Arc<Snapshot>> {
        basis.account.map(|account| self.memory.of(account)).filter(|snapshot| !snapshot.is_empty())
    }

    /// What the memory of an account says of a product; nothing where none is to be asked.
    pub fn recall(&self, texts: &Texts, details: &Details, taxonomy: Taxonomy, basis: Basis) -> Judgement {
        self.asked(&self.classifier.load(), texts, details, taxonomy, basis)
    }

    /// The decision by memory where it is sure enough; else that by the model, unless people said it is wrong.
    pub(super) fn by_memory(
        &self,
        judgement: &Judgement,
        by_model: impl FnOnce() -> Verdict,
        taxonomy: Taxonomy,
        basis: Basis,
        today: chrono::NaiveDate,
    ) -> (Verdict, Option<Recalled>) {
        let limit = self.memory.confidence().limit(basis.precision);
        let sure = |recalled: &Recalled| recalled.confidence >= limit;
        // A line may have ended since, and a rule that told a segment apart.
        let listed = |recalled: &Recalled| self.class(taxonomy, recalled.class).is_ok();
        if let Some(recalled) = judgement.class.filter(|recalled| sure(recalled) && listed(recalled)) {
            let sufficient = self.is_sufficient(taxonomy, recalled.class, today);
            let Recalled { class, confidence, .. } = recalled;
            let found = Found { class, strategy: Strategy::Description, confidence, sufficient };
            return (Verdict { found: Some(found), ..Verdict::default() }, Some(recalled));
        }
        let verdict = by_model();
        let wrong = judgement.against.filter(sure).map(|recalled| recalled.class);
        match verdict.found {
            Some(found) if Some(found.class) == wrong => (Verdict::default(), None),
            _ => (verdict, None),
        }
    }

    /// What memory says by the classifier that is in use, where there is a memory to ask.
    pub(super) fn asked(
        &self,
        classifier: &Classifier,
        texts: &Texts,
        details: &Details,
        taxonomy: Taxonomy,
        basis: Basis,
    ) -> Judgement {
        let Some(snapshot) = self.remembering(basis) else { return Judgement::default() };
        let (ranking, words) = texts.ranking_and_words(classifier, details);
        let question = Question { taxonomy, words: &words.words, opinion: Opinion::of(ranking) };
        snapshot.judge(&question, self.memory.confidence(), |code| self.side(details, taxonomy, code))
    }
}
