//! How many assignments there are of each kind: from the counts that are kept, or else counted one by one.

use std::time::Duration;

use chrono::{DateTime, Timelike, Utc};
use sqlx::{Postgres, QueryBuilder};

use crate::domain::{Fault, Taxonomy};
use crate::store::assignments::{AssignmentFilter, SelectionError};
use crate::store::journal::stored_taxonomy;
use crate::store::search::refused;
use crate::store::{Store, StoreError};

/// Most groups of one answer.
pub const MAX_GROUPS: usize = 10_000;
/// Bands of confidence: twentieths.
pub const CONFIDENCE_BANDS: i64 = 20;
/// Rows of changed counts that are added up at once.
const FOLDED_AT_ONCE: i64 = 20_000;
/// The key of the lock that one service at a time adds counts up under.
const FOLD_LOCK: i64 = 0x636f_756e_7473;
/// Digits of a heading, to which counts are kept.
const HEADING_DIGITS: usize = 4;

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

impl CountBy {
    /// The value, of a row of the counts that are kept.
    const fn kept(self) -> &'static str {
        match self {
            CountBy::Status => "status",
            CountBy::Strategy => "nullif(strategy, '')",
            CountBy::AutoAssignment => "auto_state",
            CountBy::ReviewNeeded => "review_needed::text",
            CountBy::Chapter => "nullif(left(value, 2), '')",
            CountBy::Heading => "case when length(value) = 4 then value end",
            CountBy::Label | CountBy::Day => "value",
            CountBy::ConfidenceBand => "nullif(band, -1)::text",
        }
    }

    /// The value, of an assignment.
    const fn counted(self) -> &'static str {
        match self {
            CountBy::Status => "status",
            CountBy::Strategy => "strategy",
            CountBy::AutoAssignment => "auto_state",
            CountBy::ReviewNeeded => "review_needed::text",
            CountBy::Chapter => "left(product_class, 2)",
            CountBy::Heading => "substring(product_class from '^[0-9]{4}')",
            CountBy::Label => "label",
            CountBy::ConfidenceBand => "nullif(confidence_band(confidence), -1)::text",
            CountBy::Day => "to_char(updated_at at time zone 'UTC', 'YYYY-MM-DD')",
        }
    }

    /// Whether counts of every kind tell it.
    const fn is_common(self) -> bool {
        matches!(self, CountBy::Status | CountBy::Strategy | CountBy::AutoAssignment | CountBy::ReviewNeeded)
    }
}

/// The kind of the counts that are kept which answers a question, as its migration numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    Classes = 0,
    Days = 1,
    Labels = 2,
}

fn is_midnight(instant: Option<DateTime<Utc>>) -> bool {
    instant.is_none_or(|instant| instant.num_seconds_from_midnight() == 0 && instant.nanosecond() == 0)
}

/// Which of the counts that are kept hold what is asked for, if any.
fn kept(filter: &AssignmentFilter, by: &[CountBy]) -> Option<Kept> {
    if filter.product_ids.is_some()
        || filter.product_keys.is_some()
        || filter.shop.is_some()
        || filter.confidence_from.is_some()
        || filter.confidence_to.is_some()
        || !filter.without_labels.is_empty()
    {
        return None;
    }
    let dated = filter.updated_from.is_some() || filter.updated_before.is_some();
    let classed = filter.class_prefix.is_some();
    let only = |more: &[CountBy]| by.iter().all(|by| by.is_common() || more.contains(by));
    match (filter.with_labels.as_slice(), dated, classed) {
        ([], _, false)
            if only(&[CountBy::Day]) && is_midnight(filter.updated_from) && is_midnight(filter.updated_before) =>
        {
            Some(Kept::Days)
        }
        ([], false, false) if only(&[CountBy::Label]) => Some(Kept::Labels),
        ([_], false, false) if only(&[]) => Some(Kept::Labels),
        ([], false, _)
            if only(&[CountBy::Chapter, CountBy::Heading, CountBy::ConfidenceBand])
                && filter.class_prefix.as_ref().is_none_or(|prefix| prefix.len() <= HEADING_DIGITS) =>
        {
            Some(Kept::Classes)
        }
        _ => None,
    }
}

