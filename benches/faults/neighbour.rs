//! What an account notices of another one that brings in its whole catalogue.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::future::join_all;
use serde_json::{Value, json};

use crate::corpus::Corpus;
use crate::own::{self, BASE_PATH, Service};

/// Products that the busy account brings in, in each of the two ways.
const PRODUCTS: usize = 200_000;
/// Clients of the busy account, and products of each of their requests.
const BUSY: (usize, usize) = (4, 200);
/// Products that the other account has.
const OTHERS: usize = 2_000;
/// How long the other account is watched while nobody else is there.
const QUIET: Duration = Duration::from_secs(30);
/// Between two products of the other account.
const ROUND: Duration = Duration::from_millis(200);
/// Between two looks whether a product is classified or found.
const LOOK: Duration = Duration::from_millis(10);
/// What an answer or a class may take longer than without the other account.
const LONGER: Duration = Duration::from_secs(1);

/// What the other account saw: times from a request to write until a class was there and until the product was found, and
/// times of searches.
#[derive(Default)]
struct Seen {
    classified: Vec<Duration>,
    found: Vec<Duration>,
    searched: Vec<Duration>,
    refused: usize,
}

struct Account<'a> {
    service: &'a Service,
    token: String,
}

impl Account<'_> {
    async fn send(&self, request: reqwest::RequestBuilder) -> Option<Value> {
        let answer = request.bearer_auth(&self.token).send().await.ok()?;
        let is_success = answer.status().is_success();
        let body = answer.json().await.ok()?;
        is_success.then_some(body)
    }

    fn url(&self, path: &str) -> String {
        format!("{}{BASE_PATH}{path}", self.service.base)
    }

    async fn create(&self, products: Value) -> bool {
        let request = self.service.client.post(self.url("/products/global?updateIfExists=true")).json(&products);
        self.send(request).await.is_some()
    }

    async fn get(&self, path: &str, query: &[(&str, &str)]) -> Option<Value> {
        self.send(self.service.client.get(self.url(path)).query(query)).await
    }

    async fn search(&self, criteria: &Value) -> Option<Value> {
        self.get("/products/global", &[("size", "50"), ("filterCriteria", &criteria.to_string())]).await
    }

    /// Writes one product; how long it took until it had been classified, and until it was found.
    async fn follow(&self, id: &str, details: &Value) -> Option<(Duration, Duration)> {
        let began = Instant::now();
        if !self.create(json!({ id: {"productDetails": details} })).await {
            return None;
        }
        let classified = async {
            let query = [("assignmentStatus", "ALL"), ("productIds", id)];
            loop {
                let list = self.get("/assignments/TARIC", &query).await;
                if list.is_some_and(|list| list["items"][0]["autoAssignment"] == "DONE") {
                    return began.elapsed();
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        let criteria = json!([{ "productId": id }]);
        let found = async {
            loop {
                let list = self.search(&criteria).await;
                if list.is_some_and(|list| list["items"].as_array().is_some_and(|items| !items.is_empty())) {
                    return began.elapsed();
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        Some(tokio::join!(classified, found))
    }

    /// Works as a person does until told to end.
    async fn work(&self, corpus: &Corpus, name: &str, ended: &AtomicBool) -> Seen {
        let mut seen = Seen::default();
        let mut random = crate::corpus::Random(7);
        for number in 0.. {
            if ended.load(Ordering::Relaxed) {
                break;
            }
            let (_, details) = corpus.product(number);
            match self.follow(&format!("{name}-{number}"), &details).await {
                Some((classified, found)) => {
                    seen.classified.push(classified);
                    seen.found.push(found);
                }
                None => seen.refused += 1,
            }
            let piece = corpus.piece(&mut random, OTHERS, 4 + number % 6);
            let began = Instant::now();
            match self.search(&json!([{"languageKey": "de", "keywords": piece}])).await {
                Some(_) => seen.searched.push(began.elapsed()),
                None => seen.refused += 1,
            }
            tokio::time::sleep(ROUND).await;
        }
        seen
    }
}

/// Measures the other account alone, beside 200,000 products through the interface, and beside as many from a file.
pub(crate) async fn run() {
    let directory = own::directory();
    let service = Service::start(&directory).await;
    let busy = Account { service: &service, token: service.token() };
    let other = Account { service: &service, token: service.account("other").await };
    let corpus = Corpus::new();
    for first in (0..OTHERS).step_by(BUSY.1) {
        assert!(other.create(batch(&corpus, first)).await, "the other account has its products");
    }
    let file = directory.join("catalogue.csv");
    write_file(&corpus, &file).expect("a file");
    tokio::time::sleep(Duration::from_secs(10)).await;
    println!(
        "| beside | seconds | classified after p50 / p99 / most | found after | search | not served |\n|---|---|---|---|---|---|"
    );

    let alone = beside(&other, &corpus, "nobody", tokio::time::sleep(QUIET)).await;
    let next = Arc::new(AtomicUsize::new(0));
    let puts = join_all((0..BUSY.0).map(|_| async {
        loop {
            let first = next.fetch_add(BUSY.1, Ordering::Relaxed);
            if first >= PRODUCTS {
                return;
            }
            while !busy.create(batch(&corpus, first)).await {}
        }
    }));
    let puts = beside(&other, &corpus, "200,000 products by POST", puts).await;
    let arguments = ["import", file.to_str().expect("a path"), "--account", "demo"];
    let import = beside(&other, &corpus, "`import` of 200,000 rows", service.run(&arguments)).await;
    let kept = [puts, import]
        .iter()
        .all(|(classified, searched)| *classified <= alone.0 + LONGER && *searched <= alone.1 + LONGER);
    println!("\n{}", if kept { "at most 1 s longer" } else { "MORE than 1 s longer" });
    drop(service);
    let _ = std::fs::remove_dir_all(&directory);
}

/// Lets the other account work beside something; the longest times until a class was there, and of a search.
async fn beside<T>(
    other: &Account<'_>,
    corpus: &Corpus,
    what: &str,
    load: impl Future<Output = T>,
) -> (Duration, Duration) {
    let (began, ended) = (Instant::now(), AtomicBool::new(false));
    let load = async {
        load.await;
        ended.store(true, Ordering::Relaxed);
    };
    let name: String = what.chars().filter(char::is_ascii_alphanumeric).collect();
    let ((), mut seen) = tokio::join!(load, other.work(corpus, &name, &ended));
    let told = |times: &mut Vec<Duration>| {
        times.sort_unstable();
        let at = |hundredths: usize| {
            times.get(times.len().saturating_sub(1) * hundredths / 100).map_or(0, Duration::as_millis)
        };
        format!("{} / {} / {} ms", at(50), at(99), at(100))
    };
    let cells = [told(&mut seen.classified), told(&mut seen.found), told(&mut seen.searched)].join(" | ");
    println!(
        "| {what} | {:.0} | {cells} | {} of {} |",
        began.elapsed().as_secs_f64(),
        seen.refused,
        seen.classified.len() + seen.searched.len()
    );
    let most = |times: &[Duration]| times.last().copied().unwrap_or_default();
    (most(&seen.classified), most(&seen.searched))
}

fn batch(corpus: &Corpus, first: usize) -> Value {
    let product = |number| {
        let (id, details) = corpus.product(number);
        (id, json!({"productDetails": details}))
    };
    Value::Object((first..first + BUSY.1).map(product).collect())
}

/// The second catalogue as a file: other products than those that went through the interface.
fn write_file(corpus: &Corpus, file: &Path) -> std::io::Result<()> {
    let mut out = std::io::BufWriter::new(std::fs::File::create(file)?);
    writeln!(out, "productId;productName;description")?;
    for number in PRODUCTS..2 * PRODUCTS {
        let (id, details) = corpus.product(number);
        let texts = &details["languageAttributes"]["de"];
        let text = |name: &str| texts[name].as_str().unwrap_or_default().replace(';', ",");
        writeln!(out, "{id};{};{}", text("productName"), text("productDescription"))?;
    }
    out.flush()
}
