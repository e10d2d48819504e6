//! What people decided, as rows: how services follow them, and what follows from them for products that are alike.
//!
//! The rows are written by a trigger of the journal, in the transaction of the decision.

mod alike;
mod lessons;
mod transfer;

use sqlx::{AssertSqlSafe, Row};
use sqlx_macros::FromRow;
use uuid::Uuid;

use crate::domain::Taxonomy;
use crate::store::details::{StoredDetails, readable};
use crate::store::journal::taxonomy_from_stored;
use crate::store::products::bytes_before;
use crate::store::{Store, StoreError};

pub(super) use alike::keep_words;
pub use alike::{AlikeProduct, MAX_PRODUCTS_AT_ONCE, MAX_PRODUCTS_RANKED};
pub use lessons::{MEMORY, MemoryLesson};
pub use transfer::MemoryEntry;

/// Decisions that are read at once.
pub const PAGE_DECISIONS: i64 = 500;
/// Bytes of decisions or of products that are read at once, but for one that alone has more.
pub const READ_BYTES: usize = 8 << 20;
/// The greatest id that a transaction may have.
const LAST_TRANSACTION: &str = "18446744073709551615";

/// A remembered decision.
#[derive(Clone, Debug, FromRow)]
pub struct RememberedRow {
    /// Its account.
    pub account_id: i64,
    /// The assignment that was decided.
    pub assignment_uuid: Uuid,
    taxonomy: i16,
    /// 1: the class is right; -1: it is wrong; 0: the decision was taken back.
    pub verdict: i16,
    /// The class, written code-NN-NNN.
    pub product_class: Option<String>,
    /// Details with nothing but the texts.
    pub texts: StoredDetails,
}

impl RememberedRow {
    /// The taxonomy of the class.
    pub fn taxonomy(&self) -> Taxonomy {
        taxonomy_from_stored(self.taxonomy)
    }
}

/// Some of the decisions that have changed.
#[derive(Debug, Default)]
pub struct MemoryPage {
    /// The decisions.
    pub rows: Vec<RememberedRow>,
    /// Where the next page begins, if there may be one.
    pub next: Option<(String, Uuid)>,
}

/// How many decisions an account remembers in a taxonomy.
#[derive(Clone, Debug, FromRow)]
pub struct MemorySize {
    taxonomy: i16,
    /// Classes said to be right.
    pub right: i64,
    /// Classes said to be wrong.
    pub wrong: i64,
}

impl MemorySize {
    /// The taxonomy.
    pub fn taxonomy(&self) -> Taxonomy {
        taxonomy_from_stored(self.taxonomy)
    }
}

/// The oldest transaction that a snapshot does not show for certain, and the first that it cannot show.
fn bounds(snapshot: &str) -> (&str, &str) {
    let mut parts = snapshot.split(':');
    (parts.next().unwrap_or("0"), parts.next().unwrap_or(LAST_TRANSACTION))
}

impl Store {
    /// What the database shows now, in its own words.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn memory_snapshot(&self) -> Result<String, StoreError> {
        Ok(sqlx::query_scalar("select pg_current_snapshot()::text").fetch_one(self.pool()).await?)
    }

    /// Decisions that changed between two snapshots, in pages of no more than [`READ_BYTES`]; all of them where nothing was seen
    /// before.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn memory_page(
        &self,
        seen: Option<&str>,
        now: &str,
        after: Option<(String, Uuid)>,
    ) -> Result<MemoryPage, StoreError> {
        let (from, until) = match seen {
            Some(seen) => (bounds(seen).0, bounds(now).1),
            // A restored row may have been written by a transaction that is yet to come here.
            None => ("0", LAST_TRANSACTION),
        };
        let (from, assignment) = after.unwrap_or_else(|| (from.to_owned(), Uuid::nil()));
        let rows = sqlx::query(AssertSqlSafe(format!(
            "select *, changed_in::text as transaction
             from (select *, count(*) over () as found, {} as before
                   from (select account_id, assignment_uuid, taxonomy, verdict, product_class, texts, changed_in
                         from memory_decisions
                         where (changed_in, assignment_uuid) > ($1::text::xid8, $2) and changed_in < $3::text::xid8
                           and ($4::text is null or not pg_visible_in_snapshot(changed_in, $4::text::pg_snapshot))
                         order by changed_in, assignment_uuid limit $5) as page) as page
             where before < $6 order by changed_in, assignment_uuid",
            bytes_before("octet_length(texts::text)", "changed_in, assignment_uuid")
        )))
        .bind(from)
        .bind(assignment)
        .bind(until)
        .bind(seen)
        .bind(PAGE_DECISIONS)
        .bind(READ_BYTES as i64)
        .fetch_all(self.pool())
        .await?;
        let found: i64 = rows.first().map_or(Ok(0), |row| row.try_get("found"))?;
        let next = match rows.last() {
            Some(last) if found == PAGE_DECISIONS || rows.len() as i64 != found => {
                Some((last.try_get("transaction")?, last.try_get("assignment_uuid")?))
            }
            _ => None,
        };
        Ok(MemoryPage { rows: readable(&rows), next })
    }

    /// Removes what was taken back a day ago, of which every service has heard.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn forget_taken_back(&self) -> Result<u64, StoreError> {
        let done =
            sqlx::query("delete from memory_decisions where verdict = 0 and decided_at < now() - interval '1 day'")
                .execute(self.pool())
                .await?;
        Ok(done.rows_affected())
    }

    /// How many decisions an account remembers, by taxonomy.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn memory_sizes(&self, account: i64) -> Result<Vec<MemorySize>, StoreError> {
        let sizes = sqlx::query_as(
            "select taxonomy, count(*) filter (where verdict = 1) as right, count(*) filter (where verdict = -1) as wrong
             from memory_decisions where account_id = $1 and verdict <> 0 group by taxonomy order by taxonomy",
        )
        .bind(account)
        .fetch_all(self.pool())
        .await?;
        Ok(sizes)
    }

    /// Forgets all that an account remembers, and answers how many decisions that were. The decisions themselves stay, and
    /// so do the classes that alike products got by them.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn clear_memory(&self, account: i64) -> Result<u64, StoreError> {
        let mut tx = self.begin().await?;
        let cleared = sqlx::query(
            "update memory_decisions set verdict = 0, product_class = null, texts = '{}', decided_at = now(),
                    changed_in = pg_current_xact_id()
             where account_id = $1 and verdict <> 0",
        )
        .bind(account)
        .execute(&mut *tx)
        .await?;
        sqlx::query("delete from memory_lessons where account_id = $1").bind(account).execute(&mut *tx).await?;
        tx.commit().await?;
        Ok(cleared.rows_affected())
    }
}
