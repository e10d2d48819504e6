//! From a product text to weighted features, the same for training and service.
//!
//! Every content word gives its stem; a compound gives its parts too, its head with more weight; two neighbours give
//! the stem of their joint spelling, so that `Lederjacke`, `Leder-Jacke` and `Leder Jacke` share features. The first and
//! the last word of the phrase that names the good are marked (German puts the good first or last, English last);
//! words behind "für", "with" and the like weigh less and are marked. Numbers give their unit and magnitude.

use rust_stemmers::{Algorithm, Stemmer};

use super::ProductText;
use super::lexicon::{Lexicon, Part, WordInfo, word_key};
use super::table::Hash;
use super::text::{Token, TokenKind, Tokens};
use super::words::{Language, Role, is_for_whom, is_gift, is_part_of_name, role};
use walk::{Walk, quantity_features, stem_language};

mod forms;
mod kinds;
mod language;
mod walk;

pub use forms::MAX_LABEL_WORDS;
pub use kinds::{FIELDS, Feature, Field, Kind, Place, PlainWord};

/// Version of the features; a model made with another one is refused.
pub const FEATURE_VERSION: u32 = 11;

/// Weight of a word in its own place.
const WORD: f32 = 1.0;
/// Weight of the last part of a compound, and of the parts before it.
const HEAD_PART: f32 = 0.9;
const OTHER_PART: f32 = 0.5;
/// Weight of the known end of a word that is unknown as a whole and does not fall apart.
const KNOWN_END: f32 = 0.7;
/// Weight of two neighbours in joint spelling.
const JOINT: f32 = 0.7;
/// Weight of the marks of the naming phrase's first and last word.
const HEAD: f32 = 0.7;
/// Weight of a word behind "for" or "with", and of its mark.
const INTRODUCED: f32 = 0.5;
/// Weight of a number's unit and magnitude.
const QUANTITY: f32 = 0.4;
/// Weight of a word that is no evidence by itself.
const VAGUE: f32 = 0.4;
/// Words of a description after which the weight of further ones has halved.
const DESCRIPTION_HALF_LIFE: f32 = 40.0;
/// Most words that are read of one piece of text.
const MAX_WORDS: usize = 200;
/// Most content words of a name that is known as a whole; longer ones hardly ever stand twice.
const MAX_KNOWN_NAME: usize = 4;
/// Most tags that are read.
const MAX_TAGS: usize = 20;

/// Spaces of feature keys.
const SPACE_WORD: Hash = Hash::space(b'W');
const SPACE_FIRST: Hash = Hash::space(b'F');
const SPACE_LAST: Hash = Hash::space(b'E');
const SPACE_INTRODUCED: Hash = Hash::space(b'I');
const SPACE_UNIT: Hash = Hash::space(b'#');
const SPACE_MAGNITUDE: Hash = Hash::space(b'M');
const SPACE_NAME: Hash = Hash::space(b'N');

/// Extracts features; holds buffers, so use one for many texts.
pub struct Extractor {
    german: Stemmer,
    english: Stemmer,
    tokens: Tokens,
    infos: Vec<Option<WordInfo>>,
    /// Indices of the content words among the tokens.
    content: Vec<usize>,
    parts: Vec<Part>,
    joint: String,
    /// Folded words that the lexicon does not know, one after the other.
    strange: String,
    strange_words: Vec<(usize, usize, usize)>,
    plain_words: Vec<PlainWord>,
    name_keys: Vec<u64>,
}

impl Default for Extractor {
    fn default() -> Self {
        Extractor {
            german: Stemmer::create(Algorithm::German),
            english: Stemmer::create(Algorithm::English),
            tokens: Tokens::default(),
            infos: Vec::new(),
            content: Vec::new(),
            parts: Vec::new(),
            joint: String::new(),
            strange: String::new(),
            strange_words: Vec::new(),
            plain_words: Vec::new(),
            name_keys: Vec::new(),
        }
    }
}

/// Calls `visit` with every piece of a product text in the order of reading: language key, field, text.
pub fn pieces<'a>(text: &ProductText<'a>, mut visit: impl FnMut(&'a str, Field, &'a str)) {
    for language in &text.languages {
        if let Some(name) = language.name {
            visit(language.language, Field::Name, name);
        }
        for tag in language.tags.iter().take(MAX_TAGS) {
            visit(language.language, Field::Tag, tag);
        }
        if let Some(description) = language.description {
            visit(language.language, Field::Description, description);
        }
    }
}

