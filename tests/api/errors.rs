//! The framework's own errors, and hostile input.

use axum::body::Body;
use axum::http::{Request, header};
use serde_json::json;
use vat_classification::domain::access::{Level, Plan};
use vat_classification::http::AdmissionSettings;
use vat_classification::http::BASE_PATH;

use crate::app::App;

#[tokio::test]
async fn the_frameworks_errors_have_our_shape() {
    let app = App::start().await;
    for (method, path, status, code) in [
        ("GET", "/nowhere", 404, "NotFound"),
        ("DELETE", "/usage", 405, "MethodNotAllowed"),
        ("POST", "/products/global/x", 405, "MethodNotAllowed"),
        ("GET", "/assignments/HS?assignmentStatus=ASSIGNED", 404, "NotFound"),
        ("GET", "/shops/x/products/local", 400, "BadRequest"),
        ("GET", "/shops/9223372036854775808/products/local", 400, "BadRequest"),
        ("GET", "/products/global/%00", 400, "BadRequest"),
        ("GET", "/products/global/%ff", 400, "BadRequest"),
        ("GET", "/products/global?productIds=%00", 400, "BadRequest"),
        ("GET", "/products/global?size=-1", 400, "BadRequest"),
    ] {
        let answer = app.raw(&app.token, method, path, "", Body::empty()).await;
        assert_eq!((answer.status, answer.body["code"].as_str()), (status, Some(code)), "{method} {path}");
        let path = path.split('?').next().unwrap_or_default();
        assert_eq!(answer.body["path"], format!("{BASE_PATH}{path}"));
    }
    let outside = Request::builder().uri("/nowhere").body(Body::empty()).expect("a request");
    app.send(outside).await.expect(404);
}

#[tokio::test]
async fn hostile_bodies_get_a_4xx_and_change_nothing() {
    let app = App::start().await;
    let deep = format!("{{\"a\":{{\"productDetails\":{}{}}}}}", "[".repeat(100_000), "]".repeat(100_000));
    let hostile: Vec<(&[u8], u16)> = vec![
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b"{}", 400),
        (b"null", 400),
        (b"{\"\xff\":{}}", 400),
        (b"{\"a\":{\"productDetails\":{}},\"a\":{\"productDetails\":{}}}", 400),
        (b"{\"a\":{\"productDetails\":{\"manufacturerName\":\"\\u0000\"}}}", 400),
        (b"{\"\\u0000\":{\"productDetails\":{}}}", 400),
        (b"{\"a\":{\"productDetails\":{\"manufacturerName\":\"\\ud800\"}}}", 400),
        (b"{\"a\":{\"productDetails\":{\"manufacturerName\":1}}}", 400),
        (b"{\"a\":{\"productDetails\":{\"manufacturerName\":null}}}", 400),
        (b"{\"a\":{\"productDetails\":{\"unknown\":1}}}", 400),
        (b"{\"a\":{\"productDetails\":{},\"version\":-1}}", 400),
        (b"{\"a\":{\"productDetails\":{},\"shopIds\":[9223372036854775808]}}", 400),
        (b"{\"a\":{\"productDetails\":{},\"shopIds\":[1.5]}}", 400),
        (b"{\"a\":{\"productDetails\":{\"customs\":{\"physicalMeasure\":{\"unit\":\"g\",\"amount\":1e400}}}}}", 400),
        (b"{\"a\":{\"productDetails\":{\"customs\":{\"physicalMeasure\":[\"g\",1]}}}}", 400),
        (b"{\"a\":[[1],1,{},1,1,1,1,1,1]}", 400),
        (b"{\"a\":{\"shopIds\":[1]}}", 400),
        (b"{\"a\":{\"productDetails\":{},\"shopIds\":[0]}}", 422),
        (deep.as_bytes(), 400),
    ];
    for (body, status) in hostile {
        let answer =
            app.raw(&app.token, "POST", "/products/global", "application/json", Body::from(body.to_vec())).await;
        let shown = String::from_utf8_lossy(&body[..body.len().min(80)]);
        assert_eq!(answer.status, status, "{shown}: {}", answer.body);
    }
    for kind in ["", "text/plain", "application/xml", "multipart/form-data"] {
        app.raw(&app.token, "POST", "/products/global", kind, Body::from("{}")).await.expect(415);
    }
    let packed = Request::builder()
        .method("POST")
        .uri(format!("{BASE_PATH}/products/global"))
        .header("authorization", format!("Bearer {}", app.token))
        .header("content-type", "application/json")
        .header("content-encoding", "gzip");
    app.send(packed.body(Body::from("{}")).expect("a request")).await.expect(415);
    assert_eq!(app.get("/products/global").await.body["items"], json!([]));
}

