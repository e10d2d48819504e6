//! Races, each in every order, forced and not waited for.

use futures::future::join_all;
use futures::poll;
use serde_json::json;
use vat_classification::domain::ShopId;
use vat_classification::jobs::auto_assignment::decide;
use vat_classification::store::auto_queue::Batch;
use vat_classification::store::pictures::PictureRecord;
use vat_classification::store::search::IndexRecord;
use vat_classification::store::{Settings, Store};

use crate::app::{App, action_body, version};

async fn claim(app: &App) -> Batch {
    app.store.claim_auto_assignments(100).await.expect("a claim").expect("a batch")
}

/// The rest of a worker's round, after its claim.
async fn finish(app: &App, batch: Batch) -> usize {
    let (batch, results) = decide(app.engine.clone(), batch).await;
    batch.complete(&results).await.expect("stored")
}

#[tokio::test]
async fn of_many_patches_of_one_version_one_wins() {
    let app = App::start().await;
    app.create(&[("p", "x")]).await;
    let patch = |i: usize| {
        let body = json!({"productDetails": {"manufacturerName": format!("m{i}")}});
        let app = &app;
        async move { app.patch("/products/global?productId=p&currentVersion=1", body).await.status }
    };
    let mut statuses = join_all((0..64).map(patch)).await;
    statuses.sort_unstable();
    assert_eq!(statuses[0], 200);
    assert!(statuses[1..].iter().all(|status| *status == 409), "{statuses:?}");
    assert_eq!(app.get("/products/global/p").await.body["version"], 2);
}

#[tokio::test]
async fn of_many_creations_of_one_product_one_wins() {
    let app = App::start().await;
    let create = |_| app.post("/products/global", json!({"p": {"productDetails": {}}, "q": {"productDetails": {}}}));
    let mut statuses: Vec<u16> = join_all((0..16).map(create)).await.into_iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses[0], 201);
    assert!(statuses[1..].iter().all(|status| *status == 422), "{statuses:?}");
    app.assign().await;
    assert_eq!(app.history("TARIC", "p").await.len(), 2);
}

#[tokio::test]
async fn a_manual_action_before_the_claim_leaves_nothing_to_assign() {
    let app = App::start().await;
    app.create(&[("p", "Socken aus Baumwolle")]).await;
    app.act("TARIC", "p", "REJECT", 0).await.expect(200);
    finish(&app, claim(&app).await).await;
    for taxonomy in ["TARIC", "TARES", "UKGT"] {
        assert_eq!(app.assignment(taxonomy, "p").await["autoAssignment"], "ABORTED", "{taxonomy}");
    }
    assert_eq!(app.assignment("TARIC", "p").await["assignmentStatus"], "REJECTED");
    assert_eq!(app.assignment("UKGT", "p").await["assignmentStatus"], "UNASSIGNED");
}

#[tokio::test]
async fn a_manual_action_between_claim_and_result_beats_the_result() {
    let app = App::start().await;
    app.create(&[("p", "Socken aus Baumwolle")]).await;
    let batch = claim(&app).await;
    app.act("TARIC", "p", "ASSIGN&productClass=090121-00-000", 0).await.expect(200);
    assert_eq!(finish(&app, batch).await, 0);
    let assignment = app.assignment("TARIC", "p").await;
    assert_eq!((&assignment["productClassCode"], version(&assignment)), (&json!("090121"), 1));
    app.assign().await;
    assert_eq!(app.history("UKGT", "p").await, ["anna CREATE UNASSIGNED", "anna AUTO_ABORT UNASSIGNED"]);
}

#[tokio::test]
async fn a_refused_action_aborts_all_the_same() {
    for (items, status) in
        [(action_body(&[("p", 7)]), 409), (action_body(&[("none", 0), ("p", 0)]), 404), (action_body(&[("p", 0)]), 422)]
    {
        let app = App::start().await;
        app.create(&[("p", "Socken aus Baumwolle")]).await;
        let batch = claim(&app).await;
        app.patch("/assignments/TARIC?assignmentAction=APPROVE", items).await.expect(status);
        assert_eq!(finish(&app, batch).await, 0, "{status}");
        assert_eq!(app.assignment("TARES", "p").await["autoAssignment"], "ABORTED", "{status}");
        assert_eq!(version(&app.assignment("TARIC", "p").await), 0);
    }
}

