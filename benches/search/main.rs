//! Measures search, by hand: `cargo bench --bench search -- 20000` (a number of products, and after it a number of
//! queries of each kind), with DATABASE_URL naming a server on which it may make a database, and ELASTICSEARCH_URL.
//! The documents, the patterns and their order are the same on every run, and no pattern is used twice.

mod corpus;
mod fake;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use corpus::{Corpus, Random};
use elasticsearch::http::Method;
use elasticsearch::http::headers::HeaderMap;
use elasticsearch::http::transport::Transport;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection, Executor as _, PgConnection};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use vat_classification::domain::access::Plan;
use vat_classification::domain::filter::Criteria;
use vat_classification::domain::{Product, ShopId};
use vat_classification::jobs::projection;
use vat_classification::search::{Engine, Settings};
use vat_classification::store::Store;
use vat_classification::store::accounts::Caller;
use vat_classification::store::pages::Position;
use vat_classification::store::products::{Asked, NewProduct};

const DATABASE: &str = "vat_classification_bench_search";
const PREFIX: &str = "bench-search";
/// Indices beside the service's own, for comparison.
const RAW_INDEX: &str = "bench-raw";
const WILDCARD_INDEX: &str = "bench-wildcard";
/// The deadline of a search; a search that runs into it ends the run.
const DEADLINE: Duration = Duration::from_secs(2);
const PAGE: usize = 50;
/// Slow engines for comparison get fewer queries.
const COMPARED_QUERIES: usize = 30;

struct Bench {
    store: Store,
    caller: Caller,
    transport: Transport,
    elastic: Engine,
    postgres: Engine,
    corpus: Corpus,
    products: usize,
    queries: usize,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // Cargo adds --bench; without it, as in `cargo test --benches`, there is nothing to do.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let numbers: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let products = numbers.first().copied().unwrap_or(20_000);
    let bench = prepare(products, numbers.get(1).copied().unwrap_or(200)).await?;
    bench.index().await?;
    bench.compare_sources().await?;
    bench.latencies().await?;
    bench.walk().await?;
    bench.visibility().await
}

async fn prepare(products: usize, queries: usize) -> anyhow::Result<Bench> {
    let server = std::env::var("DATABASE_URL").context("DATABASE_URL names a server")?;
    let elasticsearch = std::env::var("ELASTICSEARCH_URL").context("ELASTICSEARCH_URL names a server")?;
    let mut connection = PgConnection::connect(&server).await?;
    connection.execute(AssertSqlSafe(format!("drop database if exists {DATABASE} with (force)"))).await?;
    connection.execute(AssertSqlSafe(format!("create database {DATABASE}"))).await?;
    let mut url: url::Url = server.parse()?;
    url.set_path(DATABASE);
    let store = Store::connect(url.as_str()).await?;
    store.migrate().await?;
    store.create_account("bench", Plan::Unlimited).await?;
    let account = sqlx::query_scalar("select account_id from accounts").fetch_one(store.pool()).await?;
    let caller = Caller { account, user: "bench".to_owned(), plan: Plan::Unlimited };
    let elastic = engine(&store, Some(&elasticsearch))?;
    let postgres = engine(&store, None)?;
    let transport = Transport::single_node(&elasticsearch)?;
    let bench = Bench { store, caller, transport, elastic, postgres, corpus: Corpus::new(), products, queries };
    bench.load().await?;
    Ok(bench)
}

fn engine(store: &Store, url: Option<&str>) -> anyhow::Result<Engine> {
    let settings = Settings {
        elasticsearch_url: url.map(str::parse).transpose()?,
        elasticsearch_index_prefix: PREFIX.to_owned(),
        ..Settings::default()
    };
    Ok(Engine::new(&settings, store)?)
}

