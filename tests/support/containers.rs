//! Servers in containers, for `TEST_CONTAINERS=1` and where nothing else can start one.
//!
//! They are started by the engine's own program: the crate `testcontainers` would bring 34 packages, among them a second
//! client for HTTP, for two commands.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::watchdog;

/// Says that servers come from containers.
const SETTING: &str = "TEST_CONTAINERS";
/// How long an image may take to be fetched, and the server in it to answer.
const START_LIMIT: Duration = Duration::from_secs(300);
const PAUSE: Duration = Duration::from_millis(100);

/// A server in a container.
pub(super) struct Image<'a> {
    /// The image with its tag.
    pub(super) name: &'a str,
    /// The port on which the server listens in it.
    pub(super) port: u16,
    /// What is set for it.
    pub(super) environment: &'a [(&'a str, &'a str)],
    /// What is told to the server itself.
    pub(super) arguments: &'a [&'a str],
}

/// Whether servers are to come from containers.
pub(super) fn wanted() -> bool {
    is_set(std::env::var(SETTING).ok().as_deref())
}

fn is_set(value: Option<&str>) -> bool {
    value.is_some_and(|value| !["", "0", "false"].contains(&value))
}

/// What the engine is asked to run: in the foreground, so that ending the client ends the container, at a port of this
/// machine alone that the engine chooses.
fn run_arguments(image: &Image<'_>, container: &str) -> Vec<String> {
    let mut arguments: Vec<String> = ["run", "--rm", "--name", container, "--publish"].map(str::to_owned).into();
    arguments.push(format!("127.0.0.1::{}", image.port));
    for (name, value) in image.environment {
        arguments.extend(["--env".to_owned(), format!("{name}={value}")]);
    }
    arguments.push(image.name.to_owned());
    arguments.extend(image.arguments.iter().map(|argument| (*argument).to_owned()));
    arguments
}

/// The port of this machine in what `docker port` tells, one address a line.
fn published(told: &str) -> Option<u16> {
    told.lines().find_map(|line| line.trim().rsplit_once(':')?.1.parse().ok())
}

/// Starts a server, and waits until it answers; the port of 127.0.0.1 where it does. It ends with the process `owner`, and
/// `directory`, which has its output, goes with it.
pub(super) fn start(
    image: &Image<'_>,
    directory: &Path,
    owner: u32,
    mut answers: impl FnMut(u16) -> bool,
) -> Result<u16, String> {
    let failed = |error: io::Error| format!("docker: {error}");
    let container = format!("vat-classification-tests-{owner}-{}", image.port);
    let output = File::create(directory.join("output")).map_err(failed)?;
    let mut client = Command::new("docker")
        .args(run_arguments(image, &container))
        .stdin(Stdio::null())
        .stdout(output.try_clone().map_err(failed)?)
        .stderr(output)
        .process_group(0)
        .spawn()
        .map_err(failed)?;
    watchdog::watch(owner, "TERM", client.id(), directory).map_err(failed)?;
    let started = Instant::now();
    let mut port = None;
    while started.elapsed() < START_LIMIT {
        ended(&mut client, directory)?;
        port = port.or_else(|| ask_port(&container, image.port));
        if let Some(port) = port.filter(|port| answers(*port)) {
            return Ok(port);
        }
        std::thread::sleep(PAUSE);
    }
    Err(format!("the container of {} does not answer after {} s", image.name, START_LIMIT.as_secs()))
}

fn ended(client: &mut Child, directory: &Path) -> Result<(), String> {
    match client.try_wait() {
        Ok(Some(status)) => {
            let said = fs::read_to_string(directory.join("output")).unwrap_or_default();
            Err(format!("docker ended with {status}: {said}"))
        }
        _ => Ok(()),
    }
}

fn ask_port(container: &str, port: u16) -> Option<u16> {
    let asked = Command::new("docker").args(["port", container, &format!("{port}/tcp")]).stdin(Stdio::null()).output();
    published(&String::from_utf8_lossy(&asked.ok()?.stdout))
}

#[test]
fn the_engine_is_asked_for_a_port_of_this_machine_alone() {
    let environment = [("POSTGRES_PASSWORD", "vat")];
    let image = Image { name: "postgres:17", port: 5432, environment: &environment, arguments: &["-c", "fsync=off"] };
    let asked = run_arguments(&image, "tests").join(" ");
    let wanted = "run --rm --name tests --publish 127.0.0.1::5432 --env POSTGRES_PASSWORD=vat postgres:17 -c fsync=off";
    assert_eq!(asked, wanted);
}

#[test]
fn the_port_is_read_from_what_the_engine_tells() {
    assert_eq!(published("127.0.0.1:49153\n"), Some(49_153));
    assert_eq!(published("[::1]:49154\n0.0.0.0:49153\n"), Some(49_154));
    for nothing in ["", "Error: No such container: tests", "127.0.0.1:"] {
        assert_eq!(published(nothing), None, "{nothing}");
    }
}

#[test]
fn containers_are_used_where_they_are_asked_for() {
    assert!(is_set(Some("1")) && is_set(Some("true")));
    assert!(!is_set(None) && !is_set(Some("")) && !is_set(Some("0")) && !is_set(Some("false")));
}
