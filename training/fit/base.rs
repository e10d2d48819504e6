//! The base of a model: vocabulary, class profiles, learnt weights, and rows to compare with.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use rayon::prelude::*;
use vat_classification::classify::Classifier;
use vat_classification::classify::model::{
    self, Entries, FEATURE_BLOCK, FEATURE_ENTRY, FEATURE_ID, FORMAT_VERSION, ModelInfo, Section,
};
use vat_classification::classify::table;
use vat_classification::classify::voices::{DIMENSIONS, HEADING_GROUP, SECOND_STEP};

use super::learn::{self, Node, Rows, Tree, Weights};
use super::names;
use super::second::{self, Second};
use super::third;
use super::tune;
use super::vocabulary::{self, Vocabulary};
use super::word_vectors::WordVectors;
use super::{Sample, SampleKind, product_text};
use crate::rows::Corpus;

/// Most postings of a feature: those of the heaviest weights.
const MAX_POSTINGS: usize = 320;
/// Least weight of a posting and least share in a profile; what has neither is not worth its bytes.
const MIN_WEIGHT: f32 = 0.6;
const MIN_SHARE: f32 = 10.0 / 255.0;
/// Postings of a feature that are kept whatever a model weighs: a rare word has no others.
const ALWAYS_KEPT: usize = 3;
/// Bytes of a model, at most; the lightest weights beyond are left out. With 713,000 rows a step of 0.1 was worth 1 MB, and
/// top-1 by titles stayed within half a point between 0.8 and 0.9 (2026-11-24).
const MODEL_BYTES: usize = 29_950_000;
/// Most rows of a class that are kept to compare with.
const MAX_ROWS: usize = 8;
/// Most bytes of a row's text that are kept to show.
const MAX_ROW_TEXT: usize = 48;
/// One in this many generated rows is learnt by its character n-grams too: they hold the same words again and again.
const GENERATED_GRAM_SHARE: u64 = 4;
/// Bytes of a posting.
const POSTING_BYTES: usize = 4;
/// Ids of features have this many bits in a row.
const ID_BITS: u32 = 24;

/// Builds the bytes of a model from samples.
pub(crate) fn build(leaves: &[u32], samples: &[&Sample], corpus: &Corpus, info: &ModelInfo) -> Result<Vec<u8>> {
    let tree = Tree::new(leaves);
    let words = vocabulary::words(samples, &corpus.marks);
    let lexicon = vocabulary::lexicon(&words, &corpus.own_labels);
    let vocabulary = Vocabulary::choose(samples, &lexicon).context("the lexicon is no table")?;
    ensure!(vocabulary.features.len() < 1 << ID_BITS, "too many features for the form of the rows");
    let no_spellings = table::build::<FEATURE_ID>([]);
    let mut silent = Learnt {
        weights: Weights::default(),
        second: Second::default(),
        words: WordVectors::learn(&tree, samples, &words),
        third: vec![0.0; (DIMENSIONS + 1) * tree.headings.len()],
        names: names::build(&tree, samples, &lexicon).context("the lexicon is no table")?,
        rows: RowTable::default(),
    };
    let skeleton = assemble(&tree, &lexicon, &vocabulary, &no_spellings, &silent, info)?;
    let skeleton = Classifier::from_bytes(skeleton)?;
    let headings = tune::tune(&tree, &skeleton, samples, &mut silent.words);
    let skeleton = assemble(&tree, &lexicon, &vocabulary, &no_spellings, &silent, info)?;
    let skeleton = Classifier::from_bytes(skeleton)?;
    let mut rows: Vec<Vec<(u32, f32)>> = samples.par_iter().map(|sample| skeleton.vector(&sample.text())).collect();
    // Character n-grams are learnt from rows of their own, since in the service they stand for unknown words alone.
    let of_grams = |sample: &&&Sample| {
        !matches!(sample.kind, SampleKind::Generated | SampleKind::Brand)
            || sample.text_hash().is_multiple_of(GENERATED_GRAM_SHARE)
    };
    let gram_samples: Vec<&Sample> = samples.iter().filter(of_grams).copied().collect();
    rows.par_extend(gram_samples.par_iter().map(|sample| skeleton.gram_vector(&sample.name)));
    let all: Vec<&Sample> = samples.iter().copied().chain(gram_samples).collect();
    let rows = Rows::new(&tree, &all, rows);
    // The regression of the third voice keeps one core busy; the others are learnt beside it.
    let (third, (weights, second)) = rayon::join(
        || third::fit(&tree, &skeleton, samples, &headings),
        || {
            let features = vocabulary.features.len();
            (learn::learn(&tree, &rows, features), second::learn(&tree, &rows, features))
        },
    );
    let rows = RowTable::choose(&tree, samples, &skeleton);
    let learnt = Learnt { weights, second, words: silent.words, third: third?, names: silent.names, rows };
    assemble(&tree, &lexicon, &vocabulary, &vocabulary.spellings(&words), &learnt, info)
}

/// What the voices have learnt, and the rows to compare with.
struct Learnt {
    weights: Weights,
    second: Second,
    words: WordVectors,
    third: Vec<f32>,
    names: Vec<u8>,
    rows: RowTable,
}

