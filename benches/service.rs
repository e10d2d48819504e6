//! How fast a running service answers: batches, a backlog, reads by id at a fixed rate, pictures, and what webhooks send.
//!
//! `BASE_URL=http://127.0.0.1:8080 TOKEN=… cargo bench --bench service`, against a service on an empty database that runs with
//! `WEBHOOKS_ALLOW_PRIVATE=true`, since the receiver is here.

use std::io::Cursor;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::post;
use image::{ImageFormat, RgbImage};
use reqwest::Client;
use serde_json::{Value, json};
use tokio::net::TcpListener;

const BASE_PATH: &str = "/api/vat-classification/v1";
/// Products of a timed creation.
const BATCH: usize = 1_000;
/// Products of the backlog.
const BACKLOG: usize = 10_000;
/// Reads per second, and for how many seconds.
const READS: (u32, u32) = (500, 20);
/// Pictures, clients that upload them, and their width and height in pixels.
const PICTURES: (usize, usize, u32, u32) = (200, 4, 1_200, 900);

const NAMES: [&str; 10] = [
    "Herren T-Shirt Baumwolle",
    "USB-C Ladekabel 2 m",
    "Kaffeebohnen 1 kg",
    "wooden puzzle for children",
    "LED Lampe E27",
    "Damen Lederstiefel",
    "hair conditioner 250 ml",
    "Edelstahl Bratpfanne 28 cm",
    "garden hose 20 m",
    "Notizbuch A5 liniert",
];
const DESCRIPTION: &str = "Ein schönes Produkt aus gutem Material, für den täglichen Gebrauch im Haushalt.";

struct Service {
    client: Client,
    base: String,
    token: String,
}

impl Service {
    async fn get(&self, path: &str) -> Value {
        let request = self.client.get(format!("{}{BASE_PATH}{path}", self.base)).bearer_auth(&self.token);
        let answer = request.send().await.expect("an answer");
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        answer.json().await.expect("JSON")
    }

    async fn create(&self, prefix: &str, count: usize) -> Duration {
        let product = |i: usize| {
            let name = format!("{} {i}", NAMES[i % NAMES.len()]);
            let texts = json!({"de": {"productName": name, "productDescription": DESCRIPTION}});
            (format!("{prefix}-{i}"), json!({"productDetails": {"languageAttributes": texts}}))
        };
        let body = Value::Object((0..count).map(product).collect());
        let request = self.client.post(format!("{}{BASE_PATH}/products/global", self.base)).bearer_auth(&self.token);
        let began = Instant::now();
        let answer = request.json(&body).send().await.expect("an answer");
        assert_eq!(answer.status(), 201);
        began.elapsed()
    }

    async fn upload(&self, id: &str, jpeg: &[u8]) -> Duration {
        let head = "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x.jpg\"\r\nContent-Type: image/jpeg\r\n\r\n";
        let body = [head.as_bytes(), jpeg, b"\r\n--x--\r\n"].concat();
        let url = format!("{}{BASE_PATH}/products/global/product-picture?productId={id}", self.base);
        let request = self.client.post(url).bearer_auth(&self.token);
        let request = request.header("Content-Type", "multipart/form-data; boundary=x").body(body);
        let began = Instant::now();
        let answer = request.send().await.expect("an answer");
        assert_eq!(answer.status(), 201);
        began.elapsed()
    }

    /// Whether any assignment still waits for its result. The gauge of the queue is looked up every few seconds only.
    async fn is_pending(&self) -> bool {
        for taxonomy in ["TARIC", "TARES", "UKGT"] {
            let list = format!("/assignments/{taxonomy}?assignmentStatus=ALL&autoAssignment=PENDING&size=1");
            if self.get(&list).await["items"].as_array().is_some_and(|items| !items.is_empty()) {
                return true;
            }
        }
        false
    }
}

fn percentile(sorted: &[Duration], share: f64) -> f64 {
    let index = ((sorted.len() as f64 * share) as usize).min(sorted.len() - 1);
    sorted[index].as_secs_f64() * 1e3
}

