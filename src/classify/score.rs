//! Candidates of a text: the leaves with the highest learnt scores, and the best ones of the second voice's headings.

use super::best::{by_score, keep_best_of, keep_best_of_groups};
use super::features::FIELDS;
use super::model::Model;
use super::query::Query;
use super::sums::Sums;
use super::voices::{SECOND_STEP, Voices};

/// Most candidates by learnt score.
const MAX_BY_SCORE: usize = 24;
/// Most headings of the second voice that join them with their best leaf.
const MAX_BY_VOICE: usize = 6;
/// Most candidates.
pub(super) const MAX_CANDIDATES: usize = MAX_BY_SCORE + MAX_BY_VOICE;
/// Dense features of a candidate.
pub(super) const CANDIDATE_FEATURES: usize = 44;
/// Features of a text.
pub(super) const TEXT_FEATURES: usize = 32;
/// Weight of name, tags and description in choosing candidates, where a name says anything.
const CHOICE: [f32; FIELDS] = [1.0, 0.35, 0.5];

/// A leaf that may be right.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) leaf: usize,
    /// Learnt score of leaf and heading by the words that name the good.
    pub(crate) score: f32,
    pub(crate) dense: [f32; CANDIDATE_FEATURES],
}

/// What the naming words say of a node, beyond its score.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Detail {
    /// Similarity to the profile.
    pub(super) profile: f32,
    /// Squared weight of the features that the node has.
    pub(super) covered: f32,
    /// Learnt weights of the first word of the naming phrase, and of the last.
    pub(super) places: [f32; 2],
    /// Squared weights of these that the node has.
    pub(super) places_covered: [f32; 2],
}

/// Buffers of the scorer, reused from text to text.
#[derive(Default)]
pub(crate) struct Scorer {
    pub(crate) query: Query,
    /// Learnt weights by node and field.
    pub(super) learnt: Sums,
    pub(super) voices: Voices,
    /// Scores by node, for the choice of candidates.
    choice: Vec<f32>,
    order: Vec<(f32, u32)>,
    /// For each node one more than its place in `details`, 0 when it has none.
    slots: Vec<u8>,
    details: Vec<Detail>,
    pub(crate) candidates: Vec<Candidate>,
    pub(crate) text: [f32; TEXT_FEATURES],
}

impl Scorer {
    /// Finds the candidates of the query that was read, best first by learnt score.
    pub(super) fn score(&mut self, model: &Model) {
        self.accumulate(model);
        self.voices.settle(model, &self.query);
        self.select(model);
        self.detail(model);
        self.query.index();
    }

    fn accumulate(&mut self, model: &Model) {
        let mut there = [false; FIELDS];
        self.query.known.iter().for_each(|known| there[known.field as usize] = true);
        let nodes = model.nodes();
        self.learnt.clear(there, nodes);
        self.voices.second.clear(there, nodes - model.leaves());
        for known in &self.query.known {
            let entry = model.feature(known.id);
            let (step, second) = (known.weight * entry.scale, known.weight * SECOND_STEP);
            let learnt = self.learnt.of_field_mut(known.field as usize);
            let voice = self.voices.second.of_field_mut(known.field as usize);
            for &[low, high, weight, profile] in model.postings(&entry) {
                let node = usize::from(u16::from_le_bytes([low, high]));
                if let Some(sum) = learnt.get_mut(node) {
                    *sum += step * f32::from(weight as i8);
                } else if let Some(sum) = voice.get_mut(node - nodes) {
                    *sum += second * f32::from(i16::from_le_bytes([weight, profile]));
                }
            }
        }
    }

    /// The leaves with the highest scores over all fields, and the best leaves of headings that only the second voice has.
    fn select(&mut self, model: &Model) {
        let naming = self.query.naming;
        let shares = if naming[0] > 0.0 { CHOICE } else { naming };
        self.learnt.weigh_all(model.nodes(), &shares, &mut self.choice);
        let (below, above) = self.choice.split_at(model.leaves());
        let heard = above.iter().enumerate().filter(|(_, above)| **above != 0.0);
        let groups = heard.map(|(heading, &above)| (model.leaves_of_heading(heading), above));
        keep_best_of_groups(below, groups, MAX_BY_SCORE, &mut self.order);
        let mut chosen: Vec<u32> = self.order.iter().map(|&(_, leaf)| leaf).collect();
        keep_best_of(&self.voices.of_features.shares, MAX_BY_VOICE, &mut self.order);
        for &(_, heading) in &self.order {
            let leaves = model.leaves_of_heading(heading as usize);
            if !chosen.iter().any(|leaf| leaves.contains(&(*leaf as usize))) {
                let best = leaves.max_by(|a, b| below[*a].total_cmp(&below[*b]).then(b.cmp(a)));
                chosen.extend(best.map(|leaf| leaf as u32));
            }
        }
        self.order.clear();
        let named = |leaf: usize| self.learnt.weigh(leaf, &naming) + self.learnt.weigh(model.heading_of(leaf), &naming);
        self.order.extend(chosen.into_iter().map(|leaf| (named(leaf as usize), leaf)));
        self.order.sort_unstable_by(by_score);
        self.candidates.clear();
        let candidate =
            |&(score, leaf): &(f32, u32)| Candidate { leaf: leaf as usize, score, dense: [0.0; CANDIDATE_FEATURES] };
        self.candidates.extend(self.order.iter().map(candidate));
    }

    /// Adds up what is needed of the candidates and their headings alone.
    fn detail(&mut self, model: &Model) {
        self.slots.clear();
        self.slots.resize(model.nodes(), 0);
        self.details.clear();
        for candidate in &self.candidates {
            for node in [candidate.leaf, model.heading_of(candidate.leaf)] {
                if self.slots[node] == 0 {
                    self.details.push(Detail::default());
                    self.slots[node] = self.details.len() as u8;
                }
            }
        }
        const { assert!(2 * MAX_CANDIDATES <= u8::MAX as usize, "a slot is a byte") };
        for known in &self.query.known {
            let weight = known.weight * self.query.naming[known.field as usize];
            if weight == 0.0 {
                continue;
            }
            let entry = model.feature(known.id);
            let (step, share, square) = (weight * entry.scale, weight / 255.0, weight * weight);
            let place = self.query.features[known.feature].place;
            let places = [place.first, place.last];
            for &[low, high, learnt, profile] in model.postings(&entry) {
                let slot = self.slots.get(usize::from(u16::from_le_bytes([low, high]))).copied().unwrap_or(0);
                let Some(detail) = usize::from(slot).checked_sub(1).and_then(|at| self.details.get_mut(at)) else {
                    continue;
                };
                detail.profile += share * f32::from(profile);
                detail.covered += square;
                for (at, is_there) in places.into_iter().enumerate() {
                    if is_there {
                        detail.places[at] += step * f32::from(learnt as i8);
                        detail.places_covered[at] += square;
                    }
                }
            }
        }
    }

    /// What was added up of a node.
    pub(super) fn detail_of(&self, node: usize) -> Detail {
        let at = usize::from(self.slots[node]).checked_sub(1);
        at.and_then(|at| self.details.get(at)).copied().unwrap_or_default()
    }

    /// Cosine of the naming words and a row.
    pub(crate) fn similarity(&self, model: &Model, row: usize) -> f32 {
        let features = model.row_features(row).iter().map(|packed| u32::from_le_bytes(*packed));
        features.map(|packed| self.query.weight_of(packed & 0xff_ffff) * (packed >> 24) as f32).sum::<f32>() / 255.0
    }
}
