//! What surrounds every request: its id, its time limit, its line in the log, its count, and the shape of errors.

use std::time::{Duration, Instant, SystemTime};

use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderName, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tracing::Instrument;
use tracing::field::Empty;
use uuid::Uuid;

use crate::computing;
use crate::http::error::{self, ApiError};
use crate::http::links::{BASE_PATH, IMPORTS_PATH};
use crate::http::traces::{self, Span};

/// How long a request may take from its last header to the first byte of its answer.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a request with a file may take until its answer begins: the file has to arrive before.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// How long the request to this path may take from its last header to the first byte of its answer.
pub(super) fn time_limit(path: &str) -> Duration {
    match path.strip_prefix(BASE_PATH).unwrap_or(path) {
        IMPORTS_PATH => UPLOAD_TIMEOUT,
        _ => REQUEST_TIMEOUT,
    }
}

/// What pages may load: from this service alone, with the inline styles of the page that shows the document.
const CONTENT_POLICY: &str = "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; \
     object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
/// Headers of every answer.
const GUARDS: [(HeaderName, &str); 4] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CONTENT_SECURITY_POLICY, CONTENT_POLICY),
];

static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The outermost layer of every route.
pub(super) async fn identify_and_log(request: Request, next: Next) -> Response {
    let route = route_name(&request);
    Seen::of(&request, route).answered(next.run(request)).await
}

/// What is told of a request beside its answer.
pub(super) struct Seen {
    id: Uuid,
    trace: ([u8; 16], Option<[u8; 8]>),
    method: Method,
    path: String,
    route: String,
}

impl Seen {
    pub(super) fn of(request: &Request, route: String) -> Seen {
        let id = Uuid::now_v7();
        let trace = traces::context(request.headers(), id);
        Seen { id, trace, method: request.method().clone(), path: request.uri().path().to_owned(), route }
    }

    /// Waits for the answer, gives an error its shape, and tells log, metrics and traces.
    pub(super) async fn answered(self, answer: impl Future<Output = Response>) -> Response {
        let Seen { id, trace: (trace, parent), method, path, route } = self;
        let id = id.to_string();
        let verb = method_name(&method);
        // Who asks is filled in when the token is known.
        let span =
            tracing::info_span!("request", id = %id, method = verb, route = %route, account = Empty, user = Empty);
        let for_operators = route.starts_with("/health") || route == "/metrics";
        let (began, began_at) = (Instant::now(), SystemTime::now());
        async move {
            let answer = tokio::time::timeout(time_limit(&path), answer).await;
            let answer = answer.unwrap_or_else(|_| ApiError::RequestTimeout.into_response());
            let mut answer = error::finish(answer, &method, &path, &id).await;
            if let Ok(value) = HeaderValue::from_str(&id) {
                answer.headers_mut().insert(REQUEST_ID.clone(), value);
            }
            let lasted = began.elapsed();
            let seconds = lasted.as_secs_f64();
            let status = answer.status().as_u16();
            traces::record(Span { trace, parent, method: verb, route: route.clone(), status, began: began_at, lasted });
            let labels = [("method", verb.to_owned()), ("route", route), ("status", status.to_string())];
            metrics::counter!("vat_classification_http_requests_total", &labels).increment(1);
            metrics::histogram!("vat_classification_http_request_seconds", &labels).record(seconds);
            // In tenths, which is as exact as it is true.
            let milliseconds = (seconds * 1e4).round() / 10.0;
            if for_operators {
                tracing::debug!(status, milliseconds, "answered");
            } else {
                tracing::info!(status, milliseconds, "answered");
            }
            answer
        }
        .instrument(span)
        .await
    }
}

/// The method as logs and metrics name it. A client may send any token as its method; each new one would be a series of
/// its own for ever.
fn method_name(method: &Method) -> &'static str {
    const KNOWN: [Method; 9] = [
        Method::GET,
        Method::HEAD,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
        Method::OPTIONS,
        Method::CONNECT,
        Method::TRACE,
    ];
    const NAMES: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"];
    KNOWN.iter().position(|known| known == method).map_or("OTHER", |at| NAMES[at])
}

/// The route as logs and metrics name it: one name for all paths that lead nowhere.
fn route_name(request: &Request) -> String {
    let matched = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    matched.filter(|route| !route.contains("__private")).unwrap_or("unmatched").to_owned()
}

/// Adds the headers that keep a browser from taking an answer for something else than it is. An answer that says more
/// about itself keeps what it says.
pub(super) async fn guard(request: Request, next: Next) -> Response {
    guarded(next.run(request).await)
}

/// An answer with these headers.
pub(super) fn guarded(mut answer: Response) -> Response {
    for (name, value) in GUARDS {
        answer.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    answer
}

/// The answer in place of a panic.
pub(super) fn panicked(panic: Box<dyn std::any::Any + Send + 'static>) -> Response {
    ApiError::Internal(computing::said(panic)).into_response()
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::Body;
    use axum::middleware::from_fn;
    use axum::routing::get;
    use metrics_exporter_prometheus::PrometheusBuilder;
    use tower::ServiceExt;

    use super::*;

    #[test]
    fn methods_and_paths_that_clients_make_up_make_no_series_of_their_own() {
        let recorder = PrometheusBuilder::new().build_recorder();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let inner = Router::new().route("/known", get(|| async { "x" })).fallback(|| async { "none" });
        let app = Router::new().nest("/base", inner).layer(from_fn(identify_and_log));
        let send = async {
            for number in 0..100 {
                for path in ["/base/known".to_owned(), format!("/base/{number}"), format!("/{number}")] {
                    let request = Request::builder().method(format!("M{number}").as_str()).uri(path);
                    app.clone().oneshot(request.body(Body::empty()).expect("a request")).await.expect("an answer");
                }
            }
        };
        metrics::with_local_recorder(&recorder, || runtime.block_on(send));
        let shown = recorder.handle().render();
        let series = shown.lines().filter(|line| line.starts_with("vat_classification_http_requests_total")).count();
        assert!(series <= 3, "{shown}");
        assert!(shown.contains("method=\"OTHER\"") && !shown.contains("M7"), "{shown}");
    }
}
