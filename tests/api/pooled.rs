//! What takes long or leads elsewhere, behind a real PgBouncer in transaction mode: it ends as it does without one.

use std::time::Duration;

use axum::body::Body;
use chrono::DateTime;
use futures::future::join;
use serde_json::{Value, json};
use url::Url;
use uuid::Uuid;
use vat_classification::domain::access::{Level, Plan};
use vat_classification::jobs::webhooks::work_off;
use vat_classification::search::EngineError;
use vat_classification::store::{Settings, Store};

use crate::app::{App, action_body, german, version};
use crate::support::{Pooler, TestDatabase, database, pooler};
use crate::webhooks::{Got, Receiver, deliver, hurry, path, register, sender, told};

/// The account that moves.
const NAME: &str = "boutique";
/// Products of an index that is rebuilt: more than two transactions of a rebuild hold.
const INDEXED: usize = 1_203;
/// Rows of a file: more than its parts that are stored at one time hold.
const ROWS: usize = 4_500;

/// A service that reaches its database through a pooler, whichever of the server's databases that is.
async fn behind(pooler: &Pooler, database: &TestDatabase) -> App {
    let mut url = Url::parse(&pooler.url).expect("a URL");
    url.set_path(Url::parse(&database.url).expect("a URL").path());
    let settings = Settings { database_transaction_pooler: true, ..Settings::default() };
    let store = Store::connect_with(url.as_str(), &settings).await.expect("connected");
    App::of(url.as_str(), store).await
}

/// Does the same behind a pooler and without one, which has to come to the same; nothing where there is no pooler.
async fn alike(work: impl AsyncFn(&App) -> Value) {
    let database = database().await;
    let Some(pooler) = pooler(&database.url).await else { return };
    let app = behind(&pooler, &database).await;
    let done = work(&app).await;
    app.store.pool().close().await;
    assert_eq!(done, work(&App::start().await).await);
}

/// Whether a text is the id of something, or its URL.
fn is_id(text: &str) -> bool {
    text.rsplit('/').next().is_some_and(|end| Uuid::parse_str(end).is_ok())
}

/// An answer without what is another one each time, ids and instants, and with its lists in one order.
fn settled(value: &Value) -> Value {
    match value {
        Value::String(text) if is_id(text) || DateTime::parse_from_rfc3339(text).is_ok() => Value::Null,
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(settled).collect();
            items.sort_by_key(ToString::to_string);
            Value::from(items)
        }
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), settled(value))).collect(),
        other => other.clone(),
    }
}

/// The ids of the products with this name.
async fn found(app: &App, token: &str, name: &str) -> Value {
    let search = json!({"filterCriteria": [{"productName": name, "languageKey": "de"}], "size": 1_000});
    let body = Body::from(search.to_string());
    let page = app.raw(token, "POST", "/products/global/search", "application/json", body).await.expect(200).body;
    page["items"].as_array().expect("items").iter().map(|item| item["productId"].clone()).collect()
}

