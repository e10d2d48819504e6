//! Working off actions, in small transactions that each hold little and nobody up.

use std::collections::HashMap;

use sqlx_macros::FromRow;
use uuid::Uuid;

use crate::domain::assignment::{Action, JudgedClass};
use crate::store::assignments::act::{Done, Next, record, write};
use crate::store::assignments::{AssignmentRecord, lock_assignments};
use crate::store::{Store, StoreError, Tx, with_retries};

#[derive(FromRow)]
struct Open {
    action_id: Uuid,
    account_id: i64,
    taxonomy: i16,
    action: String,
    product_class: Option<String>,
    sufficient: bool,
    comment: Option<String>,
    actor: String,
    undoes: Option<Uuid>,
    worked_to: i64,
}

/// What an assignment was before an action that is taken back.
#[derive(FromRow)]
struct Before {
    product_key: i64,
    status_before: String,
    strategy_before: Option<String>,
    class_before: Option<String>,
    confidence_before: Option<f32>,
    review_before: bool,
    epoch_after: i64,
    review_after: bool,
}

impl Store {
    /// Works off a part of an action: of this one, or else of the one that has waited longest. Answers which it was, or
    /// none where nothing waits, or where another service has it in hand.
    ///
    /// # Errors
    /// When the database fails; nothing is changed then.
    pub async fn work_on_action(&self, wanted: Option<Uuid>, limit: usize) -> Result<Option<Uuid>, StoreError> {
        with_retries(|| async {
            let mut tx = self.begin().await?;
            let Some(open) = claim(&mut tx, wanted).await? else { return Ok(None) };
            let items: Vec<(i64, i64)> = sqlx::query_as(
                "select product_key, version from assignment_action_items
                 where action_id = $1 and product_key > $2 order by product_key limit $3",
            )
            .bind(open.action_id)
            .bind(open.worked_to)
            .bind(limit as i64)
            .fetch_all(&mut *tx)
            .await?;
            let (done, skipped) = work(&mut tx, &open, &items).await?;
            let worked_to = items.last().map_or(open.worked_to, |(key, _)| *key);
            advance(&mut tx, open.action_id, worked_to, (done, skipped, 0), items.len() < limit).await?;
            tx.commit().await?;
            Ok(Some(open.action_id))
        })
        .await
    }

    /// Gives up the next item of an action, which the database refuses whenever it is tried.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn give_up_item(&self, action: Uuid, reason: &str) -> Result<(), StoreError> {
        let mut tx = self.begin().await?;
        let Some(open) = claim(&mut tx, Some(action)).await? else { return Ok(()) };
        let failed: Option<i64> = sqlx::query_scalar(
            "update assignment_action_items set outcome = 'FAILED', reason = $3
             where action_id = $1 and product_key = (
                 select min(product_key) from assignment_action_items where action_id = $1 and product_key > $2)
             returning product_key",
        )
        .bind(open.action_id)
        .bind(open.worked_to)
        .bind(reason)
        .fetch_optional(&mut *tx)
        .await?;
        let worked_to = failed.unwrap_or(open.worked_to);
        advance(&mut tx, action, worked_to, (0, 0, i32::from(failed.is_some())), failed.is_none()).await?;
        Ok(tx.commit().await?)
    }

    /// The action that has waited longest, where one waits.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn waiting_action(&self) -> Result<Option<Uuid>, StoreError> {
        let query = "select action_id from assignment_actions where state = 'RUNNING' order by worked_at limit 1";
        Ok(sqlx::query_scalar(query).fetch_optional(self.pool()).await?)
    }
}

async fn claim(tx: &mut Tx, wanted: Option<Uuid>) -> Result<Option<Open>, StoreError> {
    let open = sqlx::query_as(
        "select action_id, account_id, taxonomy, action, product_class, sufficient, comment, actor, undoes, worked_to
         from assignment_actions where state = 'RUNNING' and ($1 is null or action_id = $1)
         order by worked_at limit 1 for update skip locked",
    )
    .bind(wanted)
    .fetch_optional(&mut **tx)
    .await?;
    Ok(open)
}

