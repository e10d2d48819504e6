//! Decisions of one account that were learnt together, with an index from words to them; never changed.
//!
//! Kept by columns: of a million decisions every byte counts.

use std::cell::RefCell;

use uuid::Uuid;

use super::{Decision, Opinion};
use crate::domain::{ProductClass, Segment as Side, Taxonomy};

/// A decision without its words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fact {
    pub(super) assignment: Uuid,
    pub(super) class: ProductClass,
    pub(super) opinion: Opinion,
    pub(super) side: Side,
    pub(super) against: bool,
}

/// A decision with its words in the order of weight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known<'a> {
    pub(super) fact: &'a Fact,
    taxonomy: Taxonomy,
    hashes: &'a [u32],
    weights: &'a [u8],
}

impl<'a> Known<'a> {
    /// The words with their weights, 0 to 1.
    pub(super) fn words(&self) -> impl Iterator<Item = (u32, f32)> + 'a {
        self.hashes.iter().zip(self.weights).map(|(hash, weight)| (*hash, f32::from(*weight) / 255.0))
    }

    /// Whether a word is among them.
    pub(super) fn has(&self, word: u32) -> bool {
        self.hashes.contains(&word)
    }
}

/// Decisions with an index; oldest first.
#[derive(Debug, Default)]
pub(super) struct Segment {
    facts: Vec<Fact>,
    /// Taxonomies of the decisions: apart, since a lookup asks for thousands of them and for few of the facts.
    taxonomies: Vec<Taxonomy>,
    /// For each decision where its words end.
    ends: Vec<u32>,
    hashes: Vec<u32>,
    weights: Vec<u8>,
    /// Words in order, each with the end of its entries.
    words: Vec<(u32, u32)>,
    /// For each word the decisions that have it.
    entries: Vec<u32>,
}

thread_local! {
    /// Shared weight by decision and the decisions that share any, of this thread; all weights are 0 between questions.
    static SHARED: RefCell<(Vec<f32>, Vec<u32>)> = RefCell::default();
}

impl Segment {
    /// Puts decisions together: those of older segments that still hold, then new ones.
    pub(super) fn new<'a>(older: impl Iterator<Item = Known<'a>>, new: &[Decision]) -> Segment {
        let mut segment = Segment::default();
        for known in older {
            segment.push(*known.fact, known.taxonomy, known.hashes.iter().copied().zip(known.weights.iter().copied()));
        }
        for decision in new {
            let Decision { assignment, class, opinion, side, taxonomy, against, ref words } = *decision;
            segment.push(Fact { assignment, class, opinion, side, against }, taxonomy, words.iter().copied());
        }
        segment.index();
        segment
    }

    fn push(&mut self, fact: Fact, taxonomy: Taxonomy, words: impl Iterator<Item = (u32, u8)>) {
        self.facts.push(fact);
        self.taxonomies.push(taxonomy);
        for (hash, weight) in words {
            self.hashes.push(hash);
            self.weights.push(weight);
        }
        self.ends.push(self.hashes.len() as u32);
    }

    fn index(&mut self) {
        let mut pairs: Vec<(u32, u32)> = Vec::with_capacity(self.hashes.len());
        for at in 0..self.facts.len() {
            pairs.extend(self.range(at).map(|word| (self.hashes[word], at as u32)));
        }
        pairs.sort_unstable();
        for (end, (word, _)) in (1..).zip(&pairs) {
            match self.words.last_mut() {
                Some(last) if last.0 == *word => last.1 = end,
                _ => self.words.push((*word, end)),
            }
        }
        self.entries = pairs.into_iter().map(|(_, at)| at).collect();
        self.facts.shrink_to_fit();
        self.taxonomies.shrink_to_fit();
        self.ends.shrink_to_fit();
        self.hashes.shrink_to_fit();
        self.weights.shrink_to_fit();
        self.words.shrink_to_fit();
    }

    /// How many decisions there are, whether they hold or not.
    pub(super) fn len(&self) -> usize {
        self.facts.len()
    }

    /// Bytes that the segment takes.
    pub(super) fn bytes(&self) -> usize {
        self.facts.capacity() * size_of::<Fact>()
            + self.taxonomies.capacity() * size_of::<Taxonomy>()
            + (self.ends.capacity() + self.hashes.capacity() + self.entries.capacity()) * size_of::<u32>()
            + self.weights.capacity()
            + self.words.capacity() * size_of::<(u32, u32)>()
    }

    /// A decision by its place.
    pub(super) fn known(&self, at: usize) -> Known<'_> {
        let range = self.range(at);
        let (fact, taxonomy) = (&self.facts[at], self.taxonomies[at]);
        Known { fact, taxonomy, hashes: &self.hashes[range.clone()], weights: &self.weights[range] }
    }

    /// The taxonomy of a decision by its place.
    pub(super) fn taxonomy(&self, at: usize) -> Taxonomy {
        self.taxonomies[at]
    }

    fn range(&self, at: usize) -> std::ops::Range<usize> {
        let from = if at == 0 { 0 } else { self.ends[at - 1] };
        from as usize..self.ends[at] as usize
    }

    fn with_word(&self, word: u32) -> &[u32] {
        let Ok(at) = self.words.binary_search_by_key(&word, |(word, _)| *word) else { return &[] };
        let from = if at == 0 { 0 } else { self.words[at - 1].1 };
        &self.entries[from as usize..self.words[at].1 as usize]
    }

    /// Calls `visit` with decisions that share words with a text and how much those weigh; looks at no more than `most`
    /// decisions, one that has two of the words twice.
    pub(super) fn sharing(&self, text: &[(u32, f32)], most: usize, mut visit: impl FnMut(usize, f32)) {
        let mut lists: Vec<(&[u32], f32)> = text
            .iter()
            .map(|(word, weight)| (self.with_word(*word), *weight))
            .filter(|list| !list.0.is_empty())
            .collect();
        // Rare words find few decisions and the right ones; the newest are the last of a list.
        lists.sort_by_key(|(list, _)| list.len());
        SHARED.with_borrow_mut(|(shared, touched)| {
            if shared.len() < self.facts.len() {
                shared.resize(self.facts.len(), 0.0);
            }
            let mut left = most;
            for (list, weight) in lists {
                let newest = &list[list.len().saturating_sub(left)..];
                for &at in newest {
                    let sum = &mut shared[at as usize];
                    if *sum == 0.0 {
                        touched.push(at);
                    }
                    *sum += (weight * weight).max(f32::MIN_POSITIVE);
                }
                left -= newest.len();
                if left == 0 {
                    break;
                }
            }
            for at in touched.drain(..) {
                visit(at as usize, std::mem::take(&mut shared[at as usize]));
            }
        });
    }
}
