//! Ends a server with the process that it was started for.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Waits for the owner's end, asks the server's process group to end, insists after ten seconds, and clears up.
const SCRIPT: &str = r#"
owner=$1 signal=$2 group=$3 directory=$4
while kill -0 "$owner" 2>/dev/null && kill -0 "$group" 2>/dev/null; do sleep 0.3; done
kill "-$signal" "-$group" 2>/dev/null
for i in 0 1 2 3 4; do for j in 0 1 2 3 4 5 6 7 8 9; do kill -0 "$group" 2>/dev/null || break 2; sleep 0.2; done; done
kill -KILL "-$group" 2>/dev/null
rm -rf "$directory"
"#;

/// As above, for a PostgreSQL that is killed and started again meanwhile: the one that runs at the end is found by its
/// pid file.
const SCRIPT_OF_DIRECTORY: &str = r#"
owner=$1 directory=$2
while kill -0 "$owner" 2>/dev/null && [ -d "$directory" ]; do sleep 0.3; done
server=$(head -n 1 "$directory/postgres/cluster/postmaster.pid" 2>/dev/null)
[ -n "$server" ] && kill -CONT "$server" && kill -QUIT "$server"
rm -rf "$directory"
"#;

/// Sees to it that the private PostgreSQL of `directory` ends once process `owner` has ended, and that the directory goes.
pub(super) fn watch_directory(owner: u32, directory: &Path) -> io::Result<()> {
    spawn(SCRIPT_OF_DIRECTORY, &[owner.to_string()], directory)
}

/// Sees to it that the process group `group` gets `signal` and `directory` is removed once process `owner` has ended.
pub(super) fn watch(owner: u32, signal: &str, group: u32, directory: &Path) -> io::Result<()> {
    spawn(SCRIPT, &[owner.to_string(), signal.to_owned(), group.to_string()], directory)
}

fn spawn(script: &str, arguments: &[String], directory: &Path) -> io::Result<()> {
    // A process group of its own, so that the interrupt key ends the tests and not their watchdog, and no inherited
    // output, so that nobody who reads the tests' output waits for it.
    Command::new("sh")
        .args(["-c", script, "watchdog"])
        .args(arguments)
        .arg(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .map(drop)
}
