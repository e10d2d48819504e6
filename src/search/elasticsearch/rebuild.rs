//! Makes an index from PostgreSQL while writes go on, and lets searches find it once it is complete.

use std::time::Duration;

use elasticsearch::http::Method;
use serde_json::{Value as Json, json};
use tokio::task::JoinSet;

use crate::search::elasticsearch::client::{self, ElasticError, Request};
use crate::search::elasticsearch::{Elasticsearch, mapping, write};
use crate::search::standing::{Standing, standing};
use crate::search::versions::is_left_to_later;
use crate::search::{EngineError, Progress};
use crate::store::search::{Change, IndexRecord, Outcome, StoredProduct, changes_of};

/// How long the work that ends a rebuild may take: making everything visible.
const FINISH_TIMEOUT: Duration = Duration::from_secs(300);
/// Products that are read at once.
const READ_PRODUCTS: usize = 1_000;
/// Parts of that many products that are written at once, so that Elasticsearch has work while the next part is read.
const WRITES_AT_ONCE: usize = 2;
/// Parts after which is noted how far the index is: some ten seconds of work at most are done twice.
const CHECKPOINT_PARTS: usize = 20;
/// How often products are written again that the server had no room for, before the rebuild fails.
const MAX_ROUNDS: u32 = 20;
/// Time before they are written again, in milliseconds.
const ROUND_PAUSE_MS: std::ops::Range<u64> = 200..600;
/// How long the entry of a deleted product keeps late writes from bringing it back, in milliseconds.
const REMOVED_KEPT_MS: i64 = 24 * 60 * 60 * 1_000;
/// Entries that are read or removed at once.
const SWEEP_ENTRIES: usize = 5_000;

impl Elasticsearch {
    /// What there is of the index, by the database and by Elasticsearch itself.
    pub(crate) async fn standing(&self) -> Result<Standing, EngineError> {
        let indexes = self.store.search_indexes().await?;
        let standing = standing(&indexes, &self.prefix, mapping::MAPPING_VERSION);
        if standing != Standing::Ready {
            return Ok(standing);
        }
        let aliased = self.aliased().await?;
        let known = indexes.iter().any(|index| !index.building && aliased == [index.name.as_str()]);
        Ok(if known { Standing::Ready } else { Standing::Missing })
    }

    /// The indices that this service writes to, and whether it may: not beside a later version.
    pub(crate) async fn targets(&self) -> Result<(Vec<IndexRecord>, bool), EngineError> {
        let (family, version) = self.shape();
        let mut indexes = self.store.search_indexes().await?;
        let may_write = !is_left_to_later(&indexes, family, version);
        indexes.retain(|index| index.family == family && index.mapping_version == version);
        Ok((indexes, may_write))
    }

    /// Writes changes to every index that is fed. An index in the making that is gone needs nothing.
    pub(crate) async fn apply(&self, changes: &[Change]) -> Result<Vec<Outcome>, EngineError> {
        // After the claim: what is written elsewhere alone would be missing in an index that was begun before it.
        let (targets, may_write) = self.targets().await?;
        if !may_write {
            return Err(EngineError::Newer);
        }
        if targets.iter().all(|index| index.building) {
            return Err(EngineError::NotReady);
        }
        let mut outcomes = vec![Outcome::Done; changes.len()];
        for target in targets {
            match self.apply_to(&target.name, changes).await {
                Ok(found) => outcomes.iter_mut().zip(found).for_each(|(outcome, other)| merge(outcome, other)),
                Err(EngineError::Elasticsearch(ElasticError::Missing(_))) if target.building => {}
                Err(EngineError::Elasticsearch(ElasticError::Missing(_))) => return Err(EngineError::NotReady),
                Err(error) => return Err(error),
            }
        }
        Ok(outcomes)
    }

    async fn apply_to(&self, index: &str, changes: &[Change]) -> Result<Vec<Outcome>, EngineError> {
        let (index, changes) = (index.to_owned(), changes.to_vec());
        let now = chrono::Utc::now().timestamp_millis();
        let count = changes.len();
        let bulks = tokio::task::spawn_blocking(move || write::encode(&changes, &index, now)).await?;
        Ok(self.write(bulks, count).await?)
    }