impl Bench {
    /// Puts the products into their table.
    async fn load(&self) -> anyhow::Result<()> {
        let begin = Instant::now();
        let numbers: Vec<usize> = (0..self.products).collect();
        for part in numbers.chunks(5_000) {
            let (ids, details): (Vec<String>, Vec<Value>) = part.iter().map(|n| self.corpus.product(*n)).unzip();
            sqlx::query(
                "insert into products (account_id, shop_id, product_id, version, shop_ids, details, applications,
                                       application_tags, application_issues)
                 select $1, 0, id, 1, '{}', details, '{}', '{}', '[]' from unnest($2::text[], $3::jsonb[]) as new (id, details)",
            )
            .bind(self.caller.account)
            .bind(&ids)
            .bind(&details)
            .execute(self.store.pool())
            .await?;
        }
        self.store.pool().execute("analyze products").await?;
        println!("{} products in PostgreSQL in {:.1} s", self.products, begin.elapsed().as_secs_f64());
        Ok(())
    }

    async fn elastic(&self, method: Method, path: &str, body: Option<Vec<u8>>) -> anyhow::Result<Value> {
        let answer = self.transport.send(method, path, HeaderMap::new(), None::<&()>, body, None).await?;
        Ok(answer.json().await?)
    }

    async fn rebuild(&self, engine: &Engine) -> anyhow::Result<f64> {
        let begin = Instant::now();
        engine.rebuild(&|_, _| {}).await?;
        Ok(self.products as f64 / begin.elapsed().as_secs_f64())
    }

    /// The rate of a full index, beside that of the same requests sent raw, and the size of the index.
    async fn index(&self) -> anyhow::Result<()> {
        let (url, received) = fake::start().await;
        println!("own share of indexing: {:.0} documents/s", self.rebuild(&engine(&self.store, Some(&url))?).await?);
        let (index, bulks) = {
            let mut received = received.lock().expect("no panic while it was held");
            (received.index.clone(), std::mem::take(&mut received.bulks))
        };
        let raw = self.raw(index, &bulks).await?;
        drop(bulks);
        let rate = self.rebuild(&self.elastic).await?;
        println!("raw _bulk {raw:.0} documents/s; full index from PostgreSQL {rate:.0}/s, {:.2} of raw", rate / raw);

        let text: usize = (0..self.products.min(20_000))
            .map(|n| {
                let (id, details) = self.corpus.product(n);
                let texts = details["languageAttributes"].as_object().into_iter().flatten().flat_map(|(_, texts)| {
                    let tags = texts["productTags"].as_array().into_iter().flatten();
                    [&texts["productName"], &texts["productDescription"]].into_iter().chain(tags)
                });
                id.len() + texts.filter_map(Value::as_str).map(str::len).sum::<usize>()
            })
            .sum();
        let text = text as f64 * self.products as f64 / self.products.min(20_000) as f64;
        for merged in [false, true] {
            if merged {
                self.elastic(Method::Post, &format!("{PREFIX}-1/_forcemerge?max_num_segments=1"), None).await?;
            }
            self.elastic(Method::Post, &format!("{PREFIX}-1/_refresh"), None).await?;
            let stats = self.elastic(Method::Get, &format!("{PREFIX}-1/_stats/store"), None).await?;
            let size = stats["_all"]["primaries"]["store"]["size_in_bytes"].as_f64().unwrap_or_default();
            let when = if merged { "merged to one segment" } else { "as built" };
            println!("index {:.0} MB, {:.2} of the raw text ({when})", size / 1e6, size / text);
            if merged {
                // Searches are to be measured on an index as it is in service.
                self.rebuild(&self.elastic).await?;
            }
        }
        Ok(())
    }

    async fn raw(&self, mut index: Value, bulks: &[(axum::body::Bytes, usize)]) -> anyhow::Result<f64> {
        self.elastic(Method::Delete, RAW_INDEX, None).await?;
        let alias =
            index["aliases"].as_object().and_then(|aliases| aliases.keys().next().cloned()).context("an alias")?;
        index["aliases"] = json!({alias: {}});
        self.elastic(Method::Put, RAW_INDEX, Some(index.to_string().into_bytes())).await?;
        let begin = Instant::now();
        let mut documents = 0;
        for (body, count) in bulks {
            let answer = self.elastic(Method::Post, "_bulk?filter_path=errors", Some(body.to_vec())).await?;
            ensure!(answer["errors"] == false, "raw documents are refused: {answer}");
            documents += count;
        }
        self.elastic(Method::Post, &format!("{RAW_INDEX}/_refresh"), None).await?;
        let rate = documents as f64 / begin.elapsed().as_secs_f64();
        self.elastic(Method::Delete, RAW_INDEX, None).await?;
        Ok(rate)
    }

    /// What the service is measured beside: `wildcard` on a keyword, `ilike` with trigrams.
    async fn compare_sources(&self) -> anyhow::Result<()> {
        self.elastic(Method::Delete, WILDCARD_INDEX, None).await?;
        let body = json!({"settings": {"number_of_replicas": 0, "index.queries.cache.enabled": false},
            "mappings": {"properties": {"text": {"type": "keyword"}, "id": {"type": "keyword"}}}});
        self.elastic(Method::Put, WILDCARD_INDEX, Some(body.to_string().into_bytes())).await?;
        self.store.pool().execute("create table bench_texts (id text collate \"C\" primary key, text text)").await?;
        let numbers: Vec<usize> = (0..self.products).collect();
        for part in numbers.chunks(5_000) {
            let rows: Vec<(String, String)> =
                part.iter().map(|n| (self.corpus.product(*n).0, self.corpus.text(*n).to_lowercase())).collect();
            let mut bulk = Vec::new();
            for (id, text) in &rows {
                bulk.extend_from_slice(format!("{{\"index\":{{}}}}\n{}\n", json!({"id": id, "text": text})).as_bytes());
            }
            self.elastic(Method::Post, &format!("{WILDCARD_INDEX}/_bulk?filter_path=errors"), Some(bulk)).await?;
            let (ids, texts): (Vec<String>, Vec<String>) = rows.into_iter().unzip();
            sqlx::query("insert into bench_texts select * from unnest($1::text[], $2::text[])")
                .bind(ids)
                .bind(texts)
                .execute(self.store.pool())
                .await?;
        }
        self.elastic(Method::Post, &format!("{WILDCARD_INDEX}/_refresh"), None).await?;
        self.store.pool().execute("create index on bench_texts using gin (text gin_trgm_ops)").await?;
        self.store.pool().execute("analyze bench_texts").await?;
        println!("PostgreSQL's own projection: {:.0} documents/s", self.rebuild(&self.postgres).await?);
        self.store.pool().execute("analyze search_documents").await?;
        // The last rebuild is the one that is fed; the other engine goes on answering from what it has.
        self.rebuild(&self.elastic).await?;
        let off = json!({"index.queries.cache.enabled": false}).to_string();
        self.elastic(Method::Post, &format!("{PREFIX}-1/_close"), None).await?;
        self.elastic(Method::Put, &format!("{PREFIX}-1/_settings"), Some(off.into_bytes())).await?;
        self.elastic(Method::Post, &format!("{PREFIX}-1/_open"), None).await?;
        self.elastic(Method::Get, "_cluster/health?wait_for_status=yellow&timeout=60s", None).await?;
        Ok(())
    }

    async fn page(&self, engine: &Engine, criteria: &Criteria) -> anyhow::Result<usize> {
        let found = engine.page(self.caller.account, 0, criteria, None, &Position::Start, PAGE, DEADLINE).await?;
        Ok(self.store.products_by_key(self.caller.account, &found.items).await?.len())
    }

    /// The time of a first page with its records, by kind of value and by engine.
    async fn latencies(&self) -> anyhow::Result<()> {
        println!("\nfirst page of {PAGE}, ms          Elasticsearch          PostgreSQL       wildcard      ilike");
        println!("                          p50    p99    max    p50    p99        p50        p50");
        let random = &mut Random(7);
        let mut used = HashSet::new();
        for kind in ["1", "2", "3", "4", "6", "9", "gap phrase", "and or not"] {
            let mut values = Vec::new();
            while values.len() < self.queries {
                let value = match (kind, kind.parse()) {
                    (_, Ok(length)) => self.corpus.piece(random, self.products, length),
                    ("gap phrase", _) => self.corpus.gap_phrase(random, self.products),
                    _ => {
                        let mut piece = |length| self.corpus.piece(random, self.products, length);
                        format!("{} {} -{} or {}", piece(3), piece(2), piece(4), piece(6))
                    }
                };
                // There are few values of one character, so that those are repeated.
                if used.insert(value.clone()) || kind == "1" {
                    values.push(value);
                }
            }
            self.latency(kind, &values).await?;
        }
        Ok(())
    }

    async fn latency(&self, kind: &str, values: &[String]) -> anyhow::Result<()> {
        let criteria: Vec<Criteria> = values
            .iter()
            .filter_map(|value| Criteria::parse(&json!([{"languageKey": "de", "keywords": value}]).to_string()).ok())
            .collect();
        let mut times = [Vec::new(), Vec::new(), Vec::new(), Vec::new()];
        let mut slow = 0;
        for (i, criteria) in criteria.iter().enumerate() {
            let begin = Instant::now();
            self.page(&self.elastic, criteria).await?;
            times[0].push(begin.elapsed());
            let begin = Instant::now();
            slow += usize::from(self.page(&self.postgres, criteria).await.is_err());
            times[1].push(begin.elapsed());
            if i < COMPARED_QUERIES && !kind.contains(' ') {
                let value = values[i].to_lowercase();
                let begin = Instant::now();
                self.wildcard(&value).await?;
                times[2].push(begin.elapsed());
                let begin = Instant::now();
                self.ilike(&value).await?;
                times[3].push(begin.elapsed());
            }
        }
        let at = |times: &mut Vec<Duration>, share: f64| {
            times.sort_unstable();
            let place = ((times.len() as f64 * share) as usize).min(times.len().saturating_sub(1));
            times.get(place).map_or(f64::NAN, |time| time.as_secs_f64() * 1_000.0)
        };
        let [elastic, postgres, wildcard, ilike] = &mut times;
        println!(
            "{kind:<20} {:>8.1} {:>6.1} {:>6.1} {:>6.1} {:>6.1} {:>10.1} {:>10.1}{}",
            at(elastic, 0.5),
            at(elastic, 0.99),
            at(elastic, 1.0),
            at(postgres, 0.5),
            at(postgres, 0.99),
            at(wildcard, 0.5),
            at(ilike, 0.5),
            if slow > 0 { format!("   PostgreSQL too slow: {slow}") } else { String::new() },
        );
        Ok(())
    }

    async fn wildcard(&self, value: &str) -> anyhow::Result<()> {
        let escaped: String =
            value.chars().flat_map(|c| if "*?\\".contains(c) { vec!['\\', c] } else { vec![c] }).collect();
        let body = json!({"query": {"bool": {"filter": [{"wildcard": {"text": format!("*{escaped}*")}}]}},
            "sort": [{"id": "asc"}], "size": PAGE + 1, "track_total_hits": false, "_source": false});
        self.elastic(Method::Post, &format!("{WILDCARD_INDEX}/_search"), Some(body.to_string().into_bytes())).await?;
        Ok(())
    }

    async fn ilike(&self, value: &str) -> anyhow::Result<()> {
        let escaped = value.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
        sqlx::query("select id from bench_texts where text ilike $1 order by id limit $2")
            .bind(format!("%{escaped}%"))
            .bind(PAGE as i64 + 1)
            .persistent(false)
            .fetch_all(self.store.pool())
            .await?;
        Ok(())
    }

    /// Walks a large result while writers change the catalogue: every product once, and no page slower than the first.
    async fn walk(&self) -> anyhow::Result<()> {
        let criteria = Criteria::parse(r#"[{"languageKey": "de", "productName": "rot or blau or grün"}]"#)
            .map_err(|faults| anyhow::anyhow!("{faults:?}"))?;
        let (shutdown, stop) = (CancellationToken::new(), Arc::new(AtomicBool::new(false)));
        let wake = Arc::new(Notify::new());
        tokio::spawn(projection::run(self.store.clone(), self.elastic.clone(), wake.clone(), shutdown.clone()));
        let writers: Vec<_> =
            (0..50).map(|writer| tokio::spawn(write(self.writer(), writer, stop.clone(), wake.clone()))).collect();
        let (mut position, mut seen, mut times) = (Position::Start, HashSet::new(), Vec::new());
        loop {
            let begin = Instant::now();
            let page = self.elastic.page(self.caller.account, 0, &criteria, None, &position, PAGE, DEADLINE).await?;
            let records = self.store.products_by_key(self.caller.account, &page.items).await?;
            times.push(begin.elapsed());
            for record in &records {
                ensure!(seen.insert(record.product_id.clone()), "{} was there twice", record.product_id);
            }
            match records.last() {
                Some(last) if page.more_after => position = Position::After(last.product_id.clone()),
                _ => break,
            }
        }
        stop.store(true, Ordering::Relaxed);
        let mut written = 0;
        for writer in writers {
            written += writer.await?;
        }
        shutdown.cancel();
        let lasting = (0..self.products)
            .filter(|n| {
                self.corpus.product(*n).1["languageAttributes"]["de"]["productName"]
                    .as_str()
                    .is_some_and(|name| ["rot", "blau", "grün"].iter().any(|c| name.to_lowercase().contains(c)))
            })
            .count();
        let missed = lasting.saturating_sub(seen.iter().filter(|id| !id.starts_with("NEW")).count());
        let tenth = times.len().div_ceil(10);
        let mean =
            |times: &[Duration]| times.iter().sum::<Duration>().as_secs_f64() * 1_000.0 / times.len().max(1) as f64;
        println!(
            "\nwalk: {} products on {} pages while {written} products were written; {missed} missed; \
             mean page of the first tenth {:.1} ms, of the last {:.1} ms",
            seen.len(),
            times.len(),
            mean(&times[..tenth]),
            mean(&times[times.len() - tenth..]),
        );
        Ok(())
    }

    fn writer(&self) -> (Store, Caller) {
        (self.store.clone(), self.caller.clone())
    }

    /// How long until a write is found, at 1,000 writes a second.
    async fn visibility(&self) -> anyhow::Result<()> {
        let (shutdown, wake) = (CancellationToken::new(), Arc::new(Notify::new()));
        tokio::spawn(projection::run(self.store.clone(), self.elastic.clone(), wake.clone(), shutdown.clone()));
        let mut waits = Vec::new();
        let written = Arc::new(AtomicUsize::new(0));
        let begin = Instant::now();
        for second in 0..10_usize {
            let due = begin + Duration::from_secs(second as u64);
            tokio::time::sleep_until(due.into()).await;
            let last = format!("SEEN-{second}-999");
            for part in 0..10_usize {
                let products: Vec<NewProduct> = (0..100)
                    .map(|i| self.new_product(&format!("SEEN-{second}-{:03}", part * 100 + i), second * 1_000 + i))
                    .collect::<anyhow::Result<_>>()?;
                self.store.create_products(&self.caller, ShopId::GLOBAL, &products, &Asked::default(), true).await?;
                written.fetch_add(100, Ordering::Relaxed);
                wake.notify_one();
            }
            let committed = Instant::now();
            let criteria =
                Criteria::parse(&json!([{"productId": last}]).to_string()).map_err(|f| anyhow::anyhow!("{f:?}"))?;
            while self.page(&self.elastic, &criteria).await? == 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            waits.push(committed.elapsed());
        }
        shutdown.cancel();
        let rate = written.load(Ordering::Relaxed) as f64 / begin.elapsed().as_secs_f64();
        waits.sort_unstable();
        println!(
            "a write is found after {:.2} s (median), {:.2} s (longest), at {rate:.0} writes/s",
            waits[waits.len() / 2].as_secs_f64(),
            waits.last().map_or(0.0, Duration::as_secs_f64)
        );
        Ok(())
    }

    fn new_product(&self, id: &str, number: usize) -> anyhow::Result<NewProduct> {
        let details = serde_json::from_value(self.corpus.product(number).1)?;
        Ok(NewProduct {
            product_id: id.to_owned(),
            product: Product { shop_ids: Vec::new(), product_details: details },
        })
    }
}

/// Makes and deletes products of its own until told to stop; answers how many it wrote.
async fn write((store, caller): (Store, Caller), writer: usize, stop: Arc<AtomicBool>, wake: Arc<Notify>) -> usize {
    let mut written = 0;
    while !stop.load(Ordering::Relaxed) {
        let id = format!("NEW-{writer}-{written}");
        let details = json!({"languageAttributes": {"de": {"productName": format!("neu rot {written}")}}});
        let details = serde_json::from_value(details).unwrap_or_default();
        let product =
            NewProduct { product_id: id.clone(), product: Product { shop_ids: Vec::new(), product_details: details } };
        let created = store.create_products(&caller, ShopId::GLOBAL, &[product], &Asked::default(), false).await;
        let deleted = written % 2 == 1 && store.delete_product(&caller, ShopId::GLOBAL, &id, 1).await.is_ok();
        written += usize::from(created.is_ok()) + usize::from(deleted);
        wake.notify_one();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    written
}