/// Moves an account that has a bit of everything while others go on, and tells what it is then.
async fn move_account(here: &App, there: &App) -> Value {
    there.create(&[("neighbour", "Tee")]).await;
    here.store.create_account(NAME, Plan::Unlimited).await.expect("an account");
    let token = here.token(NAME, "anna", Level::Admin).await;
    let call = async |app: &App, method: &str, path: &str, body: Value| {
        app.raw(&token, method, path, "application/json", Body::from(body.to_string())).await
    };
    let products = (0..60).map(|at| (format!("p{at}"), german(&format!("Kaffee {at}")))).collect();
    call(here, "POST", "/products/global", Value::Object(products)).await.expect(201);
    call(here, "POST", "/assignments/assignment-labels", json!({"label": "hot", "color": "#aabbcc"})).await.expect(201);
    here.assign().await;
    let denied = call(here, "GET", "/assignments/TARIC?assignmentStatus=ALL&productIds=p3", Value::Null).await;
    let denied = action_body(&[("p3", version(&denied.expect(200).body["items"][0]))]);
    call(here, "PATCH", "/assignments/TARIC?assignmentAction=DENY", denied).await.expect(200);
    call(here, "PUT", "/products/global?productId=p7&currentVersion=1", german("Herren Jeans")).await.expect(200);
    let shown = async |app: &App| {
        let mut shown = Vec::new();
        for path in [
            "/products/global?size=1000",
            "/assignments/TARIC?assignmentStatus=ALL&size=1000&embed=EVENTS",
            "/assignments/UKGT?assignmentStatus=ALL&size=1000&embed=EVENTS",
            "/assignments/TARIC/counts?by=assignmentStatus",
            "/assignments/assignment-labels",
            "/usage",
        ] {
            let mut body = call(app, "GET", path, Value::Null).await.expect(200).body;
            // The order of groups is nobody's business.
            if path.contains("/counts") {
                body["items"].as_array_mut().expect("items").sort_by_key(ToString::to_string);
            }
            shown.push(body);
        }
        Value::from(shown)
    };
    let before = shown(here).await;
    let others = async {
        for at in 0..20 {
            for app in [here, there] {
                app.create(&[(&format!("other{at}"), "Saft")]).await;
                app.get("/products/global").await.expect(200);
            }
        }
    };
    let (moved, ()) = join(here.store.move_account(NAME, &there.store, Duration::ZERO, |_, _| ()), others).await;
    assert_eq!(moved.expect("moved"), 60);
    assert_eq!(shown(there).await, before);
    call(here, "GET", "/usage", Value::Null).await.expect(401);
    // What waited here is done there.
    there.assign().await;
    there.index().await;
    assert_eq!(found(there, &token, "Jeans").await, json!(["p7"]));
    json!([settled(&before), settled(&shown(there).await), found(there, &token, "Kaffee").await])
}

#[tokio::test]
async fn an_account_is_moved_through_a_pooler() {
    let databases = [database().await, database().await];
    let Some(pooler) = pooler(&databases[0].url).await else { return };
    let [here, there] = [behind(&pooler, &databases[0]).await, behind(&pooler, &databases[1]).await];
    let moved = move_account(&here, &there).await;
    for app in [here, there] {
        app.store.pool().close().await;
    }
    assert_eq!(moved, move_account(&App::start().await, &App::start().await).await);
}

/// Imports a file twice, and exports what it has become.
async fn import(app: &App) -> Value {
    let mut file = "productId,shopId,de:productName,Preis\n".to_owned();
    for at in 0..ROWS {
        let shop = if at < ROWS / 2 { "" } else { "7" };
        file.push_str(&format!("p{at},{shop},Kaffee {at},1\n"));
    }
    file.push_str("p0,,Tee,1\n");
    let send = async || app.raw(&app.token, "POST", "/imports", "text/csv", Body::from(file.clone())).await;
    let (first, again) = (send().await.expect(200).body, send().await.expect(200).body);
    let counts = |told: &Value| ["created", "updated", "unchanged", "refused"].map(|count| told[count].clone());
    assert_eq!((&first["state"], &again["state"]), (&json!("DONE"), &json!("DONE")), "{first} {again}");
    assert_eq!(counts(&first), [json!(ROWS), json!(0), json!(0), json!(1)]);
    assert_eq!(counts(&again), [json!(0), json!(0), json!(ROWS), json!(1)]);
    let export = app.get("/exports?format=CSV&languages=de").await.expect(200);
    let mut lines: Vec<&str> = std::str::from_utf8(&export.bytes).expect("text").lines().collect();
    assert_eq!(lines.len(), ROWS + 1);
    lines.sort_unstable();
    json!([first, again, lines])
}

#[tokio::test]
async fn a_file_is_imported_to_its_end_through_a_pooler() {
    alike(import).await;
}

