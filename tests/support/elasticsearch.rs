//! One Elasticsearch for all tests of a `cargo test`.
//!
//! `ELASTICSEARCH_URL` names it, else it is started from the plain distribution that Maven has for tests. What runs on
//! that runs on every full one. Without Maven, or with `TEST_CONTAINERS=1`, Docker starts the full one.

use std::fs::{self, File};
use std::io;
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;

use super::containers::{self, Image};
use super::watchdog;

const VERSION: &str = "8.19.7";
const ARTIFACT: &str = "org.elasticsearch.distribution.integ-test-zip:elasticsearch:8.19.7:zip";
const ARTIFACT_SHA256: &str = "cb7f86fb6e68e85ef6f531ae5c68458ecfe42371150403b22b2ed21381581cbb";
const MAVEN_PLUGIN: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1";
const HEAP: &str = "-Xms512m -Xmx512m";
/// How long the server may take to listen; it takes about 12 s on two cores with nothing else to do.
const START_LIMIT: Duration = Duration::from_secs(180);
/// Where the server listens in its container.
const HTTP_PORT: u16 = 9200;
const PAUSE: Duration = Duration::from_millis(100);

/// The URL of an Elasticsearch that answers. Tests share it: each uses index names of its own.
///
/// # Panics
///
/// When there is none and none can be started.
pub(crate) async fn elasticsearch() -> String {
    static URL: OnceCell<Result<String, String>> = OnceCell::const_new();
    let open = || async { tokio::task::spawn_blocking(open).await.unwrap_or_else(|error| Err(error.to_string())) };
    match URL.get_or_init(open).await {
        Ok(url) => url.clone(),
        Err(error) => panic!("no Elasticsearch to test with (ELASTICSEARCH_URL may name one): {error}"),
    }
}

fn open() -> Result<String, String> {
    if let Ok(url) = std::env::var("ELASTICSEARCH_URL") {
        return Ok(url);
    }
    let cache = cache_directory().map_err(|error| format!("no directory to keep it in: {error}"))?;
    let lock = File::create(cache.join("lock")).map_err(|error| format!("no lock: {error}"))?;
    lock.lock().map_err(|error| format!("no lock: {error}"))?;
    let owner = owner();
    let run = cache.join(format!("run-{owner}"));
    if let Ok(url) = fs::read_to_string(run.join("url"))
        && answers(&url)
    {
        return Ok(url);
    }
    remove_abandoned(&cache);
    fs::create_dir_all(&run).map_err(|error| format!("{}: {error}", run.display()))?;
    let url = if has_program("mvn") && !containers::wanted() {
        start(&cache, &run, owner)?
    } else {
        start_in_docker(&run, owner)?
    };
    fs::write(run.join("url"), &url).map_err(|error| format!("{}: {error}", run.display()))?;
    Ok(url)
}

/// Whose end is also the server's: `cargo test`, whose test binaries follow each other, or else this process.
fn owner() -> u32 {
    let parent = rustix::process::getppid().map(|parent| parent.as_raw_nonzero().get().unsigned_abs());
    match parent {
        Some(parent) if std::env::var_os("CARGO").is_some() => parent,
        _ => std::process::id(),
    }
}

/// Where the distribution is kept from one run to the next: everyone may read there, since root starts the server as
/// another user.
fn cache_directory() -> io::Result<PathBuf> {
    let own = rustix::process::geteuid().as_raw();
    let path = Path::new("/var/tmp").join(format!("vat-classification-tests-{own}"));
    fs::create_dir_all(&path)?;
    if fs::symlink_metadata(&path)?.uid() != own {
        return Err(io::Error::other(format!("{} belongs to somebody else", path.display())));
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    Ok(path)
}

/// Removes what runs without a living owner left behind, such as after a loss of power.
fn remove_abandoned(cache: &Path) {
    for entry in fs::read_dir(cache).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner =
            name.strip_prefix("run-").and_then(|owner| owner.parse().ok()).and_then(rustix::process::Pid::from_raw);
        if owner.is_some_and(|owner| rustix::process::test_kill_process(owner) == Err(rustix::io::Errno::SRCH)) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn answers(url: &str) -> bool {
    url.strip_prefix("http://").is_some_and(|address| TcpStream::connect(address).is_ok())
}

fn has_program(name: &str) -> bool {
    Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
}

/// The unpacked distribution, fetched if it is not there.
fn distribution(cache: &Path) -> Result<PathBuf, String> {
    let unpacked = cache.join(format!("elasticsearch-{VERSION}"));
    if unpacked.is_dir() {
        return Ok(unpacked);
    }
    eprintln!("Fetching Elasticsearch {VERSION} (100 MB), once ...");
    let fetched = cache.join("fetched");
    let _ = fs::remove_dir_all(&fetched);
    maven("copy", &fetched)?;
    let archive = fetched.join(format!("elasticsearch-{VERSION}.zip"));
    let bytes = fs::read(&archive).map_err(|error| format!("{}: {error}", archive.display()))?;
    if data_encoding::HEXLOWER.encode(&Sha256::digest(bytes)) != ARTIFACT_SHA256 {
        return Err(format!("{} is not the archive that is known", archive.display()));
    }
    maven("unpack", &fetched)?;
    let moved = fs::rename(fetched.join(format!("elasticsearch-{VERSION}")), &unpacked);
    moved.map_err(|error| format!("{}: {error}", unpacked.display()))?;
    let _ = fs::remove_dir_all(&fetched);
    Ok(unpacked)
}

/// Maven unpacks as well as it copies, so that neither `unzip` nor a JDK is needed.
fn maven(goal: &str, directory: &Path) -> Result<(), String> {
    run(Command::new("mvn")
        .args(["-q", "-B", &format!("{MAVEN_PLUGIN}:{goal}"), &format!("-Dartifact={ARTIFACT}")])
        .arg(format!("-DoutputDirectory={}", directory.display())))
    .map(drop)
}

fn run(command: &mut Command) -> Result<Output, String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(output);
    }
    let said = [output.stdout, output.stderr].concat();
    Err(format!("{command:?} failed: {}", String::from_utf8_lossy(&said)))
}

