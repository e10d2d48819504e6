//! Whether the database answers, asked on a connection of its own, which a busy pool does not keep waiting.

use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection};

use crate::store::Store;

/// PostgreSQL's code for "too many connections": it answers, but not to one more.
const TOO_MANY_CONNECTIONS: &str = "53300";

/// Asks the database for a sign of life.
#[derive(Debug)]
pub struct Pulse {
    options: PgConnectOptions,
    connection: Option<PgConnection>,
}

impl Pulse {
    /// For the database of a store.
    pub fn of(store: &Store) -> Pulse {
        Pulse { options: (*store.pool().connect_options()).clone(), connection: None }
    }

    /// Whether the database answers within `longest`. A connection that fails is replaced at once: that one backend has
    /// ended does not mean that the database is away.
    pub async fn beats(&mut self, longest: Duration) -> bool {
        match tokio::time::timeout(longest, self.ask()).await {
            Ok(Ok(())) => true,
            Ok(Err(sqlx::Error::Database(error))) if error.code().as_deref() == Some(TOO_MANY_CONNECTIONS) => true,
            Ok(Err(error)) => {
                tracing::debug!(%error, "the database gives no sign of life");
                false
            }
            Err(_) => false,
        }
    }

    async fn ask(&mut self) -> Result<(), sqlx::Error> {
        // Taken out, so that a connection on which an answer is still due is dropped with this future.
        if let Some(mut connection) = self.connection.take()
            && connection.ping().await.is_ok()
        {
            self.connection = Some(connection);
            return Ok(());
        }
        let mut connection = self.options.connect().await?;
        connection.ping().await?;
        self.connection = Some(connection);
        Ok(())
    }
}
