//! PostgreSQL, the only truth: this is the only room with SQL.
//!
//! A change and the rows that announce it are written in one transaction. Races are decided by row locks taken in
//! the order of keys, by versions, and by constraints.

pub mod accounts;
pub mod assignments;
pub mod attributes;
pub mod auto_queue;
pub mod changes;
pub mod journal;
pub mod labels;
pub mod pages;
pub mod pictures;
pub mod products;
pub mod quota;
pub mod search;

use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{PgPool, Postgres, Transaction};

use crate::domain::Fault;

/// Most connections that one service opens to its database.
pub const MAX_CONNECTIONS: u32 = 24;
/// How long a request waits for a connection, in seconds, before it fails.
pub const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long any statement may run; a request is over by then, and a migration sets its own limit.
pub const STATEMENT_TIMEOUT: Duration = Duration::from_secs(60);
/// How often a transaction that lost a deadlock or a race is tried again.
pub const MAX_ATTEMPTS: u32 = 5;

/// The schema's migrations, compiled in.
pub static MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate!();

/// A transaction on the database.
pub type Tx = Transaction<'static, Postgres>;

/// Why the store did not do what was asked; nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No such object in the account.
    #[error("not found")]
    NotFound(Vec<Fault>),
    /// The object has changed since the version that was sent.
    #[error("modified since the version sent")]
    Conflict {
        /// What is wrong with which item.
        faults: Vec<Fault>,
        /// The version now in force, where the request names a single object.
        current_version: Option<i64>,
    },
    /// Well-formed and wrong.
    #[error("cannot be processed")]
    Unprocessable(Vec<Fault>),
    /// The plan's limit of checks would be passed.
    #[error("the limit of {limit} checks a month would be passed: {used} are used, {asked} were asked for")]
    LimitExceeded {
        /// Checks allowed in the month.
        limit: i64,
        /// Checks used in it.
        used: i64,
        /// Checks that the request needs.
        asked: i64,
    },
    /// The database failed.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

impl StoreError {
    /// A single object that does not exist.
    pub fn not_found(fault: Fault) -> StoreError {
        StoreError::NotFound(vec![fault])
    }

    /// Whether the same transaction may well succeed when it is run again: a deadlock or a lost race.
    fn is_transient(&self) -> bool {
        let StoreError::Database(sqlx::Error::Database(error)) = self else { return false };
        // PostgreSQL's error codes: serialization_failure, deadlock_detected, unique_violation.
        matches!(error.code().as_deref(), Some("40001" | "40P01" | "23505"))
    }
}

/// A pool of connections to the database.
#[derive(Clone, Debug)]
pub struct Store {
    pool: PgPool,
}

impl Store {
    /// Connects, without looking at the schema.
    ///
    /// # Errors
    /// When the URL is malformed or no connection can be made.
    pub async fn connect(url: &str) -> Result<Store, sqlx::Error> {
        let timeout = STATEMENT_TIMEOUT.as_millis().to_string();
        let options: PgConnectOptions = url.parse()?;
        let options = options
            .application_name("vat-classification")
            .options([("statement_timeout", timeout.as_str()), ("timezone", "UTC")]);
        let pool = PgPoolOptions::new()
            .max_connections(MAX_CONNECTIONS)
            .min_connections(1)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .connect_with(options)
            .await?;
        Ok(Store { pool })
    }

    /// Brings the schema up to date; several services may do so at once.
    ///
    /// # Errors
    /// When the database has a schema that this version does not know.
    pub async fn migrate(&self) -> Result<(), sqlx::migrate::MigrateError> {
        MIGRATIONS.run(&self.pool).await?;
        journal::raise_base(&self.pool).await?;
        Ok(())
    }

    /// The pool, for the rooms beside this one that bring SQL of their own.
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// Whether the database answers.
    ///
    /// # Errors
    /// When it does not.
    pub async fn ping(&self) -> Result<(), sqlx::Error> {
        sqlx::query("select 1").execute(&self.pool).await.map(|_| ())
    }

    async fn begin(&self) -> Result<Tx, StoreError> {
        Ok(self.pool.begin().await?)
    }
}

/// Runs a transaction again when it lost a deadlock or a race, at most [`MAX_ATTEMPTS`] times in all.
async fn with_retries<T, F>(mut attempt: impl FnMut() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let mut tries = 1;
    loop {
        match attempt().await {
            Err(error) if error.is_transient() && tries < MAX_ATTEMPTS => tries += 1,
            result => return result,
        }
    }
}
