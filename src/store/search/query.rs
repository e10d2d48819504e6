//! Answers filterCriteria from `search_documents`.

use std::time::Duration;

use sqlx::QueryBuilder;

use crate::domain::filter::Criteria;
use crate::store::Store;
use crate::store::pages::{Page, Position};
use crate::store::search::lower;

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
    /// Keys of a page of products that satisfy criteria, in the order of their ids.
    ///
    /// # Errors
    /// [`FilterError::TooSlow`] after the deadline.
    #[allow(clippy::too_many_arguments)]
    pub async fn filter_products(
        &self,
        account: i64,
        shop: i64,
        criteria: &Criteria,
        product_ids: Option<&[String]>,
        position: &Position<String>,
        size: usize,
        deadline: Duration,
    ) -> Result<Page<i64>, FilterError> {
        let mut query = QueryBuilder::new("select product_key from search_documents where account_id = ");
        query.push_bind(account).push(" and shop_id = ").push_bind(shop);
        if let Some(ids) = product_ids {
            query.push(" and product_id = any(").push_bind(ids.to_vec()).push(")");
        }
        query.push(" and ");
        lower::push_condition(&mut query, &criteria.expression());
        match position {
            Position::Start => query.push(" order by product_id"),
            Position::After(id) => query.push(" and product_id > ").push_bind(id.clone()).push(" order by product_id"),
            Position::Before(id) => {
                query.push(" and product_id < ").push_bind(id.clone()).push(" order by product_id desc")
            }
        };
        query.push(" limit ").push_bind(size as i64 + 1);

        let search = async {
            let mut tx = self.pool().begin().await?;
            // Compiling a query of many conditions takes longer than running it.
            sqlx::query("select set_config('statement_timeout', $1, true), set_config('jit', 'off', true)")
                .bind(deadline.as_millis().max(1).to_string())
                .execute(&mut *tx)
                .await?;
            // The statement is planned for its values: a rare part of a word wants the index, a frequent one does not.
            let keys: Vec<i64> = query.build_query_scalar().persistent(false).fetch_all(&mut *tx).await?;
            tx.rollback().await?;
            Ok(Page::from_rows(keys, size, position))
        };
        match tokio::time::timeout(deadline, search).await {
            Ok(result) => result.map_err(refused),
            Err(_) => Err(FilterError::TooSlow),
        }
    }
}

/// Tells a search that is too long or too complex from a failure.
fn refused(error: sqlx::Error) -> FilterError {
    let code = error.as_database_error().and_then(|error| error.code());
    // query_canceled; invalid_regular_expression (it is too complex), statement_too_complex; out_of_memory.
    match code.as_deref() {
        Some("57014" | "2201B" | "54001" | "53200") => FilterError::TooSlow,
        _ => FilterError::Database(error),
    }
}
