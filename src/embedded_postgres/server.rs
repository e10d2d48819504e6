//! The server process: started, adopted, waited for, stopped.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Child;

use super::cluster::PORT;
use super::error::{StartError, end_of, file_error};
use super::lock::claim;
use super::pid_file::{self, PidFile};
use super::place::Place;
use super::programs::Programs;

/// How long a server may take to accept connections. After a crash it first replays its log, two gigabytes at most.
const READY_LIMIT: Duration = Duration::from_secs(120);
/// How long the processes of a killed server may take to notice and end; until then no new one can start.
const ORPHANS_LIMIT: Duration = Duration::from_secs(10);
/// How long of that they are left to do so by themselves.
const ORPHANS_GRACE: Duration = Duration::from_secs(1);
/// How long a server may take for each of the three ever ruder ways to stop it.
const STOP_LIMIT: Duration = Duration::from_secs(20);
/// How often a state that nobody announces is looked at.
const PAUSE: Duration = Duration::from_millis(10);
/// How often it is looked whether an adopted server, which is not this process's child, still runs.
const ADOPTED_PAUSE: Duration = Duration::from_secs(1);
/// A log longer than this, in bytes, is put aside at the next start, and the one put aside before it deleted.
const LOG_BYTES: u64 = 8 << 20;
/// How much of the log goes into an error, in bytes.
const LOG_END_BYTES: usize = 2_000;

/// Settings in which this server differs from PostgreSQL's defaults, or must not differ.
const SETTINGS: [(&str, &str); 14] = [
    ("listen_addresses", ""),
    ("max_connections", "100"),
    ("shared_buffers", "256MB"),
    // After each checkpoint every page is logged whole when it is first changed: fewer of them, less to write.
    ("checkpoint_timeout", "15min"),
    ("max_wal_size", "2GB"),
    // An acknowledged write survives the loss of power.
    ("fsync", "on"),
    ("full_page_writes", "on"),
    ("synchronous_commit", "on"),
    // Compiling a query takes longer than any query of the service.
    ("jit", "off"),
    // Data directories lie on solid-state disks nowadays.
    ("random_page_cost", "1.1"),
    ("timezone", "UTC"),
    // Failed statements are the service's to report, and hold merchants' data.
    ("log_min_messages", "log"),
    ("log_min_error_statement", "panic"),
    ("log_checkpoints", "off"),
];

/// A server that accepts connections: a child of this process, or one that was found running.
#[derive(Debug)]
pub(super) enum Server {
    Child(Child),
    Adopted(Pid, Place),
}

impl Server {
    /// Takes over the server that runs on `place`, or starts one. To be called in this process's turn.
    pub(super) async fn start_or_adopt(place: &Place, programs: &Programs) -> Result<Server, StartError> {
        let started = Instant::now();
        if let Some(pid) = await_running(place, started).await? {
            tracing::info!(pid = pid.as_raw_nonzero().get(), "found the private PostgreSQL running");
            return Ok(Server::Adopted(pid, place.clone()));
        }
        loop {
            let outcome = match claim(place.root())? {
                Some(lock) => start(place, programs, lock).await,
                None => Err(StartError::Elsewhere { path: place.root().to_path_buf() }),
            };
            match outcome {
                Err(error) if started.elapsed() < patience(&error) => {
                    if started.elapsed() > ORPHANS_GRACE {
                        end_orphans(&place.cluster());
                    }
                    tokio::time::sleep(PAUSE * 10).await;
                }
                outcome => return outcome.map(Server::Child),
            }
        }
    }

    /// Returns when the server has ended.
    pub(super) async fn ended(&mut self) {
        match self {
            Server::Child(child) => {
                if let Err(error) = child.wait().await {
                    tracing::error!(%error, "cannot wait for the private PostgreSQL");
                    std::future::pending::<()>().await;
                }
            }
            Server::Adopted(pid, place) => {
                while pid_file::serves(*pid, &place.cluster()) {
                    tokio::time::sleep(ADOPTED_PAUSE).await;
                }
            }
        }
    }
}

