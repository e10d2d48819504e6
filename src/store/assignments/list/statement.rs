//! The statement that reads a page of assignments, by the plan that was made for it.

use sqlx::{Postgres, QueryBuilder};

use super::{AssignmentKey, AssignmentOrder, ListRequest};
use crate::domain::ShopId;
use crate::domain::assignment::Status;
use crate::store::assignments::COLUMNS;
use crate::store::assignments::filter::push_status_names;
use crate::store::assignments::sureness::{push_hundredths, wide_hundredths};
use crate::store::journal::stored_taxonomy;
use crate::store::pages::Position;

/// Under which name what orders a page is handed on.
const ORDERED_BY: &str = "ordered_by";

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
    /// What orders the page, as the parts name it; nothing where product ids do.
    fn name(&self) -> Option<&'static str> {
        self.order.key().map(|_| ORDERED_BY)
    }

    /// The name under which parts hand on what orders them: rows that come in order from each are then merged as far as the
    /// page reaches, where an expression over all of them would have each read to its limit.
    fn handed_on(&self) -> String {
        self.order.key().map(|key| format!(", {key} as {ORDERED_BY}")).unwrap_or_default()
    }

    /// Backwards for a position before a key.
    fn is_down(&self) -> bool {
        self.order.descending() != matches!(self.position, Position::Before(_))
    }

    /// Appends the order, by what orders it as an expression or under its name.
    fn push_order(&self, query: &mut QueryBuilder<Postgres>, key: Option<&str>) {
        let direction = if self.is_down() { " desc" } else { "" };
        query.push(" order by ");
        if let Some(key) = key {
            query.push(format!("{key}{direction}, "));
        }
        query.push(format!("product_id{direction}, shop_id{direction} limit ")).push_bind(self.rows);
    }

    /// Appends where the page begins, and its order, by what orders it as an expression.
    fn push(&self, query: &mut QueryBuilder<Postgres>) {
        self.push_by(query, self.order.key());
    }

    /// The same by that name.
    fn push_by_name(&self, query: &mut QueryBuilder<Postgres>) {
        self.push_by(query, self.name());
    }

    fn push_by(&self, query: &mut QueryBuilder<Postgres>, key: Option<&str>) {
        if let Position::After((value, product_id, shop_id)) | Position::Before((value, product_id, shop_id)) =
            self.position
        {
            query.push(" and (");
            if let Some(key) = key {
                query.push(key).push(", ");
            }
            query.push("product_id, shop_id) ").push(if self.is_down() { "<" } else { ">" }).push(" (");
            if key.is_some() {
                self.order.bind(query, *value);
                query.push(", ");
            }
            query.push_bind(product_id.clone()).push(", ").push_bind(*shop_id).push(")");
        }
        self.push_order(query, key);
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
    let selected = format!("select {COLUMNS}{} from assignments where ", end.handed_on());
    let mut query = QueryBuilder::new(prefix);
    query.push("select ").push(COLUMNS).push(" from (");
    let parts: Vec<Option<(ShopId, Part)>> = match &plan.shop {
        Some((shop, parts)) => parts.iter().map(|part| Some((*shop, *part))).collect(),
        None => vec![None],
    };
    let mut branches = 0;
    let mut branch = |query: &mut QueryBuilder<Postgres>| {
        query.push(if branches == 0 { "(" } else { " union all (" }).push(&selected);
        branches += 1;
    };
    if plan.by_hundredths {
        branch(&mut query);
        push_merged_hundredths(&mut query, request, &plan.in_order, &end);
        query.push(")");
    } else {
        let in_order = plan.in_order.iter().flat_map(|status| parts.iter().map(move |part| (status, *part)));
        for (status, part) in in_order {
            branch(&mut query);
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
            query.push(")");
        }
    }
    if !plan.sorted.is_empty() {
        branch(&mut query);
        query.push("taxonomy = ").push_bind(stored_taxonomy(taxonomy));
        query.push(" and product_key in (select product_key from (");
        let places = |query: &mut QueryBuilder<Postgres>| {
            query
                .push("select product_key, product_id, shop_id")
                .push(end.handed_on())
                .push(" from assignments where ");
            filter.push(query, account, taxonomy);
            if plan.shop.is_some() {
                query.push(" and product_key = any(").push_bind(plan.few.clone()).push(")");
            }
            push_status_names(query, &plan.sorted);
        };
        places(&mut query);
        if filter.is_sureness() {
            // The index of hundredths holds all that is sorted, but for what lies at the ends of the range.
            let (hundredths, narrow) = wide_hundredths(filter.confidence_from, filter.confidence_to);
            push_hundredths(&mut query, hundredths);
            for (from, below) in narrow {
                query.push(" union all ");
                places(&mut query);
                push_between(&mut query, from, below);
            }
        }
        // What is selected is read by an index of its own and not in the order of the page.
        query.push(" offset 0) as few where true");
        end.push_by_name(&mut query);
        query.push("))");
    }
    query.push(") as merged");
    end.push_order(&mut query, end.name());
    query
}

/// Appends that a confidence lies from one number to below another.
fn push_between(query: &mut QueryBuilder<Postgres>, from: f32, below: f32) {
    query.push(" and confidence is not null and coalesce(confidence, -1) >= ").push_bind(from);
    query.push(" and coalesce(confidence, -1) < ").push_bind(below);
}

/// Appends which come first: the first of each hundredth of confidence in each status, which an index tells in order, and of
/// the narrow ends of the range, which are sorted; all of them merged.
fn push_merged_hundredths(
    query: &mut QueryBuilder<Postgres>,
    request: &ListRequest<'_>,
    statuses: &[Status],
    end: &End<'_>,
) {
    let ListRequest { account, taxonomy, filter, .. } = *request;
    let (hundredths, narrow) = wide_hundredths(filter.confidence_from, filter.confidence_to);
    query
        .push("taxonomy = ")
        .push_bind(stored_taxonomy(taxonomy))
        .push(" and product_key in (select product_key from (");
    for (index, status) in statuses.iter().enumerate() {
        let firsts = |query: &mut QueryBuilder<Postgres>| {
            query.push("select product_key, impact, product_id, shop_id from assignments where ");
            filter.push(query, account, taxonomy);
            query.push(" and confidence is not null and status = ").push_bind(status.name());
        };
        query.push(if index == 0 { "select" } else { " union all select" }).push(" firsts.* from generate_series(");
        query.push_bind(i32::from(hundredths.start)).push(", ").push_bind(i32::from(hundredths.end) - 1);
        query.push(") as hundredth cross join lateral (");
        firsts(query);
        query.push(" and confidence_hundredth(confidence) = hundredth::smallint");
        end.push(query);
        query.push(") as firsts");
        for (from, below) in &narrow {
            query.push(" union all (");
            firsts(query);
            push_between(query, *from, *below);
            end.push(query);
            query.push(")");
        }
    }
    query.push(") as best where true");
    end.push(query);
    query.push(")");
}