/// Appends which rows of the counts that are kept a filter selects.
fn push_kept(
    query: &mut QueryBuilder<Postgres>,
    account: i64,
    taxonomy: Taxonomy,
    kind: Kept,
    filter: &AssignmentFilter,
) {
    query.push("account_id = ").push_bind(account);
    query.push(" and taxonomy = ").push_bind(stored_taxonomy(taxonomy));
    query.push(" and kind = ").push_bind(kind as i16);
    filter.push_statuses(query);
    if !filter.strategies.is_empty() {
        let names: Vec<&str> = filter.strategies.iter().map(|strategy| strategy.name()).collect();
        query.push(" and strategy = any(").push_bind(names).push(")");
    }
    if !filter.auto_states.is_empty() {
        query.push(" and auto_state = any(").push_bind(filter.auto_states.clone()).push(")");
    }
    if let Some(needed) = filter.review_needed {
        query.push(" and review_needed = ").push_bind(needed);
    }
    match kind {
        Kept::Classes => {
            if let Some(prefix) = &filter.class_prefix {
                query.push(" and starts_with(value, ").push_bind(prefix.clone()).push(")");
            }
        }
        Kept::Days => {
            let day = |instant: DateTime<Utc>| instant.format("%Y-%m-%d").to_string();
            if let Some(from) = filter.updated_from {
                query.push(" and value >= ").push_bind(day(from));
            }
            if let Some(before) = filter.updated_before {
                query.push(" and value < ").push_bind(day(before));
            }
        }
        Kept::Labels => {
            if let [label] = filter.with_labels.as_slice() {
                query.push(" and value = ").push_bind(label.clone());
            }
        }
    }
}

/// The statement of a count, of at most one group more than an answer has.
pub(super) fn count_query(
    prefix: &'static str,
    account: i64,
    taxonomy: Taxonomy,
    filter: &AssignmentFilter,
    by: &[CountBy],
) -> QueryBuilder<Postgres> {
    let kind = kept(filter, by);
    let value = |index: usize| match (by.get(index), kind) {
        (None, _) => "null::text",
        (Some(by), Some(_)) => by.kept(),
        (Some(by), None) => by.counted(),
    };
    let mut query = QueryBuilder::new(prefix);
    query.push("select ").push(value(0)).push(" as first, ").push(value(1)).push(" as second, ");
    match kind {
        Some(kind) => {
            query.push("sum(count)::bigint from (select * from assignment_counts where ");
            push_kept(&mut query, account, taxonomy, kind, filter);
            query.push(" union all select * from assignment_count_changes where ");
            push_kept(&mut query, account, taxonomy, kind, filter);
            query.push(") as cells group by 1, 2 having sum(count) <> 0");
        }
        None => {
            query.push("count(*) from assignments");
            if by.contains(&CountBy::Label) {
                query.push(", unnest(labels) as label");
            }
            query.push(" where ");
            filter.push(&mut query, account, taxonomy);
            filter.push_statuses(&mut query);
            query.push(" group by 1, 2");
        }
    }
    query.push(" order by 1 nulls last, 2 nulls last limit ").push_bind(MAX_GROUPS as i64 + 1);
    query
}

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
        let mut tx = self.begin_within(deadline).await?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_answers_what_it_can() {
        let filter = |change: fn(&mut AssignmentFilter)| {
            let mut filter = AssignmentFilter::default();
            change(&mut filter);
            filter
        };
        let day = "2026-11-22T00:00:00Z".parse().ok();
        for (filter, by, expected) in [
            (filter(|_| {}), vec![], Some(Kept::Days)),
            (filter(|_| {}), vec![CountBy::Status, CountBy::Day], Some(Kept::Days)),
            (filter(|_| {}), vec![CountBy::Chapter, CountBy::Status], Some(Kept::Classes)),
            (filter(|_| {}), vec![CountBy::ConfidenceBand], Some(Kept::Classes)),
            (filter(|_| {}), vec![CountBy::Label], Some(Kept::Labels)),
            (filter(|_| {}), vec![CountBy::Label, CountBy::Heading], None),
            (filter(|_| {}), vec![CountBy::Day, CountBy::Heading], None),
            (filter(|f| f.with_labels = vec!["a".to_owned()]), vec![CountBy::Status], Some(Kept::Labels)),
            (filter(|f| f.with_labels = vec!["a".to_owned()]), vec![CountBy::Label], None),
            (filter(|f| f.with_labels = vec!["a".to_owned(); 2]), vec![], None),
            (filter(|f| f.class_prefix = Some("6109".to_owned())), vec![CountBy::Heading], Some(Kept::Classes)),
            (filter(|f| f.class_prefix = Some("610910".to_owned())), vec![CountBy::Heading], None),
            (AssignmentFilter { updated_from: day, ..AssignmentFilter::default() }, vec![], Some(Kept::Days)),
            (AssignmentFilter { updated_from: day, ..AssignmentFilter::default() }, vec![CountBy::Chapter], None),
            (filter(|f| f.shop = crate::domain::ShopId::local(1)), vec![], None),
            (filter(|f| f.product_ids = Some(Vec::new())), vec![], None),
        ] {
            assert_eq!(kept(&filter, &by), expected, "{filter:?} {by:?}");
        }
        let noon =
            AssignmentFilter { updated_from: "2026-11-22T12:00:00Z".parse().ok(), ..AssignmentFilter::default() };
        assert_eq!(kept(&noon, &[]), None);
    }
}
