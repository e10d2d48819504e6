//! The mapping of the index, and what documents look like in it.

use serde_json::{Value as Json, json};

use crate::domain::filter::{Document, Field};
use crate::search::elasticsearch::lower::{ID_LANGUAGE, field_name};
use crate::search::elasticsearch::tokens;

/// The version of the mapping and of the terms: an index of another version is rebuilt. To be raised whenever the
/// mapping, the terms, or the normalisation of texts changes.
pub(super) const MAPPING_VERSION: i32 = 1;
/// Positions between the words of two texts: more than any phrase spans, since criteria have at most 8 KiB.
const WORDS_GAP: usize = 10_000;
/// Positions between the trigrams of two runs: they only ever follow each other at once.
const GRAMS_GAP: usize = 1;
/// How long a written document may be invisible to searches.
pub(super) const REFRESH_INTERVAL: &str = "500ms";

/// The body that creates the index, filled without refreshing until it is complete.
pub(super) fn index_body() -> Json {
    let mut properties = json!({
        // Account and shop: every query has a filter on it. Absent from the entry of a deleted product.
        "owner": {"type": "keyword", "doc_values": false, "norms": false},
        "id": {"type": "keyword", "norms": false},
        "key": {"type": "long", "index": false},
        "country": {"type": "keyword", "doc_values": false, "norms": false},
        // Milliseconds since 1970 at which a product was deleted.
        "removed_at": {"type": "long"},
        "id_parts": parts_property(),
        "id_grams": positions_property(GRAMS_GAP),
    });
    for field in Field::ALL {
        let name = field_name(field);
        properties[format!("{name}_parts")] = parts_property();
        properties[format!("{name}_grams")] = positions_property(GRAMS_GAP);
        properties[format!("{name}_words")] = positions_property(WORDS_GAP);
    }
    json!({
        "settings": {
            "number_of_shards": 1,
            "number_of_replicas": 0,
            "refresh_interval": "-1",
            "translog.durability": "async",
        },
        "mappings": {
            "dynamic": "strict",
            "_source": {"enabled": false},
            "_meta": {"mapping_version": MAPPING_VERSION},
            "properties": properties,
        },
    })
}

/// The settings of an index that answers searches.
pub(super) fn live_settings() -> Json {
    json!({"index": {
        "refresh_interval": REFRESH_INTERVAL,
        "translog.durability": "request",
        "auto_expand_replicas": "0-1",
    }})
}

/// Terms without positions. Terms that Lucene cannot hold do not occur: they have at most 28 characters.
fn parts_property() -> Json {
    json!({"type": "keyword", "doc_values": false, "norms": false, "index_options": "docs"})
}

fn positions_property(gap: usize) -> Json {
    json!({"type": "text", "analyzer": "whitespace", "norms": false, "index_options": "positions",
        "position_increment_gap": gap})
}

/// The owner of a document, as the filter on it has it.
pub(super) fn owner(account: i64, shop: i64) -> String {
    format!("{account}/{shop}")
}

/// Appends a document as JSON on one line.
pub(super) fn push_document(json: &mut Vec<u8>, document: &Document) {
    let mut object = Object::begin(json);
    object.string("owner", &owner(document.account, document.shop));
    object.string("id", &document.product_id);
    object.raw("key", &document.key.to_string());
    if let Some(country) = &document.country {
        object.string("country", country);
    }
    let id = document.id_text.as_str();
    object.list("id_parts", tokens::parts(std::iter::once(id)).into_iter(), ID_LANGUAGE);
    if tokens::is_long(id) {
        let mut grams = String::new();
        tokens::push_grams(&mut grams, ID_LANGUAGE, id);
        object.string("id_grams", &grams);
    }
    for field in Field::ALL {
        push_field(&mut object, document, field);
    }
    object.end();
}

/// Appends the entry of a deleted product, which only keeps its version.
pub(super) fn push_removal(json: &mut Vec<u8>, removed_at: i64) {
    let mut object = Object::begin(json);
    object.raw("removed_at", &removed_at.to_string());
    object.end();
}

fn push_field(object: &mut Object<'_>, document: &Document, field: Field) {
    let name = field_name(field);
    let mut parts = object.open(&format!("{name}_parts"));
    let (mut words, mut grams) = (Vec::new(), Vec::new());
    for texts in &document.languages {
        let language = texts.language.as_str();
        let found = texts.texts(field);
        for part in tokens::parts(found.iter().flat_map(|text| tokens::runs(&text.folded))) {
            parts.item(language, part);
        }
        for text in found {
            let mut line = String::new();
            tokens::push_words(&mut line, language, text.words.iter().map(String::as_str));
            words.push(line);
            for run in tokens::runs(&text.folded).filter(|run| tokens::is_long(run)) {
                let mut line = String::new();
                tokens::push_grams(&mut line, language, run);
                grams.push(line);
            }
        }
    }
    parts.close();
    object.strings(&format!("{name}_words"), &words);
    object.strings(&format!("{name}_grams"), &grams);
}

