//! The statement that reads a page of assignments, by the plan that was made for it.

use sqlx::{Postgres, QueryBuilder};

use super::{AssignmentKey, AssignmentOrder, ListRequest};
use crate::domain::ShopId;
use crate::domain::assignment::Status;
use crate::store::assignments::COLUMNS;
use crate::store::assignments::filter::push_status_names;
use crate::store::assignments::sureness::hundredths;
use crate::store::journal::stored_taxonomy;
use crate::store::pages::Position;

/// How a page is read.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    /// Statuses of which each is read in order until the page is full.
    pub(super) in_order: Vec<Status>,
    /// Statuses of which all that the filter selects is read and sorted.
    pub(super) sorted: Vec<Status>,
    /// Whether what is read in order is few enough to be sorted, should the way to it be long.
    pub(super) may_be_sorted: bool,
    /// Labels of which each is carried by many, so that what carries any is read in order and not what carries these.
    pub(super) walked_labels: Vec<String>,
    /// Whether what is read in order is read in each hundredth of confidence, and merged.
    pub(super) by_hundredths: bool,
    /// The shop whose products are selected, and which of them are read in order.
    pub(super) shop: Option<(ShopId, Vec<Part>)>,
    /// The keys of its other products, which are few: they are what is sorted.
    pub(super) few: Vec<i64>,
}

impl Plan {
    /// Whether nothing is selected.
    pub(super) fn is_empty(&self) -> bool {
        self.in_order.is_empty() && self.sorted.is_empty()
    }
}

/// What of a shop is read in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Its own products: the index of every order knows the shop.
    Local,
    /// Global products that are associated with a shop: what is associated with any has an index for every order.
    Associated,
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
pub(super) fn page_query(
    prefix: &'static str,
    request: &ListRequest<'_>,
    plan: &Plan,
    position: &Position<AssignmentKey>,
) -> QueryBuilder<Postgres> {
    let ListRequest { account, taxonomy, filter, order, size } = *request;
    let end = End { order, position, rows: size as i64 + 1 };
    let mut query = QueryBuilder::new(prefix);
    query.push("select ").push(COLUMNS).push(" from (");
    let parts: Vec<Option<(ShopId, Part)>> = match &plan.shop {
        Some((shop, parts)) => parts.iter().map(|part| Some((*shop, *part))).collect(),
        None => vec![None],
    };
    let in_order = plan.in_order.iter().flat_map(|status| parts.iter().map(move |part| (status, *part)));
    for (index, (status, part)) in in_order.enumerate() {
        query.push(if index == 0 { "(" } else { " union all (" });
        if plan.by_hundredths {
            push_merged_hundredths(&mut query, request, *status, &end);
        } else {
            query.push("select ").push(COLUMNS).push(" from assignments where ");
            filter.push(&mut query, account, taxonomy);
            if !plan.walked_labels.is_empty() {
                // Said so that no index of labels is thought of, whose rows come in no order.
                query.push(" and labels <> '{}' and labels || '{}' @> ").push_bind(plan.walked_labels.clone());
            }
            match part {
                None => {}
                Some((shop, Part::Local)) => {
                    query.push(" and shop_id = ").push_bind(shop.stored());
                }
                Some((shop, Part::Associated)) => {
                    query.push(" and shop_id = 0 and shop_ids is not null and array[").push_bind(shop.stored());
                    query.push("]::bigint[] <@ shop_ids");
                }
            }
            query.push(" and status = ").push_bind(status.name());
            end.push(&mut query);
        }
        query.push(")");
    }
    if !plan.sorted.is_empty() {
        query.push(if plan.in_order.is_empty() || parts.is_empty() { "(" } else { " union all (" });
        query.push("with few as materialized (select product_key, product_id, shop_id, confidence, updated_at, impact");
        query.push(" from assignments where ");
        filter.push(&mut query, account, taxonomy);
        if plan.shop.is_some() {
            query.push(" and product_key = any(").push_bind(plan.few.clone()).push(")");
        }
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
