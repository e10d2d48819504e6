//! Webhooks: their registration, signatures, addresses and redirects, with a receiver that verifies signatures by a library of
//! Standard Webhooks.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use standardwebhooks::Webhook;
use tokio::net::TcpListener;
use vat_classification::domain::access::{Level, Plan};
use vat_classification::jobs::webhooks::work_off;
use vat_classification::store::webhooks::{MAX_ROUNDS_OF_ACCOUNT, Round};
use vat_classification::webhooks::{Sender, WebhookSettings};

use crate::app::{App, german};

/// What a receiver got.
#[derive(Clone, Debug)]
pub(crate) struct Got {
    path: String,
    headers: HeaderMap,
    pub(crate) bytes: Bytes,
    pub(crate) body: Value,
}

impl Got {
    pub(crate) fn id(&self) -> &str {
        self.headers["webhook-id"].to_str().expect("an id")
    }

    pub(crate) fn product(&self) -> &str {
        self.body["data"]["productId"].as_str().expect("a product")
    }
}

type Answering = Box<dyn Fn(&Got) -> Response + Send + Sync>;

/// A receiver on this machine.
#[derive(Clone)]
pub(crate) struct Receiver {
    address: SocketAddr,
    got: Arc<Mutex<Vec<Got>>>,
    answering: Arc<Mutex<Answering>>,
}

