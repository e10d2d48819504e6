//! How many assignments there are of each kind: from the counts that are kept, or else counted one by one.

use std::time::Duration;

use crate::domain::{Fault, Taxonomy};
use crate::store::assignments::kept::{MAX_GROUPS, count_query};
use crate::store::assignments::{AssignmentFilter, SelectionError};
use crate::store::deadline::refused;
use crate::store::limits::Limit;
use crate::store::{Store, StoreError};

/// Bands of confidence: twentieths.
pub const CONFIDENCE_BANDS: i64 = 20;
/// Most rows of changed counts that are added up at once.
pub const FOLDED_AT_ONCE: i64 = 20_000;
/// Memory for a step of a count, in kilobytes: the places of 600,000 labelled assignments among ten million take 25 MB. With
/// the usual four the database remembers pages only, and reads all of them.
const COUNT_MEMORY: u32 = 32 * 1024;
/// The key of the lock that one service at a time adds counts up under.
const FOLD_LOCK: i64 = 0x636f_756e_7473;

/// What assignments are grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountBy {
    /// The status.
    Status,
    /// How the class was found; none where it was not.
    Strategy,
    /// Where auto-assignment stands.
    AutoAssignment,
    /// Whether the product changed after a person decided: `true` or `false`.
    ReviewNeeded,
    /// The first two digits of the class.
    Chapter,
    /// The first four digits of the class.
    Heading,
    /// A label; what has several is counted under each, what has none not at all.
    Label,
    /// The twentieth in which the confidence lies, 0 to 19; none without a confidence.
    ConfidenceBand,
    /// The day of the last change (UTC), `2026-11-22`.
    Day,
}

/// How many assignments have these values, in the order of what was asked for.
pub type Group = (Vec<Option<String>>, i64);

impl Store {
    /// How many assignments a filter selects, in groups by none, one or two of their values; in the order of the values.
    ///
    /// # Errors
    /// Too slow after the deadline; unprocessable when there are more than [`MAX_GROUPS`].
    pub async fn count_assignments(
        &self,
        account: i64,
        taxonomy: Taxonomy,
        filter: &AssignmentFilter,
        by: &[CountBy],
        deadline: Duration,
    ) -> Result<Vec<Group>, SelectionError> {
        let mut query = count_query("", account, taxonomy, filter, by);
        let limits = [Limit::Statement(Some(deadline)), Limit::NotCompiled, Limit::Memory(COUNT_MEMORY)];
        let mut tx = self.begin_limited(&limits).await.map_err(StoreError::from)?;
        let rows = query.build_query_as().persistent(false).fetch_all(&mut *tx).await;
        let rows: Vec<(Option<String>, Option<String>, i64)> = rows.map_err(refused)?;
        tx.rollback().await.map_err(StoreError::from)?;
        if rows.len() > MAX_GROUPS {
            let message = format!("there are more than {MAX_GROUPS} groups; narrow the filter");
            return Err(StoreError::Unprocessable(vec![Fault::at("by", "TOO_MANY_GROUPS", message)]).into());
        }
        let group = |(first, second, count): (Option<String>, Option<String>, i64)| {
            let mut values = vec![first, second];
            values.truncate(by.len());
            (values, count)
        };
        Ok(rows.into_iter().map(group).collect())
    }

    /// Whether there is anything to do for the job of the review: counts to add up, labels to take off, actions to work on.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn has_review_work(&self) -> Result<bool, StoreError> {
        self.finds(
            "select exists (select from assignment_count_changes) or exists (select from assignment_labels where leaving)
                 or exists (select from assignment_actions where state = 'RUNNING')",
        )
        .await
    }

    /// Adds up changes of counts, and answers how many rows of them there were; none while another service does it.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn fold_counts(&self) -> Result<i64, StoreError> {
        let mut tx = self.begin().await?;
        let mine: bool =
            sqlx::query_scalar("select pg_try_advisory_xact_lock($1)").bind(FOLD_LOCK).fetch_one(&mut *tx).await?;
        if !mine {
            return Ok(0);
        }
        let folded: i64 = sqlx::query_scalar(
            "with taken as (
                 delete from assignment_count_changes
                 where ctid = any(array(select ctid from assignment_count_changes limit $1)) returning *
             ), added as (
                 insert into assignment_counts
                 select account_id, taxonomy, kind, status, strategy, auto_state, review_needed, value, band, sum(count)
                 from taken group by 1, 2, 3, 4, 5, 6, 7, 8, 9 having sum(count) <> 0
                 on conflict (account_id, taxonomy, kind, status, strategy, auto_state, review_needed, value, band)
                 do update set count = assignment_counts.count + excluded.count
             )
             select count(*) from taken",
        )
        .bind(FOLDED_AT_ONCE)
        .fetch_one(&mut *tx)
        .await?;
        if folded > 0 {
            sqlx::query("delete from assignment_counts where count = 0").execute(&mut *tx).await?;
        }
        tx.commit().await?;
        Ok(folded)
    }
}
