//! Real sockets. Where a limit is to pass it is short and all others are out of reach, so that an end has one cause.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::routing::get;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;

use super::*;

/// A limit that passes within a test.
const SHORT: Duration = Duration::from_millis(20);

/// Limits that no test reaches.
fn out_of_reach() -> ServeLimits {
    let never = Duration::from_secs(3_600);
    let pace = Pace { grace: never, bytes_per_second: 1 };
    ServeLimits {
        connections: 512,
        per_peer: 512,
        patience: Duration::ZERO,
        trusted: vec![],
        first_request: never,
        idle: never,
        pace,
        answers: pace,
        drain: never,
    }
}

struct Running {
    address: SocketAddr,
    shutdown: CancellationToken,
    task: JoinHandle<ServeReport>,
}

impl Running {
    async fn start(app: Router, limits: ServeLimits) -> Running {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let shutdown = CancellationToken::new();
        let task = tokio::spawn(serve(listener, app, limits, shutdown.clone()));
        Running { address, shutdown, task }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.expect("a connection")
    }

    async fn stop(self) -> ServeReport {
        self.shutdown.cancel();
        self.task.await.expect("a report")
    }
}

fn hello() -> Router {
    Router::new().route("/", get(|| async { "hello" }))
}

/// A router whose answer waits: it tells when a request is in, and answers when told.
fn waiting() -> (Router, mpsc::Receiver<()>, Arc<Semaphore>) {
    let (entered, told) = mpsc::channel(16);
    let release = Arc::new(Semaphore::new(0));
    let answer = Arc::clone(&release);
    let handler = move || {
        let (entered, answer) = (entered.clone(), Arc::clone(&answer));
        async move {
            entered.send(()).await.expect("the test listens");
            answer.acquire().await.expect("open").forget();
            "done"
        }
    };
    (Router::new().route("/", get(handler)), told, release)
}

async fn send(stream: &mut TcpStream, text: &str) {
    stream.write_all(text.as_bytes()).await.expect("sent");
}

/// Reads one answer, headers and a body of known length.
async fn answer(stream: &mut TcpStream, end: &str) -> String {
    let mut text = String::new();
    while !text.ends_with(end) {
        let mut bytes = [0; 1024];
        let length = stream.read(&mut bytes).await.expect("read");
        assert_ne!(length, 0, "the connection ended after {text:?}");
        text.push_str(std::str::from_utf8(&bytes[..length]).expect("text"));
    }
    text
}

/// True when the server has closed the connection without another byte.
async fn is_closed(stream: &mut TcpStream) -> bool {
    let mut rest = Vec::new();
    matches!(stream.read_to_end(&mut rest).await, Ok(0)) || rest.is_empty()
}

#[tokio::test]
async fn who_sends_all_before_reading_gets_the_refusal_and_keeps_the_connection() {
    let app = Router::new().route("/", axum::routing::post(|| async { axum::http::StatusCode::PAYLOAD_TOO_LARGE }));
    let running = Running::start(app, out_of_reach()).await;
    let mut stream = running.connect().await;
    let body = vec![b' '; 8 << 20];
    for _ in 0..2 {
        send(&mut stream, &format!("POST / HTTP/1.1\r\nhost: test\r\ncontent-length: {}\r\n\r\n", body.len())).await;
        stream.write_all(&body).await.expect("all of it is taken in");
        assert!(answer(&mut stream, "\r\n\r\n").await.starts_with("HTTP/1.1 413"));
    }
    // A client that asks first is refused at once, and not told to send.
    send(&mut stream, "POST / HTTP/1.1\r\nhost: test\r\nexpect: 100-continue\r\ncontent-length: 9\r\n\r\n").await;
    assert!(answer(&mut stream, "\r\n\r\n").await.starts_with("HTTP/1.1 413"));
    running.stop().await;
}

const REQUEST: &str = "GET / HTTP/1.1\r\nhost: test\r\n\r\n";

#[tokio::test]
async fn headers_that_never_end_are_cut() {
    let beginnings = ["", "G", "PRI * HT", "GET / HTTP/1.1\r\nhost: test\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"];
    for beginning in beginnings {
        let running = Running::start(hello(), ServeLimits { first_request: SHORT, ..out_of_reach() }).await;
        let began = std::time::Instant::now();
        let mut stream = running.connect().await;
        send(&mut stream, beginning).await;
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
        assert!(began.elapsed() >= SHORT, "{beginning:?} was cut after {:?}", began.elapsed());
        assert_eq!(running.stop().await, ServeReport { accepted: 1, cut: 0 });
    }
}

