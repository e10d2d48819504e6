//! Which words and features a model knows.

use std::collections::{BTreeMap, HashMap, HashSet};

use rayon::prelude::*;
use vat_classification::classify::features::{Extractor, Feature, Kind};
use vat_classification::classify::lexicon::{Lexicon, WordInfo, word_key};
use vat_classification::classify::table::{self, Table};
use vat_classification::classify::words::Language;

use super::Sample;

/// Rows from different lines in which a pair of neighbours must stand.
const MIN_JOINT_LINES: u32 = 2;
/// The same for marks of place.
const MIN_MARK_LINES: u32 = 2;
/// The same for numbers.
const MIN_QUANTITY_LINES: u32 = 3;

/// The words of the samples as a table for [`Lexicon`].
pub(crate) fn lexicon(samples: &[&Sample], vague: &[String]) -> Vec<u8> {
    let mut infos: BTreeMap<String, WordInfo> = BTreeMap::new();
    let mut extractor = Extractor::default();
    let mut seen = HashSet::new();
    for sample in samples {
        seen.clear();
        for text in [Some(&sample.name), sample.description.as_ref()].into_iter().flatten() {
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
    for phrase in vague {
        for word in extractor.content_words(phrase) {
            infos.entry(word.to_owned()).or_default().vague = true;
        }
    }
    let entries: Vec<(u64, u32)> = infos.iter().map(|(word, info)| (word_key(word), info.pack())).collect();
    table::build(entries.into_iter())
}

/// The features that a model knows: key and rarity, by feature id.
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

impl Vocabulary {
    /// Chooses features from the samples.
    pub(crate) fn choose(samples: &[&Sample], lexicon: &[u8]) -> Option<Vocabulary> {
        let lexicon = Lexicon::new(Table::over(lexicon)?);
        let extract = |extractor: &mut Extractor, sample: &&Sample| {
            let mut features: Vec<Feature> = Vec::new();
            extractor.extract(&lexicon, &sample.text(), &mut features);
            features.iter().map(|feature| (feature.key, feature.kind)).collect::<Vec<_>>()
        };
        let extracted: Vec<Vec<(u64, Kind)>> = samples.par_iter().map_init(Extractor::default, extract).collect();
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
                seen.is_word |= matches!(kind, Kind::Word | Kind::Part);
                seen.kind.get_or_insert(kind);
            }
        }
        let all = headings.len() as f32 + 1.0;
        let keep = |seen: &Seen| {
            seen.is_word
                || match seen.kind {
                    Some(Kind::Joint) => seen.lines >= MIN_JOINT_LINES,
                    Some(Kind::Mark) => seen.lines >= MIN_MARK_LINES,
                    Some(Kind::Quantity) => seen.lines >= MIN_QUANTITY_LINES,
                    _ => true,
                }
        };
        let kept = seen.into_iter().filter(|(_, seen)| keep(seen));
        let mut features: Vec<(u64, f32)> =
            kept.map(|(key, seen)| (key, (all / (seen.headings.len() as f32 + 0.5)).ln().max(0.1))).collect();
        features.sort_unstable_by_key(|&(key, _)| key);
        Some(Vocabulary { features })
    }

    /// Table from keys to ids.
    pub(crate) fn dictionary(&self) -> Vec<u8> {
        let entries: Vec<(u64, u32)> =
            self.features.iter().enumerate().map(|(id, &(key, _))| (key, id as u32)).collect();
        table::build(entries.into_iter())
    }
}
