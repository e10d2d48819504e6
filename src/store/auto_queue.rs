//! The queue of auto-assignment.
//!
//! A worker locks queue rows with `skip locked` for as long as it computes, stores the results, deletes the rows and
//! commits; a crash gives the rows back. The assignments themselves are not locked meanwhile: an abort or a change of
//! the product raises their epoch, and a result of an older epoch is never stored.

use std::collections::{HashMap, HashSet};

use sqlx::FromRow;
use sqlx::types::Json;

use crate::domain::assignment::{Status, Strategy};
use crate::domain::{Details, ProductClass, ShopId, Taxonomy};
use crate::store::accounts::Caller;
use crate::store::journal::{self, AUTO_ASSIGNMENT, Entry, stored_taxonomy, taxonomy_from_stored};
use crate::store::{Store, StoreError, Tx, quota, with_retries};

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
    pub auto_state: String,
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
pub(super) async fn push(tx: &mut Tx, keys: &[i64]) -> Result<(), StoreError> {
    if !keys.is_empty() {
        sqlx::query("insert into auto_queue (product_key) select unnest($1::bigint[])")
            .bind(keys)
            .execute(&mut **tx)
            .await?;
    }
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
                   case when strategy is distinct from 'MANUAL' then 'PENDING' else 'DONE' end as auto_state",
    )
    .bind(keys)
    .fetch_all(&mut **tx)
    .await?;
    touched.sort_by_key(|assignment| (assignment.product_key, assignment.taxonomy));
    Ok(touched)
}

/// An assignment that waits for a result.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// Its taxonomy.
    pub taxonomy: Taxonomy,
    epoch: i64,
}

/// A claimed product.
#[derive(Clone, Debug)]
pub struct Claim {
    product_key: i64,
    account: i64,
    product_id: String,
    shop_id: i64,
    /// What the result is computed from.
    pub details: Details,
    /// The assignments that wait; the others were decided by a person or done before.
    pub slots: Vec<Slot>,
}

/// A computed result for a slot.
#[derive(Clone, Copy, Debug)]
pub struct AutoResult {
    /// The class found, with how, its confidence from 0 to 1, and whether it is sufficient.
    pub found: Option<(ProductClass, Strategy, f32, bool)>,
}

/// Claimed products; dropping it gives them back.
#[derive(Debug)]
pub struct Batch {
    tx: Tx,
    queue_ids: Vec<i64>,
    /// The products.
    pub claims: Vec<Claim>,
}

#[derive(FromRow)]
struct ClaimRow {
    product_key: i64,
    account_id: i64,
    product_id: String,
    shop_id: i64,
    details: Json<Details>,
    taxonomies: Vec<i16>,
    epochs: Vec<i64>,
    pending: Vec<bool>,
}

impl Store {
    /// Claims at most `limit` queued products; none when nothing waits.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn claim_auto_assignments(&self, limit: usize) -> Result<Option<Batch>, StoreError> {
        let mut tx = self.begin().await?;
        let queued: Vec<(i64, i64)> = sqlx::query_as(
            "select queue_id, product_key from auto_queue order by queue_id limit $1 for update skip locked",
        )
        .bind(limit as i64)
        .fetch_all(&mut *tx)
        .await?;
        if queued.is_empty() {
            return Ok(None);
        }
        let (queue_ids, mut keys): (Vec<i64>, Vec<i64>) = queued.into_iter().unzip();
        keys.sort_unstable();
        keys.dedup();
        let rows: Vec<ClaimRow> = sqlx::query_as(
            "select product_key, p.account_id, p.product_id, p.shop_id, p.details,
                    array_agg(a.taxonomy order by a.taxonomy) as taxonomies,
                    array_agg(a.auto_epoch order by a.taxonomy) as epochs,
                    array_agg(a.auto_state = 'PENDING' order by a.taxonomy) as pending
             from products p join assignments a using (product_key)
             where product_key = any($1) group by product_key order by product_key",
        )
        .bind(&keys)
        .fetch_all(&mut *tx)
        .await?;
        let claims = rows
            .into_iter()
            .map(|row| Claim {
                product_key: row.product_key,
                account: row.account_id,
                product_id: row.product_id,
                shop_id: row.shop_id,
                details: row.details.0,
                slots: row
                    .taxonomies
                    .iter()
                    .zip(row.epochs)
                    .zip(row.pending)
                    .filter(|(_, pending)| *pending)
                    .map(|((taxonomy, epoch), _)| Slot { taxonomy: taxonomy_from_stored(*taxonomy), epoch })
                    .collect(),
            })
            .collect();
        Ok(Some(Batch { tx, queue_ids, claims }))
    }

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
                 returning product_key, product_id, shop_id, taxonomy, status, strategy, product_class, version, auto_state",
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
                    product: (assignment.product_key, &assignment.product_id, assignment.shop_id),
                    taxonomy: Some(taxonomy_from_stored(assignment.taxonomy)),
                    action: "REQUEUE",
                    actor: &caller.user,
                    status: Some(Status::Unassigned.name()),
                    strategy: assignment.strategy_name(),
                    product_class: None,
                    version: assignment.version,
                })
                .collect();
            push(&mut tx, &queued).await?;
            quota::charge(&mut tx, caller, queued.len()).await?;
            journal::record(&mut tx, caller.account, &entries).await?;
            tx.commit().await?;
            Ok(queued.len())
        })
        .await
    }
}

