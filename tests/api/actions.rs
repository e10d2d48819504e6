//! What people do with assignments: on named products, on everything that a filter selects, and taking it back.

use futures::future::join_all;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use vat_classification::jobs::review;

use crate::app::{App, german, version};

const ASSIGN: &str = "/assignments/TARIC?assignmentAction=ASSIGN";

/// A service with coffee by its code, which is ASSIGNED in TARIC at version 1, under these ids.
async fn coffees(ids: &[&str]) -> App {
    let app = App::start().await;
    let coffee = json!({"productDetails": {"customsCodes": {"taricCode": "0901 21 00"}}});
    let products: serde_json::Map<String, Value> = ids.iter().map(|id| ((*id).to_owned(), coffee.clone())).collect();
    app.post("/products/global", Value::Object(products)).await.expect(201);
    app.assign().await;
    app
}

fn item(id: &str, version: i64) -> Value {
    json!({"productId": id, "assignmentVersion": {"vatRules": version}})
}

async fn statuses(app: &App, ids: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for id in ids {
        let status = &app.assignment("TARIC", id).await["assignmentStatus"];
        found.push(status.as_str().expect("a status").to_owned());
    }
    found
}

async fn events(app: &App, id: &str) -> Vec<Value> {
    let path = format!("/assignments/TARIC?assignmentStatus=ALL&productIds={id}&embed=EVENTS");
    app.get(&path).await.expect(200).body["items"][0]["events"].as_array().expect("events").clone()
}

#[tokio::test]
async fn what_was_approved_can_be_approved_again_when_its_product_changed() {
    let app = coffees(&["p"]).await;
    let confidence = app.assignment("TARIC", "p").await["confidence"].clone();
    assert!(confidence.is_f64());
    app.act("TARIC", "p", "APPROVE", 1).await.expect(200);
    assert_eq!(app.assignment("TARIC", "p").await["confidence"], confidence, "the confidence stays");
    app.act("TARIC", "p", "APPROVE", 2).await.expect(422);
    app.patch("/products/global?productId=p&currentVersion=1", german("Kaffee")).await.expect(200);
    assert_eq!(app.assignment("TARIC", "p").await["reviewNeeded"], true);
    app.act("TARIC", "p", "APPROVE", 2).await.expect(200);
    let after = app.assignment("TARIC", "p").await;
    assert_eq!((&after["reviewNeeded"], &after["assignmentStatus"]), (&json!(false), &json!("APPROVED")));
}

#[tokio::test]
async fn what_was_unassigned_is_nobodys_and_queued_at_the_next_change() {
    let app = coffees(&["p"]).await;
    app.act("TARIC", "p", "APPROVE", 1).await.expect(200);
    app.act("TARIC", "p", "UNASSIGN", 2).await.expect(200);
    let unassigned = app.assignment("TARIC", "p").await;
    assert!(unassigned["strategy"].is_null() && unassigned.get("confidence").is_none(), "{unassigned}");
    app.patch("/products/global?productId=p&currentVersion=1", german("Kaffee")).await.expect(200);
    assert_eq!(app.assignment("TARIC", "p").await["autoAssignment"], "PENDING");
    app.assign().await;
    assert_eq!(app.assignment("TARIC", "p").await["assignmentStatus"], "ASSIGNED");
}

#[tokio::test]
async fn a_chapter_is_no_class_of_an_assignment() {
    let app = coffees(&["p"]).await;
    let refused = app.act("TARIC", "p", "ASSIGN&productClass=09-00-000", 1).await.expect(422);
    assert_eq!(refused.faults(), ["productClass CLASS_TOO_SHORT"]);
    app.act("TARIC", "p", "ASSIGN&productClass=0901-00-000", 1).await.expect(200);
    app.get("/vat-rates/TARIC/09").await.expect(200);
}

