//! The locks that keep processes on one data directory out of each other's way.
//!
//! All are locks of the operating system on open files: they end with their process, however it ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::error::{StartError, file_error};

/// How long a process waits for another one to finish starting or stopping the server.
const TURN_LIMIT: Duration = Duration::from_secs(150);
/// How often it looks.
const TURN_PAUSE: Duration = Duration::from_millis(20);

/// The claim of one service to a data directory; it ends when this value is dropped or the process ends.
#[derive(Debug)]
pub struct DataDirLock {
    _file: File,
}

/// Why a data directory cannot be claimed.
#[derive(Debug, thiserror::Error)]
pub enum AlreadyRunning {
    /// Another service holds it.
    #[error("another service is already running on the data directory {0}; stop it first, or choose another DATA_DIR")]
    Held(PathBuf),
    /// The directory or its lock file cannot be made or opened.
    #[error("cannot lock the data directory {path}: {source}")]
    File {
        /// The directory.
        path: PathBuf,
        /// What the operating system answered.
        source: io::Error,
    },
}

impl DataDirLock {
    /// Claims `data_dir`, creating it when it is missing, or says at once who is in the way.
    ///
    /// # Errors
    ///
    /// [`AlreadyRunning::Held`] when a living process holds it; [`AlreadyRunning::File`] when it cannot be asked.
    pub fn acquire(data_dir: &Path) -> Result<DataDirLock, AlreadyRunning> {
        let failed = |source| AlreadyRunning::File { path: data_dir.to_path_buf(), source };
        std::fs::create_dir_all(data_dir).map_err(failed)?;
        let file = open(&data_dir.join("service.lock")).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(DataDirLock { _file: file }),
            Err(TryLockError::WouldBlock) => Err(AlreadyRunning::Held(data_dir.to_path_buf())),
            Err(TryLockError::Error(source)) => Err(failed(source)),
        }
    }
}

/// The locks beside the database: whose turn it is to start or stop the server, and who works with it.
#[derive(Debug)]
pub(super) struct PlaceLocks {
    turn_path: PathBuf,
    users_path: PathBuf,
    users: File,
}

/// The right to start or stop the server, until dropped.
pub(super) struct Turn {
    _file: File,
}

impl PlaceLocks {
    pub(super) fn open(root: &Path) -> Result<PlaceLocks, StartError> {
        let users_path = root.join("users.lock");
        let users = open(&users_path).map_err(file_error("open", &users_path))?;
        Ok(PlaceLocks { turn_path: root.join("turn.lock"), users_path, users })
    }

    /// Waits for the right to start or stop the server.
    pub(super) async fn turn(&self) -> Result<Turn, StartError> {
        let file = open(&self.turn_path).map_err(file_error("open", &self.turn_path))?;
        let started = Instant::now();
        while let Err(error) = file.try_lock() {
            match error {
                TryLockError::WouldBlock if started.elapsed() < TURN_LIMIT => tokio::time::sleep(TURN_PAUSE).await,
                TryLockError::WouldBlock => return Err(StartError::Busy { seconds: TURN_LIMIT.as_secs() }),
                TryLockError::Error(source) => return Err(file_error("lock", &self.turn_path)(source)),
            }
        }
        Ok(Turn { _file: file })
    }

    /// Counts this process among the users of the server. To be called in its turn, when nobody excludes it.
    pub(super) async fn join(&mut self) -> Result<(), StartError> {
        self.users.try_lock_shared().map_err(io::Error::from).map_err(file_error("lock", &self.users_path))
    }

    /// Counts this process out; true when no user is left. To be called in its turn.
    pub(super) fn leave_as_last(&mut self) -> bool {
        // A lock is not raised from shared to exclusive in one step: of two that leave together, each in its turn,
        // the second finds nobody.
        self.users.unlock().is_ok() && self.users.try_lock().is_ok()
    }
}

/// Claims the cluster below `root` for a server that is about to start; none while another has it. The server is given the
/// file and so holds the lock for as long as any of its processes lives, whoever sees them: a container sees none of another.
pub(super) fn claim(root: &Path) -> Result<Option<File>, StartError> {
    let path = root.join("server.lock");
    let file = open(&path).map_err(file_error("open", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(source)) => Err(file_error("lock", &path)(source)),
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).write(true).open(path)
}
