//! A product text as sparse vectors over the features of a model: one for each field.

use super::features::{self, Extractor, FIELDS, Feature, Field, Kind, Place};
use super::model::Model;
use super::{ProductText, spelling};

/// Weight of name, tags and description where a row of several fields is learnt as one vector.
const LEARNT_SHARES: [f32; FIELDS] = [1.0, 0.5, 0.7];
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
    /// Weight in the vector of its field, whose length is one.
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
    /// In the order of ids; of one field each id once.
    pub(crate) known: Vec<Known>,
    /// How much of each field's vector speaks for what the good is called: the name's where it says anything, else that
    /// of tags and description together. The squares add up to one.
    pub(crate) naming: [f32; FIELDS],
    /// Features of the naming fields whose word stands in no row, by share of the weight of all words, 0 to 1.
    pub(crate) unknown_share: f32,
    /// Content words that the model knows, vague ones aside, by field.
    pub(crate) evidence: [usize; FIELDS],
    /// Languages in which there is a name with evidence.
    pub(crate) languages: usize,
    /// Squared weight of the known features of the naming phrase's first word, and of its last.
    pub(crate) place_squares: [f32; 2],
    /// Whether the last word of the naming phrase is unknown.
    pub(crate) last_unknown: bool,
    /// Index of the heading under which people wrote exactly this name; none when its languages say different ones.
    pub(crate) known_heading: Option<usize>,
    /// Pieces of the text that are names with evidence which is spelt as the model knows it, in rising order.
    speaking: Vec<u16>,
    /// Squared weight of unknown words, by field.
    unknown_squares: [f32; FIELDS],
    lookup: Vec<(u32, f32)>,
    heaviest: Vec<(u32, f32)>,
}

impl Query {
    /// Reads a text; false when nothing in it is evidence.
    pub(crate) fn read(&mut self, model: &Model, text: &ProductText<'_>) -> bool {
        self.extractor.extract(&model.lexicon(), text, &mut self.features);
        self.resolve(model);
        self.look_up(model);
        self.languages = self.speaking_names(text);
        self.evidence.iter().any(|&evidence| evidence > 0)
    }

    /// How many names in other languages say something, each text once: a name in a language that nobody reads here, or the
    /// same name twice, makes nothing surer.
    fn speaking_names(&self, text: &ProductText<'_>) -> usize {
        if self.speaking.len() <= 1 {
            return self.speaking.len();
        }
        let mut names: Vec<&str> = Vec::new();
        let mut piece = 0u16;
        features::pieces(text, |_, _, content| {
            if self.speaking.contains(&piece) && !names.contains(&content) {
                names.push(content);
            }
            piece = piece.saturating_add(1);
        });
        names.len()
    }

    /// Whether a description stands beside a name.
    pub(crate) fn is_described(&self) -> bool {
        let description = Field::Description as usize;
        self.naming[description] == 0.0 && self.evidence[description] > 0
    }

    /// How much of each field's vector counts where a description is as good as a name.
    pub(crate) fn with_description(&self) -> [f32; FIELDS] {
        let mut shares = self.naming;
        if self.is_described() {
            shares[Field::Description as usize] = 1.0;
        }
        shares
    }

    /// The words of the text as they stand there.
    pub(crate) fn extractor(&self) -> &Extractor {
        &self.extractor
    }

    fn look_up(&mut self, model: &Model) {
        let is_alone = [Field::Tag, Field::Description].iter().all(|&field| self.evidence[field as usize] == 0);
        let mut headings = self.extractor.name_keys().iter().filter_map(|key| model.heading_of_name(*key, is_alone));
        let first = headings.next();
        self.known_heading = first.filter(|first| headings.all(|other| other == *first));
    }

