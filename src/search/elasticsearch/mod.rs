//! Answers filterCriteria from Elasticsearch, and keeps its index.

mod client;
mod compact;
mod lower;
mod mapping;
mod nodes;
mod rebuild;
mod tokens;
mod write;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use elasticsearch::http::Method;
use serde_json::{Value as Json, json};

use crate::search::{Search, SearchError, Settings, SettingsError};
use crate::store::Store;
use crate::store::pages::{Page, Position};
use crate::store::products::Found;

use client::Request;
use nodes::Nodes;

pub use client::ElasticError;
pub(crate) use client::pause;

/// Most ids in one query; Elasticsearch refuses more than 65,536 terms.
const MAX_IDS_PER_QUERY: usize = 50_000;
/// Most products that are compared with criteria at once, where the index cannot tell.
const MAX_COMPARED: usize = 500;

/// An index in Elasticsearch.
#[derive(Clone, Debug)]
pub struct Elasticsearch {
    nodes: Arc<Nodes>,
    store: Store,
    prefix: String,
    /// Shards of an index that is made, and over how many of them an account spreads.
    shards: (u32, u32),
    /// Raised when a search finds no index, so that the job that feeds it makes one.
    missing: Arc<AtomicBool>,
}

/// Judges settings without a store.
pub(super) fn check(settings: &Settings, urls: &[url::Url]) -> Result<(), SettingsError> {
    client::nodes(settings, urls).map(drop)
}

impl Elasticsearch {
    pub(super) fn new(settings: &Settings, urls: &[url::Url], store: &Store) -> Result<Elasticsearch, SettingsError> {
        Ok(Elasticsearch {
            nodes: Arc::new(client::nodes(settings, urls)?),
            store: store.clone(),
            prefix: settings.elasticsearch_index_prefix.clone(),
            shards: (settings.elasticsearch_shards, settings.elasticsearch_shards_per_account),
            missing: Arc::default(),
        })
    }

    /// The name under which searches find the index. It has the mapping's version, so that no service ever asks an
    /// index that was made by other rules.
    fn alias(&self) -> String {
        format!("{}-{}", self.prefix, mapping::MAPPING_VERSION)
    }

    /// What its indices are named after, and the version of their shape.
    pub(super) fn shape(&self) -> (&str, i32) {
        (&self.prefix, mapping::MAPPING_VERSION)
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
        client::ping(&self.nodes).await
    }

    /// Makes everything that was written until now visible to searches.
    ///
    /// # Errors
    /// When Elasticsearch fails.
    pub async fn refresh(&self) -> Result<(), ElasticError> {
        let path = format!("{}/_refresh", self.alias());
        client::send(&self.nodes, &Request::new(Method::Post, &path)).await.map(|_| ())
    }

    /// Answers a search. Where the index alone cannot tell, what it finds is compared with the products.
    pub(super) async fn page(&self, search: &Search<'_>) -> Result<Page<Found>, SearchError> {
        let lowered = lower::lower(&search.criteria.expression());
        let found = async {
            if lowered.exact && search.shop_ids.is_none() {
                self.hits(&lowered.query, search, search.position, search.size + 1).await
            } else {
                self.compared(&lowered.query, search).await
            }
        };
        let found = tokio::time::timeout(search.deadline, found).await.unwrap_or(Err(SearchError::TooSlow))?;
        Ok(Page::from_rows(found, search.size, search.position))
    }

    /// How many products a search finds, on all pages. Where the index alone cannot tell, all are compared.
    pub(super) async fn count(&self, search: &Search<'_>) -> Result<i64, SearchError> {
        let lowered = lower::lower(&search.criteria.expression());
        let count = async {
            if lowered.exact && search.shop_ids.is_none() {
                return self.total(&lowered.query, search).await;
            }
            let (mut count, mut position) = (0, Position::Start);
            loop {
                let hits = self.hits(&lowered.query, search, &position, MAX_COMPARED).await?;
                let keys: Vec<i64> = hits.iter().map(|hit| hit.key).collect();
                let kept = self.store.satisfying(&keys, search.criteria, search.shop_ids).await;
                count += kept.map_err(|error| SearchError::Internal(error.to_string()))?.len();
                match hits.last() {
                    Some(last) if hits.len() == MAX_COMPARED => position = Position::After(last.product_id.clone()),
                    _ => return Ok(i64::try_from(count).unwrap_or(i64::MAX)),
                }
            }
        };
        tokio::time::timeout(search.deadline, count).await.unwrap_or(Err(SearchError::TooSlow))
    }

    async fn total(&self, query: &Json, search: &Search<'_>) -> Result<i64, SearchError> {
        let mut body = search_body(query, search, &Position::Start, 0);
        body["track_total_hits"] = true.into();
        let path = format!("{}/_search?routing={}", self.alias(), search.account);
        let request = Request { timeout: search.deadline, ..Request::new(Method::Post, &path).json(&body) };
        let answer = client::send(&self.nodes, &request).await.map_err(|error| self.search_error(error))?;
        hits(&answer)?;
        let total = answer["hits"]["total"]["value"].as_i64();
        total.ok_or_else(|| SearchError::Internal("an answer has no total".to_owned()))
    }

