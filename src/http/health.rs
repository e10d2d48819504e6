//! For operators: health, version and metrics, without credentials.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use metrics_exporter_prometheus::PrometheusHandle;
use serde::Serialize;
use tokio_util::sync::CancellationToken;
use utoipa::ToSchema;

use crate::http::error::ApiError;
use crate::http::state::AppState;

/// How often histograms take in what was recorded. Until then every record is kept, whether or not anybody scrapes.
const METRICS_ROUND: Duration = Duration::from_secs(5);

/// Keeps the histograms of `/metrics` up until the service stops.
pub async fn keep_metrics(metrics: PrometheusHandle, shutdown: CancellationToken) {
    while shutdown.run_until_cancelled(tokio::time::sleep(METRICS_ROUND)).await.is_some() {
        metrics.run_upkeep();
    }
}

/// The state of the service.
#[derive(Serialize, ToSchema)]
pub(super) struct Health {
    /// `UP`.
    status: &'static str,
}

/// What runs.
#[derive(Serialize, ToSchema)]
pub(super) struct Version {
    /// Version of the service.
    version: &'static str,
    /// Version of the classifier's model.
    model: String,
    /// Checksum of the corpus that the model was trained on.
    corpus: String,
}

#[utoipa::path(get, path = "/health/live", tag = "Operation", operation_id = "live",
    summary = "Liveness",
    description = "Whether the process answers.",
    responses((status = 200, description = "It does.", body = Health)))]
pub(super) async fn live() -> Json<Health> {
    Json(Health { status: "UP" })
}

#[utoipa::path(get, path = "/health/ready", tag = "Operation", operation_id = "ready",
    summary = "Readiness",
    description = "Whether requests can be served: the database answers.",
    responses((status = 200, description = "They can.", body = Health)))]
pub(super) async fn ready(State(state): State<AppState>) -> Result<Json<Health>, ApiError> {
    if state.database.answers() {
        Ok(Json(Health { status: "UP" }))
    } else {
        Err(ApiError::NotReady("the database does not answer".to_owned()))
    }
}

#[utoipa::path(get, path = "/version", tag = "Operation", operation_id = "version",
    summary = "Versions",
    description = "Which service, model and corpus run.",
    responses((status = 200, description = "The versions.", body = Version)))]
pub(super) async fn version(State(state): State<AppState>) -> Json<Version> {
    let model = state.engine.model();
    Json(Version { version: env!("CARGO_PKG_VERSION"), model: model.version, corpus: model.corpus })
}

#[utoipa::path(get, path = "/metrics", tag = "Operation", operation_id = "metrics",
    summary = "Metrics",
    description = "Counters and histograms in Prometheus' text format.",
    responses((status = 200, description = "The metrics.", body = String, content_type = "text/plain")))]
pub(super) async fn metrics(State(state): State<AppState>) -> Response {
    let text = state.metrics.render();
    (StatusCode::OK, [(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response()
}
