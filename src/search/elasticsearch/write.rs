//! Writes changes in bulk, and tells what became of each.

use std::time::Duration;

use elasticsearch::http::Method;
use serde_json::Value as Json;

use crate::search::elasticsearch::client::{self, ElasticError, Request};
use crate::search::elasticsearch::{Elasticsearch, mapping};
use crate::store::search::{Change, Outcome};

/// How long one bulk request may take.
const BULK_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes after which a bulk request is sent; a single document may be larger.
const BULK_BYTES: usize = 8 * 1024 * 1024;
/// What the alias under which an index is written ends with. Documents are only ever written to an alias, since
/// Elasticsearch would make an index of a name that it does not know.
const WRITE_SUFFIX: &str = "-write";
/// Most bytes of a bulk request: Elasticsearch's own default limit (http.max_content_length, 100 MB) less some room.
const MAX_BODY_BYTES: usize = 95_000_000;

/// The alias under which an index is written.
pub(super) fn write_alias(index: &str) -> String {
    format!("{index}{WRITE_SUFFIX}")
}

/// Changes as the body of one bulk request.
pub(super) struct Bulk {
    body: Vec<u8>,
    /// The change that each operation stands for.
    changes: Vec<usize>,
}

/// What became of an operation on its index.
enum Item {
    Outcome(Outcome),
    /// The index is gone.
    Missing(String),
}

/// Encodes changes for an index into as few requests as their size allows. Takes time: some 20 MB/s.
pub(super) fn encode(changes: &[Change], index: &str, now_ms: i64) -> Vec<Bulk> {
    let alias = write_alias(index);
    let mut bulks: Vec<Bulk> = Vec::new();
    for (i, change) in changes.iter().enumerate() {
        if bulks.last().is_none_or(|bulk| bulk.body.len() >= BULK_BYTES) {
            bulks.push(Bulk { body: Vec::new(), changes: Vec::new() });
        }
        let Some(bulk) = bulks.last_mut() else { continue };
        let begin = bulk.body.len();
        let (key, version, account) = (change.key, change.version, change.account);
        let action = format!(
            "{{\"index\":{{\"_index\":\"{alias}\",\"_id\":\"{key}\",\"routing\":\"{account}\",\"version\":{version},\
             \"version_type\":\"external\",\"require_alias\":true}}}}\n"
        );
        bulk.body.extend_from_slice(action.as_bytes());
        match &change.document {
            Some(document) => mapping::push_document(&mut bulk.body, document),
            None => mapping::push_removal(&mut bulk.body, now_ms),
        }
        bulk.body.push(b'\n');
        bulk.changes.push(i);
        if begin > 0 && bulk.body.len() > 2 * BULK_BYTES {
            // A large document goes alone.
            let body = bulk.body.split_off(begin);
            let last = bulk.changes.pop();
            bulks.push(Bulk { body, changes: last.into_iter().collect() });
        }
    }
    bulks
}

impl Elasticsearch {
    /// Writes changes to an index. A change whose version is not above the one in the index is done already.
    pub(super) async fn write(&self, bulks: Vec<Bulk>, count: usize) -> Result<Vec<Outcome>, ElasticError> {
        let mut outcomes = vec![Outcome::Done; count];
        for bulk in bulks {
            if bulk.body.len() > MAX_BODY_BYTES {
                let reason = format!("the document has {} bytes as Elasticsearch reads it", bulk.body.len());
                bulk.changes.iter().for_each(|change| outcomes[*change] = Outcome::Never(reason.clone()));
                continue;
            }
            let mut request = Request::new(Method::Post, "_bulk");
            request.timeout = BULK_TIMEOUT;
            request.query = &[("filter_path", "items.*.status,items.*.error.type,items.*.error.reason,errors")];
            request.body = Some(bulk.body);
            let answer = match client::send(&self.nodes, &request).await {
                // Too large for this server: a single document can never be written, several may be one by one.
                Err(ElasticError::Refused { reason, .. }) => {
                    let of_one = bulk.changes.len() == 1;
                    let outcome = if of_one { Outcome::Never(reason) } else { Outcome::Retry(reason) };
                    bulk.changes.iter().for_each(|change| outcomes[*change] = outcome.clone());
                    continue;
                }
                answer => answer?,
            };
            let items = items(&answer);
            for (i, change) in bulk.changes.iter().enumerate() {
                match items.get(i).map(item) {
                    Some(Item::Outcome(outcome)) => outcomes[*change] = outcome,
                    Some(Item::Missing(reason)) => return Err(ElasticError::Missing(reason)),
                    None => outcomes[*change] = Outcome::Retry("the answer lacks the item".to_owned()),
                }
            }
        }
        Ok(outcomes)
    }
}

