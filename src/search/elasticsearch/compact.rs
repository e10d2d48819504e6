//! Makes a new index small.
//!
//! Elasticsearch keeps the source of every document for the recovery of replicas, and although the mapping turns
//! `_source` off: until its own retention lease, which it renews every half minute, has passed the document, and until
//! the segment is merged after that. It is most of what a new index takes.

use std::collections::BTreeMap;
use std::time::Duration;

use elasticsearch::http::Method;
use serde_json::Value as Json;
use tokio::time::Instant;

use crate::search::EngineError;
use crate::search::elasticsearch::Elasticsearch;
use crate::search::elasticsearch::client::{self, Request};

/// How long the retention lease is waited for; it is renewed every 30 s.
const LEASE_LIMIT: Duration = Duration::from_secs(90);
/// Time between two looks at it.
const LEASE_PAUSE: Duration = Duration::from_secs(2);
/// How long merging may take.
const MERGE_LIMIT: Duration = Duration::from_secs(3_600);
/// Products for which there is one segment more: below the size of 5 GB from which on Elasticsearch no longer merges a
/// segment by itself, so that what is written later does not leave it full of deleted entries.
const PRODUCTS_PER_SEGMENT: i64 = 2_000_000;

impl Elasticsearch {
    /// Merges the index that answers searches, once the sources of what it holds are no longer needed. Searches and
    /// writes go on.
    pub(crate) async fn compact(&self) -> Result<(), EngineError> {
        match self.aliased().await?.pop() {
            Some(index) => self.compact_index(&index).await,
            None => Ok(()),
        }
    }

    /// The same with an index by its name.
    pub(super) async fn compact_index(&self, index: &str) -> Result<(), EngineError> {
        self.admin(Method::Post, &format!("{index}/_flush?force=true"), None).await?;
        let before = self.sequences(index).await?;
        let began = Instant::now();
        while keeps_any(&before, &self.sequences(index).await?) && began.elapsed() < LEASE_LIMIT {
            tokio::time::sleep(LEASE_PAUSE).await;
        }
        let segments = 1 + self.store().count_products().await? / PRODUCTS_PER_SEGMENT;
        let path = format!("{index}/_forcemerge?max_num_segments={segments}");
        let merge = Request { timeout: MERGE_LIMIT, ..Request::new(Method::Post, &path) };
        client::send(&self.nodes, &merge).await?;
        Ok(())
    }

    async fn sequences(&self, index: &str) -> Result<BTreeMap<String, Sequence>, EngineError> {
        Ok(sequences(&self.admin(Method::Get, &format!("{index}/_stats/docs?level=shards"), None).await?))
    }
}

/// Whether a source is still kept of what had been written before.
fn keeps_any(before: &BTreeMap<String, Sequence>, now: &BTreeMap<String, Sequence>) -> bool {
    before.iter().any(|(shard, before)| now.get(shard).is_some_and(|now| now.kept_from <= before.written))
}

/// Numbers of operations on a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sequence {
    /// The last one that was written.
    written: i64,
    /// The first one whose source is kept.
    kept_from: i64,
}

/// Reads the numbers of each shard of an index from its statistics.
fn sequences(stats: &Json) -> BTreeMap<String, Sequence> {
    let mut shards = BTreeMap::new();
    let indices = stats["indices"].as_object().into_iter().flatten();
    for (shard, copies) in indices.flat_map(|(_, index)| index["shards"].as_object().into_iter().flatten()) {
        let found = shards.entry(shard.clone()).or_insert(Sequence { written: -1, kept_from: i64::MAX });
        for copy in copies.as_array().into_iter().flatten() {
            found.written = found.written.max(copy["seq_no"]["max_seq_no"].as_i64().unwrap_or(-1));
            for lease in copy["retention_leases"]["leases"].as_array().into_iter().flatten() {
                found.kept_from = found.kept_from.min(lease["retaining_seq_no"].as_i64().unwrap_or(0));
            }
        }
    }
    shards
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sources_are_kept_from_the_earliest_lease_of_any_copy() {
        let copy = |written: i64, kept: &[i64]| {
            let leases: Vec<Json> = kept.iter().map(|from| json!({"id": "x", "retaining_seq_no": from})).collect();
            json!({"seq_no": {"max_seq_no": written}, "retention_leases": {"leases": leases}})
        };
        let stats = json!({"indices": {"i": {"shards": {
            "0": [copy(9, &[5, 3]), copy(8, &[4])], "1": [copy(2, &[3])],
        }}}});
        let found = sequences(&stats);
        assert_eq!(found["0"], Sequence { written: 9, kept_from: 3 });
        assert_eq!(found["1"], Sequence { written: 2, kept_from: 3 });
        assert!(keeps_any(&found, &found));
        let only = |shard: &str| {
            found.iter().filter(|(name, _)| *name == shard).map(|(name, found)| (name.clone(), *found)).collect()
        };
        assert!(keeps_any(&only("0"), &found) && !keeps_any(&only("1"), &found));
        assert!(sequences(&json!({})).is_empty());
    }
}