/// Writes a JSON object without building it: a document has hundreds of terms.
struct Object<'a> {
    json: &'a mut Vec<u8>,
    first: bool,
}

/// An array of terms within an object.
struct List<'a> {
    json: &'a mut Vec<u8>,
    first: bool,
}

impl Object<'_> {
    fn begin(json: &mut Vec<u8>) -> Object<'_> {
        json.push(b'{');
        Object { json, first: true }
    }

    fn end(self) {
        self.json.push(b'}');
    }

    fn name(&mut self, name: &str) {
        if !std::mem::replace(&mut self.first, false) {
            self.json.push(b',');
        }
        push_string(self.json, name);
        self.json.push(b':');
    }

    fn raw(&mut self, name: &str, value: &str) {
        self.name(name);
        self.json.extend_from_slice(value.as_bytes());
    }

    fn string(&mut self, name: &str, value: &str) {
        self.name(name);
        push_string(self.json, value);
    }

    fn strings(&mut self, name: &str, values: &[String]) {
        let mut list = self.open(name);
        for value in values.iter().filter(|value| !value.is_empty()) {
            list.separate();
            push_string(list.json, value);
        }
        list.close();
    }

    fn list<'v>(&mut self, name: &str, values: impl Iterator<Item = &'v str>, language: &str) {
        let mut list = self.open(name);
        for value in values {
            list.item(language, value);
        }
        list.close();
    }

    fn open(&mut self, name: &str) -> List<'_> {
        self.name(name);
        self.json.push(b'[');
        List { json: self.json, first: true }
    }
}

impl List<'_> {
    fn separate(&mut self) {
        if !std::mem::replace(&mut self.first, false) {
            self.json.push(b',');
        }
    }

    /// Appends a term of a language.
    fn item(&mut self, language: &str, term: &str) {
        self.separate();
        self.json.push(b'"');
        push_escaped(self.json, language);
        self.json.push(b':');
        push_escaped(self.json, term);
        self.json.push(b'"');
    }

    fn close(self) {
        self.json.push(b']');
    }
}

fn push_string(json: &mut Vec<u8>, text: &str) {
    json.push(b'"');
    push_escaped(json, text);
    json.push(b'"');
}

fn push_escaped(json: &mut Vec<u8>, text: &str) {
    if !text.bytes().any(|byte| byte < 0x20 || byte == b'"' || byte == b'\\') {
        json.extend_from_slice(text.as_bytes());
        return;
    }
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => json.extend_from_slice(&[b'\\', byte]),
            0..0x20 => json.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => json.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Details;

    #[test]
    fn a_document_holds_terms_of_every_language() {
        let details: Details = serde_json::from_value(json!({
            "languageAttributes": {
                "de": {"productName": "Öl \"A\"", "productTags": ["a b", "c\u{1}\\"]},
                "en": {"productName": "x".repeat(25)},
            },
            "customs": {"countryOfOrigin": "DE"},
        }))
        .expect("details");
        let mut json = Vec::new();
        push_document(&mut json, &Document::of(7, 1, 2, "N\"1", 3, &details));
        let document: Json = serde_json::from_slice(&json).expect("JSON");
        assert_eq!(document["owner"], "1/2");
        assert_eq!(document["id"], "N\"1");
        assert_eq!(document["key"], 7);
        assert_eq!(document["country"], "DE");
        assert_eq!(document["id_parts"], json!([":\"", ":\"1", ":1", ":n", ":n\"", ":n\"1"]));
        assert_eq!(document["tag_words"], json!(["de:a de:b", "de:c"]));
        assert_eq!(
            document["tag_parts"],
            json!(["de:\u{1}", "de:\u{1}\\", "de:\\", "de:a", "de:b", "de:c", "de:c\u{1}", "de:c\u{1}\\"])
        );
        assert_eq!(document["name_grams"], json!([vec!["en:xxx"; 23].join(" ")]));
        assert_eq!(document["name_words"][0], "de:öl de:a");
    }

    #[test]
    fn the_entry_of_a_deleted_product_belongs_to_no_one() {
        let mut json = Vec::new();
        push_removal(&mut json, 5);
        assert_eq!(json, b"{\"removed_at\":5}");
    }
}