#[tokio::test]
async fn a_body_over_32_mib_is_refused_by_its_announced_length_and_by_its_true_one() {
    let app = App::start().await;
    let announced = Request::post(format!("{BASE_PATH}/products/global"))
        .header(header::AUTHORIZATION, format!("Bearer {}", app.token))
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::CONTENT_LENGTH, (32 * 1024 * 1024 + 1).to_string())
        .body(Body::from("{}"))
        .expect("a request");
    app.send(announced).await.expect(413);
    let chunk = axum::body::Bytes::from(vec![b' '; 1 << 20]);
    let endless = futures::stream::repeat_with(move || Ok::<_, std::io::Error>(chunk.clone()));
    app.raw(&app.token, "POST", "/products/global", "application/json", Body::from_stream(endless)).await.expect(413);
    let many = (0..10_001).map(|i| (i.to_string(), json!({"productDetails": {}}))).collect();
    app.post("/products/global", serde_json::Value::Object(many)).await.expect(413);
}

#[tokio::test]
async fn health_version_metrics_and_documents_need_no_credential() {
    let app = App::start().await;
    for path in ["/health/live", "/health/ready", "/version", "/metrics", "/openapi.json", "/docs/"] {
        let request = Request::builder().uri(path).body(Body::empty()).expect("a request");
        let answer = app.send(request).await.expect(200);
        for (name, part) in [
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("referrer-policy", "no-referrer"),
            ("content-security-policy", "frame-ancestors 'none'"),
        ] {
            let value = answer.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
            assert!(value.contains(part), "{path}: {name}: {value}");
        }
    }
}

#[tokio::test]
async fn a_parameter_that_an_operation_does_not_know_is_refused_by_every_operation() {
    let app = App::start().await;
    let document = app.get("http://service.example/openapi.json").await.expect(200).body;
    let mut seen = 0;
    for (path, item) in document["paths"].as_object().expect("paths") {
        let Some(path) = path.strip_prefix(BASE_PATH) else { continue };
        let path = path.replace("{taxonomy}", "TARIC").replace(['{', '}'], "");
        for method in item.as_object().expect("operations").keys() {
            let answer = app.call(&method.to_uppercase(), &format!("{path}?nonsense=1"), json!({})).await.expect(400);
            assert_eq!(answer.faults(), ["nonsense UNKNOWN_PARAMETER"], "{method} {path}");
            seen += 1;
        }
    }
    assert!(seen > 30, "{seen} operations");
    let typo = app.get("/products/global?productIDs=x").await.expect(400);
    let message = typo.body["message"].as_str().expect("a message");
    assert!(message.contains("productIDs") && message.contains("productIds, filterCriteria"), "{message}");
}

#[tokio::test]
async fn a_body_of_a_million_small_values_is_refused_for_every_level() {
    let app = App::start().await;
    let token = app.token("shop", "reader", Level::Read).await;
    let objects = format!("{{\"a\":[{}1]}}", "{\"\":0},".repeat(1 << 20));
    for (method, path) in [("POST", "/classifications"), ("POST", "/products/global")] {
        let token = if path == "/classifications" { &token } else { &app.token };
        let answer = app.raw(token, method, path, "application/json", Body::from(objects.clone())).await;
        assert_eq!(answer.status, 413, "{}", answer.body);
    }
    let path = "/assignments/TARIC?assignmentAction=DENY";
    let large = format!("{{\"products\":[]{}}}", " ".repeat(2 << 20));
    app.raw(&app.token, "PATCH", path, "application/json", Body::from(large)).await.expect(413);
}

