//! Turns the vectors of words, and the directions of headings, so that the texts of the rows come near their heading.
//!
//! Singular vectors say in which company of headings a word stands. Gradient steps on the softmax over all headings, of
//! words and headings at once, move a word to what it says beside others: `case` away from `phone`.

use ndarray::{Array2, ArrayView2, Zip, s};
use rayon::prelude::*;
use vat_classification::classify::Classifier;
use vat_classification::classify::voices::{DIMENSIONS, exponential};

use super::Sample;
use super::learn::{RowCounts, Tree};
use super::word_vectors::WordVectors;
use crate::random::Random;

/// Rounds over all rows.
const ROUNDS: usize = 3;
/// Rows whose gradients are computed from the same vectors.
const BATCH: usize = 256;
/// Rows of a batch whose slopes are added up on one core.
const CHUNK: usize = 64;
/// Step of a number whose gradients were small so far, of headings.
const HEADING_STEP: f32 = 0.5;
/// The same of words.
const WORD_STEP: f32 = 0.1;
/// What is added to the root of the gradients' squares.
const DAMPING: f32 = 0.05;
/// Scale of the mean directions of headings from which the steps begin.
const FIRST_SCALE: f32 = 10.0;
/// Most rows of a heading that a round goes through; of those of larger ones each round has others.
const MAX_ROWS_OF_HEADING: usize = 1200;

/// A text: its words as indices of vectors with their weights, its heading, and the weight of the row.
struct Text {
    words: Vec<(u32, f32)>,
    heading: usize,
    weight: f32,
}

/// Directions of headings: a column for each, the intercepts below.
pub(crate) type Headings = Array2<f32>;

/// Turns the vectors in place; the directions of headings that go with them. The same rows give the same numbers.
pub(crate) fn tune(tree: &Tree, skeleton: &Classifier, samples: &[&Sample], words: &mut WordVectors) -> Headings {
    let mut vectors = words.unpacked();
    let headings = turn(&texts(tree, skeleton, samples), &mut vectors, tree.headings.len());
    words.pack(&vectors);
    headings
}

fn turn(texts: &[Text], vectors: &mut [[f32; DIMENSIONS]], headings: usize) -> Headings {
    let mut directions = means(texts, vectors, headings);
    let mut squares = (Array2::<f32>::zeros(directions.dim()), vec![0.0f32; vectors.len()]);
    let mut random = Random(5);
    for round in 0..ROUNDS {
        let order = order(texts, headings, round, &mut random);
        let shrink = 1.0 - round as f32 / ROUNDS as f32;
        let mut loss = 0.0;
        for batch in order.chunks(BATCH) {
            let of_chunk = |chunk: &[usize]| Slopes::of(chunk, texts, vectors, &directions);
            let slopes: Vec<Slopes> = batch.par_chunks(CHUNK).map(of_chunk).collect();
            let mut of_headings = Array2::zeros(directions.dim());
            for slopes in &slopes {
                of_headings += &slopes.headings;
                loss += slopes.loss;
                for (word, slope) in &slopes.words {
                    let at = *word as usize;
                    squares.1[at] += slope.iter().map(|x| x * x).sum::<f32>() / DIMENSIONS as f32;
                    let step = WORD_STEP * shrink / (squares.1[at].sqrt() + DAMPING);
                    vectors[at].iter_mut().zip(slope).for_each(|(x, slope)| *x -= step * slope);
                }
            }
            Zip::from(&mut directions).and(&mut squares.0).and(&of_headings).for_each(|x, square, &slope| {
                *square += slope * slope;
                *x -= HEADING_STEP * shrink * slope / (square.sqrt() + DAMPING);
            });
        }
        eprintln!("          words turned: {} texts, loss {:.4}", order.len(), loss / order.len() as f64);
    }
    directions
}

fn texts(tree: &Tree, skeleton: &Classifier, samples: &[&Sample]) -> Vec<Text> {
    let counts = RowCounts::of(samples);
    let text = |sample: &&Sample| {
        let headings = tree.headings_of(&tree.under(&sample.code));
        if headings.len() != 1 {
            return None;
        }
        let words = skeleton.naming_words(&sample.text());
        (!words.is_empty()).then(|| Text { words, heading: headings.start, weight: counts.weight(sample) })
    };
    samples.par_iter().filter_map(text).collect()
}

/// The rows of a round, mixed.
fn order(texts: &[Text], headings: usize, round: usize, random: &mut Random) -> Vec<usize> {
    let mut of_heading: Vec<Vec<usize>> = vec![Vec::new(); headings];
    texts.iter().enumerate().for_each(|(at, text)| of_heading[text.heading].push(at));
    let mut order = Vec::new();
    for rows in of_heading {
        let parts = rows.len().div_ceil(MAX_ROWS_OF_HEADING).max(1);
        order.extend(rows.into_iter().skip(round % parts).step_by(parts));
    }
    random.mix(&mut order);
    order
}

