//! Which assignments a list shows, in which order, page by page.
//!
//! Every order is kept by status in an index. A list of several statuses therefore reads each from its beginning, as far as
//! the page reaches when they are merged: whatever is selected, a page costs what a page holds. Where a filter selects few,
//! reading in order would go past nearly everything: the counts that are kept tell, the places of those few are read and
//! sorted, and what the page shows is fetched.

use std::collections::HashMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::{Postgres, QueryBuilder};

use crate::domain::assignment::Status;
use crate::domain::{ShopId, Taxonomy};
use crate::store::assignments::embed::{Embedded, fitting, weights};
use crate::store::assignments::filter::AssignmentFilter;
use crate::store::assignments::kept::{count_query, is_kept, rounded};
use crate::store::assignments::sureness::{HUNDREDTHS, LAST_DECIMAL, wide_hundredths};
use crate::store::assignments::{AssignmentRecord, CountBy};
use crate::store::deadline::{FilterError, refused};
use crate::store::limits::{Limit, limit};
use crate::store::pages::{Page, Position};
use crate::store::{Store, StoreError, Tx};

mod choice;
mod statement;

use choice::Counts;
use statement::{Part, Plan, page_query};

/// Most products of a shop, and most assignments with a label, whose places are read and sorted for a page.
const FEW: i64 = 5_000;
/// Most assignments, in all statuses together, that are sorted where an index tells their places and reading them in order
/// takes longer than [`WALK`]: it tells each in a microsecond. When the rules of a class change, all its assignments change
/// at one time, so that reading in order may go past nearly everything else.
const FEW_BY_INDEX: i64 = 300_000;
/// How long what may be sorted is read in order: half of what a page is to take.
const WALK: Duration = Duration::from_millis(25);

/// The order of a list of assignments; where two are equal, by product id and shop in the same direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AssignmentOrder {
    /// By product id, then shop.
    #[default]
    Product,
    /// The least sure first, and those without a confidence before them.
    Confidence,
    /// The surest first.
    ConfidenceDown,
    /// What changed longest ago first.
    Updated,
    /// What changed last first.
    UpdatedDown,
    /// Where the most is at stake first.
    Impact,
}

impl AssignmentOrder {
    /// What is compared before product id and shop.
    const fn key(self) -> Option<&'static str> {
        match self {
            AssignmentOrder::Product => None,
            AssignmentOrder::Confidence | AssignmentOrder::ConfidenceDown => Some("coalesce(confidence, -1)"),
            AssignmentOrder::Updated | AssignmentOrder::UpdatedDown => Some("updated_at"),
            AssignmentOrder::Impact => Some("impact"),
        }
    }

    /// Whether a filter asks for a range of what orders the list, and nothing else but statuses: it begins where its range
    /// does, and nothing is gone past.
    fn is_of(self, filter: &AssignmentFilter) -> bool {
        match self {
            AssignmentOrder::Confidence | AssignmentOrder::ConfidenceDown => filter.is_sureness(),
            AssignmentOrder::Updated | AssignmentOrder::UpdatedDown => filter.is_dated(),
            AssignmentOrder::Product | AssignmentOrder::Impact => false,
        }
    }

    const fn descending(self) -> bool {
        matches!(self, AssignmentOrder::ConfidenceDown | AssignmentOrder::UpdatedDown | AssignmentOrder::Impact)
    }

    /// Binds the value of a place in the list.
    fn bind(self, query: &mut QueryBuilder<Postgres>, value: f64) {
        match self {
            // Cursors come from clients: an instant that none of ours has written is moved to the nearest that may be.
            AssignmentOrder::Updated | AssignmentOrder::UpdatedDown => {
                let instant = DateTime::from_timestamp_micros(value.max(0.0) as i64);
                query.push_bind(instant.unwrap_or(DateTime::<Utc>::MAX_UTC));
            }
            _ => {
                query.push_bind(value as f32);
            }
        }
    }
}

