//! The feed of changes, in an order in which none is ever missed.

use chrono::{DateTime, Utc};
use sqlx::QueryBuilder;
use sqlx_macros::FromRow;

use crate::domain::changes::{ToldChange, auto_assignment_after, instant, type_of, write_sequence};
use crate::domain::{ProductClass, Taxonomy};
use crate::store::journal::{stored_taxonomy, taxonomy_from_stored};
use crate::store::{Store, StoreError};

/// Changes that one answer looks through for those that are asked for.
const SCANNED: i64 = 20_000;

/// A change of a product or of an assignment.
#[derive(Clone, Debug, FromRow)]
pub struct Change {
    /// Grows along the feed.
    pub sequence: i64,
    /// The product's key, which stays when the product is gone.
    pub product_key: i64,
    /// The product.
    pub product_id: String,
    /// Its shop as stored, 0 for a global product.
    pub shop_id: i64,
    taxonomy: Option<i16>,
    /// What was done.
    pub action: String,
    /// The version after it.
    pub version: i64,
    /// The status of the assignment after it.
    pub status: Option<String>,
    /// The class of the assignment after it.
    pub product_class: Option<String>,
    /// How far auto-assignment is now; none when the product is gone.
    pub auto_state: Option<String>,
    /// When.
    pub happened_at: DateTime<Utc>,
}

impl Change {
    /// The assignment's taxonomy; none when the product itself changed.
    pub fn taxonomy(&self) -> Option<Taxonomy> {
        self.taxonomy.map(taxonomy_from_stored)
    }

    /// The change as feed and webhooks tell it.
    pub fn told(&self) -> ToldChange {
        let taxonomy = self.taxonomy();
        let class = self.product_class.as_deref().and_then(|class| class.parse::<ProductClass>().ok());
        let after = taxonomy.and_then(|_| auto_assignment_after(&self.action)).map(str::to_owned);
        ToldChange {
            sequence: write_sequence(self.sequence),
            kind: type_of(&self.action, taxonomy),
            product_id: self.product_id.clone(),
            shop_id: (self.shop_id > 0).then_some(self.shop_id),
            taxonomy: taxonomy.map(Taxonomy::name),
            version: self.version,
            assignment_status: self.status.clone(),
            product_class_code: class.map(|class| class.code.to_string()),
            auto_assignment: after.or_else(|| self.auto_state.clone()),
            timestamp: instant(self.happened_at),
        }
    }
}

/// Which changes are asked for.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Their types; all when there is none.
    pub types: Option<Vec<String>>,
    /// Changes of assignments of this taxonomy only.
    pub taxonomy: Option<Taxonomy>,
}

impl Selection {
    /// Whether it selects everything.
    fn is_open(&self) -> bool {
        self.types.is_none() && self.taxonomy.is_none()
    }
}

/// A part of the feed.
#[derive(Clone, Debug)]
pub struct Changes {
    /// Oldest first.
    pub items: Vec<Change>,
    /// Where to go on.
    pub next: i64,
    /// Whether this is all there is at present.
    pub at_end: bool,
}

impl Store {
    /// The present end of the feed: behind it lies what happens from now on.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn latest_change(&self) -> Result<i64, StoreError> {
        let horizon: i64 = sqlx::query_scalar("select journal_horizon()").fetch_one(self.pool()).await?;
        Ok(horizon - 1)
    }

    /// Changes behind a sequence, oldest first.
    ///
    /// A change whose transaction began before another that still runs waits for that one, so that what is answered
    /// never has gaps which would be filled later.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn changes(
        &self,
        account: i64,
        after: i64,
        size: usize,
        selection: &Selection,
    ) -> Result<Changes, StoreError> {
        // Everything up to here is committed by now, and seen by the statements that follow.
        let end = self.latest_change().await?;
        let upto = if selection.is_open() { end } else { self.scanned_upto(account, after, end).await? };
        let at_end = upto == end;
        let mut query = QueryBuilder::new(
            "select sequence, product_key, journal.product_id, journal.shop_id, taxonomy, action, journal.version,
                    journal.status, journal.product_class, auto_state, happened_at
             from journal left join assignments using (product_key, taxonomy)
             where journal.account_id = ",
        );
        query.push_bind(account).push(" and sequence > ").push_bind(after).push(" and sequence <= ").push_bind(upto);
        if let Some(types) = &selection.types {
            query.push(" and case when taxonomy is null then action else 'ASSIGNMENT_' || action end = any(");
            query.push_bind(types.clone()).push(")");
        }
        if let Some(taxonomy) = selection.taxonomy {
            query.push(" and taxonomy = ").push_bind(stored_taxonomy(taxonomy));
        }
        query.push(" order by sequence limit ").push_bind(size as i64);
        let items: Vec<Change> = query.build_query_as().fetch_all(self.pool()).await?;
        let full = items.len() == size;
        let next = items.last().filter(|_| full).map_or(upto.max(after), |last| last.sequence);
        Ok(Changes { items, next, at_end: at_end && !full })
    }

    /// How far a page goes that selects: what is not selected is gone past as well, and no request goes past more than
    /// [`SCANNED`] changes.
    async fn scanned_upto(&self, account: i64, after: i64, end: i64) -> Result<i64, StoreError> {
        let (scanned, last): (i64, Option<i64>) = sqlx::query_as(
            "select count(*), max(sequence) from (select sequence from journal
             where account_id = $1 and sequence > $2 and sequence <= $3 order by sequence limit $4) as scanned",
        )
        .bind(account)
        .bind(after)
        .bind(end)
        .bind(SCANNED)
        .fetch_one(self.pool())
        .await?;
        Ok(if scanned < SCANNED { end } else { last.unwrap_or(end) })
    }
}
