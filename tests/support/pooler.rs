//! A PgBouncer in transaction mode before the database of a test.

use std::fs::{self, Permissions};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use url::Url;

use super::watchdog;

/// Connections to the database, fewer than a service opens to the pooler.
const SERVER_CONNECTIONS: usize = 6;
/// Whom root runs it as: it refuses to be root's.
const USER: &str = "nobody";

/// A pooler for one test, which goes away with it.
pub(crate) struct Pooler {
    /// Where it is.
    pub(crate) url: String,
    child: Child,
    directory: tempfile::TempDir,
}

/// Starts a pooler that gives each transaction the next of its connections to a database.
///
/// None, and a word on stderr, where `PGBOUNCER` names no program and this machine has none that can keep prepared
/// statements (1.21): `.ci/pgbouncer` brings one.
///
/// # Panics
///
/// When there is one and it does not start.
pub(crate) async fn pooler(database_url: &str) -> Option<Pooler> {
    let program = program()?;
    let directory = tempfile::tempdir().expect("a directory");
    fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).expect("rights");
    let port = TcpListener::bind(("127.0.0.1", 0)).and_then(|free| free.local_addr()).expect("a port").port();
    let database = Url::parse(database_url).expect("a URL");
    let file = directory.path().join("pgbouncer.ini");
    fs::write(&file, settings(&database, port)).expect("written");
    let mut command = Command::new(&program);
    if rustix::process::geteuid().is_root() {
        command.args(["-u", USER]);
    }
    let log = fs::File::create(directory.path().join("log")).expect("a log");
    let child = command.arg(&file).stdin(Stdio::null()).stderr(log).process_group(0).spawn().expect("a pooler");
    watchdog::watch(std::process::id(), "INT", child.id(), directory.path()).expect("a watchdog");
    let url = format!("postgres://{}@127.0.0.1:{port}{}?sslmode=disable", database.username(), database.path());
    let mut pooler = Pooler { url, child, directory };
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        let ended = pooler.child.try_wait().expect("a state");
        assert!(ended.is_none(), "{} ended: {}", program.display(), pooler.log());
        tokio::task::yield_now().await;
    }
    Some(pooler)
}

impl Pooler {
    fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn program() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("PGBOUNCER") {
        return Some(PathBuf::from(named));
    }
    let places = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&places).chain([PathBuf::from("/usr/sbin")]);
    let found = places.map(|place| place.join("pgbouncer")).find(|program| keeps_prepared_statements(program));
    if found.is_none() {
        eprintln!("NOT TESTED: there is no PgBouncer 1.21 or later; PGBOUNCER=$(.ci/pgbouncer) brings and names one");
    }
    found
}

/// Whether a program is there and of a version that can be used.
fn keeps_prepared_statements(program: &Path) -> bool {
    let Ok(told) = Command::new(program).arg("--version").output() else { return false };
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    let version = told.lines().next().and_then(|line| line.strip_prefix("PgBouncer "));
    let mut numbers = version.unwrap_or_default().split('.').map(|number| number.trim().parse::<u32>().unwrap_or(0));
    (numbers.next(), numbers.next()) >= (Some(1), Some(21))
}

fn settings(database: &Url, port: u16) -> String {
    // The address of a private server names the directory of its socket behind the question mark.
    let socket = database.query_pairs().find(|(name, _)| name == "host").map(|(_, value)| value.into_owned());
    let host = socket.or_else(|| database.host_str().map(str::to_owned)).unwrap_or_default();
    let (user, password) = (database.username(), database.password().unwrap_or_default());
    format!(
        "[databases]\n\
         * = host={host} port={} user={user} password={password}\n\
         [pgbouncer]\n\
         listen_addr = 127.0.0.1\n\
         listen_port = {port}\n\
         unix_socket_dir =\n\
         auth_type = any\n\
         pool_mode = transaction\n\
         max_prepared_statements = 200\n\
         server_round_robin = 1\n\
         default_pool_size = {SERVER_CONNECTIONS}\n\
         max_client_conn = 200\n",
        database.port().unwrap_or(5432)
    )
}