/// The place of an assignment in a list: the value that orders it (0 where product ids do), product id and shop.
pub type AssignmentKey = (f64, String, i64);

impl AssignmentRecord {
    /// Its place in a list of that order.
    pub fn key(&self, order: AssignmentOrder) -> AssignmentKey {
        let value = match order {
            AssignmentOrder::Product => 0.0,
            AssignmentOrder::Confidence | AssignmentOrder::ConfidenceDown => self.confidence.unwrap_or(-1.0).into(),
            AssignmentOrder::Updated | AssignmentOrder::UpdatedDown => self.updated_at.timestamp_micros() as f64,
            AssignmentOrder::Impact => self.impact.into(),
        };
        (value, self.product_id.clone(), self.shop_id)
    }
}

/// A list that is asked for.
#[derive(Clone, Copy, Debug)]
pub struct ListRequest<'a> {
    /// Whose assignments.
    pub account: i64,
    /// Of which taxonomy.
    pub taxonomy: Taxonomy,
    /// Which of them.
    pub filter: &'a AssignmentFilter,
    /// In which order.
    pub order: AssignmentOrder,
    /// Most assignments of a page.
    pub size: usize,
}

/// A page of assignments.
#[derive(Clone, Debug)]
pub struct AssignmentPage {
    /// The assignments.
    pub page: Page<AssignmentRecord>,
    /// What is read to be shown beside them weighs, in bytes.
    pub weight: usize,
}

impl Store {
    /// A page of assignments: of fewer than were asked for where what is to be shown beside them would pass
    /// [`PAGE_BYTES`](crate::store::products::PAGE_BYTES).
    ///
    /// # Errors
    /// Too slow after the deadline.
    pub async fn assignments(
        &self,
        request: &ListRequest<'_>,
        position: &Position<AssignmentKey>,
        embedded: Embedded,
        deadline: Duration,
    ) -> Result<AssignmentPage, SelectionError> {
        let mut tx = self.begin_within(deadline).await.map_err(StoreError::from)?;
        let (filter, plan) = plan(&mut tx, request).await.map_err(refused)?;
        let mut rows = Vec::new();
        if !plan.is_empty() {
            let request = ListRequest { filter: &filter, ..*request };
            rows = read(&mut tx, &request, plan, position, deadline).await.map_err(refused)?;
        }
        let found = rows.len();
        rows.truncate(request.size);
        let keys: Vec<i64> = rows.iter().map(|record| record.product_key).collect();
        let (fits, weight) = fitting(&weights(&mut *tx, request.taxonomy, &keys, embedded).await.map_err(refused)?);
        rows.truncate(fits);
        tx.rollback().await.map_err(StoreError::from)?;
        let more = found > rows.len();
        let weight = usize::try_from(weight).unwrap_or_default();
        Ok(AssignmentPage { page: Page::from_part(rows, more, position), weight })
    }

    /// How the database reads the first page of a list, and counts what it selects: the lines of both plans. For tests
    /// that watch over them.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn explain_list(&self, request: &ListRequest<'_>, by: &[CountBy]) -> Result<Vec<String>, StoreError> {
        let mut tx = self.begin().await?;
        let (filter, plan) = plan(&mut tx, request).await?;
        let planned = ListRequest { filter: &filter, ..*request };
        let mut lines: Vec<String> = Vec::new();
        if !plan.is_empty() {
            let mut page = page_query("explain ", &planned, &plan, &Position::Start);
            lines = page.build_query_scalar().persistent(false).fetch_all(&mut *tx).await?;
        }
        tx.rollback().await?;
        let mut count = count_query("explain ", request.account, request.taxonomy, request.filter, by);
        lines.extend(count.build_query_scalar::<String>().persistent(false).fetch_all(self.pool()).await?);
        Ok(lines)
    }
}

