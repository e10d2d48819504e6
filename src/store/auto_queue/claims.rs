//! Working the queue of auto-assignment off.
//!
//! A worker locks queue rows with `skip locked` for as long as it computes, stores the results, deletes the rows and
//! commits; a crash gives the rows back. The assignments themselves are not locked meanwhile: an abort or a change of
//! the product raises their epoch, and a result of an older epoch is never stored. A product that cannot be decided
//! is parked, and costs no other.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use sqlx::{AssertSqlSafe, FromRow, Row};
use sqlx_macros::FromRow;

use crate::domain::{Details, Precision, Taxonomy, Verdict};
use crate::store::details::StoredDetails;
use crate::store::fairness::{self, FairQueue};
use crate::store::journal::{self, AUTO_ASSIGNMENT, Entry, Subject, stored_taxonomy, taxonomy_from_stored};
use crate::store::parked::{self, Failure};
use crate::store::products::{SIZE, bytes_before};
use crate::store::{Store, StoreError, Tx, memory};

/// Most bytes of details that are claimed at once; at least one product is claimed, however large.
pub const CLAIM_BYTES: i64 = 4 * 1024 * 1024;

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
    /// How sure a decision by text must be for the account.
    pub precision: Precision,
    /// The assignments that wait; the others were decided by a person or done before.
    pub slots: Vec<Slot>,
}

/// The results of a claim in the order of its slots, or why there are none.
pub type Decided = Result<Vec<Verdict>, String>;

/// Claimed products; dropping it gives them back.
#[derive(Debug)]
pub struct Batch {
    tx: Tx,
    /// Rows of the queue, by account and id.
    queued: Vec<(i64, i64)>,
    /// Products whose rows cannot be read.
    unreadable: Vec<Failure>,
    /// The products.
    pub claims: Arc<Vec<Claim>>,
    /// The model that decides for them, for their history.
    pub model_version: Option<String>,
    /// What alike products are found by, for each claim; empty where that is not known.
    pub words: Vec<Vec<i32>>,
}

#[derive(FromRow)]
struct ClaimRow {
    product_key: i64,
    account_id: i64,
    product_id: String,
    shop_id: i64,
    details: StoredDetails,
    decision_precision: i16,
    taxonomies: Vec<i16>,
    epochs: Vec<i64>,
    pending: Vec<bool>,
}

impl Store {
    /// Claims at most `limit` rows of the queue, of every account in turn, and at most [`CLAIM_BYTES`] of their products;
    /// none when nothing waits.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn claim_auto_assignments(&self, limit: usize) -> Result<Option<Batch>, StoreError> {
        if !self.finds("select exists (select from auto_queue)").await? {
            return Ok(None);
        }
        let mut tx = self.begin().await?;
        let queued = fairness::lock_rows(&mut tx, FairQueue::Auto, limit).await?;
        if queued.is_empty() {
            tx.rollback().await?;
            return Ok(None);
        }
        let (accounts, ids): (Vec<i64>, Vec<i64>) = queued.into_iter().unzip();
        // Several rows may name one product, and none that exists any more.
        let rows = sqlx::query(AssertSqlSafe(format!(
            "with queued as (
                 select queue.account_id as lane, queue_id, product_key, turn
                 from unnest($1::bigint[], $2::bigint[]) with ordinality as claimed (account, id, turn)
                 join auto_queue queue on queue.account_id = account and queue_id = id
             ), wanted as (
                 select product_key, min(turn) as turn, array_agg(lane) as lanes, array_agg(queue_id) as queue_ids
                 from queued group by product_key
             ), sized as (
                 select wanted.*, p.account_id, p.product_id, p.shop_id, p.details,
                        {} as before
                 from wanted left join products p using (product_key)
             )
             select lanes, queue_ids, product_key, account_id, product_id, shop_id, details,
                    (select decision_precision from accounts where accounts.account_id = sized.account_id)
                        as decision_precision, taxonomies, epochs, pending
             from sized cross join lateral (
                 select coalesce(array_agg(taxonomy), '{{}}') as taxonomies,
                        coalesce(array_agg(auto_epoch), '{{}}') as epochs,
                        coalesce(array_agg(auto_state = 'PENDING'), '{{}}') as pending
                 from (select taxonomy, auto_epoch, auto_state from assignments a
                       where a.product_key = sized.product_key order by taxonomy) as slots) as of_product
             where before < $3 order by product_key",
            bytes_before(SIZE, "turn")
        )))
        .bind(&accounts)
        .bind(&ids)
        .bind(CLAIM_BYTES)
        .fetch_all(&mut *tx)
        .await?;
        let mut batch = Batch {
            tx,
            queued: Vec::with_capacity(rows.len()),
            unreadable: Vec::new(),
            claims: Arc::default(),
            model_version: None,
            words: Vec::new(),
        };
        let mut claims = Vec::with_capacity(rows.len());
        for row in &rows {
            let (lanes, queue_ids): (Vec<i64>, Vec<i64>) = (row.try_get("lanes")?, row.try_get("queue_ids")?);
            batch.queued.extend(lanes.into_iter().zip(queue_ids));
            let Some(account) = row.try_get::<Option<i64>, _>("account_id")? else { continue };
            match ClaimRow::from_row(row) {
                Ok(row) => claims.push(Claim::from(row)),
                Err(error) => batch.unreadable.push(Failure {
                    account,
                    product_key: row.try_get("product_key")?,
                    reason: error.to_string(),
                }),
            }
        }
        batch.claims = Arc::new(claims);
        Ok(Some(batch))
    }
}