#[tokio::main]
async fn main() {
    let base = std::env::var("BASE_URL").unwrap_or_else(|_| "http://127.0.0.1:8080".to_owned());
    let Ok(token) = std::env::var("TOKEN") else {
        println!("set TOKEN, and BASE_URL where it is not http://127.0.0.1:8080");
        return;
    };
    let service = Arc::new(Service { client: Client::new(), base, token });
    let run =
        format!("bench-{:?}", std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a clock"));

    for round in 0..3 {
        let took = service.create(&format!("{run}-{round}"), BATCH).await;
        println!("create {BATCH} products in one request: {:.0} ms", took.as_secs_f64() * 1e3);
    }
    while service.is_pending().await {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let began = Instant::now();
    let took = service.create(&format!("{run}-backlog"), BACKLOG).await;
    println!("create {BACKLOG} products in one request: {:.2} s", took.as_secs_f64());
    while service.is_pending().await {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let rest = began.elapsed() - took;
    println!(
        "assign the backlog in three taxonomies, after the answer: {:.2} s, {:.0} products/s",
        rest.as_secs_f64(),
        BACKLOG as f64 / rest.as_secs_f64()
    );

    let (rate, seconds) = READS;
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / rate);
    let mut reads = Vec::new();
    for i in 0..rate * seconds {
        ticks.tick().await;
        let (service, path) = (service.clone(), format!("/products/global/{run}-backlog-{}", i as usize % BACKLOG));
        reads.push(tokio::spawn(async move {
            let began = Instant::now();
            service.get(&path).await;
            began.elapsed()
        }));
    }
    let mut times = Vec::new();
    for read in reads {
        times.push(read.await.expect("a read"));
    }
    times.sort_unstable();
    println!(
        "read by id at {rate}/s: p50 {:.2} ms, p99 {:.2} ms, max {:.2} ms",
        percentile(&times, 0.5),
        percentile(&times, 0.99),
        percentile(&times, 1.0)
    );
    pictures(&service, &format!("{run}-backlog")).await;
    webhooks(&service, &format!("{run}-told")).await;
}

/// Uploads pictures of photographs' size from several clients.
async fn pictures(service: &Arc<Service>, prefix: &str) {
    let (count, clients, width, height) = PICTURES;
    let noise = |x: u32, y: u32| image::Rgb([(x * 7 + y * 3) as u8, (x ^ y) as u8, (x * y / 50) as u8]);
    let mut jpeg = Vec::new();
    RgbImage::from_fn(width, height, noise)
        .write_to(&mut Cursor::new(&mut jpeg), ImageFormat::Jpeg)
        .expect("a picture");
    let (jpeg, began) = (Arc::new(jpeg), Instant::now());
    let upload = |client: usize| {
        let (service, jpeg, prefix) = (service.clone(), jpeg.clone(), prefix.to_owned());
        tokio::spawn(async move {
            let mut times = Vec::new();
            for at in (client..count).step_by(clients) {
                times.push(service.upload(&format!("{prefix}-{at}"), &jpeg).await);
            }
            times
        })
    };
    let mut times = Vec::new();
    for client in (0..clients).map(upload).collect::<Vec<_>>() {
        times.extend(client.await.expect("uploads"));
    }
    let rate = count as f64 / began.elapsed().as_secs_f64();
    times.sort_unstable();
    println!(
        "pictures of {width} x {height} pixels ({} kB): {rate:.0}/s, p50 {:.0} ms, p99 {:.0} ms",
        jpeg.len() / 1_000,
        percentile(&times, 0.5),
        percentile(&times, 0.99)
    );
}

/// Creates products of which a webhook tells a receiver here, and waits until it has heard of all.
async fn webhooks(service: &Service, prefix: &str) {
    let heard = Arc::new(AtomicUsize::new(0));
    let counted = heard.clone();
    let told = post(move || async move {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    tokio::spawn(axum::serve(listener, Router::new().route("/", told)).into_future());
    let request = service.client.post(format!("{}{BASE_PATH}/webhooks", service.base)).bearer_auth(&service.token);
    let body = json!({"url": url, "types": ["PRODUCT_CREATED"]});
    let answer = request.json(&body).send().await.expect("an answer");
    if !answer.status().is_success() {
        println!("webhooks: {}, start the service with WEBHOOKS_ALLOW_PRIVATE=true", answer.status());
        return;
    }
    let began = Instant::now();
    service.create(prefix, BATCH).await;
    while heard.load(Ordering::Relaxed) < BATCH {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let took = began.elapsed().as_secs_f64();
    println!("webhooks: {BATCH} products created and told in {took:.2} s, {:.0}/s", BATCH as f64 / took);
}
