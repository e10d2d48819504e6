//! How many assignments there are of each kind.

use axum::Json;
use axum::extract::{Path, State};
use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::forms::TaxonomyName;
use crate::http::admission::Tab;
use crate::http::allowed::{GROUPED_BY, MAX_GROUPED_BY};
use crate::http::assignment_filter::{FilterParameters, SentFilter};
use crate::http::described::errors::{Errors, SEARCH, TAXONOMY, WRONG_FILTER};
use crate::http::described::kinds::{GroupList, StatusList};
use crate::http::error::ApiError;
use crate::http::params::Params;
use crate::http::state::AppState;
use crate::http::taxonomies::taxonomy;
use crate::store::accounts::Caller;
use crate::store::assignments::{CONFIDENCE_BANDS, CountBy, Group};

/// Counts, in the order of the values.
#[derive(Serialize, ToSchema)]
pub(super) struct CountList {
    items: Vec<CountAnswer>,
}

/// How many assignments have these values; only those that were asked for are there, null where an assignment has none.
#[derive(Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CountAnswer {
    /// UNASSIGNED, ASSIGNED, APPROVED, REJECTED or DENIED.
    #[serde(skip_serializing_if = "Option::is_none")]
    assignment_status: Option<Option<String>>,
    /// DESCRIPTION, CUSTOMS-CODE, MANUAL or null.
    #[serde(skip_serializing_if = "Option::is_none")]
    strategy: Option<Option<String>>,
    /// PENDING, DONE or ABORTED.
    #[serde(skip_serializing_if = "Option::is_none")]
    auto_assignment: Option<Option<String>>,
    /// Whether the product changed after a person decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    review_needed: Option<bool>,
    /// The first two digits of the class.
    #[serde(skip_serializing_if = "Option::is_none")]
    chapter: Option<Option<String>>,
    /// The first four digits of the class.
    #[serde(skip_serializing_if = "Option::is_none")]
    heading: Option<Option<String>>,
    /// A label; an assignment counts under each that it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<Option<String>>,
    /// From where to below where the confidence lies, `0.85-0.90`; the last band, `0.95-1.00`, includes its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence_band: Option<Option<String>>,
    /// The day of the last change (UTC), `2026-11-22`.
    #[serde(skip_serializing_if = "Option::is_none")]
    day: Option<Option<String>>,
    /// How many.
    count: i64,
}

impl CountAnswer {
    fn new(by: &[CountBy], (values, count): Group) -> CountAnswer {
        let mut answer = CountAnswer { count, ..CountAnswer::default() };
        for (by, value) in by.iter().zip(values) {
            match by {
                CountBy::Status => answer.assignment_status = Some(value),
                CountBy::Strategy => answer.strategy = Some(value),
                CountBy::AutoAssignment => answer.auto_assignment = Some(value),
                CountBy::ReviewNeeded => answer.review_needed = Some(value.as_deref() == Some("true")),
                CountBy::Chapter => answer.chapter = Some(value),
                CountBy::Heading => answer.heading = Some(value),
                CountBy::Label => answer.label = Some(value),
                CountBy::ConfidenceBand => answer.confidence_band = Some(value.as_deref().and_then(band)),
                CountBy::Day => answer.day = Some(value),
            }
        }
        answer
    }
}

/// A band as it is written, `0.85-0.90`.
fn band(number: &str) -> Option<String> {
    let number: i64 = number.parse().ok()?;
    let edge = |number: i64| number as f64 / CONFIDENCE_BANDS as f64;
    Some(format!("{:.2}-{:.2}", edge(number), edge(number + 1)))
}

fn grouped_by(params: &Params) -> Result<Vec<CountBy>, ApiError> {
    let names = params.list("by")?.unwrap_or_default();
    let known = || GROUPED_BY.map(|(name, _)| name).join(", ");
    if !(1..=MAX_GROUPED_BY).contains(&names.len()) {
        return Err(ApiError::malformed_at("by", format!("is one or two of {}", known())));
    }
    let mut by: Vec<CountBy> = Vec::new();
    for name in names {
        match GROUPED_BY.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(&name)) {
            None => return Err(ApiError::malformed_at("by", format!("\"{name}\" is none of {}", known()))),
            Some((_, named)) if by.contains(&named) => {
                return Err(ApiError::malformed_at("by", format!("names {name} twice")));
            }
            Some((_, named)) => by.push(named),
        }
    }
    Ok(by)
}

#[utoipa::path(get, path = "/assignments/{taxonomy}/counts", tag = "Assignments", operation_id = "countAssignments",
    summary = "Count assignments",
    description = "Counts assignments in groups by one or two of their values, with the filters of the list; assignmentStatus may be left out.",
    params(
        ("taxonomy" = inline(TaxonomyName), Path, description = "TARIC, TARES or UKGT."),
        ("by" = inline(GroupList), Query, description = "One or two of assignmentStatus, strategy, autoAssignment, reviewNeeded, chapter, heading, label, confidenceBand, day; two are comma-separated or repeated."),
        ("assignmentStatus" = inline(Option<StatusList>), Query, description = "UNASSIGNED, ASSIGNED, APPROVED, REJECTED, DENIED; several are comma-separated or repeated. ALL selects every status."),
        FilterParameters,
    ),
    responses((status = 200, description = "The counts.", body = CountList),
        Errors<{ TAXONOMY | WRONG_FILTER | SEARCH }>))]
pub(super) async fn count(
    State(state): State<AppState>,
    caller: Caller,
    tab: Tab,
    Path(name): Path<String>,
    params: Params,
) -> Result<Json<CountList>, ApiError> {
    let by = grouped_by(&params)?;
    let sent = SentFilter::optional(&params)?;
    let taxonomy = taxonomy(&name)?;
    let filter = sent.resolve(&state, &caller, &tab).await?;
    let groups = state.store.count_assignments(caller.account, taxonomy, &filter, &by, state.search_deadline).await?;
    let items = groups.into_iter().map(|group| CountAnswer::new(&by, group)).collect();
    Ok(Json(CountList { items }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_are_written_with_their_edges() {
        assert_eq!(band("0").as_deref(), Some("0.00-0.05"));
        assert_eq!(band("17").as_deref(), Some("0.85-0.90"));
        assert_eq!(band("19").as_deref(), Some("0.95-1.00"));
    }

    #[test]
    fn one_or_two_values_group_and_none_twice() {
        let by = |query: &str| grouped_by(&Params::parse(query).expect("a query")).ok();
        assert_eq!(by("by=day"), Some(vec![CountBy::Day]));
        assert_eq!(by("by=chapter,assignmentStatus"), Some(vec![CountBy::Chapter, CountBy::Status]));
        assert_eq!(by("by=label&by=strategy"), Some(vec![CountBy::Label, CountBy::Strategy]));
        for bad in ["", "by=", "by=status", "by=day,day", "by=day,label,strategy"] {
            assert_eq!(by(bad), None, "{bad}");
        }
    }
}
