//! Traces for OpenTelemetry: a span for each request, sent as OTLP in JSON over HTTP to a collector, when one is named.
//!
//! The trace of a request is the one of its `traceparent`, else its own id, so that log and trace name each other. Spans
//! wait in a bounded queue; when the collector is away, or slower than requests come, they are dropped and counted.

use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::http::HeaderMap;
use clap::Args;
use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Spans that may wait.
const QUEUE: usize = 4_096;
/// Spans that are sent at one time.
const BATCH: usize = 512;
/// How long spans wait for others.
const ROUND: Duration = Duration::from_secs(5);
/// How long the collector may take.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// Where traces are taken below the collector's address.
const PATH: &str = "/v1/traces";
/// A span of a server, as OTLP numbers kinds.
const SERVER: i32 = 2;
/// The status of a span that failed, as OTLP numbers it.
const FAILED: i32 = 2;

/// Where traces go.
#[derive(Clone, Debug, Default, Args)]
pub struct TraceSettings {
    /// Address of an OpenTelemetry collector that takes OTLP over HTTP in JSON, such as http://127.0.0.1:4318; without
    /// it there are no traces.
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    pub otlp_endpoint: Option<url::Url>,
    /// Name of the service in traces.
    #[arg(long, env = "OTEL_SERVICE_NAME", default_value = "vat-classification")]
    pub otel_service_name: String,
}

/// One request.
#[derive(Clone, Debug)]
pub(super) struct Span {
    pub(super) trace: [u8; 16],
    pub(super) parent: Option<[u8; 8]>,
    pub(super) method: &'static str,
    pub(super) route: String,
    pub(super) status: u16,
    pub(super) began: SystemTime,
    pub(super) lasted: Duration,
}

static SENDER: OnceLock<Sender<Span>> = OnceLock::new();

/// Where a request belongs: the trace and the span of whoever sent it, or a trace of its own.
pub(super) fn context(headers: &HeaderMap, id: Uuid) -> ([u8; 16], Option<[u8; 8]>) {
    let sent = headers.get("traceparent").and_then(|value| value.to_str().ok());
    sent.and_then(parse).map_or((id.into_bytes(), None), |(trace, parent)| (trace, Some(parent)))
}

/// Reads a `traceparent`: version, trace, parent and flags in hexadecimal.
fn parse(text: &str) -> Option<([u8; 16], [u8; 8])> {
    let mut parts = text.split('-');
    let (version, trace, parent) = (parts.next()?, parts.next()?, parts.next()?);
    let trace: [u8; 16] = HEXLOWER.decode(trace.as_bytes()).ok()?.try_into().ok()?;
    let parent: [u8; 8] = HEXLOWER.decode(parent.as_bytes()).ok()?.try_into().ok()?;
    (version.len() == 2 && version != "ff" && trace != [0; 16] && parent != [0; 8]).then_some((trace, parent))
}

/// Hands a span on, if anybody takes it.
pub(super) fn record(span: Span) {
    if let Some(sender) = SENDER.get()
        && sender.try_send(span).is_err()
    {
        metrics::counter!("vat_classification_spans_dropped_total").increment(1);
    }
}

/// Sends spans to the collector until the service stops, and the last ones then.
pub async fn export(settings: TraceSettings, shutdown: CancellationToken) {
    let Some(endpoint) = &settings.otlp_endpoint else { return };
    let url = format!("{}{PATH}", endpoint.as_str().trim_end_matches('/'));
    let (sender, spans) = channel(QUEUE);
    if SENDER.set(sender).is_ok() {
        send_all(&url, &settings.otel_service_name, spans, shutdown).await;
    }
}

async fn send_all(url: &str, service: &str, mut spans: Receiver<Span>, shutdown: CancellationToken) {
    let client = reqwest::Client::builder().timeout(SEND_TIMEOUT).build().unwrap_or_default();
    loop {
        let stopping = shutdown.run_until_cancelled(tokio::time::sleep(ROUND)).await.is_none();
        let mut batch = Vec::new();
        while let Ok(span) = spans.try_recv() {
            batch.push(span);
            if batch.len() == BATCH {
                send(&client, url, service, &std::mem::take(&mut batch)).await;
            }
        }
        send(&client, url, service, &batch).await;
        if stopping {
            return;
        }
    }
}

