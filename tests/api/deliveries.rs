//! Deliveries of webhooks to receivers that refuse, are away or slow: what is tried again, and when it is given up.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use vat_classification::jobs::webhooks::work_off;
use vat_classification::store::StoreError;

use crate::app::{App, german};
use crate::webhooks::{Got, Receiver, deliver, hurry, path, register, sender, told};

/// Ends the pause of the webhook, and of no delivery.
const IT_HAS_RESTED: &str = "update webhooks set next_round_at = now()";

async fn run(app: &App, statement: &'static str) {
    sqlx::query(statement).execute(app.store.pool()).await.expect(statement);
}

/// Tries what may be tried now.
async fn make_rounds(app: &App) {
    work_off(&app.store, &sender(true)).await.expect("rounds");
}

/// Makes rounds as a service does that nobody waits for.
fn begin_rounds(app: &App) -> JoinHandle<Result<(), StoreError>> {
    let store = app.store.clone();
    tokio::spawn(async move { work_off(&store, &sender(true)).await })
}

/// Takes a request and leaves it without an answer.
async fn leave_waiting(listener: &TcpListener) -> TcpStream {
    let waiting = async {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        assert!(stream.read(&mut [0; 64]).await.expect("a request") > 0);
        stream
    };
    tokio::time::timeout(Duration::from_secs(60), waiting).await.expect("in time")
}

async fn answer(stream: &mut TcpStream, status: &str) {
    let text = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    stream.write_all(text.as_bytes()).await.expect("an answer");
}

/// The deliveries of a webhook in a state.
async fn deliveries(app: &App, webhook: &Value, state: &str) -> Vec<Value> {
    let listed = app.get(&format!("{}/deliveries?state={state}", path(webhook))).await.expect(200).body;
    listed["items"].as_array().expect("items").clone()
}

#[tokio::test]
async fn what_is_always_refused_holds_back_what_follows_of_that_product_and_nothing_else() {
    let app = App::start().await;
    let receiver = Receiver::start().await;
    let webhook = register(&app, &receiver, &["PRODUCT_CREATED", "PRODUCT_UPDATED"]).await;
    receiver.answer(|got| {
        let refused = got.product() == "bad";
        if refused { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::OK }.into_response()
    });
    let create_and_change = async |product: &str| {
        app.create(&[(product, "x")]).await;
        app.patch(&format!("/products/global?productId={product}&currentVersion=1"), json!({})).await.expect(200);
    };
    let told_of = |got: &[Got], product: &str| -> Vec<String> {
        let of_product = got.iter().filter(|got| got.product() == product);
        of_product.map(|got| got.body["type"].as_str().expect("a type").to_owned()).collect()
    };
    create_and_change("bad").await;
    told(&app, "PRODUCT_UPDATED", 1).await;
    make_rounds(&app).await;
    // It was refused many times before, and the time to try it again has come whenever the webhook has rested.
    let bad_is_due = "update webhook_deliveries set attempts = 8, next_attempt_at = now() where attempts > 0
                      and delivered_at is null";
    for statement in [bad_is_due, IT_HAS_RESTED] {
        run(&app, statement).await;
    }
    make_rounds(&app).await;
    assert!(told_of(&receiver.take(), "bad").iter().all(|kind| kind == "PRODUCT_CREATED"));
    let (webhook_rests, delivery_rests): (bool, bool) = sqlx::query_as(
        "select next_round_at <= now() + interval '2 minutes', next_attempt_at > now() + interval '5 hours'
         from webhooks join webhook_deliveries using (webhook_id) where attempts > 0",
    )
    .fetch_one(app.store.pool())
    .await
    .expect("pauses");
    assert!(webhook_rests && delivery_rests, "the long pause is that of the delivery");
    create_and_change("good").await;
    told(&app, "PRODUCT_UPDATED", 2).await;
    for statement in [bad_is_due, IT_HAS_RESTED] {
        run(&app, statement).await;
    }
    make_rounds(&app).await;
    let got = receiver.take();
    assert_eq!(got[0].product(), "good", "what was refused least finds out whether the receiver is back");
    assert_eq!(told_of(&got, "good"), ["PRODUCT_CREATED", "PRODUCT_UPDATED"]);
    assert!(told_of(&got, "bad").iter().all(|kind| kind == "PRODUCT_CREATED"));
    let pending = deliveries(&app, &webhook, "PENDING").await;
    assert_eq!(pending.len(), 2);
    assert_eq!(pending[1]["lastStatus"], 500);
    let shown = app.get(&path(&webhook)).await.body;
    assert_eq!(shown["pending"], 2);
    assert!(shown["lastError"].as_str().is_some_and(|text| text.contains("500")), "{shown}");
    receiver.answer_status(200);
    let got = deliver(&app, &receiver, 2).await;
    assert_eq!(told_of(&got, "bad"), ["PRODUCT_CREATED", "PRODUCT_UPDATED"]);
    assert_eq!(app.get(&path(&webhook)).await.body["pending"], 0);
}

