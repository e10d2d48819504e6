//! Queries that answer within a deadline or not at all.

use std::time::Duration;

use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::QueryAs;
use sqlx::{FromRow, Postgres};

use crate::store::Store;

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
    /// Runs a query of a search. It is planned for its values: a rare part of a word wants the index, a frequent one
    /// does not.
    pub(crate) async fn search_within<T>(
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
}

/// Tells a search that is too long or too complex from a failure.
pub(super) fn refused(error: sqlx::Error) -> FilterError {
    let code = error.as_database_error().and_then(|error| error.code());
    // query_canceled; invalid_regular_expression (it is too complex), statement_too_complex; out_of_memory.
    match code.as_deref() {
        Some("57014" | "2201B" | "54001" | "53200") => FilterError::TooSlow,
        _ => FilterError::Database(error),
    }
}