async fn send(client: &reqwest::Client, url: &str, service: &str, spans: &[Span]) {
    if spans.is_empty() {
        return;
    }
    let answer = client.post(url).json(&written(service, spans)).send().await;
    if let Err(error) = answer.and_then(reqwest::Response::error_for_status) {
        metrics::counter!("vat_classification_spans_dropped_total").increment(spans.len() as u64);
        tracing::warn!(%error, spans = spans.len(), "the collector does not take traces");
    }
}

/// Spans as OTLP writes them.
fn written(service: &str, spans: &[Span]) -> Value {
    let text = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    let spans: Vec<Value> = spans
        .iter()
        .map(|span| {
            let nanos = |at: SystemTime| at.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos().to_string();
            let status = if span.status >= 500 { json!({"code": FAILED}) } else { json!({}) };
            json!({
                "traceId": HEXLOWER.encode(&span.trace),
                "spanId": HEXLOWER.encode(&Uuid::new_v4().as_bytes()[..8]),
                "parentSpanId": span.parent.map(|parent| HEXLOWER.encode(&parent)).unwrap_or_default(),
                "name": format!("{} {}", span.method, span.route),
                "kind": SERVER,
                "startTimeUnixNano": nanos(span.began),
                "endTimeUnixNano": nanos(span.began + span.lasted),
                "attributes": [
                    text("http.request.method", span.method),
                    text("http.route", &span.route),
                    {"key": "http.response.status_code", "value": {"intValue": span.status.to_string()}},
                ],
                "status": status,
            })
        })
        .collect();
    let scope = json!({"name": env!("CARGO_PKG_NAME"), "version": env!("CARGO_PKG_VERSION")});
    let resource =
        json!({"attributes": [text("service.name", service), text("service.version", env!("CARGO_PKG_VERSION"))]});
    json!({"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": scope, "spans": spans}]}]})
}

#[cfg(test)]
mod tests {
    use axum::Json;
    use axum::routing::post;
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    #[test]
    fn a_trace_is_that_of_the_sender_or_of_the_request() {
        let id = Uuid::new_v4();
        let of = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("traceparent", text.parse().expect("a value"));
            context(&headers, id)
        };
        let own = (id.into_bytes(), None);
        assert_eq!(context(&HeaderMap::new(), id), own);
        let (trace, parent) = of("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
        assert_eq!((trace[0], parent.map(|parent| parent[1])), (0x4b, Some(0xf0)));
        for wrong in [
            "",
            "00-4bf9-00f067aa0ba902b7-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        ] {
            assert_eq!(of(wrong), own, "{wrong}");
        }
    }

    #[tokio::test]
    async fn a_collector_is_sent_what_waits_when_the_service_stops() {
        let (taken, mut bodies) = unbounded_channel();
        let take = move |Json(body): Json<Value>| {
            let _ = taken.send(body);
            std::future::ready(())
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}{PATH}", listener.local_addr().expect("an address"));
        tokio::spawn(async { axum::serve(listener, axum::Router::new().route(PATH, post(take))).await });
        let (sender, spans) = channel(QUEUE);
        let span = Span {
            trace: [7; 16],
            parent: None,
            method: "GET",
            route: "/known".to_owned(),
            status: 503,
            began: UNIX_EPOCH + Duration::from_secs(1),
            lasted: Duration::from_millis(2),
        };
        for _ in 0..BATCH + 1 {
            sender.send(span.clone()).await.expect("room");
        }
        let stopped = CancellationToken::new();
        stopped.cancel();
        send_all(&url, "shop", spans, stopped).await;
        let (first, second) = (bodies.recv().await.expect("a batch"), bodies.recv().await.expect("the rest"));
        let spans = |body: &Value| body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().map(Vec::len);
        assert_eq!((spans(&first), spans(&second)), (Some(BATCH), Some(1)));
        let sent = &second["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
        assert_eq!(sent["traceId"], "07".repeat(16));
        assert_eq!((&sent["name"], &sent["status"]["code"]), (&json!("GET /known"), &json!(2)));
        assert_eq!(
            (&sent["startTimeUnixNano"], &sent["endTimeUnixNano"]),
            (&json!("1000000000"), &json!("1002000000"))
        );
    }
}