impl Receiver {
    pub(crate) async fn start() -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let receiver = Receiver {
            address: listener.local_addr().expect("an address"),
            got: Arc::default(),
            answering: Arc::new(Mutex::new(Box::new(|_: &Got| StatusCode::NO_CONTENT.into_response()))),
        };
        let router = Router::new().fallback(receive).with_state(receiver.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        receiver
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    pub(crate) fn answer(&self, how: impl Fn(&Got) -> Response + Send + Sync + 'static) {
        *self.answering.lock().expect("a lock") = Box::new(how);
    }

    pub(crate) fn answer_status(&self, status: u16) {
        self.answer(move |_| StatusCode::from_u16(status).expect("a status").into_response());
    }

    /// Takes what came since this was last asked.
    pub(crate) fn take(&self) -> Vec<Got> {
        std::mem::take(&mut *self.got.lock().expect("a lock"))
    }
}

async fn receive(State(receiver): State<Receiver>, uri: Uri, headers: HeaderMap, bytes: Bytes) -> Response {
    let body = serde_json::from_slice(&bytes).unwrap_or_default();
    let got = Got { path: uri.path().to_owned(), headers, bytes, body };
    receiver.got.lock().expect("a lock").push(got.clone());
    (receiver.answering.lock().expect("a lock"))(&got)
}

pub(crate) fn sender(private: bool) -> Sender {
    Sender::new(&WebhookSettings { webhooks_allow_private: private }).expect("a sender")
}

/// Registers a receiver for these types; answers the webhook with its secret.
pub(crate) async fn register(app: &App, receiver: &Receiver, types: &[&str]) -> Value {
    app.post("/webhooks", json!({"url": receiver.url(), "types": types})).await.expect(201).body
}

pub(crate) fn path(webhook: &Value) -> String {
    format!("/webhooks/{}", webhook["webhookId"].as_str().expect("an id"))
}

/// Waits until the feed has told of so many changes of a type: a webhook begins and goes on where the feed is, which
/// transactions of other tests on the same server hold back.
pub(crate) async fn told(app: &App, kind: &str, count: usize) {
    let path = format!("/changes?after=0&wait=1&types={kind}");
    while app.get(&path).await.expect(200).body["items"].as_array().map(Vec::len) != Some(count) {}
}

/// Makes rounds until this many messages have come: the feed, and so a webhook, waits for transactions that still run,
/// those of other tests on the same server among them.
pub(crate) async fn deliver(app: &App, receiver: &Receiver, count: usize) -> Vec<Got> {
    let mut got = Vec::new();
    while got.len() < count {
        hurry(app).await;
        work_off(&app.store, &sender(true)).await.expect("rounds");
        got.extend(receiver.take());
    }
    got
}

/// Ends all pauses.
pub(crate) async fn hurry(app: &App) {
    for statement in [
        "update webhooks set next_round_at = now()",
        "update webhook_deliveries set next_attempt_at = now() where delivered_at is null",
    ] {
        sqlx::query(statement).execute(app.store.pool()).await.expect("an update");
    }
}

#[tokio::test]
async fn changes_are_sent_signed_and_in_order_for_each_product() {
    let app = App::start().await;
    app.create(&[("before", "x")]).await;
    told(&app, "PRODUCT_CREATED", 1).await;
    let receiver = Receiver::start().await;
    let types = ["PRODUCT_CREATED", "PRODUCT_UPDATED", "product_deleted"];
    let webhook = register(&app, &receiver, &types).await;
    let secret = webhook["secret"].as_str().expect("a secret");
    assert!(secret.starts_with("whsec_"));
    app.create(&[("a", "Kaffee"), ("b", "Tee")]).await;
    app.patch("/products/global?productId=a&currentVersion=1", json!({})).await.expect(200);
    app.delete("/products/global?productId=a&currentVersion=2").await.expect(204);
    let got = deliver(&app, &receiver, 4).await;
    let library = Webhook::new(secret).expect("a secret");
    for message in &got {
        library.verify(&message.bytes, &message.headers).expect("a right signature");
        let mut other = message.bytes.to_vec();
        other.push(b' ');
        assert!(library.verify(&other, &message.headers).is_err());
        assert_eq!(message.headers[header::CONTENT_TYPE], "application/json");
        assert_eq!(message.body["type"], message.body["data"]["type"]);
        assert!(message.body["timestamp"].is_string());
    }
    let of = |product: &str| -> Vec<&str> {
        let of_product = got.iter().filter(|message| message.product() == product);
        of_product.filter_map(|message| message.body["type"].as_str()).collect()
    };
    assert_eq!(of("a"), ["PRODUCT_CREATED", "PRODUCT_UPDATED", "PRODUCT_DELETED"]);
    assert_eq!(of("b"), ["PRODUCT_CREATED"]);
    let ids: HashSet<&str> = got.iter().map(Got::id).collect();
    assert_eq!(ids.len(), 4);

    let listed = app.get(&format!("{}/deliveries?size=3", path(&webhook))).await.expect(200).body;
    assert_eq!(listed["items"][0]["type"], "PRODUCT_DELETED");
    assert_eq!((&listed["items"][0]["state"], &listed["items"][0]["attempts"]), (&json!("DELIVERED"), &json!(1)));
    assert_eq!(listed["items"][0]["lastStatus"], 204);
    let next = app.get(listed["links"]["next"].as_str().expect("a link")).await.expect(200).body;
    assert_eq!(next["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(app.get(&format!("{}/deliveries?state=pending", path(&webhook))).await.body["items"], json!([]));
    work_off(&app.store, &sender(true)).await.expect("rounds");
    assert!(receiver.take().is_empty(), "nothing is sent twice");
}

#[tokio::test]
async fn a_webhook_is_listed_changed_and_deleted_and_shows_its_secret_once() {
    let app = App::start().await;
    let receiver = Receiver::start().await;
    let webhook = register(&app, &receiver, &["ASSIGNMENT_AUTO_ASSIGN"]).await;
    let path = path(&webhook);
    let read = app.get(&path).await.expect(200).body;
    assert_eq!((read.get("secret"), &read["status"]), (None, &json!("ENABLED")));
    assert_eq!(app.get("/webhooks").await.expect(200).body["items"], json!([read]));
    let changed = app.patch(&path, json!({"taxonomy": "UKGT", "enabled": false})).await.expect(200).body;
    assert_eq!((&changed["taxonomy"], &changed["status"]), (&json!("UKGT"), &json!("DISABLED")));
    for field in ["url", "types", "enabled"] {
        let refused = app.patch(&path, json!({field: null})).await.expect(400);
        assert_eq!(refused.faults(), [format!("{field} MALFORMED")], "what cannot be removed is not null");
    }
    let changed = app.patch(&path, json!({"taxonomy": null, "types": ["PRODUCT_CREATED"]})).await.expect(200).body;
    assert_eq!((changed.get("taxonomy"), &changed["types"]), (None, &json!(["PRODUCT_CREATED"])));
    assert_eq!(changed["status"], "DISABLED");
    for bad in
        [json!({"types": []}), json!({"types": ["X"]}), json!({"taxonomy": "HS"}), json!({"url": "ftp://a.example/"})]
    {
        app.patch(&path, bad.clone()).await.expect(422);
    }
    for bad in [json!({"secret": "x"}), json!({"types": "x"}), json!([])] {
        app.patch(&path, bad.clone()).await.expect(400);
    }
    app.delete(&path).await.expect(204);
    app.delete(&path).await.expect(404);
    for gone in [path.as_str(), "/webhooks/x", "/webhooks/x/deliveries"] {
        app.get(gone).await.expect(404);
    }
    let refused = app.post("/webhooks", json!({"url": "nowhere", "types": ["X"], "taxonomy": "HS"})).await.expect(422);
    assert_eq!(refused.faults(), ["url INVALID_URL", "types[0] UNKNOWN_TYPE", "taxonomy UNKNOWN_TAXONOMY"]);
    for bad in [json!({}), json!({"url": receiver.url()}), json!({"url": 1, "types": ["PRODUCT_CREATED"]})] {
        app.post("/webhooks", bad).await.expect(400);
    }
    for _ in 0..20 {
        register(&app, &receiver, &["PRODUCT_CREATED"]).await;
    }
    app.post("/webhooks", json!({"url": receiver.url(), "types": ["PRODUCT_CREATED"]})).await.expect(422);
}

#[tokio::test]
async fn webhooks_are_for_administrators_of_the_account() {
    let app = App::start().await;
    let receiver = Receiver::start().await;
    let webhook = register(&app, &receiver, &["PRODUCT_CREATED"]).await;
    let path = path(&webhook);
    let editor = app.token("shop", "ed", Level::Edit).await;
    app.store.create_account("other", Plan::Unlimited).await.expect("an account");
    let other = app.token("other", "eve", Level::Admin).await;
    let deliveries = format!("{path}/deliveries");
    for (method, path) in [
        ("GET", "/webhooks"),
        ("POST", "/webhooks"),
        ("GET", &path),
        ("PATCH", &path),
        ("DELETE", &path),
        ("GET", &deliveries),
    ] {
        let body = || axum::body::Body::from("{}");
        app.raw(&editor, method, path, "application/json", body()).await.expect(403);
        if path != "/webhooks" {
            app.raw(&other, method, path, "application/json", body()).await.expect(404);
        }
    }
    assert_eq!(app.raw(&other, "GET", "/webhooks", "", axum::body::Body::empty()).await.body["items"], json!([]));
}

#[tokio::test]
async fn an_account_with_many_webhooks_leaves_room_for_those_of_others() {
    let app = App::start().await;
    let receiver = Receiver::start().await;
    for _ in 0..16 {
        register(&app, &receiver, &["PRODUCT_CREATED"]).await;
    }
    app.create(&[("p", "x")]).await;
    app.store.create_account("other", Plan::Unlimited).await.expect("an account");
    let other = app.token("other", "eve", Level::Admin).await;
    let url = format!("{}/other", receiver.url());
    for (path, body) in [
        ("/webhooks", json!({"url": url, "types": ["PRODUCT_CREATED"]})),
        ("/products/global", json!({"p": german("x")})),
    ] {
        app.raw(&other, "POST", path, "application/json", axum::body::Body::from(body.to_string())).await.expect(201);
    }
    // Those of the other account, and of this one.
    let claim = async || -> (Vec<Round>, Vec<Round>) {
        let claimed = app.store.claim_webhooks(16).await.expect("a claim");
        claimed.into_iter().partition(|round| round.url == url)
    };
    let (others, first) = claim().await;
    assert_eq!((others.len(), first.len() as i64), (1, MAX_ROUNDS_OF_ACCOUNT));
    let (others, further) = claim().await;
    assert!(others.is_empty() && further.is_empty(), "as long as these are in hand, no more are");
    // When they are over, it is the turn of those that waited.
    sqlx::query("update webhooks set lease = null, leased_until = null, next_round_at = now() where lease is not null")
        .execute(app.store.pool())
        .await
        .expect("an update");
    let (others, second) = claim().await;
    assert_eq!((others.len(), second.len() as i64), (1, MAX_ROUNDS_OF_ACCOUNT));
    assert!(second.iter().all(|round| first.iter().all(|earlier| earlier.webhook_id != round.webhook_id)));
}

#[tokio::test]
async fn a_database_that_does_not_know_what_another_sent_sends_it_with_the_same_id() {
    let app = App::start().await;
    let receiver = Receiver::start().await;
    register(&app, &receiver, &["PRODUCT_CREATED"]).await;
    app.create(&[("p", "x")]).await;
    let sent = deliver(&app, &receiver, 1).await;
    // As a copy of the account has it that was made before, or a backup.
    for statement in ["delete from webhook_deliveries", "update webhooks set position = 0"] {
        sqlx::query(statement).execute(app.store.pool()).await.expect(statement);
    }
    let repeated = deliver(&app, &receiver, 1).await;
    assert_eq!((sent[0].id(), sent[0].product()), (repeated[0].id(), repeated[0].product()));
}

#[tokio::test]
async fn addresses_near_the_service_are_refused_when_registered_and_when_called() {
    let app = App::start().await;
    let strict = App::with_webhooks(WebhookSettings::default()).await;
    for url in [
        "http://127.0.0.1/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://[::1]/",
        "http://10.0.0.1:8080/x",
        "http://169.254.169.254/latest/meta-data/",
        "http://[::ffff:192.168.0.1]/",
        "http://localhost/",
        "http://LOCALHOST./",
        "http://a.localhost/",
        "http://0.0.0.0/",
        "http://[fe80::1]/",
        "http://[fd00::1]/",
    ] {
        let refused = strict.post("/webhooks", json!({"url": url, "types": ["PRODUCT_CREATED"]})).await.expect(422);
        assert_eq!(refused.faults(), ["url PRIVATE_ADDRESS"], "{url}");
    }
    for url in
        ["", "x", "file:///etc/passwd", "gopher://1.1.1.1/", "http://u:p@1.1.1.1/", "http://1.1.1.1/#x", "http://"]
    {
        let refused = strict.post("/webhooks", json!({"url": url, "types": ["PRODUCT_CREATED"]})).await.expect(422);
        assert_eq!(refused.faults(), ["url INVALID_URL"], "{url}");
    }
    strict.post("/webhooks", json!({"url": "https://1.1.1.1/x", "types": ["PRODUCT_CREATED"]})).await.expect(201);
    // A name that led elsewhere when it was registered is judged again when it is called; so is an address in a row.
    let receiver = Receiver::start().await;
    for url in [receiver.url(), format!("http://localhost:{}/", receiver.address.port())] {
        let webhook = register(&app, &receiver, &["PRODUCT_CREATED"]).await;
        app.patch(&path(&webhook), json!({"url": url})).await.expect(200);
        app.create(&[(url.as_str(), "x")]).await;
        loop {
            hurry(&app).await;
            work_off(&app.store, &sender(false)).await.expect("rounds");
            let shown = app.get(&path(&webhook)).await.body;
            if shown["lastError"].as_str().is_some_and(|text| text.contains("private, loopback or link-local")) {
                break;
            }
        }
        app.delete(&path(&webhook)).await.expect(204);
    }
    assert!(receiver.take().is_empty());
}

#[tokio::test]
async fn redirects_that_keep_method_and_body_are_followed_a_few_times() {
    let app = App::start().await;
    let receiver = Receiver::start().await;
    let webhook = register(&app, &receiver, &["PRODUCT_CREATED"]).await;
    let to = |status: u16, location: &'static str| {
        move |got: &Got| match got.path.as_str() {
            "/hook" | "/loop" => {
                (StatusCode::from_u16(status).expect("a status"), [(header::LOCATION, location)]).into_response()
            }
            _ => StatusCode::OK.into_response(),
        }
    };
    receiver.answer(to(308, "/moved"));
    app.create(&[("p", "x")]).await;
    let got = deliver(&app, &receiver, 2).await;
    assert_eq!(got.iter().map(|got| got.path.as_str()).collect::<Vec<_>>(), ["/hook", "/moved"]);
    assert_eq!(got[0].bytes, got[1].bytes);
    Webhook::new(webhook["secret"].as_str().expect("a secret"))
        .expect("a secret")
        .verify(&got[1].bytes, &got[1].headers)
        .expect("a right signature");
    for (status, location, hops) in [(302, "/moved", 1), (307, "/loop", 4)] {
        receiver.answer(to(status, location));
        app.create(&[(location, "x")]).await;
        let got = deliver(&app, &receiver, hops).await;
        assert_eq!(got.len(), hops, "{status}");
        let shown = app.get(&path(&webhook)).await.body;
        assert!(shown["lastError"].as_str().is_some_and(|text| text.contains("redirect")), "{shown}");
        receiver.answer_status(200);
        deliver(&app, &receiver, 1).await;
    }
}
