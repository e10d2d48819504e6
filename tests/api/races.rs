//! Races, each in every order, forced and not waited for.

use futures::future::join_all;
use serde_json::json;
use vat_classification::jobs::auto_assignment::decide;
use vat_classification::store::auto_queue::Batch;

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
