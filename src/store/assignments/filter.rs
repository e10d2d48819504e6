//! Which assignments a list, a count or an action means, and how that is said to the database.

use chrono::{DateTime, Utc};
use sqlx::{Postgres, QueryBuilder};

use crate::domain::assignment::{Status, Strategy};
use crate::domain::{ShopId, Taxonomy};
use crate::store::assignments::sureness::span;
use crate::store::journal::stored_taxonomy;

/// Which assignments are selected.
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
    pub confidence_from: Option<f64>,
    /// At most so sure, 0 to 1.
    pub confidence_to: Option<f64>,
    /// Changed then or later.
    pub updated_from: Option<DateTime<Utc>>,
    /// Changed before then.
    pub updated_before: Option<DateTime<Utc>>,
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
        if self.is_given_up() {
            query.push(" and auto_state = 'ABORTED'");
        } else if !self.auto_states.is_empty() {
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
        let (from, below) = span(self.confidence_from, self.confidence_to);
        if let Some(from) = from {
            query.push(" and coalesce(confidence, -1) >= ").push_bind(from);
        }
        if let Some(below) = below {
            query.push(" and confidence is not null and coalesce(confidence, -1) < ").push_bind(below);
        }
        if let Some(from) = self.updated_from {
            query.push(" and updated_at >= ").push_bind(from);
        }
        if let Some(before) = self.updated_before {
            query.push(" and updated_at < ").push_bind(before);
        }
    }

    /// Whether it says nothing but which statuses.
    pub fn is_open(&self) -> bool {
        let Self { product_ids, product_keys, with_labels, without_labels, shop, review_needed, .. } = self;
        let Self { strategies, auto_states, class_prefix, confidence_from, confidence_to, .. } = self;
        product_ids.is_none()
            && product_keys.is_none()
            && with_labels.is_empty()
            && without_labels.is_empty()
            && shop.is_none()
            && review_needed.is_none()
            && strategies.is_empty()
            && auto_states.is_empty()
            && class_prefix.is_none()
            && confidence_from.is_none()
            && confidence_to.is_none()
            && self.updated_from.is_none()
            && self.updated_before.is_none()
    }

    /// Whether every order of what it selects has an index: what needs a review, or what was given up, and nothing else
    /// but statuses.
    pub(super) fn is_rare(&self) -> bool {
        let review = Self { review_needed: None, ..self.clone() };
        let given_up = Self { auto_states: Vec::new(), ..self.clone() };
        self.review_needed == Some(true) && review.is_open() || self.is_given_up() && given_up.is_open()
    }

    /// Whether it asks for what was given up.
    fn is_given_up(&self) -> bool {
        matches!(self.auto_states.as_slice(), [state] if state == "ABORTED")
    }

    /// Whether it asks for a class, and nothing else but statuses: an index tells the places in every order.
    pub(super) fn is_class(&self) -> bool {
        self.class_prefix.is_some() && Self { class_prefix: None, ..self.clone() }.is_open()
    }

    /// Whether it asks for a range of confidence, and nothing else but statuses: for what is most at stake in each hundredth
    /// there is an index.
    pub(super) fn is_sureness(&self) -> bool {
        let open = Self { confidence_from: None, confidence_to: None, ..self.clone() };
        (self.confidence_from.is_some() || self.confidence_to.is_some()) && open.is_open()
    }

    /// Whether it asks for a range of times of change, and nothing else but statuses.
    pub(super) fn is_dated(&self) -> bool {
        let open = Self { updated_from: None, updated_before: None, ..self.clone() };
        (self.updated_from.is_some() || self.updated_before.is_some()) && open.is_open()
    }

    /// The statuses that are selected.
    pub(super) fn selected(&self) -> Vec<Status> {
        if self.statuses.is_empty() { Status::ALL.to_vec() } else { self.statuses.clone() }
    }

    /// Appends which of all statuses an assignment may have.
    pub(super) fn push_statuses(&self, query: &mut QueryBuilder<Postgres>) {
        push_status_names(query, &self.selected());
    }
}

/// Appends which of these statuses an assignment may have.
pub(super) fn push_status_names(query: &mut QueryBuilder<Postgres>, statuses: &[Status]) {
    let names: Vec<&str> = statuses.iter().map(|status| status.name()).collect();
    query.push(" and status = any(").push_bind(names).push(")");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_an_index_for_itself_is_known() {
        let all = AssignmentFilter::default();
        let class = AssignmentFilter { class_prefix: Some("6109".to_owned()), ..all.clone() };
        let review = AssignmentFilter { review_needed: Some(true), ..all.clone() };
        let aborted = AssignmentFilter { auto_states: vec!["ABORTED".to_owned()], ..all.clone() };
        let pending = AssignmentFilter { auto_states: vec!["PENDING".to_owned()], ..all.clone() };
        for (filter, is_rare, is_class) in [
            (all.clone(), false, false),
            (class.clone(), false, true),
            (review.clone(), true, false),
            (aborted.clone(), true, false),
            (pending, false, false),
            (AssignmentFilter { statuses: vec![Status::Denied], ..class.clone() }, false, true),
            (AssignmentFilter { statuses: vec![Status::Denied], ..review.clone() }, true, false),
            (AssignmentFilter { review_needed: Some(true), ..class.clone() }, false, false),
            (AssignmentFilter { review_needed: Some(true), ..aborted.clone() }, false, false),
            (AssignmentFilter { review_needed: Some(false), ..all.clone() }, false, false),
            (AssignmentFilter { strategies: vec![Strategy::Manual], ..review }, false, false),
            (AssignmentFilter { confidence_from: Some(0.5), ..class }, false, false),
            (AssignmentFilter { with_labels: vec!["a".to_owned()], ..aborted }, false, false),
        ] {
            assert_eq!((filter.is_rare(), filter.is_class()), (is_rare, is_class), "{filter:?}");
        }
    }

    #[test]
    fn a_range_of_confidence_alone_is_known() {
        let range = AssignmentFilter { confidence_to: Some(0.7), ..AssignmentFilter::default() };
        for (filter, is_sureness) in [
            (AssignmentFilter::default(), false),
            (range.clone(), true),
            (AssignmentFilter { confidence_from: Some(0.5), ..range.clone() }, true),
            (AssignmentFilter { statuses: vec![Status::Denied], ..range.clone() }, true),
            (AssignmentFilter { strategies: vec![Strategy::Manual], ..range.clone() }, false),
            (AssignmentFilter { class_prefix: Some("61".to_owned()), ..range }, false),
        ] {
            assert_eq!(filter.is_sureness(), is_sureness, "{filter:?}");
            let dated = AssignmentFilter { updated_from: Some(DateTime::UNIX_EPOCH), ..filter };
            assert!(!dated.is_sureness() && dated.is_dated() == dated.confidence_to.is_none(), "{dated:?}");
        }
    }
}