#[tokio::test]
async fn what_waits_behind_a_refused_one_takes_no_room_of_other_products() {
    let app = App::start().await;
    let receiver = Receiver::start().await;
    let webhook = register(&app, &receiver, &["PRODUCT_CREATED"]).await;
    run(
        &app,
        "insert into webhook_deliveries (webhook_id, sequence, message_id, product_key, product_id, type, body,
                                         attempts, next_attempt_at)
         select webhook_id, n, gen_random_uuid(), 0, 'bad', 'PRODUCT_UPDATED', '{}', case n when 1 then 1 else 0 end,
                now() + interval '1 day'
         from webhooks, generate_series(1, 1000) n",
    )
    .await;
    app.create(&[("good", "x")]).await;
    told(&app, "PRODUCT_CREATED", 1).await;
    make_rounds(&app).await;
    assert_eq!(receiver.take().iter().map(Got::product).collect::<Vec<_>>(), ["good"]);
    assert_eq!(app.get(&path(&webhook)).await.body["pending"], 1000);
}

#[tokio::test]
async fn what_is_refused_for_three_days_while_others_are_taken_is_given_up_and_what_follows_goes_on() {
    let app = App::start().await;
    let receiver = Receiver::start().await;
    let webhook = register(&app, &receiver, &["PRODUCT_CREATED", "PRODUCT_UPDATED"]).await;
    receiver.answer_status(500);
    app.create(&[("bad", "x"), ("good", "x")]).await;
    app.patch("/products/global?productId=bad&currentVersion=1", json!({})).await.expect(200);
    told(&app, "PRODUCT_UPDATED", 1).await;
    make_rounds(&app).await;
    receiver.answer(|got| {
        let refused = got.product() == "bad" && got.body["type"] == "PRODUCT_CREATED";
        if refused { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::OK }.into_response()
    });
    // It takes one of them at last, more than three days later.
    let good_is_due = "update webhook_deliveries
                       set first_attempt_at = first_attempt_at - interval '73 hours',
                           next_attempt_at = now() + interval '1 day' * (product_id = 'bad')::int";
    for statement in [good_is_due, IT_HAS_RESTED] {
        run(&app, statement).await;
    }
    make_rounds(&app).await;
    let bad_is_due = "update webhook_deliveries set next_attempt_at = now() where product_id = 'bad'";
    for statement in [bad_is_due, IT_HAS_RESTED] {
        run(&app, statement).await;
    }
    make_rounds(&app).await;
    let waiting = deliveries(&app, &webhook, "PENDING").await.len();
    assert_eq!(waiting, 2, "what was refused while the receiver may have been away is tried for longer");
    assert_eq!(app.get(&path(&webhook)).await.body["status"], "ENABLED");
    run(&app, "update webhook_deliveries set overtaken_at = overtaken_at - interval '73 hours'").await;
    // What is given up lets the next of its product go on when the webhook has rested.
    for _ in 0..2 {
        for statement in [bad_is_due, IT_HAS_RESTED] {
            run(&app, statement).await;
        }
        make_rounds(&app).await;
    }
    let failed = deliveries(&app, &webhook, "FAILED").await;
    assert_eq!(failed.len(), 1, "{failed:?}");
    let shown = ["productId", "type", "state", "lastStatus"].map(|field| failed[0][field].clone());
    assert_eq!(shown, [json!("bad"), json!("PRODUCT_CREATED"), json!("FAILED"), json!(500)]);
    assert_eq!(failed[0].get("nextAttemptAt"), None);
    assert_eq!(deliveries(&app, &webhook, "DELIVERED").await.len(), 2);
    let last = receiver.take().pop().expect("a message");
    assert_eq!((last.product(), &last.body["type"]), ("bad", &json!("PRODUCT_UPDATED")));
    let shown = app.get(&path(&webhook)).await.body;
    assert_eq!((&shown["status"], &shown["pending"]), (&json!("ENABLED"), &json!(0)));
}

