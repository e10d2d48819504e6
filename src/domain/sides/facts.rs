//! What a product tells about itself that VAT rules ask for.

use serde_json::Value;
use unicode_normalization::UnicodeNormalization;

use super::numbers::{self, Token};
use super::table::{CHILDREN_WORDS, SHOES_OF_CHILDREN};
use crate::domain::{Details, languages};

/// Names of merchant attributes that answer what a rate says is missing: `age` in years, `alcohol` in per cent by volume,
/// `juice` in per cent, `prescription` as yes or no, `sugar` added in grams per 100, `weight` in kilograms.
const ATTRIBUTES: [&str; 6] = ["age", "alcohol", "juice", "prescription", "sugar", "weight"];

/// Whether a merchant attribute of that name is read.
pub fn is_fact(name: &str) -> bool {
    ATTRIBUTES.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// The words and numbers of a product.
///
/// Names and tags are read for words and ages; descriptions, which speak of other goods and of people who are not the
/// buyers, only for the contents that the law wants on the label.
#[derive(Debug, Default)]
pub struct Facts {
    /// The words of each name and tag.
    said: Vec<Vec<String>>,
    /// The tokens of each name and tag.
    names: Vec<Vec<Token>>,
    /// The tokens of each description.
    descriptions: Vec<Vec<Token>>,
    attributes: Vec<(String, Value)>,
    /// Of one piece, where its measure is a weight.
    kilograms: Option<f64>,
    /// Of one piece, where its measure is a volume.
    litres: Option<f64>,
}

impl Facts {
    /// The facts of a product.
    pub fn of(details: &Details) -> Facts {
        let mut facts = Facts::default();
        for (_, texts) in details.languages().filter(|(language, _)| languages::is_read(language)) {
            let tags = texts.product_tags.iter().flatten().map(String::as_str);
            for text in texts.product_name.as_deref().into_iter().chain(tags) {
                facts.say(text);
            }
            facts.descriptions.extend(texts.product_description.as_deref().map(numbers::tokens));
            facts.take_attributes(texts.merchant_product_attributes.as_ref());
        }
        facts.take_attributes(details.merchant_product_attributes.as_ref());
        let measure = details.customs.as_ref().and_then(|customs| customs.physical_measure.as_ref());
        if let Some((unit, amount)) = measure.and_then(|measure| measure.unit.as_deref().zip(measure.amount.as_ref())) {
            facts.kilograms = amount.as_f64().and_then(|amount| numbers::kilograms(amount, unit));
            facts.litres = amount.as_f64().and_then(|amount| numbers::litres(amount, unit));
        }
        facts
    }

    fn say(&mut self, text: &str) {
        self.said.push(words_of(text));
        self.names.push(numbers::tokens(text));
    }

    fn take_attributes(&mut self, attributes: Option<&crate::domain::product::AttributeValues>) {
        let known = attributes.into_iter().flatten().filter(|(name, _)| is_fact(name));
        self.attributes.extend(known.map(|(name, value)| (name.to_lowercase(), value.clone())));
    }

    fn attribute(&self, name: &str) -> Option<&Value> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    fn number(&self, name: &str) -> Option<f64> {
        match self.attribute(name)? {
            Value::String(text) => text.trim().replace(',', ".").parse().ok(),
            value => value.as_f64(),
        }
    }

    /// The one value that a reader finds in names, tags and descriptions; none where they differ.
    fn only(&self, read: impl Fn(&[Token]) -> Vec<f64>) -> Option<f64> {
        let mut found: Vec<f64> = self.names.iter().chain(&self.descriptions).flat_map(|text| read(text)).collect();
        found.dedup();
        match found.as_slice() {
            [only] => Some(*only),
            _ => None,
        }
    }

    /// Whether a name or a tag has one of the words, or several one after the other; a star stands for any end of a word.
    pub(super) fn says(&self, patterns: &[&str]) -> bool {
        self.said.iter().any(|words| patterns.iter().any(|pattern| occurs(pattern, words)))
    }

    /// What the words of a side say: yes, no, or nothing where neither or both occur. A word within a longer phrase of
    /// the other kind does not count: `prescription sunglasses` are no plain `sunglasses`.
    pub(super) fn weigh(&self, yes: &[&str], no: &[&str]) -> Option<bool> {
        match (self.says(yes), self.says(no)) {
            (true, false) => Some(true),
            (false, true) => Some(false),
            (false, false) => None,
            (true, true) => self.outweighing(yes, no),
        }
    }

    fn outweighing(&self, yes: &[&str], no: &[&str]) -> Option<bool> {
        let spans = |patterns: &[&str]| -> Vec<Span> {
            let texts = self.said.iter().enumerate();
            texts
                .flat_map(|(text, words)| patterns.iter().flat_map(move |pattern| found(pattern, text, words)))
                .collect()
        };
        let (yes, no) = (spans(yes), spans(no));
        let stands =
            |own: &[Span], other: &[Span]| own.iter().any(|span| !other.iter().any(|long| span.is_within(long)));
        match (stands(&yes, &no), stands(&no, &yes)) {
            (true, false) => Some(true),
            (false, true) => Some(false),
            _ => None,
        }
    }

    /// Years of the youngest and the oldest wearer for whom the product is meant.
    pub(super) fn ages(&self) -> Option<(f64, f64)> {
        if let Some(age) = self.number("age") {
            return Some((age, age));
        }
        let children = self.says(CHILDREN_WORDS);
        let all: Vec<(f64, f64)> = self.names.iter().flat_map(|text| numbers::ages(text, children)).collect();
        let youngest = all.iter().map(|(youngest, _)| *youngest).reduce(f64::min)?;
        let oldest = all.iter().map(|(_, oldest)| *oldest).reduce(f64::max)?;
        Some((youngest, oldest))
    }

    /// The same for shoes, whose sizes are others.
    pub(super) fn ages_of_shoes(&self) -> Option<(f64, f64)> {
        let children = self.says(SHOES_OF_CHILDREN);
        self.ages().or_else(|| self.names.iter().flat_map(|text| numbers::shoes(text, children)).next())
    }

    /// Per cent by volume.
    pub(super) fn alcohol(&self) -> Option<f64> {
        self.number("alcohol").or_else(|| self.only(numbers::alcohol))
    }

    /// Per cent of juice.
    pub(super) fn juice(&self) -> Option<f64> {
        self.number("juice").or_else(|| self.only(numbers::juice))
    }

    /// Whether sugar was added.
    pub(super) fn added_sugar(&self) -> Option<bool> {
        self.number("sugar").map(|sugar| sugar > 0.0)
    }

    /// Grams of added sugar in 100, and of sugar in all as the label tells it.
    pub(super) fn sugar(&self) -> (Option<f64>, Option<f64>) {
        (self.number("sugar"), self.only(numbers::sugars))
    }

    /// Whether it is sold on prescription.
    pub(super) fn prescription(&self) -> Option<bool> {
        match self.attribute("prescription")? {
            Value::Bool(known) => Some(*known),
            Value::String(text) if text.eq_ignore_ascii_case("true") => Some(true),
            Value::String(text) if text.eq_ignore_ascii_case("false") => Some(false),
            _ => None,
        }
    }

    /// Of one piece.
    pub(super) fn kilograms(&self) -> Option<f64> {
        let told = self.number("weight").or(self.kilograms);
        told.or_else(|| self.only(numbers::weights))
    }

    /// Of one piece.
    pub(super) fn litres(&self) -> Option<f64> {
        self.litres.or_else(|| self.only(numbers::volumes))
    }
}

/// The words of a text in lower case, with `men's` as one word.
fn words_of(text: &str) -> Vec<String> {
    let plain: String = text.nfc().filter(|c| !matches!(c, '\'' | '\u{2019}')).flat_map(char::to_lowercase).collect();
    plain.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Where a pattern stands: the text, its first word, and the number of words.
struct Span {
    text: usize,
    start: usize,
    length: usize,
}

impl Span {
    /// Whether the other one has these words and more.
    fn is_within(&self, other: &Span) -> bool {
        self.text == other.text
            && self.length < other.length
            && other.start <= self.start
            && self.start + self.length <= other.start + other.length
    }
}

/// Whether the words of a pattern stand one after the other.
fn occurs(pattern: &str, words: &[String]) -> bool {
    found(pattern, 0, words).next().is_some()
}

/// Every place at which the words of a pattern stand one after the other.
fn found<'a>(pattern: &'a str, text: usize, words: &'a [String]) -> impl Iterator<Item = Span> + 'a {
    let is = |wanted: &str, word: &String| match wanted.strip_suffix('*') {
        Some(beginning) => word.starts_with(beginning),
        None => word == wanted,
    };
    let length = pattern.split(' ').count();
    let all = move |window: &[String]| pattern.split(' ').zip(window).all(|(wanted, word)| is(wanted, word));
    let places = words.windows(length).enumerate().filter(move |(_, window)| all(window));
    places.map(move |(start, _)| Span { text, start, length })
}