/// Stops the server of `place`, if one runs: letting no transaction finish, then without a checkpoint, then by force.
/// Each is safe for the data. To be called in this process's turn.
pub(super) async fn stop(place: &Place) {
    let cluster = place.cluster();
    for signal in [Signal::INT, Signal::QUIT, Signal::KILL] {
        let Some(file) = PidFile::of_running(&cluster) else { return };
        if let Err(error) = kill_process(file.pid(), signal) {
            tracing::warn!(%error, ?signal, "cannot signal the private PostgreSQL");
        }
        let asked = Instant::now();
        while asked.elapsed() < STOP_LIMIT {
            if !pid_file::serves(file.pid(), &cluster) {
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
    tracing::error!("the private PostgreSQL could not be stopped");
}

/// For how long a failed start is tried again, since what a killed server left behind may be in the way.
fn patience(error: &StartError) -> Duration {
    match error {
        StartError::Ended { log } if log.contains("pre-existing shared memory block") => ORPHANS_LIMIT,
        StartError::Elsewhere { .. } => ORPHANS_LIMIT,
        _ => Duration::ZERO,
    }
}

/// Ends what a server left behind that is dead itself: one of its processes that waits for a lock of another, dead one
/// waits for ever, and keeps every new server from starting. None of them can write any more what is acknowledged.
fn end_orphans(cluster: &Path) {
    for pid in orphans(cluster) {
        tracing::warn!(pid = pid.as_raw_nonzero().get(), "ending a process of a private PostgreSQL that died");
        if let Err(error) = kill_process(pid, Signal::KILL) {
            tracing::warn!(%error, "it cannot be ended");
        }
    }
}

/// Processes that work in a cluster that no server serves. They are known by the directory in which they work; where the
/// system does not tell that, none is found. Those of a container are none of ours: their server may well be alive.
fn orphans(cluster: &Path) -> impl Iterator<Item = Pid> {
    let cluster = cluster.canonicalize().ok();
    let namespace = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
    let own = namespace("self");
    let pids = fs::read_dir("/proc").into_iter().flatten();
    let pids = pids.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let works_there = move |pid: &i32| {
        let directory = fs::read_link(format!("/proc/{pid}/cwd")).ok();
        directory.is_some() && directory == cluster && namespace(&pid.to_string()) == own
    };
    pids.filter(works_there).filter_map(Pid::from_raw)
}

/// The process that already serves `place`, once it is ready; none if there is none or it is about to end.
async fn await_running(place: &Place, started: Instant) -> Result<Option<Pid>, StartError> {
    while let Some(file) = PidFile::of_running(&place.cluster()) {
        if file.is_ready() {
            return Ok(Some(file.pid()));
        }
        if started.elapsed() > READY_LIMIT {
            if file.is_stopping() {
                stop(place).await;
                continue;
            }
            return Err(StartError::NotReady { seconds: READY_LIMIT.as_secs(), log: place.log() });
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(None)
}

async fn start(place: &Place, programs: &Programs, lock: File) -> Result<Child, StartError> {
    let log = open_log(&place.log())?;
    let log_start = log.metadata().map_or(0, |metadata| metadata.len());
    let mut child = spawn(place, programs, log, lock)?;
    let started = Instant::now();
    loop {
        let ended = child.try_wait().map_err(|source| StartError::Program { program: programs.postgres(), source })?;
        if ended.is_some() {
            return Err(StartError::Ended { log: log_since(&place.log(), log_start) });
        }
        let own = |file: &PidFile| child.id() == u32::try_from(file.pid().as_raw_nonzero().get()).ok();
        if PidFile::read(&place.cluster()).is_some_and(|file| own(&file) && file.is_ready()) {
            return Ok(child);
        }
        if started.elapsed() > READY_LIMIT {
            return Err(StartError::NotReady { seconds: READY_LIMIT.as_secs(), log: place.log() });
        }
        tokio::time::sleep(PAUSE).await;
    }
}

fn spawn(place: &Place, programs: &Programs, log: File, lock: File) -> Result<Child, StartError> {
    let failed = |source| StartError::Program { program: programs.postgres(), source };
    let mut command = place.command(&programs.postgres());
    command.arg("-D").arg(place.cluster());
    command.arg("-k").arg(place.socket_directory());
    command.arg("-p").arg(PORT.to_string());
    for (name, value) in SETTINGS {
        command.arg("-c").arg(format!("{name}={value}"));
    }
    if let Some(stale) = PidFile::read(&place.cluster()) {
        // The number in a stale pid file may by now belong to another program of the same user, and PostgreSQL would
        // take that for a living server. Its own launcher uses this variable to have one number disregarded. The file
        // itself has to stay: through it the server finds out whether orphans of a killed one are still at work.
        command.env("PG_GRANDPARENT_PID", stale.pid().as_raw_nonzero().to_string());
    }
    // A process group of its own: the interrupt key of the terminal is for the service, which then stops the server.
    command.process_group(0);
    // It reads nothing there, and all its processes inherit the lock.
    command.stdin(Stdio::from(lock));
    command.stdout(Stdio::from(log.try_clone().map_err(failed)?)).stderr(Stdio::from(log));
    tokio::process::Command::from(command).spawn().map_err(failed)
}

fn open_log(path: &Path) -> Result<File, StartError> {
    if fs::metadata(path).is_ok_and(|metadata| metadata.len() > LOG_BYTES) {
        fs::rename(path, path.with_extension("log.old")).map_err(file_error("rename", path))?;
    }
    OpenOptions::new().create(true).append(true).open(path).map_err(file_error("open", path))
}

fn log_since(path: &Path, start: u64) -> String {
    let mut said = Vec::new();
    let read = File::open(path).and_then(|mut file| {
        file.seek(SeekFrom::Start(start))?;
        file.take(LOG_BYTES).read_to_end(&mut said)
    });
    match read {
        Ok(_) => end_of(&said, LOG_END_BYTES),
        Err(error) => format!("and its log cannot be read: {error}"),
    }
}
