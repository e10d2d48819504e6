//! Answers filterCriteria from `search_documents`.

use std::time::Duration;

use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::QueryAs;
use sqlx::{FromRow, Postgres, QueryBuilder};
use sqlx_macros::FromRow;

use crate::computing;
use crate::domain::filter::Criteria;
use crate::store::details::{StoredDetails, read_all};
use crate::store::pages::{Page, Position};
use crate::store::search::lower;
use crate::store::{Store, StoreError};

/// A page that is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Search<'a> {
    /// The account whose products are searched.
    pub account: i64,
    /// The stored number of the shop, 0 for global products.
    pub shop: i64,
    /// What products have to satisfy.
    pub criteria: &'a Criteria,
    /// The ids among which they have to be; none for all.
    pub product_ids: Option<&'a [String]>,
    /// The shops with any of which they have to be associated; none for all.
    pub shop_ids: Option<&'a [i64]>,
    /// Where the page begins or ends, in the order of ids.
    pub position: &'a Position<String>,
    /// Most products of the page.
    pub size: usize,
    /// How long the search may take.
    pub deadline: Duration,
}

/// A product that a search found.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct Found {
    /// Its key.
    #[sqlx(rename = "product_key")]
    pub key: i64,
    /// Its id, from behind which a walk goes on even when the product is gone.
    pub product_id: String,
}

/// Why a search has no answer.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    /// It ran into its deadline, or is too complex for the database.
    #[error("the search took too long")]
    TooSlow,
    /// The database failed.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

impl Store {
    /// A page of products that satisfy criteria, in the order of their ids.
    ///
    /// # Errors
    /// [`FilterError::TooSlow`] after the deadline.
    pub async fn filter_products(&self, search: &Search<'_>) -> Result<Page<Found>, FilterError> {
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

        let found: Vec<Found> = self.search_within(search.deadline, query.build_query_as().persistent(false)).await?;
        Ok(Page::from_rows(found, search.size, search.position))
    }

    /// How many products satisfy criteria, on all pages.
    ///
    /// # Errors
    /// [`FilterError::TooSlow`] after the deadline.
    pub async fn count_filtered(&self, search: &Search<'_>) -> Result<i64, FilterError> {
        let mut query = QueryBuilder::new("select count(*) from search_documents where account_id = ");
        push_conditions(&mut query, search);
        let counted: Vec<(i64,)> =
            self.search_within(search.deadline, query.build_query_as().persistent(false)).await?;
        Ok(counted.first().map_or(0, |row| row.0))
    }

    /// Runs a query of a search. It is planned for its values: a rare part of a word wants the index, a frequent one
    /// does not.
    async fn search_within<T>(
        &self,
        deadline: Duration,
        query: QueryAs<'_, Postgres, T, PgArguments>,
    ) -> Result<Vec<T>, FilterError>
    where
        T: for<'r> FromRow<'r, PgRow> + Send + Unpin,
    {
        let found = async {
            let mut tx = self.begin_within(deadline).await?;
            let found = query.fetch_all(&mut *tx).await?;
            tx.rollback().await?;
            Ok(found)
        };
        match tokio::time::timeout(deadline, found).await {
            Ok(result) => result.map_err(refused),
            Err(_) => Err(FilterError::TooSlow),
        }
    }

    /// Those of these products that satisfy criteria, and are associated with any of the shops where shops are given, as
    /// they are now, in the order in which they were given.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn satisfying(
        &self,
        keys: &[i64],
        criteria: &Criteria,
        shop_ids: Option<&[i64]>,
    ) -> Result<Vec<i64>, StoreError> {
        let rows = sqlx::query(
            "select product_key, product_id, details from products
             where product_key = any($1) and ($2::bigint[] is null or shop_ids && $2)
             order by array_position($1, product_key)",
        )
        .bind(keys)
        .bind(shop_ids)
        .fetch_all(self.pool())
        .await?;
        let products: Vec<(i64, String, StoredDetails)> = read_all(rows).await?;
        let criteria = criteria.clone();
        // Off the threads that serve requests: a text may have 50,000 characters.
        let satisfying = computing::spawn(move || {
            let satisfies = |(_, id, details): &(i64, String, StoredDetails)| criteria.matches(id, &details.0);
            products.into_iter().filter(satisfies).map(|(key, ..)| key).collect()
        });
        Ok(satisfying.await.map_err(|error| sqlx::Error::Io(std::io::Error::other(error)))?)
    }
}

/// Everything that a product has to be, after its account.
fn push_conditions(query: &mut QueryBuilder<Postgres>, search: &Search<'_>) {
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

/// Tells a search that is too long or too complex from a failure.
pub(in crate::store) fn refused(error: sqlx::Error) -> FilterError {
    let code = error.as_database_error().and_then(|error| error.code());
    // query_canceled; invalid_regular_expression (it is too complex), statement_too_complex; out_of_memory.
    match code.as_deref() {
        Some("57014" | "2201B" | "54001" | "53200") => FilterError::TooSlow,
        _ => FilterError::Database(error),
    }
}