#[tokio::test]
async fn each_product_may_have_a_class_of_its_own() {
    let app = coffees(&["a", "b"]).await;
    let own = |class: &str| {
        let mut own = item("a", 1);
        own["productClass"] = json!(class);
        json!({"products": [own, item("b", 1)], "comment": "by hand"})
    };
    app.patch(ASSIGN, own("090210-00-000")).await.expect(400);
    let both = format!("{ASSIGN}&productClass=190219-00-000");
    for (class, status, fault) in [
        ("0902", 400, "products[0].productClass MALFORMED"),
        ("999999-00-000", 422, "products[0].productClass UNKNOWN_PRODUCT_CLASS"),
    ] {
        let refused = app.patch(&both, own(class)).await.expect(status);
        assert_eq!(refused.faults(), [fault]);
    }
    let done = app.patch(&both, own("090210-00-000")).await.expect(200).body;
    let classes: Vec<&Value> =
        done["products"].as_array().expect("products").iter().map(|p| &p["productClass"]).collect();
    assert_eq!(classes, ["090210-00-000", "190219-00-000"]);
    assert!(done.get("results").is_none());
    let last = events(&app, "a").await.pop().expect("an event");
    assert_eq!(
        (&last["action"], &last["comment"], &last["actionId"], &last["productClass"]),
        (&json!("ASSIGN"), &json!("by hand"), &done["actionId"], &json!("090210-00-000"))
    );
}

#[tokio::test]
async fn a_comment_has_its_limit() {
    let app = coffees(&["p"]).await;
    let with = |comment: String| json!({"products": [item("p", 1)], "comment": comment});
    let deny = "/assignments/TARIC?assignmentAction=DENY";
    let mut long = with("ä".repeat(1_001));
    long["products"] = json!([item("p", 1), item("none", 1)]);
    app.patch(deny, long.clone()).await.expect(404);
    long["products"] = json!([item("p", 1)]);
    long["onConflict"] = json!("skip");
    assert_eq!(app.patch(deny, long).await.expect(422).faults(), ["comment TOO_LONG"]);
    app.patch(deny, with("ä".repeat(1_000))).await.expect(200);
}

#[tokio::test]
async fn what_cannot_be_done_is_skipped_where_that_was_asked_for() {
    let app = coffees(&["a", "b", "c"]).await;
    app.act("TARIC", "c", "DENY", 1).await.expect(200);
    let products = json!([item("a", 1), item("none", 1), item("b", 9), item("c", 2)]);
    let body = |mode: &str| json!({"products": products, "onConflict": mode});
    let reject = "/assignments/TARIC?assignmentAction=REJECT";
    app.patch(reject, body("MAYBE")).await.expect(400);
    app.patch(reject, body("FAIL")).await.expect(404);
    assert_eq!(statuses(&app, &["a", "b", "c"]).await, ["ASSIGNED", "ASSIGNED", "DENIED"]);
    let done = app.patch(reject, body("SKIP")).await.expect(200).body;
    let result = |r: &Value| format!("{} {} {} {}", r["productId"], r["status"], r["version"], r["error"]["code"]);
    let results: Vec<String> = done["results"].as_array().expect("results").iter().map(result).collect();
    assert_eq!(
        results,
        [
            "\"a\" 200 2 null",
            "\"none\" 404 null \"UNKNOWN_PRODUCT\"",
            "\"b\" 409 null \"STALE_VERSION\"",
            "\"c\" 422 null \"ACTION_NOT_ALLOWED\"",
        ]
    );
    assert_eq!(done["results"][2]["error"]["currentVersion"], 1);
    assert_eq!(done["products"].as_array().map(Vec::len), Some(1));
    assert_eq!(statuses(&app, &["a", "b", "c"]).await, ["REJECTED", "ASSIGNED", "DENIED"]);
}

#[tokio::test]
async fn a_product_deleted_between_the_look_and_the_lock_is_not_found() {
    let app = coffees(&["a", "b", "c"]).await;
    // Whichever comes first, the others are never compared with the version of a neighbour.
    for id in ["a", "b", "c"] {
        let products = json!({"products": [item("a", 1), item("b", 1), item("c", 1)]});
        let path = format!("/products/global?productId={id}&currentVersion=1");
        let (acted, gone) =
            futures::join!(app.patch("/assignments/UKGT?assignmentAction=DENY", products.clone()), app.delete(&path));
        gone.expect(204);
        if acted.status == 200 {
            assert_eq!(acted.body["products"].as_array().map(Vec::len), Some(3));
            return;
        }
        assert_eq!(acted.status, 404, "{}", acted.body);
    }
}

