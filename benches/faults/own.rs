//! A service that a part of this bench starts for itself, with a private database in a directory of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use reqwest::Client;
use rustix::process::{Pid, Signal, kill_process};
use sqlx::{Connection, PgConnection};
use vat_classification::embedded_postgres::running_url;

pub(crate) const BASE_PATH: &str = "/api/vat-classification/v1";
/// Longer than any answer may take.
pub(crate) const GIVE_UP: Duration = Duration::from_secs(30);
/// Between two looks whether the service or its database is there.
const LOOK: Duration = Duration::from_millis(10);
/// Requests in a minute that an account may send where its rate is not to be met.
const NO_RATE: &str = "1000000000";

const PROGRAM: &str = env!("CARGO_BIN_EXE_vat-classification");

/// A running service; it ends with the value.
pub(crate) struct Service {
    pub(crate) client: Client,
    pub(crate) directory: PathBuf,
    pub(crate) base: String,
    /// Where health is answered by a thread of its own.
    pub(crate) operators: String,
    pub(crate) child: Child,
}

/// Where a part of this bench may keep what it makes.
pub(crate) fn directory() -> PathBuf {
    PathBuf::from(format!("/tmp/vat-classification-faults-{}", std::process::id()))
}

impl Service {
    pub(crate) async fn start(directory: &Path) -> Service {
        let free = || std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let (address, operators) = (free().expect("a port"), free().expect("a port"));
        let child = Service::spawn(directory, &address.to_string(), &operators.to_string());
        let client = Client::builder().timeout(GIVE_UP).build().expect("a client");
        let (base, operators) = (format!("http://{address}"), format!("http://{operators}"));
        let service = Service { client, directory: directory.to_owned(), base, operators, child };
        service.ready().await;
        service
    }

    fn spawn(directory: &Path, address: &str, operators: &str) -> Child {
        Command::new(PROGRAM)
            .arg("serve")
            .env("DATA_DIR", directory)
            .env("FIRST_TOKEN_FILE", directory.join("token"))
            .env("BIND_ADDR", address)
            .env("METRICS_ADDR", operators)
            .env("RATE_REQUESTS_PER_MINUTE", NO_RATE)
            .env_remove("DATABASE_URL")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the service starts")
    }

    /// Starts it again after it was killed, and answers how long that took.
    pub(crate) async fn again(&mut self) -> Duration {
        let began = Instant::now();
        let address = |url: &str| url.trim_start_matches("http://").to_owned();
        self.child = Service::spawn(&self.directory, &address(&self.base), &address(&self.operators));
        self.ready().await;
        began.elapsed()
    }

    async fn ready(&self) {
        let began = Instant::now();
        loop {
            let answer = self.client.get(format!("{}/health/ready", self.base)).send().await;
            if answer.is_ok_and(|answer| answer.status() == 200) && self.directory.join("token").exists() {
                return;
            }
            assert!(began.elapsed() < GIVE_UP, "the service is not ready");
            tokio::time::sleep(LOOK).await;
        }
    }

    /// The token of the first account, which is named `demo`.
    pub(crate) fn token(&self) -> String {
        fs::read_to_string(self.directory.join("token")).expect("a token").trim().to_owned()
    }

    /// Runs a subcommand beside the service, and answers what it says.
    pub(crate) async fn run(&self, arguments: &[&str]) -> String {
        let mut command = tokio::process::Command::new(PROGRAM);
        command.args(arguments).env("DATA_DIR", &self.directory).env_remove("DATABASE_URL");
        let output = command.output().await.expect("the program starts");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// A token of a new account.
    pub(crate) async fn account(&self, name: &str) -> String {
        self.run(&["account", "create", name]).await;
        self.run(&["token", "create", "--account", name, "--user", "bench", "--level", "EDIT"]).await
    }

    pub(crate) fn database_url(&self) -> String {
        running_url(&self.directory).expect("a database")
    }

    /// How long it takes until the database lets somebody in.
    pub(crate) async fn database_is_back(&self) -> Duration {
        let began = Instant::now();
        loop {
            if let Some(url) = running_url(&self.directory)
                && let Ok(Ok(connection)) = tokio::time::timeout(GIVE_UP, PgConnection::connect(&url)).await
            {
                let _ = connection.close().await;
                return began.elapsed();
            }
            assert!(began.elapsed() < 2 * GIVE_UP, "the database does not come back");
            tokio::time::sleep(LOOK).await;
        }
    }

    pub(crate) fn kill(&mut self) {
        // One that has ended by itself is as dead.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks it to stop, and waits until it has.
    pub(crate) fn stop(&mut self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        pid.map(|pid| kill_process(pid, Signal::TERM));
        let _ = self.child.wait();
    }

    /// Sends a signal to every process of the database.
    pub(crate) fn signal_database(&self, signal: Signal) {
        let file = fs::read_to_string(self.directory.join("postgres/cluster/postmaster.pid")).expect("a pid file");
        let first: i32 = file.lines().next().and_then(|line| line.parse().ok()).expect("a pid");
        let started = |pid: &i32| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let parent = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)?.parse::<i32>().ok());
            parent == Some(first)
        };
        let pids = fs::read_dir("/proc").expect("processes");
        let pids = pids.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).filter(started);
        // All are known before the first is dead: then they are nobody's.
        let pids: Vec<i32> = pids.collect();
        for pid in std::iter::once(first).chain(pids).filter_map(Pid::from_raw) {
            let _ = kill_process(pid, signal);
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.stop();
    }
}
