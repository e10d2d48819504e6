//! Which rows are learnt from and which are held back: rows that say the same stay together.
//!
//! A row belongs with the other rows of its line (a template gives many) and with every row of the same set of words, so
//! that no text that is measured or calibrated on was learnt from in another order or under another template.

use std::collections::HashMap;

use vat_classification::classify::features::Extractor;

use super::{BUCKETS, Sample, SampleKind};
use crate::random::{Random, fnv};

/// Puts the samples into buckets; what belongs with a label or a brand is learnt from always, as they are.
pub(crate) fn assign(samples: &mut [Sample]) {
    let mut extractor = Extractor::default();
    let mut sets = Sets::of(samples.len());
    let mut first_of_line: HashMap<u64, usize> = HashMap::new();
    let mut first_of_words: HashMap<u64, usize> = HashMap::new();
    for (index, sample) in samples.iter().enumerate() {
        let mut words: Vec<String> = extractor.content_words(&sample.name).map(str::to_owned).collect();
        words.sort_unstable();
        words.dedup();
        // Texts without words of their own, such as numbers, are told apart as they are.
        let words = if words.is_empty() { sample.name.clone() } else { words.join(" ") };
        let line = *first_of_line.entry(sample.group).or_insert(index);
        let alike = *first_of_words.entry(fnv(&words)).or_insert(index);
        sets.join(index, line);
        sets.join(index, alike);
    }
    let mut has_label = vec![false; samples.len()];
    for (index, sample) in samples.iter().enumerate() {
        has_label[sets.root(index)] |= matches!(sample.kind, SampleKind::Label | SampleKind::Brand);
    }
    for index in 0..samples.len() {
        let root = sets.root(index);
        let bucket = Random(samples[root].group).next() % BUCKETS;
        samples[index].bucket = if has_label[root] { BUCKETS } else { bucket };
    }
}

/// Disjoint sets of samples; the root of a set is its first sample.
struct Sets(Vec<usize>);

impl Sets {
    fn of(count: usize) -> Sets {
        Sets((0..count).collect())
    }

    fn root(&mut self, mut index: usize) -> usize {
        while self.0[index] != index {
            self.0[index] = self.0[self.0[index]];
            index = self.0[index];
        }
        index
    }

    fn join(&mut self, left: usize, right: usize) {
        let (left, right) = (self.root(left), self.root(right));
        self.0[left.max(right)] = left.min(right);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vat_classification::classify::words::Language;
    use vat_classification::domain::ClassCode;

    fn sample(name: &str, line: u64, kind: SampleKind) -> Sample {
        Sample {
            code: ClassCode::new("610910").expect("digits"),
            language: Language::English,
            name: name.to_owned(),
            description: None,
            tags: Vec::new(),
            bucket: 0,
            group: line,
            kind,
        }
    }

    #[test]
    fn rows_of_the_same_words_or_line_share_a_bucket_and_those_of_labels_are_always_learnt() {
        for seed in 0..50 {
            let of_line = |line: u64| seed * 100 + line;
            let mut samples = [
                sample("cotton shirt, red", of_line(1), SampleKind::Generated),
                sample("blue shirt", of_line(1), SampleKind::Generated),
                sample("Shirt BLUE", of_line(2), SampleKind::Written),
                sample("wool jumper", of_line(3), SampleKind::Written),
                sample("jumper of wool", of_line(4), SampleKind::Label),
            ];
            assign(&mut samples);
            let buckets: Vec<u64> = samples.iter().map(|sample| sample.bucket).collect();
            assert!(buckets[0] == buckets[1] && buckets[1] == buckets[2] && buckets[0] < BUCKETS, "{buckets:?}");
            assert_eq!(buckets[3..], [BUCKETS, BUCKETS]);
        }
    }
}
