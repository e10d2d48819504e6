//! A PostgreSQL for one test alone, which may be frozen and killed.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};
use uuid::Uuid;
use vat_classification::embedded_postgres::EmbeddedPostgres;

use super::watchdog;

/// A server of its own, which goes away with the test.
pub(crate) struct OwnServer {
    /// Where it is, password included.
    pub(crate) url: String,
    directory: PathBuf,
    /// Starts the server again when it dies, and lets it run on when this is dropped.
    _keeper: EmbeddedPostgres,
}

impl OwnServer {
    /// Starts it, durable as it is for operators.
    pub(crate) async fn start() -> OwnServer {
        // Not under the target directory: that may lie where only root may enter, and the server must not be root's.
        let directory = Path::new("/tmp").join(format!("vat-classification-outage-{}", Uuid::new_v4().simple()));
        let keeper = EmbeddedPostgres::start(&directory).await.expect("a server");
        watchdog::watch_directory(std::process::id(), &directory).expect("a watchdog");
        OwnServer { url: keeper.url(), directory, _keeper: keeper }
    }

    /// Stops every process of the server where it is.
    pub(crate) fn freeze(&self) {
        // The one that starts the others first, so that none is missed.
        self.signal(Signal::STOP);
    }

    /// Lets all go on.
    pub(crate) fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    /// Kills every process of the server, as a loss of power would.
    pub(crate) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Kills the process that started the others, which do not notice.
    pub(crate) fn orphan(&self) {
        let Some(first) = self.postmaster() else { return };
        let others = children(first);
        send(Signal::STOP, &others);
        send(Signal::KILL, &[first]);
    }

    fn signal(&self, signal: Signal) {
        let Some(first) = self.postmaster() else { return };
        let others = children(first);
        send(signal, &[first]);
        send(signal, &others);
    }

    fn postmaster(&self) -> Option<i32> {
        let file = fs::read_to_string(self.directory.join("postgres/cluster/postmaster.pid")).ok()?;
        file.lines().next()?.parse().ok()
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        self.thaw();
        // The watchdog ends the server when its directory is gone.
        if let Some(pid) = self.postmaster().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::QUIT);
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn send(signal: Signal, pids: &[i32]) {
    for pid in pids.iter().filter_map(|pid| Pid::from_raw(*pid)) {
        // One that has ended meanwhile needs no signal.
        let _ = kill_process(pid, signal);
    }
}

/// The processes that another one started.
fn children(parent: i32) -> Vec<i32> {
    let pids = fs::read_dir("/proc").expect("processes").filter_map(|entry| {
        let pid: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name, in brackets, may hold anything; the state and the parent follow it.
        let parent_of: i32 = stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()?;
        (parent_of == parent).then_some(pid)
    });
    pids.collect()
}
