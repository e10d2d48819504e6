//! What a count reads: the counts that are kept where they tell it, and assignments one by one where they do not.
//!
//! A count is a sum of parts. A range of confidence, for one, is the hundredths that lie in it, which are kept, and what
//! lies between them and its ends, which is counted one by one and is little.

use std::ops::Range;

use chrono::{DateTime, Days, NaiveTime, Utc};
use sqlx::{Postgres, QueryBuilder};

use crate::domain::Taxonomy;
use crate::store::assignments::sureness::{HUNDREDTHS, hundredth, hundredths, push_hundredths, span};
use crate::store::assignments::{AssignmentFilter, CountBy};
use crate::store::journal::stored_taxonomy;

/// Most groups of one answer.
pub const MAX_GROUPS: usize = 10_000;
/// Digits of a chapter and of a heading, to which counts are kept.
const CHAPTER_DIGITS: usize = 2;
const HEADING_DIGITS: usize = 4;

impl CountBy {
    /// The value, of a row of the counts that are kept.
    const fn kept(self, kind: Kept) -> &'static str {
        match (self, kind) {
            (CountBy::Status, _) => "status",
            (CountBy::Strategy, _) => "nullif(strategy, '')",
            (CountBy::AutoAssignment, _) => "auto_state",
            (CountBy::ReviewNeeded, _) => "review_needed::text",
            (CountBy::Chapter, _) => "nullif(left(value, 2), '')",
            (CountBy::Heading, _) => "case when length(value) = 4 then value end",
            (CountBy::Label | CountBy::Day, _) => "value",
            (CountBy::ConfidenceBand, Kept::Sureness) => "(nullif(band, -1) / 5)::text",
            (CountBy::ConfidenceBand, _) => "nullif(band, -1)::text",
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
            // Behind the digits of a class is a hyphen.
            CountBy::Heading => "case when substr(product_class, 3, 1) <> '-' then left(product_class, 4) end",
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

/// A kind of the counts that are kept, as its migration numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    Days = 1,
    Labels = 2,
    Headings = 3,
    Chapters = 4,
    Sureness = 5,
}

/// A part of a count.
#[derive(Clone, Debug)]
enum Part {
    /// Counts of a kind; those of some hundredths only, where given.
    Kept { kind: Kept, filter: AssignmentFilter, hundredths: Option<Range<i16>> },
    /// Assignments, counted one by one.
    Counted { filter: AssignmentFilter, within: Within, taken_away: bool },
}

/// What else the assignments of a part are.
#[derive(Clone, Debug, Default)]
struct Within {
    /// Their confidence: at least this, and below that, as far as given.
    sure: Option<(Option<f32>, Option<f32>)>,
    /// They carry any of these labels, where there is one.
    labels: Vec<String>,
}

impl Part {
    fn one_by_one(filter: AssignmentFilter) -> Part {
        Part::Counted { filter, within: Within::default(), taken_away: false }
    }
}

/// The last midnight that is not behind an instant.
fn midnight(instant: DateTime<Utc>) -> DateTime<Utc> {
    instant.date_naive().and_time(NaiveTime::MIN).and_utc()
}

/// The first midnight that is not before an instant.
fn next_midnight(instant: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let last = midnight(instant);
    if last == instant { Some(last) } else { last.checked_add_days(Days::new(1)) }
}

/// The kind that holds what is asked for, if any; of the filter, confidence, days and excluded labels are left out.
fn kind(filter: &AssignmentFilter, by: &[CountBy]) -> Option<Kept> {
    if filter.product_ids.is_some() || filter.product_keys.is_some() || filter.shop.is_some() {
        return None;
    }
    let dated = filter.updated_from.is_some() || filter.updated_before.is_some();
    let ranged = filter.confidence_from.is_some() || filter.confidence_to.is_some();
    let only = |more: &[CountBy]| by.iter().all(|by| by.is_common() || more.contains(by));
    let digits = filter.class_prefix.as_ref().map(String::len);
    match (filter.with_labels.as_slice(), dated, ranged, digits) {
        ([], _, false, None) if only(&[CountBy::Day]) => Some(Kept::Days),
        ([], false, _, None) if only(&[CountBy::ConfidenceBand]) => Some(Kept::Sureness),
        ([], false, false, None) if only(&[CountBy::Label]) => Some(Kept::Labels),
        ([_], false, false, None) if only(&[]) => Some(Kept::Labels),
        ([], false, false, _)
            if only(&[CountBy::Chapter, CountBy::Heading]) && digits.is_none_or(|digits| digits <= HEADING_DIGITS) =>
        {
            Some(Kept::Headings)
        }
        ([], false, false, _)
            if only(&[CountBy::Chapter, CountBy::ConfidenceBand])
                && digits.is_none_or(|digits| digits <= CHAPTER_DIGITS) =>
        {
            Some(Kept::Chapters)
        }
        _ => None,
    }
}

/// The parts of a count.
fn parts(filter: &AssignmentFilter, by: &[CountBy]) -> Vec<Part> {
    let all = AssignmentFilter { without_labels: Vec::new(), ..filter.clone() };
    let Some(kind) = kind(&all, by) else { return vec![Part::one_by_one(filter.clone())] };
    let mut parts = match kind {
        Kept::Days => parts_by_day(&all),
        Kept::Sureness => parts_by_sureness(&all),
        _ => vec![Part::Kept { kind, filter: all.clone(), hundredths: None }],
    };
    if !filter.without_labels.is_empty() {
        let within = Within { labels: filter.without_labels.clone(), ..Within::default() };
        parts.push(Part::Counted { filter: all, within, taken_away: true });
    }
    parts
}

/// Whole days, and what is before the first and behind the last.
fn parts_by_day(filter: &AssignmentFilter) -> Vec<Part> {
    let first = filter.updated_from.map(|from| next_midnight(from).unwrap_or(from));
    let end = filter.updated_before.map(midnight);
    if first.zip(end).is_some_and(|(first, end)| first >= end) {
        return vec![Part::one_by_one(filter.clone())];
    }
    let between = |from, before| AssignmentFilter { updated_from: from, updated_before: before, ..filter.clone() };
    let mut parts = vec![Part::Kept { kind: Kept::Days, filter: between(first, end), hundredths: None }];
    if first != filter.updated_from {
        parts.push(Part::one_by_one(between(filter.updated_from, first)));
    }
    if end != filter.updated_before {
        parts.push(Part::one_by_one(between(end, filter.updated_before)));
    }
    parts
}

/// Whole hundredths of confidence, and what is below the first and above the last.
fn parts_by_sureness(filter: &AssignmentFilter) -> Vec<Part> {
    let (from, below) = span(filter.confidence_from, filter.confidence_to);
    if from.is_none() && below.is_none() {
        return vec![Part::Kept { kind: Kept::Sureness, filter: filter.clone(), hundredths: None }];
    }
    let filter = AssignmentFilter { confidence_from: None, confidence_to: None, ..filter.clone() };
    let counted = |from, below| {
        let within = Within { sure: Some((from, below)), ..Within::default() };
        Part::Counted { filter: filter.clone(), within, taken_away: false }
    };
    let below = below.filter(|below| *below <= 1.0);
    let first = from.map_or(0, |from| (0..HUNDREDTHS).find(|n| hundredth(*n) >= from).unwrap_or(HUNDREDTHS));
    let end = below.map_or(HUNDREDTHS, |below| (0..HUNDREDTHS).rfind(|n| hundredth(*n) <= below).unwrap_or(0));
    if first >= end {
        return vec![counted(from, below)];
    }
    let mut parts = vec![Part::Kept { kind: Kept::Sureness, filter: filter.clone(), hundredths: Some(first..end) }];
    if let Some(from) = from.filter(|from| first > 0 && *from < hundredth(first)) {
        parts.push(counted(Some(from), Some(hundredth(first))));
    }
    if let Some(below) = below.filter(|below| *below > hundredth(end)) {
        parts.push(counted(Some(hundredth(end)), Some(below)));
    }
    parts
}

/// Whether the counts that are kept tell how many assignments of each status a filter selects, with little more to count.
pub(super) fn is_kept(filter: &AssignmentFilter) -> bool {
    filter.without_labels.is_empty() && kind(filter, &[CountBy::Status]).is_some()
}

/// The narrowest filter of whole days and whole hundredths of confidence that selects all that this one does: counts that
/// are kept tell it without counting anything.
pub(super) fn rounded(filter: &AssignmentFilter) -> AssignmentFilter {
    // The last decimal that answers show below the next hundredth.
    const LAST_BELOW: f64 = 0.0099;
    let hundredth = |confidence: f64| (confidence * f64::from(HUNDREDTHS)).floor() / f64::from(HUNDREDTHS);
    AssignmentFilter {
        confidence_from: filter.confidence_from.map(hundredth),
        confidence_to: filter.confidence_to.map(|to| (hundredth(to) + LAST_BELOW).min(1.0)),
        updated_from: filter.updated_from.map(midnight),
        updated_before: filter.updated_before.map(|before| next_midnight(before).unwrap_or(before)),
        ..filter.clone()
    }
}

/// Appends which rows of the counts that are kept a filter selects.
fn push_kept(
    query: &mut QueryBuilder<Postgres>,
    (account, taxonomy): (i64, Taxonomy),
    kind: Kept,
    filter: &AssignmentFilter,
    hundredths: Option<&Range<i16>>,
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
    if let Some(hundredths) = hundredths {
        query.push(" and band >= ").push_bind(hundredths.start).push(" and band < ").push_bind(hundredths.end);
    }
    if let Some(prefix) = &filter.class_prefix {
        query.push(" and starts_with(value, ").push_bind(prefix.clone()).push(")");
    }
    let day = |instant: DateTime<Utc>| instant.format("%Y-%m-%d").to_string();
    if let Some(from) = filter.updated_from {
        query.push(" and value >= ").push_bind(day(from));
    }
    if let Some(before) = filter.updated_before {
        query.push(" and value < ").push_bind(day(before));
    }
    if let (Kept::Labels, [label]) = (kind, filter.with_labels.as_slice()) {
        query.push(" and value = ").push_bind(label.clone());
    }
}

/// Appends a part, with the values of its groups.
fn push_part(query: &mut QueryBuilder<Postgres>, whose: (i64, Taxonomy), by: &[CountBy], part: &Part) {
    let select = |query: &mut QueryBuilder<Postgres>, value: &dyn Fn(CountBy) -> &'static str| {
        let value = |index: usize| by.get(index).map_or("null::text", |by| value(*by));
        query.push("select ").push(value(0)).push(" as first, ").push(value(1)).push(" as second, ");
    };
    match part {
        Part::Kept { kind, filter, hundredths } => {
            for (index, table) in ["assignment_counts", "assignment_count_changes"].into_iter().enumerate() {
                query.push(if index == 0 { "" } else { " union all " });
                select(query, &|by| by.kept(*kind));
                query.push("count from ").push(table).push(" where ");
                push_kept(query, whose, *kind, filter, hundredths.as_ref());
            }
        }
        Part::Counted { filter, within, taken_away } => {
            select(query, &|by| by.counted());
            query.push(if *taken_away { "-count(*)" } else { "count(*)" }).push(" as count from assignments");
            if by.contains(&CountBy::Label) {
                query.push(", unnest(labels) as label");
            }
            query.push(" where ");
            filter.push(query, whose.0, whose.1);
            filter.push_statuses(query);
            if by.contains(&CountBy::Label) || !within.labels.is_empty() {
                query.push(" and labels <> '{}'");
            }
            if filter.confidence_from.is_some() || filter.confidence_to.is_some() {
                // The index of hundredths tells class and day of what lies in a range, without a look at the table.
                let (first, last) = hundredths(filter.confidence_from, filter.confidence_to).into_inner();
                push_hundredths(query, first..last + 1);
            }
            if let Some((from, below)) = within.sure {
                query.push(" and confidence is not null");
                if let Some(from) = from {
                    query.push(" and coalesce(confidence, -1) >= ").push_bind(from);
                }
                if let Some(below) = below {
                    query.push(" and coalesce(confidence, -1) < ").push_bind(below);
                }
            }
            if !within.labels.is_empty() {
                query.push(" and labels && ").push_bind(within.labels.clone());
            }
            query.push(" group by 1, 2");
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
    let mut query = QueryBuilder::new(prefix);
    query.push("select first, second, sum(count)::bigint from (");
    for (index, part) in parts(filter, by).iter().enumerate() {
        query.push(if index == 0 { "(" } else { " union all (" });
        push_part(&mut query, (account, taxonomy), by, part);
        query.push(")");
    }
    query.push(") as parts group by 1, 2 having sum(count) <> 0 order by 1 nulls last, 2 nulls last limit ");
    query.push_bind(MAX_GROUPS as i64 + 1);
    query
}

#[cfg(test)]
mod tests;
