//! The attacks, each with what it was answered.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::future::join_all;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use crate::inputs::{given_back, large_picture, picture_form};
use crate::probe::Service;
use crate::wire::Wire;

/// Bytes of the largest body that is taken anywhere.
const LARGEST_BODY: usize = 32 << 20;
/// How long connections are held open.
const HOLD: Duration = Duration::from_secs(12);
/// Clients that find out what the service can do, and how long they do so.
const SUSTAINING: (usize, Duration) = (16, Duration::from_secs(10));
/// How long the service is overloaded, and how often as much as it can do is asked of it.
const OVERLOAD: (Duration, f64) = (Duration::from_secs(60), 4.0);
/// Requests without an answer at one time: what is due beyond them is not sent, and counted.
const MOST_UNANSWERED: usize = 2_000;

pub(crate) type Attack = fn(Service) -> Pin<Box<dyn Future<Output = String>>>;

pub(crate) fn all() -> Vec<(&'static str, Attack)> {
    vec![
        ("3 bodies of 4.8 million objects", |service| Box::pin(bodies(service, "{\"\":0},", 3))),
        ("3 bodies of 16 million numbers", |service| Box::pin(bodies(service, "1,", 3))),
        ("2,000 methods of 60 kB", |service| Box::pin(methods(service))),
        ("5,000 idle connections", |service| Box::pin(hold(service, 5_000, Beginning::Answered))),
        ("1,000 slow headers", |service| Box::pin(hold(service, 1_000, Beginning::Headers))),
        ("1,000 slow bodies", |service| Box::pin(hold(service, 1_000, Beginning::Body))),
        ("600 readers that do not read", |service| Box::pin(hold(service, 600, Beginning::Unread))),
        ("60 x 1,000 long classifications", |service| Box::pin(classifications(service))),
        ("8 classifications given up", |service| Box::pin(given_up(service))),
        ("8 pictures of 49 million pixels", |service| Box::pin(pictures(service))),
        ("4 x 3,000 streams taken back", |service| Box::pin(resets(service))),
        ("4 endless bodies", |service| Box::pin(endless(service))),
        ("4 times the load", |service| Box::pin(overload(service))),
    ]
}

/// How many answers had which status.
fn counted(statuses: impl IntoIterator<Item = u16>) -> String {
    let mut counts: BTreeMap<u16, usize> = BTreeMap::new();
    for status in statuses {
        *counts.entry(status).or_default() += 1;
    }
    counts.into_iter().map(|(status, count)| format!("{count} x {status}")).collect::<Vec<_>>().join(", ")
}

async fn bodies(service: Service, part: &str, count: usize) -> String {
    let body = format!("{{\"a\":[{}1]}}", part.repeat((LARGEST_BODY - 12) / part.len()));
    counted(join_all((0..count).map(|_| service.post("/products/global", body.clone()))).await)
}

