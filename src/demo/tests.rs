//! The demonstration against a service that keeps what it is sent, and classifies at the second look.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Map, Value, json};

use super::*;

#[test]
fn the_samples_are_what_a_shop_would_have() {
    let samples = samples().expect("a table");
    assert!(samples.len() >= 300, "{}", samples.len());
    let ids: BTreeSet<&str> = samples.iter().map(|sample| sample.product_id.as_str()).collect();
    assert_eq!(ids.len(), samples.len(), "every id is there once");
    let departments: BTreeSet<&str> = ids.iter().map(|id| &id[..2]).collect();
    assert_eq!(departments.len(), 8, "{departments:?}");
    let bodies: Vec<Value> = samples.iter().map(Sample::body).collect();
    let share =
        |pointer: &str| bodies.iter().filter(|body| body.pointer(pointer).is_some()).count() * 100 / bodies.len();
    assert!(share("/productDetails/customsCodes") >= 25);
    assert!(share("/productDetails/languageAttributes/de/productName") >= 80);
    assert!(share("/productDetails/languageAttributes/en/productName") >= 60);
    for body in &bodies {
        let details = &body["productDetails"];
        assert!(!details["languageAttributes"].as_object().expect("an object").is_empty(), "{body}");
        assert_eq!(details["customs"]["countryOfOrigin"].as_str().map(str::len), Some(2), "{body}");
        let code = details.get("customsCodes").and_then(Value::as_object).and_then(|codes| codes.values().next());
        let code = code.map(|code| code.get("code").unwrap_or(code).as_str().expect("a text").to_owned());
        let digits = code.map_or(8, |code| code.chars().filter(char::is_ascii_digit).count());
        assert!((8..=11).contains(&digits), "{body}");
    }
}

#[derive(Default)]
struct Service {
    products: BTreeMap<String, Value>,
    looks: usize,
}

type Shared = Arc<Mutex<Service>>;

async fn create(
    State(service): State<Shared>,
    headers: HeaderMap,
    Json(products): Json<Map<String, Value>>,
) -> Response {
    if headers.get("authorization").is_none_or(|value| value != "Bearer the-token") {
        return (StatusCode::UNAUTHORIZED, "no token").into_response();
    }
    service.lock().expect("not poisoned").products.extend(products);
    (StatusCode::CREATED, Json(json!({}))).into_response()
}

async fn list(State(service): State<Shared>, Query(query): Query<BTreeMap<String, String>>) -> Json<Value> {
    let mut service = service.lock().expect("not poisoned");
    service.looks += 1;
    let pending = service.looks <= 2;
    let ids = query["productIds"].split(',').filter(|id| service.products.contains_key(*id));
    let global = |id: &str| {
        json!({
            "productId": id, "assignmentStatus": if id.ends_with('7') { "UNASSIGNED" } else { "ASSIGNED" },
            "strategy": "DESCRIPTION", "productClassCode": "6109", "confidence": 0.876,
            "autoAssignment": if pending { "PENDING" } else { "DONE" },
        })
    };
    let mut items: Vec<Value> = ids.map(global).collect();
    items.push(json!({
        "productId": items[0]["productId"], "shopId": 1, "assignmentStatus": "DENIED", "strategy": null,
        "autoAssignment": "PENDING",
    }));
    Json(json!({"items": items, "links": {"self": "", "next": null, "prev": null}}))
}

async fn start() -> (String, Shared) {
    let shared = Shared::default();
    let base = "/api/vat-classification/v1";
    let router = Router::new()
        .route(&format!("{base}/products/global"), post(create))
        .route(&format!("{base}/assignments/TARIC"), get(list))
        .with_state(Arc::clone(&shared));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, shared)
}

#[tokio::test]
async fn the_samples_are_loaded_classified_and_shown() {
    let (url, service) = start().await;
    for base in [url.clone(), format!("{url}/"), format!("{url}/api/vat-classification/v1")] {
        run(&base, "the-token", |code| (code == "6109").then(|| "T-shirts".to_owned())).await.expect("done");
    }
    let service = service.lock().expect("not poisoned");
    assert_eq!(service.products.len(), samples().expect("a table").len());
    assert!(service.looks > 2, "it waits for what is pending");
}

#[tokio::test]
async fn the_table_has_a_line_for_each_product_and_totals() {
    let (url, service) = start().await;
    let samples: Vec<Sample> = samples().expect("a table").into_iter().take(10).collect();
    let client = Client::new(&url, "the-token").expect("a client");
    client.create(&samples).await.expect("created");
    service.lock().expect("not poisoned").looks = 2;
    let ids: Vec<&str> = samples.iter().map(|sample| sample.product_id.as_str()).collect();
    let assignments = client.assignments(&ids).await.expect("assignments");
    let text = table::render(&samples, &assignments, |_| Some("T-shirts\nand the like, ".repeat(9)));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 1 + 10 + 4, "{text}");
    assert!(lines[1].starts_with("Vollmilchschokolade mit ganzen Haselnüssen"), "{text}");
    assert!(lines[2].ends_with("88 %") && lines[2].contains("  6109  ") && lines[2].contains('…'), "{text}");
    assert_eq!(
        &lines[11..],
        ["", "10 products", "     9  ASSIGNED (DESCRIPTION)", "     1  UNASSIGNED (DESCRIPTION)"],
        "{text}"
    );
}

#[tokio::test]
async fn a_refusal_ends_the_demonstration_with_what_the_service_said() {
    let (url, _) = start().await;
    let error = run(&url, "another", |_| None).await.expect_err("refused");
    assert!(format!("{error:#}").contains("401 Unauthorized: no token"), "{error:#}");
    run("not a url", "", |_| None).await.expect_err("refused");
}
