//! The feed of changes, in an order in which none is ever missed.

use chrono::{DateTime, Utc};
use sqlx::FromRow;

use crate::domain::Taxonomy;
use crate::store::journal::taxonomy_from_stored;
use crate::store::{Store, StoreError};

/// A change of a product or of an assignment.
#[derive(Clone, Debug, FromRow)]
pub struct Change {
    /// Grows along the feed.
    pub sequence: i64,
    /// The product.
    pub product_id: String,
    /// Its shop as stored, 0 for a global product.
    pub shop_id: i64,
    taxonomy: Option<i16>,
    /// What was done.
    pub action: String,
    /// The version after it.
    pub version: i64,
    /// When.
    pub happened_at: DateTime<Utc>,
}

impl Change {
    /// The assignment's taxonomy; none when the product itself changed.
    pub fn taxonomy(&self) -> Option<Taxonomy> {
        self.taxonomy.map(taxonomy_from_stored)
    }
}

impl Store {
    /// Changes behind a sequence, oldest first.
    ///
    /// A change whose transaction began before another that still runs waits for that one, so that what is answered
    /// never has gaps which would be filled later.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn changes(&self, account: i64, after: i64, size: usize) -> Result<Vec<Change>, StoreError> {
        let changes = sqlx::query_as(
            "select sequence, product_id, shop_id, taxonomy, action, version, happened_at from journal
             where account_id = $1 and sequence > $2 and sequence < (select journal_horizon())
             order by sequence limit $3",
        )
        .bind(account)
        .bind(after)
        .bind(size as i64)
        .fetch_all(self.pool())
        .await?;
        Ok(changes)
    }
}
