//! What one client may take of connections and of time, on real sockets; what a start asks of the system; and what is
//! kept up while nobody asks.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::routing::get;
use futures::stream;
use metrics_exporter_prometheus::PrometheusBuilder;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::process::Command;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use vat_classification::http::keep_metrics;
use vat_classification::http::serve::{Pace, ServeLimits, serve};

use crate::support::database;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_vat-classification");
/// A limit that passes within a test.
const SHORT: Duration = Duration::from_millis(250);
/// One that no test reaches.
const NEVER: Duration = Duration::from_secs(3_600);
/// How long anything is waited for that has to happen.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often it is looked whether something has happened that tells nobody.
const LOOK: Duration = Duration::from_millis(50);
/// Connections that one address may have.
const PER_PEER: usize = 2;
/// What the system keeps for a client that does not read: little.
const RECEIVE_BYTES: u32 = 32 << 10;
/// An answer that is more than the system takes in for a client that does not read.
const LARGE_BYTES: usize = 32 << 20;
/// A piece of one that never ends.
static PIECE: [u8; 64 << 10] = [b'x'; 64 << 10];
/// Files that a start finds it may open, and those that it may ask for.
const FILES: [u32; 2] = [300, 1_000];
/// Of these, what is left for connections.
const CONNECTIONS: u32 = 744;

/// Listens and serves until the test ends; where.
async fn serving(address: &str, app: Router, limits: ServeLimits) -> SocketAddr {
    let listener = TcpListener::bind(address).await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(serve(listener, app, limits, CancellationToken::new()));
    address
}

fn out_of_reach() -> ServeLimits {
    ServeLimits {
        patience: Duration::ZERO,
        first_request: NEVER,
        idle: NEVER,
        pace: Pace { grace: NEVER, bytes_per_second: 1 },
        answers: Pace { grace: NEVER, bytes_per_second: 1 },
        drain: NEVER,
        ..ServeLimits::default()
    }
}

/// Connects from an address of this machine to the same.
async fn connect(from: IpAddr, port: u16) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(RECEIVE_BYTES).expect("a small buffer");
    socket.bind((from, 0).into()).expect("an address of this machine");
    socket.connect((from, port).into()).await.expect("a connection")
}

async fn hello() -> &'static str {
    "hello"
}

async fn ask(stream: &mut TcpStream, path: &str) {
    let request = format!("GET {path} HTTP/1.1\r\nhost: test\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("sent");
}

/// Reads the head of an answer and nothing behind it.
async fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(timeout(PATIENCE, stream.read_u8()).await.expect("an answer in time").expect("a head"));
    }
    let head = String::from_utf8(head).expect("text").to_lowercase();
    assert!(head.starts_with("http/1.1 200"), "{head}");
    head
}

/// Reads an answer.
async fn answer(stream: &mut TcpStream) -> String {
    let head = head(stream).await;
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or_else(|| panic!("no length: {head}"))];
    timeout(PATIENCE, stream.read_exact(&mut body)).await.expect("an answer in time").expect("a body");
    String::from_utf8(body).expect("text")
}

/// Reads until the service ends the connection; how many bytes still came.
async fn rest(stream: &mut TcpStream) -> usize {
    let mut rest = Vec::new();
    // One that is cut may end with an error, behind what came before it.
    let _ = timeout(PATIENCE, stream.read_to_end(&mut rest)).await.expect("an end in time");
    rest.len()
}

/// An address under which others know this machine.
fn own_address() -> Option<IpAddr> {
    // Sends nothing: it is only asked from where something would be sent.
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("203.0.113.1:9").ok()?;
    socket.local_addr().ok().map(|address| address.ip()).filter(|address| !address.is_loopback())
}

#[tokio::test]
async fn an_address_has_so_many_connections_and_others_get_in_beside_them() {
    let Some(own) = own_address() else {
        eprintln!("this machine has no address that others know: the limit of one address was NOT tested");
        return;
    };
    let (entered, mut told) = mpsc::channel(PER_PEER);
    let release = Arc::new(Semaphore::new(0));
    let until_released = {
        let release = Arc::clone(&release);
        move || {
            let (entered, release) = (entered.clone(), Arc::clone(&release));
            async move {
                entered.send(()).await.expect("the test listens");
                release.acquire().await.expect("open").forget();
                "done"
            }
        }
    };
    let app = Router::new().route("/", get(hello)).route("/held", get(until_released));
    let limits = ServeLimits { per_peer: PER_PEER, ..out_of_reach() };
    let port = serving("0.0.0.0:0", app, limits).await.port();
    let mut at_work = Vec::new();
    for _ in 0..PER_PEER {
        let mut stream = connect(own, port).await;
        ask(&mut stream, "/held").await;
        timeout(PATIENCE, told.recv()).await.expect("in time").expect("the request is in");
        at_work.push(stream);
    }
    assert_eq!(rest(&mut connect(own, port).await).await, 0, "one too many is closed, and told nothing");
    // The machine itself may have any number.
    for other in ["127.0.0.1", "127.0.0.2"] {
        for _ in 0..=PER_PEER {
            let mut stream = connect(other.parse().expect("an address"), port).await;
            ask(&mut stream, "/").await;
            assert_eq!(answer(&mut stream).await, "hello", "{other}");
            at_work.push(stream);
        }
    }
    release.add_permits(PER_PEER);
    for stream in &mut at_work[..PER_PEER] {
        assert_eq!(answer(stream).await, "done");
    }
    let mut newcomer = connect(own, port).await;
    ask(&mut newcomer, "/").await;
    assert_eq!(answer(&mut newcomer).await, "hello", "in the place of one that lies idle");
}

