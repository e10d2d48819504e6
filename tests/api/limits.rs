//! What the database does to a statement that goes on, and to a transaction that is left open, directly and behind a pooler.
//!
//! The pooler is the setting alone here: what it would keep from the start of a connection is then not there either.

use std::time::Duration;

use serde_json::json;
use vat_classification::domain::ShopId;
use vat_classification::domain::access::{Level, Plan};
use vat_classification::store::deadline::FilterError;
use vat_classification::store::labels::Label;
use vat_classification::store::{Settings, Store};

use crate::app::{App, german};
use crate::filling::fill;

/// How long a transaction may lie idle in tests that wait for its end: longer than this machine is ever away from one.
const IDLE: Duration = Duration::from_secs(2);
/// The account that moves.
const NAME: &str = "boutique";

async fn connected(url: &str, is_pooled: bool) -> Store {
    let settings = Settings {
        database_statement_timeout_s: 1,
        database_transaction_pooler: is_pooled,
        database_idle_in_transaction: IDLE,
        ..Settings::default()
    };
    Store::connect_with(url, &settings).await.expect("connected")
}

/// Leaves a transaction of the store open until the database has ended it, which gives the row that it claimed back.
async fn outlast_an_idle_transaction(store: &Store, app: &App) {
    let claimed = store.claim_auto_assignments(1).await.expect("a claim").expect("a row");
    while app.store.claim_auto_assignments(1).await.expect("a claim").is_none() {
        tokio::task::yield_now().await;
    }
    drop(claimed);
}

#[tokio::test]
async fn every_connection_has_limits_from_its_start() {
    let app = App::start().await;
    let limits: Vec<(String, String)> = sqlx::query_as(
        "select name, case when name ~ 'timeout' then setting || unit else '' end from pg_settings
         where source = 'client' and name ~ '^(statement|idle_in|tcp_keep)' order by name",
    )
    .fetch_all(app.store.pool())
    .await
    .expect("settings");
    let limits: Vec<String> = limits.into_iter().map(|(name, value)| format!("{name} {value}")).collect();
    let expected = [
        "idle_in_transaction_session_timeout 60000ms",
        // What they are is told only of a connection over TCP.
        "statement_timeout 60000ms",
        "tcp_keepalives_count ",
        "tcp_keepalives_idle ",
        "tcp_keepalives_interval ",
    ];
    assert_eq!(limits, expected);
}

#[tokio::test]
async fn a_statement_of_a_transaction_ends_at_its_limit_behind_a_pooler_too() {
    let app = App::start().await;
    let account = app.caller("anna").await.account;
    let mut works = app.store.pool().begin().await.expect("begun");
    sqlx::raw_sql("lock table assignment_labels").execute(&mut *works).await.expect("held");
    for is_pooled in [false, true] {
        let store = connected(app.database_url(), is_pooled).await;
        let label = Label { label: "late".to_owned(), color: "#aabbcc".to_owned() };
        let defined = tokio::time::timeout(Duration::from_secs(60), store.define_label(account, &label)).await;
        let error = defined.expect("a limit").expect_err("the table is locked");
        assert!(error.is_too_slow(), "{is_pooled}: {error}");
    }
}

#[tokio::test]
async fn the_right_to_rebuild_outlasts_the_limit_at_which_another_idle_transaction_ends() {
    let app = App::start().await;
    app.create(&[("p", "Kaffee")]).await;
    for is_pooled in [false, true] {
        let store = connected(app.database_url(), is_pooled).await;
        let right = store.lock_rebuild().await.expect("an answer").expect("the right");
        outlast_an_idle_transaction(&store, &app).await;
        assert!(app.store.lock_rebuild().await.expect("an answer").is_none(), "{is_pooled}");
        right.release().await.expect("a transaction that is still there");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_outlasts_the_limit_at_which_another_idle_transaction_ends() {
    for is_pooled in [false, true] {
        let (here, there) = (App::start().await, App::start().await);
        here.create(&[("p", "Kaffee")]).await;
        here.store.create_account(NAME, Plan::Unlimited).await.expect("an account");
        let token = here.token(NAME, "anna", Level::Admin).await;
        let body = json!({"p": german("Tee")}).to_string();
        here.raw(&token, "POST", "/products/global", "application/json", body.into()).await.expect(201);
        let store = connected(here.database_url(), is_pooled).await;
        let target = connected(there.database_url(), is_pooled).await;
        let mut waits = true;
        // Called between two tables: the copy's snapshot lies idle, and what keeps other moves away.
        let told = |_: &str, _: u64| {
            if std::mem::take(&mut waits) {
                tokio::task::block_in_place(|| {
                    tokio::runtime::Handle::current().block_on(outlast_an_idle_transaction(&store, &here));
                });
            }
        };
        let moved = store.move_account(NAME, &target, Duration::ZERO, told).await;
        assert_eq!(moved.expect("moved"), 1, "{is_pooled}");
    }
}

#[tokio::test]
async fn a_count_of_products_ends_at_the_deadline_of_searches() {
    let app = App::start().await;
    let account = app.caller("anna").await.account;
    let mut works = app.store.pool().begin().await.expect("begun");
    sqlx::raw_sql("lock table products").execute(&mut *works).await.expect("held");
    let count = app.store.count_selected(account, ShopId::GLOBAL, None, None, Duration::from_millis(100));
    let counted = tokio::time::timeout(Duration::from_secs(50), count).await.expect("a deadline");
    assert!(matches!(counted, Err(FilterError::TooSlow)), "{counted:?}");
    works.rollback().await.expect("let go");
    let path = "/products/global?count=true";
    assert_eq!(app.get(path).await.expect(200).body["total"], 0);
}

#[tokio::test]
async fn products_are_counted_for_a_bar_of_progress_while_they_are_few_and_supposed_when_they_are_many() {
    let app = App::start().await;
    let run = async |statement: &'static str| {
        sqlx::raw_sql(statement).execute(app.store.pool()).await.expect(statement);
    };
    let count = async || app.store.count_products().await.expect("a count");
    run("alter table products set (autovacuum_enabled = false)").await;
    fill(&app, 30_000, &[]).await;
    assert_eq!(count().await, 20_000, "at least as many, before the database has looked");
    run("analyze products").await;
    assert_eq!(count().await, 30_000);
    // Rows that are gone since are supposed to be there; few are counted all the same.
    run("delete from assignments where product_id like 'p11%'; delete from products where product_id like 'p11%'")
        .await;
    assert!((30_000..=31_000).contains(&count().await));
    run("delete from assignments where product_id <> 'p2'; delete from products where product_id <> 'p2'").await;
    assert_eq!(count().await, 1);
}