#[tokio::test]
async fn events_tell_the_class_the_confidence_and_the_model_and_those_of_labels_the_labels() {
    let app = coffees(&["p"]).await;
    app.post("/assignments/assignment-labels", json!({"label": "to check", "color": "#00AAFF"})).await.expect(201);
    let uuid = app.assignment("TARIC", "p").await["assignmentUuid"].clone();
    let labelling = json!({"assignmentUuids": [uuid], "labels": ["to check"]});
    app.put("/assignments", labelling.clone()).await.expect(200);
    app.put("/assignments", labelling.clone()).await.expect(200);
    app.call("DELETE", "/assignments", labelling).await.expect(200);
    let events = events(&app, "p").await;
    let told: Vec<&str> = events.iter().filter_map(|event| event["action"].as_str()).collect();
    assert_eq!(told, ["CREATE", "AUTO_ASSIGN", "LABEL", "UNLABEL"], "what changes nothing is no event");
    assert_eq!(events[1]["productClass"], "0901210000-00-000".replace("0000-", "-"));
    assert!(events[1]["confidence"].is_f64() && events[1]["modelVersion"].is_string(), "{}", events[1]);
    assert_eq!((&events[2]["labels"], &events[2]["actor"]), (&json!(["to check"]), &json!("anna")));
}

fn by_filter(action: &str, more: Value) -> Value {
    let mut body = json!({"action": action, "filter": {"assignmentStatus": "ASSIGNED"}});
    vat_classification::domain::merge_patch::apply(&mut body, more);
    body
}

#[tokio::test]
async fn an_action_by_filter_changes_what_it_selects_and_tells_what_it_left() {
    let ids = ["a", "b", "c", "d"];
    let app = coffees(&ids).await;
    app.act("TARIC", "d", "DENY", 1).await.expect(200);
    let path = "/assignments/TARIC/actions";
    let all = |more: Value| {
        let mut body = by_filter("REJECT", json!({"filter": {"assignmentStatus": "ALL"}}));
        vat_classification::domain::merge_patch::apply(&mut body, more);
        body
    };
    let rehearsed = app.post(path, all(json!({"dryRun": true}))).await.expect(202).body;
    assert_eq!(
        (&rehearsed["state"], &rehearsed["selected"], &rehearsed["skipped"], rehearsed.get("actionId")),
        (&json!("DRY_RUN"), &json!(4), &json!(1), None)
    );
    let differs = app.post(path, all(json!({"expectedCount": 3}))).await.expect(409);
    assert_eq!(differs.faults(), ["expectedCount COUNT_DIFFERS"]);
    app.post(path, all(json!({"expectedCount": 5, "dryRun": true}))).await.expect(409);
    assert_eq!(statuses(&app, &ids).await, ["ASSIGNED", "ASSIGNED", "ASSIGNED", "DENIED"]);
    let done = app.post(path, all(json!({"expectedCount": 4, "comment": "all"}))).await.expect(202).body;
    assert_eq!(
        (&done["state"], &done["selected"], &done["done"], &done["skipped"], &done["failed"]),
        (&json!("DONE"), &json!(4), &json!(3), &json!(1), &json!(0))
    );
    assert_eq!(done["left"], json!([{"productId": "d", "outcome": "SKIPPED", "code": "ACTION_NOT_ALLOWED"}]));
    assert_eq!(statuses(&app, &ids).await, ["REJECTED", "REJECTED", "REJECTED", "DENIED"]);
    let path = format!("/assignments/actions/{}", done["actionId"].as_str().expect("an id"));
    assert_eq!(app.get(&path).await.expect(200).body, done);
    let last = events(&app, "a").await.pop().expect("an event");
    assert_eq!((&last["actionId"], &last["comment"]), (&done["actionId"], &json!("all")));
}

