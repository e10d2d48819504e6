//! Judging assignments again when a VAT rule begins or ends.
//!
//! What auto-assignment found is ASSIGNED where its class is sufficient and REJECTED where it is not, so the rows to
//! change are those of which that is no longer so. What a person approved stays, and is marked for review.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use sqlx_macros::FromRow;

use crate::domain::{ProductClass, Taxonomy};
use crate::store::auto_queue;
use crate::store::journal::{self, Entry, Subject, stored_taxonomy};
use crate::store::{Store, StoreError, Tx};

/// Who changes assignments in the history when rules do.
pub const VAT_RULES: &str = "vat-rules";

/// Assignments of a class that one statement looks at: few have to change, and finding them is to take no time that grows
/// with the class.
pub const SLICE_ASSIGNMENTS: i64 = 20_000;

/// An assignment whose class has become sufficient, or no longer is.
#[derive(FromRow)]
struct Touched {
    account_id: i64,
    product_key: i64,
    product_id: String,
    shop_id: i64,
    status: String,
    strategy: Option<String>,
    version: i64,
    confidence: Option<f32>,
}

impl Store {
    /// The rule set and the day by which all assignments were last judged.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn rule_state(&self) -> Result<Option<(String, NaiveDate)>, StoreError> {
        let state = sqlx::query_as("select rule_set, judged_on from rule_state").fetch_optional(self.pool()).await?;
        Ok(state)
    }

    /// Remembers by what all assignments have been judged, unless what was remembered before has changed since; answers
    /// whether it does.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn set_rule_state(
        &self,
        rule_set: &str,
        day: NaiveDate,
        before: Option<&(String, NaiveDate)>,
    ) -> Result<bool, StoreError> {
        let set = match before {
            None => {
                let first = "insert into rule_state (rule_set, judged_on) values ($1, $2) on conflict do nothing";
                sqlx::query(first).bind(rule_set).bind(day).execute(self.pool()).await?
            }
            Some((known, judged_on)) => {
                let next = "update rule_state set rule_set = $1, judged_on = $2 where rule_set = $3 and judged_on = $4";
                sqlx::query(next).bind(rule_set).bind(day).bind(known).bind(judged_on).execute(self.pool()).await?
            }
        };
        Ok(set.rows_affected() > 0)
    }

    /// The next classes of a taxonomy that assignments have, in the order of their text, after the one named.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn assigned_classes(
        &self,
        taxonomy: Taxonomy,
        after: &str,
        limit: usize,
    ) -> Result<Vec<String>, StoreError> {
        // One step of the index for each class, however many assignments it has.
        let classes = sqlx::query_scalar(
            "with recursive class as (
                 (select product_class from assignments
                  where taxonomy = $1 and product_class is not null and product_class > $2
                  order by product_class limit 1)
                 union all
                 select (select a.product_class from assignments a
                         where a.taxonomy = $1 and a.product_class is not null and a.product_class > class.product_class
                         order by a.product_class limit 1)
                 from class where class.product_class is not null)
             select product_class from class where product_class is not null limit $3",
        )
        .bind(stored_taxonomy(taxonomy))
        .bind(after)
        .bind(limit as i64)
        .fetch_all(self.pool())
        .await?;
        Ok(classes)
    }

    /// Judges at most `limit` assignments of a class again, behind a product's key. Answers how many changed, and the key
    /// of the last product that was looked at, where there may be more behind it.
    ///
    /// # Errors
    /// When the database fails; nothing has changed then.
    pub async fn judge_again(
        &self,
        taxonomy: Taxonomy,
        class: ProductClass,
        sufficient: bool,
        after: i64,
        limit: usize,
    ) -> Result<(usize, Option<i64>), StoreError> {
        let mut tx = self.begin().await?;
        let Some(slice) = slice_of_class(&mut tx, taxonomy, class, after).await? else { return Ok((0, None)) };
        let keys: Vec<i64> = sqlx::query_scalar(
            "select product_key from assignments
             where taxonomy = $1 and product_class = $2 and product_key > $4 and product_key <= $6
                   and case when $3 then status = 'REJECTED' and strategy <> 'MANUAL'
                            else (status = 'ASSIGNED' and strategy <> 'MANUAL')
                                 or (status = 'APPROVED' and not review_needed) end
             order by product_key limit $5 for update",
        )
        .bind(stored_taxonomy(taxonomy))
        .bind(class.to_string())
        .bind(sufficient)
        .bind(after)
        .bind(limit as i64)
        .bind(slice.end)
        .fetch_all(&mut *tx)
        .await?;
        if keys.is_empty() {
            return Ok((0, slice.behind(&keys, limit)));
        }
        let touched: Vec<Touched> = sqlx::query_as(
            "update assignments set
                 status = case when status = 'APPROVED' then status when $3 then 'ASSIGNED' else 'REJECTED' end,
                 review_needed = review_needed or status = 'APPROVED',
                 version = case when status = 'APPROVED' then version else version + 1 end,
                 updated_at = now()
             where taxonomy = $1 and product_key = any($2)
             returning account_id, product_key, product_id, shop_id, status, strategy, version, confidence",
        )
        .bind(stored_taxonomy(taxonomy))
        .bind(&keys)
        .bind(sufficient)
        .fetch_all(&mut *tx)
        .await?;
        let accounts: Vec<i64> = touched.iter().map(|row| row.account_id).collect();
        let entry = |row| entry(row, taxonomy, class);
        journal::record_for_accounts(&mut tx, &accounts, &touched.iter().map(entry).collect::<Vec<_>>()).await?;
        tx.commit().await?;
        Ok((touched.len(), slice.behind(&keys, limit)))
    }

    /// Queues at most `limit` products again, behind a product's key, whose class of a taxonomy is none any more: a code
    /// that ended is led on to its successor. What a person decided stays. Answers how many were queued, and the key of the
    /// last product that was looked at, where there may be more behind it.
    ///
    /// # Errors
    /// When the database fails; nothing has changed then.
    pub async fn queue_unlisted(
        &self,
        taxonomy: Taxonomy,
        class: ProductClass,
        after: i64,
        limit: usize,
    ) -> Result<(usize, Option<i64>), StoreError> {
        let mut tx = self.begin().await?;
        let Some(slice) = slice_of_class(&mut tx, taxonomy, class, after).await? else { return Ok((0, None)) };
        let keys: Vec<i64> = sqlx::query_scalar(
            "select product_key from assignments
             where taxonomy = $1 and product_class = $2 and product_key > $3 and product_key <= $5
                   and strategy is distinct from 'MANUAL' and status <> 'DENIED'
             order by product_key limit $4",
        )
        .bind(stored_taxonomy(taxonomy))
        .bind(class.to_string())
        .bind(after)
        .bind(limit as i64)
        .bind(slice.end)
        .fetch_all(&mut *tx)
        .await?;
        if keys.is_empty() {
            return Ok((0, slice.behind(&keys, limit)));
        }
        sqlx::query("select from assignments where product_key = any($1) order by product_key, taxonomy for update")
            .bind(&keys)
            .execute(&mut *tx)
            .await?;
        let touched: Vec<Touched> = sqlx::query_as(
            "update assignments set auto_state = 'PENDING', auto_epoch = auto_epoch + 1, updated_at = now()
             where taxonomy = $1 and product_key = any($2) and product_class = $3
                   and strategy is distinct from 'MANUAL' and status <> 'DENIED'
             returning account_id, product_key, product_id, shop_id, status, strategy, version, confidence",
        )
        .bind(stored_taxonomy(taxonomy))
        .bind(&keys)
        .bind(class.to_string())
        .fetch_all(&mut *tx)
        .await?;
        let mut queued: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
        for row in &touched {
            queued.entry(row.account_id).or_default().push(row.product_key);
        }
        for (account, keys) in &queued {
            auto_queue::push(&mut tx, *account, keys).await?;
        }
        let accounts: Vec<i64> = touched.iter().map(|row| row.account_id).collect();
        let comment = format!("{class} is no class of {taxonomy} any more");
        let entry = |row| Entry { action: "REQUEUE", comment: Some(&comment), ..entry(row, taxonomy, class) };
        journal::record_for_accounts(&mut tx, &accounts, &touched.iter().map(entry).collect::<Vec<_>>()).await?;
        tx.commit().await?;
        Ok((touched.len(), slice.behind(&keys, limit)))
    }
}

