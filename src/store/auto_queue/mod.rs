//! The queue of auto-assignment: what puts products into it. `claims` works it off.

mod claims;

use sqlx_macros::FromRow;

use crate::domain::ShopId;
use crate::domain::assignment::{Status, Strategy};
use crate::store::accounts::Caller;
use crate::store::journal::{self, Entry, Subject, taxonomy_from_stored};
use crate::store::{Store, StoreError, Tx, quota, with_retries};

pub use claims::{Batch, CLAIM_BYTES, Claim, Decided, Slot};

/// An assignment that a change of its product touched.
#[derive(FromRow)]
pub(super) struct Touched {
    pub product_key: i64,
    pub product_id: String,
    pub shop_id: i64,
    pub taxonomy: i16,
    pub status: String,
    strategy: Option<String>,
    pub product_class: Option<String>,
    pub version: i64,
    /// Whether auto-assignment decides anew; what a person decided stays.
    pub queued: bool,
}

impl Touched {
    /// The strategy as history shows it.
    pub(super) fn strategy_name(&self) -> Option<&'static str> {
        [Strategy::Description, Strategy::CustomsCode, Strategy::Manual]
            .into_iter()
            .map(Strategy::name)
            .find(|name| self.strategy.as_deref() == Some(*name))
    }
}

/// Puts products into the queue.
pub(super) async fn push(tx: &mut Tx, account: i64, keys: &[i64]) -> Result<(), StoreError> {
    if !keys.is_empty() {
        sqlx::query("insert into auto_queue (account_id, product_key) select $1, unnest($2::bigint[])")
            .bind(account)
            .bind(keys)
            .execute(&mut **tx)
            .await?;
    }
    Ok(())
}

/// Gives the assignments of products the weight that the products have now.
pub(super) async fn weigh(tx: &mut Tx, weights: &[(i64, f32)]) -> Result<(), StoreError> {
    if weights.is_empty() {
        return Ok(());
    }
    let (keys, weights): (Vec<i64>, Vec<f32>) = weights.iter().copied().unzip();
    sqlx::query("select from assignments where product_key = any($1) order by product_key, taxonomy for update")
        .bind(&keys)
        .execute(&mut **tx)
        .await?;
    sqlx::query(
        "update assignments set review_weight = weight from unnest($1::bigint[], $2::real[]) as new (key, weight)
         where product_key = key",
    )
    .bind(&keys)
    .bind(&weights)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Makes pending again what no person has decided, and marks the rest for review; in the order of products.
pub(super) async fn product_changed(tx: &mut Tx, keys: &[i64]) -> Result<Vec<Touched>, StoreError> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    sqlx::query("select from assignments where product_key = any($1) order by product_key, taxonomy for update")
        .bind(keys)
        .execute(&mut **tx)
        .await?;
    let mut touched: Vec<Touched> = sqlx::query_as(
        "update assignments set
             auto_state = case when strategy is distinct from 'MANUAL' then 'PENDING' else auto_state end,
             auto_epoch = case when strategy is distinct from 'MANUAL' then auto_epoch + 1 else auto_epoch end,
             review_needed = review_needed or strategy is not distinct from 'MANUAL',
             updated_at = now()
         where product_key = any($1)
         returning product_key, product_id, shop_id, taxonomy, status, strategy, product_class, version,
                   strategy is distinct from 'MANUAL' as queued",
    )
    .bind(keys)
    .fetch_all(&mut **tx)
    .await?;
    touched.sort_by_key(|assignment| (assignment.product_key, assignment.taxonomy));
    Ok(touched)
}

impl Store {
    /// How many products wait for auto-assignment.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn auto_queue_length(&self) -> Result<i64, StoreError> {
        Ok(sqlx::query_scalar("select count(*) from auto_queue").fetch_one(self.pool()).await?)
    }

    /// Queues again what is UNASSIGNED of these products, and answers how many products were queued.
    ///
    /// # Errors
    /// Not found, naming every unknown product; limit exceeded.
    pub async fn requeue(&self, caller: &Caller, products: &[(String, ShopId)]) -> Result<usize, StoreError> {
        with_retries(|| async {
            let mut tx = self.begin().await?;
            let keys = super::assignments::product_keys(&mut tx, caller.account, products).await?;
            sqlx::query(
                "select from assignments where product_key = any($1) order by product_key, taxonomy for update",
            )
            .bind(&keys)
            .execute(&mut *tx)
            .await?;
            let mut requeued: Vec<Touched> = sqlx::query_as(
                "update assignments set auto_state = 'PENDING', auto_epoch = auto_epoch + 1, updated_at = now()
                 where product_key = any($1) and status = 'UNASSIGNED'
                 returning product_key, product_id, shop_id, taxonomy, status, strategy, product_class, version,
                           true as queued",
            )
            .bind(&keys)
            .fetch_all(&mut *tx)
            .await?;
            requeued.sort_by_key(|assignment| (assignment.product_key, assignment.taxonomy));
            let mut queued: Vec<i64> = requeued.iter().map(|assignment| assignment.product_key).collect();
            queued.dedup();
            let entries: Vec<Entry<'_>> = requeued
                .iter()
                .map(|assignment| Entry {
                    product: Subject {
                        key: assignment.product_key,
                        id: &assignment.product_id,
                        shop: assignment.shop_id,
                    },
                    taxonomy: Some(taxonomy_from_stored(assignment.taxonomy)),
                    action: "REQUEUE",
                    actor: &caller.user,
                    status: Some(Status::Unassigned.name()),
                    strategy: assignment.strategy_name(),
                    version: assignment.version,
                    ..Entry::default()
                })
                .collect();
            push(&mut tx, caller.account, &queued).await?;
            quota::charge(&mut tx, caller, queued.len()).await?;
            journal::record(&mut tx, caller.account, &entries).await?;
            tx.commit().await?;
            Ok(queued.len())
        })
        .await
    }
}
