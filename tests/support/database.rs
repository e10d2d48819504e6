//! A PostgreSQL database for each test.
//!
//! The server is `TEST_DATABASE_URL` or `DATABASE_URL`, else one that this process starts for itself: from the programs of
//! this machine, or with `TEST_CONTAINERS=1` in a container. Databases are
//! copies of a template that is migrated once, and go away with the test. All of this happens on a thread of its own:
//! each test has a runtime of its own, which ends with it.

use std::path::Path;
use std::sync::{LazyLock, mpsc as blocking};

use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};
use tokio::sync::{mpsc, oneshot};
use url::Url;
use uuid::Uuid;
use vat_classification::embedded_postgres::EmbeddedPostgres;
use vat_classification::store::MIGRATIONS;

use super::containers::{self, Image};
use super::watchdog;

/// The server of `TEST_CONTAINERS=1`.
const POSTGRES_IMAGE: &str = "postgres:17";
const POSTGRES_PORT: u16 = 5432;
/// Of a server that this machine alone reaches, and that ends with the tests.
const PASSWORD: &str = "tests";
/// Nothing in it has to survive a loss of power, and tests hold many connections.
const UNSAFE: &[&str] = &["-c", "fsync=off", "-c", "max_connections=300"];

/// Makes a table anew with the row that it had, as pg_restore does with all of them.
pub(crate) const RESTORED: &str = "create table restored (like journal_base including all);
    insert into restored select * from journal_base;
    drop table journal_base;
    alter table restored rename to journal_base";

/// A migrated database of its own, deleted when dropped.
#[derive(Debug)]
pub(crate) struct TestDatabase {
    /// Where it is, password included.
    pub(crate) url: String,
    name: String,
}

/// A new database with the schema of the migrations and nothing in it.
///
/// # Panics
///
/// When there is no server and none can be started, or the migrations fail.
pub(crate) async fn database() -> TestDatabase {
    create(true).await
}

/// A new database with nothing in it at all.
pub(crate) async fn empty_database() -> TestDatabase {
    create(false).await
}

enum Order {
    Create { migrated: bool, reply: oneshot::Sender<Result<TestDatabase, String>> },
    Drop { name: String, reply: blocking::Sender<()> },
}

static CLERK: LazyLock<mpsc::UnboundedSender<Order>> = LazyLock::new(|| {
    let (sender, orders) = mpsc::unbounded_channel();
    std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(work(orders));
    });
    sender
});

async fn create(migrated: bool) -> TestDatabase {
    let (reply, answer) = oneshot::channel();
    CLERK.send(Order::Create { migrated, reply }).expect("the clerk of databases works");
    answer.await.expect("the clerk of databases answers").unwrap_or_else(|error| panic!("no test database: {error}"))
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let (reply, answer) = blocking::channel();
        if CLERK.send(Order::Drop { name: std::mem::take(&mut self.name), reply }).is_ok() {
            // Waited for, so that none is left on a server that goes on running.
            let _ = answer.recv();
        }
    }
}

async fn work(mut orders: mpsc::UnboundedReceiver<Order>) {
    let opened = Server::open().await;
    while let Some(order) = orders.recv().await {
        match order {
            Order::Create { migrated, reply } => {
                let created = match &opened {
                    Ok(server) => server.create(migrated).await.map_err(|error| error.to_string()),
                    Err(error) => Err(error.clone()),
                };
                let _ = reply.send(created);
            }
            Order::Drop { name, reply } => {
                if let Ok(server) = &opened {
                    let dropped = server.execute(&format!("drop database if exists {name} with (force)")).await;
                    let _ = dropped.inspect_err(|error| eprintln!("cannot delete a test database: {error}"));
                }
                let _ = reply.send(());
            }
        }
    }
}

struct Server {
    url: Url,
    template: String,
    _own: Option<EmbeddedPostgres>,
}

impl Server {
    async fn open() -> Result<Server, String> {
        let named = ["TEST_DATABASE_URL", "DATABASE_URL"].into_iter().find_map(|name| std::env::var(name).ok());
        let (url, own) = match named {
            Some(url) => (url, None),
            None if containers::wanted() => (start_in_container().await?, None),
            None => {
                let own = start().await?;
                (own.url(), Some(own))
            }
        };
        let url = Url::parse(&url).map_err(|error| format!("DATABASE_URL: {error}"))?;
        // A template for each state of the migrations: those of an older one fail to be found, not to fit.
        let digest = MIGRATIONS.iter().fold(0_u64, |digest, migration| {
            migration
                .checksum
                .iter()
                .fold(digest, |digest, byte| digest.wrapping_mul(1_099_511_628_211) ^ u64::from(*byte))
        });
        let server = Server { url, template: format!("vat_template_{digest:016x}"), _own: own };
        server.make_template().await.map_err(|error| error.to_string())?;
        Ok(server)
    }