async fn methods(service: Service) -> String {
    let mut answered = 0;
    for number in 0..2_000 {
        let Ok(mut stream) = TcpStream::connect(service.address()).await else { continue };
        let method = format!("{}{number}", "M".repeat(60_000));
        let request = format!("{method} /nowhere HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
        let mut answer = Vec::new();
        if stream.write_all(request.as_bytes()).await.is_ok() && stream.read_to_end(&mut answer).await.is_ok() {
            answered += 1;
        }
    }
    format!("{answered} answered")
}

#[derive(Clone, Copy, PartialEq)]
enum Beginning {
    Answered,
    Headers,
    Body,
    Unread,
}

/// Opens connections, begins something on each, and adds a byte a second where that makes sense.
async fn hold(service: Service, count: usize, beginning: Beginning) -> String {
    let credential = format!("host: a\r\nauthorization: Bearer {}\r\n", service.token);
    let text = match beginning {
        Beginning::Answered => "GET /health/live HTTP/1.1\r\nhost: a\r\n\r\n".to_owned(),
        Beginning::Headers => "GET /health/live HTTP/1.1\r\nhost: a\r\nx: ".to_owned(),
        Beginning::Body => format!(
            "POST {} HTTP/1.1\r\n{credential}content-type: application/json\r\ncontent-length: 1000000\r\n\r\n",
            service.path("/products/global")
        ),
        Beginning::Unread => {
            format!("GET {} HTTP/1.1\r\n{credential}\r\n", service.path("/products/global?size=1000"))
        }
    };
    let mut streams = Vec::new();
    for _ in 0..count {
        if let Ok(Ok(mut stream)) =
            tokio::time::timeout(Duration::from_secs(5), TcpStream::connect(service.address())).await
            && stream.write_all(text.as_bytes()).await.is_ok()
        {
            streams.push(stream);
        }
    }
    let opened = streams.len();
    let began = Instant::now();
    while began.elapsed() < HOLD {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if matches!(beginning, Beginning::Headers | Beginning::Body) {
            let mut open = Vec::new();
            for mut stream in streams {
                if stream.write_all(b" ").await.is_ok() {
                    open.push(stream);
                }
            }
            streams = open;
        }
    }
    format!("{opened} opened, {} open after {} s", streams.len(), HOLD.as_secs())
}

fn long_items() -> String {
    let text = "Herren T-Shirt aus weicher Baumwolle mit kurzem Arm und rundem Ausschnitt. ".repeat(27);
    let items: Vec<_> = (0..1_000)
        .map(|i| json!({"languageAttributes": {"de": {"productDescription": format!("{i} {text}")}}}))
        .collect();
    json!({"taxonomy": "TARIC", "items": items}).to_string()
}

async fn classifications(service: Service) -> String {
    let body = long_items();
    let ask = || async {
        let began = Instant::now();
        (service.post("/classifications", body.clone()).await, began.elapsed())
    };
    let answers = join_all((0..60).map(|_| ask())).await;
    let refused = answers.iter().filter(|(status, _)| *status == 503).map(|(_, taken)| *taken).max();
    let refused = refused.map_or(String::new(), |taken| format!("; 503 within {:.1} s", taken.as_secs_f64()));
    format!("{}{refused}", counted(answers.into_iter().map(|(status, _)| status)))
}

async fn given_up(service: Service) -> String {
    let body = long_items();
    let short = Duration::from_millis(1_500);
    join_all((0..8).map(|_| tokio::time::timeout(short, service.post("/classifications", body.clone())))).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let before = service.cpu_seconds();
    tokio::time::sleep(Duration::from_secs(5)).await;
    format!("{:.2} s of processor in the 5 s after", service.cpu_seconds() - before)
}

/// Pictures that are small as files and take 392 MB each where they are decoded as a whole.
async fn pictures(service: Service) -> String {
    let form = picture_form(&large_picture());
    let upload = |number: usize| {
        let path = service.path(&format!("/products/global/product-picture?productId=long-{number}"));
        let request = service.client.post(format!("{}{path}", service.base)).bearer_auth(&service.token);
        let request = request.header("content-type", "multipart/form-data; boundary=X").body(form.clone());
        async { request.send().await.map_or(0, |answer| answer.status().as_u16()) }
    };
    counted(join_all((0..8).map(upload)).await)
}

/// Requests by HTTP/2 that are taken back as soon as they are sent.
async fn resets(service: Service) -> String {
    let attack = async || {
        let mut stream = TcpStream::connect(service.address()).await.ok()?;
        let mut sent = 0;
        for frames in given_back(3_000) {
            stream.write_all(&frames).await.ok()?;
            sent += 1;
        }
        Some(sent)
    };
    let whole = join_all((0..4).map(|_| attack())).await.into_iter().flatten().count();
    format!("{whole} of 4 connections took all")
}

/// Bodies without a length that do not end.
async fn endless(service: Service) -> String {
    let head = format!(
        "POST {} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
         transfer-encoding: chunked\r\n\r\n",
        service.path("/products/global"),
        service.token
    );
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
    let send = async || {
        let stream = TcpStream::connect(service.address()).await.ok()?;
        let (mut reading, mut writing) = stream.into_split();
        let mut answer = [0; 12];
        let write = async {
            let mut written = writing.write_all(head.as_bytes()).await;
            while written.is_ok() {
                written = writing.write_all(chunk.as_bytes()).await;
            }
            // The answer may be on its way still.
            std::future::pending::<()>().await;
        };
        tokio::select! {
            read = reading.read_exact(&mut answer) => drop(read.ok()?),
            () = write => {}
        }
        std::str::from_utf8(&answer[9..]).ok()?.parse().ok()
    };
    counted(join_all((0..4).map(|_| send())).await.into_iter().map(Option::unwrap_or_default))
}

async fn overload(service: Service) -> String {
    let wire = Arc::new(Wire::to(service.address()));
    let head = format!("host: {}\r\nauthorization: Bearer {}\r\n", service.address(), service.token);
    let list =
        Arc::new(format!("GET {} HTTP/1.1\r\n{head}\r\n", service.path("/products/global?size=20&detail=Small")));
    let create = format!(
        "POST {} HTTP/1.1\r\n{head}content-type: application/json\r\n",
        service.path("/products/global?updateIfExists=true")
    );
    let one = |number: usize| {
        let (wire, list) = (wire.clone(), list.clone());
        let create = (number.is_multiple_of(3)).then(|| {
            let body = json!({format!("load-{number}"): {"productDetails": {}}}).to_string();
            format!("{create}content-length: {}\r\n\r\n{body}", body.len())
        });
        async move {
            let began = Instant::now();
            let status = wire.send(create.as_ref().unwrap_or(&list).as_bytes()).await;
            (status, began.elapsed())
        }
    };
    let began = Instant::now();
    let closed = join_all((0..SUSTAINING.0).map(|client| {
        let one = &one;
        async move {
            let mut done = 0;
            while began.elapsed() < SUSTAINING.1 {
                done += usize::from((200..300).contains(&one(client + done * SUSTAINING.0).await.0));
            }
            done
        }
    }));
    let sustained = closed.await.into_iter().sum::<usize>() as f64 / SUSTAINING.1.as_secs_f64();
    let (time, times) = OVERLOAD;
    let total = (sustained * times * time.as_secs_f64()) as usize;
    let (sent, mut unsent) = (Arc::new(Semaphore::new(MOST_UNANSWERED)), 0_usize);
    let answers = Arc::new(Mutex::new(Vec::with_capacity(total)));
    let began = Instant::now();
    for number in 0..total {
        let due = began + Duration::from_secs_f64(number as f64 / (sustained * times));
        // A late timer sends several at once, as a crowd does; an early one waits.
        if due > Instant::now() {
            tokio::time::sleep_until(due.into()).await;
        }
        let Ok(place) = sent.clone().try_acquire_owned() else {
            unsent += 1;
            tokio::task::yield_now().await;
            continue;
        };
        let (answers, asked) = (answers.clone(), one(number));
        tokio::spawn(async move {
            let answer = asked.await;
            answers.lock().expect("answers").push(answer);
            drop(place);
        });
    }
    let seconds = began.elapsed().as_secs_f64();
    let in_time = answers.lock().expect("answers").iter().filter(|(status, _)| (200..300).contains(status)).count();
    // All are back when every place is free.
    let _ = sent.acquire_many(MOST_UNANSWERED as u32).await;
    let answers = std::mem::take(&mut *answers.lock().expect("answers"));
    let slow = |wanted: fn(u16) -> bool| {
        let mut taken: Vec<Duration> =
            answers.iter().filter(|(status, _)| wanted(*status)).map(|(_, taken)| *taken).collect();
        taken.sort_unstable();
        (taken.len(), taken.get(taken.len() * 99 / 100).map_or(0, Duration::as_millis))
    };
    let (served, served_ms) = slow(|status| (200..300).contains(&status));
    let (shed, shed_ms) = slow(|status| status == 503);
    let share = in_time as f64 / seconds / sustained;
    let rest = answers.len() - served - shed;
    format!(
        "{sustained:.0}/s; {:.1} times offered; {share:.2} served, p99 {served_ms} ms; {shed} x 503, p99 {shed_ms} ms; \
         {rest} other; {unsent} not sent",
        total as f64 / seconds / sustained
    )
}
