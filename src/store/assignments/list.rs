//! Which assignments a list shows, in which order, page by page.
//!
//! Every order is kept by status in an index. A list of several statuses therefore reads the beginning of each and merges
//! them: whatever is selected, a page costs what a page holds.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::{Postgres, QueryBuilder};

use crate::domain::assignment::{Status, Strategy};
use crate::domain::{ShopId, Taxonomy};
use crate::store::assignments::counts::count_query;
use crate::store::assignments::{AssignmentRecord, COLUMNS, CountBy};
use crate::store::journal::stored_taxonomy;
use crate::store::pages::{Page, Position};
use crate::store::search::{FilterError, refused};
use crate::store::{Store, StoreError, Tx};

/// Half of the last decimal that answers show of a confidence, so that what is shown can be asked for.
const CONFIDENCE_TOLERANCE: f32 = 0.00005;

/// Which assignments a list shows.
#[derive(Clone, Debug, Default)]
pub struct AssignmentFilter {
    /// Any of these statuses, each once; all where there is none.
    pub statuses: Vec<Status>,
    /// Any of these products, where given.
    pub product_ids: Option<Vec<String>>,
    /// Any of the products with these keys, where given: those that a search has found.
    pub product_keys: Option<Vec<i64>>,
    /// All of these labels.
    pub with_labels: Vec<String>,
    /// None of these labels.
    pub without_labels: Vec<String>,
    /// Local products of this shop, and global ones associated with it.
    pub shop: Option<ShopId>,
    /// With this mark, where given.
    pub review_needed: Option<bool>,
    /// Any of these strategies, where there is one.
    pub strategies: Vec<Strategy>,
    /// Any of these states of auto-assignment, by name, where there is one.
    pub auto_states: Vec<String>,
    /// Only digits: the beginning of the class's code.
    pub class_prefix: Option<String>,
    /// At least so sure, 0 to 1.
    pub confidence_from: Option<f32>,
    /// At most so sure, 0 to 1.
    pub confidence_to: Option<f32>,
    /// Changed then or later.
    pub updated_from: Option<DateTime<Utc>>,
    /// Changed before then.
    pub updated_before: Option<DateTime<Utc>>,
}

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

impl AssignmentFilter {
    /// Appends what an assignment must be, statuses left out.
    pub(super) fn push(&self, query: &mut QueryBuilder<Postgres>, account: i64, taxonomy: Taxonomy) {
        query.push("account_id = ").push_bind(account);
        query.push(" and taxonomy = ").push_bind(stored_taxonomy(taxonomy));
        if let Some(ids) = &self.product_ids {
            query.push(" and product_id = any(").push_bind(ids.clone()).push(")");
        }
        if let Some(keys) = &self.product_keys {
            query.push(" and product_key = any(").push_bind(keys.clone()).push(")");
        }
        if !self.with_labels.is_empty() {
            query.push(" and labels <> '{}' and labels @> ").push_bind(self.with_labels.clone());
        }
        if !self.without_labels.is_empty() {
            query.push(" and not labels && ").push_bind(self.without_labels.clone());
        }
        if let Some(shop) = self.shop {
            query.push(" and product_key in (select product_key from products where account_id = ").push_bind(account);
            query.push(" and (shop_id = ").push_bind(shop.stored());
            query.push(" or shop_id = 0 and shop_ids <> '{}' and shop_ids @> array[").push_bind(shop.stored());
            query.push("]::bigint[]))");
        }
        match self.review_needed {
            Some(true) => {
                query.push(" and review_needed");
            }
            Some(false) => {
                query.push(" and not review_needed");
            }
            None => {}
        }
        match self.strategies.as_slice() {
            [] => {}
            // The predicate of a partial index is known by its constant.
            [Strategy::Manual] => {
                query.push(" and strategy = 'MANUAL'");
            }
            several => {
                let names: Vec<&str> = several.iter().map(|strategy| strategy.name()).collect();
                query.push(" and strategy = any(").push_bind(names).push(")");
            }
        }
        if !self.auto_states.is_empty() {
            query.push(" and auto_state = any(").push_bind(self.auto_states.clone()).push(")");
            if !self.auto_states.iter().any(|state| state == "DONE") {
                query.push(" and auto_state <> 'DONE'");
            }
        }
        if let Some(prefix) = &self.class_prefix {
            // Behind the digits of a class come more digits or a hyphen, all of them before the colon.
            query.push(" and product_class is not null and product_class collate \"C\" >= ").push_bind(prefix.clone());
            query.push(" and product_class collate \"C\" < ").push_bind(format!("{prefix}:"));
        }
        if let Some(from) = self.confidence_from {
            query.push(" and coalesce(confidence, -1) >= ").push_bind((from - CONFIDENCE_TOLERANCE).max(0.0));
        }
        if let Some(to) = self.confidence_to {
            query.push(" and confidence is not null and coalesce(confidence, -1) < ");
            query.push_bind(to + CONFIDENCE_TOLERANCE);
        }
        if let Some(from) = self.updated_from {
            query.push(" and updated_at >= ").push_bind(from);
        }
        if let Some(before) = self.updated_before {
            query.push(" and updated_at < ").push_bind(before);
        }
    }

