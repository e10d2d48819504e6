//! Deciding by what people decided before for products that are alike.

use std::sync::Arc;

use arc_swap::ArcSwap;
use uuid::Uuid;

use super::stakes::Stakes;
use super::{Engine, Found, Verdict, text};
use crate::classify::{Classifier, Ranking};
use crate::domain::assignment::Strategy;
use crate::domain::{ClassCode, Details, Precision, ProductClass, Taxonomy};
use crate::memory::{Decision, Judgement, Memory, Qualities, Question, Recalled, Snapshot, packed};

/// Words of a product by which alike ones are looked for.
pub const MAX_KEY_WORDS: usize = 8;

/// From this probability on a class counts as the one that the model gives a text.
const MORE_LIKELY_THAN_NOT: f32 = 0.5;

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
    qualities: Qualities,
}

impl Words {
    /// How alike two products are, 0 to 1.
    pub fn similarity(&self, other: &Words) -> f32 {
        let weight =
            |word: u32| other.words.iter().find(|(known, _)| *known == word).map_or(0.0, |(_, weight)| *weight);
        self.words.iter().map(|(word, own)| own * weight(*word)).sum::<f32>().min(1.0)
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

fn qualities(details: &Details) -> Qualities {
    Qualities::of(details.languages().filter_map(|(_, texts)| texts.product_name.as_deref()))
}

/// The class that the model gives a text, where it is more likely than not.
fn prior(ranking: &Ranking) -> Option<ClassCode> {
    [6, 4].into_iter().find_map(|digits| {
        let best = *ranking.roll_up(digits).first()?;
        (best.confidence >= MORE_LIKELY_THAN_NOT).then_some(best.code)
    })
}

impl Engine {
    /// What people decided.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The same classifier and facts with a memory of its own, which is empty: for a service on another database.
    pub fn with_own_memory(&self) -> Engine {
        Engine {
            model_path: self.model_path.clone(),
            classifier: self.classifier.clone(),
            reference: ArcSwap::new(self.reference()),
            stakes: Stakes::default(),
            memory: Arc::default(),
        }
    }

    /// The words of a product.
    pub fn words(&self, details: &Details) -> Words {
        Words { words: self.classifier.load().words(&text(details)), qualities: qualities(details) }
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
        let text = text(details);
        Decision {
            assignment,
            taxonomy,
            class,
            against,
            prior: prior(&classifier.rank(&text)),
            side: self.side(details, taxonomy, class.code),
            qualities: qualities(details),
            words: packed(&classifier.words(&text)),
        }
    }

    /// What an account remembers, if it is to be asked and remembers anything.
    pub(super) fn remembering(&self, basis: Basis) -> Option<Arc<Snapshot>> {
        basis.account.map(|account| self.memory.of(account)).filter(|snapshot| !snapshot.is_empty())
    }

    /// What the memory of an account says of a product.
    pub(super) fn judge(
        &self,
        snapshot: &Snapshot,
        words: &Words,
        ranking: &Ranking,
        details: &Details,
        taxonomy: Taxonomy,
    ) -> Judgement {
        let question = Question { taxonomy, words: &words.words, qualities: words.qualities, prior: prior(ranking) };
        snapshot.judge(&question, |code| self.side(details, taxonomy, code))
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
        let sure = |recalled: &Recalled| f64::from(recalled.confidence) >= basis.precision.share();
        let listed = |recalled: &Recalled| self.reference().nomenclature(taxonomy).contains(recalled.class.code);
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

    /// Judgement and words for the classifier that is in use, where there is a memory to ask.
    pub(super) fn asked(
        &self,
        classifier: &Classifier,
        ranking: &Ranking,
        details: &Details,
        taxonomy: Taxonomy,
        basis: Basis,
    ) -> Judgement {
        let Some(snapshot) = self.remembering(basis) else { return Judgement::default() };
        let words = Words { words: classifier.words(&text(details)), qualities: qualities(details) };
        self.judge(&snapshot, &words, ranking, details, taxonomy)
    }
}
