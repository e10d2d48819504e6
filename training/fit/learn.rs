//! Learns the weight of every feature for every class in whose rows it stands.
//!
//! The score of a leaf is the sum, over the features of a text, of a weight for the leaf and one for its heading. Weights
//! begin as the profile (damped centroid) of leaf and heading and are then improved by gradient steps on the softmax over
//! the best leaves of each row. Only pairs that occur have a weight, so that the model stays sparse.

use std::collections::HashMap;
use std::ops::Range;

use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;
use vat_classification::classify::best::keep_best_of_groups;
use vat_classification::classify::voices::exponential;
use vat_classification::classify::words::Language;
use vat_classification::domain::ClassCode;

use super::{Sample, SampleKind};
use crate::random::Random;

/// A leaf or heading: leaves first.
pub(crate) type Node = u16;

/// Rounds over all rows.
const ROUNDS: usize = 6;
/// Rows whose gradients are computed from the same weights.
const BATCH: usize = 256;
/// Step of a weight whose gradients were small so far.
const STEP: f32 = 0.5;
/// Scale of the profile at the beginning.
const PROFILE_SCALE: f32 = 12.0;
/// Exponent by which the number of rows damps the profile of a class.
const CLASS_DAMPING: f32 = 0.5;
/// Leaves that compete for a row.
const COMPETITORS: usize = 48;
/// Gradients below this are not worth a step.
const MIN_GRADIENT: f32 = 1e-3;
/// Weight of a label beside a row.
const LABEL_WEIGHT: f32 = 1.0;

/// The classes: leaves in rising order, and the headings above them.
pub(crate) struct Tree {
    pub(crate) leaves: Vec<u32>,
    pub(crate) headings: Vec<u32>,
    pub(crate) heading_of_leaf: Vec<u16>,
    leaves_of_heading: Vec<Range<usize>>,
}

impl Tree {
    pub(crate) fn new(leaves: &[u32]) -> Tree {
        let mut headings: Vec<u32> = leaves.iter().map(|leaf| leaf / 100).collect();
        headings.dedup();
        let index = |leaf: &u32| headings.partition_point(|&heading| heading < leaf / 100) as u16;
        let heading_of_leaf = leaves.iter().map(index).collect();
        let first_leaf = |heading: u32| leaves.partition_point(|leaf| leaf / 100 < heading);
        let leaves_of_heading = headings.iter().map(|&heading| first_leaf(heading)..first_leaf(heading + 1)).collect();
        Tree { leaves: leaves.to_vec(), headings, heading_of_leaf, leaves_of_heading }
    }

    pub(crate) fn nodes(&self) -> usize {
        self.leaves.len() + self.headings.len()
    }

    /// The leaf of a six-digit code.
    pub(crate) fn leaf(&self, code: &ClassCode) -> Option<Node> {
        let range = self.under(code);
        (code.digits() == 6 && range.len() == 1).then_some(range.start as Node)
    }

    /// The leaves at or below a code.
    pub(crate) fn under(&self, code: &ClassCode) -> Range<usize> {
        let scale = 10u32.pow(6 - code.digits() as u32);
        let first = code.as_str().parse::<u32>().unwrap_or(0) * scale;
        let at = |limit| self.leaves.partition_point(|&leaf| leaf < limit);
        at(first)..at(first + scale)
    }

    /// The headings, by index, of a range of leaves.
    pub(crate) fn headings_of(&self, leaves: &Range<usize>) -> Range<usize> {
        match leaves.clone().last() {
            Some(last) => usize::from(self.heading_of_leaf[leaves.start])..usize::from(self.heading_of_leaf[last]) + 1,
            None => 0..0,
        }
    }

    fn heading_node(&self, leaf: usize) -> usize {
        self.leaves.len() + usize::from(self.heading_of_leaf[leaf])
    }
}

/// How many rows each code has in each language.
pub(crate) struct RowCounts(HashMap<(ClassCode, Language), u32>);

impl RowCounts {
    pub(crate) fn of(samples: &[&Sample]) -> RowCounts {
        let mut counts = HashMap::new();
        samples.iter().for_each(|sample| *counts.entry((sample.code, sample.language)).or_insert(0) += 1);
        RowCounts(counts)
    }

    /// What a row counts beside others: less where its code has many.
    pub(crate) fn weight(&self, sample: &Sample) -> f32 {
        (8.0 / self.rows(sample)).sqrt().min(1.5)
    }

    fn rows(&self, sample: &Sample) -> f32 {
        self.0.get(&(sample.code, sample.language)).copied().unwrap_or(1) as f32
    }
}

/// Rows as vectors.
pub(crate) struct Rows {
    pub(super) vectors: Vec<Vec<(u32, f32)>>,
    pub(super) targets: Vec<Range<usize>>,
    pub(super) weights: Vec<f32>,
}