    /// The statuses that are selected.
    pub(super) fn selected(&self) -> Vec<Status> {
        if self.statuses.is_empty() { Status::ALL.to_vec() } else { self.statuses.clone() }
    }

    /// Appends which of all statuses an assignment may have.
    pub(super) fn push_statuses(&self, query: &mut QueryBuilder<Postgres>) {
        let names: Vec<&str> = self.selected().iter().map(|status| status.name()).collect();
        query.push(" and status = any(").push_bind(names).push(")");
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

/// The statement of a page: one more row than the page holds, backwards for a position before a key.
fn page_query(
    prefix: &'static str,
    request: &ListRequest<'_>,
    position: &Position<AssignmentKey>,
) -> QueryBuilder<Postgres> {
    let ListRequest { account, taxonomy, filter, order, size } = *request;
    let down = order.descending() != matches!(position, Position::Before(_));
    let direction = if down { " desc" } else { "" };
    let sorted = match order.key() {
        None => format!(" order by product_id{direction}, shop_id{direction}"),
        Some(key) => format!(" order by {key}{direction}, product_id{direction}, shop_id{direction}"),
    };
    let limit = size as i64 + 1;
    let push_from = |query: &mut QueryBuilder<Postgres>, status: Option<Status>| {
        query.push("select ").push(COLUMNS).push(" from assignments where ");
        filter.push(query, account, taxonomy);
        match status {
            Some(status) => {
                query.push(" and status = ").push_bind(status.name());
            }
            None => filter.push_statuses(query),
        }
        if let Position::After((value, product_id, shop_id)) | Position::Before((value, product_id, shop_id)) = position
        {
            query.push(" and (");
            if let Some(key) = order.key() {
                query.push(key).push(", ");
            }
            query.push("product_id, shop_id) ").push(if down { "<" } else { ">" }).push(" (");
            if order.key().is_some() {
                order.bind(query, *value);
                query.push(", ");
            }
            query.push_bind(product_id.clone()).push(", ").push_bind(*shop_id).push(")");
        }
        query.push(&sorted).push(" limit ").push_bind(limit);
    };
    let statuses = filter.selected();
    let named = filter.product_ids.is_some() || filter.product_keys.is_some();
    let mut query = QueryBuilder::new(prefix);
    match statuses.as_slice() {
        [status] => push_from(&mut query, Some(*status)),
        _ if named => push_from(&mut query, None),
        several => {
            query.push("select ").push(COLUMNS).push(" from (");
            for (index, status) in several.iter().enumerate() {
                query.push(if index == 0 { "(" } else { " union all (" });
                push_from(&mut query, Some(*status));
                query.push(")");
            }
            query.push(") as merged").push(&sorted).push(" limit ").push_bind(limit);
        }
    }
    query
}

impl Store {
    /// A page of assignments.
    ///
    /// # Errors
    /// Too slow after the deadline.
    pub async fn assignments(
        &self,
        request: &ListRequest<'_>,
        position: &Position<AssignmentKey>,
        deadline: Duration,
    ) -> Result<Page<AssignmentRecord>, SelectionError> {
        let mut query = page_query("", request, position);
        let mut tx = self.begin_within(deadline).await?;
        // The statement is planned for its values: a rare label wants its index, a frequent one does not.
        let rows = query.build_query_as().persistent(false).fetch_all(&mut *tx).await.map_err(refused)?;
        tx.rollback().await.map_err(StoreError::from)?;
        Ok(Page::from_rows(rows, request.size, position))
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
        let mut page = page_query("explain ", request, &Position::Start);
        let mut lines: Vec<String> = page.build_query_scalar().persistent(false).fetch_all(self.pool()).await?;
        let mut count = count_query("explain ", request.account, request.taxonomy, request.filter, by);
        lines.extend(count.build_query_scalar::<String>().persistent(false).fetch_all(self.pool()).await?);
        Ok(lines)
    }
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
