//! Actions on everything that a filter selects, worked off in small transactions, and taking actions back.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::QueryBuilder;
use sqlx_macros::FromRow;
use uuid::Uuid;

use crate::domain::assignment::{Action, JudgedClass, Status, transition};
use crate::domain::{Fault, Taxonomy};
use crate::store::accounts::Caller;
use crate::store::assignments::act::{NewAction, insert_action};
use crate::store::assignments::{AssignmentFilter, CountBy, SelectionError};
use crate::store::deadline::refused;
use crate::store::journal::{new_uuid, stored_taxonomy, taxonomy_from_stored};
use crate::store::{Store, StoreError, Tx, tx, with_retries};

/// Most assignments of one action.
pub const MAX_SELECTED: usize = 100_000;
/// Most assignments that one transaction changes: few enough that nobody waits long for one of them.
pub const BATCH_ASSIGNMENTS: usize = 200;
/// Most items that an action tells it has left.
const MAX_LEFT_TOLD: i64 = 1_000;
/// How long an action can be told of and taken back, in days.
const ACTION_DAYS: i32 = 30;
/// Most actions that are forgotten at once.
const FORGOTTEN_AT_ONCE: i64 = 20;

/// The name of taking an action back.
const UNDO: &str = "UNDO";

/// An action on everything that a filter selects.
#[derive(Clone, Debug)]
pub struct BulkAction {
    /// The taxonomy.
    pub taxonomy: Taxonomy,
    /// What is done.
    pub action: Action,
    /// The class that ASSIGN gives, or what is wrong with it or the comment; told after a count that differs.
    pub class: Option<Result<JudgedClass, Fault>>,
    /// What the person wrote beside it.
    pub comment: Option<String>,
    /// Which assignments.
    pub filter: AssignmentFilter,
    /// The filter as it was sent.
    pub sent_filter: Value,
    /// How many the client expects to be selected.
    pub expected: Option<i64>,
}

/// What a filter selects for an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selected {
    /// How many.
    pub selected: i64,
    /// How many of them are in a state that does not allow the action.
    pub refused: i64,
}

/// How far an action has come.
#[derive(Clone, Debug, FromRow)]
pub struct ActionProgress {
    /// Its identity.
    pub action_id: Uuid,
    taxonomy: i16,
    /// One of the six actions, or UNDO.
    pub action: String,
    /// The class given with it.
    pub product_class: Option<String>,
    /// What the person wrote beside it.
    pub comment: Option<String>,
    /// Whose it is.
    pub actor: String,
    /// The filter that selected.
    pub filter: Option<Value>,
    /// The action that it takes back.
    pub undoes: Option<Uuid>,
    /// The action that takes it back, the last where there are several.
    pub undone_by: Option<Uuid>,
    /// RUNNING or DONE.
    pub state: String,
    /// How many assignments it is about.
    pub selected: i32,
    /// How many it has changed.
    pub done: i32,
    /// How many it has left as they were.
    pub skipped: i32,
    /// How many it could not change.
    pub failed: i32,
    /// When it was asked for.
    pub created_at: DateTime<Utc>,
    /// When it was through.
    pub finished_at: Option<DateTime<Utc>>,
}

impl ActionProgress {
    /// Its taxonomy.
    pub fn taxonomy(&self) -> Taxonomy {
        taxonomy_from_stored(self.taxonomy)
    }
}

/// An item that an action has left as it was.
#[derive(Clone, Debug, FromRow)]
pub struct LeftItem {
    /// The product.
    pub product_id: String,
    /// Its shop as stored.
    pub shop_id: i64,
    /// SKIPPED or FAILED.
    pub outcome: String,
    /// The code of what stood against it.
    pub reason: Option<String>,
}

fn too_many() -> StoreError {
    let message = format!("the filter selects more than {MAX_SELECTED} assignments; narrow it");
    StoreError::Unprocessable(vec![Fault::at("filter", "TOO_MANY_SELECTED", message)])
}

