//! Measures search through the HTTP API, by hand:
//!
//! ```text
//! DATABASE_URL=… ELASTICSEARCH_URL=… cargo bench --bench search -- PRODUCTS [PART …]
//! ```
//!
//! DATABASE_URL names a server on which it may make a database. Parts run in the order in which they are named: `load`
//! makes the database and what the service is compared with, `products` the database alone, `postgres` measures the service
//! without Elasticsearch (after `products` it needs no ELASTICSEARCH_URL),
//! `index` the rate and the size of a full index, `build` only makes that index, `latency`, `walk`, `visible`, and
//! `outage`. Without any all run, each on what `load` has left. For `outage` the environment names shell commands:
//! OUTAGE_STOP and OUTAGE_START stop Elasticsearch and start it again, OUTAGE_FREEZE and OUTAGE_THAW suspend it.
//!
//! The documents, the values and their order are the same on every run, and no value of two or more characters is used
//! twice.

mod corpus;
mod fake;
mod index;
mod latency;
mod load;
mod outage;
mod service;
mod walk;

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use corpus::Corpus;
use elasticsearch::http::Method;
use elasticsearch::http::headers::HeaderMap;
use elasticsearch::http::transport::Transport;
use serde_json::Value;
use vat_classification::search::{Engine, Settings};
use vat_classification::store::Store;

use crate::service::Service;

/// What the names of the service's indices begin with.
const PREFIX: &str = "bench-search";
/// Products of a page.
const PAGE: usize = 50;
/// Where Elasticsearch is unless the environment says so.
const ELASTICSEARCH: &str = "http://127.0.0.1:9200";
const PARTS: [&str; 7] = ["load", "postgres", "index", "latency", "walk", "visible", "outage"];

/// What every part works on.
struct Bench {
    /// The database of the benchmark.
    database: String,
    elasticsearch: String,
    store: Store,
    account: i64,
    transport: Transport,
    corpus: Corpus,
    products: usize,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // Cargo adds --bench; without it, as in `cargo test --benches`, there is nothing to do.
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if !arguments.iter().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let products = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(20_000);
    let named = arguments.iter().filter(|argument| argument.starts_with(|c: char| c.is_ascii_lowercase()));
    let mut parts: Vec<&str> = named.map(String::as_str).collect();
    if parts.is_empty() {
        parts = PARTS.to_vec();
    }
    let mut bench = None;
    let mut service = None;
    for part in parts {
        let begin = Instant::now();
        println!("\n== {part}, {products} products");
        let bench = match &bench {
            Some(bench) => bench,
            None => bench.insert(Bench::open(products, matches!(part, "load" | "products")).await?),
        };
        match part {
            "load" => {
                bench.load().await?;
                bench.load_compared().await?;
            }
            "products" => bench.load().await?,
            "postgres" => bench.latencies_of_postgres().await?,
            "index" => bench.index().await?,
            "build" => drop(bench.build().await?),
            _ => {
                let service = match &service {
                    Some(service) => service,
                    None => service.insert(Service::start(bench, Some(&bench.elasticsearch)).await?),
                };
                match part {
                    "latency" => bench.latencies(service).await?,
                    "walk" => bench.walk(service).await?,
                    "visible" => bench.visible(service).await?,
                    "outage" => bench.outages(service).await?,
                    _ => bail!("there is no part {part}"),
                }
            }
        }
        println!("({part} took {:.0} s)", begin.elapsed().as_secs_f64());
    }
    Ok(())
}

impl Bench {
    async fn open(products: usize, anew: bool) -> anyhow::Result<Bench> {
        let server = std::env::var("DATABASE_URL").context("DATABASE_URL names a server")?;
        let elasticsearch = std::env::var("ELASTICSEARCH_URL").unwrap_or_else(|_| ELASTICSEARCH.to_owned());
        let database = load::database(&server, anew).await?;
        let store = Store::connect(&database).await?;
        if anew {
            store.migrate().await?;
            service::make_account(&database)?;
        }
        let account = sqlx::query_scalar("select account_id from accounts").fetch_one(store.pool()).await?;
        let transport = Transport::single_node(&elasticsearch)?;
        Ok(Bench { database, elasticsearch, store, account, transport, corpus: Corpus::new(), products })
    }

    /// An engine of this process on the index of the service at this address.
    fn engine(&self, url: &str) -> anyhow::Result<Engine> {
        let settings = Settings {
            elasticsearch_url: Some(url.parse()?),
            elasticsearch_index_prefix: PREFIX.to_owned(),
            ..Settings::default()
        };
        Ok(Engine::new(&settings, &self.store)?)
    }

    async fn elastic(&self, method: Method, path: &str, body: Option<Vec<u8>>) -> anyhow::Result<Value> {
        let answer = self.transport.send(method, path, HeaderMap::new(), None::<&()>, body, None).await?;
        Ok(answer.json().await?)
    }

    /// The name of the index that answers searches.
    async fn index_name(&self) -> anyhow::Result<String> {
        let aliases = self.elastic(Method::Get, "_alias", None).await?;
        let ours = |alias: &String| alias.starts_with(PREFIX) && !alias.ends_with("-write");
        let mut names = aliases.as_object().into_iter().flatten();
        let found = names.find(|(_, index)| index["aliases"].as_object().is_some_and(|map| map.keys().any(ours)));
        Ok(found.context("an index of the service")?.0.clone())
    }
}

/// Times, to be told by their shares.
#[derive(Default)]
struct Times(Vec<Duration>);

impl Times {
    /// The time, in milliseconds, that this share of them does not exceed.
    fn at(&mut self, share: f64) -> f64 {
        self.0.sort_unstable();
        let place = ((self.0.len() as f64 * share) as usize).min(self.0.len().saturating_sub(1));
        self.0.get(place).map_or(f64::NAN, |time| time.as_secs_f64() * 1_000.0)
    }
}