    fn resolve(&mut self, model: &Model) {
        self.known.clear();
        self.evidence = [0; FIELDS];
        self.last_unknown = false;
        self.speaking.clear();
        self.unknown_squares = [0.0; FIELDS];
        let (dictionary, spellings) = (model.dictionary(), model.spellings());
        let (mut unknown, mut all) = ([0.0; FIELDS], [0.0; FIELDS]);
        // Evidence that is spelt as the model knows it: "Lina" is hardly a misspelt linalool where a shelf says shoes.
        let mut sure = [0; FIELDS];
        let mut strange = self.extractor.strange_words().peekable();
        for (index, feature) in self.features.iter().enumerate() {
            let strange_word = strange.next_if(|(of, _)| *of == index).map(|(_, word)| word);
            let field = feature.field as usize;
            let mut weight = feature.weight;
            let mut id = dictionary.place(feature.key);
            let is_sure = id.is_some();
            if let (None, Some(word), false) = (id, strange_word, feature.vague) {
                let similar = spelling::find(word, |key| spellings.get(key));
                id = similar.map(|(_, id)| id);
                weight *= similar.map_or(1.0, |(likeness, _)| likeness.weight());
            }
            if let (None, Some(word), false) = (id, strange_word, feature.vague) {
                add_grams(model, word, feature, index, &mut self.known);
            }
            if feature.kind == Kind::Word && !feature.vague {
                all[field] += feature.weight;
                if id.is_none() {
                    self.last_unknown |= feature.place.last;
                    unknown[field] += feature.weight;
                    self.unknown_squares[field] += (weight * UNKNOWN_RARITY).powi(2);
                }
            }
            let Some(id) = id else { continue };
            let is_evidence = !feature.vague && !matches!(feature.kind, Kind::Mark);
            self.evidence[field] += usize::from(is_evidence);
            sure[field] += usize::from(is_evidence && is_sure);
            if is_evidence && is_sure && feature.field == Field::Name && self.speaking.last() != Some(&feature.piece) {
                self.speaking.push(feature.piece);
            }
            let weight = weight * model.feature(id).rarity;
            self.known.push(Known { id, weight, field: feature.field, feature: index });
        }
        drop(strange);
        self.naming = naming(if sure.iter().any(|&sure| sure > 0) { sure } else { self.evidence });
        let share = |unknown: f32, all: f32| if all > 0.0 { unknown / all } else { 0.0 };
        let of_naming = |values: [f32; FIELDS]| values.iter().zip(self.naming).map(|(x, share)| x * share).sum::<f32>();
        self.unknown_share = share(of_naming(unknown), of_naming(all));
        self.merge();
        self.normalise();
    }

