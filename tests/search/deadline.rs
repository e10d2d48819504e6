//! Searches end at their deadline, and so does the work for them.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use futures::stream::{FuturesUnordered, StreamExt};
use futures::{FutureExt, poll};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Postgres, Transaction};
use vat_classification::domain::ShopId;
use vat_classification::domain::filter::Criteria;
use vat_classification::search::{Engine, Search, SearchError, Settings};
use vat_classification::store::Store;

use crate::fixture::{Fixture, criteria, details};
use crate::support;

/// Products of the search that is cancelled. Elasticsearch looks whether it is after every 2,048.
const PRODUCTS: usize = 16_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_search_ends_at_its_deadline() {
    let fixture = Fixture::new().await;
    let product = details(json!({"languageAttributes": {"en": {"productDescription": "a b ".repeat(12_000)}}}));
    let products: Vec<_> = (0..200).map(|i| (i.to_string(), product.clone())).collect();
    fixture.create(ShopId::GLOBAL, &products).await;
    let slow = criteria(json!({"keywords": format!("\"{}\"", "a   ".repeat(1_500))}));
    for engine in [fixture.postgres(), fixture.elasticsearch().await] {
        engine.rebuild(&|_, _| {}).await.expect("an index");
        let begin = Instant::now();
        let deadline = Duration::from_millis(20);
        let found = engine.page(&Search { deadline, ..fixture.search(&slow) }).await;
        assert!(matches!(found, Err(SearchError::TooSlow)), "{found:?}");
        assert!(begin.elapsed() < Duration::from_millis(220), "{:?}", begin.elapsed());
    }
}

/// That a lock on the documents of this database, of the many on the server, is waited for.
const WAITS: &str = "not granted and relation = 'search_documents'::regclass
    and database = (select oid from pg_database where datname = current_database())";

/// One product, and criteria that find it.
async fn one_thing() -> (Fixture, Criteria) {
    let fixture = Fixture::new().await;
    let thing = details(json!({"languageAttributes": {"en": {"productName": "thing"}}}));
    fixture.create(ShopId::GLOBAL, &[("p".to_owned(), thing)]).await;
    (fixture, criteria(json!({"productName": "thing", "languageKey": "en"})))
}

/// Keeps everybody from the documents until it is given up.
async fn lock(store: &Store) -> Transaction<'static, Postgres> {
    let mut lock = store.pool().begin().await.expect("a transaction");
    sqlx::raw_sql("lock table search_documents in access exclusive mode").execute(&mut *lock).await.expect("a lock");
    lock
}

/// How many statements wait for a lock on the documents.
async fn waiting(store: &Store) -> i64 {
    let waiting = format!("select count(*) from pg_locks where {WAITS}");
    sqlx::query_scalar(AssertSqlSafe(waiting)).fetch_one(store.pool()).await.expect("a count")
}

#[tokio::test]
async fn a_search_that_nobody_waits_for_keeps_its_place_until_the_database_is_done() {
    const PLACES: i64 = 3;
    let (fixture, things) = one_thing().await;
    let engine = Engine::new(&Settings::default(), &fixture.store_with(2 * PLACES as u32).await).expect("an engine");
    engine.rebuild(&|_, _| {}).await.expect("an index");
    let search = fixture.search(&things);
    let lock = lock(&fixture.store).await;
    let mut gone: FuturesUnordered<_> = (0..PLACES).map(|_| Box::pin(engine.page(&search))).collect();
    while waiting(&fixture.store).await < PLACES {
        assert!(gone.next().now_or_never().is_none(), "an answer from behind a lock");
    }
    drop(gone);
    let mut next = Box::pin(engine.page(&search));
    for _ in 0..100 {
        assert!(poll!(&mut next).is_pending(), "an answer from behind a lock");
        assert!(waiting(&fixture.store).await <= PLACES, "the places of those who have gone are taken");
    }
    lock.rollback().await.expect("no lock");
    assert_eq!(next.await.expect("a page").items.len(), 1);
}

#[tokio::test]
async fn a_page_that_takes_long_in_one_way_is_looked_for_in_others_until_its_deadline() {
    const WAYS: usize = 3;
    let (fixture, things) = one_thing().await;
    let engine = fixture.postgres();
    engine.rebuild(&|_, _| {}).await.expect("an index");
    let search = fixture.search(&things);
    let lock = lock(&fixture.store).await;
    let mut page = Box::pin(engine.page(&search));
    let (begin, mut ways) = (Instant::now(), HashSet::new());
    while ways.len() < WAYS {
        assert!(poll!(&mut page).is_pending(), "an answer from behind a lock");
        assert!(begin.elapsed() < Duration::from_secs(30), "{} ways", ways.len());
        let began = format!("select query_start::text from pg_stat_activity join pg_locks using (pid) where {WAITS}");
        let began: Option<String> =
            sqlx::query_scalar(AssertSqlSafe(began)).fetch_optional(fixture.store.pool()).await.expect("a look");
        ways.extend(began);
    }
    lock.rollback().await.expect("no lock");
    assert_eq!(page.await.expect("a page").items.len(), 1);
}

/// How many searches Elasticsearch works on whose index has this prefix.
async fn running(prefix: &str) -> usize {
    let url = format!("{}/_tasks?actions=indices:data/read/search*&detailed", support::elasticsearch().await);
    let tasks: Value = reqwest::get(url).await.expect("an answer").json().await.expect("JSON");
    let nodes = tasks["nodes"].as_object().expect("nodes").values();
    let tasks = nodes.flat_map(|node| node["tasks"].as_object().expect("tasks").values());
    tasks.filter(|task| task["description"].as_str().is_some_and(|text| text.contains(prefix))).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn elasticsearch_stops_working_on_a_search_whose_deadline_has_passed() {
    let fixture = Fixture::new().await;
    let product = details(json!({"languageAttributes": {"en": {"productDescription": "a b ".repeat(150)}}}));
    let products: Vec<_> = (0..PRODUCTS).map(|i| (i.to_string(), product.clone())).collect();
    fixture.create(ShopId::GLOBAL, &products).await;
    let (engine, prefix) = fixture.elasticsearch_with_prefix().await;
    engine.rebuild(&|_, _| {}).await.expect("an index");
    // The phrase is looked for in every product, and is in none: the search does not end before it has seen them all.
    let slow = criteria(json!({"keywords": format!("\"{}b a\"", "a ".repeat(120))}));
    let begin = Instant::now();
    let found = engine.page(&fixture.search(&slow)).await.expect("a page");
    let whole = begin.elapsed();
    assert!(found.items.is_empty());

    let deadline = whole / 20;
    let search = Search { deadline, ..fixture.search(&slow) };
    let begin = Instant::now();
    let found = engine.page(&search).await;
    assert!(matches!(found, Err(SearchError::TooSlow)), "{found:?} after {:?}", begin.elapsed());
    while running(&prefix).await > 0 {
        assert!(begin.elapsed() < whole, "still working on it after {:?} of {whole:?}", begin.elapsed());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(begin.elapsed() < whole * 3 / 5, "worked on it for {:?} of {whole:?}", begin.elapsed());
}