/// The rows of a page. What may be sorted is read in order for a moment only: where few of those that come first are
/// selected, as when the rules of one class have just changed or a shop has few products, the way would be long.
async fn read(
    tx: &mut Tx,
    request: &ListRequest<'_>,
    mut plan: Plan,
    position: &Position<AssignmentKey>,
    deadline: Duration,
) -> Result<Vec<AssignmentRecord>, sqlx::Error> {
    if plan.may_be_sorted {
        sqlx::raw_sql("savepoint walk").execute(&mut **tx).await?;
        limit(tx, &[Limit::Statement(Some(WALK))]).await?;
        let mut walk = page_query("", request, &plan, position);
        match walk.build_query_as().persistent(false).fetch_all(&mut **tx).await {
            Err(error) if error.as_database_error().is_some_and(|error| error.code().as_deref() == Some("57014")) => {}
            read => return read,
        }
        sqlx::raw_sql("rollback to savepoint walk").execute(&mut **tx).await?;
        limit(tx, &[Limit::Statement(Some(deadline))]).await?;
        match &mut plan.shop {
            None => plan.sorted.append(&mut plan.in_order),
            Some((shop, parts)) => {
                if let Some(keys) = few_of_shop(tx, request.account, *shop, Part::Associated).await? {
                    plan.few.extend(keys);
                    parts.retain(|part| *part != Part::Associated);
                    plan.sorted.clone_from(&plan.in_order);
                }
            }
        }
    }
    // The statement is planned for its values: a rare label wants its index, a frequent one does not.
    let mut query = page_query("", request, &plan, position);
    query.build_query_as().persistent(false).fetch_all(&mut **tx).await
}

/// How a page is best read, and the filter as it is then put to the database.
async fn plan(tx: &mut Tx, request: &ListRequest<'_>) -> Result<(AssignmentFilter, Plan), sqlx::Error> {
    let ListRequest { account, taxonomy, .. } = *request;
    let mut filter = request.filter.clone();
    let statuses = filter.selected();
    let mut plan = Plan::default();
    if let Some(shop) = filter.shop.filter(|_| filter.product_keys.is_none() && filter.product_ids.is_none()) {
        filter.shop = None;
        plan.may_be_sorted = true;
        let few = few_of_shop(tx, account, shop, Part::Local).await?;
        let parts = if few.is_some() { vec![Part::Associated] } else { vec![Part::Associated, Part::Local] };
        plan.few = few.unwrap_or_default();
        plan.shop = Some((shop, parts));
    }
    if filter.product_ids.is_some() || filter.product_keys.is_some() {
        plan.sorted = statuses;
    } else if plan.shop.is_none() && filter.is_sureness() && matches!(request.order, AssignmentOrder::Impact) {
        // What is at stake hangs together with how sure a class is: past what is surer or less sure the way is long.
        plan.by_hundredths = true;
        plan.in_order = statuses;
    } else if filter.is_open()
        || filter.is_rare()
        || request.order.is_of(&filter)
        || plan.shop.is_some()
        || !is_kept(&filter)
    {
        // What is unassigned has no class, which the database would find out one by one.
        let may_be = |status: &Status| filter.class_prefix.is_none() || *status != Status::Unassigned;
        plan.in_order = statuses.into_iter().filter(may_be).collect();
        if !plan.few.is_empty() {
            plan.sorted.clone_from(&plan.in_order);
        }
    } else {
        let labelled = !filter.with_labels.is_empty();
        // The index that tells who carries a label knows no status: each part of it costs what all of it does.
        let counted =
            if labelled { AssignmentFilter { statuses: Vec::new(), ..filter.clone() } } else { filter.clone() };
        let selected = by_status(tx, account, taxonomy, &whole(&counted)).await?;
        let all: i64 = selected.values().sum();
        // What lies at the ends of a range of confidence is little, and was not counted.
        let may_be = |status: &Status| selected.contains_key(status.name()) || filter.is_sureness();
        let statuses: Vec<Status> = statuses.into_iter().filter(may_be).collect();
        if labelled {
            *(if all <= FEW { &mut plan.sorted } else { &mut plan.in_order }) = statuses;
            if !plan.in_order.is_empty() {
                plan.walked_labels = std::mem::take(&mut filter.with_labels);
            }
        } else if !statuses.is_empty() {
            let open = AssignmentFilter { statuses: filter.statuses.clone(), ..AssignmentFilter::default() };
            let there = by_status(tx, account, taxonomy, &open).await?;
            let count = |counts: &HashMap<String, i64>, status| counts.get(status).copied().unwrap_or_default();
            let counts = |status: Status| Counts {
                status,
                selected: count(&selected, status.name()),
                there: count(&there, status.name()),
            };
            let counts: Vec<Counts> = statuses.into_iter().map(counts).collect();
            let by_index_alone = filter.is_class() || filter.is_sureness();
            (plan.sorted, plan.in_order) = choice::sorted_and_in_order(&counts, request.size, by_index_alone);
            plan.may_be_sorted = by_index_alone && !plan.in_order.is_empty() && all <= FEW_BY_INDEX;
        }
    }
    Ok((filter, plan))
}