    /// Reads a name as if every word in it were unknown.
    pub(crate) fn read_grams(&mut self, model: &Model, name: &str) {
        self.features.clear();
        self.known.clear();
        self.unknown_squares = [0.0; FIELDS];
        self.naming = [1.0, 0.0, 0.0];
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

    /// The text as one vector of length one, as rows are learnt: fields in fixed shares, of equal features the heaviest.
    pub(crate) fn vector(&self) -> Vec<(u32, f32)> {
        let there = |field: usize| self.known.iter().any(|known| known.field as usize == field);
        let shares: [f32; FIELDS] = std::array::from_fn(|field| if there(field) { LEARNT_SHARES[field] } else { 0.0 });
        let length = shares.iter().map(|share| share * share).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
        let mut vector: Vec<(u32, f32)> = Vec::with_capacity(self.known.len());
        for known in &self.known {
            let weight = known.weight * shares[known.field as usize] / length;
            match vector.last_mut().filter(|(id, _)| *id == known.id) {
                Some((_, heaviest)) => *heaviest = heaviest.max(weight),
                None => vector.push((known.id, weight)),
            }
        }
        vector
    }

    /// Keeps the heaviest of equal features of a field.
    fn merge(&mut self) {
        self.known.sort_unstable_by(|a, b| {
            (a.id, a.field).cmp(&(b.id, b.field)).then(b.weight.total_cmp(&a.weight)).then(a.feature.cmp(&b.feature))
        });
        self.known.dedup_by_key(|known| (known.id, known.field));
    }

    /// Gives the vector of each field the length one.
    fn normalise(&mut self) {
        let mut squares = self.unknown_squares;
        for known in &self.known {
            squares[known.field as usize] += known.weight * known.weight;
        }
        self.place_squares = [0.0; 2];
        for known in &mut self.known {
            known.weight /= squares[known.field as usize].sqrt();
            if let Some(Feature { place, .. }) = self.features.get(known.feature) {
                self.place_squares[0] += f32::from(place.first) * known.weight * known.weight;
                self.place_squares[1] += f32::from(place.last) * known.weight * known.weight;
            }
        }
    }

    /// Makes [`Query::weight_of`] answer for the naming features of this text.
    pub(crate) fn index(&mut self) {
        self.lookup.clear();
        self.lookup.resize(LOOKUP_SLOTS, (u32::MAX, 0.0));
        self.heaviest.clear();
        for known in &self.known {
            let weight = known.weight * self.naming[known.field as usize];
            match self.heaviest.last_mut().filter(|(id, _)| *id == known.id) {
                Some((_, heaviest)) => *heaviest = heaviest.max(weight),
                None => self.heaviest.push((known.id, weight)),
            }
        }
        if self.heaviest.len() > LOOKUP_SLOTS / 2 {
            self.heaviest.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            self.heaviest.truncate(LOOKUP_SLOTS / 2);
        }
        for &(id, weight) in &self.heaviest {
            let mut at = slot(id);
            while self.lookup[at].0 != u32::MAX {
                at = (at + 1) % LOOKUP_SLOTS;
            }
            self.lookup[at] = (id, weight);
        }
    }

    /// Naming weight of a feature in this text, 0 when it is not there.
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

/// Which fields say what the good is called.
fn naming(evidence: [usize; FIELDS]) -> [f32; FIELDS] {
    if evidence[Field::Name as usize] > 0 {
        return [1.0, 0.0, 0.0];
    }
    let there = evidence.map(|evidence| f32::from(evidence > 0));
    let length = there.iter().sum::<f32>().sqrt().max(1.0);
    there.map(|there| there / length)
}

/// Adds the known character n-grams of a word.
fn add_grams(model: &Model, word: &str, feature: &Feature, index: usize, known: &mut Vec<Known>) {
    let first = known.len();
    let dictionary = model.dictionary();
    spelling::grams(word, |key| {
        if let Some(id) = dictionary.place(key) {
            let weight = feature.weight * model.feature(id).rarity;
            known.push(Known { id, weight, field: feature.field, feature: index });
        }
    });
    let squares: f32 = known[first..].iter().map(|known| known.weight * known.weight).sum();
    let heaviest = known[first..].iter().map(|known| known.weight).fold(0.0, f32::max);
    known[first..].iter_mut().for_each(|known| known.weight *= GRAMS * heaviest / squares.sqrt());
}

#[inline]
fn slot(id: u32) -> usize {
    (id.wrapping_mul(0x9e37_79b1) >> 22) as usize % LOOKUP_SLOTS
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{Classifier, LanguageText, ProductText};
    use super::Query;

    #[test]
    fn a_name_that_says_nothing_new_is_no_second_voice() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/classifier.bin");
        let classifier = Classifier::load(&path).expect("the model of the repository");
        for (names, speaking) in [
            (&[("de", "Damenbluse mit Rüschen")][..], 1),
            (&[("de", "Damenbluse mit Rüschen"), ("fr", "Xqrvelle zbnoutte")], 1),
            (&[("de", "Garden ornament"), ("en", "Garden ornament")], 1),
            (&[("de", "Damenbluse mit Rüschen"), ("en", "Set")], 1),
            (&[("de", "Damenbluse mit Rüschen"), ("en", "Women's blouse with frills")], 2),
            (&[("fr", "Xqrvelle zbnoutte")], 0),
        ] {
            let text = |&(language, name): &(&'static str, &'static str)| LanguageText {
                language,
                name: Some(name),
                ..LanguageText::default()
            };
            let mut query = Query::default();
            query.read(&classifier.model, &ProductText { languages: names.iter().map(text).collect() });
            assert_eq!(query.languages, speaking, "{names:?}");
        }
    }
}
