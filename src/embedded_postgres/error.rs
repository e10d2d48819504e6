//! Why the private PostgreSQL cannot be used.

use std::io;
use std::path::PathBuf;

/// Why [`super::EmbeddedPostgres::start`] gave up. No message holds the password.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A file or directory could not be made, read or handed to the server's user.
    #[error("cannot {action} {path}: {source}")]
    File {
        /// What was tried, as a verb: "create", "read".
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the operating system answered.
        source: io::Error,
    },
    /// The service runs as root, PostgreSQL refuses to, and there is no other user to run it as.
    #[error(
        "PostgreSQL refuses to run as root, and neither `postgres` nor `nobody` is in /etc/passwd: \
         run the service as an ordinary user, or set DATABASE_URL"
    )]
    NoServerUser,
    /// The database lies where the user that the server runs as may not go.
    #[error(
        "user {user} may not enter {path}, where the database lies: give it the right to, or move DATA_DIR to a place \
         every user may enter"
    )]
    Unreachable {
        /// Name of the server's user.
        user: String,
        /// Directory of the database.
        path: PathBuf,
    },
    /// The server programs are neither installed nor to be had.
    #[error(
        "no PostgreSQL server is installed, and its programs cannot be fetched ({reason}): install PostgreSQL 14 or later, or set DATABASE_URL"
    )]
    Fetch {
        /// What went wrong with the bundle.
        reason: String,
    },
    /// The cluster was made by a major version whose programs are gone.
    #[error(
        "the database in {path} was made by PostgreSQL {major}, which is no longer installed: install it again, or set DATABASE_URL"
    )]
    VersionGone {
        /// Directory of the cluster.
        path: PathBuf,
        /// Major version that made it.
        major: u32,
    },
    /// A server program cannot be run at all.
    #[error("cannot run {program}: {source}")]
    Program {
        /// Path of the program.
        program: PathBuf,
        /// What the operating system answered.
        source: io::Error,
    },
    /// `initdb` ended with an error.
    #[error("initdb failed: {output}")]
    Initdb {
        /// The end of what it said.
        output: String,
    },
    /// The server ended before it accepted connections.
    #[error("the private PostgreSQL ended while it started: {log}")]
    Ended {
        /// The end of its log.
        log: String,
    },
    /// The server runs and did not become ready in time.
    #[error("the private PostgreSQL is not ready after {seconds} s; see {log}")]
    NotReady {
        /// How long it was waited for.
        seconds: u64,
        /// The server's log.
        log: PathBuf,
    },
    /// A server of which nothing is to be seen from here serves the cluster.
    #[error(
        "the private PostgreSQL in {path} is in use by a server that cannot be seen from here, such as one of another \
         container: run this there, for instance with docker exec, or set DATABASE_URL"
    )]
    Elsewhere {
        /// Directory of the database.
        path: PathBuf,
    },
    /// Another process kept the start lock for too long.
    #[error("another process has been starting or stopping the private PostgreSQL for {seconds} s")]
    Busy {
        /// How long it was waited for.
        seconds: u64,
    },
}

/// Turns an I/O error into [`StartError::File`]: `.map_err(file_error("create", path))`.
pub(super) fn file_error(action: &'static str, path: &std::path::Path) -> impl FnOnce(io::Error) -> StartError {
    let path = path.to_path_buf();
    move |source| StartError::File { action, path, source }
}

/// The end of what a program said, in at most `bytes` bytes.
pub(super) fn end_of(said: &[u8], bytes: usize) -> String {
    String::from_utf8_lossy(&said[said.len().saturating_sub(bytes)..]).trim().to_owned()
}