#[tokio::test]
async fn a_change_of_a_webhook_ends_the_round_that_goes_by_what_was_wanted_before() {
    let app = App::start().await;
    let receiver = Receiver::start().await;
    let webhook = register(&app, &receiver, &["PRODUCT_CREATED"]).await;
    app.create(&[("p", "x")]).await;
    let mut round = app.store.claim_webhooks(1).await.expect("a claim").pop().expect("a round");
    app.patch(&path(&webhook), json!({"types": ["PRODUCT_CREATED", "PRODUCT_DELETED"]})).await.expect(200);
    app.delete("/products/global?productId=p&currentVersion=1").await.expect(204);
    told(&app, "PRODUCT_DELETED", 1).await;
    assert!(app.store.prepare_deliveries(&mut round).await.is_err(), "it would go past what is wanted now");
    let got = deliver(&app, &receiver, 2).await;
    let types: Vec<_> = got.iter().map(|got| got.body["type"].as_str().expect("a type")).collect();
    assert_eq!(types, ["PRODUCT_CREATED", "PRODUCT_DELETED"]);
}

#[tokio::test]
async fn what_an_earlier_address_answers_does_not_count_against_the_new_one() {
    for status in ["410 Gone", "500 Internal Server Error"] {
        let app = App::start().await;
        let receiver = Receiver::start().await;
        let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let webhook = register(&app, &receiver, &["PRODUCT_CREATED"]).await;
        let url = format!("http://{}/", silent.local_addr().expect("an address"));
        app.patch(&path(&webhook), json!({"url": url})).await.expect(200);
        app.create(&[("p", "x")]).await;
        told(&app, "PRODUCT_CREATED", 1).await;
        let rounds = begin_rounds(&app);
        let mut waiting = leave_waiting(&silent).await;
        app.patch(&path(&webhook), json!({"url": receiver.url()})).await.expect(200);
        answer(&mut waiting, status).await;
        assert!(rounds.await.expect("an end").is_err(), "the webhook is out of its hands");
        // What waits is tried at once.
        make_rounds(&app).await;
        assert_eq!(receiver.take().len(), 1, "{status}");
        assert_eq!(app.get(&path(&webhook)).await.body["status"], "ENABLED");
        assert_eq!(deliveries(&app, &webhook, "DELIVERED").await[0]["attempts"], 1);
    }
}

#[tokio::test]
async fn a_webhook_that_is_disabled_begins_no_further_attempt() {
    let app = App::start().await;
    let receiver = Receiver::start().await;
    // It tells of each attempt, and leads to where they wait.
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let place = format!("http://{}/", silent.local_addr().expect("an address"));
    receiver.answer(move |_| (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, place.clone())]).into_response());
    let webhook = register(&app, &receiver, &["PRODUCT_CREATED"]).await;
    let names: Vec<String> = (0..20).map(|at| format!("p{at}")).collect();
    app.create(&names.iter().map(|name| (name.as_str(), "x")).collect::<Vec<_>>()).await;
    told(&app, "PRODUCT_CREATED", 20).await;
    let rounds = begin_rounds(&app);
    let mut waiting = join_all((0..8).map(|_| leave_waiting(&silent))).await;
    app.patch(&path(&webhook), json!({"enabled": false})).await.expect(200);
    for stream in &mut waiting {
        answer(stream, "204 No Content").await;
    }
    assert!(rounds.await.expect("an end").is_err(), "the webhook is out of its hands");
    assert_eq!(receiver.take().len(), 8, "those that were on their way");
}

#[tokio::test]
async fn the_same_id_is_sent_at_every_attempt_and_pauses_are_kept() {
    let app = App::start().await;
    let receiver = Receiver::start().await;
    let webhook = register(&app, &receiver, &["PRODUCT_CREATED"]).await;
    receiver.answer(|_| (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, "3600")]).into_response());
    app.create(&[("p", "x")]).await;
    let first = deliver(&app, &receiver, 1).await;
    // Nothing is sent before its time, however often a round is made.
    for _ in 0..3 {
        sqlx::query("update webhooks set next_round_at = now()").execute(app.store.pool()).await.expect("an update");
        work_off(&app.store, &sender(true)).await.expect("rounds");
    }
    assert!(receiver.take().is_empty());
    let far: bool = sqlx::query_scalar(
        "select next_attempt_at > now() + interval '59 minutes' from webhook_deliveries where delivered_at is null",
    )
    .fetch_one(app.store.pool())
    .await
    .expect("a delivery");
    assert!(far, "the receiver asked for an hour");
    receiver.answer_status(200);
    let second = deliver(&app, &receiver, 1).await;
    assert_eq!(first[0].id(), second[0].id());
    assert_eq!(first[0].bytes, second[0].bytes);
    assert_eq!(app.get(&format!("{}/deliveries", path(&webhook))).await.body["items"][0]["attempts"], 2);
}

