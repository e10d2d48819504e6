//! Queries that answer within a deadline or not at all.

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::PgRow;
use sqlx::{FromRow, Postgres, QueryBuilder};

use crate::store::Store;
use crate::store::limits::Limit;

/// Memory in which a search remembers the places of what an index has found, in kilobytes. With the usual four megabytes it
/// remembers pages beyond some ten thousand, and reads all that lies on them.
const MEMORY_KB: u32 = 32 << 10;

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

/// How the database goes about a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// As it supposes to be fastest.
    Supposed,
    /// Row by row in the order asked for, until there are enough.
    InOrder,
}

impl Store {
    /// Runs a query of a search, whose statement may take as long as the limit says. It is planned for its values: a rare
    /// part of a word wants the index, a frequent one does not. At most half of the connections search, those among them whose asker has gone or was told that it takes too
    /// long: the database goes on until the statement's own limit.
    pub(crate) async fn search_within<T>(
        &self,
        deadline: Duration,
        limit: Duration,
        plan: Plan,
        mut query: QueryBuilder<Postgres>,
    ) -> Result<Vec<T>, FilterError>
    where
        T: for<'r> FromRow<'r, PgRow> + Send + Unpin + 'static,
    {
        let found = async {
            let place = Arc::clone(&self.searching).acquire_owned().await.map_err(|_| sqlx::Error::PoolClosed)?;
            let store = self.clone();
            // A task goes on without who waits for it, so that the connection is given back in order, and the place with it.
            let search = async move {
                let mut limits = vec![Limit::Statement(Some(limit)), Limit::NotCompiled, Limit::Memory(MEMORY_KB)];
                limits.extend((plan == Plan::InOrder).then_some(Limit::InOrder));
                let mut tx = store.begin_limited(&limits).await?;
                let found = query.build_query_as().persistent(false).fetch_all(&mut *tx).await;
                tx.rollback().await?;
                drop(place);
                found
            };
            tokio::spawn(search).await.unwrap_or(Err(sqlx::Error::WorkerCrashed))
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
