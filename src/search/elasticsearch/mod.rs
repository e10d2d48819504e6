//! Answers filterCriteria from Elasticsearch, and keeps its index.

mod client;
mod lower;
mod mapping;
mod rebuild;
mod tokens;
mod write;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use elasticsearch::http::Method;
use elasticsearch::http::transport::Transport;
use serde_json::{Value as Json, json};

use crate::domain::filter::Criteria;
use crate::search::{SearchError, Settings, SettingsError};
use crate::store::Store;
use crate::store::pages::{Page, Position};

use client::Request;

pub use client::ElasticError;
pub(crate) use client::pause;
pub use rebuild::Standing;
pub(crate) use rebuild::standing;

/// Most ids in one query; Elasticsearch refuses more than 65,536 terms.
const MAX_IDS_PER_QUERY: usize = 50_000;

/// An index in Elasticsearch.
#[derive(Clone, Debug)]
pub struct Elasticsearch {
    transport: Transport,
    store: Store,
    prefix: String,
    /// Raised when a search finds no index, so that the job that feeds it makes one.
    missing: Arc<AtomicBool>,
}

impl Elasticsearch {
    pub(super) fn new(settings: &Settings, url: &url::Url, store: &Store) -> Result<Elasticsearch, SettingsError> {
        Ok(Elasticsearch {
            transport: client::transport(settings, url)?,
            store: store.clone(),
            prefix: settings.elasticsearch_index_prefix.clone(),
            missing: Arc::default(),
        })
    }

    /// The name under which searches find the index. It has the mapping's version, so that no service ever asks an
    /// index that was made by other rules.
    fn alias(&self) -> String {
        format!("{}-{}", self.prefix, mapping::MAPPING_VERSION)
    }

    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    /// Whether a search has met no index since this was last asked.
    pub(super) fn was_missing(&self) -> bool {
        self.missing.swap(false, Ordering::Relaxed)
    }

    /// Whether the server answers.
    pub(super) async fn ping(&self) -> Result<(), ElasticError> {
        client::ping(&self.transport).await
    }

    /// Makes everything that was written until now visible to searches.
    ///
    /// # Errors
    /// When Elasticsearch fails.
    pub async fn refresh(&self) -> Result<(), ElasticError> {
        let path = format!("{}/_refresh", self.alias());
        client::send(&self.transport, &Request::new(Method::Post, &path)).await.map(|_| ())
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) async fn page(
        &self,
        account: i64,
        shop: i64,
        criteria: &Criteria,
        product_ids: Option<&[String]>,
        position: &Position<String>,
        size: usize,
        deadline: Duration,
    ) -> Result<Page<i64>, SearchError> {
        let owner = mapping::owner(account, shop);
        let body = search_body(&owner, criteria, product_ids, position, size, deadline);
        let path = format!("{}/_search", self.alias());
        let request = Request { timeout: deadline, ..Request::new(Method::Post, &path).json(&body) };
        let answer = client::send(&self.transport, &request).await.map_err(|error| self.search_error(error))?;
        let keys = keys(&answer)?;
        Ok(Page::from_rows(keys, size, position))
    }

    fn search_error(&self, error: ElasticError) -> SearchError {
        match error {
            ElasticError::Timeout(_) => SearchError::TooSlow,
            ElasticError::Unavailable(reason) => SearchError::Unavailable(reason),
            ElasticError::Missing(reason) => {
                self.missing.store(true, Ordering::Relaxed);
                SearchError::Unavailable(reason)
            }
            // The limits of filterCriteria are below those of Elasticsearch, except where a server is set up with much
            // lower ones of its own: then a narrower search helps.
            ElasticError::Refused { status, reason } => {
                tracing::warn!(status, reason, "Elasticsearch refuses a search");
                SearchError::TooSlow
            }
        }
    }
}

fn search_body(
    owner: &str,
    criteria: &Criteria,
    product_ids: Option<&[String]>,
    position: &Position<String>,
    size: usize,
    deadline: Duration,
) -> Json {
    let mut filter = vec![json!({"term": {"owner": owner}})];
    if let Some(ids) = product_ids {
        let parts: Vec<Json> = ids.chunks(MAX_IDS_PER_QUERY).map(|ids| json!({"terms": {"id": ids}})).collect();
        filter.push(json!({"bool": {"should": parts, "minimum_should_match": 1}}));
    }
    if !criteria.elements.is_empty() {
        filter.push(lower::query(&criteria.expression()));
    }
    let (order, after) = match position {
        Position::Start => ("asc", None),
        Position::After(id) => ("asc", Some(id)),
        Position::Before(id) => ("desc", Some(id)),
    };
    let mut body = json!({
        "query": {"bool": {"filter": filter}},
        "sort": [{"id": order}],
        "size": size + 1,
        "timeout": format!("{}ms", deadline.as_millis().max(1)),
        "track_total_hits": false,
        "stored_fields": "_none_",
        "docvalue_fields": ["key"],
    });
    if let Some(id) = after {
        body["search_after"] = json!([id]);
    }
    if product_ids.is_some_and(<[String]>::is_empty) {
        body["query"] = json!({"match_none": {}});
    }
    body
}

/// The keys of the hits, in their order.
fn keys(answer: &Json) -> Result<Vec<i64>, SearchError> {
    if answer["timed_out"] == true {
        return Err(SearchError::TooSlow);
    }
    if answer["_shards"]["failed"].as_u64() != Some(0) {
        return Err(SearchError::Unavailable("a shard of the index failed".to_owned()));
    }
    let hits = answer["hits"]["hits"].as_array();
    let keys = hits.into_iter().flatten().map(|hit| hit["fields"]["key"][0].as_i64());
    keys.collect::<Option<Vec<i64>>>().ok_or_else(|| SearchError::Internal("a hit has no key".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_search_is_filtered_by_owner_and_bounded() {
        let criteria = Criteria::parse(r#"[{"productId": "abc"}]"#).expect("criteria");
        let ids = vec!["x".to_owned()];
        let position = Position::Before("m".to_owned());
        let body = search_body("1/0", &criteria, Some(&ids), &position, 50, Duration::from_secs(2));
        assert_eq!(
            body["query"],
            json!({"bool": {"filter": [
                {"term": {"owner": "1/0"}},
                {"bool": {"should": [{"terms": {"id": ["x"]}}], "minimum_should_match": 1}},
                {"prefix": {"id_parts": ":abc"}},
            ]}})
        );
        assert_eq!((&body["size"], &body["timeout"]), (&json!(51), &json!("2000ms")));
        assert_eq!((&body["sort"], &body["search_after"]), (&json!([{"id": "desc"}]), &json!(["m"])));
    }

    #[test]
    fn an_answer_that_is_not_whole_is_none() {
        let hit = json!({"fields": {"key": [7]}});
        let answer = |timed_out: bool, failed: u64, hits: Json| {
            keys(&json!({"timed_out": timed_out, "_shards": {"failed": failed}, "hits": {"hits": hits}}))
        };
        assert_eq!(answer(false, 0, json!([hit])).ok(), Some(vec![7]));
        assert!(matches!(answer(true, 0, json!([hit])), Err(SearchError::TooSlow)));
        assert!(matches!(answer(false, 1, json!([hit])), Err(SearchError::Unavailable(_))));
        assert!(matches!(answer(false, 0, json!([{}])), Err(SearchError::Internal(_))));
    }
}
