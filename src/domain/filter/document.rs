//! What search engines store of a product: its texts, made comparable once, so that every engine compares the same.

use crate::domain::Details;
use crate::domain::filter::normal_form::Field;
use crate::domain::filter::text;

/// A product as search engines store it.
#[derive(Clone, Debug)]
pub struct Document {
    /// The product's key in the database.
    pub key: i64,
    /// The account to which it belongs.
    pub account: i64,
    /// Its shop as stored, 0 for global products.
    pub shop: i64,
    /// Its id.
    pub product_id: String,
    /// Its version: a document of a lower version never replaces it.
    pub version: i64,
    /// The country of origin.
    pub country: Option<String>,
    /// Its id, normalised.
    pub id_text: String,
    /// Its texts, by language.
    pub languages: Vec<LanguageTexts>,
}

/// The texts of a product in one language.
#[derive(Clone, Debug)]
pub struct LanguageTexts {
    /// The language's code.
    pub language: String,
    name: Option<Text>,
    description: Option<Text>,
    tags: Vec<Text>,
}

/// A text, made comparable.
#[derive(Clone, Debug)]
pub struct Text {
    /// The text in NFKC, folded.
    pub folded: String,
    /// Its words, folded.
    pub words: Vec<String>,
}

impl Document {
    /// The document of a product.
    pub fn of(key: i64, account: i64, shop: i64, product_id: &str, version: i64, details: &Details) -> Document {
        let languages = details.languages().map(|(language, texts)| LanguageTexts {
            language: language.to_owned(),
            name: texts.product_name.as_deref().map(Text::of),
            description: texts.product_description.as_deref().map(Text::of),
            tags: texts.product_tags.iter().flatten().map(|tag| Text::of(tag)).collect(),
        });
        Document {
            key,
            account,
            shop,
            product_id: product_id.to_owned(),
            version,
            country: details.customs.as_ref().and_then(|customs| customs.country_of_origin.clone()),
            id_text: text::normalise(product_id),
            languages: languages.collect(),
        }
    }
}

impl LanguageTexts {
    /// The texts of a field.
    pub fn texts(&self, field: Field) -> Vec<&Text> {
        match field {
            Field::Keywords => self.name.iter().chain(&self.description).collect(),
            Field::Name => self.name.iter().collect(),
            Field::Tags => self.tags.iter().collect(),
        }
    }

    /// The description.
    pub fn description(&self) -> Option<&Text> {
        self.description.as_ref()
    }
}

impl Text {
    fn of(text: &str) -> Text {
        let nfkc = text::nfkc(text);
        Text { folded: text::fold(&nfkc), words: text::words(&nfkc).collect() }
    }
}
