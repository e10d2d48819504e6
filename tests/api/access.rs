//! Credentials, levels, tenants and quota.

use axum::body::Body;
use axum::http::{Request, header};
use serde_json::json;
use vat_classification::domain::access::{Level, Plan, hash_token};
use vat_classification::http::BASE_PATH;

use crate::app::{App, german};

#[tokio::test]
async fn without_a_valid_token_nothing_is_answered_but_401() {
    let app = App::start().await;
    let good = format!("Bearer {}", app.token);
    for (values, status) in [
        (vec![], 401),
        (vec!["Bearer"], 401),
        (vec!["Bearer x"], 401),
        (vec!["Basic abc"], 401),
        (vec![good.as_str(), good.as_str()], 401),
        (vec![good.as_str()], 404),
    ] {
        let mut request = Request::builder().uri(format!("{BASE_PATH}/products/global/none"));
        for value in &values {
            request = request.header(header::AUTHORIZATION, *value);
        }
        let answer = app.send(request.body(Body::empty()).expect("a request")).await.expect(status);
        assert_eq!(answer.headers.contains_key(header::WWW_AUTHENTICATE), status == 401, "{values:?}");
    }
    let nowhere = Request::builder().uri(format!("{BASE_PATH}/nowhere")).body(Body::empty()).expect("a request");
    app.send(nowhere).await.expect(401);
}

#[tokio::test]
async fn a_revoked_token_gets_403_and_an_expired_one_401() {
    let app = App::start().await;
    let token = app.token("shop", "bob", Level::Read).await;
    let hash = hash_token(&token).expect("a hash");
    app.raw(&token, "GET", "/usage", "", Body::empty()).await.expect(200);
    app.store.revoke_token(&hash).await.expect("revoked");
    app.store.revoke_token(&hash).await.expect("revoked again");
    app.raw(&token, "GET", "/usage", "", Body::empty()).await.expect(403);

    let token = app.token("shop", "carl", Level::Read).await;
    let hash = hash_token(&token).expect("a hash");
    sqlx::query("update tokens set expires_at = now() where token_hash = $1")
        .bind(hash.as_slice())
        .execute(app.store.pool())
        .await
        .expect("an update");
    app.raw(&token, "GET", "/usage", "", Body::empty()).await.expect(401);
    sqlx::query("update accounts set disabled = true").execute(app.store.pool()).await.expect("an update");
    app.get("/usage").await.expect(403);
}

#[tokio::test]
async fn levels_allow_what_they_say() {
    let app = App::start().await;
    let tokens = [
        app.token("shop", "reader", Level::Read).await,
        app.token("shop", "editor", Level::Edit).await,
        app.token("shop", "admin", Level::Admin).await,
    ];
    for (method, path, statuses) in [
        ("GET", "/products/global", [200, 200, 200]),
        ("POST", "/classifications", [400, 400, 400]),
        ("POST", "/products/global", [403, 400, 400]),
        ("PUT", "/assignments", [403, 400, 400]),
        ("PATCH", "/assignments/TARIC?assignmentAction=DENY", [403, 400, 400]),
        ("POST", "/assignments/auto-assignment", [403, 400, 400]),
        ("POST", "/assignments/assignment-labels", [403, 403, 400]),
        ("POST", "/products/merchant-product-attributes", [403, 403, 400]),
    ] {
        for (token, status) in tokens.iter().zip(statuses) {
            let answer = app.raw(token, method, path, "application/json", Body::from("[]")).await;
            assert_eq!(answer.status, status, "{method} {path}: {}", answer.body);
        }
    }
    let refused = app.raw(&tokens[1], "POST", "/assignments/assignment-labels", "", Body::empty()).await.expect(403);
    let message = refused.body["message"].as_str().expect("a message");
    assert!(message.contains("ADMIN") && message.contains("EDIT"), "{message}");
}