fn check_count(expected: Option<i64>, selected: i64) -> Result<(), StoreError> {
    match expected {
        Some(expected) if expected != selected => {
            let message = format!("the filter selects {selected} assignments, not {expected}");
            let faults = vec![Fault::at("expectedCount", "COUNT_DIFFERS", message)];
            Err(StoreError::Conflict { faults, current_version: None })
        }
        _ if selected > MAX_SELECTED as i64 => Err(too_many()),
        _ => Ok(()),
    }
}

fn unknown_action(id: Uuid) -> StoreError {
    StoreError::not_found(Fault::at("actionId", "UNKNOWN_ACTION", format!("there is no action {id}")))
}

impl Store {
    /// Counts what an action by filter would be about, and changes nothing.
    ///
    /// # Errors
    /// In this order: the count differs, too many are selected, the class is wrong; too slow after the
    /// deadline.
    pub async fn rehearse(
        &self,
        account: i64,
        action: &BulkAction,
        deadline: Duration,
    ) -> Result<Selected, SelectionError> {
        let by = [CountBy::Status, CountBy::ReviewNeeded];
        let groups = self.count_assignments(account, action.taxonomy, &action.filter, &by, deadline).await?;
        let selected = groups.iter().map(|(_, count)| count).sum();
        check_count(action.expected, selected)?;
        let class = given(action.class.as_ref())?;
        let sufficient = class.is_some_and(|class| class.sufficient);
        let is_refused = |values: &[Option<String>]| {
            let value = |index: usize| values.get(index).and_then(Option::as_deref).unwrap_or_default();
            let status = Status::from_name(value(0)).unwrap_or(Status::Unassigned);
            transition(status, value(1) == "true", action.action, sufficient).is_err()
        };
        let refused = groups.iter().filter(|(values, _)| is_refused(values)).map(|(_, count)| count);
        Ok(Selected { selected, refused: refused.sum() })
    }

    /// Writes down an action on everything that a filter selects now; it is worked off by [`Store::work_on_action`].
    ///
    /// # Errors
    /// As [`Store::rehearse`].
    pub async fn begin_action(
        &self,
        caller: &Caller,
        action: &BulkAction,
        deadline: Duration,
    ) -> Result<Uuid, SelectionError> {
        let id = new_uuid();
        let mut tx = self.begin_within(deadline).await.map_err(StoreError::from)?;
        let new = NewAction {
            id,
            caller,
            taxonomy: stored_taxonomy(action.taxonomy),
            action: action.action.name(),
            class: action.class.as_ref().and_then(|class| class.as_ref().ok().copied()),
            comment: action.comment.as_deref(),
            filter: Some(&action.sent_filter),
            undoes: None,
            counts: (0, 0, 0),
        };
        insert_action(&mut tx, &new).await?;
        let mut query = QueryBuilder::new(
            "insert into assignment_action_items (action_id, product_key, product_id, shop_id, version) select ",
        );
        query.push_bind(id).push(", product_key, product_id, shop_id, version from assignments where ");
        action.filter.push(&mut query, caller.account, action.taxonomy);
        action.filter.push_statuses(&mut query);
        query.push(" limit ").push_bind(MAX_SELECTED as i64 + 1);
        let inserted = query.build().persistent(false).execute(&mut *tx).await.map_err(refused)?;
        let selected = inserted.rows_affected() as i64;
        match action.expected {
            // How many more there are is not known, but that they are not as many as expected is.
            Some(expected) if selected > MAX_SELECTED as i64 && expected >= selected => return Err(too_many().into()),
            expected => check_count(expected, selected)?,
        }
        given(action.class.as_ref())?;
        open_action(&mut tx, id).await?;
        tx.commit().await.map_err(StoreError::from)?;
        Ok(id)
    }

