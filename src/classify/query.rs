//! A product text as a sparse vector over the features of a model.

use super::features::{Extractor, Feature, Field, Kind, Place};
use super::model::Model;
use super::{ProductText, spelling};

/// Weight of tags and description together, beside a name. Of 0.3, 0.6, 1 and 1.4 the one that finds most headings of
/// shop listings; many names are a brand and a model number.
const REST: f32 = 1.0;
/// Rarity that an unknown word is taken to have: it shortens what is known of a text.
const UNKNOWN_RARITY: f32 = 1.0;
/// Weight of all character n-grams of an unknown word together, beside a known word.
const GRAMS: f32 = 0.8;
/// Slots of the small table by which a row's features are looked up in a text; a power of two.
const LOOKUP_SLOTS: usize = 1024;

/// A feature of the text that the model knows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) id: u32,
    /// Weight in the normalised vector.
    pub(crate) weight: f32,
    pub(crate) field: Field,
    /// Index of the extracted feature.
    pub(crate) feature: usize,
}

/// A text as the scorer reads it.
#[derive(Default)]
pub(crate) struct Query {
    extractor: Extractor,
    pub(crate) features: Vec<Feature>,
    pub(crate) known: Vec<Known>,
    /// Features of the text whose word stands in no row, by share of the weight of all words, 0 to 1.
    pub(crate) unknown_share: f32,
    /// Content words that the model knows, vague ones aside.
    pub(crate) evidence: usize,
    /// Squared weight of the known features of the naming phrase's first word, and of its last.
    pub(crate) place_squares: [f32; 2],
    /// Whether the last word of the naming phrase is unknown.
    pub(crate) last_unknown: bool,
    /// Squared weight of unknown words, by field.
    unknown_squares: [f32; 2],
    lookup: Vec<(u32, f32)>,
}

impl Query {
    /// Reads a text; false when nothing in it is evidence.
    pub(crate) fn read(&mut self, model: &Model, text: &ProductText<'_>) -> bool {
        self.extractor.extract(&model.lexicon(), text, &mut self.features);
        self.resolve(model);
        self.evidence > 0
    }

    fn resolve(&mut self, model: &Model) {
        self.known.clear();
        self.evidence = 0;
        self.last_unknown = false;
        self.unknown_squares = [0.0; 2];
        let (dictionary, spellings) = (model.dictionary(), model.spellings());
        let (mut unknown, mut all) = (0.0, 0.0);
        let mut strange = self.extractor.strange_words().peekable();
        for (index, feature) in self.features.iter().enumerate() {
            let strange_word = strange.next_if(|(of, _)| *of == index).map(|(_, word)| word);
            let mut weight = feature.weight;
            let mut id = dictionary.get(feature.key);
            if let (None, Some(word), false) = (id, strange_word, feature.vague) {
                let similar = spelling::find(word, |key| spellings.get(key));
                id = similar.map(|(_, id)| id);
                weight *= similar.map_or(1.0, |(likeness, _)| likeness.weight());
            }
            if let (None, Some(word), false) = (id, strange_word, feature.vague) {
                add_grams(model, word, feature, index, &mut self.known);
            }
            if feature.kind == Kind::Word && !feature.vague {
                all += feature.weight;
                if id.is_none() {
                    self.last_unknown |= feature.place.last;
                    unknown += feature.weight;
                    self.unknown_squares[field_index(feature.field)] += (weight * UNKNOWN_RARITY).powi(2);
                }
            }
            let Some(id) = id else { continue };
            self.evidence += usize::from(!feature.vague && !matches!(feature.kind, Kind::Mark));
            self.known.push(Known {
                id,
                weight: weight * model.feature(id).rarity,
                field: feature.field,
                feature: index,
            });
        }
        drop(strange);
        self.unknown_share = if all > 0.0 { unknown / all } else { 0.0 };
        self.merge();
        self.normalise();
    }

