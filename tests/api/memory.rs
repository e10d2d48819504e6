//! What one decision teaches.

use serde_json::{Value, json};
use vat_classification::domain::access::Level;
use vat_classification::domain::access::Plan;
use vat_classification::jobs::memory;

use crate::app::{App, german, version};

/// A good of which no model has heard, in variants, and another one.
const GOODS: [(&str, &str); 4] = [
    ("a", "Zanbar Quillet Morvo 45 blau"),
    ("b", "Zanbar Quillet Morvo 60 rot"),
    ("c", "Zanbar Quillet Morvo schwarz"),
    ("other", "Trumel Veskon Ixpar blau"),
];
const TOLD: &str = "ASSIGN&productClass=0901210000-00-000";

async fn act(app: &App, product: &str, action: &str) {
    let now = version(&app.assignment("TARIC", product).await);
    app.act("TARIC", product, action, now).await.expect(200);
}

async fn class(app: &App, product: &str) -> Value {
    app.assignment("TARIC", product).await["productClassCode"].clone()
}

async fn with_goods() -> App {
    let app = App::start().await;
    app.create(&GOODS).await;
    app.assign().await;
    for (product, _) in GOODS {
        assert_eq!(app.assignment("TARIC", product).await["assignmentStatus"], "UNASSIGNED", "{product}");
    }
    app
}

fn question(name: &str, memory: Option<bool>) -> Value {
    let texts = german(name)["productDetails"]["languageAttributes"].clone();
    let mut body = json!({"taxonomy": "TARIC", "items": [{"languageAttributes": texts}]});
    if let Some(memory) = memory {
        body["memory"] = json!(memory);
    }
    body
}

#[tokio::test]
async fn one_decision_teaches_products_that_are_alike_and_no_others() {
    let app = with_goods().await;
    act(&app, "a", TOLD).await;
    app.learn().await;
    let own = app.assignment("TARIC", "a").await;
    for product in ["b", "c"] {
        let taught = app.assignment("TARIC", product).await;
        assert_eq!(
            (&taught["productClassCode"], &taught["strategy"]),
            (&own["productClassCode"], &json!("DESCRIPTION"))
        );
        assert!(taught["confidence"].as_f64().is_some_and(|sure| (0.95..1.0).contains(&sure)), "{taught}");
        let uuid = taught["assignmentUuid"].as_str().expect("a uuid");
        let shown = app.get(&format!("/assignments/TARIC/{uuid}?embed=EVENTS,CANDIDATES")).await.expect(200).body;
        let evidence = &shown["candidates"][0]["evidence"][0];
        assert_eq!(evidence["decision"], own["assignmentUuid"]);
        assert!(evidence["similarity"].as_f64().is_some_and(|alike| alike > 0.6), "{evidence}");
        let events = shown["events"].as_array().expect("events");
        let queued = events.iter().find(|event| event["action"] == "REQUEUE").expect("an event");
        assert_eq!(queued["actor"], "memory");
        let comment = queued["comment"].as_str().expect("a comment");
        assert!(comment.contains(own["assignmentUuid"].as_str().expect("a uuid")), "{comment}");
    }
    assert_eq!(app.assignment("TARIC", "other").await["assignmentStatus"], "UNASSIGNED");
    // Another taxonomy was not spoken of.
    assert_eq!(app.assignment("UKGT", "b").await["assignmentStatus"], "UNASSIGNED");
    // A product that comes later is decided as it comes.
    app.create(&[("d", "Zanbar Quillet Morvo 75 gelb")]).await;
    app.assign().await;
    assert_eq!(class(&app, "d").await, own["productClassCode"]);
}

#[tokio::test]
async fn a_decision_taken_back_takes_its_consequences_back() {
    let app = with_goods().await;
    act(&app, "a", TOLD).await;
    app.learn().await;
    assert!(class(&app, "b").await.is_string());
    act(&app, "a", "UNASSIGN").await;
    app.learn().await;
    for product in ["a", "b", "c"] {
        assert_eq!(app.assignment("TARIC", product).await["assignmentStatus"], "UNASSIGNED", "{product}");
    }
    act(&app, "a", TOLD).await;
    act(&app, "a", "ASSIGN&productClass=190219-00-000").await;
    app.learn().await;
    assert_eq!(class(&app, "b").await, class(&app, "a").await);
    act(&app, "a", "REJECT").await;
    app.learn().await;
    assert_eq!(app.assignment("TARIC", "b").await["assignmentStatus"], "UNASSIGNED");
}

#[tokio::test]
async fn what_people_decided_is_never_touched() {
    let app = with_goods().await;
    act(&app, "b", "ASSIGN&productClass=190219-00-000").await;
    act(&app, "c", "DENY").await;
    let before = (app.assignment("TARIC", "b").await, app.assignment("TARIC", "c").await);
    act(&app, "a", TOLD).await;
    app.learn().await;
    assert_eq!((app.assignment("TARIC", "b").await, app.assignment("TARIC", "c").await), before);
    // Of two contradictory decisions neither is sure enough for a third product.
    app.create(&[("d", "Zanbar Quillet Morvo grau")]).await;
    app.assign().await;
    assert_eq!(app.assignment("TARIC", "d").await["assignmentStatus"], "UNASSIGNED");
}

