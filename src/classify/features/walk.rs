//! How far a piece of text has been read, and the features that need no more than that.

use super::super::lexicon::WordInfo;
use super::super::table::Hash;
use super::super::text::{Quantity, Token};
use super::super::words::Language;
use super::{Feature, Field, Kind, Place, QUANTITY, SPACE_MAGNITUDE, SPACE_UNIT};

/// How far a piece of text has been read.
pub(super) struct Walk {
    pub(super) language: Language,
    pub(super) field: Field,
    pub(super) piece: u16,
    /// Whether "for" or "with" came before, without a break since.
    pub(super) introduced: bool,
    /// The content word directly before.
    pub(super) before: Option<usize>,
    /// Whether we are still in the phrase that names the good.
    pub(super) naming: bool,
    pub(super) first: Option<usize>,
    pub(super) last: Option<usize>,
    pub(super) words: usize,
    /// The words that name the good, one after the other, and how many they are.
    pub(super) name: Hash,
    pub(super) named: usize,
}

impl Walk {
    /// Whether a word tells no good where nothing else is said.
    pub(super) fn tells_none(&self, info: Option<WordInfo>) -> bool {
        info.is_some_and(|info| info.vague || info.wants_a_good || info.describes && self.field == Field::Description)
    }

    pub(super) fn feature(&self, key: u64, weight: f32, kind: Kind, vague: bool, from: &Token, to: &Token) -> Feature {
        let source = (from.source.0 as u32, to.source.1 as u32);
        Feature { key, weight, field: self.field, kind, vague, place: Place::default(), piece: self.piece, source }
    }
}

pub(super) fn quantity_features(quantity: Quantity, walk: &Walk, token: &Token, features: &mut Vec<Feature>) {
    let mut letter = [0; 4];
    let dimension = quantity.dimension.encode_utf8(&mut letter).as_bytes();
    let unit = SPACE_UNIT.bytes_of(dimension).finish();
    let magnitude = SPACE_MAGNITUDE.bytes_of(dimension).bytes_of(&quantity.magnitude.to_le_bytes()).finish();
    for key in [unit, magnitude] {
        features.push(walk.feature(key, QUANTITY, Kind::Quantity, true, token, token));
    }
}

pub(super) fn stem_language(info: Option<WordInfo>, text: Language) -> Language {
    info.map_or(text, |info| stem_language_of(info, text))
}

/// English words stand in German listings and the other way round: a word that only one language uses is of that one.
fn stem_language_of(info: WordInfo, text: Language) -> Language {
    match (info.german, info.english) {
        (true, false) => Language::German,
        (false, true) => Language::English,
        _ => text,
    }
}