    /// Makes a new index, fills it, and lets it answer in place of the old one; one that an earlier rebuild did not
    /// finish is filled further. The caller holds the right to rebuild.
    pub(crate) async fn rebuild(&self, progress: &Progress<'_>) -> Result<(), EngineError> {
        let record = match self.unfinished().await? {
            Some(record) => record,
            None => self.begin().await?,
        };
        self.copy(&record, progress).await?;
        self.admin(Method::Put, &format!("{}/_settings", record.name), Some(&mapping::live_settings())).await?;
        let path = format!("{}/_refresh", record.name);
        let refresh = Request { timeout: FINISH_TIMEOUT, ..Request::new(Method::Post, &path) };
        client::send(&self.nodes, &refresh).await?;
        if self.targets().await?.0.iter().any(|index| index.stale && !index.building) {
            // What answers now is ahead of the database: slow answers are better than wrong ones.
            self.swap(&record.name).await?;
            self.merge_segments(&record.name).await;
            return Ok(());
        }
        // An index of many segments is slow: what answers now, if anything does, goes on until they are merged.
        if !self.aliased().await?.is_empty() {
            self.merge_segments(&record.name).await;
        }
        self.swap(&record.name).await
    }

    /// Makes an index small that is as good without.
    async fn merge_segments(&self, index: &str) {
        if let Err(error) = self.compact_index(index).await {
            tracing::warn!(%error, "the new search index is used as it is, since it could not be merged");
        }
    }

    /// The index of a rebuild that ended early, if it is one of ours and has got anywhere; others are no longer fed.
    async fn unfinished(&self) -> Result<Option<IndexRecord>, EngineError> {
        let mut found = None;
        for index in self.store.search_indexes().await?.into_iter().filter(|index| index.building) {
            let is_ours = index.family == self.prefix && index.mapping_version == mapping::MAPPING_VERSION;
            if found.is_none() && is_ours && index.built_to.is_some() && self.exists(&index.name).await? {
                found = Some(index);
            } else {
                self.store.remove_search_index(&index.name).await?;
            }
        }
        Ok(found)
    }

