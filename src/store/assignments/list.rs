//! Which assignments a list shows, in which order, page by page.
//!
//! Every order is kept by status in an index. A list of several statuses therefore reads the beginning of each and merges
//! them: whatever is selected, a page costs what a page holds. Where a filter selects few, reading in order would go past
//! nearly everything: the counts that are kept tell, the places of those few are read and sorted, and what the page shows
//! is fetched.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::{Postgres, QueryBuilder};

use crate::domain::assignment::Status;
use crate::domain::{ShopId, Taxonomy};
use crate::store::assignments::embed::{Embedded, fitting, weights};
use crate::store::assignments::filter::{AssignmentFilter, push_status_names};
use crate::store::assignments::kept::{count_query, is_kept, rounded};
use crate::store::assignments::sureness::hundredths;
use crate::store::assignments::{AssignmentRecord, COLUMNS, CountBy};
use crate::store::journal::stored_taxonomy;
use crate::store::pages::{Page, Position};
use crate::store::search::{FilterError, refused};
use crate::store::{Store, StoreError, Tx};

/// Most assignments of a status whose places are read and sorted for a page.
const FEW: i64 = 5_000;
/// The same of a class, whose index tells their places in a microsecond each. Reading in order may go past nearly everything
/// for what is commoner than that, too: when the rules of a class change, all its assignments change at one time.
const FEW_OF_CLASS: i64 = 100_000;

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

/// How a page is read.
#[derive(Clone, Debug, Default)]
struct Plan {
    /// Statuses of which each is read in order until the page is full.
    in_order: Vec<Status>,
    /// Statuses of which all that the filter selects is read and sorted.
    sorted: Vec<Status>,
    /// Whether what is read in order is read in each hundredth of confidence, and merged.
    by_hundredths: bool,
    /// The shop whose assignments are told one by one while reading in order, since it has many.
    shop: Option<ShopId>,
}

impl Plan {
    /// Whether nothing is selected.
    fn is_empty(&self) -> bool {
        self.in_order.is_empty() && self.sorted.is_empty()
    }
}

/// What ends the parts of a statement of a page: where it begins, in which order, and how many rows.
struct End<'a> {
    order: AssignmentOrder,
    position: &'a Position<AssignmentKey>,
    /// One more than the page holds, which tells whether there is another.
    rows: i64,
}

impl End<'_> {
    /// Backwards for a position before a key.
    fn is_down(&self) -> bool {
        self.order.descending() != matches!(self.position, Position::Before(_))
    }

    fn push_order(&self, query: &mut QueryBuilder<Postgres>) {
        let direction = if self.is_down() { " desc" } else { "" };
        query.push(" order by ");
        if let Some(key) = self.order.key() {
            query.push(format!("{key}{direction}, "));
        }
        query.push(format!("product_id{direction}, shop_id{direction} limit ")).push_bind(self.rows);
    }

    fn push(&self, query: &mut QueryBuilder<Postgres>) {
        if let Position::After((value, product_id, shop_id)) | Position::Before((value, product_id, shop_id)) =
            self.position
        {
            query.push(" and (");
            if let Some(key) = self.order.key() {
                query.push(key).push(", ");
            }
            query.push("product_id, shop_id) ").push(if self.is_down() { "<" } else { ">" }).push(" (");
            if self.order.key().is_some() {
                self.order.bind(query, *value);
                query.push(", ");
            }
            query.push_bind(product_id.clone()).push(", ").push_bind(*shop_id).push(")");
        }
        self.push_order(query);
    }
}

/// The statement of a page: one more row than the page holds, backwards for a position before a key.
fn page_query(
    prefix: &'static str,
    request: &ListRequest<'_>,
    plan: &Plan,
    position: &Position<AssignmentKey>,
) -> QueryBuilder<Postgres> {
    let ListRequest { account, taxonomy, filter, order, size } = *request;
    let end = End { order, position, rows: size as i64 + 1 };
    let mut query = QueryBuilder::new(prefix);
    query.push("select ").push(COLUMNS).push(" from (");
    for (index, status) in plan.in_order.iter().enumerate() {
        query.push(if index == 0 { "(" } else { " union all (" });
        if plan.by_hundredths {
            push_merged_hundredths(&mut query, request, *status, &end);
        } else {
            query.push("select ").push(COLUMNS).push(" from assignments where ");
            filter.push(&mut query, account, taxonomy);
            if let Some(shop) = plan.shop {
                query.push(" and (shop_id = ").push_bind(shop.stored());
                query.push(" or shop_id = 0 and (select shop_ids @> array[").push_bind(shop.stored());
                query.push("]::bigint[] from products where products.product_key = assignments.product_key))");
            }
            query.push(" and status = ").push_bind(status.name());
            end.push(&mut query);
        }
        query.push(")");
    }
    if !plan.sorted.is_empty() {
        query.push(if plan.in_order.is_empty() { "(" } else { " union all (" });
        query.push("with few as materialized (select product_key, product_id, shop_id, confidence, updated_at, impact");
        query.push(" from assignments where ");
        filter.push(&mut query, account, taxonomy);
        push_status_names(&mut query, &plan.sorted);
        query.push("), shown as materialized (select product_key from few where true");
        end.push(&mut query);
        query.push(") select ").push(COLUMNS).push(" from assignments where taxonomy = ");
        query.push_bind(stored_taxonomy(taxonomy)).push(" and product_key in (select product_key from shown))");
    }
    query.push(") as merged");
    end.push_order(&mut query);
    query
}