    /// Reads a name as if every word in it were unknown.
    pub(crate) fn read_grams(&mut self, model: &Model, name: &str) {
        self.features.clear();
        self.known.clear();
        self.unknown_squares = [0.0; 2];
        let words: Vec<String> = self.extractor.content_words(name).map(str::to_owned).collect();
        let lexicon = model.lexicon();
        for word in words.iter().filter(|word| !lexicon.get(word).is_some_and(|info| info.vague)) {
            let feature = Feature {
                key: 0,
                weight: 1.0,
                field: Field::Name,
                kind: Kind::Word,
                vague: false,
                place: Place::default(),
                piece: 0,
                source: (0, 0),
            };
            add_grams(model, word, &feature, 0, &mut self.known);
        }
        self.merge();
        self.normalise();
    }

    /// Keeps the heaviest of equal features; one that stands in the name is not counted again in the rest.
    fn merge(&mut self) {
        let rank = |known: &Known| (known.id, known.field != Field::Name);
        self.known.sort_unstable_by(|a, b| {
            rank(a).cmp(&rank(b)).then(b.weight.total_cmp(&a.weight)).then(a.feature.cmp(&b.feature))
        });
        self.known.dedup_by_key(|known| known.id);
    }

    /// Length one for the name and [`REST`] for the rest, then one for both together.
    fn normalise(&mut self) {
        let norm = |field| {
            let squares =
                self.known.iter().filter(|known| known.field == field).map(|known| known.weight * known.weight);
            (squares.sum::<f32>() + self.unknown_squares[field_index(field)]).sqrt()
        };
        let (name, rest) = (norm(Field::Name), norm(Field::Rest));
        let (name_part, rest_part) = match (name > 0.0, rest > 0.0) {
            (true, true) => ((1.0 + REST * REST).sqrt().recip(), REST / (1.0 + REST * REST).sqrt()),
            _ => (1.0, 1.0),
        };
        self.place_squares = [0.0; 2];
        for known in &mut self.known {
            known.weight *= match known.field {
                Field::Name => name_part / name,
                Field::Rest => rest_part / rest,
            };
            if let Some(Feature { place, .. }) = self.features.get(known.feature) {
                self.place_squares[0] += f32::from(place.first) * known.weight * known.weight;
                self.place_squares[1] += f32::from(place.last) * known.weight * known.weight;
            }
        }
    }

    /// Makes [`Query::weight_of`] answer for the features of this text.
    pub(crate) fn index(&mut self) {
        self.lookup.clear();
        self.lookup.resize(LOOKUP_SLOTS, (u32::MAX, 0.0));
        for known in self.known.iter().take(LOOKUP_SLOTS / 2) {
            let mut at = slot(known.id);
            while self.lookup[at].0 != u32::MAX {
                at = (at + 1) % LOOKUP_SLOTS;
            }
            self.lookup[at] = (known.id, known.weight);
        }
    }

    /// Weight of a feature in this text, 0 when it is not there.
    #[inline]
    pub(crate) fn weight_of(&self, id: u32) -> f32 {
        let mut at = slot(id);
        loop {
            let (found, weight) = self.lookup[at];
            if found == id {
                return weight;
            }
            if found == u32::MAX {
                return 0.0;
            }
            at = (at + 1) % LOOKUP_SLOTS;
        }
    }
}

/// Adds the known character n-grams of a word.
fn add_grams(model: &Model, word: &str, feature: &Feature, index: usize, known: &mut Vec<Known>) {
    let first = known.len();
    let dictionary = model.dictionary();
    spelling::grams(word, |key| {
        if let Some(id) = dictionary.get(key) {
            known.push(Known {
                id,
                weight: feature.weight * model.feature(id).rarity,
                field: feature.field,
                feature: index,
            });
        }
    });
    let squares: f32 = known[first..].iter().map(|known| known.weight * known.weight).sum();
    let heaviest = known[first..].iter().map(|known| known.weight).fold(0.0, f32::max);
    known[first..].iter_mut().for_each(|known| known.weight *= GRAMS * heaviest / squares.sqrt());
}

fn field_index(field: Field) -> usize {
    usize::from(field == Field::Rest)
}

#[inline]
fn slot(id: u32) -> usize {
    (id.wrapping_mul(0x9e37_79b1) >> 22) as usize % LOOKUP_SLOTS
}
