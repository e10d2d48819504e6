//! PostgreSQL, the only truth: this is the only room with SQL.
//!
//! A change and the rows that announce it are written in one transaction. Races are decided by row locks taken in
//! the order of keys, by versions, and by constraints.

pub mod accounts;
pub mod assignments;
pub mod attributes;
pub mod auto_queue;
mod buffers;
pub mod changes;
pub mod deadline;
mod details;
mod fairness;
pub mod idempotency;
pub mod journal;
pub mod labels;
pub mod lengths;
mod limits;
pub mod memory;
pub mod moving;
pub mod operators;
pub mod pages;
pub mod parked;
pub mod pictures;
pub mod products;
pub mod pulse;
pub mod quota;
pub mod rule_changes;
pub mod search;
pub mod settings;
pub mod tx;
pub mod webhooks;

use std::sync::Arc;
use std::time::Duration;

use sqlx::{ConnectOptions, PgPool};
use tokio::sync::Semaphore;

use crate::domain::Fault;
use limits::{Limit, UNLIMITED};

pub use settings::Settings;
pub use tx::Tx;

/// How often a transaction that lost a deadlock or a race is tried again.
pub const MAX_ATTEMPTS: u32 = 5;
/// Most time before the second attempt, in milliseconds; twice as much before each further one.
const RETRY_PAUSE_MS: u64 = 5;
/// Connections that may turn out to be broken before a transaction fails.
const MAX_BROKEN_CONNECTIONS: u32 = 3;

/// How long the first connection may take: whoever starts a program waits for it.
const FIRST_CONNECTION: Duration = Duration::from_millis(1_900);

/// The number of the lock that a service holds while it migrates behind a pooler.
const MIGRATION_LOCK: i64 = 0x7661_7463_6d69_6772;

/// How long a migration waits for a lock, in milliseconds: everybody who writes waits behind it meanwhile.
const MIGRATION_LOCK_TIMEOUT_MS: u64 = 3_000;
/// How long it waits before it asks again, so that those who waited get their turn.
const MIGRATION_PAUSE: Duration = Duration::from_secs(1);
/// How often it asks: ten minutes of long transactions, or of another service that migrates.
const MIGRATION_TRIES: u32 = 150;

/// What the name of a migration begins with, behind its number, that programs of earlier versions cannot work with. All
/// others only add; `tests/tidy.rs` holds that.
const BREAKING: &str = "breaking ";

/// The schema's migrations, compiled in.
pub static MIGRATIONS: sqlx::migrate::Migrator = sqlx_macros::migrate!("./migrations");

/// Why the store did not do what was asked; nothing was changed. Only where the connection breaks while a change is committed
/// does nobody know: who asked looks, or asks again with an `Idempotency-Key`.
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
    /// The account is being moved to another database.
    #[error("the account is being moved to another database")]
    Moving,
    /// The database is away, full or too busy: the same may well succeed later.
    #[error("the database is not available: {0}")]
    Unavailable(sqlx::Error),
    /// The database failed.
    #[error(transparent)]
    Database(sqlx::Error),
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> StoreError {
        if is_unavailable(&error) { StoreError::Unavailable(error) } else { StoreError::Database(error) }
    }
}

/// Whether an error tells of the state that the database is in, and not of what was asked of it.
pub fn is_unavailable(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed => true,
        // PostgreSQL's classes: 08 connection exception, 53 insufficient resources, 57P operator intervention,
        // 58 system error, XX internal error. 57014: the statement ran into its limit. 25006: a standby that only reads.
        sqlx::Error::Database(error) => error.code().is_some_and(|code| {
            ["08", "53", "57P", "58", "XX"].iter().any(|class| code.starts_with(class))
                || matches!(code.as_ref(), "57014" | "25006" | "25P03")
        }),
        _ => false,
    }
}

/// Whether a migration was refused since it did not get a lock in time.
fn is_lock_not_had(error: &sqlx::migrate::MigrateError) -> bool {
    use sqlx::migrate::MigrateError::{Execute, ExecuteMigration};
    let (Execute(error) | ExecuteMigration(error, _)) = error else { return false };
    // PostgreSQL's lock_not_available.
    matches!(error, sqlx::Error::Database(error) if error.code().as_deref() == Some("55P03"))
}

impl StoreError {
    /// A single object that does not exist.
    pub fn not_found(fault: Fault) -> StoreError {
        StoreError::NotFound(vec![fault])
    }

    /// Whether the database refuses what a row holds (data exceptions, constraints, program limits), rather than failing.
    pub fn is_about_data(&self) -> bool {
        let StoreError::Database(sqlx::Error::Database(error)) = self else { return false };
        error.code().is_some_and(|code| ["22", "23", "54"].iter().any(|class| code.starts_with(class)))
    }

    /// Whether a statement ran into its limit of time.
    pub fn is_too_slow(&self) -> bool {
        // PostgreSQL's query_canceled.
        matches!(self, StoreError::Unavailable(sqlx::Error::Database(error)) if error.code().as_deref() == Some("57014"))
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
    /// What each transaction is limited by where sessions are shared with others, so that nothing may be kept in one.
    pooled: Option<[Limit; 2]>,
    /// Places of searches on connections.
    searching: Arc<Semaphore>,
}

impl Store {
    /// Connects with the default settings, without looking at the schema.
    ///
    /// # Errors
    /// When the URL is malformed or no connection can be made.
    pub async fn connect(url: &str) -> Result<Store, sqlx::Error> {
        Store::connect_with(url, &Settings::default()).await
    }