#[tokio::test]
async fn an_idle_connection_is_closed_after_the_idle_limit() {
    let running = Running::start(hello(), ServeLimits { idle: SHORT, ..out_of_reach() }).await;
    let mut stream = running.connect().await;
    send(&mut stream, REQUEST).await;
    answer(&mut stream, "hello").await;
    let began = std::time::Instant::now();
    assert!(is_closed(&mut stream).await);
    assert!(began.elapsed() >= SHORT, "{:?}", began.elapsed());
    running.stop().await;
}

#[tokio::test]
async fn a_shutdown_closes_idle_connections_at_once() {
    let running = Running::start(hello(), out_of_reach()).await;
    let mut used = running.connect().await;
    send(&mut used, REQUEST).await;
    answer(&mut used, "hello").await;
    assert_eq!(running.stop().await, ServeReport { accepted: 1, cut: 0 });
    assert!(is_closed(&mut used).await);
}

#[tokio::test]
async fn a_request_under_way_finishes_after_a_shutdown() {
    let (app, mut told, release) = waiting();
    let running = Running::start(app, out_of_reach()).await;
    let mut stream = running.connect().await;
    send(&mut stream, REQUEST).await;
    told.recv().await.expect("the request is in");
    running.shutdown.cancel();
    // The listener is gone before the request is let go on.
    while TcpStream::connect(running.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    release.add_permits(1);
    let answer = answer(&mut stream, "done").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("connection: close"), "{answer}");
    assert_eq!(running.stop().await.cut, 0);
    assert!(is_closed(&mut stream).await);
}

#[tokio::test]
async fn a_request_that_does_not_finish_is_cut_when_the_time_to_drain_is_over() {
    let (app, mut told, _release) = waiting();
    let running = Running::start(app, ServeLimits { drain: SHORT, ..out_of_reach() }).await;
    let mut stream = running.connect().await;
    send(&mut stream, REQUEST).await;
    told.recv().await.expect("the request is in");
    let began = std::time::Instant::now();
    assert_eq!(running.stop().await, ServeReport { accepted: 1, cut: 1 });
    assert!(began.elapsed() >= SHORT);
    assert!(is_closed(&mut stream).await);
}

#[tokio::test]
async fn a_connection_too_many_waits_while_others_are_served_and_takes_the_place_of_one_that_lies_idle() {
    let (app, mut told, release) = waiting();
    // Long enough for a request to come in, and short enough to wait for.
    let patience = Duration::from_millis(500);
    let running = Running::start(app, ServeLimits { connections: 1, patience, ..out_of_reach() }).await;
    let mut first = running.connect().await;
    send(&mut first, REQUEST).await;
    told.recv().await.expect("the first is in");
    let mut second = running.connect().await;
    send(&mut second, REQUEST).await;
    tokio::time::sleep(SHORT).await;
    assert!(told.try_recv().is_err(), "the second is not in while the first is served");
    release.add_permits(1);
    answer(&mut first, "done").await;
    told.recv().await.expect("the second is in");
    assert!(is_closed(&mut first).await, "the first lay idle");
    release.add_permits(1);
    answer(&mut second, "done").await;
    assert_eq!(running.stop().await.accepted, 2);
}

#[tokio::test]
async fn a_client_is_served_whatever_others_hold_open() {
    const LIMIT: usize = 64;
    let app = Router::new().route("/", get(|| async { "hello" }).post(|body: String| async move { body }));
    for beginning in [
        "",
        "GET / HT",
        REQUEST,
        "POST / HTTP/1.1\r\nhost: test\r\ncontent-length: 100\r\n\r\nx",
        "POST / HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n",
    ] {
        let running = Running::start(app.clone(), ServeLimits { connections: LIMIT, ..out_of_reach() }).await;
        let mut held = Vec::new();
        for _ in 0..4 * LIMIT {
            let mut stream = running.connect().await;
            send(&mut stream, beginning).await;
            held.push(stream);
        }
        let mut client = running.connect().await;
        send(&mut client, REQUEST).await;
        let answered = tokio::time::timeout(Duration::from_secs(5), answer(&mut client, "hello")).await;
        assert!(answered.is_ok(), "no answer beside {beginning:?}");
        running.task.abort();
    }
}