impl From<ClaimRow> for Claim {
    fn from(row: ClaimRow) -> Claim {
        let slots = row.taxonomies.iter().zip(row.epochs).zip(row.pending);
        Claim {
            product_key: row.product_key,
            account: row.account_id,
            product_id: row.product_id,
            shop_id: row.shop_id,
            details: row.details.0,
            precision: Precision::from_percent(row.decision_precision).unwrap_or_default(),
            slots: slots
                .filter(|(_, pending)| *pending)
                .map(|((taxonomy, epoch), _)| Slot { taxonomy: taxonomy_from_stored(*taxonomy), epoch })
                .collect(),
        }
    }
}

impl Claim {
    /// The product's key.
    pub fn key(&self) -> i64 {
        self.product_key
    }

    /// The account that has the product.
    pub fn account(&self) -> i64 {
        self.account
    }

    /// The product's id.
    pub fn product_id(&self) -> &str {
        &self.product_id
    }

    fn words<'a>((claim, words): (&Claim, &'a Vec<i32>)) -> (i64, i64, &'a [i32]) {
        (claim.product_key, claim.account, words)
    }

    fn failure(&self, reason: &str) -> Failure {
        Failure { account: self.account, product_key: self.product_key, reason: reason.to_owned() }
    }
}

impl Batch {
    /// Stores results, in the order of claims and their slots, and gives the work up as done.
    ///
    /// A slot whose epoch has grown, or that is no longer pending, keeps what it has. A claim without results is parked.
    /// Answers how many results were stored.
    ///
    /// # Errors
    /// When the database fails; the work is then given back.
    pub async fn complete(mut self, results: &[Decided]) -> Result<usize, StoreError> {
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
        // A product that was deleted meanwhile leaves nothing behind.
        let present: HashSet<i64> = locked.iter().map(|row| row.0).collect();
        let waiting: HashSet<(i64, i16, i64)> =
            locked.into_iter().filter(|row| row.3).map(|row| (row.0, row.1, row.2)).collect();
        let mut rows = Vec::new();
        let mut failures = std::mem::take(&mut self.unreadable);
        for (claim, decided) in self.claims.iter().zip(results) {
            let results = match decided {
                Ok(results) => results.as_slice(),
                Err(reason) => {
                    failures.push(claim.failure(reason));
                    &[]
                }
            };
            for (slot, result) in claim.slots.iter().zip(results) {
                if waiting.contains(&(claim.product_key, stored_taxonomy(slot.taxonomy), slot.epoch)) {
                    rows.push((claim, slot, result));
                }
            }
        }
        let statuses: Vec<&str> = rows.iter().map(|(_, _, result)| result.status().name()).collect();
        let classes: Vec<Option<String>> =
            rows.iter().map(|(_, _, result)| result.found.map(|found| found.class.to_string())).collect();
        let strategies: Vec<Option<&str>> =
            rows.iter().map(|(_, _, result)| result.found.map(|found| found.strategy.name())).collect();
        let stored: Vec<(i64, i16, i64)> = sqlx::query_as(
            "update assignments a set status = new.status, strategy = new.strategy, product_class = new.class,
                    confidence = new.confidence, risk = new.risk, version = version + 1,
                    -- One that was set since the claim is the product's own by now.
                    review_weight = case when a.review_weight = 1 then new.weight else a.review_weight end,
                    auto_state = 'DONE', updated_at = now()
             from unnest($1::bigint[], $2::smallint[], $3::text[], $4::text[], $5::text[], $6::real[], $7::real[],
                         $8::real[])
                  as new (product_key, taxonomy, status, strategy, class, confidence, risk, weight)
             where a.product_key = new.product_key and a.taxonomy = new.taxonomy
             returning a.product_key, a.taxonomy, a.version",
        )
        .bind(rows.iter().map(|(claim, ..)| claim.product_key).collect::<Vec<_>>())
        .bind(rows.iter().map(|(_, slot, _)| stored_taxonomy(slot.taxonomy)).collect::<Vec<_>>())
        .bind(&statuses)
        .bind(&strategies)
        .bind(&classes)
        .bind(rows.iter().map(|(_, _, result)| result.found.map(|found| found.confidence)).collect::<Vec<_>>())
        .bind(rows.iter().map(|(_, _, result)| result.risk).collect::<Vec<_>>())
        .bind(rows.iter().map(|(claim, ..)| claim.details.review_weight()).collect::<Vec<_>>())
        .fetch_all(&mut *self.tx)
        .await?;
        let versions: HashMap<(i64, i16), i64> =
            stored.iter().map(|(key, taxonomy, version)| ((*key, *taxonomy), *version)).collect();
        let mut accounts = Vec::with_capacity(stored.len());
        let mut entries = Vec::with_capacity(stored.len());
        for (index, (claim, slot, result)) in rows.iter().enumerate() {
            let Some(version) = versions.get(&(claim.product_key, stored_taxonomy(slot.taxonomy))) else { continue };
            accounts.push(claim.account);
            entries.push(Entry {
                product: Subject { key: claim.product_key, id: &claim.product_id, shop: claim.shop_id },
                taxonomy: Some(slot.taxonomy),
                action: "AUTO_ASSIGN",
                actor: AUTO_ASSIGNMENT,
                status: Some(statuses[index]),
                strategy: strategies[index],
                product_class: classes[index].clone(),
                version: *version,
                confidence: result.found.map(|found| found.confidence),
                model_version: self.model_version.as_deref(),
                ..Entry::default()
            });
        }
        journal::record_for_accounts(&mut self.tx, &accounts, &entries).await?;
        let words = self.claims.iter().zip(&self.words).filter(|(claim, _)| present.contains(&claim.product_key));
        let words: Vec<(i64, i64, &[i32])> = words.map(Claim::words).collect();
        memory::keep_words(&mut self.tx, &words).await?;
        parked::park(&mut self.tx, &failures).await?;
        let decided: Vec<&Claim> =
            self.claims.iter().zip(results).filter(|(_, decided)| decided.is_ok()).map(|(claim, _)| claim).collect();
        parked::forget(
            &mut self.tx,
            &decided.iter().map(|claim| claim.account).collect::<Vec<_>>(),
            &decided.iter().map(|claim| claim.product_key).collect::<Vec<_>>(),
        )
        .await?;
        let (lanes, ids): (Vec<i64>, Vec<i64>) = self.queued.iter().copied().unzip();
        sqlx::query(
            "delete from auto_queue using unnest($1::bigint[], $2::bigint[]) as done (account, id)
             where account_id = account and queue_id = id",
        )
        .bind(&lanes)
        .bind(&ids)
        .execute(&mut *self.tx)
        .await?;
        self.tx.commit().await?;
        Ok(stored.len())
    }
}
