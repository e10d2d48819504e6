//! The mapping of the index, and what documents look like in it.

use serde_json::{Value as Json, json};

use crate::domain::filter::{Document, Field, LanguageTexts, Text};
use crate::search::elasticsearch::lower::{DESCRIPTION, ID_LANGUAGE, NAME, TAG};
use crate::search::elasticsearch::tokens;

/// The version of the mapping and of the terms: an index of another version is rebuilt. To be raised whenever the
/// mapping, the terms, or the normalisation of texts changes.
pub(super) const MAPPING_VERSION: i32 = 3;
/// Positions between the words of two texts: more than any phrase spans, since criteria have at most 8 KiB.
const WORDS_GAP: usize = 10_000;
/// How long a written document may be invisible to searches.
pub(super) const REFRESH_INTERVAL: &str = "500ms";

/// The body that creates an index of so many shards, each account on so many of them; filled without refreshing until
/// it is complete.
pub(super) fn index_body((shards, shards_per_account): (u32, u32)) -> Json {
    let mut properties = json!({
        // Account and shop: every query has a filter on it. Absent from the entry of a deleted product.
        "owner": {"type": "keyword", "doc_values": false, "norms": false},
        "id": {"type": "keyword", "norms": false},
        "key": {"type": "long"},
        "country": {"type": "keyword", "doc_values": false, "norms": false},
        // Milliseconds since 1970 at which a product was deleted.
        "removed_at": {"type": "long"},
        "id_parts": parts_property(),
    });
    for name in [NAME, DESCRIPTION, TAG] {
        properties[format!("{name}_parts")] = parts_property();
        properties[format!("{name}_words")] = words_property();
    }
    let mut body = json!({
        "settings": {
            "number_of_shards": shards,
            "number_of_replicas": 0,
            "refresh_interval": "-1",
            "translog.durability": "async",
            // Pages come in the order of ids: a search that has enough of them ends.
            "sort.field": "id",
            "sort.order": "asc",
        },
        "mappings": {
            "dynamic": "strict",
            "_source": {"enabled": false},
            // Products lie together with the others of their account.
            "_routing": {"required": true},
            "_meta": {"mapping_version": MAPPING_VERSION},
            "properties": properties,
        },
    });
    // Elasticsearch wants this to be less than the number of shards, and 1 is what it is without.
    if (2..shards).contains(&shards_per_account) {
        body["settings"]["routing_partition_size"] = json!(shards_per_account);
    }
    body
}

/// The settings of an index that answers searches.
pub(super) fn live_settings() -> Json {
    json!({"index": {
        "refresh_interval": REFRESH_INTERVAL,
        "translog.durability": "request",
        "auto_expand_replicas": "0-1",
    }})
}

/// Terms without positions, separated by blanks. As the terms of an array they take half as long again to be indexed.
fn parts_property() -> Json {
    json!({"type": "text", "analyzer": "whitespace", "norms": false, "index_options": "docs"})
}

fn words_property() -> Json {
    json!({"type": "text", "analyzer": "whitespace", "norms": false, "index_options": "positions",
        "position_increment_gap": WORDS_GAP})
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
    let mut parts = String::new();
    tokens::push_parts(&mut parts, ID_LANGUAGE, std::iter::once(document.id_text.as_str()));
    object.string("id_parts", &parts);
    push_field(&mut object, NAME, document, |texts| texts.texts(Field::Name));
    push_field(&mut object, DESCRIPTION, document, |texts| texts.description().into_iter().collect());
    push_field(&mut object, TAG, document, |texts| texts.texts(Field::Tags));
    object.end();
}

/// Appends the entry of a deleted product, which only keeps its version.
pub(super) fn push_removal(json: &mut Vec<u8>, removed_at: i64) {
    let mut object = Object::begin(json);
    object.raw("removed_at", &removed_at.to_string());
    object.end();
}

fn push_field(object: &mut Object<'_>, name: &str, document: &Document, of: fn(&LanguageTexts) -> Vec<&Text>) {
    let (mut parts, mut words) = (String::new(), Vec::new());
    for texts in &document.languages {
        let language = texts.language.as_str();
        let found = of(texts);
        tokens::push_parts(&mut parts, language, found.iter().flat_map(|text| tokens::runs(&text.folded)));
        for text in found {
            let mut line = String::new();
            tokens::push_words(&mut line, language, text.words.iter().map(String::as_str));
            words.push(line);
        }
    }
    object.string(&format!("{name}_parts"), &parts);
    object.strings(&format!("{name}_words"), &words);
}

/// Writes a JSON object without building it: a document has hundreds of terms.
struct Object<'a> {
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
        self.name(name);
        let mut separator = b'[';
        for value in values.iter().filter(|value| !value.is_empty()) {
            self.json.push(std::mem::replace(&mut separator, b','));
            push_string(self.json, value);
        }
        self.json.extend_from_slice(if separator == b'[' { b"[]" } else { b"]" });
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
                "en": {"productName": "xxxx"},
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
        assert_eq!(document["id_parts"], ":\" :\"1 :1 :n :n\" :n\"1");
        assert_eq!(document["tag_words"], json!(["de:a de:b", "de:c"]));
        assert_eq!(document["tag_parts"], "de:\u{1} de:\u{1}\\\\ de:\\\\ de:a de:b de:c de:c\u{1} de:c\u{1}\\\\");
        assert_eq!(
            document["name_parts"],
            "de:\" de:\"a de:\"a\" de:a de:a\" de:l de:ö de:öl en:x en:xx en:xxx en:xxxx"
        );
        assert_eq!(document["name_words"], json!(["de:öl de:a", "en:xxxx"]));
        assert_eq!(document["description_words"], json!([]));
    }

    #[test]
    fn an_account_spreads_over_fewer_shards_than_there_are() {
        for (shards, per_account, expected) in
            [(1, 1, Json::Null), (8, 1, Json::Null), (8, 3, json!(3)), (8, 8, Json::Null), (1, 3, Json::Null)]
        {
            let settings = &index_body((shards, per_account))["settings"];
            assert_eq!(
                (&settings["number_of_shards"], &settings["routing_partition_size"]),
                (&json!(shards), &expected)
            );
        }
    }

    #[test]
    fn the_entry_of_a_deleted_product_belongs_to_no_one() {
        let mut json = Vec::new();
        push_removal(&mut json, 5);
        assert_eq!(json, b"{\"removed_at\":5}");
    }
}