#[tokio::test]
async fn another_accounts_objects_answer_as_ones_that_do_not_exist() {
    let app = App::start().await;
    app.create(&[("a", "Kaffee")]).await;
    let uuid = app.assignment("TARIC", "a").await["assignmentUuid"].as_str().expect("a uuid").to_owned();
    app.store.create_account("other", Plan::Unlimited).await.expect("an account");
    let other = app.token("other", "eve", Level::Admin).await;
    for (method, path, body) in [
        ("GET", "/products/global/a".to_owned(), json!({})),
        ("PUT", "/products/global?productId=a&currentVersion=1".to_owned(), german("x")),
        ("PATCH", "/products/global?productId=a&currentVersion=1".to_owned(), json!({})),
        ("DELETE", "/products/global?productId=a&currentVersion=1".to_owned(), json!({})),
        ("GET", format!("/assignments/TARIC/{uuid}"), json!({})),
        ("GET", format!("/assignments/{uuid}"), json!({})),
        ("PUT", "/assignments".to_owned(), json!({"assignmentUuids": [uuid], "labels": ["l"]})),
        ("GET", "/products/global/product-picture?productId=a".to_owned(), json!({})),
    ] {
        let answer = app.raw(&other, method, &path, "application/json", Body::from(body.to_string())).await;
        assert_eq!(answer.status, 404, "{method} {path}: {}", answer.body);
    }
    let list = app.raw(&other, "GET", "/products/global", "", Body::empty()).await.expect(200);
    assert_eq!(list.body["items"], json!([]));
    let changes = app.raw(&other, "GET", "/changes", "", Body::empty()).await.expect(200);
    assert_eq!(changes.body["items"], json!([]));
}

#[tokio::test]
async fn a_free_trial_has_a_hundred_checks_a_month_and_a_refused_request_stores_nothing() {
    let app = App::with_plan(Plan::FreeTrial).await;
    let products = |from: usize, to: usize| (from..to).map(|i| (format!("p{i}"), german("Kaffee"))).collect();
    app.post("/products/global", serde_json::Value::Object(products(0, 99))).await.expect(201);
    let refused = app.post("/products/global", serde_json::Value::Object(products(99, 101))).await.expect(429);
    assert_eq!(refused.body["code"], "LIMIT_EXCEEDED");
    assert!(refused.body["detail"].is_string() && refused.headers.contains_key(header::RETRY_AFTER));
    app.get("/products/global/p99").await.expect(404);
    app.patch("/products/global?productId=p0&currentVersion=1", json!({"productDetails": {"manufacturerName": "M"}}))
        .await
        .expect(200);
    app.patch("/products/global?productId=p0&currentVersion=2", german("Tee")).await.expect(200);
    app.patch("/products/global?productId=p0&currentVersion=3", german("Saft")).await.expect(429);
    app.post("/classifications", json!({"taxonomy": "TARIC", "items": [{}]})).await.expect(429);
    app.post("/assignments/auto-assignment", json!({"products": [{"productId": "p1"}]})).await.expect(429);
    let usage = app.get("/usage").await.expect(200).body;
    assert_eq!(usage["decisionPrecision"], json!(0.95));
    assert_eq!((&usage["plan"], &usage["used"], &usage["limit"]), (&json!("FREE_TRIAL"), &json!(100), &json!(100)));
}

#[tokio::test]
async fn what_was_used_while_there_was_no_limit_counts_once_there_is_one() {
    let app = App::start().await;
    app.create(&[("p", "Kaffee")]).await;
    // Each of these counts in a shard of its own, of which one at most is the one that a limit is kept in.
    for from in [0, 60, 120] {
        let products = (from..from + 60).map(|i| (format!("p{i}"), german("Kaffee"))).collect();
        app.post("/products/global", serde_json::Value::Object(products)).await.expect(201);
    }
    app.store.set_plan("shop", Plan::FreeTrial).await.expect("another plan");
    app.patch("/products/global?productId=p&currentVersion=1", german("Tee")).await.expect(429);
    app.post("/classifications", json!({"taxonomy": "TARIC", "items": [{}]})).await.expect(429);
}
