//! How much work waits.

use sqlx_macros::FromRow;

use crate::store::{Store, StoreError};

/// Rows of a queue that are counted at most: beyond them it is long, however long.
pub const MAX_COUNTED: i64 = 100_000;

/// Rows of each queue, at most [`MAX_COUNTED`].
#[derive(Clone, Debug, Default, PartialEq, FromRow)]
pub struct QueueLengths {
    /// Products that wait for auto-assignment.
    pub auto_queue: i64,
    /// Products whose auto-assignment failed.
    pub auto_parked: i64,
    /// Changes that wait for the search index.
    pub search_outbox: i64,
    /// Products that could not be indexed.
    pub search_parked: i64,
    /// Objects of pictures that wait to be removed.
    pub orphaned_objects: i64,
    /// For how long the oldest product waits for auto-assignment, in seconds; 0 when none waits.
    pub auto_queue_seconds: f64,
    /// For how long the oldest change waits for the search index, in seconds; 0 when none waits.
    pub search_outbox_seconds: f64,
}

impl Store {
    /// How much work waits in each queue.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn queue_lengths(&self) -> Result<QueueLengths, StoreError> {
        let lengths = sqlx::query_as(
            "select (select count(*) from (select from auto_queue limit $1) as counted) as auto_queue,
                    (select count(*) from (select from auto_parked limit $1) as counted) as auto_parked,
                    (select count(*) from (select from search_outbox limit $1) as counted) as search_outbox,
                    (select count(*) from (select from search_parked limit $1) as counted) as search_parked,
                    (select count(*) from (select from orphaned_objects limit $1) as counted) as orphaned_objects,
                    (select coalesce(extract(epoch from now() - min(queued_at)), 0)::float8
                     from (select queued_at from auto_queue limit $1) as counted) as auto_queue_seconds,
                    (select coalesce(extract(epoch from now() - min(queued_at)), 0)::float8
                     from (select queued_at from search_outbox limit $1) as counted) as search_outbox_seconds",
        )
        .bind(MAX_COUNTED)
        .fetch_one(self.pool())
        .await?;
        Ok(lengths)
    }
}