    /// Connects, without looking at the schema.
    ///
    /// # Errors
    /// When the URL is malformed or no connection can be made, within 2 s and with the reason.
    pub async fn connect_with(url: &str, settings: &Settings) -> Result<Store, sqlx::Error> {
        let options = settings.connect_options(url)?;
        // The pool goes on trying and then only knows that time was up.
        let late = || sqlx::Error::Io(std::io::Error::from(std::io::ErrorKind::TimedOut));
        let first = tokio::time::timeout(FIRST_CONNECTION, options.connect()).await.map_err(|_| late())??;
        sqlx::Connection::close(first).await?;
        let pool = buffers::kept_small(settings.pool_options()).connect_with(options).await?;
        let searching = Arc::new(Semaphore::new((settings.database_connections / 2).max(1) as usize));
        Ok(Store { pool, pooled: settings.limits_of_transactions(), searching })
    }

    /// Brings the schema up to date; several services may do so at once. A schema that a later version has only added to
    /// is good for this one, too, so that versions run side by side and an upgrade can be taken back.
    ///
    /// # Errors
    /// When a later version has changed the schema in a way that this one cannot work with.
    pub async fn migrate(&self) -> Result<(), sqlx::migrate::MigrateError> {
        self.require_compatible_schema().await?;
        let mut migrator = sqlx_macros::migrate!("./migrations");
        migrator.set_ignore_missing(true);
        if self.pooled.is_some() {
            // The migrator's own lock belongs to a session, and would be left with whichever connection it was given.
            let mut lock = limits::begin_to_the_end(&self.pool).await?;
            // Both the wait for it and the wait with it take as long as migrations do.
            limits::limit(&mut lock, &UNLIMITED).await?;
            sqlx::query("select pg_advisory_xact_lock($1)").bind(MIGRATION_LOCK).execute(&mut *lock).await?;
            migrator.set_locking(false);
            migrator.run(&self.pool).await?;
            lock.rollback().await?;
        } else {
            self.migrate_patiently(&migrator).await?;
        }
        Ok(self.notice_another_past().await?)
    }

    /// Migrates on a connection of its own, where a statement may take as long as a large table needs. Who works beside it
    /// waits behind a lock that is waited for: it is given up soon, and asked for again.
    async fn migrate_patiently(&self, migrator: &sqlx::migrate::Migrator) -> Result<(), sqlx::migrate::MigrateError> {
        let mut connection = self.pool.connect_options().connect().await?;
        let limits = "select set_config('statement_timeout', '0', false), set_config('lock_timeout', $1, false),
                             set_config('idle_in_transaction_session_timeout', '0', false)";
        sqlx::query(limits).bind(MIGRATION_LOCK_TIMEOUT_MS.to_string()).execute(&mut connection).await?;
        let mut tries = 1;
        let migrated = loop {
            match migrator.run(&mut connection).await {
                Err(error) if tries < MIGRATION_TRIES && is_lock_not_had(&error) => {
                    tracing::info!(%error, tries, "a migration waits for its turn");
                    tries += 1;
                    tokio::time::sleep(MIGRATION_PAUSE).await;
                }
                other => break other,
            }
        };
        sqlx::Connection::close(connection).await?;
        migrated
    }

    /// Fails with the first migration that this version does not know and that says of itself that it breaks earlier ones.
    async fn require_compatible_schema(&self) -> Result<(), sqlx::migrate::MigrateError> {
        let is_migrated: bool =
            sqlx::query_scalar("select to_regclass('_sqlx_migrations') is not null").fetch_one(&self.pool).await?;
        if !is_migrated {
            return Ok(());
        }
        let known: Vec<i64> = MIGRATIONS.iter().map(|migration| migration.version).collect();
        let breaking: Option<i64> = sqlx::query_scalar(
            "select min(version) from _sqlx_migrations where version <> all($1) and starts_with(description, $2)",
        )
        .bind(known)
        .bind(BREAKING)
        .fetch_one(&self.pool)
        .await?;
        breaking.map_or(Ok(()), |version| Err(sqlx::migrate::MigrateError::VersionMissing(version)))
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

    /// Whether a statement finds something to do: a job asks before it begins a transaction, so that one that has nothing
    /// to do costs a single statement.
    async fn finds(&self, statement: &'static str) -> Result<bool, StoreError> {
        let mut broken = 0;
        loop {
            match sqlx::query_scalar(statement).fetch_one(&self.pool).await {
                Err(sqlx::Error::Io(_)) if broken < MAX_BROKEN_CONNECTIONS => broken += 1,
                found => return Ok(found?),
            }
        }
    }
}

/// Runs a transaction again when it lost a deadlock or a race, at most [`MAX_ATTEMPTS`] times in all, after a pause
/// that grows and differs from one writer to the next.
async fn with_retries<T, F>(mut attempt: impl FnMut() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let mut tries = 1;
    loop {
        match attempt().await {
            Err(error) if error.is_transient() && tries < MAX_ATTEMPTS => {
                let longest = RETRY_PAUSE_MS << tries;
                let random = getrandom::u64().unwrap_or_default();
                tokio::time::sleep(Duration::from_millis(longest / 2 + random % (longest / 2 + 1))).await;
                tries += 1;
            }
            result => return result,
        }
    }
}