#[tokio::test]
async fn a_webhook_is_disabled_after_three_days_or_410_and_goes_on_where_it_stopped() {
    for status in [500, 410] {
        let app = App::start().await;
        let receiver = Receiver::start().await;
        let webhook = register(&app, &receiver, &["PRODUCT_CREATED"]).await;
        receiver.answer_status(status);
        app.create(&[("p", "x")]).await;
        deliver(&app, &receiver, 1).await;
        if status == 500 {
            assert_eq!(app.get(&path(&webhook)).await.body["status"], "ENABLED");
            sqlx::query("update webhook_deliveries set first_attempt_at = now() - interval '73 hours'")
                .execute(app.store.pool())
                .await
                .expect("an update");
            deliver(&app, &receiver, 1).await;
        }
        let disabled = app.get(&path(&webhook)).await.expect(200).body;
        assert_eq!(disabled["status"], "DISABLED", "{disabled}");
        assert!(
            disabled["disabledReason"].as_str().is_some_and(|text| text.contains(&status.to_string())),
            "{disabled}"
        );
        // What happens meanwhile waits in the journal.
        app.create(&[("q", "x")]).await;
        hurry(&app).await;
        work_off(&app.store, &sender(true)).await.expect("rounds");
        assert!(receiver.take().is_empty());
        receiver.answer_status(200);
        let enabled = app.patch(&path(&webhook), json!({"enabled": true})).await.expect(200).body;
        assert_eq!((&enabled["status"], enabled.get("disabledReason")), (&json!("ENABLED"), None));
        let got = deliver(&app, &receiver, 2).await;
        // Order is promised for each product, not among them.
        assert_eq!(got.iter().map(Got::product).collect::<HashSet<_>>(), HashSet::from(["p", "q"]));
    }
}

#[tokio::test]
async fn a_receiver_that_is_away_slow_or_endless_costs_a_deadline_and_nothing_is_lost() {
    let app = App::start().await;
    let receiver = Receiver::start().await;
    let webhook = register(&app, &receiver, &["PRODUCT_CREATED"]).await;
    // Nobody listens there.
    let free = TcpListener::bind("127.0.0.1:0").await.expect("a port").local_addr().expect("an address");
    app.patch(&path(&webhook), json!({"url": format!("http://{free}/")})).await.expect(200);
    app.create(&[("p", "x")]).await;
    let failure = async |wanted: &str| loop {
        hurry(&app).await;
        work_off(&app.store, &sender(true)).await.expect("rounds");
        let error = app.get(&path(&webhook)).await.body["lastError"].clone();
        if error.as_str().is_some_and(|text| text.contains(wanted)) {
            break;
        }
    };
    failure("cannot be connected to").await;
    // A body without an end is not read; the status is enough.
    receiver.answer(|_| {
        let endless = futures::stream::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from_static(&[b'x'; 65_536])));
        axum::body::Body::from_stream(endless).into_response()
    });
    app.patch(&path(&webhook), json!({"url": receiver.url()})).await.expect(200);
    let got = tokio::time::timeout(Duration::from_secs(30), deliver(&app, &receiver, 1)).await.expect("in time");
    assert_eq!(got[0].product(), "p");
    // One that accepts and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/", silent.local_addr().expect("an address"));
    app.patch(&path(&webhook), json!({"url": url})).await.expect(200);
    app.create(&[("q", "x")]).await;
    failure("no answer within 10 s").await;
    drop(silent);
}

#[tokio::test]
async fn two_services_do_not_send_the_same_and_what_one_drops_the_other_takes_up() {
    let app = App::start().await;
    let receiver = Receiver::start().await;
    register(&app, &receiver, &["PRODUCT_CREATED"]).await;
    let names: Vec<String> = (0..300).map(|at| format!("p{at}")).collect();
    let products: serde_json::Map<String, Value> = names.iter().map(|name| (name.clone(), german("x"))).collect();
    app.post("/products/global", Value::Object(products)).await.expect(201);
    // One service takes the webhook and dies with it.
    while app.store.claim_webhooks(10).await.expect("a claim").is_empty() {}
    work_off(&app.store, &sender(true)).await.expect("rounds");
    assert!(receiver.take().is_empty(), "it is in other hands");
    sqlx::query("update webhooks set leased_until = now()").execute(app.store.pool()).await.expect("an update");
    let mut counts: HashMap<String, usize> = HashMap::new();
    while counts.len() < names.len() {
        hurry(&app).await;
        let (one, two) = (sender(true), sender(true));
        let (first, second) = futures::join!(work_off(&app.store, &one), work_off(&app.store, &two));
        first.and(second).expect("rounds");
        for got in receiver.take() {
            *counts.entry(got.product().to_owned()).or_default() += 1;
        }
    }
    assert!(counts.values().all(|count| *count == 1));
}