#[tokio::test]
async fn classifications_use_memory_unless_they_are_asked_not_to() {
    let app = with_goods().await;
    act(&app, "a", TOLD).await;
    app.learn().await;
    let ask =
        async |memory| app.post("/classifications", question("Quillet Zanbar Morvo", memory)).await.expect(200).body;
    for memory in [None, Some(true)] {
        let item = ask(memory).await["items"][0].clone();
        assert_eq!(item["decision"]["productClassCode"], class(&app, "a").await);
        assert_eq!(
            item["candidates"][0]["evidence"][0]["decision"],
            app.assignment("TARIC", "a").await["assignmentUuid"]
        );
    }
    let without = ask(Some(false)).await["items"][0].clone();
    assert_eq!((&without["decision"]["assignmentStatus"], &without["candidates"]), (&json!("UNASSIGNED"), &json!([])));
}

#[tokio::test]
async fn no_account_learns_from_another() {
    let app = with_goods().await;
    app.store.create_account("rival", Plan::Unlimited).await.expect("an account");
    let rival = app.token("rival", "rita", Level::Admin).await;
    let body = Value::Object([("x".to_owned(), german("Zanbar Quillet Morvo grün"))].into_iter().collect());
    app.raw(&rival, "POST", "/products/global", "application/json", body.to_string().into()).await.expect(201);
    app.assign().await;
    act(&app, "a", TOLD).await;
    app.learn().await;
    let path = "/assignments/TARIC?assignmentStatus=ALL&embed=CANDIDATES";
    let list = app.raw(&rival, "GET", path, "application/json", String::new().into()).await.expect(200).body;
    assert_eq!(list["items"][0]["assignmentStatus"], "UNASSIGNED");
    assert_eq!(list["items"][0]["candidates"], json!([]));
    let asked = question("Zanbar Quillet Morvo", None).to_string();
    let answer = app.raw(&rival, "POST", "/classifications", "application/json", asked.into()).await.expect(200).body;
    assert_eq!(answer["items"][0]["decision"]["assignmentStatus"], "UNASSIGNED");
    let uuid = list["items"][0]["assignmentUuid"].as_str().expect("a uuid").to_owned();
    let path = format!("/assignments/TARIC/{uuid}/alike");
    let alike = app.raw(&rival, "GET", &path, "application/json", String::new().into()).await.expect(200).body;
    assert_eq!(alike, json!({"items": []}));
    app.get(&path).await.expect(404);
}

#[tokio::test]
async fn alike_products_are_listed_with_their_class_the_most_alike_first() {
    let app = with_goods().await;
    act(&app, "b", TOLD).await;
    app.create(&[("near", "Zanbar Quillet Morvo Dromell")]).await;
    app.assign().await;
    let uuid = app.assignment("TARIC", "a").await["assignmentUuid"].as_str().expect("a uuid").to_owned();
    let list = app.get(&format!("/assignments/TARIC/{uuid}/alike")).await.expect(200).body;
    let items = list["items"].as_array().expect("items");
    let mut ids: Vec<&str> = items.iter().filter_map(|item| item["productId"].as_str()).collect();
    let similarities: Vec<f64> = items.iter().filter_map(|item| item["similarity"].as_f64()).collect();
    assert!(similarities.is_sorted_by(|a, b| a >= b), "{list}");
    assert_eq!(ids.last(), Some(&"near"), "{list}");
    ids.sort_unstable();
    assert_eq!(ids, ["b", "c", "near"]);
    let b = items.iter().find(|item| item["productId"] == "b").expect("b");
    assert_eq!((&b["strategy"], &b["productClassCode"]), (&json!("MANUAL"), &class(&app, "b").await));
    app.get(&format!("/assignments/UKGT/{uuid}/alike")).await.expect(404);
    app.get("/assignments/TARIC/none/alike").await.expect(404);
}

#[tokio::test]
async fn another_service_and_one_that_starts_anew_know_what_was_decided() {
    let app = with_goods().await;
    act(&app, "a", TOLD).await;
    app.learn().await;
    let started = std::sync::Arc::new(app.engine.with_own_memory());
    memory::follow(&app.store, &started).await.expect("followed");
    assert_eq!(started.memory().len(), 1);
    act(&app, "a", "UNASSIGN").await;
    act(&app, "other", TOLD).await;
    act(&app, "b", "ASSIGN&productClass=190219-00-000").await;
    memory::follow(&app.store, &started).await.expect("followed");
    assert_eq!(started.memory().len(), 2);
    memory::follow(&app.store, &started).await.expect("followed");
    assert_eq!(started.memory().len(), 2);
}

#[tokio::test]
async fn a_cleared_memory_is_empty_and_leaves_decisions_as_they_are() {
    let app = with_goods().await;
    act(&app, "a", TOLD).await;
    app.learn().await;
    let account = app.caller("ben").await.account;
    let sizes = app.store.memory_sizes(account).await.expect("sizes");
    assert_eq!(
        sizes.iter().map(|size| (size.taxonomy().name(), size.right, size.wrong)).collect::<Vec<_>>(),
        [("TARIC", 1, 0)]
    );
    assert_eq!(app.store.clear_memory(account).await.expect("cleared"), 1);
    app.learn().await;
    assert!(app.engine.memory().is_empty());
    assert!(app.store.memory_sizes(account).await.expect("sizes").is_empty());
    assert!(class(&app, "a").await.is_string() && class(&app, "b").await.is_string());
}