/// Appends the first of a status: the first of each hundredth of confidence, which an index tells in order, merged.
fn push_merged_hundredths(
    query: &mut QueryBuilder<Postgres>,
    request: &ListRequest<'_>,
    status: Status,
    end: &End<'_>,
) {
    let ListRequest { account, taxonomy, filter, .. } = *request;
    let hundredths = hundredths(filter.confidence_from, filter.confidence_to);
    query.push("select ").push(COLUMNS).push(" from assignments where taxonomy = ");
    query.push_bind(stored_taxonomy(taxonomy));
    query.push(" and product_key in (select product_key from (select firsts.* from generate_series(");
    query.push_bind(i32::from(*hundredths.start())).push(", ").push_bind(i32::from(*hundredths.end()));
    query.push(") as hundredth cross join lateral (select product_key, impact, product_id, shop_id from assignments");
    query.push(" where confidence is not null and confidence_hundredth(confidence) = hundredth::smallint and ");
    filter.push(query, account, taxonomy);
    query.push(" and status = ").push_bind(status.name());
    end.push(query);
    query.push(") as firsts) as best where true");
    end.push(query);
    query.push(")");
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
        let mut tx = self.begin_within(deadline).await?;
        let (filter, plan) = plan(&mut tx, request).await.map_err(refused)?;
        let mut rows: Vec<AssignmentRecord> = if plan.is_empty() {
            Vec::new()
        } else {
            let request = ListRequest { filter: &filter, ..*request };
            let mut query = page_query("", &request, &plan, position);
            // The statement is planned for its values: a rare label wants its index, a frequent one does not.
            query.build_query_as().persistent(false).fetch_all(&mut *tx).await.map_err(refused)?
        };
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

    /// A transaction whose statements may run for this long.
    pub(super) async fn begin_within(&self, deadline: Duration) -> Result<Tx, StoreError> {
        let mut tx = self.begin().await?;
        // Compiling such a query takes longer than running it.
        sqlx::query("select set_config('statement_timeout', $1, true), set_config('jit', 'off', true)")
            .bind(deadline.as_millis().max(1).to_string())
            .execute(&mut *tx)
            .await?;
        Ok(tx)
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

/// How a page is best read, and the filter as it is then put to the database.
async fn plan(tx: &mut Tx, request: &ListRequest<'_>) -> Result<(AssignmentFilter, Plan), sqlx::Error> {
    let ListRequest { account, taxonomy, .. } = *request;
    let mut filter = request.filter.clone();
    let statuses = filter.selected();
    let mut plan = Plan::default();
    if let Some(shop) = filter.shop.filter(|_| filter.product_keys.is_none() && filter.product_ids.is_none()) {
        filter.shop = None;
        match few_of_shop(tx, account, shop).await? {
            Some(keys) => filter.product_keys = Some(keys),
            None => plan.shop = Some(shop),
        }
    }
    if filter.product_ids.is_some() || filter.product_keys.is_some() {
        plan.sorted = statuses;
    } else if filter.is_sureness() && matches!(request.order, AssignmentOrder::Impact) {
        // What is at stake hangs together with how sure a class is: past what is surer or less sure the way is long.
        plan.by_hundredths = true;
        plan.in_order = statuses;
    } else if filter.is_open() || filter.is_rare() || plan.shop.is_some() || !is_kept(&filter) {
        // What is unassigned has no class, which the database would find out one by one.
        let may_be = |status: &Status| filter.class_prefix.is_none() || *status != Status::Unassigned;
        plan.in_order = statuses.into_iter().filter(may_be).collect();
    } else {
        let labelled = !filter.with_labels.is_empty();
        // The index that tells who carries a label knows no status: each part of it costs what all of it does.
        let counted =
            if labelled { AssignmentFilter { statuses: Vec::new(), ..filter.clone() } } else { filter.clone() };
        let mut query = count_query("", account, taxonomy, &rounded(&counted), &[CountBy::Status]);
        let rows: Vec<(Option<String>, Option<String>, i64)> =
            query.build_query_as().persistent(false).fetch_all(&mut **tx).await?;
        let few = if filter.is_class() { FEW_OF_CLASS } else { FEW };
        let all: i64 = rows.iter().map(|row| row.2).sum();
        let count = |status: &Status| {
            let of_status = rows.iter().find(|row| row.0.as_deref() == Some(status.name())).map(|row| row.2);
            of_status.map(|of_status| if labelled { all } else { of_status })
        };
        for status in statuses {
            match count(&status) {
                None => {}
                Some(count) if count <= few => plan.sorted.push(status),
                Some(_) => plan.in_order.push(status),
            }
        }
    }
    Ok((filter, plan))
}

/// The keys of a shop's products, where they are few.
async fn few_of_shop(tx: &mut Tx, account: i64, shop: ShopId) -> Result<Option<Vec<i64>>, sqlx::Error> {
    let keys: Vec<i64> = sqlx::query_scalar(
        "(select product_key from products where account_id = $1 and shop_id = $2 limit $3)
         union all
         (select product_key from products
          where account_id = $1 and shop_id = 0 and shop_ids <> '{}' and shop_ids @> array[$2]::bigint[] limit $3)",
    )
    .bind(account)
    .bind(shop.stored())
    .bind(FEW + 1)
    .fetch_all(&mut **tx)
    .await?;
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