#[tokio::test]
async fn an_action_by_filter_that_is_wrong_does_nothing() {
    let app = coffees(&["a"]).await;
    let path = "/assignments/TARIC/actions";
    for (body, status) in [
        (json!({}), 400),
        (by_filter("PROMOTE", json!({})), 400),
        (by_filter("ASSIGN", json!({})), 400),
        (by_filter("ASSIGN", json!({"productClass": "0901"})), 400),
        (by_filter("ASSIGN", json!({"productClass": "09-00-000"})), 422),
        (by_filter("REJECT", json!({"filter": {"assignmentStatus": null}})), 400),
        (by_filter("REJECT", json!({"filter": {"status": "ALL"}})), 400),
        (by_filter("REJECT", json!({"filter": {"shopId": "x"}})), 400),
        (by_filter("REJECT", json!({"expectedCount": -1})), 400),
        (by_filter("REJECT", json!({"comment": "x".repeat(1_001)})), 422),
    ] {
        app.post(path, body.clone()).await.expect(status);
        assert_eq!(statuses(&app, &["a"]).await, ["ASSIGNED"], "{body}");
    }
    app.post("/assignments/HS/actions", by_filter("REJECT", json!({}))).await.expect(404);
    let malformed = json!({"action": "ASSIGN", "productClass": "x", "filter": {"assignmentStatus": "ALL"}});
    app.post("/assignments/HS/actions", malformed).await.expect(400);
    app.get("/assignments/actions/none").await.expect(404);
    app.get("/assignments/actions/00000000-0000-0000-0000-000000000000").await.expect(404);
    app.post("/assignments/actions/00000000-0000-0000-0000-000000000000/undo", json!({})).await.expect(404);
}

#[tokio::test]
async fn a_large_action_goes_on_behind_the_answer_and_each_item_is_done_once() {
    let app = App::start().await;
    let products: serde_json::Map<String, Value> =
        (0..1_500).map(|i| (format!("p{i:04}"), json!({"productDetails": {}}))).collect();
    app.post("/products/global", Value::Object(products)).await.expect(201);
    app.assign().await;
    let body = json!({"action": "REJECT", "filter": {"assignmentStatus": ["UNASSIGNED"]}});
    let begun = app.post("/assignments/TARIC/actions", body).await.expect(202).body;
    assert_eq!(
        (&begun["state"], &begun["selected"], &begun["done"]),
        (&json!("RUNNING"), &json!(1_500), &json!(1_000))
    );
    let id = begun["actionId"].as_str().expect("an id");
    app.post(&format!("/assignments/actions/{id}/undo"), json!({})).await.expect(422);
    // Somebody changes one that waits; and two services work at once.
    app.act("TARIC", "p1400", "DENY", 1).await.expect(200);
    let never = CancellationToken::new();
    for outcome in join_all([review::work_off(&app.store, &never), review::work_off(&app.store, &never)]).await {
        outcome.expect("worked off");
    }
    let done = app.get(&format!("/assignments/actions/{id}")).await.expect(200).body;
    assert_eq!((&done["state"], &done["done"], &done["skipped"]), (&json!("DONE"), &json!(1_499), &json!(1)), "{done}");
    assert_eq!(done["left"][0]["productId"], "p1400");
    let page = app.get("/assignments/TARIC?assignmentStatus=REJECTED&size=1000&count=true").await.expect(200).body;
    assert_eq!(page["total"], 1_499);
    let twice = page["items"].as_array().expect("items").iter().filter(|item| version(item) != 2).count();
    assert_eq!(twice, 0, "each was changed once");
}

