//! The words by which one product resembles another, whether or not the model knows them.
//!
//! The names of brands and series are nothing to the model, and the most there is to tell a shop's goods apart by.

use std::cell::RefCell;

use super::features::{Extractor, Feature, Field, Kind};
use super::{Classifier, ProductText, Ranking, SCORER, rank};

/// Rarity that a word is taken to have which the model does not know: the middle of those that it knows.
const UNKNOWN_RARITY: f32 = 3.0;
/// Weight of tags and description together, beside a name.
const REST: f32 = 0.5;
/// Most words of a text; the weightiest stay.
pub const MAX_RECALLED_WORDS: usize = 32;

thread_local! {
    static READER: RefCell<(Extractor, Vec<Feature>)> = RefCell::default();
}

impl Classifier {
    /// The words of a text and the parts of its compounds as a vector of length one, by rarity: hash and weight,
    /// the weightiest first, at most [`MAX_RECALLED_WORDS`]. Numbers are left out: variants differ in them.
    pub fn words(&self, text: &ProductText<'_>) -> Vec<(u32, f32)> {
        READER.with_borrow_mut(|(extractor, features)| {
            extractor.extract(&self.model.lexicon(), text, features);
            self.recalled(features)
        })
    }

    /// Ranking and words of a text that is read once for both.
    pub fn rank_with_words(&self, text: &ProductText<'_>) -> (Ranking, Vec<(u32, f32)>) {
        SCORER.with_borrow_mut(|scorer| {
            let is_evidence = scorer.query.read(&self.model, text);
            let words = self.recalled(&scorer.query.features);
            if !is_evidence {
                return (Ranking::default(), words);
            }
            scorer.describe(&self.model);
            (rank::ranking(&self.model, scorer), words)
        })
    }

    fn recalled(&self, features: &[Feature]) -> Vec<(u32, f32)> {
        let dictionary = self.model.dictionary();
        let read = features.iter().filter(|feature| matches!(feature.kind, Kind::Word | Kind::Part));
        let words = read.map(|feature| {
            let known = dictionary.place(feature.key);
            let rarity = known.map_or(UNKNOWN_RARITY, |id| self.model.feature(id).rarity);
            ((feature.key ^ (feature.key >> 32)) as u32, feature.field == Field::Name, feature.weight * rarity)
        });
        vector(words.collect())
    }
}

/// Words with whether they stand in the name. Of equal ones that in the name counts, and the heaviest; the name has length one and the rest [`REST`].
fn vector(mut words: Vec<(u32, bool, f32)>) -> Vec<(u32, f32)> {
    let order = |word: &(u32, bool, f32)| (word.0, !word.1);
    words.sort_unstable_by(|a, b| order(a).cmp(&order(b)).then(b.2.total_cmp(&a.2)));
    words.dedup_by_key(|word| word.0);
    let length = |named| {
        let squares = words.iter().filter(|word| word.1 == named).map(|word| word.2 * word.2);
        squares.sum::<f32>().sqrt()
    };
    let (name, rest) = (length(true), length(false));
    let scale = |named| if named { name.recip() } else { REST / rest };
    let mut vector: Vec<(u32, f32)> =
        words.iter().map(|&(word, named, weight)| (word, weight * scale(named))).collect();
    vector.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    vector.truncate(MAX_RECALLED_WORDS);
    let norm = vector.iter().map(|(_, weight)| weight * weight).sum::<f32>().sqrt();
    vector.iter_mut().for_each(|(_, weight)| *weight /= norm);
    vector.retain(|(_, weight)| weight.is_finite() && *weight > 0.0);
    vector
}