impl Rows {
    pub(crate) fn new(tree: &Tree, samples: &[&Sample], vectors: Vec<Vec<(u32, f32)>>) -> Rows {
        let targets: Vec<Range<usize>> = samples.iter().map(|sample| tree.under(&sample.code)).collect();
        let counts = RowCounts::of(samples);
        let weight = |sample: &&Sample| {
            let of_kind = if sample.kind == SampleKind::Label { LABEL_WEIGHT } else { 1.0 };
            // Not by `RowCounts::weight`: the root that it takes differs in the last bit, and so would the model.
            of_kind * (8.0 / counts.rows(sample)).powf(0.5).min(1.5)
        };
        let weights = samples.iter().map(weight).collect();
        Rows { vectors, targets, weights }
    }
}

/// Weights by feature, in compressed rows.
#[derive(Default)]
pub(crate) struct Weights {
    starts: Vec<usize>,
    nodes: Vec<Node>,
    learnt: Vec<f32>,
    profile: Vec<f32>,
}

impl Weights {
    /// Nodes of a feature with learnt weight and share in the profile.
    pub(crate) fn of(&self, feature: usize) -> impl Iterator<Item = (Node, f32, f32)> + '_ {
        let range = match self.starts.get(feature..feature + 2) {
            Some(&[start, end]) => start..end,
            _ => 0..0,
        };
        range.map(|at| (self.nodes[at], self.learnt[at], self.profile[at]))
    }

    fn range(&self, feature: u32) -> Range<usize> {
        self.starts[feature as usize]..self.starts[feature as usize + 1]
    }

    /// The profiles of all nodes as first weights.
    fn profiles(tree: &Tree, rows: &Rows, features: usize) -> Weights {
        let mut triples: Vec<(u32, Node, f32)> = Vec::new();
        for ((vector, target), weight) in rows.vectors.iter().zip(&rows.targets).zip(&rows.weights) {
            let nodes = nodes_of(tree, target);
            for &(feature, x) in vector {
                triples.extend(nodes.iter().map(|&node| (feature, node, x * weight / nodes.len().min(8) as f32)));
            }
        }
        triples.par_sort_by_key(|&(feature, node, _)| (feature, node));
        let mut weights = Weights { starts: vec![0; features + 1], ..Weights::default() };
        let mut last = None;
        for (feature, node, x) in triples {
            if last != Some((feature, node)) {
                weights.nodes.push(node);
                weights.profile.push(0.0);
                weights.starts[feature as usize + 1] += 1;
                last = Some((feature, node));
            }
            if let Some(sum) = weights.profile.last_mut() {
                *sum += x;
            }
        }
        for feature in 0..features {
            weights.starts[feature + 1] += weights.starts[feature];
        }
        let mut squares = vec![0.0f32; tree.nodes()];
        for (&node, &x) in weights.nodes.iter().zip(&weights.profile) {
            squares[usize::from(node)] += x * x;
        }
        for (&node, x) in weights.nodes.iter().zip(&mut weights.profile) {
            *x /= squares[usize::from(node)].powf(CLASS_DAMPING).max(1e-6);
        }
        weights.learnt = weights.profile.iter().map(|x| x * PROFILE_SCALE).collect();
        weights
    }
}

/// The nodes a row with these target leaves belongs to: leaf and heading, or headings alone when the leaf is open.
fn nodes_of(tree: &Tree, target: &Range<usize>) -> Vec<Node> {
    let mut nodes: Vec<Node> = if target.len() == 1 { vec![target.start as Node] } else { Vec::new() };
    let mut headings: Vec<Node> = target.clone().map(|leaf| tree.heading_node(leaf) as Node).collect();
    headings.dedup();
    nodes.append(&mut headings);
    nodes
}

/// Learns the weights; the same rows give the same weights.
pub(crate) fn learn(tree: &Tree, rows: &Rows, features: usize) -> Weights {
    let mut weights = Weights::profiles(tree, rows, features);
    let mut squares = vec![0.0f32; weights.nodes.len()];
    let mut order: Vec<usize> = (0..rows.vectors.len()).collect();
    let progress = ProgressBar::new((ROUNDS * order.len()) as u64);
    if let Ok(style) = ProgressStyle::with_template("  learning {bar:40} {percent:>3} % {eta}") {
        progress.set_style(style);
    }
    let mut random = Random(1);
    for round in 0..ROUNDS {
        random.mix(&mut order);
        let step = STEP * (1.0 - round as f32 / ROUNDS as f32);
        for batch in order.chunks(BATCH) {
            let one = |competition: &mut Competition, &row: &usize| competition.gradient(tree, rows, &weights, row);
            let gradients: Vec<Vec<(u32, f32)>> = batch.par_iter().map_init(|| Competition::new(tree), one).collect();
            for (at, gradient) in gradients.into_iter().flatten() {
                let at = at as usize;
                squares[at] += gradient * gradient;
                weights.learnt[at] -= step * gradient / (squares[at].sqrt() + 0.05);
            }
            progress.inc(batch.len() as u64);
        }
    }
    progress.finish_and_clear();
    weights
}

/// Buffers for the gradient of one row.
struct Competition {
    scores: Vec<f32>,
    errors: Vec<f32>,
    order: Vec<(f32, u32)>,
}