    /// Makes the template, unless it is there. Its name is given last: a template by that name is complete.
    async fn make_template(&self) -> Result<(), sqlx::Error> {
        let mut connection = PgConnection::connect(self.url.as_str()).await?;
        // Test processes that run at one time take turns.
        connection.execute("select pg_advisory_lock(7236416)").await?;
        let there: bool = sqlx::query_scalar("select exists (select from pg_database where datname = $1)")
            .bind(&self.template)
            .fetch_one(&mut connection)
            .await?;
        if !there {
            let unfinished = unique_name();
            connection
                .execute(AssertSqlSafe(format!(
                    "create database {unfinished} template template0 encoding 'UTF8' lc_collate 'C' lc_ctype 'C'"
                )))
                .await?;
            let mut inside = PgConnection::connect(&self.url_of(&unfinished)).await?;
            MIGRATIONS.run(&mut inside).await?;
            inside.close().await?;
            let template = &self.template;
            connection.execute(AssertSqlSafe(format!("alter database {unfinished} rename to {template}"))).await?;
        }
        connection.close().await
    }

    async fn create(&self, migrated: bool) -> Result<TestDatabase, sqlx::Error> {
        let name = unique_name();
        let template = if migrated { &self.template } else { "template0" };
        self.execute(&format!("create database {name} template {template}")).await?;
        Ok(TestDatabase { url: self.url_of(&name), name })
    }

    /// Runs one statement made of names that are made here.
    async fn execute(&self, statement: &str) -> Result<(), sqlx::Error> {
        let mut connection = PgConnection::connect(self.url.as_str()).await?;
        connection.execute(AssertSqlSafe(statement.to_owned())).await?;
        connection.close().await
    }

    fn url_of(&self, database: &str) -> String {
        let mut url = self.url.clone();
        url.set_path(database);
        url.into()
    }
}

/// A server for this process alone, in a container.
async fn start_in_container() -> Result<String, String> {
    let directory = Path::new("/tmp").join(format!("vat-classification-tests-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let address = |port: u16| format!("postgres://postgres:{PASSWORD}@127.0.0.1:{port}/postgres");
    let started = tokio::task::spawn_blocking(move || {
        let environment = [("POSTGRES_PASSWORD", PASSWORD)];
        let image = Image { name: POSTGRES_IMAGE, port: POSTGRES_PORT, environment: &environment, arguments: UNSAFE };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        // It listens once before it is set up, on a socket of its own; only then on the port.
        let answers = |port| runtime.block_on(PgConnection::connect(&address(port))).is_ok();
        containers::start(&image, &directory, std::process::id(), answers).map(address)
    });
    started.await.unwrap_or_else(|error| Err(error.to_string()))
}

/// A server for this process alone, in a directory that goes away with it.
async fn start() -> Result<EmbeddedPostgres, String> {
    // Not under the target directory: that may lie where only root may enter, and the server must not be root's.
    let directory = Path::new("/tmp").join(format!("vat-classification-tests-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    let server = EmbeddedPostgres::start(&directory).await.map_err(|error| error.to_string())?;
    let pid_file = std::fs::read_to_string(directory.join("postgres/cluster/postmaster.pid"));
    let pid = pid_file.ok().and_then(|text| text.lines().next()?.parse().ok()).ok_or("the server has no pid file")?;
    watchdog::watch(std::process::id(), "INT", pid, &directory).map_err(|error| format!("no watchdog: {error}"))?;
    // Nothing here has to survive a loss of power; the tests of durability start servers of their own.
    let mut connection = PgConnection::connect(&server.url()).await.map_err(|error| error.to_string())?;
    for statement in ["alter system set fsync = off", "select pg_reload_conf()"] {
        connection.execute(statement).await.map_err(|error| error.to_string())?;
    }
    Ok(server)
}

fn unique_name() -> String {
    format!("vat_test_{}", Uuid::new_v4().simple())
}
