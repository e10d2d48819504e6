//! Vectors of words: what the headings in which a word stands have in common, in few dimensions.
//!
//! The table of words and headings (how much more often than by chance a word stands in a heading) is cut to its largest
//! singular vectors. Words that never met share dimensions when their headings do, which is what a sparse voice cannot know.

use std::collections::HashMap;

use ndarray::{Array2, ArrayView1, Axis};
use rayon::prelude::*;
use vat_classification::classify::features::Extractor;
use vat_classification::classify::lexicon::word_key;
use vat_classification::classify::table;
use vat_classification::classify::voices::{DIMENSIONS, WORD_VECTOR};

use super::Sample;
use super::learn::{RowCounts, Tree};
use super::vocabulary::Words;

/// Lines in which a word must stand.
const MIN_LINES: u32 = 5;
/// Dimensions that are iterated beyond those that are kept, so that the last ones are found well.
const SPARE_DIMENSIONS: usize = 16;
/// Rounds of the iteration.
const ROUNDS: usize = 30;
/// Least weight of a word that stands everywhere.
const MIN_RARITY: f32 = 0.1;

/// The vectors as the model file has them.
#[derive(Default)]
pub(crate) struct WordVectors {
    /// Keys of the words.
    pub(crate) words: Vec<u8>,
    /// Their vectors in the same order, [`WORD_VECTOR`] bytes each.
    pub(crate) vectors: Vec<u8>,
}

/// In which headings a word stands.
#[derive(Default)]
struct Seen {
    lines: u32,
    last_line: u64,
    headings: HashMap<u16, f32>,
}

impl WordVectors {
    /// Learns the vectors of the words of the samples, vague ones aside.
    pub(crate) fn learn(tree: &Tree, samples: &[&Sample], words: &Words) -> WordVectors {
        let counts = counts(tree, samples, words);
        let mut names: Vec<&str> =
            counts.iter().filter(|(_, seen)| seen.lines >= MIN_LINES).map(|(word, _)| *word).collect();
        names.sort_unstable_by_key(|name| word_key(name));
        let rows: Vec<Vec<(u16, f64)>> = association(&names, &counts, tree.headings.len());
        let axes = axes(&rows, tree.headings.len());
        let vector = |row: &Vec<(u16, f64)>| {
            let mut vector = [0.0f64; DIMENSIONS];
            for &(heading, x) in row {
                let axis: ArrayView1<'_, f64> = axes.row(usize::from(heading));
                vector.iter_mut().zip(axis).for_each(|(sum, y)| *sum += x * y);
            }
            vector
        };
        let (mut keys, mut vectors) = (Vec::new(), Vec::new());
        for (name, row) in names.iter().zip(&rows) {
            let vector = vector(row);
            let length = vector.iter().map(|x| x * x).sum::<f64>().sqrt();
            if length == 0.0 {
                continue;
            }
            let rarity = (tree.headings.len() as f32 / (row.len() as f32 + 0.5)).ln().max(MIN_RARITY);
            keys.push(word_key(name));
            pack(&vector.map(|x| (x / length) as f32 * rarity), &mut vectors);
        }
        WordVectors { words: table::build_keys(keys.into_iter()), vectors }
    }

    /// The vectors as numbers.
    pub(crate) fn unpacked(&self) -> Vec<[f32; DIMENSIONS]> {
        let vector = |bytes: &[u8; WORD_VECTOR]| {
            let [a, b, c, d, steps @ ..] = bytes;
            let scale = f32::from_le_bytes([*a, *b, *c, *d]);
            steps.map(|step| scale * f32::from(step as i8))
        };
        self.vectors.as_chunks::<WORD_VECTOR>().0.iter().map(vector).collect()
    }

    /// Replaces the vectors by others of the same words.
    pub(crate) fn pack(&mut self, vectors: &[[f32; DIMENSIONS]]) {
        self.vectors.clear();
        vectors.iter().for_each(|vector| pack(vector, &mut self.vectors));
    }
}

/// A scale, and steps of it.
fn pack(vector: &[f32; DIMENSIONS], bytes: &mut Vec<u8>) {
    let largest = vector.iter().map(|x| x.abs()).fold(f32::MIN_POSITIVE, f32::max);
    bytes.extend_from_slice(&(largest / 127.0).to_le_bytes());
    bytes.extend(vector.map(|x| ((x / largest * 127.0).round() as i8) as u8));
}

/// How often each word stands in each heading; rows of a code with many rows count less.
fn counts<'w>(tree: &Tree, samples: &[&Sample], words: &'w Words) -> HashMap<&'w str, Seen> {
    let of_code = RowCounts::of(samples);
    let mut extractor = Extractor::default();
    let mut counts: HashMap<&str, Seen> = HashMap::new();
    for sample in samples {
        let headings = tree.headings_of(&tree.under(&sample.code));
        if headings.len() != 1 {
            continue;
        }
        let weight = of_code.weight(sample);
        for text in sample.pieces() {
            for word in extractor.content_words(text) {
                let Some((word, _)) = words.get_key_value(word).filter(|(_, info)| !info.vague) else { continue };
                let seen = counts.entry(word).or_default();
                if seen.lines == 0 || seen.last_line != sample.group {
                    seen.lines += 1;
                    seen.last_line = sample.group;
                }
                *seen.headings.entry(headings.start as u16).or_default() += weight;
            }
        }
    }
    counts
}

