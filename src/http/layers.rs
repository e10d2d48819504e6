//! What surrounds every request: its id, its time limit, its line in the log, its count, and the shape of errors.

use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tracing::Instrument;
use uuid::Uuid;

use crate::http::error::{self, ApiError};

/// How long a request may take from its last header to the first byte of its answer.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The outermost layer.
pub(super) async fn surround(request: Request, next: Next) -> Response {
    let id = Uuid::now_v7().to_string();
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let route = request.extensions().get::<MatchedPath>().map_or("unmatched", MatchedPath::as_str).to_owned();
    let span = tracing::info_span!("request", id = %id, %method, route = %route);
    let began = Instant::now();
    async move {
        let answer = tokio::time::timeout(REQUEST_TIMEOUT, next.run(request)).await;
        let answer = answer.unwrap_or_else(|_| ApiError::RequestTimeout.into_response());
        let mut answer = error::finish(answer, &method, &path, &id).await;
        if let Ok(value) = HeaderValue::from_str(&id) {
            answer.headers_mut().insert(REQUEST_ID.clone(), value);
        }
        let seconds = began.elapsed().as_secs_f64();
        let status = answer.status().as_u16();
        let labels = [("method", method.to_string()), ("route", route), ("status", status.to_string())];
        metrics::counter!("http_requests_total", &labels).increment(1);
        metrics::histogram!("http_request_seconds", &labels).record(seconds);
        tracing::info!(status, milliseconds = seconds * 1e3, "answered");
        answer
    }
    .instrument(span)
    .await
}

/// The answer in place of a panic.
pub(super) fn panicked(panic: Box<dyn std::any::Any + Send + 'static>) -> Response {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_default();
    ApiError::Internal(format!("panic: {text}")).into_response()
}