impl Extractor {
    /// Replaces `features` by those of the text, in the order of reading.
    pub fn extract(&mut self, lexicon: &Lexicon<'_>, text: &ProductText<'_>, features: &mut Vec<Feature>) {
        features.clear();
        self.strange.clear();
        self.strange_words.clear();
        self.plain_words.clear();
        self.name_keys.clear();
        let mut piece: u16 = 0;
        pieces(text, |language, field, content| {
            self.piece(lexicon, language, field, content, piece, features);
            piece = piece.saturating_add(1);
        });
    }

    /// Words of the last text that the lexicon does not know and that do not fall apart: index of the feature, folded word.
    pub fn strange_words(&self) -> impl Iterator<Item = (usize, &str)> {
        self.strange_words.iter().map(|&(feature, start, end)| (feature, &self.strange[start..end]))
    }

    /// The content words of the last text, vague ones aside; of an unknown compound its parts.
    pub fn plain_words(&self) -> &[PlainWord] {
        &self.plain_words
    }

    /// Keys of the names of the last text as wholes: the stems of their words in their order with the numbers that measure
    /// nothing, and without stop words, vague words and own labels. `Bananen, 1 kg` and `Bio Banane` have the same key in one language.
    pub fn name_keys(&self) -> &[u64] {
        &self.name_keys
    }

    /// Keys of the features of a known folded word: one for each language it is used in.
    pub fn word_keys(&self, word: &str, info: WordInfo) -> impl Iterator<Item = u64> {
        let languages = [(info.german, Language::German), (info.english, Language::English)];
        let used = languages.into_iter().filter(|(used, _)| *used);
        used.map(move |(_, language)| SPACE_WORD.bytes_of(self.stem(language, word).as_bytes()).finish())
    }

