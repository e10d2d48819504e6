//! Which assignments a request means: the filter of lists, counts and actions, in a query or in a body.

use std::time::Duration;

use chrono::{DateTime, Days, NaiveDate, NaiveTime, Utc};
use serde_json::{Map, Value};
use tokio::time::Instant;
use utoipa::IntoParams;

use crate::domain::assignment::{Status, Strategy};
use crate::domain::filter::Criteria;
use crate::domain::forms::ShopNumber;
use crate::domain::product_class::ClassCode;
use crate::domain::{ShopId, dates};
use crate::http::admission::Tab;
use crate::http::allowed::{ALL_STATUSES, AUTO_STATES};
use crate::http::body::{malformed, within};
use crate::http::described::kinds::{AutoStateList, CodePrefix, Confidence, DayOrInstant, StrategyList, TextList};
use crate::http::error::ApiError;
use crate::http::params::Params;
use crate::http::state::AppState;
use crate::search::{Search, SearchError};
use crate::store::accounts::Caller;
use crate::store::assignments::AssignmentFilter;
use crate::store::pages::Position;

/// The parameters that make up a filter.
pub(super) const FILTER_FIELDS: [&str; 13] = [
    "assignmentStatus",
    "productIds",
    "labels",
    "shopId",
    "reviewNeeded",
    "strategy",
    "autoAssignment",
    "productClass",
    "confidenceFrom",
    "confidenceTo",
    "updatedFrom",
    "updatedTo",
    "filterCriteria",
];
/// Most products that filterCriteria may find for a filter over assignments; a search that finds more is to be narrowed.
const MAX_FOUND: usize = 100_000;
/// Products that are asked of the search engine at once.
const FOUND_AT_ONCE: usize = 10_000;

/// The filter of a list or of counts, as it is described, beside its `assignmentStatus`, which only lists require. What is sent is read by [`SentFilter`], more strictly than the
/// framework would.
#[derive(IntoParams)]
#[into_params(rename_all = "camelCase", parameter_in = Query)]
#[expect(dead_code, reason = "it describes parameters and holds none")]
pub(super) struct FilterParameters {
    /// Products to select.
    #[param(inline, value_type = Option<TextList>)]
    product_ids: Option<String>,
    /// Labels that an assignment must carry; with ! before it, must not carry.
    #[param(inline, value_type = Option<TextList>)]
    labels: Option<String>,
    /// Local products of this shop, and global ones associated with it.
    #[param(inline, value_type = Option<ShopNumber>)]
    shop_id: Option<i64>,
    /// Those whose product changed after a person decided, or the others.
    review_needed: Option<bool>,
    /// DESCRIPTION, CUSTOMS-CODE, MANUAL; several are comma-separated or repeated.
    #[param(inline, value_type = Option<StrategyList>)]
    strategy: Option<String>,
    /// PENDING, DONE, ABORTED; several are comma-separated or repeated.
    #[param(inline, value_type = Option<AutoStateList>)]
    auto_assignment: Option<String>,
    /// The beginning of a code: those with a class that begins so.
    #[param(inline, value_type = Option<CodePrefix>)]
    product_class: Option<String>,
    /// At least so sure, 0 to 1.
    #[param(inline, value_type = Option<Confidence>)]
    confidence_from: Option<f64>,
    /// At most so sure, 0 to 1.
    #[param(inline, value_type = Option<Confidence>)]
    confidence_to: Option<f64>,
    /// Changed then or later: an instant, or a day (UTC).
    #[param(inline, value_type = Option<DayOrInstant>)]
    updated_from: Option<String>,
    /// Changed then or before: an instant, or a day (UTC), which is included.
    #[param(inline, value_type = Option<DayOrInstant>)]
    updated_to: Option<String>,
    /// Those whose product satisfies a JSON array of filter objects, as in the list of products.
    filter_criteria: Option<String>,
}

/// A filter as it was sent; what it says about products is not yet looked up.
pub(super) struct SentFilter {
    filter: AssignmentFilter,
    criteria: Option<Criteria>,
}

impl SentFilter {
    /// Reads a filter, with at least one status or ALL.
    pub(super) fn required(params: &Params) -> Result<SentFilter, ApiError> {
        let sent = SentFilter::optional(params)?;
        if params.list("assignmentStatus")?.unwrap_or_default().is_empty() {
            return Err(ApiError::malformed_at("assignmentStatus", "is required; ALL selects every status"));
        }
        Ok(sent)
    }