/// Assignments of a class that are looked at together.
struct Slice {
    /// The key of the last product.
    end: i64,
    is_last: bool,
}

impl Slice {
    /// Behind which key it goes on when these have been worked off, of which no more than `limit` were read.
    fn behind(&self, keys: &[i64], limit: usize) -> Option<i64> {
        match keys.last() {
            Some(last) if keys.len() == limit => Some(*last),
            _ => (!self.is_last).then_some(self.end),
        }
    }
}

/// The next assignments of a class behind a product's key, told by an index alone; none where there are no more.
async fn slice_of_class(
    tx: &mut Tx,
    taxonomy: Taxonomy,
    class: ProductClass,
    after: i64,
) -> Result<Option<Slice>, StoreError> {
    let (end, assignments): (Option<i64>, i64) = sqlx::query_as(
        "select max(product_key), count(*)
         from (select product_key from assignments
               where taxonomy = $1 and product_class = $2 and product_key > $3
               order by product_key limit $4) as slice",
    )
    .bind(stored_taxonomy(taxonomy))
    .bind(class.to_string())
    .bind(after)
    .bind(SLICE_ASSIGNMENTS)
    .fetch_one(&mut **tx)
    .await?;
    Ok(end.map(|end| Slice { end, is_last: assignments < SLICE_ASSIGNMENTS }))
}

fn entry(row: &Touched, taxonomy: Taxonomy, class: ProductClass) -> Entry<'_> {
    Entry {
        product: Subject { key: row.product_key, id: &row.product_id, shop: row.shop_id },
        taxonomy: Some(taxonomy),
        action: "RULE_CHANGED",
        actor: VAT_RULES,
        status: Some(&row.status),
        strategy: row.strategy.as_deref(),
        product_class: Some(class.to_string()),
        version: row.version,
        confidence: row.confidence,
        comment: None,
        action_id: None,
        model_version: None,
        labels: None,
    }
}
