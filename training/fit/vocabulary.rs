//! Which words and features a model knows.

use std::collections::{BTreeMap, HashMap, HashSet};

use rayon::prelude::*;
use vat_classification::classify::features::{Extractor, Feature, Kind, MAX_LABEL_WORDS};
use vat_classification::classify::lexicon::{Lexicon, Sequence, WORD_INFO, WordInfo, word_key};
use vat_classification::classify::model::FEATURE_ID;
use vat_classification::classify::spelling::{self, Likeness};
use vat_classification::classify::table::{self, Table};
use vat_classification::classify::words::Language;

use super::Sample;
use crate::marks::Marks;

/// Rows from different lines in which a pair of neighbours must stand.
const MIN_JOINT_LINES: u32 = 3;
/// The same for marks of place.
const MIN_MARK_LINES: u32 = 3;
/// The same for numbers.
const MIN_QUANTITY_LINES: u32 = 3;

/// Rows in which a word must stand for misspellings of it to be known.
const MIN_SPELLING_COUNT: u32 = 10;
/// The same for its beginning and its consonants, which many words share.
const MIN_SHORT_COUNT: u32 = 13;
/// Share of the rows of all words with a beginning or the same consonants that the commonest must have.
const MIN_DOMINANCE: f32 = 0.6;

/// The same for character n-grams.
const MIN_GRAM_LINES: u32 = 3;
/// Headings in which a character n-gram may stand at most; commoner ones say little and cost much.
const MAX_GRAM_HEADINGS: usize = 80;

/// Least weight of a feature that stands everywhere.
const MIN_RARITY: f32 = 0.1;

/// Words with what is known of them.
pub(crate) type Words = BTreeMap<String, WordInfo>;

/// The words, and shops' own labels, as a table for [`Lexicon`].
pub(crate) fn lexicon(words: &Words, own_labels: &[String]) -> Vec<u8> {
    let mut extractor = Extractor::default();
    let mut entries: BTreeMap<u64, u32> = words.iter().map(|(word, info)| (word_key(word), info.pack())).collect();
    for label in own_labels {
        let (mut sequence, mut count) = (Sequence::default(), 0);
        for word in extractor.content_words(label) {
            (sequence, count) = (sequence.and(word), count + 1);
        }
        if (1..=MAX_LABEL_WORDS).contains(&count) {
            entries.insert(sequence.key(), WordInfo { vague: true, ..WordInfo::default() }.pack());
        }
    }
    table::build::<WORD_INFO>(entries)
}

/// The words of the samples.
pub(crate) fn words(samples: &[&Sample], marks: &Marks) -> Words {
    let mut infos = Words::new();
    let mut extractor = Extractor::default();
    let mut seen = HashSet::new();
    for sample in samples {
        seen.clear();
        for text in sample.pieces() {
            seen.extend(extractor.content_words(text).map(str::to_owned));
        }
        for word in seen.drain() {
            let info = infos.entry(word).or_default();
            info.count += 1;
            match sample.language {
                Language::German => info.german = true,
                Language::English => info.english = true,
            }
        }
    }
    // A phrase of several words says nothing as a whole; each of its words may (`new in box`, but `soap box`).
    let mut mark = |phrases: &[String], set: fn(&mut WordInfo)| {
        for phrase in phrases {
            let words: Vec<String> = extractor.content_words(phrase).map(str::to_owned).collect();
            if let [word] = words.as_slice() {
                set(infos.entry(word.clone()).or_default());
            }
        }
    };
    mark(&marks.vague, |info| info.vague = true);
    mark(&marks.want_a_good, |info| info.wants_a_good = true);
    mark(&marks.describe, |info| info.describes = true);
    infos
}

/// The features that a model knows: key and rarity, by feature id, keys in rising order.
pub(crate) struct Vocabulary {
    pub(crate) features: Vec<(u64, f32)>,
}

/// How often a feature was seen.
#[derive(Default)]
struct Seen {
    lines: u32,
    last_line: u64,
    headings: HashSet<u16>,
    is_word: bool,
    kind: Option<Kind>,
}

impl Seen {
    /// Weight of the feature by the number of headings in which it stands, of `all`, and of lines: a word of one line may
    /// stand there by accident.
    fn rarity(&self, all: f32) -> f32 {
        let lines = self.lines as f32;
        (all / (self.headings.len() as f32 + 0.5)).ln().max(MIN_RARITY) * (lines / (lines + 1.0)).sqrt()
    }
}