/// Tells when it is dropped.
struct Kept(mpsc::UnboundedSender<()>);

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[tokio::test]
async fn a_client_that_takes_nothing_of_its_answer_is_cut_and_what_the_answer_kept_is_let_go() {
    let (kept, mut let_go) = mpsc::unbounded_channel();
    let endless = move || {
        let kept = Kept(kept.clone());
        let piece = |kept| async move { Some((Ok::<_, Infallible>(Bytes::from_static(&PIECE)), kept)) };
        async move { Body::from_stream(stream::unfold(kept, piece)) }
    };
    let limits = ServeLimits { answers: Pace { grace: SHORT, bytes_per_second: 1 }, ..out_of_reach() };
    let address = serving("127.0.0.1:0", Router::new().route("/", get(endless)), limits).await;
    let mut client = connect(address.ip(), address.port()).await;
    ask(&mut client, "/").await;
    head(&mut client).await;
    timeout(PATIENCE, let_go.recv()).await.expect("an end in time").expect("let go");
    rest(&mut client).await;
}

#[tokio::test]
async fn a_connection_whose_answer_is_not_taken_yet_does_not_lie_idle() {
    let app = Router::new().route("/", get(hello)).route("/large", get(|| async { vec![b'x'; LARGE_BYTES] }));
    let address = serving("127.0.0.1:0", app, ServeLimits { idle: SHORT, ..out_of_reach() }).await;
    let mut slow = connect(address.ip(), address.port()).await;
    ask(&mut slow, "/large").await;
    head(&mut slow).await;
    let mut idle = connect(address.ip(), address.port()).await;
    ask(&mut idle, "/").await;
    assert_eq!(answer(&mut idle).await, "hello");
    assert_eq!(rest(&mut idle).await, 0, "one that was answered later has been idle for too long");
    assert_eq!(rest(&mut slow).await, LARGE_BYTES);
}

#[tokio::test]
async fn a_start_raises_the_limit_of_open_files_and_takes_as_many_connections_as_that_allows() {
    let (database, files) = (database().await, tempfile::tempdir().expect("a directory"));
    let [least, most] = FILES.map(|files| files.to_string());
    let script = r#"ulimit -S -n "$1" && ulimit -H -n "$2" && shift 2 && exec "$@""#;
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh", least.as_str(), most.as_str(), PROGRAM, "serve"]);
    for name in ["PUBLIC_URL", "ELASTICSEARCH_URL", "METRICS_ADDR", "MAX_CONNECTIONS"] {
        command.env_remove(name);
    }
    command.env("DATABASE_URL", &database.url).env("DATA_DIR", files.path()).env("BIND_ADDR", "127.0.0.1:0");
    command.env("LOG_FORMAT", "json").env("RUST_LOG", "vat_classification=debug").kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut service = command.spawn().expect("the service");
    let mut lines = BufReader::new(service.stderr.take().expect("its log")).lines();
    let told = async {
        let mut seen = Vec::new();
        while let Some(line) = lines.next_line().await.expect("a line") {
            let entry: Value = serde_json::from_str(&line).unwrap_or_default();
            if entry["fields"]["message"] == "may be open at one time" {
                return entry["fields"]["connections"].clone();
            }
            seen.push(line);
        }
        panic!("the service ended: {seen:?}")
    };
    assert_eq!(timeout(PATIENCE, told).await.expect("a start in time"), CONNECTIONS);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", service.id().expect("it runs"))).expect("Linux");
    let of_files = limits.lines().find_map(|line| line.strip_prefix("Max open files")).expect("a limit");
    assert_eq!(of_files.split_whitespace().take(2).collect::<Vec<_>>(), [&most, &most]);
    service.kill().await.expect("ended");
}

#[tokio::test]
async fn histograms_take_in_what_was_recorded_while_nobody_scrapes() {
    let builder = PrometheusBuilder::new().set_buckets(&[1.0]).expect("bounds");
    let recorder = builder.build_recorder();
    let handle = recorder.handle();
    // Rendering would take in what was recorded; this only shows what has been taken in.
    let has_taken_in = |many: usize| format!("{handle:?}").contains(&format!("Histogram {{ count: {many},"));
    let shutdown = CancellationToken::new();
    let keeping = tokio::spawn(keep_metrics(handle.clone(), shutdown.clone()));
    for many in [1, 2] {
        metrics::with_local_recorder(&recorder, || metrics::histogram!("kept_seconds").record(0.5));
        assert!(!has_taken_in(many));
        let began = Instant::now();
        while !has_taken_in(many) {
            assert!(began.elapsed() < PATIENCE, "a record is kept as it is");
            tokio::time::sleep(LOOK).await;
        }
    }
    shutdown.cancel();
    timeout(PATIENCE, keeping).await.expect("in time").expect("the job ends");
}