#[tokio::test]
async fn an_integer_may_be_written_with_a_fraction_of_nothing() {
    let app = App::start().await;
    let written = "{\"a\":{\"productDetails\":{},\"shopIds\":[1252.0, 7]}}";
    let answer = app.raw(&app.token, "POST", "/products/global", "application/json", Body::from(written)).await;
    answer.expect(201);
    assert_eq!(app.get("/products/global/a").await.expect(200).body["shopIds"], json!([1252, 7]));
    let patch = "{\"shopIds\":[8.0]}";
    let path = "/products/global?productId=a&currentVersion=1";
    app.raw(&app.token, "PATCH", path, "application/json", Body::from(patch)).await.expect(200);
}

#[tokio::test]
async fn while_the_database_is_away_requests_are_answered_503_and_health_tells() {
    let app = App::start().await;
    app.create(&[("a", "Kaffee")]).await;
    let mut blocker = app.store.pool().begin().await.expect("a transaction");
    sqlx::query("select from products for update").execute(&mut *blocker).await.expect("locked");
    let path = "/products/global?productId=a&currentVersion=1";
    let write = app.patch(path, json!({"shopIds": [1]}));
    let away = async {
        // The write waits for the lock by now or will; either way it ends when the database is noted as away.
        tokio::task::yield_now().await;
        app.watch.note(false);
    };
    let (answer, ()) = tokio::join!(write, away);
    let answer = answer.expect(503);
    assert_eq!(answer.body["code"], "ServiceUnavailable");
    assert!(answer.headers.contains_key(header::RETRY_AFTER));
    app.get("/usage").await.expect(503);
    for (path, status) in [("/health/live", 200), ("/health/ready", 503), ("/metrics", 200)] {
        let request = Request::builder().uri(path).body(Body::empty()).expect("a request");
        app.send(request).await.expect(status);
    }
    app.watch.note(true);
    drop(blocker);
    app.patch(path, json!({"shopIds": [2]})).await.expect(200);
}

#[tokio::test]
async fn every_answer_to_an_account_tells_its_rate() {
    let app = App::start().await;
    let left = |answer: &crate::app::Answer| -> (u64, u64, u64) {
        let number = |name: &str| answer.headers[name].to_str().expect("text").parse().expect("a number");
        (number("ratelimit-limit"), number("ratelimit-remaining"), number("ratelimit-reset"))
    };
    let first = left(&app.get("/usage").await.expect(200));
    let second = left(&app.get("/products/global/none").await.expect(404));
    assert_eq!(first.0, second.0);
    assert!(second.1 < first.1 || second.2 > first.2, "{first:?} {second:?}");
    assert!((1..=60).contains(&second.2));
    // What the framework refuses by itself is an answer to an account, too.
    left(&app.get("/nowhere").await.expect(404));
    left(&app.call("DELETE", "/usage", json!({})).await.expect(405));
}

#[tokio::test]
async fn an_account_beyond_its_rate_is_refused_and_another_is_not() {
    let settings = AdmissionSettings { rate_requests_per_minute: 3, ..AdmissionSettings::default() };
    let app = App::with(Plan::Unlimited, settings).await;
    app.store.create_account("other", Plan::Unlimited).await.expect("an account");
    let other = app.token("other", "eve", Level::Read).await;
    for _ in 0..3 {
        app.get("/usage").await.expect(200);
    }
    let refused = app.get("/usage").await.expect(429);
    assert_eq!(refused.body["code"], "RATE_LIMITED");
    assert_eq!(refused.headers["ratelimit-remaining"], "0");
    assert!(refused.headers.contains_key(header::RETRY_AFTER));
    app.raw(&other, "GET", "/usage", "", Body::empty()).await.expect(200);
}

#[tokio::test]
async fn what_is_allowed_is_what_the_document_names() {
    let app = App::start().await;
    let allowed = async |method: &str, path: &str| {
        let refused = app.call(method, path, json!({})).await.expect(405);
        let allow = refused.headers.get(header::ALLOW).and_then(|allow| allow.to_str().ok()).expect("Allow");
        allow.to_owned()
    };
    for path in ["/products/global/search", "/products/global/updates", "/shops/7/products/local/deletions"] {
        // GET reads the product of that name, which is another path of the document.
        assert_eq!(allowed("DELETE", path).await, "POST", "{path}");
        app.get(path).await.expect(404);
    }
    assert_eq!(allowed("DELETE", "/usage").await, "GET,HEAD");
}