fn start(cache: &Path, run: &Path, owner: u32) -> Result<String, String> {
    let program = distribution(cache)?;
    let failed = |error: io::Error| format!("{}: {error}", run.display());
    let user = rustix::process::geteuid().is_root().then(nobody);
    for name in ["config", "data", "logs", "tmp"] {
        let _ = fs::remove_dir_all(run.join(name));
        fs::create_dir(run.join(name)).map_err(failed)?;
    }
    for file in ["elasticsearch.yml", "jvm.options", "log4j2.properties"] {
        // Written anew rather than copied, since the original's rights exclude other users.
        let text = fs::read(program.join("config").join(file)).map_err(failed)?;
        fs::write(run.join("config").join(file), text).map_err(failed)?;
    }
    for name in ["config", "data", "logs", "tmp"] {
        std::os::unix::fs::chown(run.join(name), user, user).map_err(failed)?;
    }
    let java = java_home()?;
    let mut server = spawn(&program, &java, run, user).map_err(failed)?;
    let group = server.id();
    watchdog::watch(owner, "TERM", group, run).map_err(failed)?;
    let url = await_address(&mut server, run).inspect_err(|_| drop(server.kill()))?;
    Ok(url)
}

/// Elasticsearch refuses to run as root.
fn nobody() -> u32 {
    const USUAL: u32 = 65_534;
    let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let line = passwd.lines().find(|line| line.starts_with("nobody:"));
    line.and_then(|line| line.split(':').nth(2)?.parse().ok()).unwrap_or(USUAL)
}

/// This distribution has no Java of its own and wants to be told where one is.
fn java_home() -> Result<PathBuf, String> {
    let settings = run(Command::new("java").args(["-XshowSettings:properties", "-version"]))?;
    let text = String::from_utf8_lossy(&settings.stderr).into_owned();
    let home = text.lines().find_map(|line| line.trim().strip_prefix("java.home = "));
    home.map(PathBuf::from).ok_or_else(|| format!("java does not say where it is: {text}"))
}

fn spawn(program: &Path, java: &Path, run: &Path, user: Option<u32>) -> io::Result<Child> {
    let output = File::create(run.join("output"))?;
    let mut command = Command::new(program.join("bin/elasticsearch"));
    for (name, value) in [("path.data", "data"), ("path.logs", "logs")] {
        command.args(["-E", &format!("{name}={}", run.join(value).display())]);
    }
    for setting in [
        "discovery.type=single-node",
        "xpack.security.enabled=false",
        "network.host=127.0.0.1",
        // Any free port, and a file that says which.
        "http.port=0",
        "transport.port=0",
        "node.portsfile=true",
        // A full disk is no reason for read-only indices of a few kilobytes.
        "cluster.routing.allocation.disk.threshold_enabled=false",
    ] {
        command.args(["-E", setting]);
    }
    command
        .current_dir(run)
        .env("ES_JAVA_HOME", java)
        .env("ES_JAVA_OPTS", HEAP)
        .env("ES_PATH_CONF", run.join("config"))
        .env("ES_TMPDIR", run.join("tmp"))
        .env("HOME", run.join("tmp"))
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .process_group(0);
    if let Some(user) = user {
        command.uid(user).gid(user);
    }
    command.spawn()
}

fn await_address(server: &mut Child, run: &Path) -> Result<String, String> {
    let said = || {
        let text = fs::read_to_string(run.join("output")).unwrap_or_default();
        text.lines().rev().take(8).collect::<Vec<_>>().join("\n")
    };
    let started = Instant::now();
    while started.elapsed() < START_LIMIT {
        if let Some(line) =
            fs::read_to_string(run.join("logs/http.ports")).ok().and_then(|t| t.lines().next().map(str::to_owned))
        {
            return Ok(format!("http://{line}"));
        }
        if let Ok(Some(status)) = server.try_wait() {
            return Err(format!("it ended with {status}: {}", said()));
        }
        std::thread::sleep(PAUSE);
    }
    Err(format!("it does not listen after {} s: {}", START_LIMIT.as_secs(), said()))
}

/// Starts the full distribution in a container.
fn start_in_docker(run: &Path, owner: u32) -> Result<String, String> {
    if !has_program("docker") {
        return Err("it needs Maven and Java 17, or Docker: install them, or set ELASTICSEARCH_URL".to_owned());
    }
    let image = format!("elasticsearch:{VERSION}");
    let environment = [("ES_JAVA_OPTS", HEAP), ("discovery.type", "single-node"), ("xpack.security.enabled", "false")];
    let image = Image { name: &image, port: HTTP_PORT, environment: &environment, arguments: &[] };
    // The port is open as soon as the container is; the server in it is when it answers.
    let port = containers::start(&image, run, owner, speaks_http)?;
    Ok(format!("http://127.0.0.1:{port}"))
}

fn speaks_http(port: u16) -> bool {
    use std::io::{Read, Write};
    let ask = || -> io::Result<bool> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.write_all(b"GET /_cluster/health HTTP/1.0\r\n\r\n")?;
        let mut status = [0; 12];
        stream.read_exact(&mut status)?;
        Ok(&status[9..] == b"200")
    };
    ask().unwrap_or(false)
}