    /// The folded words of a text that are neither function words nor single letters.
    pub fn content_words<'t>(&'t mut self, text: &str) -> impl Iterator<Item = &'t str> {
        self.tokens.read(text);
        let tokens = &self.tokens;
        let content = tokens.list.iter().filter(|token| matches!(role_of(tokens, token), Some((Role::Content, _))));
        content.map(|token| tokens.word(token))
    }

    fn piece(
        &mut self,
        lexicon: &Lexicon<'_>,
        key: &str,
        field: Field,
        content: &str,
        piece: u16,
        features: &mut Vec<Feature>,
    ) {
        self.tokens.read(content);
        self.tokens.list.truncate(MAX_WORDS);
        let Some(language) = self.language(lexicon, key) else { return };
        if field == Field::Name && self.names_no_good() {
            return;
        }
        self.leave_own_labels_out(lexicon);
        if language == Language::German {
            self.take_basic_forms(lexicon);
        }
        let mut walk = Walk {
            language,
            field,
            piece,
            introduced: false,
            before: None,
            naming: field == Field::Name,
            name: SPACE_NAME.bytes_of(&[language as u8]),
            named: 0,
            first: None,
            last: None,
            words: 0,
        };
        let begin = features.len();
        for at in 0..self.tokens.list.len() {
            self.token(lexicon, at, &mut walk, features);
        }
        if field == Field::Name && (1..=MAX_KNOWN_NAME).contains(&walk.named) {
            self.name_keys.push(walk.name.finish());
        }
        let source = |at: Option<usize>| at.map(|at| self.tokens.list[at].source);
        let (first, last) = (source(walk.first), source(walk.last));
        for feature in &mut features[begin..] {
            let source = Some((feature.source.0 as usize, feature.source.1 as usize));
            // What stands before the head of a compound is its stuff or use, never the good.
            let is_modifier = feature.kind == Kind::Modifier;
            feature.place = Place { first: source == first, last: source == last && !is_modifier };
        }
        for (space, place) in [(SPACE_FIRST, walk.first), (SPACE_LAST, walk.last)] {
            if let Some(at) = place {
                self.mark_head(lexicon, at, space, &walk, features);
            }
        }
    }

    /// Whether a name says for what something is or what comes with it, in one word, and nothing else: `für Katzen`,
    /// `inkl. Batterien`. What has more words behind may still name the good (`for iPhone 12 case`).
    fn names_no_good(&self) -> bool {
        let first = self.tokens.list.first().and_then(|token| role_of(&self.tokens, token));
        self.content.len() <= 1 && matches!(first, Some((Role::Introduces, _))) || self.is_olive()
    }

    /// Whether a name is a colour and nothing else. The fruit is sold as `olives`, so that the singular names no good.
    fn is_olive(&self) -> bool {
        const SHADES: [&str; 5] = ["olive", "green", "drab", "dark", "light"];
        let is_content = |token: &&Token| matches!(role_of(&self.tokens, token), Some((Role::Content, _)));
        let mut words = self.tokens.list.iter().filter(is_content).map(|token| self.tokens.word(token)).peekable();
        words.peek().is_some_and(|first| *first == SHADES[0]) && words.all(|word| SHADES.contains(&word))
    }

    fn token(&mut self, lexicon: &Lexicon<'_>, at: usize, walk: &mut Walk, features: &mut Vec<Feature>) {
        let token = self.tokens.list[at];
        if token.after_break {
            walk.introduced = false;
            walk.before = None;
            walk.naming &= walk.last.is_none();
        }
        match token.kind {
            TokenKind::Number(quantity) => {
                walk.before = None;
                match quantity {
                    Some(quantity) => quantity_features(quantity, walk, &token, features),
                    // The number of a model or a size; an own label that is left out stands as a number without digits.
                    None if self.tokens.word(&token).starts_with(|c: char| c.is_ascii_digit()) => {
                        walk.name = walk.name.bytes_of(b"#").bytes_of(self.tokens.word(&token).as_bytes());
                    }
                    None => {}
                }
            }
            TokenKind::Word => match role(self.tokens.word(&token)).0 {
                Role::Stop => walk.before = None,
                Role::Introduces => {
                    walk.name = walk.name.bytes_of(b"|");
                    walk.introduced = true;
                    walk.before = None;
                    walk.naming &= walk.last.is_none();
                }
                Role::Material => {
                    walk.name = walk.name.bytes_of(b"|");
                    walk.before = None;
                    walk.naming &= walk.last.is_none();
                }
                Role::Content => self.content(lexicon, at, walk, features),
            },
        }
    }

    fn content(&mut self, lexicon: &Lexicon<'_>, at: usize, walk: &mut Walk, features: &mut Vec<Feature>) {
        let token = self.tokens.list[at];
        walk.words += 1;
        let fade = match walk.field {
            Field::Name => 1.0,
            Field::Tag | Field::Description => 1.0 / (1.0 + walk.words as f32 / DESCRIPTION_HALF_LIFE),
        };
        if let Some(before) = walk.before {
            self.joint(before, at, fade, walk, features);
        }
        walk.before = Some(at);
        if token.end == token.start + 1 {
            walk.name = walk.name.bytes_of(self.tokens.word(&token).as_bytes());
            return;
        }
        let vague = self.infos[at].is_some_and(|info| info.vague);
        let word = self.tokens.word(&token);
        let weight = match (vague, walk.introduced) {
            // For whom it is decides the class of clothing and of shoes, though it says nothing by itself.
            (true, false) if is_for_whom(word) => WORD,
            (true, _) => VAGUE,
            (false, true) => INTRODUCED,
            (false, false) => WORD,
        } * fade;
        let stem_language = stem_language(self.infos[at], walk.language);
        let stem = self.stem(stem_language, word);
        if !vague {
            walk.name = walk.name.bytes_of(b" ").bytes_of(stem.as_bytes());
            walk.named += 1;
        } else if is_gift(word) {
            walk.named = MAX_KNOWN_NAME + 1;
        } else if is_part_of_name(word) {
            walk.name = walk.name.bytes_of(b" ").bytes_of(stem.as_bytes());
        }
        let is_nothing_alone = walk.tells_none(self.infos[at]);
        let make = |key, weight, kind| walk.feature(key, weight, kind, is_nothing_alone, &token, &token);
        let feature = features.len();
        features.push(make(SPACE_WORD.bytes_of(stem.as_bytes()).finish(), weight, Kind::Word));
        if walk.introduced && !vague {
            features.push(make(SPACE_INTRODUCED.bytes_of(stem.as_bytes()).finish(), weight, Kind::Mark));
        }
        let is_known = self.infos[at].is_some();
        let mut plain_words = std::mem::take(&mut self.plain_words);
        let mut plain = |word: &str, weight| {
            if !vague {
                plain_words.push(PlainWord { key: word_key(word), weight, field: walk.field });
            }
        };
        if is_known {
            plain(word, weight);
        }
        let mut parts = std::mem::take(&mut self.parts);
        if lexicon.split(word, &mut parts) {
            let last = parts.len() - 1;
            for (index, &(from, end)) in parts.iter().enumerate() {
                let part = &word[from..end];
                let key = self.part_key(lexicon, SPACE_WORD, part, walk.language);
                let (share, kind) = if index == last { (HEAD_PART, Kind::Part) } else { (OTHER_PART, Kind::Modifier) };
                features.push(make(key, weight * share, kind));
                if !is_known {
                    plain(part, weight * share);
                }
            }
        } else if !is_known {
            if let Some(from) = lexicon.known_end(word) {
                let key = self.part_key(lexicon, SPACE_WORD, &word[from..], walk.language);
                features.push(make(key, weight * KNOWN_END, Kind::Part));
                plain(&word[from..], weight * KNOWN_END);
            }
            let start = self.strange.len();
            self.strange.push_str(word);
            self.strange_words.push((feature, start, self.strange.len()));
        }
        self.parts = parts;
        self.plain_words = plain_words;
        if walk.naming && !vague {
            walk.first.get_or_insert(at);
            walk.last = Some(at);
        }
    }

    /// Two neighbouring words as one: "Leder Jacke" is "Lederjacke", "t shirt" is "tshirt".
    fn joint(&mut self, before: usize, at: usize, fade: f32, walk: &Walk, features: &mut Vec<Feature>) {
        let (left, right) = (self.tokens.list[before], self.tokens.list[at]);
        let mut joint = std::mem::take(&mut self.joint);
        joint.clear();
        joint.push_str(self.tokens.word(&left));
        joint.push_str(self.tokens.word(&right));
        let stem = self.stem(stem_language(self.infos[at], walk.language), &joint);
        let key = SPACE_WORD.bytes_of(stem.as_bytes()).finish();
        let vague = [before, at].iter().all(|&at| walk.tells_none(self.infos[at]));
        let weight = JOINT * fade * if walk.introduced { INTRODUCED } else { 1.0 };
        features.push(walk.feature(key, weight, Kind::Joint, vague, &left, &right));
        self.joint = joint;
    }

    /// Marks a word, or the head of a compound, as the first or last of the naming phrase.
    fn mark_head(&mut self, lexicon: &Lexicon<'_>, at: usize, space: Hash, walk: &Walk, features: &mut Vec<Feature>) {
        let token = self.tokens.list[at];
        let word = self.tokens.word(&token);
        let mut parts = std::mem::take(&mut self.parts);
        let head = match lexicon.split(word, &mut parts).then(|| parts.last()).flatten() {
            Some(&(from, end)) => &word[from..end],
            None => {
                self.infos[at].is_none().then(|| lexicon.known_end(word)).flatten().map_or(word, |from| &word[from..])
            }
        };
        let key = self.part_key(lexicon, space, head, walk.language);
        features.push(walk.feature(key, HEAD, Kind::Mark, false, &token, &token));
        self.parts = parts;
    }

    /// Key of a part of a word, which may be of another language than the text.
    fn part_key(&self, lexicon: &Lexicon<'_>, space: Hash, part: &str, text: Language) -> u64 {
        let language = stem_language(lexicon.get(part), text);
        space.bytes_of(self.stem(language, part).as_bytes()).finish()
    }

    fn stem<'w>(&self, language: Language, word: &'w str) -> std::borrow::Cow<'w, str> {
        match language {
            // The stemmer leaves the last letter of `Trommeln`, which makes it another word than `Trommel`.
            Language::German => self.german.stem(if word.ends_with("eln") { &word[..word.len() - 1] } else { word }),
            Language::English => self.english.stem(word),
        }
    }
}

/// The role of a word, and the language of which it is a function word; none for a number or a single letter.
fn role_of(tokens: &Tokens, token: &Token) -> Option<(Role, Option<Language>)> {
    (token.kind == TokenKind::Word && token.end > token.start + 1).then(|| role(tokens.word(token)))
}

#[cfg(test)]
mod tests;
