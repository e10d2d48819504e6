//! Answers filterCriteria from `search_documents`.

use std::time::{Duration, Instant};

use sqlx::{Postgres as Database, QueryBuilder};

use crate::search::postgres::{Postgres, lower};
use crate::search::{Search, SearchError};
use crate::store::deadline::{FilterError, Plan};
use crate::store::pages::{Page, Position};
use crate::store::products::Found;

/// How a page is looked for, and for how long in that way before the next is tried. How many products hold a part of a word
/// is hardly known beforehand: of ten million, plans that go by the index of parts took seconds where the first fifty stood
/// among the first thousands of ids, and the other way round. What is quick as planned loses nothing.
const WAYS: [(Duration, Plan); 3] = [
    (Duration::from_millis(400), Plan::Supposed),
    (Duration::from_millis(250), Plan::InOrder),
    (Duration::MAX, Plan::Supposed),
];

impl Postgres {
    /// A page of products that satisfy criteria, in the order of their ids.
    ///
    /// # Errors
    /// [`SearchError::TooSlow`] after the deadline, and while the projection is built [`SearchError::Unavailable`].
    pub(in crate::search) async fn page(&self, search: &Search<'_>) -> Result<Page<Found>, SearchError> {
        self.require_ready().await?;
        let until = Instant::now() + search.deadline;
        for (limit, plan) in WAYS {
            let left = until.saturating_duration_since(Instant::now());
            let found: Result<Vec<Found>, _> =
                self.store.search_within(left, limit.min(left), plan, page_query(search)).await;
            match found {
                Err(FilterError::TooSlow) if limit < left => {}
                found => return Ok(Page::from_rows(found?, search.size, search.position)),
            }
        }
        Err(SearchError::TooSlow)
    }

    /// How many products satisfy criteria, on all pages.
    ///
    /// # Errors
    /// As [`Postgres::page`].
    pub(in crate::search) async fn count(&self, search: &Search<'_>) -> Result<i64, SearchError> {
        self.require_ready().await?;
        let mut query = QueryBuilder::new("select count(*) from search_documents where account_id = ");
        push_conditions(&mut query, search);
        let deadline = search.deadline;
        let counted: Vec<(i64,)> = self.store.search_within(deadline, deadline, Plan::Supposed, query).await?;
        Ok(counted.first().map_or(0, |row| row.0))
    }
}

/// The products of a page, and one more.
fn page_query(search: &Search<'_>) -> QueryBuilder<Database> {
    let mut query = QueryBuilder::new("select product_key, product_id from search_documents where account_id = ");
    push_conditions(&mut query, search);
    match search.position {
        Position::Start => query.push(" order by product_id"),
        Position::After(id) => query.push(" and product_id > ").push_bind(id.clone()).push(" order by product_id"),
        Position::Before(id) => {
            query.push(" and product_id < ").push_bind(id.clone()).push(" order by product_id desc")
        }
    };
    query.push(" limit ").push_bind(search.size as i64 + 1);
    query
}

/// Everything that a product has to be, after its account.
fn push_conditions(query: &mut QueryBuilder<Database>, search: &Search<'_>) {
    query.push_bind(search.account).push(" and shop_id = ").push_bind(search.shop);
    if let Some(ids) = search.product_ids {
        query.push(" and product_id = any(").push_bind(ids.to_vec()).push(")");
    }
    if let Some(shops) = search.shop_ids {
        query.push(" and exists (select from products where products.product_key = search_documents.product_key");
        query.push(" and products.shop_ids && ").push_bind(shops.to_vec()).push(")");
    }
    query.push(" and ");
    lower::push_condition(query, &search.criteria.expression());
}