impl Batch {
    /// Stores results, in the order of claims and their slots, and gives the work up as done.
    ///
    /// A slot whose epoch has grown, or that is no longer pending, keeps what it has. Answers how many were stored.
    ///
    /// # Errors
    /// When the database fails; the work is then given back.
    pub async fn complete(mut self, results: &[Vec<AutoResult>]) -> Result<usize, StoreError> {
        // Locks are taken in the order in which every other writer takes them. What still waits is told apart here and
        // not in the update: the planner has no idea how many rows are pending, and plans for none.
        let keys: Vec<i64> = self.claims.iter().map(|claim| claim.product_key).collect();
        let locked: Vec<(i64, i16, i64, bool)> = sqlx::query_as(
            "select product_key, taxonomy, auto_epoch, auto_state = 'PENDING' from assignments
             where product_key = any($1) order by product_key, taxonomy for update",
        )
        .bind(&keys)
        .fetch_all(&mut *self.tx)
        .await?;
        let waiting: HashSet<(i64, i16, i64)> =
            locked.into_iter().filter(|row| row.3).map(|row| (row.0, row.1, row.2)).collect();
        let mut rows = Vec::new();
        for (claim, results) in self.claims.iter().zip(results) {
            for (slot, result) in claim.slots.iter().zip(results) {
                if waiting.contains(&(claim.product_key, stored_taxonomy(slot.taxonomy), slot.epoch)) {
                    rows.push((claim, slot, result));
                }
            }
        }
        let statuses: Vec<&str> = rows.iter().map(|(_, _, result)| result.status().name()).collect();
        let classes: Vec<Option<String>> =
            rows.iter().map(|(_, _, result)| result.found.map(|(class, ..)| class.to_string())).collect();
        let strategies: Vec<Option<&str>> =
            rows.iter().map(|(_, _, result)| result.found.map(|(_, strategy, ..)| strategy.name())).collect();
        let stored: Vec<(i64, i16, i64)> = sqlx::query_as(
            "update assignments a set status = new.status, strategy = new.strategy, product_class = new.class,
                    confidence = new.confidence, version = version + 1, auto_state = 'DONE', updated_at = now()
             from unnest($1::bigint[], $2::smallint[], $3::text[], $4::text[], $5::text[], $6::real[])
                  as new (product_key, taxonomy, status, strategy, class, confidence)
             where a.product_key = new.product_key and a.taxonomy = new.taxonomy
             returning a.product_key, a.taxonomy, a.version",
        )
        .bind(rows.iter().map(|(claim, ..)| claim.product_key).collect::<Vec<_>>())
        .bind(rows.iter().map(|(_, slot, _)| stored_taxonomy(slot.taxonomy)).collect::<Vec<_>>())
        .bind(&statuses)
        .bind(&strategies)
        .bind(&classes)
        .bind(rows.iter().map(|(_, _, result)| result.found.map(|found| found.2)).collect::<Vec<_>>())
        .fetch_all(&mut *self.tx)
        .await?;
        let versions: HashMap<(i64, i16), i64> =
            stored.iter().map(|(key, taxonomy, version)| ((*key, *taxonomy), *version)).collect();
        let mut accounts = Vec::with_capacity(stored.len());
        let mut entries = Vec::with_capacity(stored.len());
        for (index, (claim, slot, _)) in rows.iter().enumerate() {
            let Some(version) = versions.get(&(claim.product_key, stored_taxonomy(slot.taxonomy))) else { continue };
            accounts.push(claim.account);
            entries.push(Entry {
                product: (claim.product_key, &claim.product_id, claim.shop_id),
                taxonomy: Some(slot.taxonomy),
                action: "AUTO_ASSIGN",
                actor: AUTO_ASSIGNMENT,
                status: Some(statuses[index]),
                strategy: strategies[index],
                product_class: classes[index].clone(),
                version: *version,
            });
        }
        journal::record_for_accounts(&mut self.tx, &accounts, &entries).await?;
        sqlx::query("delete from auto_queue where queue_id = any($1)")
            .bind(&self.queue_ids)
            .execute(&mut *self.tx)
            .await?;
        self.tx.commit().await?;
        Ok(stored.len())
    }
}

impl AutoResult {
    /// The status that the result gives.
    pub fn status(&self) -> Status {
        Status::from_auto_assignment(self.found.is_some(), self.found.is_some_and(|(.., sufficient)| sufficient))
    }
}
