//! PostgreSQL's `postmaster.pid`: which process serves a cluster, and whether it is ready.

use std::fs;
use std::io;
use std::path::Path;

use rustix::process::{Pid, test_kill_process};

/// What stands in a `postmaster.pid` (the layout is that of PostgreSQL's `miscadmin.h`): the process on line 1, its
/// state on line 8.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PidFile {
    pid: Pid,
    status: String,
}

impl PidFile {
    /// The pid file of `cluster` as it stands, true or stale.
    pub(super) fn read(cluster: &Path) -> Option<PidFile> {
        parse(&fs::read_to_string(cluster.join("postmaster.pid")).ok()?)
    }

    /// The pid file of `cluster` if the process it names is alive and is the server of this cluster.
    pub(super) fn of_running(cluster: &Path) -> Option<PidFile> {
        PidFile::read(cluster).filter(|file| serves(file.pid, cluster))
    }

    pub(super) fn pid(&self) -> Pid {
        self.pid
    }

    pub(super) fn is_ready(&self) -> bool {
        self.status == "ready"
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.status == "stopping"
    }
}

/// Whether `pid` is alive and works in `cluster`. A number that another program has been given since, as happens after
/// a restart of a machine or container, does not count.
pub(super) fn serves(pid: Pid, cluster: &Path) -> bool {
    if test_kill_process(pid) == Err(rustix::io::Errno::SRCH) {
        return false;
    }
    match fs::read_link(format!("/proc/{}/cwd", pid.as_raw_nonzero())) {
        // A server works in its cluster's directory from its start to its end.
        Ok(directory) => cluster.canonicalize().is_ok_and(|cluster| cluster == directory),
        // Root in a container may not look there where the server runs as another user; how it was called anybody may read.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).is_ok_and(|called| is_called(&called, cluster))
        }
        // No answer for a process that has ended and not been waited for, or that belongs to somebody else; where the
        // system has no /proc, the number has to do.
        Err(error) => error.kind() == io::ErrorKind::NotFound && !Path::new("/proc/self/cwd").exists(),
    }
}

/// Whether a program was called as the server of `cluster`: with `-D` and its directory.
fn is_called(called: &[u8], cluster: &Path) -> bool {
    let words: Vec<&[u8]> = called.split(|byte| *byte == 0).collect();
    words.windows(2).any(|pair| pair == [b"-D".as_slice(), cluster.as_os_str().as_encoded_bytes()])
}

fn parse(text: &str) -> Option<PidFile> {
    let mut lines = text.lines();
    let pid = lines.next()?.trim().parse().ok().filter(|pid| *pid > 0).and_then(Pid::from_raw)?;
    let status = lines.nth(6).unwrap_or_default().trim().to_owned();
    Some(PidFile { pid, status })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pid_file_tells_process_and_state() {
        let full = "4711\n/data\n1700000000\n5432\n/run\n\n  5432001    123456\nready   \n";
        let cases = [
            (full, Some((4711, "ready"))),
            ("4711\n/data\n1700000000\n5432\n/run\n\n  5432001    123456\nstopping\n", Some((4711, "stopping"))),
            ("4711\n/data\n", Some((4711, ""))),
            ("", None),
            ("-1\n", None),
            ("0\n", None),
            ("99999999999\n", None),
        ];
        for (text, wanted) in cases {
            let found = parse(text).map(|file| (file.pid.as_raw_nonzero().get(), file.status));
            assert_eq!(found, wanted.map(|(pid, status)| (pid, status.to_owned())), "{text:?}");
        }
    }

    #[test]
    fn a_server_is_known_by_how_it_was_called() {
        let cluster = Path::new("/data/postgres/cluster");
        for (called, wanted) in [
            (&b"/usr/bin/postgres\0-D\0/data/postgres/cluster\0-p\x005432\0"[..], true),
            (b"/usr/bin/postgres\0-D\0/data/postgres/cluster2\0", false),
            (b"sleep\x0010\0", false),
            (b"", false),
        ] {
            assert_eq!(is_called(called, cluster), wanted);
        }
    }

    #[test]
    fn a_living_process_that_works_elsewhere_does_not_serve_a_cluster() {
        let directory = tempfile::tempdir().expect("a directory");
        assert!(!serves(rustix::process::getpid(), directory.path()));
    }
}
