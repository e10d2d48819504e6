//! The second and the third opinion about the heading of a text.
//!
//! The second voice is a multinomial over headings, learnt from zero over the same features as the first; it stands in the
//! postings behind leaves and headings. The third knows words as they are written, as vectors of few dimensions made of
//! the headings in which they stand, under a multinomial of its own. Neither is better than the first; but where they
//! name another heading the first is often wrong.

use super::features::FIELDS;
use super::model::{Model, Section};
use super::query::Query;
use super::sums::Sums;
use super::{Classifier, ProductText, SCORER};

pub use super::model::{DIMENSIONS, HEADING_GROUP, WORD_VECTOR};

/// Weight of one step of a weight of the second voice.
pub const SECOND_STEP: f32 = 1.0 / 1024.0;

/// What the voices say of a text, by index of the heading.
#[derive(Default)]
pub(crate) struct Voices {
    /// Scores of the second voice by field.
    pub(crate) second: Sums,
    /// Probabilities of the second voice by the words that name the good.
    pub(crate) of_features: Opinion,
    /// Probabilities of the second voice by name and description together, where there are both.
    pub(crate) of_description: Opinion,
    /// Probabilities of the third voice by the same words.
    pub(crate) of_words: Opinion,
    /// Probabilities of the second voice by tags and by description, where they do not name the good themselves.
    pub(crate) of_field: [Opinion; FIELDS],
}

/// Probabilities over all headings.
#[derive(Default)]
pub(crate) struct Opinion {
    /// Empty when the voice has nothing to say.
    pub(crate) shares: Vec<f32>,
    /// The heading that it puts first.
    pub(crate) best: usize,
}

impl Opinion {
    /// Probability of a heading; the same for all when the voice has nothing to say.
    #[inline]
    pub(crate) fn share(&self, heading: usize) -> f32 {
        self.shares.get(heading).copied().unwrap_or(0.0)
    }

    /// Probability of the heading that it puts first.
    pub(crate) fn best_share(&self) -> f32 {
        self.share(self.best)
    }

    fn clear(&mut self) {
        self.shares.clear();
        self.best = usize::MAX;
    }

    /// Makes probabilities of the scores that were put in.
    fn settle(&mut self) {
        let highest = in_lanes(&self.shares, f32::MIN, |highest, score| if score > highest { score } else { highest });
        if let Some(best) = self.shares.iter().position(|&score| score == highest) {
            self.best = best;
        }
        self.shares.iter_mut().for_each(|share| *share = exponential(*share - highest));
        let total = in_lanes(&self.shares, 0.0, |total, share| total + share);
        self.shares.iter_mut().for_each(|share| *share /= total);
    }
}

/// Puts many numbers into one, in an order of which the compiler can compute several at once.
fn in_lanes(values: &[f32], first: f32, put: impl Fn(f32, f32) -> f32) -> f32 {
    const LANES: usize = 16;
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut lanes = [first; LANES];
    for chunk in chunks {
        lanes.iter_mut().zip(chunk).for_each(|(lane, value)| *lane = put(*lane, *value));
    }
    lanes.into_iter().chain(rest.iter().copied()).fold(first, put)
}

impl Voices {
    /// Settles the opinions on a text whose features have been added up.
    pub(crate) fn settle(&mut self, model: &Model, query: &Query) {
        let (naming, headings) = (query.naming, model.nodes() - model.leaves());
        self.of_features.clear();
        self.second.weigh_all(headings, &naming, &mut self.of_features.shares);
        self.of_features.settle();
        self.of_description.clear();
        if query.is_described() {
            self.second.weigh_all(headings, &query.with_description(), &mut self.of_description.shares);
            self.of_description.settle();
        }
        for (field, opinion) in self.of_field.iter_mut().enumerate() {
            opinion.clear();
            if naming[field] == 0.0 && query.evidence[field] > 0 {
                opinion.shares.extend_from_slice(self.second.of_field(field));
                opinion.settle();
            }
        }
        self.of_words.clear();
        if let Some(direction) = direction(model, query) {
            self.hear(model, headings, &direction);
            self.of_words.settle();
        }
    }