impl Vocabulary {
    /// Chooses features from the samples.
    pub(crate) fn choose(samples: &[&Sample], lexicon: &[u8]) -> Option<Vocabulary> {
        let lexicon = Lexicon::new(Table::over(lexicon)?);
        let extract = |extractor: &mut Extractor, sample: &&Sample| {
            let mut features: Vec<Feature> = Vec::new();
            extractor.extract(&lexicon, &sample.text(), &mut features);
            let mut keys: Vec<(u64, Option<Kind>)> =
                features.iter().map(|feature| (feature.key, Some(feature.kind))).collect();
            for word in extractor.content_words(&sample.name) {
                spelling::grams(word, |key| keys.push((key, None)));
            }
            keys
        };
        let extracted: Vec<Vec<(u64, Option<Kind>)>> =
            samples.par_iter().map_init(Extractor::default, extract).collect();
        let mut seen: HashMap<u64, Seen> = HashMap::new();
        let mut headings = HashSet::new();
        for (sample, features) in samples.iter().zip(extracted) {
            let heading: u16 = sample.code.prefix(4).as_str().parse().unwrap_or(0);
            headings.insert(heading);
            for (key, kind) in features {
                let seen = seen.entry(key).or_default();
                if seen.lines == 0 || seen.last_line != sample.group {
                    seen.lines += 1;
                    seen.last_line = sample.group;
                }
                seen.headings.insert(heading);
                seen.is_word |= matches!(kind, Some(Kind::Word | Kind::Part | Kind::Modifier));
                seen.kind = seen.kind.or(kind);
            }
        }
        let all = headings.len() as f32 + 1.0;
        let keep = |seen: &Seen| {
            seen.is_word
                || match seen.kind {
                    Some(Kind::Joint) => seen.lines >= MIN_JOINT_LINES,
                    Some(Kind::Mark) => seen.lines >= MIN_MARK_LINES,
                    Some(Kind::Quantity) => seen.lines >= MIN_QUANTITY_LINES,
                    Some(_) => true,
                    None => seen.lines >= MIN_GRAM_LINES && seen.headings.len() <= MAX_GRAM_HEADINGS,
                }
        };
        let kept = seen.into_iter().filter(|(_, seen)| keep(seen));
        let mut features: Vec<(u64, f32)> = kept.map(|(key, seen)| (key, seen.rarity(all))).collect();
        features.sort_unstable_by_key(|&(key, _)| key);
        Some(Vocabulary { features })
    }

    /// The keys, whose places are the ids.
    pub(crate) fn dictionary(&self) -> Vec<u8> {
        table::build_keys(self.features.iter().map(|&(key, _)| key))
    }

    /// Table from misspellings of words to ids.
    pub(crate) fn spellings(&self, words: &Words) -> Vec<u8> {
        let ids: HashMap<u64, u32> = self.features.iter().enumerate().map(|(id, &(key, _))| (key, id as u32)).collect();
        let extractor = Extractor::default();
        let mut claims: BTreeMap<u64, Vec<(u32, u32)>> = BTreeMap::new();
        for (word, info) in words.iter().filter(|(_, info)| !info.vague) {
            for id in extractor.word_keys(word, *info).filter_map(|key| ids.get(&key).copied()) {
                spelling::spellings(word, |likeness, key| {
                    let least = if likeness == Likeness::Typo { MIN_SPELLING_COUNT } else { MIN_SHORT_COUNT };
                    if info.count < least {
                        return;
                    }
                    let claims = claims.entry(key).or_default();
                    match claims.iter_mut().find(|(claimed, _)| *claimed == id) {
                        Some((_, count)) => *count += info.count,
                        None => claims.push((id, info.count)),
                    }
                });
            }
        }
        let winner = |claims: &Vec<(u32, u32)>| {
            let all: u32 = claims.iter().map(|(_, count)| count).sum();
            let &(id, count) = claims.iter().max_by_key(|&&(id, count)| (count, std::cmp::Reverse(id)))?;
            (count as f32 >= MIN_DOMINANCE * all as f32).then_some(id)
        };
        table::build::<FEATURE_ID>(claims.iter().filter_map(|(&key, claims)| Some((key, winner(claims)?))))
    }
}
