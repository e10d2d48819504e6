//! Indices follow the products: through the queue, over failures, and when they are rebuilt.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use elasticsearch::Elasticsearch;
use elasticsearch::http::transport::Transport;
use elasticsearch::indices::IndicesDeleteParts;
use serde_json::json;
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};
use vat_classification::domain::{Details, ShopId};
use vat_classification::jobs::projection;
use vat_classification::search::{Engine, EngineError, Search, SearchError};

use crate::fixture::{Fixture, criteria, details};
use crate::proxy::{Mode, Proxy};
use crate::support;

/// How long a write may stay unseen, by the contract.
const VISIBLE: Duration = Duration::from_secs(2);
/// Room that a test leaves a busy machine beyond what the contract allows.
const SLACK: Duration = Duration::from_secs(8);

fn named(name: &str) -> Details {
    details(json!({"languageAttributes": {"en": {"productName": name}}}))
}

/// Runs the job until the guard is dropped.
fn feed(fixture: &Fixture, engine: &Engine) -> (Arc<Notify>, DropGuard) {
    let (wake, shutdown) = (Arc::new(Notify::new()), CancellationToken::new());
    tokio::spawn(projection::run(fixture.store.clone(), engine.clone(), wake.clone(), shutdown.clone()));
    (wake, shutdown.drop_guard())
}