    /// Scores of the third voice, of a group of headings at a time, so that its sums stay at hand.
    fn hear(&mut self, model: &Model, headings: usize, direction: &[f32; DIMENSIONS]) {
        let weights = model.array::<{ 4 * HEADING_GROUP }>(Section::HeadingVectors);
        let scores = &mut self.of_words.shares;
        for group in weights.chunks_exact(DIMENSIONS + 1) {
            let mut sums = [0.0f32; HEADING_GROUP];
            for (x, row) in direction.iter().chain([&1.0]).zip(group) {
                let (row, _) = row.as_chunks::<4>();
                sums.iter_mut().zip(row).for_each(|(sum, weight)| *sum += x * f32::from_le_bytes(*weight));
            }
            scores.extend(sums);
        }
        scores.truncate(headings);
    }
}

/// What is needed of a text to fit the third voice.
impl Classifier {
    /// The words of the text that name the good and have a vector: indices of the vectors, and weights.
    pub fn naming_words(&self, text: &ProductText<'_>) -> Vec<(u32, f32)> {
        SCORER.with_borrow_mut(|scorer| {
            scorer.query.read(&self.model, text);
            naming_words(&self.model, &scorer.query).collect()
        })
    }

    /// The direction of these words over the vectors of the model; none when there is none.
    pub fn direction(&self, text: &ProductText<'_>) -> Option<[f32; DIMENSIONS]> {
        SCORER.with_borrow_mut(|scorer| {
            scorer.query.read(&self.model, text);
            direction(&self.model, &scorer.query)
        })
    }
}

fn naming_words<'q>(model: &'q Model, query: &'q Query) -> impl Iterator<Item = (u32, f32)> + 'q {
    let words = model.words();
    query.extractor().plain_words().iter().filter_map(move |word| {
        let weight = word.weight * query.naming[word.field as usize];
        let at = (weight > 0.0).then(|| words.place(word.key)).flatten()?;
        Some((at, weight))
    })
}

/// The sum of the vectors of the naming words, cut to length one; none when no word has one.
fn direction(model: &Model, query: &Query) -> Option<[f32; DIMENSIONS]> {
    let vectors = model.array::<WORD_VECTOR>(Section::WordVectors);
    let mut sum = [0.0f32; DIMENSIONS];
    for (at, weight) in naming_words(model, query) {
        let Some([a, b, c, d, steps @ ..]) = vectors.get(at as usize) else { continue };
        let scale = weight * f32::from_le_bytes([*a, *b, *c, *d]);
        for (sum, &step) in sum.iter_mut().zip(steps) {
            *sum += scale * f32::from(step as i8);
        }
    }
    let length = sum.iter().map(|x| x * x).sum::<f32>().sqrt();
    (length > 0.0).then(|| sum.map(|x| x / length))
}

/// The exponential function to six digits, for arguments of at most 80; in this form the compiler computes many at once.
#[inline]
pub fn exponential(x: f32) -> f32 {
    const TO_NEAREST: f32 = 12_582_912.0;
    let scaled = (x * std::f32::consts::LOG2_E).max(-126.0);
    let whole = (scaled + TO_NEAREST) - TO_NEAREST;
    let part = (scaled - whole) * std::f32::consts::LN_2;
    let series = 1.0 + part * (1.0 + part * (0.5 + part * (1.0 / 6.0 + part * (1.0 / 24.0 + part * (1.0 / 120.0)))));
    series * f32::from_bits(((whole as i32 + 127) as u32) << 23)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fast_exponential_is_the_exponential() {
        for step in -870..=800 {
            let x = step as f32 / 10.0;
            let (fast, exact) = (exponential(x), x.exp());
            assert!((fast - exact).abs() <= 1e-5 * exact, "{x}: {fast} {exact}");
        }
        assert!(exponential(-1000.0) < 1e-37);
    }

    #[test]
    fn opinions_are_probabilities_with_the_best_first() {
        let mut opinion = Opinion { shares: vec![0.0, 2.0, -1.0], best: usize::MAX };
        opinion.settle();
        assert_eq!(opinion.best, 1);
        assert!((opinion.shares.iter().sum::<f32>() - 1.0).abs() < 1e-6);
        assert!((opinion.share(1) / opinion.share(0) - 2.0f32.exp()).abs() < 1e-3);
        opinion.clear();
        assert_eq!((opinion.share(1), opinion.best_share()), (0.0, 0.0));
    }
}