    async fn exists(&self, index: &str) -> Result<bool, EngineError> {
        match self.admin(Method::Get, &format!("_alias/{}", write::write_alias(index)), None).await {
            Ok(_) => Ok(true),
            Err(EngineError::Elasticsearch(ElasticError::Missing(_))) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Makes an empty index. When this returns every change goes to it, too; what was claimed before is older than what
    /// is read from then on.
    async fn begin(&self) -> Result<IndexRecord, EngineError> {
        let record = IndexRecord {
            name: format!("{}-{}", self.alias(), chrono::Utc::now().format("%Y%m%d%H%M%S%3f")),
            family: self.prefix.clone(),
            mapping_version: mapping::MAPPING_VERSION,
            building: true,
            stale: false,
            built_to: None,
        };
        let mut body = mapping::index_body(self.shards);
        body["aliases"] = json!({write::write_alias(&record.name): {}});
        self.admin(Method::Put, &record.name, Some(&body)).await?;
        self.store.add_search_index(&record).await?;
        Ok(record)
    }

    /// Lets an index answer, and removes the others. Whoever lost the right to rebuild with the connection that held it may
    /// have had its index struck off the list by the next: one that is no longer fed is to answer nothing.
    async fn swap(&self, name: &str) -> Result<(), EngineError> {
        if !self.store.search_indexes().await?.iter().any(|index| index.name == name) {
            return Err(EngineError::Busy);
        }
        let mut actions: Vec<Json> = Vec::new();
        for old in self.aliased().await? {
            actions.push(json!({"remove": {"index": old, "alias": self.alias()}}));
        }
        actions.push(json!({"add": {"index": name, "alias": self.alias()}}));
        self.admin(Method::Post, "_aliases", Some(&json!({"actions": actions}))).await?;
        if !self.store.set_search_index(name).await? {
            return Err(EngineError::Busy);
        }
        let path = format!("_cat/indices/{}-*?format=json&h=index", self.prefix);
        let indices = self.admin(Method::Get, &path, None).await?;
        for index in indices.as_array().into_iter().flatten().filter_map(|index| index["index"].as_str()) {
            if index != name && self.is_ours(index) {
                self.admin(Method::Delete, index, None).await?;
            }
        }
        Ok(())
    }

    /// Whether an index is named as this family's are, and not as those of a longer prefix.
    fn is_ours(&self, index: &str) -> bool {
        let rest = index.strip_prefix(&self.prefix).and_then(|rest| rest.strip_prefix('-'));
        rest.and_then(|rest| rest.split_once('-')).is_some_and(|(version, time)| {
            let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            digits(version) && digits(time)
        })
    }

    /// The indices that the alias names.
    pub(super) async fn aliased(&self) -> Result<Vec<String>, EngineError> {
        match self.admin(Method::Get, &format!("_alias/{}", self.alias()), None).await {
            Ok(found) => Ok(found.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()),
            Err(EngineError::Elasticsearch(ElasticError::Missing(_))) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn admin(&self, method: Method, path: &str, body: Option<&Json>) -> Result<Json, EngineError> {
        let request = Request::new(method, path);
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        Ok(client::send(&self.nodes, &request).await?)
    }

    /// Copies every product into an index, from where it is complete: while some parts are written, the next one is read
    /// and encoded.
    async fn copy(&self, record: &IndexRecord, progress: &Progress<'_>) -> Result<(), EngineError> {
        let total = self.store.count_products().await?;
        let (mut after, mut done) = (record.built_to.unwrap_or(i64::MIN), 0);
        let mut told = |count: i64| {
            done += count;
            progress(done, total.max(done));
        };
        // Those under way end with the set when one of them fails.
        let mut writes = JoinSet::new();
        let mut parts = 0;
        while let Some((last, part)) = self.read(after, &record.name).await? {
            parts += 1;
            if parts % CHECKPOINT_PARTS == 0 {
                while let Some(written) = writes.join_next().await {
                    told(written??);
                }
                self.checkpoint(&record.name, after).await?;
            }
            after = last;
            if writes.len() == WRITES_AT_ONCE
                && let Some(written) = writes.join_next().await
            {
                told(written??);
            }
            let (engine, index) = (self.clone(), record.name.clone());
            writes.spawn(async move {
                let count = part.changes.len() as i64;
                engine.write_all(&index, part).await.map(|()| count)
            });
        }
        while let Some(written) = writes.join_next().await {
            told(written??);
        }
        Ok(())
    }

    /// Notes how far an index is complete, once that is on the disk of Elasticsearch.
    async fn checkpoint(&self, index: &str, key: i64) -> Result<(), EngineError> {
        let path = format!("{index}/_flush");
        let flush = Request { timeout: FINISH_TIMEOUT, ..Request::new(Method::Post, &path) };
        client::send(&self.nodes, &flush).await?;
        Ok(self.store.set_built_to(index, key).await?)
    }

    async fn read(&self, after: i64, index: &str) -> Result<Option<(i64, Part)>, EngineError> {
        let read = self.store.products_after_key(after, READ_PRODUCTS).await?;
        let Some(last) = read.last else { return Ok(None) };
        let index = index.to_owned();
        let part = tokio::task::spawn_blocking(move || {
            let (changes, refused) = changes_of(read.products, StoredProduct::change);
            let bulks = write::encode(&changes, &index, 0);
            (Part { changes, bulks }, refused)
        });
        let (part, refused) = part.await?;
        for (change, reason) in &refused {
            self.store.park_search_change(change, reason).await?;
        }
        Ok(Some((last, part)))
    }

    async fn write_all(&self, index: &str, part: Part) -> Result<(), EngineError> {
        let Part { mut changes, bulks } = part;
        let mut outcomes = self.write(bulks, changes.len()).await;
        for _ in 0..MAX_ROUNDS {
            let mut again = Vec::new();
            match outcomes {
                Ok(found) => {
                    for (change, outcome) in changes.into_iter().zip(found) {
                        match outcome {
                            Outcome::Done => {}
                            Outcome::Retry(_) => again.push(change),
                            Outcome::Never(reason) => self.store.park_search_change(&change, &reason).await?,
                        }
                    }
                }
                Err(ElasticError::Timeout(_) | ElasticError::Unavailable(_)) => again = changes,
                Err(error) => return Err(error.into()),
            }
            if again.is_empty() {
                return Ok(());
            }
            changes = again;
            tokio::time::sleep(client::pause(ROUND_PAUSE_MS)).await;
            outcomes = match self.apply_to(index, &changes).await {
                Ok(found) => Ok(found),
                Err(EngineError::Elasticsearch(error)) => Err(error),
                Err(error) => return Err(error),
            };
        }
        Err(ElasticError::Unavailable("it refused the same products again and again".to_owned()).into())
    }

    /// Keys and versions of entries above this key, in the order of keys; those of deleted products are left out.
    pub(crate) async fn versions(&self, after: i64, limit: usize) -> Result<Vec<(i64, i64)>, EngineError> {
        let body = json!({
            "query": {"exists": {"field": "key"}},
            "sort": [{"key": "asc"}],
            "search_after": [after],
            "size": limit,
            "version": true,
            "track_total_hits": false,
        });
        let path = format!("{}/_search", self.alias());
        let answer = self.admin(Method::Post, &path, Some(&body)).await?;
        let hits = answer["hits"]["hits"].as_array();
        let versions =
            hits.into_iter().flatten().map(|hit| Some((hit["sort"][0].as_i64()?, hit["_version"].as_i64()?)));
        Ok(versions.flatten().collect())
    }

    /// Removes the entries that only keep the versions of long deleted products.
    ///
    /// Ends when the server refuses some: they are found again the next time.
    pub(crate) async fn sweep(&self) -> Result<(), EngineError> {
        let before = chrono::Utc::now().timestamp_millis() - REMOVED_KEPT_MS;
        loop {
            let body =
                json!({"query": {"range": {"removed_at": {"lt": before}}}, "size": SWEEP_ENTRIES, "version": true});
            let path = format!("{}/_search", self.alias());
            let answer = self.admin(Method::Post, &path, Some(&body)).await?;
            let mut bulk = Vec::new();
            let mut count = 0;
            for hit in answer["hits"]["hits"].as_array().into_iter().flatten() {
                let action = json!({"delete": {"_index": hit["_index"], "_id": hit["_id"], "routing": hit["_routing"],
                    "version": hit["_version"], "version_type": "external_gte"}});
                bulk.extend_from_slice(action.to_string().as_bytes());
                bulk.push(b'\n');
                count += 1;
            }
            if count == 0 {
                return Ok(());
            }
            let mut request = Request::new(Method::Post, "_bulk");
            request.query = &[("refresh", "true"), ("filter_path", "errors,items.*.status,items.*.error.reason")];
            request.body = Some(bulk);
            refused(&client::send(&self.nodes, &request).await?)?;
        }
    }
}

/// Fails when a removal was refused. One that was made already, or overtaken by a later version, is none.
fn refused(answer: &Json) -> Result<(), ElasticError> {
    let operations = answer["items"].as_array().into_iter().flatten().map(|item| &item["delete"]);
    let mut refused =
        operations.filter(|operation| !matches!(operation["status"].as_u64(), Some(200..=299 | 404 | 409)));
    match refused.next() {
        None => Ok(()),
        Some(operation) => {
            let reason = operation["error"]["reason"].as_str().unwrap_or_default();
            Err(ElasticError::Unavailable(format!("it refuses to remove entries: {reason}")))
        }
    }
}

/// Products that were read together, and the requests that write them.
struct Part {
    changes: Vec<Change>,
    bulks: Vec<write::Bulk>,
}

/// The outcome over several indices: what is refused by one is refused, what one had no room for is tried again.
fn merge(outcome: &mut Outcome, other: Outcome) {
    match (&*outcome, &other) {
        (Outcome::Never(_), _) | (_, Outcome::Done) => {}
        _ => *outcome = other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_removal_is_told_from_one_that_is_done() {
        let answer = |status: u64| json!({"items": [{"delete": {"status": 200}}, {"delete": {"status": status}}]});
        for done in [200, 404, 409] {
            assert!(super::refused(&answer(done)).is_ok(), "{done}");
        }
        for bad in [400, 403, 429, 503] {
            assert!(super::refused(&answer(bad)).is_err(), "{bad}");
        }
    }
}