/// The same base with another description.
pub(crate) fn with_info(base: &[u8], info: &ModelInfo) -> Result<Vec<u8>> {
    let sections = model::split(base).context("not a model")?;
    Ok(model::assemble(info, &sections)?)
}

/// Rows of each node, as the model file has them.
#[derive(Default)]
struct RowTable {
    starts: Vec<u32>,
    feature_starts: Vec<u32>,
    features: Vec<u32>,
    text_starts: Vec<u32>,
    texts: Vec<u8>,
}

impl RowTable {
    /// Keeps at most [`MAX_ROWS`] rows a leaf: written ones before generated ones, spread evenly over the corpus.
    fn choose(tree: &Tree, samples: &[&Sample], skeleton: &Classifier) -> RowTable {
        let mut by_leaf: BTreeMap<Node, Vec<&Sample>> = BTreeMap::new();
        for sample in samples {
            if let Some(leaf) = tree.leaf(&sample.code) {
                by_leaf.entry(leaf).or_default().push(sample);
            }
        }
        let chosen: Vec<Vec<(Vec<u32>, &str)>> = (0..tree.nodes() as Node)
            .into_par_iter()
            .map(|node| {
                let Some(rows) = by_leaf.get(&node) else { return Vec::new() };
                let picked = spread(rows).into_iter();
                picked.filter_map(|sample| Some((packed(skeleton, sample)?, shown(sample)))).collect()
            })
            .collect();
        let mut table = RowTable::default();
        let mut count = 0;
        for rows in chosen {
            table.starts.push(count);
            for (features, text) in rows {
                count += 1;
                table.feature_starts.push(table.features.len() as u32);
                table.text_starts.push(table.texts.len() as u32);
                table.features.extend(features);
                table.texts.extend_from_slice(text.as_bytes());
            }
        }
        table.starts.push(count);
        table.feature_starts.push(table.features.len() as u32);
        table.text_starts.push(table.texts.len() as u32);
        table
    }
}

fn spread<'s>(rows: &[&'s Sample]) -> Vec<&'s Sample> {
    let of_kind = |kind| rows.iter().copied().filter(|row| row.kind == kind).collect::<Vec<_>>();
    let mut picked = of_kind(SampleKind::Label);
    for kind in [SampleKind::Written, SampleKind::Generated] {
        let rows = of_kind(kind);
        let room = MAX_ROWS.saturating_sub(picked.len());
        if rows.len() <= room {
            picked.extend(rows);
        } else {
            picked.extend((0..room).map(|index| rows[index * rows.len() / room]));
        }
    }
    picked
}

/// Features of a row's name, weights scaled so that the length of the row is 255.
fn packed(skeleton: &Classifier, sample: &Sample) -> Option<Vec<u32>> {
    let vector = skeleton.vector(&product_text(sample.language, &sample.name, None, &[]));
    let pack = |&(id, weight): &(u32, f32)| ((weight * 255.0).round().clamp(1.0, 255.0) as u32) << ID_BITS | id;
    (!vector.is_empty()).then(|| vector.iter().map(pack).collect())
}

fn shown(sample: &Sample) -> &str {
    &sample.name[..sample.name.floor_char_boundary(MAX_ROW_TEXT)]
}

fn assemble(
    tree: &Tree,
    lexicon: &[u8],
    vocabulary: &Vocabulary,
    spellings: &[u8],
    learnt: &Learnt,
    info: &ModelInfo,
) -> Result<Vec<u8>> {
    let rows = &learnt.rows;
    const { assert!(FORMAT_VERSION == 6, "the order of sections below is that of version 6") };
    let no_rows = vec![0; tree.nodes() + 1];
    let starts = if rows.starts.is_empty() { &no_rows } else { &rows.starts };
    let mut sections = [
        lexicon.to_vec(),
        vocabulary.dictionary(),
        spellings.to_vec(),
        Vec::new(),
        Vec::new(),
        Vec::new(),
        numbers(&tree.leaves),
        numbers(&tree.headings),
        tree.heading_of_leaf.iter().flat_map(|heading| heading.to_le_bytes()).collect(),
        numbers(starts),
        numbers(&rows.feature_starts),
        numbers(&rows.features),
        numbers(&rows.text_starts),
        rows.texts.clone(),
        learnt.words.words.clone(),
        learnt.words.vectors.clone(),
        in_groups(&learnt.third, tree.headings.len()),
        learnt.names.clone(),
    ];
    let entries = vocabulary.features.len() * FEATURE_ENTRY + vocabulary.features.len() * 4 / FEATURE_BLOCK;
    let room = MODEL_BYTES.saturating_sub(sections.iter().map(Vec::len).sum::<usize>() + entries) / POSTING_BYTES;
    let least = least_weight(vocabulary, learnt, room);
    let [features, blocks, postings] =
        postings(tree, vocabulary, learnt, least).context("a block of features has too many postings")?;
    // The first section is the model's description, which is none of these.
    let place = |section: Section| section as usize - 1;
    sections[place(Section::Features)] = features;
    sections[place(Section::FeatureBlocks)] = blocks;
    sections[place(Section::Postings)] = postings;
    Ok(model::assemble(info, &sections)?)
}

