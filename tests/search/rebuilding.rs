//! Rebuilds go on where they stopped, and states of the server are told from what documents hold.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use elasticsearch::Elasticsearch;
use elasticsearch::http::transport::Transport;
use elasticsearch::indices::{IndicesCloseParts, IndicesOpenParts};
use serde_json::json;
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};
use vat_classification::domain::{Details, ShopId};
use vat_classification::jobs::projection;
use vat_classification::search::{Engine, EngineError};

use crate::fixture::{Fixture, details};
use crate::support;

/// More than an engine writes in one part.
const PRODUCTS: usize = 1_200;
/// How long a rebuild that was dropped may be busy.
const UNTIL_FREE: Duration = Duration::from_secs(30);

fn named(name: &str) -> Details {
    details(json!({"languageAttributes": {"en": {"productName": name}}}))
}

/// Runs the job until the guard is dropped.
fn feed(fixture: &Fixture, engine: &Engine) -> (Arc<Notify>, DropGuard) {
    let (wake, shutdown) = (Arc::new(Notify::new()), CancellationToken::new());
    tokio::spawn(projection::run(fixture.store.clone(), engine.clone(), wake.clone(), shutdown.clone()));
    (wake, shutdown.drop_guard())
}

/// What every other connection to the database does, since when, and who keeps it waiting.
async fn activity(fixture: &Fixture) -> Vec<String> {
    sqlx::query_scalar(
        "select concat_ws(' | ', pid, pg_blocking_pids(pid), state, wait_event_type, wait_event, now() - xact_start, query)
         from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
    )
    .fetch_all(fixture.store.pool())
    .await
    .expect("the activity")
}