    /// Reads on until there are enough products that satisfy the criteria, one more than the page has.
    async fn compared(&self, query: &Json, search: &Search<'_>) -> Result<Vec<Found>, SearchError> {
        let (mut satisfying, mut position, mut wanted) = (Vec::new(), search.position.clone(), search.size + 1);
        loop {
            let hits = self.hits(query, search, &position, wanted).await?;
            let (exhausted, last) = (hits.len() < wanted, hits.last().map(|hit| hit.product_id.clone()));
            let keys: Vec<i64> = hits.iter().map(|hit| hit.key).collect();
            let kept = self.store.satisfying(&keys, search.criteria, search.shop_ids).await;
            let kept: HashSet<i64> =
                kept.map_err(|error| SearchError::Internal(error.to_string()))?.into_iter().collect();
            satisfying.extend(hits.into_iter().filter(|hit| kept.contains(&hit.key)));
            let Some(last) = last.filter(|_| !exhausted && satisfying.len() <= search.size) else { break };
            position = match search.position {
                Position::Before(_) => Position::Before(last),
                _ => Position::After(last),
            };
            wanted = (wanted * 2).min(MAX_COMPARED);
        }
        satisfying.truncate(search.size + 1);
        Ok(satisfying)
    }

    async fn hits(
        &self,
        query: &Json,
        search: &Search<'_>,
        position: &Position<String>,
        count: usize,
    ) -> Result<Vec<Found>, SearchError> {
        let body = search_body(query, search, position, count);
        // Only shards that hold products of the account are asked.
        let path = format!("{}/_search?routing={}", self.alias(), search.account);
        let request = Request { timeout: search.deadline, ..Request::new(Method::Post, &path).json(&body) };
        hits(&client::send(&self.nodes, &request).await.map_err(|error| self.search_error(error))?)
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

fn search_body(query: &Json, search: &Search<'_>, position: &Position<String>, count: usize) -> Json {
    let mut filter = vec![json!({"term": {"owner": mapping::owner(search.account, search.shop)}})];
    if let Some(ids) = search.product_ids {
        let parts: Vec<Json> = ids.chunks(MAX_IDS_PER_QUERY).map(|ids| json!({"terms": {"id": ids}})).collect();
        filter.push(json!({"bool": {"should": parts, "minimum_should_match": 1}}));
    }
    filter.push(query.clone());
    let (order, after) = match position {
        Position::Start => ("asc", None),
        Position::After(id) => ("asc", Some(id)),
        Position::Before(id) => ("desc", Some(id)),
    };
    let mut body = json!({
        "query": {"bool": {"filter": filter}},
        "sort": [{"id": order}],
        "size": count,
        "timeout": format!("{}ms", search.deadline.as_millis().max(1)),
        "track_total_hits": false,
        "stored_fields": "_none_",
        "docvalue_fields": ["key"],
    });
    if let Some(id) = after {
        body["search_after"] = json!([id]);
    }
    if search.product_ids.is_some_and(<[String]>::is_empty) {
        body["query"] = json!({"match_none": {}});
    }
    body
}

/// The hits of an answer, in their order.
fn hits(answer: &Json) -> Result<Vec<Found>, SearchError> {
    if answer["timed_out"] == true {
        return Err(SearchError::TooSlow);
    }
    if answer["_shards"]["failed"].as_u64() != Some(0) {
        return Err(SearchError::Unavailable("a shard of the index failed".to_owned()));
    }
    let hit = |hit: &Json| {
        Some(Found { key: hit["fields"]["key"][0].as_i64()?, product_id: hit["sort"][0].as_str()?.to_owned() })
    };
    let hits = answer["hits"]["hits"].as_array().into_iter().flatten().map(hit);
    hits.collect::<Option<Vec<Found>>>().ok_or_else(|| SearchError::Internal("a hit has no key or no id".to_owned()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::domain::filter::Criteria;

    #[test]
    fn every_search_is_filtered_by_owner_and_bounded() {
        let criteria = Criteria::parse(r#"[{"productId": "abc"}]"#).expect("criteria");
        let ids = vec!["x".to_owned()];
        let search = Search {
            account: 1,
            shop: 0,
            criteria: &criteria,
            product_ids: Some(&ids),
            shop_ids: None,
            position: &Position::Before("m".to_owned()),
            size: 50,
            deadline: Duration::from_secs(2),
        };
        let query = lower::lower(&criteria.expression()).query;
        let body = search_body(&query, &search, search.position, 51);
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
        let hit = json!({"fields": {"key": [7]}, "sort": ["x"]});
        let answer = |timed_out: bool, failed: u64, hits: Json| {
            super::hits(&json!({"timed_out": timed_out, "_shards": {"failed": failed}, "hits": {"hits": hits}}))
        };
        assert_eq!(answer(false, 0, json!([hit])).ok(), Some(vec![Found { key: 7, product_id: "x".to_owned() }]));
        assert!(matches!(answer(true, 0, json!([hit])), Err(SearchError::TooSlow)));
        assert!(matches!(answer(false, 1, json!([hit])), Err(SearchError::Unavailable(_))));
        assert!(matches!(answer(false, 0, json!([{}])), Err(SearchError::Internal(_))));
    }
}
