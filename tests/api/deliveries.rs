//! Deliveries of webhooks to receivers that refuse, are away or slow: what is tried again, and when it is given up.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use vat_classification::jobs::webhooks::work_off;

use crate::app::{App, german};
use crate::webhooks::{Got, Receiver, deliver, hurry, path, register, sender, told};

#[tokio::test]
async fn what_a_receiver_refuses_is_tried_again_and_holds_back_what_follows_of_that_product() {
    let app = App::start().await;
    let receiver = Receiver::start().await;
    let webhook = register(&app, &receiver, &["PRODUCT_CREATED", "PRODUCT_UPDATED"]).await;
    receiver.answer(|got| {
        let refused = got.product() == "bad";
        if refused { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::OK }.into_response()
    });
    app.create(&[("bad", "x"), ("good", "x")]).await;
    for product in ["bad", "good"] {
        app.patch(&format!("/products/global?productId={product}&currentVersion=1"), json!({})).await.expect(200);
    }
    // What is refused is sent in every round, and would stand for what the feed has not told of yet.
    told(&app, "PRODUCT_UPDATED", 2).await;
    let got = deliver(&app, &receiver, 4).await;
    assert!(got.iter().filter(|got| got.product() == "bad").all(|got| got.body["type"] == "PRODUCT_CREATED"));
    let pending = app.get(&format!("{}/deliveries?state=PENDING", path(&webhook))).await.expect(200).body;
    assert_eq!(pending["items"].as_array().map(Vec::len), Some(2));
    assert_eq!(pending["items"][1]["lastStatus"], 500);
    let shown = app.get(&path(&webhook)).await.body;
    assert_eq!(shown["pending"], 2);
    assert!(shown["lastError"].as_str().is_some_and(|text| text.contains("500")), "{shown}");
    receiver.answer_status(200);
    let got = deliver(&app, &receiver, 2).await;
    assert_eq!(got.iter().map(|got| &got.body["type"]).collect::<Vec<_>>(), ["PRODUCT_CREATED", "PRODUCT_UPDATED"]);
    assert_eq!(app.get(&path(&webhook)).await.body["pending"], 0);
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