/// Changes the assignments of these items, and answers how many were changed and how many left.
async fn work(tx: &mut Tx, open: &Open, items: &[(i64, i64)]) -> Result<(i32, i32), StoreError> {
    let keys: Vec<i64> = items.iter().map(|(key, _)| *key).collect();
    let locked = lock_assignments(tx, open.account_id, &keys, open.taxonomy).await?;
    let current: HashMap<i64, &AssignmentRecord> =
        locked.iter().map(|assignment| (assignment.product_key, assignment)).collect();
    let before = match open.undoes {
        Some(undone) => before(tx, undone, &keys).await?,
        None => HashMap::new(),
    };
    let mut changes = Vec::new();
    let mut left: Vec<(i64, &str)> = Vec::new();
    for (key, version) in items {
        match current.get(key) {
            None => left.push((*key, "UNKNOWN_PRODUCT")),
            Some(current) if current.version != *version => left.push((*key, "STALE_VERSION")),
            Some(current) => match next(open, current, before.get(key)) {
                Ok(next) => changes.push(next),
                Err(reason) => left.push((*key, reason)),
            },
        }
    }
    if !changes.is_empty() {
        let after = write(tx, &changes).await?;
        let done = Done {
            id: open.action_id,
            account: open.account_id,
            actor: &open.actor,
            action: &open.action,
            comment: open.comment.as_deref(),
        };
        record(tx, &done, &changes, &after).await?;
    }
    let (left_keys, reasons): (Vec<i64>, Vec<&str>) = left.into_iter().unzip();
    sqlx::query(
        "update assignment_action_items set outcome = 'SKIPPED', reason = why
         from unnest($2::bigint[], $3::text[]) as skipped (key, why) where action_id = $1 and product_key = key",
    )
    .bind(open.action_id)
    .bind(&left_keys)
    .bind(&reasons)
    .execute(&mut **tx)
    .await?;
    Ok((changes.len() as i32, left_keys.len() as i32))
}

/// What an action makes of an assignment that is as it was when it was selected.
fn next<'a>(open: &Open, current: &'a AssignmentRecord, before: Option<&'a Before>) -> Result<Next<'a>, &'static str> {
    if open.undoes.is_none() {
        let action = Action::from_name(&open.action).ok_or("ACTION_NOT_ALLOWED")?;
        let class = open.product_class.as_deref().and_then(|class| class.parse().ok());
        let class = class.map(|class| JudgedClass { class, sufficient: open.sufficient });
        return Next::after(current, action, class).map_err(|_| "ACTION_NOT_ALLOWED");
    }
    // A product that changed since, or was queued again, has moved on as well.
    let before = before
        .filter(|before| before.epoch_after == current.auto_epoch && before.review_after == current.review_needed);
    let Some(before) = before else { return Err("CHANGED_SINCE") };
    Ok(Next {
        before: current,
        status: &before.status_before,
        strategy: before.strategy_before.as_deref(),
        class: before.class_before.clone(),
        confidence: before.confidence_before,
        review_needed: before.review_before,
    })
}

async fn before(tx: &mut Tx, undone: Uuid, keys: &[i64]) -> Result<HashMap<i64, Before>, StoreError> {
    let rows: Vec<Before> = sqlx::query_as(
        "select product_key, status_before, strategy_before, class_before, confidence_before, review_before, epoch_after,
                review_after
         from assignment_action_items where action_id = $1 and product_key = any($2) and outcome = 'DONE'",
    )
    .bind(undone)
    .bind(keys)
    .fetch_all(&mut **tx)
    .await?;
    Ok(rows.into_iter().map(|row| (row.product_key, row)).collect())
}

/// Writes down how far an action has come: (done, skipped, failed) more than before.
async fn advance(
    tx: &mut Tx,
    id: Uuid,
    worked_to: i64,
    (done, skipped, failed): (i32, i32, i32),
    finished: bool,
) -> Result<(), StoreError> {
    sqlx::query(
        "update assignment_actions set worked_to = $2, done = done + $3, skipped = skipped + $4, failed = failed + $5,
                worked_at = clock_timestamp(), state = case when $6 then 'DONE' else state end,
                finished_at = case when $6 then now() end
         where action_id = $1",
    )
    .bind(id)
    .bind(worked_to)
    .bind(done)
    .bind(skipped)
    .bind(failed)
    .bind(finished)
    .execute(&mut **tx)
    .await?;
    Ok(())
}