/// The weight from which postings are kept, so that there are at most so many.
fn least_weight(vocabulary: &Vocabulary, learnt: &Learnt, most: usize) -> f32 {
    let (mut kept, mut light) = (0, Vec::new());
    for id in 0..vocabulary.features.len() {
        kept += learnt.second.of(id).count();
        for (at, (_, weight, share)) in heaviest(&learnt.weights, id).into_iter().enumerate() {
            match is_always_kept(at, share) {
                true => kept += 1,
                false => light.push(weight.abs()),
            }
        }
    }
    let room = most.saturating_sub(kept);
    if room >= light.len() {
        return MIN_WEIGHT;
    }
    // The weights from this one on find room.
    let (_, least, _) = light.select_nth_unstable_by(room, |a, b| b.total_cmp(a));
    least.next_up()
}

/// The postings of a feature that may be kept, the heaviest first.
fn heaviest(weights: &Weights, id: usize) -> Vec<(Node, f32, f32)> {
    let counts = |&(_, weight, share): &(Node, f32, f32)| weight.abs() >= MIN_WEIGHT || share >= MIN_SHARE;
    let mut list: Vec<(Node, f32, f32)> = weights.of(id).filter(counts).collect();
    list.sort_by(|a, b| (b.1.abs() + b.2).total_cmp(&(a.1.abs() + a.2)).then(a.0.cmp(&b.0)));
    list.truncate(MAX_POSTINGS);
    list
}

/// Whether a posting is kept however light it is, by its place among the heaviest of its feature and its share.
fn is_always_kept(at: usize, share: f32) -> bool {
    at < ALWAYS_KEPT || share >= MIN_SHARE
}

/// Rows over all headings as the file has them: group by group, the last one filled up.
fn in_groups(rows: &[f32], headings: usize) -> Vec<u8> {
    let group = |first: usize| {
        let row = move |row: &[f32]| {
            std::array::from_fn::<f32, HEADING_GROUP, _>(|at| row.get(first + at).copied().unwrap_or(0.0))
        };
        rows.chunks_exact(headings).flat_map(row)
    };
    (0..headings).step_by(HEADING_GROUP).flat_map(group).flat_map(f32::to_le_bytes).collect()
}

fn numbers(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// The entries of all features with their blocks, and their postings, pruned and rounded.
fn postings(tree: &Tree, vocabulary: &Vocabulary, learnt: &Learnt, least: f32) -> Option<[Vec<u8>; 3]> {
    let (mut entries, mut postings) = (Entries::default(), Vec::new());
    for (id, &(_, rarity)) in vocabulary.features.iter().enumerate() {
        let list = heaviest(&learnt.weights, id).into_iter().enumerate();
        let kept =
            |(at, (_, weight, share)): &(usize, (Node, f32, f32))| is_always_kept(*at, *share) || weight.abs() >= least;
        let mut list: Vec<(Node, f32, f32)> = list.filter(kept).map(|(_, posting)| posting).collect();
        list.sort_by_key(|&(node, ..)| node);
        let scale = model::scale_of(list.iter().map(|(_, weight, _)| weight.abs()).fold(0.0, f32::max) / 127.0);
        entries.add(postings.len() / POSTING_BYTES, rarity, scale)?;
        for (node, weight, share) in list {
            let weight = if scale > 0.0 { (weight / scale).round().clamp(-127.0, 127.0) as i8 } else { 0 };
            let share = (share * 255.0).round().clamp(0.0, 255.0) as u8;
            postings.extend_from_slice(&node.to_le_bytes());
            postings.extend_from_slice(&[weight as u8, share]);
        }
        for (heading, weight) in learnt.second.of(id) {
            let weight = (weight / SECOND_STEP).round().clamp(f32::from(i16::MIN), f32::from(i16::MAX)) as i16;
            postings.extend_from_slice(&((tree.nodes() as Node) + heading).to_le_bytes());
            postings.extend_from_slice(&weight.to_le_bytes());
        }
    }
    let postings_in_all = postings.len() / POSTING_BYTES;
    let (entries, blocks) = entries.finish(postings_in_all)?;
    Some([entries, blocks, postings])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weights_of_headings_stand_in_full_groups() {
        let headings = HEADING_GROUP + 2;
        let rows: Vec<f32> = (0..3 * headings).map(|at| at as f32).collect();
        let bytes = in_groups(&rows, headings);
        let at = |group: usize, row: usize, heading: usize| {
            let from = 4 * ((group * 3 + row) * HEADING_GROUP + heading);
            f32::from_le_bytes(bytes[from..from + 4].try_into().expect("four bytes"))
        };
        assert_eq!(bytes.len(), 4 * 2 * 3 * HEADING_GROUP);
        assert_eq!((at(0, 0, 5), at(0, 2, 5)), (5.0, (2 * headings + 5) as f32));
        assert_eq!((at(1, 1, 1), at(1, 1, 2)), ((headings + HEADING_GROUP + 1) as f32, 0.0));
    }
}
