//! The feed of changes.

use std::collections::BTreeSet;

use futures::future::join;
use serde_json::{Value, json};

use crate::app::{App, german};

fn kinds(page: &Value) -> Vec<String> {
    let items = page["items"].as_array().expect("items");
    items.iter().map(|item| item["type"].as_str().expect("a type").to_owned()).collect()
}

/// The feed from a place on, once it has so many changes: it waits for transactions that still run, those of other
/// tests on the same server among them.
async fn read(app: &App, query: &str, from: &str, count: usize) -> Vec<Value> {
    let mut after = from.to_owned();
    let mut items = Vec::new();
    while items.len() < count {
        let page = app.get(&format!("/changes?after={after}&size=2&wait=30{query}")).await.expect(200).body;
        items.extend(page["items"].as_array().expect("items").iter().cloned());
        after = page["next"].as_str().expect("a place").to_owned();
    }
    items
}

#[tokio::test]
async fn the_feed_tells_every_change_in_order_and_goes_on_where_it_stopped() {
    let app = App::start().await;
    let coded = json!({"a": {"productDetails": {"customsCodes": {"taricCode": "0901 21"}}}});
    app.post("/products/global", coded).await.expect(201);
    app.assign().await;
    app.patch("/products/global?productId=a&currentVersion=1", json!({})).await.expect(200);
    app.act("TARIC", "a", "REJECT", 1).await.expect(200);
    app.delete("/products/global?productId=a&currentVersion=2").await.expect(204);
    let items = read(&app, "", "0", 10).await;
    let told: Vec<&str> = items.iter().filter_map(|item| item["type"].as_str()).collect();
    assert_eq!(
        told.join(" "),
        "PRODUCT_CREATED ASSIGNMENT_CREATE ASSIGNMENT_CREATE ASSIGNMENT_CREATE ASSIGNMENT_AUTO_ASSIGN \
         ASSIGNMENT_AUTO_ASSIGN ASSIGNMENT_AUTO_ASSIGN PRODUCT_UPDATED ASSIGNMENT_REJECT PRODUCT_DELETED"
    );
    let places: Vec<&str> = items.iter().map(|item| item["sequence"].as_str().expect("a text")).collect();
    assert!(places.is_sorted() && places.iter().collect::<BTreeSet<_>>().len() == places.len());
    assert_eq!(items[0].get("assignmentStatus"), None);
    assert_eq!((&items[1]["assignmentStatus"], &items[1]["autoAssignment"]), (&json!("UNASSIGNED"), &json!("PENDING")));
    let found = &items[4];
    assert_eq!(found["autoAssignment"], "DONE");
    assert!(found["productClassCode"].is_string() && found["assignmentStatus"] != "UNASSIGNED", "{found}");
    assert_eq!(items[8]["assignmentStatus"], "REJECTED");
    let rest = read(&app, "", places[7], 2).await;
    assert_eq!(rest, items[8..]);
}

#[tokio::test]
async fn the_feed_selects_by_type_and_taxonomy_and_always_says_where_to_go_on() {
    let app = App::start().await;
    let empty = app.get("/changes").await.expect(200).body;
    assert_eq!(empty["items"], json!([]));
    app.create(&[("a", "Kaffee"), ("b", "Tee")]).await;
    let created =
        read(&app, "&types=product_created,PRODUCT_DELETED", empty["next"].as_str().expect("a place"), 2).await;
    assert_eq!(created.iter().map(|item| &item["productId"]).collect::<Vec<_>>(), ["a", "b"]);
    let of_ukgt = read(&app, "&taxonomy=ukgt", "0", 2).await;
    assert!(of_ukgt.iter().all(|item| item["taxonomy"] == "UKGT" && item["type"] == "ASSIGNMENT_CREATE"));
    for bad in ["types=ASSIGN", "taxonomy=HS", "after=x", "after=-1", "wait=31", "wait=-1", "after=", "since=latest"] {
        app.get(&format!("/changes?{bad}")).await.expect(400);
    }
}

#[tokio::test]
async fn latest_begins_at_the_present_and_wait_holds_the_answer_until_there_is_something() {
    let app = App::start().await;
    app.create(&[("before", "Kaffee")]).await;
    read(&app, "", "0", 4).await;
    let latest = app.get("/changes?after=latest").await.expect(200).body;
    assert_eq!(latest["items"], json!([]));
    let next = latest["next"].as_str().expect("a place");
    let create = async {
        tokio::task::yield_now().await;
        app.post("/products/global", json!({"after": german("Tee")})).await.expect(201);
    };
    let path = format!("/changes?after={next}&wait=30&types=PRODUCT_CREATED");
    let (held, ()) = join(app.get(&path), create).await;
    let held = held.expect(200).body;
    assert_eq!(kinds(&held), ["PRODUCT_CREATED"]);
    assert_eq!(held["items"][0]["productId"], "after");
}

#[tokio::test]
async fn so_many_may_wait_and_a_service_that_stops_lets_them_go() {
    let app = App::start().await;
    let waiting = (0..17).map(|_| app.get("/changes?after=latest&wait=30&types=PRODUCT_DELETED"));
    let mut waiting: futures::stream::FuturesUnordered<_> = waiting.collect();
    // One too many is sent away at once, the others wait until the service stops.
    let sent_away = futures::StreamExt::next(&mut waiting).await.expect("an answer");
    assert_eq!(sent_away.status, 503, "{}", sent_away.body);
    app.stopping.cancel();
    while let Some(answer) = futures::StreamExt::next(&mut waiting).await {
        assert_eq!(answer.expect(200).body["items"], json!([]));
    }
}
