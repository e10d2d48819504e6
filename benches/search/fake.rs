//! Stands in for Elasticsearch: takes every document, so that the service's own share of indexing can be told, and
//! keeps the requests, so that the real one can be given the same documents raw.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{Method, Uri};
use serde_json::{Value, json};
use tokio::sync::Notify;

/// A bulk request, and how many documents it holds.
pub(crate) type Bulk = (Bytes, usize);

/// What was received.
#[derive(Clone)]
pub(crate) struct Received {
    kept: Arc<Mutex<Kept>>,
    full: Arc<Notify>,
    wanted: usize,
}

#[derive(Default)]
struct Kept {
    /// The body that made the index.
    index: Value,
    bulks: Vec<Bulk>,
    documents: usize,
}

impl Received {
    /// Returns once there are as many documents as were wanted.
    pub(crate) async fn full(&self) {
        self.full.notified().await;
    }

    /// The body that made the index, and the bulk requests.
    pub(crate) fn take(&self) -> (Value, Vec<Bulk>) {
        let mut kept = self.kept.lock().expect("no panic while it was held");
        (kept.index.clone(), std::mem::take(&mut kept.bulks))
    }
}

/// Starts; answers its URL.
pub(crate) async fn start(wanted: usize) -> (String, Received) {
    let received = Received { kept: Arc::default(), full: Arc::default(), wanted };
    let app =
        Router::new().fallback(answer).layer(axum::extract::DefaultBodyLimit::disable()).with_state(received.clone());
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, app).await });
    (url, received)
}

async fn answer(State(received): State<Received>, method: Method, uri: Uri, body: Bytes) -> axum::Json<Value> {
    let mut kept = received.kept.lock().expect("no panic while it was held");
    axum::Json(match (method, uri.path()) {
        (_, "/_bulk") => {
            let documents = body.iter().filter(|byte| **byte == b'\n').count() / 2;
            if kept.documents < received.wanted {
                kept.bulks.push((body, documents));
            }
            kept.documents += documents;
            if kept.documents >= received.wanted {
                received.full.notify_one();
            }
            json!({"items": vec![json!({"index": {"status": 201}}); documents]})
        }
        (_, path) if path.starts_with("/_cat") => json!([]),
        (Method::PUT, path) if !path.ends_with("/_settings") => {
            kept.index = serde_json::from_slice(&body).unwrap_or_default();
            json!({})
        }
        _ => json!({}),
    })
}