/// The sum of the vectors of a text's words, and its length.
fn sum(text: &Text, vectors: &[[f32; DIMENSIONS]]) -> ([f32; DIMENSIONS], f32) {
    let mut sum = [0.0f32; DIMENSIONS];
    for &(word, weight) in &text.words {
        sum.iter_mut().zip(&vectors[word as usize]).for_each(|(sum, x)| *sum += weight * x);
    }
    let length = sum.iter().map(|x| x * x).sum::<f32>().sqrt().max(1e-6);
    (sum, length)
}

/// The mean direction of each heading, scaled.
fn means(texts: &[Text], vectors: &[[f32; DIMENSIONS]], headings: usize) -> Headings {
    let mut means = Array2::zeros((DIMENSIONS + 1, headings));
    let mut counts = vec![0.0f32; headings];
    for text in texts {
        let (sum, length) = sum(text, vectors);
        counts[text.heading] += 1.0;
        sum.iter().enumerate().for_each(|(row, x)| means[[row, text.heading]] += x / length);
    }
    for (mut column, count) in means.columns_mut().into_iter().zip(counts) {
        column.mapv_inplace(|x| x * FIRST_SCALE / count.max(1.0));
    }
    means
}

/// Slopes of the loss of some rows.
struct Slopes {
    headings: Array2<f32>,
    words: Vec<(u32, [f32; DIMENSIONS])>,
    loss: f64,
}

impl Slopes {
    fn of(rows: &[usize], texts: &[Text], vectors: &[[f32; DIMENSIONS]], headings: &Headings) -> Slopes {
        let mut directions = Array2::<f32>::ones((rows.len(), DIMENSIONS + 1));
        let mut lengths = Vec::with_capacity(rows.len());
        for (at, &row) in rows.iter().enumerate() {
            let (sum, length) = sum(&texts[row], vectors);
            lengths.push(length);
            sum.iter().enumerate().for_each(|(column, x)| directions[[at, column]] = x / length);
        }
        let mut errors = directions.dot(headings);
        let mut loss = 0.0;
        for (mut scores, &row) in errors.rows_mut().into_iter().zip(rows) {
            let text = &texts[row];
            let highest = scores.iter().copied().fold(f32::MIN, f32::max);
            scores.mapv_inplace(|score| exponential(score - highest));
            let total = scores.sum();
            scores.mapv_inplace(|share| share * text.weight / total);
            loss -= f64::from((scores[text.heading] / text.weight).max(1e-12).ln());
            scores[text.heading] -= text.weight;
        }
        let weights: ArrayView2<'_, f32> = headings.slice(s![..DIMENSIONS, ..]);
        let back = errors.dot(&weights.t());
        let mut words = Vec::new();
        for (at, &row) in rows.iter().enumerate() {
            // Only what is across the direction changes it, since its length is one.
            let along: f32 = (0..DIMENSIONS).map(|column| back[[at, column]] * directions[[at, column]]).sum();
            let slope: [f32; DIMENSIONS] =
                std::array::from_fn(|column| (back[[at, column]] - along * directions[[at, column]]) / lengths[at]);
            words.extend(texts[row].words.iter().map(|&(word, weight)| (word, slope.map(|x| x * weight))));
        }
        Slopes { headings: directions.t().dot(&errors), words, loss }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_says_what_it_says_beside_others() {
        // Word 0 stands in two headings, beside 1 in the first and beside 2 in the second; 3 alone in the third.
        let texts: Vec<Text> = (0..600u32)
            .map(|at| match at % 3 {
                2 => Text { words: vec![(3, 1.0)], heading: 2, weight: 1.0 },
                heading => Text { words: vec![(0, 1.0), (heading + 1, 1.0)], heading: heading as usize, weight: 1.0 },
            })
            .collect();
        let begin = || -> Vec<[f32; DIMENSIONS]> {
            let mut random = Random(1);
            (0..4).map(|_| std::array::from_fn(|_| random.unit() - 0.5)).collect()
        };
        let mut vectors = begin();
        let directions = turn(&texts, &mut vectors, 3);
        for text in &texts[..3] {
            let (sum, length) = sum(text, &vectors);
            let score = |heading: usize| {
                let own: f32 = sum.iter().enumerate().map(|(row, x)| x / length * directions[[row, heading]]).sum();
                own + directions[[DIMENSIONS, heading]]
            };
            let others = (0..3).filter(|heading| *heading != text.heading).map(score).fold(f32::MIN, f32::max);
            assert!(score(text.heading) > others + 2.0, "{}: {} {others}", text.heading, score(text.heading));
        }
        let mut again = begin();
        assert_eq!(turn(&texts, &mut again, 3), directions);
        assert_eq!(again, vectors);
    }

    #[test]
    fn the_rows_of_large_headings_take_turns() {
        let text = |heading| Text { words: vec![(0, 1.0)], heading, weight: 1.0 };
        let texts: Vec<Text> = (0..2 * MAX_ROWS_OF_HEADING).map(|_| text(0)).chain([text(1)]).collect();
        let mut random = Random(1);
        let [first, second] = [0, 1].map(|round| order(&texts, 2, round, &mut random));
        assert_eq!(first.len() + second.len(), texts.len() + 1);
        assert!(first.iter().filter(|at| second.contains(at)).all(|at| texts[*at].heading == 1));
    }
}
