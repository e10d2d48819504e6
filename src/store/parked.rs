//! Work that failed for what a product holds: set aside with the reason, so that it costs no other product, and sent
//! again when the product changes or an operator asks for it.

use chrono::{DateTime, Utc};
use sqlx_macros::FromRow;

use crate::store::{Store, StoreError, Tx};

/// Most characters of a reason that are kept.
const MAX_REASON_CHARACTERS: usize = 1_000;
/// Most rows that are listed or sent again at once.
pub const PARKED_AT_ONCE: i64 = 1_000;

/// A product whose auto-assignment failed.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub account: i64,
    pub product_key: i64,
    pub reason: String,
}

/// A reason as it is kept.
pub(super) fn kept(reason: &str) -> String {
    reason.replace('\0', "").chars().take(MAX_REASON_CHARACTERS).collect()
}

/// Which work is parked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// Finding classes.
    AutoAssignment,
    /// Writing the search index.
    Search,
}

impl Queue {
    /// Both queues.
    pub const ALL: [Queue; 2] = [Queue::AutoAssignment, Queue::Search];

    /// Its name, as subcommands and metrics have it.
    pub fn name(self) -> &'static str {
        match self {
            Queue::AutoAssignment => "auto-assignment",
            Queue::Search => "search",
        }
    }

    /// The queue of a name.
    pub fn from_name(name: &str) -> Option<Queue> {
        Queue::ALL.into_iter().find(|queue| queue.name() == name)
    }
}

/// A piece of parked work.
#[derive(Clone, Debug, FromRow)]
pub struct Parked {
    /// The name of the account.
    pub account: String,
    /// The product's id; none when the product is gone.
    pub product_id: Option<String>,
    /// Its shop as stored, 0 for a global product; none when the product is gone.
    pub shop_id: Option<i64>,
    /// The key of the product.
    pub product_key: i64,
    /// Why it failed.
    pub reason: String,
    /// When.
    pub parked_at: DateTime<Utc>,
}

impl Store {
    /// Parked work of one account or of all, in the order of keys from behind `after`, at most [`PARKED_AT_ONCE`].
    ///
    /// # Errors
    /// When the database fails.
    pub async fn parked(&self, queue: Queue, account: Option<&str>, after: i64) -> Result<Vec<Parked>, StoreError> {
        let statement = match queue {
            Queue::AutoAssignment => {
                "select accounts.name as account, products.product_id, products.shop_id, parked.product_key, reason,
                        parked_at
                 from auto_parked parked join accounts using (account_id) left join products using (product_key)
                 where ($1::text is null or accounts.name = $1) and parked.product_key > $2
                 order by parked.product_key limit $3"
            }
            Queue::Search => {
                "select accounts.name as account, products.product_id, products.shop_id, parked.product_key, reason,
                        parked_at
                 from search_parked parked join accounts using (account_id) left join products using (product_key)
                 where ($1::text is null or accounts.name = $1) and parked.product_key > $2
                 order by parked.product_key limit $3"
            }
        };
        let parked = sqlx::query_as(statement).bind(account).bind(after).bind(PARKED_AT_ONCE);
        Ok(parked.fetch_all(self.pool()).await?)
    }

    /// Sends parked work again that was parked before an instant, at most [`PARKED_AT_ONCE`] pieces; answers how many. Work of products that are gone is
    /// forgotten and counted, too.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn retry_parked(
        &self,
        queue: Queue,
        account: Option<&str>,
        before: DateTime<Utc>,
    ) -> Result<u64, StoreError> {
        let statement = match queue {
            Queue::AutoAssignment => {
                "with chosen as (
                     select parked.account_id, parked.product_key
                     from auto_parked parked join accounts using (account_id)
                     where ($1::text is null or name = $1) and parked_at < $3 limit $2 for update of parked skip locked),
                 removed as (
                     delete from auto_parked using chosen
                     where auto_parked.account_id = chosen.account_id and auto_parked.product_key = chosen.product_key
                     returning auto_parked.product_key),
                 queued as (
                     insert into auto_queue (account_id, product_key)
                     select account_id, product_key from removed join products using (product_key))
                 select count(*) from removed"
            }
            Queue::Search => {
                "with chosen as (
                     select parked.product_key from search_parked parked join accounts using (account_id)
                     where ($1::text is null or name = $1) and parked_at < $3 limit $2 for update of parked skip locked),
                 removed as (
                     delete from search_parked using chosen where search_parked.product_key = chosen.product_key
                     returning search_parked.product_key),
                 queued as (
                     insert into search_outbox (product_key, account_id, version, deleted)
                     select product_key, account_id, version, false from removed join products using (product_key))
                 select count(*) from removed"
            }
        };
        let sent: i64 = sqlx::query_scalar(statement)
            .bind(account)
            .bind(PARKED_AT_ONCE)
            .bind(before)
            .fetch_one(self.pool())
            .await?;
        Ok(sent.unsigned_abs())
    }
}

/// Sets work aside.
pub(super) async fn park(tx: &mut Tx, failures: &[Failure]) -> Result<(), StoreError> {
    if failures.is_empty() {
        return Ok(());
    }
    let reason = |failure: &Failure| kept(&failure.reason);
    sqlx::query(
        "insert into auto_parked (account_id, product_key, reason)
         select * from unnest($1::bigint[], $2::bigint[], $3::text[])
         on conflict (account_id, product_key) do update set reason = excluded.reason, parked_at = now()",
    )
    .bind(failures.iter().map(|failure| failure.account).collect::<Vec<_>>())
    .bind(failures.iter().map(|failure| failure.product_key).collect::<Vec<_>>())
    .bind(failures.iter().map(reason).collect::<Vec<String>>())
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Takes products that are done off the list.
pub(super) async fn forget(tx: &mut Tx, accounts: &[i64], keys: &[i64]) -> Result<(), StoreError> {
    sqlx::query(
        "delete from auto_parked using unnest($1::bigint[], $2::bigint[]) as done (account, key)
         where account_id = account and product_key = key",
    )
    .bind(accounts)
    .bind(keys)
    .execute(&mut **tx)
    .await?;
    Ok(())
}