/// Positive pointwise mutual information of words and headings, a row a word.
fn association(names: &[&str], counts: &HashMap<&str, Seen>, headings: usize) -> Vec<Vec<(u16, f64)>> {
    let mut of_heading = vec![0.0f64; headings];
    let mut rows: Vec<Vec<(u16, f64)>> = Vec::with_capacity(names.len());
    for name in names {
        let mut row: Vec<(u16, f64)> =
            counts[name].headings.iter().map(|(heading, count)| (*heading, f64::from(*count))).collect();
        row.sort_unstable_by_key(|(heading, _)| *heading);
        row.iter().for_each(|(heading, count)| of_heading[usize::from(*heading)] += count);
        rows.push(row);
    }
    let all: f64 = of_heading.iter().sum();
    for row in &mut rows {
        let of_word: f64 = row.iter().map(|(_, count)| count).sum();
        for (heading, count) in row.iter_mut() {
            *count = (*count * all / (of_word * of_heading[usize::from(*heading)])).ln().max(0.0);
        }
    }
    rows
}

/// For each heading its place on the largest axes: right singular vectors, scaled so that an axis of a large singular
/// value does not drown the others.
fn axes(rows: &[Vec<(u16, f64)>], headings: usize) -> Array2<f64> {
    let mut by_heading: Vec<Vec<(u32, f64)>> = vec![Vec::new(); headings];
    for (word, row) in rows.iter().enumerate() {
        row.iter().for_each(|&(heading, x)| by_heading[usize::from(heading)].push((word as u32, x)));
    }
    let products: Vec<Vec<f64>> = by_heading
        .par_iter()
        .map(|words| {
            let mut products = vec![0.0; headings];
            for &(word, x) in words {
                rows[word as usize].iter().for_each(|&(other, y)| products[usize::from(other)] += x * y);
            }
            products
        })
        .collect();
    let gram = Array2::from_shape_fn((headings, headings), |(row, column)| products[row][column]);
    let width = (DIMENSIONS + SPARE_DIMENSIONS).min(headings);
    let mut random = crate::random::Random(4);
    let mut basis = Array2::from_shape_simple_fn((headings, width), || f64::from(random.unit()) - 0.5);
    orthogonal(&mut basis);
    for _ in 0..ROUNDS {
        basis = gram.dot(&basis);
        orthogonal(&mut basis);
    }
    let image = gram.dot(&basis);
    let mut axes = Array2::zeros((headings, DIMENSIONS));
    for at in 0..DIMENSIONS.min(width) {
        let square = basis.column(at).dot(&image.column(at)).max(f64::MIN_POSITIVE);
        axes.column_mut(at).assign(&(&basis.column(at) * square.powf(-0.25)));
    }
    axes
}

/// Makes the columns orthogonal and of length one, from the left (Gram and Schmidt, twice for the sake of rounding).
fn orthogonal(basis: &mut Array2<f64>) {
    for at in 0..basis.len_of(Axis(1)) {
        for _ in 0..2 {
            for before in 0..at {
                let earlier = basis.column(before).to_owned();
                let shared = earlier.dot(&basis.column(at));
                basis.column_mut(at).scaled_add(-shared, &earlier);
            }
        }
        let length = basis.column(at).dot(&basis.column(at)).sqrt().max(f64::MIN_POSITIVE);
        basis.column_mut(at).mapv_inplace(|x| x / length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_axes_are_those_of_the_largest_singular_values() {
        // Two groups of headings that share words, and words that stand in one of them each.
        let rows: Vec<Vec<(u16, f64)>> = (0..40)
            .map(|word| match word % 4 {
                0 => vec![(0, 2.0), (1, 2.0)],
                1 => vec![(0, 1.0), (1, 1.5)],
                2 => vec![(2, 1.0), (3, 1.0)],
                _ => vec![(3, 0.5)],
            })
            .collect();
        let axes = axes(&rows, 4);
        let cosine = |a: usize, b: usize| {
            let (a, b) = (axes.row(a), axes.row(b));
            a.dot(&b) / (a.dot(&a) * b.dot(&b)).sqrt()
        };
        // All four dimensions are kept, so that headings stay apart; the first axis holds the heavier group.
        assert!(axes[[0, 0]].abs() > 0.1 && axes[[2, 0]].abs() < 1e-6, "{axes}");
        // The two smallest singular values are near each other, so that their axes are not quite apart after all rounds.
        assert!(cosine(0, 2).abs() < 1e-2 && axes[[0, 0]] * axes[[1, 0]] > 0.0, "{axes}");
    }
}
