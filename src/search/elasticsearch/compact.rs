//! Makes a new index small.
//!
//! Elasticsearch keeps the source of every document for the recovery of replicas, and although the mapping turns
//! `_source` off: until its own retention lease, which it renews every half minute, has passed the document, and until
//! the segment is merged after that. It is most of what a new index takes.

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
        let written = self.sequence(index).await?.written;
        let began = Instant::now();
        while self.sequence(index).await?.kept_from <= written && began.elapsed() < LEASE_LIMIT {
            tokio::time::sleep(LEASE_PAUSE).await;
        }
        let segments = 1 + self.store().count_products().await? / PRODUCTS_PER_SEGMENT;
        let path = format!("{index}/_forcemerge?max_num_segments={segments}");
        let merge = Request { timeout: MERGE_LIMIT, ..Request::new(Method::Post, &path) };
        client::send(&self.transport, &merge).await?;
        Ok(())
    }

    async fn sequence(&self, index: &str) -> Result<Sequence, EngineError> {
        Ok(sequence(&self.admin(Method::Get, &format!("{index}/_stats/docs?level=shards"), None).await?))
    }
}

/// Numbers of operations on an index.
#[derive(Debug, PartialEq, Eq)]
struct Sequence {
    /// The last one that was written.
    written: i64,
    /// The first one whose source is kept.
    kept_from: i64,
}

/// Reads the numbers of an index of one shard from its statistics.
fn sequence(stats: &Json) -> Sequence {
    let copies = stats["indices"].as_object().into_iter().flatten();
    let copies = copies.flat_map(|(_, index)| index["shards"]["0"].as_array().into_iter().flatten());
    let (mut written, mut kept_from) = (-1, i64::MAX);
    for copy in copies {
        written = written.max(copy["seq_no"]["max_seq_no"].as_i64().unwrap_or(-1));
        for lease in copy["retention_leases"]["leases"].as_array().into_iter().flatten() {
            kept_from = kept_from.min(lease["retaining_seq_no"].as_i64().unwrap_or(0));
        }
    }
    Sequence { written, kept_from }
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
        let stats = json!({"indices": {"i": {"shards": {"0": [copy(9, &[5, 3]), copy(8, &[4])]}}}});
        assert_eq!(sequence(&stats), Sequence { written: 9, kept_from: 3 });
        assert_eq!(sequence(&json!({})), Sequence { written: -1, kept_from: i64::MAX });
    }
}