    /// Writes down that an action is to be taken back wherever nobody has changed the assignment since; it is worked off
    /// by [`Store::work_on_action`].
    ///
    /// # Errors
    /// Not found; unprocessable while the action still runs.
    pub async fn begin_undo(&self, caller: &Caller, action: Uuid) -> Result<Uuid, StoreError> {
        with_retries(|| async {
            let mut tx = self.begin().await?;
            let found: Option<(i16, String)> = sqlx::query_as(
                "select taxonomy, state from assignment_actions where action_id = $1 and account_id = $2 for share",
            )
            .bind(action)
            .bind(caller.account)
            .fetch_optional(&mut *tx)
            .await?;
            let Some((taxonomy, state)) = found else { return Err(unknown_action(action)) };
            if state == "RUNNING" {
                let message = "the action still runs; take it back when it is done";
                return Err(StoreError::Unprocessable(vec![Fault::at("actionId", "ACTION_RUNNING", message)]));
            }
            let id = new_uuid();
            let new = NewAction {
                id,
                caller,
                taxonomy,
                action: UNDO,
                class: None,
                comment: None,
                filter: None,
                undoes: Some(action),
                counts: (0, 0, 0),
            };
            insert_action(&mut tx, &new).await?;
            sqlx::query(
                "insert into assignment_action_items (action_id, product_key, product_id, shop_id, version)
                 select $1, product_key, product_id, shop_id, version_after from assignment_action_items
                 where action_id = $2 and outcome = 'DONE'",
            )
            .bind(id)
            .bind(action)
            .execute(&mut *tx)
            .await?;
            open_action(&mut tx, id).await?;
            tx.commit().await?;
            Ok(id)
        })
        .await
    }

    /// How far an action has come, and what it has left so far.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn action(&self, account: i64, id: Uuid) -> Result<(ActionProgress, Vec<LeftItem>), StoreError> {
        // An action that this very request has written down may wait for its answer.
        let mut tx = match tx::waiting() {
            Some(waiting) => waiting,
            None => self.begin().await?,
        };
        let found: Option<ActionProgress> = sqlx::query_as(
            "select action_id, taxonomy, action, product_class, comment, actor, filter, undoes, state, selected, done,
                    skipped, failed, created_at, finished_at,
                    (select later.action_id from assignment_actions later
                     where later.undoes = assignment_actions.action_id order by created_at desc limit 1) as undone_by
             from assignment_actions where action_id = $1 and account_id = $2",
        )
        .bind(id)
        .bind(account)
        .fetch_optional(&mut *tx)
        .await?;
        let Some(progress) = found else { return Err(unknown_action(id)) };
        let left = sqlx::query_as(
            "select product_id, shop_id, outcome, reason from assignment_action_items
             where action_id = $1 and outcome <> 'DONE' order by product_id, shop_id limit $2",
        )
        .bind(id)
        .bind(MAX_LEFT_TOLD)
        .fetch_all(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok((progress, left))
    }

    /// Forgets some actions that ended long ago, and answers how many.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn forget_old_actions(&self) -> Result<u64, StoreError> {
        let gone = sqlx::query(
            "delete from assignment_actions where action_id in (
                 select action_id from assignment_actions where finished_at < now() - make_interval(days => $1)
                 order by finished_at limit $2)",
        )
        .bind(ACTION_DAYS)
        .bind(FORGOTTEN_AT_ONCE)
        .execute(self.pool())
        .await?;
        Ok(gone.rows_affected())
    }
}

/// The class given with an action, once everything before it is in order.
fn given(class: Option<&Result<JudgedClass, Fault>>) -> Result<Option<JudgedClass>, StoreError> {
    class.cloned().transpose().map_err(|fault| StoreError::Unprocessable(vec![fault]))
}

/// Counts the items of an action that was just written down, and lets it run.
async fn open_action(tx: &mut Tx, id: Uuid) -> Result<(), StoreError> {
    sqlx::query(
        "update assignment_actions set selected = items, state = case when items > 0 then 'RUNNING' else 'DONE' end,
                finished_at = case when items > 0 then null else now() end
         from (select count(*)::integer as items from assignment_action_items where action_id = $1) as counted
         where action_id = $1",
    )
    .bind(id)
    .execute(&mut **tx)
    .await?;
    Ok(())
}