/// Spoils an index and rebuilds it while products are written, as only one service may.
async fn rebuild(app: &App) -> Value {
    let products = (0..INDEXED).map(|at| (format!("p{at}"), german(&format!("Kaffee {at}")))).collect();
    app.post("/products/global", Value::Object(products)).await.expect(201);
    app.index().await;
    // It has lost some, is behind with others, and knows some that are not there.
    let spoilt = "delete from search_documents where product_key % 3 = 0;
                  update search_documents set version = 0 where product_key % 3 = 1;
                  update search_documents set product_key = -product_key where product_key % 3 = 2";
    sqlx::raw_sql(spoilt).execute(app.store.pool()).await.expect("spoilt");
    let differences = async || app.search.verify(&|_| {}).await.expect("verified").differences;
    assert!(differences().await > INDEXED as i64);
    let right = app.store.lock_rebuild().await.expect("an answer").expect("the right");
    assert!(matches!(app.search.rebuild(&|_, _| {}).await, Err(EngineError::Busy)));
    right.release().await.expect("given back");
    let write = async {
        for at in 0..20 {
            let at_version_1 = |at: usize| format!("/products/global?productId=p{at}&currentVersion=1");
            app.put(&at_version_1(at), german("Saft")).await.expect(200);
            app.delete(&at_version_1(at + 20)).await.expect(204);
        }
    };
    let (rebuilt, ()) = join(app.search.rebuild(&|_, _| {}), write).await;
    rebuilt.expect("rebuilt");
    // A right that had stayed with a connection would not be had again.
    for _ in 0..12 {
        let right = app.store.lock_rebuild().await.expect("an answer").expect("the right");
        right.release().await.expect("given back");
    }
    app.index().await;
    assert_eq!(differences().await, 0);
    json!([found(app, &app.token, "Saft").await, found(app, &app.token, "Kaffee").await])
}

#[tokio::test]
async fn an_index_is_rebuilt_through_a_pooler() {
    alike(rebuild).await;
}

/// Sends changes to a receiver that refuses the first ones, and tells what came and what is known of it.
async fn send(app: &App) -> Value {
    let receiver = Receiver::start().await;
    let kinds = ["PRODUCT_CREATED", "PRODUCT_UPDATED", "PRODUCT_DELETED"];
    let webhook = register(app, &receiver, &kinds).await;
    app.create(&[("a", "Kaffee"), ("b", "Tee")]).await;
    app.put("/products/global?productId=a&currentVersion=1", german("Saft")).await.expect(200);
    app.delete("/products/global?productId=b&currentVersion=1").await.expect(204);
    for (kind, count) in kinds.into_iter().zip([2, 1, 1]) {
        told(app, kind, count).await;
    }
    receiver.answer_status(500);
    assert_eq!(deliver(app, &receiver, 2).await.len(), 2);
    receiver.answer_status(204);
    let mut got = deliver(app, &receiver, 4).await;
    hurry(app).await;
    work_off(&app.store, &sender(true)).await.expect("rounds");
    assert!(receiver.take().is_empty(), "nothing is sent twice");
    // Order is promised for each product, not among them.
    got.sort_by(|one, other| one.product().cmp(other.product()));
    let told_of = |got: &Got| format!("{} {}", got.product(), got.body["type"].as_str().expect("a type"));
    let sent: Vec<String> = got.iter().map(told_of).collect();
    assert_eq!(sent, ["a PRODUCT_CREATED", "a PRODUCT_UPDATED", "b PRODUCT_CREATED", "b PRODUCT_DELETED"]);
    let listed = app.get(&format!("{}/deliveries", path(&webhook))).await.expect(200).body;
    let known = |item: &Value| ["productId", "type", "state", "attempts", "lastStatus"].map(|name| item[name].clone());
    let known: Vec<_> = listed["items"].as_array().expect("items").iter().map(known).collect();
    json!([sent, known])
}

#[tokio::test]
async fn webhooks_are_delivered_through_a_pooler() {
    alike(send).await;
}