/// Rebuilds and tells how many products were written by it. One that was dropped before is busy until its connection has
/// been given back.
async fn rebuild(fixture: &Fixture, engine: &Engine) -> i64 {
    let written = AtomicI64::new(0);
    let deadline = Instant::now() + UNTIL_FREE;
    loop {
        match engine.rebuild(&|done, _| written.store(done, Ordering::SeqCst)).await {
            Err(EngineError::Busy) if Instant::now() < deadline => tokio::time::sleep(Duration::from_millis(10)).await,
            Ok(()) => break,
            Err(error) => panic!("{error}, while the database did {:#?}", activity(fixture).await),
        }
    }
    written.into_inner()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rebuild_goes_on_where_an_earlier_one_stopped() {
    let fixture = Fixture::new().await;
    let products: Vec<_> = (0..PRODUCTS).map(|i| (format!("p{i:04}"), named("thing"))).collect();
    fixture.create(ShopId::GLOBAL, &products).await;
    for engine in [fixture.postgres(), fixture.elasticsearch().await] {
        // The service ends after the first part.
        let first_part = Notify::new();
        let stop = async {
            first_part.notified().await;
        };
        let progress = |_, _| first_part.notify_one();
        let rebuilding = engine.rebuild(&progress);
        tokio::select! {
            biased;
            () = stop => {}
            done = rebuilding => done.expect("an index"),
        }
        // Elasticsearch notes it after more parts than a test has.
        let half: i64 = sqlx::query_scalar("select min(product_key) + 599 from products")
            .fetch_one(fixture.store.pool())
            .await
            .expect("a key");
        let noted = sqlx::query("update search_indexes set built_to = coalesce(built_to, $1) where building")
            .bind(half)
            .execute(fixture.store.pool())
            .await
            .expect("noted");
        assert_eq!(noted.rows_affected(), 1, "{:?}", fixture.store.search_indexes().await);
        let written = rebuild(&fixture, &engine).await;
        assert!((600..=700).contains(&written), "{written} of {PRODUCTS} written again");
        let verified = engine.verify(&|_| {}).await.expect("verified");
        assert_eq!((verified.products, verified.differences), (PRODUCTS as i64, 0));
        assert!(fixture.store.search_indexes().await.expect("indices").iter().all(|index| !index.building));
        // That of Elasticsearch would wait half a minute until the new index can be made small.
        if matches!(engine, Engine::Postgres(_)) {
            assert_eq!(
                rebuild(&fixture, &engine).await,
                PRODUCTS as i64,
                "one that is asked for afterwards begins anew"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_index_parks_nothing() {
    let fixture = Fixture::new().await;
    let engine = fixture.elasticsearch().await;
    fixture.create(ShopId::GLOBAL, &[("1".to_owned(), named("thing"))]).await;
    rebuild(&fixture, &engine).await;
    let index = fixture.store.search_indexes().await.expect("indices").remove(0).name;
    let url = support::elasticsearch().await;
    let client = Elasticsearch::new(Transport::single_node(&url).expect("a transport"));
    let closed = client.indices().close(IndicesCloseParts::Index(&[&index])).send().await.expect("an answer");
    assert!(closed.status_code().is_success());
    let mut claim = fixture.store.claim_search_changes(10).await.expect("a claim").expect("rows");
    let changes: Vec<_> = claim.take().0.into_iter().map(|product| product.change()).collect();
    let outcomes = engine.apply(&changes).await;
    if let Ok(outcomes) = outcomes {
        claim.finish(&changes.into_iter().zip(outcomes).collect::<Vec<_>>()).await.expect("finished");
    } else {
        claim.release().await.expect("given back");
    }
    let counts = async || (fixture.store.search_parked().await.ok(), fixture.store.search_queue_length().await.ok());
    assert_eq!(counts().await, (Some(0), Some(1)));
    client.indices().open(IndicesOpenParts::Index(&[&index])).send().await.expect("opened");
    let (_wake, _guard) = feed(&fixture, &engine);
    let begin = std::time::Instant::now();
    while counts().await != (Some(0), Some(0)) {
        assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", counts().await);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Puts the products back to what was set aside.
const RESTORE: &str = "update products set details = kept.details, version = kept.version
        from kept where kept.product_key = products.product_key;
    delete from products where product_key not in (select product_key from kept);
    delete from search_outbox";

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restore_the_index_is_built_anew_and_finds_nothing_of_what_is_no_more() {
    let fixture = Fixture::new().await;
    let engine = fixture.elasticsearch().await;
    let run = async |statement: &'static str| {
        sqlx::raw_sql(statement).execute(fixture.store.pool()).await.expect(statement);
    };
    fixture.store.migrate().await.expect("a start");
    let create = async |id: &str, name: &str| fixture.create(ShopId::GLOBAL, &[(id.to_owned(), named(name))]).await;
    create("1", "tea").await;
    create("2", "tea").await;
    rebuild(&fixture, &engine).await;
    let named_so = |name: &str| crate::fixture::criteria(json!({"productName": name, "languageKey": "en"}));
    let becomes = async |teas: &[&str], coffees: &[&str]| {
        let begin = std::time::Instant::now();
        let found = async |name: &str| fixture.all(&engine, 0, &named_so(name), 10).await;
        while (found("tea").await, found("coffee").await) != (to_owned(teas), to_owned(coffees)) {
            assert!(begin.elapsed() < Duration::from_secs(30), "{:?} {:?}", found("tea").await, found("coffee").await);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    {
        let (_wake, _guard) = feed(&fixture, &engine);
        becomes(&["1", "2"], &[]).await;
        run("create table kept as select * from products").await;
        create("2", "coffee").await;
        create("3", "coffee").await;
        becomes(&["1"], &["2", "3"]).await;
    }
    run(RESTORE).await;
    run(support::RESTORED).await;
    fixture.store.migrate().await.expect("a start");
    let (_wake, _guard) = feed(&fixture, &engine);
    becomes(&["1", "2"], &[]).await;
    assert_eq!(engine.verify(&|_| {}).await.expect("verified").differences, 0);
}

fn to_owned(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_are_spread_over_shards_and_found_there() {
    let fixture = Fixture::new().await;
    let engine = fixture.elasticsearch_of_shards(4, 2).await;
    let products: Vec<_> = (0..60).map(|i| (format!("p{i:02}"), named("thing"))).collect();
    fixture.create(ShopId::GLOBAL, &products).await;
    assert_eq!(rebuild(&fixture, &engine).await, 60);
    let things = crate::fixture::criteria(json!({"productName": "thing", "languageKey": "en"}));
    let ids: Vec<String> = products.into_iter().map(|(id, _)| id).collect();
    assert_eq!(fixture.all(&engine, 0, &things, 7).await, ids);
    assert_eq!(engine.verify(&|_| {}).await.expect("verified").differences, 0);
}