fn items(answer: &Json) -> &[Json] {
    answer["items"].as_array().map_or(&[], Vec::as_slice)
}

fn item(item: &Json) -> Item {
    let operation = item.as_object().and_then(|object| object.values().next()).unwrap_or(&Json::Null);
    let reason = || format!("{}: {}", text(&operation["error"]["type"]), text(&operation["error"]["reason"]));
    match operation["status"].as_u64() {
        // 409: the index has this version or a later one.
        Some(200..=299 | 409) => Item::Outcome(Outcome::Done),
        Some(404) => Item::Missing(reason()),
        Some(413) => Item::Outcome(Outcome::Never(reason())),
        Some(400) if is_about_document(&operation["error"]) => Item::Outcome(Outcome::Never(reason())),
        _ => Item::Outcome(Outcome::Retry(reason())),
    }
}

/// Whether an error tells of what a document holds. A closed index and other states of the server are 400 as well, and
/// pass.
fn is_about_document(error: &Json) -> bool {
    match text(&error["type"]) {
        "mapper_parsing_exception" | "document_parsing_exception" | "strict_dynamic_mapping_exception" => true,
        "illegal_argument_exception" => !text(&error["reason"]).contains("alias"),
        _ => false,
    }
}

fn text(value: &Json) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::Details;
    use crate::domain::filter::Document;

    fn change(key: i64, description: &str) -> Change {
        let details = json!({"languageAttributes": {"de": {"productDescription": description}}});
        let details: Details = serde_json::from_value(details).expect("details");
        Change { key, account: 1, version: 4, document: Some(Document::of(key, 1, 0, "x", 4, &details)) }
    }

    #[test]
    fn an_operation_carries_the_version_and_never_makes_an_index() {
        let removal = Change { key: 9, account: 1, version: 5, document: None };
        let bulks = encode(&[change(8, "a"), removal], "i", 77);
        assert_eq!(bulks.len(), 1);
        let body = String::from_utf8(bulks[0].body.clone()).expect("UTF-8");
        let lines: Vec<Json> = body.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let action = |key: &str, version: i64| {
            json!({"index": {"_index": "i-write", "_id": key, "routing": "1", "version": version, "version_type": "external",
                "require_alias": true}})
        };
        assert_eq!(lines[0], action("8", 4));
        assert_eq!(lines[1]["key"], 8);
        assert_eq!(lines[2], action("9", 5));
        assert_eq!(lines[3], json!({"removed_at": 77}));
    }

    #[test]
    fn large_documents_are_spread_over_requests() {
        let text = (0..400_000).map(|i| format!("{i:x} ")).collect::<String>();
        let changes = [change(1, "a"), change(2, &text), change(3, &text), change(4, &text), change(5, &text)];
        let bulks = encode(&changes, "i", 0);
        let of: Vec<&[usize]> = bulks.iter().map(|bulk| bulk.changes.as_slice()).collect();
        assert_eq!(of.concat(), [0, 1, 2, 3, 4]);
        assert!(of.len() >= 2);
    }

    #[test]
    fn each_item_has_an_outcome_of_its_own() {
        let of = |status: u64| item(&json!({"index": {"status": status, "error": {"type": "t", "reason": "r"}}}));
        for status in [200, 201, 409] {
            assert!(matches!(of(status), Item::Outcome(Outcome::Done)), "{status}");
        }
        let refused = |error: &str| item(&json!({"index": {"status": 400, "error": {"type": error, "reason": "r"}}}));
        let is_never = |item: Item| matches!(item, Item::Outcome(Outcome::Never(reason)) if reason.ends_with(": r"));
        assert!(is_never(refused("document_parsing_exception")) && is_never(refused("illegal_argument_exception")));
        assert!(matches!(refused("index_closed_exception"), Item::Outcome(Outcome::Retry(_))));
        assert!(matches!(of(413), Item::Outcome(Outcome::Never(reason)) if reason == "t: r"));
        for status in [400, 429, 503, 500] {
            assert!(matches!(of(status), Item::Outcome(Outcome::Retry(_))), "{status}");
        }
        assert!(matches!(of(404), Item::Missing(_)));
    }
}