#[tokio::test]
async fn a_malformed_action_aborts_nothing() {
    let app = App::start().await;
    app.create(&[("p", "Socken aus Baumwolle")]).await;
    app.act("TARIC", "p", "ASSIGN", 0).await.expect(400);
    app.act("TARIC", "p", "ASSIGN&productClass=6115", 0).await.expect(400);
    assert_eq!(finish(&app, claim(&app).await).await, 3);
}

#[tokio::test]
async fn a_manual_action_after_the_result_needs_the_new_version() {
    let app = App::start().await;
    app.create(&[("p", "Socken aus Baumwolle")]).await;
    finish(&app, claim(&app).await).await;
    app.act("TARIC", "p", "REJECT", 0).await.expect(409);
    app.act("TARIC", "p", "REJECT", 1).await.expect(200);
}

#[tokio::test]
async fn a_result_computed_from_an_older_text_is_not_stored() {
    let app = App::start().await;
    app.create(&[("p", "Socken aus Baumwolle")]).await;
    let batch = claim(&app).await;
    let other =
        json!({"productDetails": {"languageAttributes": {"de": null}, "customsCodes": {"taricCode": "0901 21"}}});
    app.patch("/products/global?productId=p&currentVersion=1", other).await.expect(200);
    assert_eq!(finish(&app, batch).await, 0);
    assert_eq!(app.assignment("TARIC", "p").await["autoAssignment"], "PENDING");
    app.assign().await;
    assert_eq!(app.assignment("TARIC", "p").await["productClassCode"], "090121");
}

#[tokio::test]
async fn a_product_deleted_meanwhile_takes_its_result_with_it() {
    let app = App::start().await;
    app.create(&[("p", "Socken aus Baumwolle"), ("q", "Kaffee")]).await;
    let batch = claim(&app).await;
    app.delete("/products/global?productId=p&currentVersion=1").await.expect(204);
    assert_eq!(finish(&app, batch).await, 3);
    app.assign().await;
}

#[tokio::test]
async fn a_claim_given_back_is_claimed_again_and_two_workers_never_share_one() {
    let app = App::start().await;
    app.create(&[("p", "Socken aus Baumwolle")]).await;
    let first = claim(&app).await;
    assert!(app.store.claim_auto_assignments(100).await.expect("a look").is_none());
    drop(first);
    // The rollback of the dropped claim is under way; the next claim finds the row as soon as it is through.
    let mut again = None;
    while again.is_none() {
        again = app.store.claim_auto_assignments(100).await.expect("a look");
    }
    assert_eq!(finish(&app, again.expect("a batch")).await, 3);
}

/// Waits until so many statements on the test's database wait for a lock.
async fn until_waiting(app: &App, count: i64) {
    let waiting =
        "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    while sqlx::query_scalar::<_, i64>(waiting).fetch_one(app.store.pool()).await.expect("a count") < count {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn of_two_first_pictures_one_is_refused() {
    let app = App::start().await;
    app.create(&[("p", "x")]).await;
    let account = app.store.account_by_name("shop", "x").await.expect("an answer").expect("the account").account;
    let mut held = app.store.pool().begin().await.expect("a transaction");
    sqlx::query("select from products for update").execute(&mut *held).await.expect("locked");
    let first = |key: &'static str| {
        let picture = PictureRecord {
            object_key: key.to_owned(),
            content_type: "image/png".to_owned(),
            width: 1,
            height: 1,
            size: 1,
            etag: key.to_owned(),
        };
        let store = app.store.clone();
        async move { store.set_picture(account, ShopId::GLOBAL, "p", &picture, false).await.is_ok() }
    };
    let release = async {
        until_waiting(&app, 2).await;
        held.rollback().await.expect("released");
    };
    let (one, other, ()) = tokio::join!(first("one"), first("other"), release);
    assert!(one ^ other, "{one} {other}");
}

#[tokio::test]
async fn a_replacement_answers_what_it_wrote_though_the_product_is_deleted_at_once() {
    let app = App::start().await;
    for round in 0..40 {
        let id = format!("p{round}");
        app.create(&[(&id, "x")]).await;
        let path = format!("/products/global?productId={id}&currentVersion=1");
        let put = app.put(&path, crate::app::german("y"));
        let delete = async {
            while app.delete(&format!("/products/global?productId={id}&currentVersion=2")).await.status != 204 {}
        };
        let (answer, ()) = tokio::join!(put, delete);
        assert_eq!(answer.expect(200).body["version"], 2);
    }
}