impl Competition {
    fn new(tree: &Tree) -> Competition {
        let zeros = vec![0.0; tree.nodes()];
        Competition { scores: zeros.clone(), errors: zeros, order: Vec::new() }
    }

    /// Gradient of a row's loss: index of the weight, slope.
    fn gradient(&mut self, tree: &Tree, rows: &Rows, weights: &Weights, row: usize) -> Vec<(u32, f32)> {
        let vector = &rows.vectors[row];
        self.scores.fill(0.0);
        for &(feature, x) in vector {
            for at in weights.range(feature) {
                self.scores[usize::from(weights.nodes[at])] += x * weights.learnt[at];
            }
        }
        self.compete(tree, &rows.targets[row]);
        let mut gradients = Vec::new();
        for &(feature, x) in vector {
            for at in weights.range(feature) {
                let error = self.errors[usize::from(weights.nodes[at])];
                if error.abs() > MIN_GRADIENT {
                    gradients.push((at as u32, error * x * rows.weights[row]));
                }
            }
        }
        for &(_, leaf) in &self.order {
            self.errors[leaf as usize] = 0.0;
            self.errors[tree.heading_node(leaf as usize)] = 0.0;
        }
        gradients
    }

    /// Fills the errors (probability less truth) of the best leaves and those of the target, and of their headings.
    fn compete(&mut self, tree: &Tree, target: &Range<usize>) {
        let (below, above) = self.scores.split_at(tree.leaves.len());
        let heard = above.iter().zip(&tree.leaves_of_heading).filter(|(above, _)| **above != 0.0);
        let groups = heard.map(|(&above, leaves)| (leaves.clone(), above));
        keep_best_of_groups(below, groups, COMPETITORS, &mut self.order);
        for leaf in target.clone() {
            if !self.order.iter().any(|&(_, known)| known as usize == leaf) {
                self.order.push((self.scores[leaf] + self.scores[tree.heading_node(leaf)], leaf as u32));
            }
        }
        let highest = self.order.iter().map(|(score, _)| *score).fold(f32::MIN, f32::max);
        let total: f32 = self.order.iter().map(|(score, _)| exponential(score - highest)).sum();
        let of_target: f32 = self
            .order
            .iter()
            .filter(|(_, leaf)| target.contains(&(*leaf as usize)))
            .map(|(score, _)| exponential(score - highest))
            .sum();
        for &(score, leaf) in &self.order {
            let (share, leaf) = (exponential(score - highest), leaf as usize);
            // Where the leaf is open, the truth is spread over the leaves of the target as the model believes.
            let truth = if target.contains(&leaf) { share / of_target.max(1e-12) } else { 0.0 };
            let error = share / total - truth;
            self.errors[leaf] += error;
            self.errors[tree.heading_node(leaf)] += error;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_finds_leaves_and_headings_of_codes() {
        let tree = Tree::new(&[10110, 10190, 10210, 610910]);
        let code = |digits: &str| ClassCode::new(digits).expect("digits");
        assert_eq!(tree.headings, [101, 102, 6109]);
        assert_eq!(tree.under(&code("01")), 0..3);
        assert_eq!(tree.headings_of(&tree.under(&code("01"))), 0..2);
        assert_eq!((tree.leaf(&code("010190")), tree.leaf(&code("0101"))), (Some(1), None));
        assert!(tree.under(&code("62")).is_empty() && tree.headings_of(&(4..4)).is_empty());
    }

    #[test]
    fn words_turn_to_their_leaf_and_rows_of_a_heading_leave_the_leaf_open() {
        let tree = Tree::new(&[10110, 10190, 20110]);
        // Features 0, 1, 2 name the leaves; 3 the first heading, in rows that leave its leaf open.
        let vectors: Vec<Vec<(u32, f32)>> = (0..80u32).map(|row| vec![(row % 4, 1.0)]).collect();
        let targets = (0..80usize).map(|row| if row % 4 == 3 { 0..2 } else { row % 4..row % 4 + 1 }).collect();
        let rows = Rows { weights: vec![1.0; vectors.len()], vectors, targets };
        let weights = learn(&tree, &rows, 4);
        let score = |feature: usize, leaf: usize| {
            let of = |node: usize| {
                let found = weights.of(feature).find(|(at, ..)| usize::from(*at) == node);
                found.map_or(0.0, |(_, weight, _)| weight)
            };
            of(leaf) + of(tree.heading_node(leaf))
        };
        for leaf in 0..3 {
            let beside = (0..3).filter(|other| *other != leaf).map(|other| score(leaf, other)).fold(f32::MIN, f32::max);
            assert!(score(leaf, leaf) > beside + 1.0, "{leaf}: {} {beside}", score(leaf, leaf));
        }
        assert!((score(3, 0) - score(3, 1)).abs() < 1e-3 && score(3, 0) > score(3, 2) + 1.0);
        let again = learn(&tree, &rows, 4);
        assert_eq!((weights.nodes, weights.learnt), (again.nodes, again.learnt));
    }
}
