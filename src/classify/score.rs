//! Candidates of a text: sparse scores over class profiles, then the nearest rows of the best classes.

use super::features::Field;
use super::model::{Model, Section};
use super::query::Query;

/// Most candidates that are ranked.
pub(crate) const MAX_CANDIDATES: usize = 24;
/// Dense features of a candidate.
pub(crate) const CANDIDATE_FEATURES: usize = 28;
/// Features of a text.
pub(crate) const TEXT_FEATURES: usize = 11;
/// Nearest rows below this similarity say nothing.
const MIN_SIMILARITY: f32 = 0.1;
/// What is added to probabilities before their logarithm is taken.
const FLOOR: f32 = 1e-4;

/// What a text says of a node.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sums {
    /// Learnt weights of the name.
    name: f32,
    /// Learnt weights of tags and description.
    rest: f32,
    /// Similarity to the profile.
    profile: f32,
    /// Squared weight of the features that the node has.
    covered: f32,
    /// Learnt weights of the first word of the naming phrase, and of the last.
    places: [f32; 2],
    /// Squared weights of these that the node has.
    places_covered: [f32; 2],
}

/// A leaf that may be right.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) leaf: usize,
    /// Learnt score of leaf and heading.
    pub(crate) score: f32,
    pub(crate) dense: [f32; CANDIDATE_FEATURES],
}

/// Buffers of the scorer, reused from text to text.
#[derive(Default)]
pub(crate) struct Scorer {
    pub(crate) query: Query,
    sums: Vec<Sums>,
    order: Vec<(f32, u32)>,
    pub(crate) candidates: Vec<Candidate>,
    pub(crate) text: [f32; TEXT_FEATURES],
}

impl Scorer {
    /// Finds the candidates of the query that was read, best first by learnt score, with their dense features.
    pub(crate) fn score(&mut self, model: &Model) {
        self.accumulate(model);
        self.select(model);
        self.query.index();
        self.describe(model);
    }

    fn accumulate(&mut self, model: &Model) {
        self.sums.clear();
        self.sums.resize(model.nodes(), Sums::default());
        for known in &self.query.known {
            let entry = model.feature(known.id);
            let (step, share) = (known.weight * entry.scale, known.weight / 255.0);
            let square = known.weight * known.weight;
            let in_name = known.field == Field::Name;
            let place = self.query.features[known.feature].place;
            let places = [place.first, place.last];
            for &[low, high, weight, profile] in model.postings(&entry) {
                let Some(sums) = self.sums.get_mut(usize::from(u16::from_le_bytes([low, high]))) else { continue };
                let learnt = step * f32::from(weight as i8);
                if in_name {
                    sums.name += learnt;
                } else {
                    sums.rest += learnt;
                }
                sums.profile += share * f32::from(profile);
                sums.covered += square;
                for (at, is_there) in places.into_iter().enumerate() {
                    if is_there {
                        sums.places[at] += learnt;
                        sums.places_covered[at] += square;
                    }
                }
            }
        }
    }

    /// The leaves with the highest learnt scores.
    fn select(&mut self, model: &Model) {
        self.order.clear();
        let leaves = model.leaves();
        let headings = model.array::<2>(Section::LeafHeading);
        let mut worst = f32::MIN;
        for (leaf, heading) in headings.iter().enumerate() {
            let above = &self.sums[leaves + usize::from(u16::from_le_bytes(*heading))];
            if above.covered == 0.0 {
                continue;
            }
            let own = &self.sums[leaf];
            let score = own.name + own.rest + above.name + above.rest;
            if score > worst {
                self.order.push((score, leaf as u32));
                if self.order.len() == 4 * MAX_CANDIDATES {
                    keep_best(&mut self.order);
                    worst = self.order[MAX_CANDIDATES - 1].0;
                }
            }
        }
        keep_best(&mut self.order);
        self.order.sort_unstable_by(by_score);
        self.candidates.clear();
        let candidate =
            |&(score, leaf): &(f32, u32)| Candidate { leaf: leaf as usize, score, dense: [0.0; CANDIDATE_FEATURES] };
        self.candidates.extend(self.order.iter().map(candidate));
    }