/// Searches until exactly these products are found.
async fn until_found(fixture: &Fixture, engine: &Engine, name: &str, ids: &[&str]) {
    let criteria = criteria(json!({"productName": name, "languageKey": "en"}));
    let begin = Instant::now();
    loop {
        let search = Search { size: 100, deadline: VISIBLE, ..fixture.search(&criteria) };
        let found = engine.page(&search).await;
        if let Ok(page) = &found {
            let shown = fixture.store.products_found(fixture.caller.account, page.clone(), search.position).await;
            let shown = shown.expect("products").page.items;
            if page.items.len() == ids.len() && shown.iter().map(|record| &record.product_id).eq(ids) {
                return;
            }
        }
        assert!(begin.elapsed() < VISIBLE + SLACK, "{name}: {found:?} instead of {ids:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until the queue is empty and the index equals the products.
async fn until_equal(fixture: &Fixture, engine: &Engine, longest: Duration) {
    let begin = Instant::now();
    loop {
        let queued = fixture.store.search_queue_length().await.expect("a count");
        let differences =
            if queued == 0 { engine.verify(&|_| {}).await.ok().map(|found| found.differences) } else { None };
        if differences == Some(0) {
            return;
        }
        assert!(begin.elapsed() < longest, "{queued} in the queue, {differences:?} differences");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn delete(fixture: &Fixture, id: &str) {
    let record = fixture.store.product(fixture.caller.account, ShopId::GLOBAL, id).await.expect("the product");
    fixture.store.delete_product(&fixture.caller, ShopId::GLOBAL, id, record.version).await.expect("deleted");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_is_found_and_what_is_deleted_is_not() {
    let fixture = Fixture::new().await;
    fixture.create(ShopId::GLOBAL, &[("early".to_owned(), named("old thing"))]).await;
    for engine in [fixture.postgres(), fixture.elasticsearch().await] {
        let (wake, _guard) = feed(&fixture, &engine);
        until_found(&fixture, &engine, "old", &["early"]).await;
        fixture.create(ShopId::GLOBAL, &[("1".to_owned(), named("red")), ("2".to_owned(), named("red"))]).await;
        wake.notify_one();
        until_found(&fixture, &engine, "red", &["1", "2"]).await;
        // Not woken: another service wrote it.
        fixture.create(ShopId::GLOBAL, &[("2".to_owned(), named("blue"))]).await;
        until_found(&fixture, &engine, "red", &["1"]).await;
        delete(&fixture, "1").await;
        delete(&fixture, "2").await;
        until_found(&fixture, &engine, "red", &[]).await;
        until_found(&fixture, &engine, "blue", &[]).await;
        until_equal(&fixture, &engine, SLACK).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_write_does_not_bring_a_deleted_product_back() {
    for elastic in [false, true] {
        let fixture = Fixture::new().await;
        let engine = if elastic { fixture.elasticsearch().await } else { fixture.postgres() };
        engine.rebuild(&|_, _| {}).await.expect("an index");
        fixture.create(ShopId::GLOBAL, &[("1".to_owned(), named("ghost"))]).await;
        let mut late = fixture.store.claim_search_changes(10).await.expect("a claim").expect("rows");
        let (written, _) = late.take();
        let written: Vec<_> = written.into_iter().map(|product| product.change()).collect();

        delete(&fixture, "1").await;
        let mut claim = fixture.store.claim_search_changes(10).await.expect("a claim").expect("rows");
        let (_, removed) = claim.take();
        let outcomes = engine.apply(&removed).await.expect("outcomes");
        claim.finish(&removed.into_iter().zip(outcomes).collect::<Vec<_>>()).await.expect("finished");

        let outcomes = engine.apply(&written).await.expect("outcomes");
        late.finish(&written.into_iter().zip(outcomes).collect::<Vec<_>>()).await.expect("finished");
        let mut differences = Vec::new();
        let told = Mutex::new(&mut differences);
        engine.verify(&|found| told.lock().expect("a lock").push(found.to_string())).await.expect("verified");
        assert_eq!(differences, Vec::<String>::new(), "Elasticsearch: {elastic}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn several_services_feed_one_index_while_it_is_rebuilt() {
    let fixture = Fixture::new().await;
    for engine in [fixture.postgres(), fixture.elasticsearch().await] {
        let services: Vec<_> = (0..3).map(|_| feed(&fixture, &engine)).collect();
        let write = async {
            for round in 0..6 {
                let products: Vec<_> = (0..100).map(|i| (format!("p{i}"), named(&format!("round {round}")))).collect();
                fixture.create(ShopId::GLOBAL, &products).await;
                delete(&fixture, &format!("p{round}")).await;
            }
        };
        let rebuild = async {
            // Twice while products are written; the services may be making the first index just now.
            for _ in 0..2 {
                while let Err(error) = engine.rebuild(&|done, total| assert!(done <= total)).await {
                    assert!(matches!(error, EngineError::Busy), "{error}");
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        };
        tokio::join!(write, rebuild);
        until_equal(&fixture, &engine, VISIBLE + SLACK).await;
        drop(services);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_rebuild_has_written_is_not_written_again_by_the_queue() {
    let fixture = Fixture::new().await;
    let engine = fixture.postgres();
    fixture.create(ShopId::GLOBAL, &[("1".to_owned(), named("x"))]).await;
    engine.rebuild(&|_, _| {}).await.expect("an index");
    let place = async || -> String {
        sqlx::query_scalar("select ctid::text from search_documents")
            .fetch_one(fixture.store.pool())
            .await
            .expect("a document")
    };
    let before = place().await;
    let _service = feed(&fixture, &engine);
    until_equal(&fixture, &engine, VISIBLE + SLACK).await;
    assert_eq!(place().await, before, "it was there");
    fixture.create(ShopId::GLOBAL, &[("1".to_owned(), named("y"))]).await;
    until_found(&fixture, &engine, "y", &["1"]).await;
    assert_ne!(place().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_comparison_names_every_difference() {
    let fixture = Fixture::new().await;
    fixture.create(ShopId::GLOBAL, &["1", "2", "3"].map(|id| (id.to_owned(), named("x")))).await;
    for engine in [fixture.postgres(), fixture.elasticsearch().await] {
        engine.rebuild(&|_, _| {}).await.expect("an index");
        delete(&fixture, "1").await;
        fixture.create(ShopId::GLOBAL, &[("2".to_owned(), named("y")), ("4".to_owned(), named("z"))]).await;
        let told = Mutex::new(Vec::new());
        let verified =
            engine.verify(&|found| told.lock().expect("a lock").push(found.to_string())).await.expect("verified");
        let told = told.into_inner().expect("a lock");
        assert_eq!((verified.products, verified.differences, told.len()), (3, 3, 3), "{told:?}");
        for part in ["belongs to no product", "\"2\"", "\"4\" (key"] {
            assert!(told.iter().any(|line| line.contains(part)), "{part} in {told:?}");
        }
        fixture.create(ShopId::GLOBAL, &[("1".to_owned(), named("x"))]).await;
        delete(&fixture, "4").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_elasticsearch_searches_fail_in_time_and_the_index_catches_up() {
    let fixture = Fixture::new().await;
    let proxy = Proxy::to(&support::elasticsearch().await).await;
    let engine = fixture.elasticsearch_at(&proxy.url);
    let (wake, _guard) = feed(&fixture, &engine);
    fixture.create(ShopId::GLOBAL, &[("0".to_owned(), named("thing"))]).await;
    until_found(&fixture, &engine, "thing", &["0"]).await;
    let things = criteria(json!({"keywords": "thing"}));
    let deadline = Duration::from_millis(500);
    for (mode, round) in [(Mode::Closed, 1), (Mode::Frozen, 2)] {
        proxy.set(mode);
        for i in 0..10 {
            fixture.create(ShopId::GLOBAL, &[(format!("{round}-{i}"), named("thing"))]).await;
            wake.notify_one();
            let begin = Instant::now();
            let found = engine.page(&Search { deadline, ..fixture.search(&things) }).await;
            let took = begin.elapsed();
            assert!(took < deadline + Duration::from_millis(200), "{mode:?}: {took:?}");
            match mode {
                Mode::Closed => assert!(matches!(found, Err(SearchError::Unavailable(_))), "{found:?}"),
                _ => assert!(matches!(found, Err(SearchError::TooSlow | SearchError::Unavailable(_))), "{found:?}"),
            }
        }
        proxy.set(Mode::Open);
        until_equal(&fixture, &engine, Duration::from_secs(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_vanishes_is_made_again() {
    let fixture = Fixture::new().await;
    let url = support::elasticsearch().await;
    let engine = fixture.elasticsearch_at(&url);
    let (_wake, _guard) = feed(&fixture, &engine);
    fixture.create(ShopId::GLOBAL, &[("1".to_owned(), named("thing"))]).await;
    until_found(&fixture, &engine, "thing", &["1"]).await;
    let index = fixture.store.search_indexes().await.expect("indices").remove(0).name;
    let client = Elasticsearch::new(Transport::single_node(&url).expect("a transport"));
    client.indices().delete(IndicesDeleteParts::Index(&[&index])).send().await.expect("deleted");
    until_found(&fixture, &engine, "thing", &["1"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_product_that_cannot_be_indexed_is_set_aside() {
    let fixture = Fixture::new().await;
    let engine = fixture.elasticsearch().await;
    // More tags than Elasticsearch can give positions to.
    let languages: Vec<String> = (b'a'..=b'z')
        .flat_map(|a| (b'a'..=b'z').flat_map(move |b| (b'a'..=b'z').map(move |c| [a, b, c])))
        .filter_map(|code| String::from_utf8(code.to_vec()).ok())
        .filter(|code| vat_classification::domain::languages::is_known(code))
        .take(2_200)
        .collect();
    assert_eq!(languages.len(), 2_200);
    let texts = languages.into_iter().map(|code| (code, json!({"productTags": vec!["a"; 100]})));
    let huge = details(json!({"languageAttributes": texts.collect::<serde_json::Map<_, _>>()}));
    let (wake, _guard) = feed(&fixture, &engine);
    fixture.create(ShopId::GLOBAL, &[("huge".to_owned(), huge), ("small".to_owned(), named("thing"))]).await;
    wake.notify_one();
    until_found(&fixture, &engine, "thing", &["small"]).await;
    let begin = Instant::now();
    let counts = async || (fixture.store.search_parked().await.ok(), fixture.store.search_queue_length().await.ok());
    while counts().await != (Some(1), Some(0)) {
        assert!(begin.elapsed() < VISIBLE + SLACK, "not set aside: {:?}", counts().await);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // A version that can be indexed takes it off the list.
    fixture.create(ShopId::GLOBAL, &[("huge".to_owned(), named("thing"))]).await;
    until_found(&fixture, &engine, "thing", &["huge", "small"]).await;
    assert_eq!(fixture.store.search_parked().await.expect("a count"), 0);
}
