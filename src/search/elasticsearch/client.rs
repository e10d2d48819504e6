//! Talks to Elasticsearch: one request, its limits, and what its failures mean.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use elasticsearch::auth::Credentials;
use elasticsearch::cert::{Certificate, CertificateValidation};
use elasticsearch::http::Method;
use elasticsearch::http::headers::HeaderMap;
use elasticsearch::http::transport::{SingleNodeConnectionPool, Transport, TransportBuilder};
use serde_json::Value as Json;

use crate::search::elasticsearch::nodes::Nodes;
use crate::search::{Settings, SettingsError};

/// How long a request about indices may take.
const ADMIN_TIMEOUT: Duration = Duration::from_secs(30);
/// How long Elasticsearch may take to say that it is there.
const PING_TIMEOUT: Duration = Duration::from_secs(1);
/// How often a request is sent that meets an overloaded or restarting server; at least once to each node.
const MAX_ATTEMPTS: usize = 3;
/// Least and most time before a request is sent again, in milliseconds.
const PAUSE_MS: std::ops::Range<u64> = 20..80;

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ElasticError {
    /// It cannot be reached, does not let us in, or is not able to answer now.
    #[error("Elasticsearch is not available: {0}")]
    Unavailable(String),
    /// It did not answer in time.
    #[error("Elasticsearch did not answer within {0:?}")]
    Timeout(Duration),
    /// An index or alias does not exist.
    #[error("an index of Elasticsearch is missing: {0}")]
    Missing(String),
    /// It refuses what was asked.
    #[error("Elasticsearch refuses the request with status {status}: {reason}")]
    Refused {
        /// The status of its answer.
        status: u16,
        /// What it says.
        reason: String,
    },
}

/// A request.
pub(super) struct Request<'a> {
    pub(super) method: Method,
    pub(super) path: &'a str,
    pub(super) query: &'a [(&'static str, &'a str)],
    pub(super) body: Option<Vec<u8>>,
    pub(super) timeout: Duration,
}

impl<'a> Request<'a> {
    /// A request about indices, without a body.
    pub(super) fn new(method: Method, path: &'a str) -> Request<'a> {
        Request { method, path, query: &[], body: None, timeout: ADMIN_TIMEOUT }
    }

    /// The same request with a body.
    pub(super) fn json(mut self, body: &Json) -> Request<'a> {
        self.body = Some(body.to_string().into_bytes());
        self
    }
}

/// Connects to every node by the settings, without looking whether anyone is there.
pub(super) fn nodes(settings: &Settings, urls: &[url::Url]) -> Result<Nodes, SettingsError> {
    let name = |url: &url::Url| {
        let port = url.port_or_known_default().unwrap_or_default();
        format!("{}:{port}", url.host_str().unwrap_or_default())
    };
    let connected = urls.iter().map(|url| Ok((name(url), transport(settings, url)?)));
    connected.collect::<Result<_, SettingsError>>().map(Nodes::new)
}

fn transport(settings: &Settings, url: &url::Url) -> Result<Transport, SettingsError> {
    let invalid = |error: String| SettingsError(format!("Elasticsearch: {error}"));
    let mut address = url.clone();
    let in_url = (!url.username().is_empty())
        .then(|| Credentials::Basic(decoded(url.username()), decoded(url.password().unwrap_or_default())));
    // Credentials in the URL would be sent twice.
    let _ = address.set_username("");
    let _ = address.set_password(None);
    let mut builder = TransportBuilder::new(SingleNodeConnectionPool::new(address)).disable_proxy();
    let basic = settings.elasticsearch_user.clone().zip(settings.elasticsearch_password.clone());
    let credentials = settings.elasticsearch_api_key.clone().map(Credentials::EncodedApiKey);
    let credentials = credentials.or(basic.map(|(user, password)| Credentials::Basic(user, password))).or(in_url);
    if let Some(credentials) = credentials {
        builder = builder.auth(credentials);
    }
    if let Some(path) = &settings.elasticsearch_ca_file {
        let pem = std::fs::read(path).map_err(|error| invalid(format!("cannot read {}: {error}", path.display())))?;
        let certificate =
            Certificate::from_pem(&pem).map_err(|error| invalid(format!("{}: {error}", path.display())))?;
        builder = builder.cert_validation(CertificateValidation::Full(certificate));
    }
    builder.build().map_err(|error| invalid(error.to_string()))
}

fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// Sends a request to the node whose turn it is, and again to the next one where the server is overloaded or a connection
/// was lost, after a moment once all were asked, all within the request's time. When the time is up the connection is
/// closed, which cancels the work on the server.
pub(super) async fn send(nodes: &Nodes, request: &Request<'_>) -> Result<Json, ElasticError> {
    let asked = AtomicUsize::new(0);
    let attempts = async {
        let mut attempt = 1;
        loop {
            let (number, transport) = nodes.next();
            asked.store(number, Ordering::Relaxed);
            match send_once(transport, request).await {
                Err(ElasticError::Unavailable(reason)) => {
                    nodes.failed(number, &reason);
                    if attempt >= MAX_ATTEMPTS.max(nodes.len()) {
                        return Err(ElasticError::Unavailable(reason));
                    }
                }
                result => {
                    nodes.answered(number);
                    return result;
                }
            }
            if attempt >= nodes.len() {
                tokio::time::sleep(pause(PAUSE_MS)).await;
            }
            attempt += 1;
        }
    };
    tokio::time::timeout(request.timeout, attempts).await.unwrap_or_else(|_| {
        // It may be the request that was too much, and then any node is as good as another.
        nodes.failed(asked.load(Ordering::Relaxed), "it does not answer in time");
        Err(ElasticError::Timeout(request.timeout))
    })
}

/// Whether the server answers.
pub(super) async fn ping(nodes: &Nodes) -> Result<(), ElasticError> {
    let request = Request { timeout: PING_TIMEOUT, ..Request::new(Method::Get, "_cluster/health?timeout=500ms") };
    send(nodes, &request).await.map(|_| ())
}

/// A time within bounds, another one on each call, so that services do not come back together.
pub(crate) fn pause(bounds_ms: std::ops::Range<u64>) -> Duration {
    let random = getrandom::u64().unwrap_or(bounds_ms.start);
    Duration::from_millis(bounds_ms.start + random % (bounds_ms.end - bounds_ms.start).max(1))
}

async fn send_once(transport: &Transport, request: &Request<'_>) -> Result<Json, ElasticError> {
    let query = Some(request.query).filter(|query| !query.is_empty());
    let body = request.body.as_deref();
    let sent = transport.send(request.method, request.path, HeaderMap::new(), query, body, None).await;
    let response = sent.map_err(|error| ElasticError::Unavailable(chain(&error)))?;
    let status = response.status_code().as_u16();
    if (200..300).contains(&status) {
        return response.json().await.map_err(|error| ElasticError::Unavailable(chain(&error)));
    }
    let reason: String = response.text().await.unwrap_or_default().chars().take(500).collect();
    Err(match status {
        404 => ElasticError::Missing(reason),
        401 | 403 | 408 | 429 | 500.. => ElasticError::Unavailable(format!("status {status}: {reason}")),
        _ => ElasticError::Refused { status, reason },
    })
}

/// What an error and its causes say; a cause that is already told by what it caused is left out.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let reason = cause.to_string();
        if !text.contains(&reason) {
            text.push_str(": ");
            text.push_str(&reason);
        }
        source = cause.source();
    }
    text
}