#[tokio::test]
async fn an_action_that_died_halfway_goes_on_where_it_was() {
    let app = coffees(&["a", "b", "c"]).await;
    let body = json!({"products": [item("a", 1), item("b", 1), item("c", 1)]});
    let done = app.patch("/assignments/TARIC?assignmentAction=REJECT", body).await.expect(200).body;
    let id = done["actionId"].as_str().expect("an id").parse().expect("a uuid");
    let caller = app.caller("anna").await;
    let undo = app.store.begin_undo(&caller, id).await.expect("an action");
    // One item, then nothing more, as when the service ends.
    app.store.work_on_action(Some(undo), 1).await.expect("worked");
    assert_eq!(statuses(&app, &["a", "b", "c"]).await, ["ASSIGNED", "REJECTED", "REJECTED"]);
    review::work_off(&app.store, &CancellationToken::new()).await.expect("worked off");
    assert_eq!(statuses(&app, &["a", "b", "c"]).await, ["ASSIGNED"; 3]);
    assert_eq!(version(&app.assignment("TARIC", "a").await), 3, "it was not done again");
}

#[tokio::test]
async fn taking_back_restores_what_nobody_has_changed_since() {
    let app = coffees(&["a", "b", "c"]).await;
    let before = app.assignment("TARIC", "a").await;
    let body = json!({"products": [item("a", 1), item("b", 1), item("c", 1)]});
    let done = app.patch(&format!("{ASSIGN}&productClass=0902-00-000"), body).await.expect(200).body;
    app.act("TARIC", "b", "DENY", 2).await.expect(200);
    app.patch("/products/global?productId=c&currentVersion=1", german("Tee")).await.expect(200);
    let undo = format!("/assignments/actions/{}/undo", done["actionId"].as_str().expect("an id"));
    let undone = app.post(&undo, json!({})).await.expect(202).body;
    assert_eq!((&undone["action"], &undone["undoes"]), (&json!("UNDO"), &done["actionId"]));
    assert_eq!((&undone["selected"], &undone["done"], &undone["skipped"]), (&json!(3), &json!(1), &json!(2)));
    let left: Vec<String> =
        undone["left"].as_array().expect("left").iter().map(|l| format!("{} {}", l["productId"], l["code"])).collect();
    assert_eq!(left, ["\"b\" \"STALE_VERSION\"", "\"c\" \"CHANGED_SINCE\""]);
    let after = app.assignment("TARIC", "a").await;
    for field in ["assignmentStatus", "strategy", "productClass", "confidence", "reviewNeeded", "autoAssignment"] {
        assert_eq!(after[field], before[field], "{field}");
    }
    assert_eq!(version(&after), 3);
    let again = app.post(&undo, json!({})).await.expect(202).body;
    assert_eq!(again["done"], 0, "what was taken back is not taken back twice");
    // Taking back is an action like the others.
    let redo = format!("/assignments/actions/{}/undo", undone["actionId"].as_str().expect("an id"));
    assert_eq!(app.post(&redo, json!({})).await.expect(202).body["done"], 1);
    assert_eq!(app.assignment("TARIC", "a").await["productClassCode"], "0902");
    let history = app.history("TARIC", "a").await;
    assert_eq!(history[2..], ["anna ASSIGN APPROVED", "anna UNDO ASSIGNED", "anna UNDO APPROVED"]);
    let first = app.get(&format!("/assignments/actions/{}", done["actionId"].as_str().expect("an id"))).await.body;
    assert_eq!(first["undoneBy"], again["actionId"]);
}

#[tokio::test]
async fn an_action_of_another_account_does_not_exist() {
    let app = coffees(&["a"]).await;
    let body = json!({"products": [item("a", 1)]});
    let done = app.patch("/assignments/TARIC?assignmentAction=REJECT", body).await.expect(200).body;
    let id = done["actionId"].as_str().expect("an id").to_owned();
    let plan = vat_classification::domain::access::Plan::Unlimited;
    app.store.create_account("other", plan).await.expect("an account");
    let level = vat_classification::domain::access::Level::Admin;
    let other = app.token("other", "eve", level).await;
    for (method, path) in
        [("GET", format!("/assignments/actions/{id}")), ("POST", format!("/assignments/actions/{id}/undo"))]
    {
        app.raw(&other, method, &path, "application/json", axum::body::Body::from("{}")).await.expect(404);
    }
    assert_eq!(statuses(&app, &["a"]).await, ["REJECTED"]);
}
