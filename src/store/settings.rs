//! How the service uses its database.

use std::time::Duration;

use sqlx::Connection;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

use crate::store::limits::{Limit, in_milliseconds};

/// Most connections that one service opens, unless told otherwise.
pub const MAX_CONNECTIONS: u32 = 24;
/// How long a request waits for a connection unless told otherwise, in milliseconds: short enough for an answer within
/// 2 s that says to come again later.
pub const ACQUIRE_TIMEOUT_MS: u64 = 1_500;
/// How long any statement may run unless told otherwise, in seconds; a request is over by then, and a migration sets
/// its own limit.
pub const STATEMENT_TIMEOUT_S: u64 = 60;
/// How long a transaction may lie idle between two statements before the database ends it: what a host that vanished
/// held, rows of a queue among it, is free by then. Lifted where one waits on purpose.
const IDLE_IN_TRANSACTION: Duration = Duration::from_secs(60);
/// When the database asks whether a silent service is still there, how often it asks again, and after how many questions
/// without an answer it lets go of the connection, in seconds and a number: within a minute, and not two hours.
const KEEPALIVE: (u32, u32, u32) = (30, 10, 3);
/// How long a connection may have been idle before it is tested when it is taken.
const TESTED_AFTER: Duration = Duration::from_millis(500);
/// Statements that a connection keeps prepared, unless told otherwise.
pub const PREPARED_STATEMENTS: usize = 200;

/// Connections to the database, and their limits.
#[derive(Clone, Debug, clap::Args)]
#[group(id = "database")]
pub struct Settings {
    /// Most connections to the database.
    #[arg(long, env = "DATABASE_CONNECTIONS", default_value_t = MAX_CONNECTIONS, value_parser = clap::value_parser!(u32).range(4..=1_000))]
    pub database_connections: u32,
    /// How long a request waits for a connection, in milliseconds, before the answer is 503.
    #[arg(long, env = "DATABASE_ACQUIRE_TIMEOUT_MS", default_value_t = ACQUIRE_TIMEOUT_MS, value_parser = clap::value_parser!(u64).range(100..=60_000))]
    pub database_acquire_timeout_ms: u64,
    /// How long any statement may run, in seconds.
    #[arg(long, env = "DATABASE_STATEMENT_TIMEOUT_S", default_value_t = STATEMENT_TIMEOUT_S, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub database_statement_timeout_s: u64,
    /// The database is reached through a pooler that gives each transaction another connection, such as PgBouncer 1.21 or
    /// later in transaction mode with max_prepared_statements: nothing is set at the start of a connection, and no lock
    /// outlives a transaction. Each transaction sets its limits; that of statements outside of one is to be set for the role
    /// in the database.
    #[arg(long, env = "DATABASE_TRANSACTION_POOLER", action = clap::ArgAction::SetTrue)]
    pub database_transaction_pooler: bool,
    /// How long a transaction may lie idle. No flag: another value is for tests of what may.
    #[arg(skip = IDLE_IN_TRANSACTION)]
    pub database_idle_in_transaction: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            database_connections: MAX_CONNECTIONS,
            database_acquire_timeout_ms: ACQUIRE_TIMEOUT_MS,
            database_statement_timeout_s: STATEMENT_TIMEOUT_S,
            database_transaction_pooler: false,
            database_idle_in_transaction: IDLE_IN_TRANSACTION,
        }
    }
}

impl Settings {
    /// How to connect to a URL.
    pub(super) fn connect_options(&self, url: &str) -> Result<PgConnectOptions, sqlx::Error> {
        let options: PgConnectOptions = url.parse()?;
        let options = options.application_name("vat-classification");
        if self.database_transaction_pooler {
            return Ok(options.statement_cache_capacity(PREPARED_STATEMENTS).extra_float_digits(None));
        }
        let (idle, pause, tries) = KEEPALIVE;
        Ok(options.statement_cache_capacity(PREPARED_STATEMENTS).options([
            ("statement_timeout", in_milliseconds(Some(self.statement_timeout()))),
            ("idle_in_transaction_session_timeout", in_milliseconds(Some(self.database_idle_in_transaction))),
            ("tcp_keepalives_idle", idle.to_string()),
            ("tcp_keepalives_interval", pause.to_string()),
            ("tcp_keepalives_count", tries.to_string()),
            ("timezone", "UTC".to_owned()),
        ]))
    }

    /// What each transaction has to set for itself, since nothing is set at the start of a connection.
    pub(super) fn limits_of_transactions(&self) -> Option<[Limit; 2]> {
        let limits =
            [Limit::Statement(Some(self.statement_timeout())), Limit::Idle(Some(self.database_idle_in_transaction))];
        self.database_transaction_pooler.then_some(limits)
    }

    fn statement_timeout(&self) -> Duration {
        Duration::from_secs(self.database_statement_timeout_s)
    }

    /// How connections are kept.
    pub(super) fn pool_options(&self) -> PgPoolOptions {
        PgPoolOptions::new()
            .max_connections(self.database_connections)
            .min_connections(1)
            .acquire_timeout(Duration::from_millis(self.database_acquire_timeout_ms))
            .test_before_acquire(false)
            .before_acquire(|connection, meta| {
                Box::pin(async move {
                    // A round trip for each query would be much; a connection that was busy a moment ago is there.
                    Ok(meta.idle_for < TESTED_AFTER || connection.ping().await.is_ok())
                })
            })
    }
}