    /// Reads a filter that may leave statuses out.
    pub(super) fn optional(params: &Params) -> Result<SentFilter, ApiError> {
        let mut filter = AssignmentFilter { product_ids: params.list("productIds")?, ..AssignmentFilter::default() };
        let names = params.list("assignmentStatus")?.unwrap_or_default();
        let is_all = |name: &str| name.eq_ignore_ascii_case(ALL_STATUSES);
        if !names.iter().any(|name| is_all(name)) {
            filter.statuses = one_of(&names, "assignmentStatus", &Status::ALL, Status::name, &[ALL_STATUSES])?;
        } else if let Some(other) = names.iter().find(|name| !is_all(name) && Status::from_name(name).is_none()) {
            return Err(none_of("assignmentStatus", other, &Status::ALL, Status::name, &[ALL_STATUSES]));
        }
        for label in params.list("labels")?.unwrap_or_default() {
            match label.strip_prefix('!') {
                Some(without) => filter.without_labels.push(without.to_owned()),
                None => filter.with_labels.push(label),
            }
        }
        filter.shop = params.integer("shopId", 1, i64::MAX)?.and_then(ShopId::local);
        filter.review_needed = params.boolean("reviewNeeded")?;
        let names = params.list("strategy")?.unwrap_or_default();
        filter.strategies = one_of(&names, "strategy", &Strategy::ALL, Strategy::name, &[])?;
        let names = params.list("autoAssignment")?.unwrap_or_default();
        let states = one_of(&names, "autoAssignment", &AUTO_STATES, |state| state, &[])?;
        filter.auto_states = states.into_iter().map(str::to_owned).collect();
        filter.class_prefix = params.one("productClass")?.map(class_prefix).transpose()?;
        filter.confidence_from = confidence(params, "confidenceFrom")?;
        filter.confidence_to = confidence(params, "confidenceTo")?;
        filter.updated_from = instant(params, "updatedFrom")?.map(|(from, _)| from);
        filter.updated_before = instant(params, "updatedTo")?.map(|(_, behind)| behind);
        let criteria = match params.one("filterCriteria")? {
            // An empty list of criteria selects all.
            Some(text) => {
                Some(Criteria::parse(text).map_err(malformed)?).filter(|criteria| !criteria.elements.is_empty())
            }
            None => None,
        };
        Ok(SentFilter { filter, criteria })
    }

    /// Reads a filter in a body, whose fields are named as the parameters of the list are. Lists may be arrays, and
    /// filterCriteria JSON as it is.
    pub(super) fn of_body(fields: &Map<String, Value>) -> Result<SentFilter, ApiError> {
        if let Some(unknown) = fields.keys().find(|name| !FILTER_FIELDS.contains(&name.as_str())) {
            let message = format!("is no field of a filter; it takes {}", FILTER_FIELDS.join(", "));
            return Err(within("filter", ApiError::malformed_at(unknown, message)));
        }
        let sent = Params::of_fields(fields).and_then(|params| SentFilter::required(&params));
        sent.map_err(|error| within("filter", error))
    }

    /// Looks up what the filter says about products. One that says more than statuses takes a place among the searches,
    /// until the request is over: whatever it selects, the database may have to go past much for it.
    ///
    /// # Errors
    /// When there is no place, or the search fails, takes longer than its deadline, or finds too much.
    pub(super) async fn resolve(
        self,
        state: &AppState,
        caller: &Caller,
        tab: &Tab,
    ) -> Result<AssignmentFilter, ApiError> {
        if self.criteria.is_some() || !self.filter.is_open() {
            tab.search().await?;
        }
        let mut filter = self.filter;
        if let Some(criteria) = &self.criteria {
            filter.product_keys = Some(found(state, caller, criteria, filter.product_ids.as_deref()).await?);
        }
        Ok(filter)
    }
}

