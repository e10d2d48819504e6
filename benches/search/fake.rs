//! Stands in for Elasticsearch: takes every document, so that the service's own share of indexing can be told, and
//! keeps the requests, so that the real one can be given the same documents raw.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{Method, Uri};
use serde_json::{Value, json};

/// Most bytes of requests that are kept.
const KEPT_BYTES: usize = 1_500_000_000;

/// What was received.
#[derive(Default)]
pub(crate) struct Received {
    /// The body that made the index.
    pub(crate) index: Value,
    /// Bodies of bulk requests, and how many documents each holds.
    pub(crate) bulks: Vec<(Bytes, usize)>,
    bytes: usize,
}

/// Starts; answers its URL.
pub(crate) async fn start() -> (String, Arc<Mutex<Received>>) {
    let received = Arc::new(Mutex::new(Received::default()));
    let app =
        Router::new().fallback(answer).layer(axum::extract::DefaultBodyLimit::disable()).with_state(received.clone());
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, app).await });
    (url, received)
}

async fn answer(
    State(received): State<Arc<Mutex<Received>>>,
    method: Method,
    uri: Uri,
    body: Bytes,
) -> axum::Json<Value> {
    let mut received = received.lock().expect("no panic while it was held");
    axum::Json(match (method, uri.path()) {
        (_, "/_bulk") => {
            let documents = body.iter().filter(|byte| **byte == b'\n').count() / 2;
            if received.bytes + body.len() <= KEPT_BYTES {
                received.bytes += body.len();
                received.bulks.push((body, documents));
            }
            json!({"items": vec![json!({"index": {"status": 201}}); documents]})
        }
        (_, path) if path.starts_with("/_cat") => json!([]),
        (Method::PUT, path) if !path.ends_with("/_settings") => {
            received.index = serde_json::from_slice(&body).unwrap_or_default();
            json!({})
        }
        _ => json!({}),
    })
}