    fn describe(&mut self, model: &Model) {
        let Some(best_score) = self.candidates.first().map(|best| best.score) else { return };
        let total: f32 = self.candidates.iter().map(|candidate| (candidate.score - best_score).exp()).sum();
        let mut headings = Vec::with_capacity(self.candidates.len());
        let nearest: Vec<Nearest> =
            self.candidates.iter().map(|candidate| self.nearest(model, candidate.leaf)).collect();
        for (index, candidate) in self.candidates.iter().enumerate() {
            let heading = model.heading_of(candidate.leaf);
            let share = (candidate.score - best_score).exp() / total;
            let mut group = Group { heading, share: 0.0, nearest: 0.0 };
            group.share += share;
            group.nearest = nearest[index].best;
            match headings.iter_mut().find(|known: &&mut Group| known.heading == heading) {
                Some(known) => {
                    known.share += share;
                    known.nearest = known.nearest.max(group.nearest);
                }
                None => headings.push(group),
            }
        }
        let best_of = |value: &dyn Fn(usize) -> f32| (0..self.candidates.len()).map(value).fold(0.0f32, f32::max);
        let sums = |index: usize| {
            (self.sums[self.candidates[index].leaf], self.sums[model.heading_of(self.candidates[index].leaf)])
        };
        let best_profile = best_of(&|index| sums(index).0.profile);
        let best_heading_profile = best_of(&|index| sums(index).1.profile);
        let best_covered = best_of(&|index| sums(index).1.covered);
        let best_nearest = best_of(&|index| nearest[index].best);
        let all_nearest: f32 = nearest.iter().map(|nearest| nearest.cubes).sum::<f32>() + FLOOR;
        let best = sums(0);
        let place_totals = self.query.place_squares.map(|square| square + FLOOR);
        let place_learnt = |index: usize, at: usize| sums(index).0.places[at] + sums(index).1.places[at];
        let best_places = [0, 1].map(|at| best_of(&|index| place_learnt(index, at)));
        let best_places_covered =
            [0, 1].map(|at| best_of(&|index| sums(index).1.places_covered[at] / place_totals[at]));
        let mut dense = Vec::with_capacity(self.candidates.len());
        for (index, candidate) in self.candidates.iter().enumerate() {
            let (own, above) = sums(index);
            let near = &nearest[index];
            let group = headings.iter().find(|group| group.heading == model.heading_of(candidate.leaf));
            let (group_share, group_nearest) = group.map_or((0.0, 0.0), |group| (group.share, group.nearest));
            let share = (candidate.score - best_score).exp() / total;
            dense.push([
                (candidate.score - best_score).max(-12.0) / 4.0,
                (share + FLOOR).ln() / 4.0,
                (group_share + FLOOR).ln() / 4.0,
                share / (group_share + FLOOR),
                candidate.score.clamp(-20.0, 20.0) / 10.0,
                (own.name + above.name - best.0.name - best.1.name).clamp(-12.0, 12.0) / 4.0,
                (own.rest + above.rest - best.0.rest - best.1.rest).clamp(-12.0, 12.0) / 4.0,
                own.profile,
                above.profile,
                own.profile / (best_profile + FLOOR),
                above.profile / (best_heading_profile + FLOOR),
                own.covered,
                above.covered,
                above.covered - best_covered,
                near.best,
                group_nearest,
                near.best / (best_nearest + FLOOR),
                f32::from(near.best >= best_nearest && best_nearest > 0.0),
                near.cubes / all_nearest,
                f32::from(index == 0),
                (model.rows_of(candidate.leaf).len() as f32).ln_1p() / 4.0,
                own.covered - above.covered,
                (place_learnt(index, 0) - best_places[0]).max(-12.0) / 4.0,
                (place_learnt(index, 1) - best_places[1]).max(-12.0) / 4.0,
                own.places_covered[0] / place_totals[0],
                own.places_covered[1] / place_totals[1],
                above.places_covered[0] / place_totals[0],
                above.places_covered[1] / place_totals[1],
            ]);
        }
        for (candidate, dense) in self.candidates.iter_mut().zip(dense) {
            candidate.dense = dense;
        }
        let best_share = headings.iter().map(|group| group.share).fold(0.0, f32::max);
        self.text = [
            1.0,
            self.query.unknown_share,
            best_covered,
            best_nearest,
            best_share,
            best_score.clamp(-20.0, 20.0) / 10.0,
            (self.query.evidence as f32).ln_1p() / 3.0,
            best.1.places_covered[0] / place_totals[0],
            best.1.places_covered[1] / place_totals[1],
            best_places_covered[1] - best.1.places_covered[1] / place_totals[1],
            f32::from(self.query.last_unknown),
        ];
    }

    /// Similarity of the text to the rows of a leaf.
    fn nearest(&self, model: &Model, leaf: usize) -> Nearest {
        let mut nearest = Nearest::default();
        for row in model.rows_of(leaf) {
            let similarity = self.similarity(model, row);
            if similarity > MIN_SIMILARITY {
                nearest.best = nearest.best.max(similarity);
                nearest.cubes += similarity * similarity * similarity;
            }
        }
        nearest
    }

    /// Cosine of the text and a row.
    pub(crate) fn similarity(&self, model: &Model, row: usize) -> f32 {
        let features = model.row_features(row).iter().map(|packed| u32::from_le_bytes(*packed));
        features.map(|packed| self.query.weight_of(packed & 0xff_ffff) * (packed >> 24) as f32).sum::<f32>() / 255.0
    }
}

/// How near the rows of a leaf are.
#[derive(Clone, Copy, Debug, Default)]
struct Nearest {
    best: f32,
    cubes: f32,
}

/// Candidates of one heading.
struct Group {
    heading: usize,
    share: f32,
    nearest: f32,
}

/// Keeps the [`MAX_CANDIDATES`] best, the last of them at the end.
fn keep_best(order: &mut Vec<(f32, u32)>) {
    if order.len() > MAX_CANDIDATES {
        order.select_nth_unstable_by(MAX_CANDIDATES - 1, by_score);
        order.truncate(MAX_CANDIDATES);
    }
}

fn by_score(a: &(f32, u32), b: &(f32, u32)) -> std::cmp::Ordering {
    b.0.total_cmp(&a.0).then(a.1.cmp(&b.1))
}