/// The keys of all products of the account that satisfy criteria, global and local.
async fn found(
    state: &AppState,
    caller: &Caller,
    criteria: &Criteria,
    product_ids: Option<&[String]>,
) -> Result<Vec<i64>, ApiError> {
    let until = Instant::now() + state.search_deadline;
    let mut keys: Vec<i64> = Vec::new();
    for shop in state.store.shops_of(caller.account).await? {
        let mut position = Position::Start;
        loop {
            let deadline = until.saturating_duration_since(Instant::now());
            if deadline == Duration::ZERO {
                return Err(SearchError::TooSlow.into());
            }
            let search = Search {
                account: caller.account,
                shop,
                criteria,
                product_ids,
                shop_ids: None,
                position: &position,
                size: FOUND_AT_ONCE - 1,
                deadline,
            };
            let page = state.search.page(&search).await?;
            keys.extend(page.items.iter().map(|found| found.key));
            if keys.len() > MAX_FOUND {
                return Err(SearchError::TooSlow.into());
            }
            match page.items.last().filter(|_| page.more_after) {
                Some(last) => position = Position::After(last.product_id.clone()),
                None => break,
            }
        }
    }
    Ok(keys)
}

fn none_of<T: Copy>(
    field: &str,
    name: &str,
    known: &[T],
    written: impl Fn(T) -> &'static str,
    further: &[&'static str],
) -> ApiError {
    let known: Vec<&str> = known.iter().map(|value| written(*value)).chain(further.iter().copied()).collect();
    ApiError::malformed_at(field, format!("\"{name}\" is none of {}", known.join(", ")))
}

/// The values of these names, each once.
fn one_of<T: Copy + PartialEq>(
    names: &[String],
    field: &str,
    known: &[T],
    written: impl Fn(T) -> &'static str + Copy,
    further: &[&'static str],
) -> Result<Vec<T>, ApiError> {
    let mut values = Vec::new();
    for name in names {
        let value = known.iter().copied().find(|value| written(*value).eq_ignore_ascii_case(name));
        let value = value.ok_or_else(|| none_of(field, name, known, written, further))?;
        if !values.contains(&value) {
            values.push(value);
        }
    }
    Ok(values)
}

fn class_prefix(text: &str) -> Result<String, ApiError> {
    let digits = (1..=ClassCode::MAX_DIGITS).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    if digits {
        return Ok(text.to_owned());
    }
    Err(ApiError::malformed_at("productClass", "is the beginning of a code, 1 to 10 digits"))
}

fn confidence(params: &Params, name: &str) -> Result<Option<f64>, ApiError> {
    let Some(text) = params.one(name)? else { return Ok(None) };
    match text.parse::<f64>() {
        Ok(value) if (0.0..=1.0).contains(&value) => Ok(Some(value)),
        _ => Err(ApiError::malformed_at(name, "is a number from 0 to 1")),
    }
}

/// The first instant that is meant, and the first behind all that is meant: of a day, the first of the next.
type Span = (DateTime<Utc>, DateTime<Utc>);

fn instant(params: &Params, name: &str) -> Result<Option<Span>, ApiError> {
    let Some(text) = params.one(name)? else { return Ok(None) };
    let malformed =
        || ApiError::malformed_at(name, "is an instant such as 2026-11-22T08:00:00Z, or a day such as 2026-11-22");
    let in_reach = |year: i32| (1..=9_999).contains(&year);
    if let Some(day) = dates::day(text) {
        let next = day.checked_add_days(Days::new(1)).filter(|_| in_reach(chrono::Datelike::year(&day)));
        let next = next.ok_or_else(malformed)?;
        let start = |day: NaiveDate| day.and_time(NaiveTime::MIN).and_utc();
        return Ok(Some((start(day), start(next))));
    }
    let instant = DateTime::parse_from_rfc3339(text).map_err(|_| malformed())?.to_utc();
    if !in_reach(chrono::Datelike::year(&instant)) {
        return Err(malformed());
    }
    Ok(Some((instant, instant + chrono::TimeDelta::microseconds(1))))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(query: &str) -> Result<AssignmentFilter, ApiError> {
        SentFilter::optional(&Params::parse(query)?).map(|sent| sent.filter)
    }

    #[test]
    fn a_status_given_twice_is_one_and_all_selects_every_one() {
        let statuses = |query: &str| read(query).expect("a filter").statuses;
        let five = ["assignmentStatus=APPROVED"; 5].join("&");
        assert_eq!(statuses(&five), [Status::Approved]);
        assert_eq!(statuses("assignmentStatus=ALL"), []);
        assert_eq!(statuses("assignmentStatus=ALL,DENIED"), []);
        assert_eq!(statuses("assignmentStatus=all"), [], "the names of statuses are read in any case");
        assert_eq!(statuses("assignmentStatus=approved"), [Status::Approved]);
        assert!(read("assignmentStatus=ALL,NEW").is_err() && read("assignmentStatus=NEW").is_err());
        assert!(SentFilter::required(&Params::parse("labels=a").expect("a query")).is_err());
    }

    #[test]
    fn values_out_of_reach_are_refused() {
        for bad in [
            "strategy=GUESS",
            "autoAssignment=NOW",
            "productClass=",
            "productClass=61a",
            "productClass=61091000001",
            "confidenceFrom=1.1",
            "confidenceTo=-0.1",
            "confidenceTo=NaN",
            "updatedFrom=yesterday",
            "updatedTo=99999-01-01",
            "updatedTo=2026-11-22T25:00:00Z",
            "shopId=0",
            "reviewNeeded=1",
            "filterCriteria={}",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_end_of_a_day_and_an_instant_itself_are_included() {
        let before = |query: &str| read(query).expect("a filter").updated_before.map(|at| at.to_rfc3339());
        assert_eq!(before("updatedTo=2026-11-22").as_deref(), Some("2026-11-23T00:00:00+00:00"));
        assert_eq!(before("updatedTo=2026-11-22T08:00:00Z").as_deref(), Some("2026-11-22T08:00:00.000001+00:00"));
    }

    #[test]
    fn a_body_says_the_same_as_a_query() {
        let body = json!({"assignmentStatus": ["REJECTED", "ASSIGNED"], "productIds": ["a,b"], "labels": "x,!y",
            "shopId": 7, "reviewNeeded": true, "confidenceFrom": 0.5, "filterCriteria": [{"productId": "a"}]});
        let sent = SentFilter::of_body(body.as_object().expect("an object")).expect("a filter");
        assert_eq!(sent.filter.statuses, [Status::Rejected, Status::Assigned]);
        assert_eq!(sent.filter.product_ids, Some(vec!["a,b".to_owned()]), "an item of an array is whole");
        assert_eq!((sent.filter.with_labels, sent.filter.without_labels), (vec!["x".to_owned()], vec!["y".to_owned()]));
        assert_eq!((sent.filter.confidence_from, sent.filter.review_needed), (Some(0.5), Some(true)));
        assert!(sent.criteria.is_some());
        for empty in ["filterCriteria=[]", "filterCriteria=[%20]"] {
            let sent = SentFilter::optional(&Params::parse(empty).expect("a query")).expect("a filter");
            assert!(sent.criteria.is_none(), "{empty}: none selects all");
        }
        let all = |name: &str, value: serde_json::Value| json!({"assignmentStatus": "ALL", name: value});
        for bad in [
            json!({}),
            json!({"status": "ALL"}),
            json!({"assignmentStatus": []}),
            json!({"assignmentStatus": ""}),
            all("shopId", json!([1, 2])),
            all("shopId", json!("7")),
            all("confidenceFrom", json!("0.9")),
            all("reviewNeeded", json!("false")),
            all("reviewNeeded", json!(0)),
            all("productIds", json!(5)),
            all("productIds", json!([5])),
            all("productClass", json!(61)),
            all("updatedFrom", json!(2026)),
            all("labels", json!(5)),
            all("labels", json!([])),
            all("labels", json!("")),
            all("strategy", json!([])),
            all("autoAssignment", json!(",")),
        ] {
            assert!(SentFilter::of_body(bad.as_object().expect("an object")).is_err(), "{bad}");
        }
        for (bad, place) in [
            (json!({"status": "ALL"}), "filter.status"),
            (json!({}), "filter.assignmentStatus"),
            (all("shopId", json!("7")), "filter.shopId"),
            (all("filterCriteria", json!([{"keywords": ""}])), "filter.filterCriteria[0].keywords"),
        ] {
            let Err(ApiError::BadRequest(message, faults)) = SentFilter::of_body(bad.as_object().expect("an object"))
            else {
                panic!("{bad}")
            };
            assert_eq!(faults[0].field.as_deref(), Some(place));
            assert!(message.starts_with(place), "{message}");
        }
        for none in [json!([]), json!("")] {
            let sent = all("productIds", none);
            let sent = SentFilter::of_body(sent.as_object().expect("an object")).expect("a filter");
            assert_eq!(sent.filter.product_ids, Some(vec![String::new()]), "no products are not all of them");
        }
    }
}