#[tokio::test]
async fn over_long_headers_are_refused() {
    let cases = [
        (format!("GET / HTTP/1.1\r\nhost: test\r\nx: {}\r\n\r\n", "a".repeat(2 * HEADER_BYTES)), "431"),
        (format!("GET / HTTP/1.1\r\nhost: test\r\n{}\r\n", "x: a\r\n".repeat(HEADERS)), "431"),
        (format!("GET /?{} HTTP/1.1\r\nhost: test\r\n\r\n", "a".repeat(24 << 10)), "200"),
    ];
    for (request, wanted) in cases {
        let running = Running::start(hello(), out_of_reach()).await;
        let mut stream = running.connect().await;
        // The server may answer and close before it has read all.
        let _ = stream.write_all(request.as_bytes()).await;
        let mut status = [0; 12];
        stream.read_exact(&mut status).await.expect("a status");
        assert_eq!(status, *format!("HTTP/1.1 {wanted}").as_bytes());
        drop(stream);
        running.stop().await;
    }
}

#[tokio::test]
async fn a_body_that_arrives_too_slowly_ends_with_an_error_that_says_so() {
    use futures::StreamExt;
    let pace = Pace { grace: SHORT, bytes_per_second: 1 << 30 };
    let slow = futures::stream::once(async { Ok::<_, io::Error>(axum::body::Bytes::from("x")) })
        .chain(futures::stream::pending());
    let body = Body::new(Paced::new(Body::from_stream(slow), pace, None));
    let error = axum::body::to_bytes(body, usize::MAX).await.expect_err("too slow");
    assert!(is_too_slow(&error), "{error:?}");
    let quick = Body::new(Paced::new(Body::from("all at once"), pace, None));
    assert_eq!(axum::body::to_bytes(quick, usize::MAX).await.expect("a body"), "all at once");
    assert!(!is_too_slow(&io::Error::other("another")));
}

#[tokio::test]
async fn a_peer_that_takes_nothing_or_too_little_is_cut() {
    let pace = Pace { grace: SHORT * 5, bytes_per_second: 1 << 30 };
    // A byte comes long before the grace is over, and is as good as none.
    for taken in [0, 1] {
        let (here, mut there) = tokio::io::duplex(16);
        let mut stream = StalledWrites::new(here, pace, Activity::new());
        let began = std::time::Instant::now();
        let taking = async {
            let mut bytes = vec![0; taken];
            loop {
                tokio::time::sleep(SHORT).await;
                there.read_exact(&mut bytes).await.expect("bytes");
            }
        };
        let bytes = [0; 4096];
        let error = tokio::select! {
            sent = stream.write_all(&bytes) => sent.expect_err("too little is taken"),
            () = taking => unreachable!("it goes on"),
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(began.elapsed() >= pace.grace, "{:?}", began.elapsed());
    }
}

#[tokio::test]
async fn a_peer_that_takes_what_comes_is_not_cut_however_long_the_answer() {
    // Each byte earns as much time as a wait for it may take.
    let pace = Pace { grace: Duration::from_secs(3_600), bytes_per_second: 1 };
    let (here, mut there) = tokio::io::duplex(16);
    let mut stream = StalledWrites::new(here, pace, Activity::new());
    let taking = tokio::spawn(async move { tokio::io::copy(&mut there, &mut tokio::io::sink()).await });
    stream.write_all(&[0; 4096]).await.expect("all is taken");
    drop(stream);
    assert_eq!(taking.await.expect("no panic").expect("bytes"), 4096);
}

#[tokio::test]
async fn an_answer_counts_as_under_way_until_its_body_is_gone() {
    let activity = Activity::new();
    let answer = activity.begin().until_sent(axum::response::Response::new(Body::from("text")));
    let mut idle = std::pin::pin!(activity.idle_for_too_long(Duration::ZERO, Duration::ZERO));
    assert!(futures::poll!(idle.as_mut()).is_pending());
    drop(answer);
    idle.await;
}

#[test]
fn the_pause_after_a_failure_to_accept_grows_to_a_limit() {
    let no_files = io::Error::from_raw_os_error(24);
    let cases = [(0, 5), (1, 10), (7, 640), (8, 1_000), (40, 1_000), (u32::MAX, 1_000)];
    for (failures, milliseconds) in cases {
        assert_eq!(pause_after(&no_files, failures), Some(Duration::from_millis(milliseconds)), "{failures}");
    }
    assert_eq!(pause_after(&io::ErrorKind::ConnectionAborted.into(), 3), None);
}