/// The filter whose counts are kept and tell how many this one selects, or nearly: whole days, and of a range of confidence
/// the hundredths of which it covers more than a little.
fn whole(filter: &AssignmentFilter) -> AssignmentFilter {
    let rounded = rounded(filter);
    if !filter.is_sureness() {
        return rounded;
    }
    let (wide, _) = wide_hundredths(filter.confidence_from, filter.confidence_to);
    let [from, end] = [wide.start, wide.end].map(|hundredth| f64::from(hundredth) / f64::from(HUNDREDTHS));
    AssignmentFilter { confidence_from: Some(from), confidence_to: Some(end - LAST_DECIMAL), ..rounded }
}

/// How many assignments of each status a filter selects, by the name of the status, as the counts that are kept tell.
async fn by_status(
    tx: &mut Tx,
    account: i64,
    taxonomy: Taxonomy,
    filter: &AssignmentFilter,
) -> Result<HashMap<String, i64>, sqlx::Error> {
    let mut query = count_query("", account, taxonomy, filter, &[CountBy::Status]);
    let rows: Vec<(Option<String>, Option<String>, i64)> =
        query.build_query_as().persistent(false).fetch_all(&mut **tx).await?;
    Ok(rows.into_iter().filter_map(|(status, _, count)| Some((status?, count))).collect())
}

/// The keys of a shop's own products, or of those associated with it, where they are few.
async fn few_of_shop(tx: &mut Tx, account: i64, shop: ShopId, part: Part) -> Result<Option<Vec<i64>>, sqlx::Error> {
    if part == Part::Local {
        // The index alone tells that they are many; their keys stand in the table.
        let there: i64 = sqlx::query_scalar(
            "select count(*) from (select from products where account_id = $1 and shop_id = $2 limit $3) as there",
        )
        .bind(account)
        .bind(shop.stored())
        .bind(FEW + 1)
        .fetch_one(&mut **tx)
        .await?;
        if there > FEW {
            return Ok(None);
        }
    }
    let statement = match part {
        Part::Local => "select product_key from products where account_id = $1 and shop_id = $2 limit $3",
        Part::Associated => {
            "select product_key from products
             where account_id = $1 and shop_id = 0 and shop_ids <> '{}' and shop_ids @> array[$2]::bigint[] limit $3"
        }
    };
    let query = sqlx::query_scalar(statement).bind(account).bind(shop.stored()).bind(FEW + 1);
    let keys: Vec<i64> = query.fetch_all(&mut **tx).await?;
    Ok((keys.len() as i64 <= FEW).then_some(keys))
}

/// Why a selection has no answer.
#[derive(Debug, thiserror::Error)]
pub enum SelectionError {
    /// It failed, or took too long.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// Something stands against it.
    #[error(transparent)]
    Store(#[from] StoreError),
}
