//! Decisions of one account that were learnt together, with an index from words to them; never changed.

use std::cell::RefCell;
use std::collections::HashMap;

use super::Decision;

/// Most decisions that are looked at by one of their words for one question; more have a word only if all do.
const MAX_LOOKED_AT: usize = 20_000;
/// Most decisions of a segment whose likeness is computed in full for one question.
const MAX_COMPARED: usize = 256;

/// Decisions with an index; oldest first.
#[derive(Debug, Default)]
pub(super) struct Segment {
    pub(super) decisions: Vec<Decision>,
    /// Words in order, each with the end of its entries.
    words: Vec<(u32, u32)>,
    /// For each word the decisions that have it.
    entries: Vec<u32>,
}

thread_local! {
    /// Shared weight by decision, of this thread.
    static SHARED: RefCell<HashMap<u32, f32>> = RefCell::default();
}

impl Segment {
    pub(super) fn new(decisions: Vec<Decision>) -> Segment {
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        for (at, decision) in decisions.iter().enumerate() {
            pairs.extend(decision.words.iter().map(|(word, _)| (*word, at as u32)));
        }
        pairs.sort_unstable();
        let mut words: Vec<(u32, u32)> = Vec::new();
        for (end, (word, _)) in (1..).zip(&pairs) {
            match words.last_mut() {
                Some(last) if last.0 == *word => last.1 = end,
                _ => words.push((*word, end)),
            }
        }
        words.shrink_to_fit();
        Segment { decisions, words, entries: pairs.into_iter().map(|(_, at)| at).collect() }
    }

    fn with_word(&self, word: u32) -> &[u32] {
        let Ok(at) = self.words.binary_search_by_key(&word, |(word, _)| *word) else { return &[] };
        let from = if at == 0 { 0 } else { self.words[at - 1].1 };
        &self.entries[from as usize..self.words[at].1 as usize]
    }

    /// Calls `visit` with the decisions that may resemble a text most, and how much each does.
    pub(super) fn alike(&self, text: &[(u32, f32)], mut visit: impl FnMut(usize, f32)) {
        let mut lists: Vec<(&[u32], f32)> = text
            .iter()
            .map(|(word, weight)| (self.with_word(*word), *weight))
            .filter(|list| !list.0.is_empty())
            .collect();
        // Rare words find few decisions and the right ones; the newest are the last of a list.
        lists.sort_by_key(|(list, _)| list.len());
        SHARED.with_borrow_mut(|shared| {
            shared.clear();
            let mut left = MAX_LOOKED_AT;
            for (list, weight) in lists {
                let newest = &list[list.len().saturating_sub(left)..];
                for at in newest {
                    *shared.entry(*at).or_default() += weight * weight;
                }
                left -= newest.len();
                if left == 0 {
                    break;
                }
            }
            let mut found: Vec<(u32, f32)> = shared.iter().map(|(at, weight)| (*at, *weight)).collect();
            if found.len() > MAX_COMPARED {
                found.select_nth_unstable_by(MAX_COMPARED - 1, |a, b| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0)));
                found.truncate(MAX_COMPARED);
            }
            for (at, _) in found {
                visit(at as usize, similarity(text, &self.decisions[at as usize].words));
            }
        });
    }
}

/// Cosine of a text and packed words, 0 to 1.
fn similarity(text: &[(u32, f32)], words: &[(u32, u8)]) -> f32 {
    let weight =
        |word: u32| words.iter().find(|(known, _)| *known == word).map_or(0.0, |(_, weight)| f32::from(*weight));
    (text.iter().map(|(word, own)| own * weight(*word)).sum::<f32>() / 255.0).min(1.0)
}
