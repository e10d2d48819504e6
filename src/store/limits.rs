//! How long a transaction may compute and may lie idle, and with how much memory.
//!
//! A connection brings its limits along from its start ([`Settings`](crate::store::Settings)); behind a pooler, where nothing
//! stays in a session, each transaction sets them for itself. What needs more or less says so when it begins.

use std::time::Duration;

use sqlx::{AssertSqlSafe, PgConnection, PgPool, Postgres, Transaction};

use crate::store::{MAX_BROKEN_CONNECTIONS, Store, StoreError, Tx, tx};

/// A limit of one transaction, in place of the one that is usual.
#[derive(Clone, Copy, Debug)]
pub(super) enum Limit {
    /// How long each statement may run, to the millisecond and at least one; none for as long as it takes.
    Statement(Option<Duration>),
    /// How long it may lie idle between two statements before the database gives its locks and its snapshot back; none for
    /// one that waits on purpose.
    Idle(Option<Duration>),
    /// Its statements are not compiled, which takes longer than running them.
    NotCompiled,
    /// Its rows are read in the order of an index, however many have to be gone past.
    InOrder,
    /// How many kilobytes each step of a statement may hold before it writes to disk or holds less exactly.
    Memory(u32),
}

/// How long a lock is waited for behind which others wait, as PostgreSQL takes it; how often, and the pause in between.
const LOCK_TIMEOUT: &str = "2s";
const LOCK_TRIES: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_secs(1);
/// PostgreSQL's code for a lock that was not to be had in that time.
const LOCK_NOT_AVAILABLE: &str = "55P03";

/// The limits of a transaction that takes as long as it takes, and waits in between.
pub(super) const UNLIMITED: [Limit; 2] = [Limit::Statement(None), Limit::Idle(None)];

impl Limit {
    /// The setting of PostgreSQL.
    const fn name(self) -> &'static str {
        match self {
            Limit::Statement(_) => "statement_timeout",
            Limit::Idle(_) => "idle_in_transaction_session_timeout",
            Limit::NotCompiled => "jit",
            Limit::InOrder => "enable_bitmapscan",
            Limit::Memory(_) => "work_mem",
        }
    }

    fn value(self) -> String {
        match self {
            Limit::Statement(limit) | Limit::Idle(limit) => in_milliseconds(limit),
            Limit::NotCompiled | Limit::InOrder => "off".to_owned(),
            Limit::Memory(kilobytes) => kilobytes.to_string(),
        }
    }
}

/// A limit as PostgreSQL reads it, where 0 is none.
pub(super) fn in_milliseconds(limit: Option<Duration>) -> String {
    limit.map_or(0, |limit| limit.as_millis().max(1)).to_string()
}

/// Limits a transaction from here on.
pub(super) async fn limit(connection: &mut PgConnection, limits: &[Limit]) -> Result<(), sqlx::Error> {
    let (names, values): (Vec<&str>, Vec<String>) = limits.iter().map(|limit| (limit.name(), limit.value())).unzip();
    sqlx::query("select set_config(name, value, true) from unnest($1::text[], $2::text[]) as limits (name, value)")
        .bind(names)
        .bind(values)
        .execute(connection)
        .await?;
    Ok(())
}

/// Begins a transaction, and does not stop half-way when its caller goes away.
///
/// sqlx 0.9.0 takes no note of a transaction before `BEGIN` is answered (its issue 4393): dropped before, it gives the
/// connection back inside a transaction that nobody ends, and what the next one writes there, and acknowledges, may be undone.
pub(super) async fn begin_to_the_end(pool: &PgPool) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
    let connection = pool.acquire().await?;
    // A task goes on without who waits for it, and what it began is undone then.
    tokio::spawn(Transaction::begin(connection, None)).await.unwrap_or(Err(sqlx::Error::WorkerCrashed))
}

impl Store {
    /// Begins a transaction with the limits that are usual.
    pub(crate) async fn begin(&self) -> Result<Tx, StoreError> {
        Ok(self.begin_limited(&[]).await?)
    }

    /// Begins a transaction in which nobody else writes to these tables, when all who had begun to write there have ended.
    /// Whoever comes meanwhile waits behind the lock, so that it is given up soon and asked for again.
    pub(super) async fn begin_alone(&self, tables: &'static str) -> Result<Tx, sqlx::Error> {
        let mut tries = 1;
        loop {
            let mut tx = self.begin_limited(&[]).await?;
            sqlx::query("select set_config('lock_timeout', $1, true)").bind(LOCK_TIMEOUT).execute(&mut *tx).await?;
            let lock = format!("lock table {tables} in share row exclusive mode");
            match sqlx::raw_sql(AssertSqlSafe(lock)).execute(&mut *tx).await {
                Ok(_) => return Ok(tx),
                Err(sqlx::Error::Database(error))
                    if error.code().as_deref() == Some(LOCK_NOT_AVAILABLE) && tries < LOCK_TRIES =>
                {
                    tries += 1;
                }
                Err(error) => return Err(error),
            }
            tx.rollback().await?;
            tokio::time::sleep(LOCK_PAUSE).await;
        }
    }

    /// Begins a transaction for a selection, each of whose statements may run for this long.
    pub(super) async fn begin_within(&self, deadline: Duration) -> Result<Tx, sqlx::Error> {
        self.begin_limited(&[Limit::Statement(Some(deadline)), Limit::NotCompiled]).await
    }

    /// Begins a transaction with limits of its own, on another connection where one turns out to be broken: after a restart
    /// of the database all of them are, and nothing has been asked of it yet.
    pub(super) async fn begin_limited(&self, own: &[Limit]) -> Result<Tx, sqlx::Error> {
        tx::finish_earlier().await?;
        let mut broken = 0;
        let mut begun = loop {
            match begin_to_the_end(&self.pool).await {
                Err(sqlx::Error::Io(_)) if broken < MAX_BROKEN_CONNECTIONS => broken += 1,
                begun => break begun?,
            }
        };
        let usual = self.pooled.iter().flatten().filter(|usual| own.iter().all(|own| own.name() != usual.name()));
        let limits: Vec<Limit> = usual.chain(own).copied().collect();
        if !limits.is_empty() {
            limit(&mut begun, &limits).await?;
        }
        Ok(Tx::new(begun))
    }
}
