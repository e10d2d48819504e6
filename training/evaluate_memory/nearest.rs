//! The plain way: the class of the nearest reviewed title, by words as they stand there, rare ones weighing more.

use std::collections::HashMap;

use vat_classification::domain::ClassCode;

/// Titles and the nearest that was reviewed of each.
pub(super) struct Nearest {
    titles: Vec<Vec<(usize, f32)>>,
    with_word: Vec<Vec<(usize, f32)>>,
    best: Vec<Option<(f32, ClassCode)>>,
}

impl Nearest {
    /// Reads all titles.
    pub(super) fn of<'a>(titles: impl Iterator<Item = &'a str>) -> Nearest {
        let mut ids: HashMap<String, usize> = HashMap::new();
        let mut read: Vec<Vec<(usize, f32)>> = Vec::new();
        let mut with_word: Vec<Vec<(usize, f32)>> = Vec::new();
        for title in titles {
            let mut words: Vec<usize> = Vec::new();
            for word in title.to_lowercase().split_whitespace() {
                let next = ids.len();
                words.push(*ids.entry(word.to_owned()).or_insert(next));
            }
            words.sort_unstable();
            words.dedup();
            with_word.resize(ids.len(), Vec::new());
            words.iter().for_each(|word| with_word[*word].push((read.len(), 0.0)));
            read.push(words.into_iter().map(|word| (word, 0.0)).collect());
        }
        let all = read.len() as f32;
        for words in &mut read {
            let rarity = |word: usize| (1.0 + all / with_word[word].len() as f32).ln();
            words.iter_mut().for_each(|(word, weight)| *weight = rarity(*word));
            let length = words.iter().map(|(_, weight)| weight * weight).sum::<f32>().sqrt();
            words.iter_mut().for_each(|(_, weight)| *weight /= length);
        }
        with_word.iter_mut().for_each(Vec::clear);
        for (at, words) in read.iter().enumerate() {
            words.iter().for_each(|(word, weight)| with_word[*word].push((at, *weight)));
        }
        let best = vec![None; read.len()];
        Nearest { titles: read, with_word, best }
    }

    /// A title was given a class.
    pub(super) fn learn(&mut self, at: usize, class: ClassCode) {
        let mut shared: HashMap<usize, f32> = HashMap::new();
        for (word, weight) in &self.titles[at] {
            for (other, theirs) in &self.with_word[*word] {
                *shared.entry(*other).or_default() += weight * theirs;
            }
        }
        for (other, similarity) in shared {
            if self.best[other].is_none_or(|(best, _)| similarity > best) {
                self.best[other] = Some((similarity, class));
            }
        }
    }

    /// How near the nearest is, 0 to 1, and its class.
    pub(super) fn of_item(&self, at: usize) -> Option<(f32, ClassCode)> {
        self.best[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_title_is_the_one_that_shares_rare_words() {
        let mut nearest = Nearest::of(["rucksack alpin rot", "rucksack alpin blau", "hose rot", "hemd"].into_iter());
        let (bag, trousers) = (ClassCode::new("420292").expect("a code"), ClassCode::new("620342").expect("a code"));
        nearest.learn(2, trousers);
        nearest.learn(1, bag);
        let (similarity, class) = nearest.of_item(0).expect("one is near");
        assert!(class == bag && similarity > 0.3 && similarity < 1.0, "{similarity}");
        assert_eq!(nearest.of_item(3), None);
    }
}