#[tokio::test]
async fn a_product_that_is_deleted_while_it_is_decided_leaves_no_words() {
    let app = App::start().await;
    app.create(&[("gone", "Kaffee"), ("kept", "Kaffee")]).await;
    let batch = claim(&app).await;
    app.delete("/products/global?productId=gone&currentVersion=1").await.expect(204);
    assert_eq!(finish(&app, batch).await, 3);
    let keys: Vec<i64> =
        sqlx::query_scalar("select product_key from product_words").fetch_all(app.store.pool()).await.expect("words");
    let kept: Vec<i64> =
        sqlx::query_scalar("select product_key from products").fetch_all(app.store.pool()).await.expect("products");
    assert_eq!(keys, kept);
}

/// Two requests that name the same products in opposite orders would wait for each other, were they locked as named.
#[tokio::test]
async fn products_are_locked_in_their_own_order_whatever_that_of_a_request() {
    let app = App::start().await;
    for id in ["a", "b", "c"] {
        app.create(&[(id, "x")]).await;
    }
    let mut held = app.store.pool().begin().await.expect("a transaction");
    sqlx::query("select from products where product_id = 'c' for update").execute(&mut *held).await.expect("locked");
    // Read as it is written: a map of values would be in order already.
    let body = r#"{"c": {"productDetails": {}}, "a": {"productDetails": {}}, "b": {"productDetails": {}}}"#;
    let path = "/products/global?updateIfExists=true";
    let upsert = app.raw(&app.token, "POST", path, "application/json", body.into());
    let release = async {
        until_waiting(&app, 1).await;
        let free: Vec<String> =
            sqlx::query_scalar("select product_id from products where product_id <> 'c' for update skip locked")
                .fetch_all(&mut *held)
                .await
                .expect("an answer");
        assert_eq!(free, [""; 0], "what comes before is locked before");
        held.rollback().await.expect("released");
    };
    let (answer, ()) = tokio::join!(upsert, release);
    answer.expect(201);
}

#[tokio::test]
async fn who_goes_away_while_a_transaction_begins_leaves_none_to_the_next() {
    let app = App::start().await;
    let settings = Settings { database_connections: 1, ..Settings::default() };
    let store = Store::connect_with(app.database_url(), &settings).await.expect("connected");
    assert!(store.search_indexes().await.expect("indices").is_empty());
    for polls in 1..=4 {
        let mut begins = Box::pin(store.products_after_key(0, 1));
        for _ in 0..polls {
            assert!(poll!(&mut begins).is_pending());
        }
        drop(begins);
        let index = IndexRecord {
            name: format!("noted after {polls}"),
            family: "family".to_owned(),
            mapping_version: 1,
            building: true,
            stale: false,
            built_to: None,
        };
        store.add_search_index(&index).await.expect("noted");
        let known = app.store.search_indexes().await.expect("indices");
        assert!(known.contains(&index), "what is acknowledged after {polls} stands in a transaction that nobody ends");
    }
}

#[tokio::test]
async fn sequences_are_raised_when_nobody_has_half_of_a_journal_written() {
    let app = App::start().await;
    sqlx::query("update journal_base set timeline = 0").execute(app.store.pool()).await.expect("another past");
    let base = async || -> i64 {
        sqlx::query_scalar("select base from journal_base").fetch_one(app.store.pool()).await.expect("a base")
    };
    let before = base().await;
    // As somebody has it whose entries are not committed: below a base that was raised meanwhile nobody would see them.
    let mut writer = app.store.pool().begin().await.expect("a transaction");
    sqlx::query("lock table journal in row exclusive mode").execute(&mut *writer).await.expect("a lock");
    let mut migrated = Box::pin(app.store.migrate());
    tokio::select! {
        migrated = &mut migrated => panic!("raised beside a writer: {migrated:?}"),
        () = app.until_somebody_waits_for("journal") => {}
    }
    assert_eq!(base().await, before);
    writer.rollback().await.expect("no lock");
    migrated.await.expect("migrated");
    assert!(base().await > before);
}

#[tokio::test]
async fn a_weight_that_is_set_while_a_product_is_classified_stays() {
    let app = App::start().await;
    app.create(&[("p", "Kaffee")]).await;
    let batch = claim(&app).await;
    let heavy = json!({"productDetails": {"reviewWeight": 100}});
    app.patch("/products/global?productId=p&currentVersion=1", heavy).await.expect(200);
    finish(&app, batch).await;
    let weights: Vec<f32> = sqlx::query_scalar("select distinct review_weight from assignments")
        .fetch_all(app.store.pool())
        .await
        .expect("weights");
    assert_eq!(weights, [100.0]);
}
