//! The error table: every error that a client can see, in one place.

use std::borrow::Cow;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use chrono::{SecondsFormat, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::domain::Fault;
use crate::search::SearchError;
use crate::store::StoreError;
use crate::store::assignments::SelectionError;
use crate::store::deadline::FilterError;

/// When a client may ask again after a search that failed.
const SEARCH_RETRY_AFTER: Duration = Duration::from_secs(5);

/// When a client may ask again after it was sent away for lack of room, or of a database.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Most failing items that one answer names.
const MAX_FAULTS_TOLD: usize = 1_000;

/// Why a request was not done; it changed nothing.
#[derive(Debug)]
pub enum ApiError {
    /// Malformed.
    BadRequest(String, Vec<Fault>),
    /// Without a credential that is in force.
    Unauthorized(&'static str),
    /// With a credential that may not do this.
    Forbidden(String),
    /// About something that does not exist.
    NotFound(String, Vec<Fault>),
    /// With a method that the path does not have.
    MethodNotAllowed,
    /// Not sent in time.
    RequestTimeout,
    /// About a state that has passed.
    Conflict(String, Vec<Fault>, Option<i64>),
    /// Too large.
    PayloadTooLarge(String),
    /// In a format that is not understood.
    UnsupportedMediaType(String),
    /// Well-formed and wrong.
    Unprocessable(String, Vec<Fault>),
    /// Beyond the plan's limit; how long until it begins anew.
    LimitExceeded(String, Duration),
    /// Beyond the account's rate; how long until the count begins anew.
    RateLimited(Duration),
    /// With an idempotency key that another request had.
    KeyReused,
    /// With an idempotency key whose request still runs.
    KeyInUse,
    /// A search that took longer than its deadline.
    SearchTooSlow,
    /// A search without a search engine.
    SearchUnavailable,
    /// Work that the service cannot take on at present, or a database that does not answer.
    Unavailable(&'static str),
    /// A service that is not ready.
    NotReady(String),
    /// Our own mistake; the text goes to the log only.
    Internal(String),
}

/// The body of every error.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ErrorBody {
    /// The HTTP status by name.
    #[schema(example = "UNPROCESSABLE_ENTITY")]
    pub status: Cow<'static, str>,
    /// The kind of error.
    #[schema(example = "INVALID_DATA_EXCEPTION")]
    pub code: Cow<'static, str>,
    /// What is wrong, in words.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// When, in ISO 8601.
    pub timestamp: String,
    /// The path of the request.
    pub path: String,
    /// The id of the request, also sent as `X-Request-Id`.
    pub instance: String,
    /// The version now in force, where a stale one was sent for a single object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_version: Option<i64>,
    /// Every failing item.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub errors: Vec<Fault>,
}

/// An error on its way out; the outermost layer adds the path and the id of the request.
#[derive(Clone, Debug)]
pub(super) struct Pending(ErrorBody);

impl Pending {
    /// The error as it can be kept.
    pub(super) fn written(&self) -> Vec<u8> {
        serde_json::to_vec(&self.0).unwrap_or_default()
    }

    /// An error that was kept.
    pub(super) fn read(written: &[u8]) -> Option<Pending> {
        serde_json::from_slice(written).ok().map(Pending)
    }
}

impl ApiError {
    /// Malformed as a whole.
    pub fn malformed(message: impl Into<String>) -> ApiError {
        ApiError::BadRequest(message.into(), Vec::new())
    }

    /// Malformed at one place.
    pub fn malformed_at(field: &str, message: impl Into<String>) -> ApiError {
        let message = message.into();
        ApiError::BadRequest(format!("{field}: {message}"), vec![Fault::at(field, "MALFORMED", message)])
    }

    /// Status, `status` and `code` fields.
    fn table(&self) -> (StatusCode, &'static str, &'static str) {
        match self {
            ApiError::BadRequest(..) => (StatusCode::BAD_REQUEST, "BAD_REQUEST", "BadRequest"),
            ApiError::Unauthorized(_) => (StatusCode::UNAUTHORIZED, "UNAUTHORIZED", "Unauthorized"),
            ApiError::Forbidden(_) => (StatusCode::FORBIDDEN, "FORBIDDEN", "Forbidden"),
            ApiError::NotFound(..) => (StatusCode::NOT_FOUND, "NOT_FOUND", "NotFound"),
            ApiError::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", "MethodNotAllowed"),
            ApiError::RequestTimeout => (StatusCode::REQUEST_TIMEOUT, "REQUEST_TIMEOUT", "RequestTimeout"),
            ApiError::Conflict(..) => (StatusCode::CONFLICT, "CONFLICT", "CONFLICT_ENTITY_MODIFIED"),
            ApiError::PayloadTooLarge(_) => (StatusCode::PAYLOAD_TOO_LARGE, "PAYLOAD_TOO_LARGE", "PAYLOAD_TOO_LARGE"),
            ApiError::UnsupportedMediaType(_) => {
                (StatusCode::UNSUPPORTED_MEDIA_TYPE, "UNSUPPORTED_MEDIA_TYPE", "UNSUPPORTED_MEDIA_TYPE")
            }
            ApiError::Unprocessable(..) => {
                (StatusCode::UNPROCESSABLE_ENTITY, "UNPROCESSABLE_ENTITY", "INVALID_DATA_EXCEPTION")
            }
            ApiError::LimitExceeded(..) => (StatusCode::TOO_MANY_REQUESTS, "TOO_MANY_REQUESTS", "LIMIT_EXCEEDED"),
            ApiError::RateLimited(_) => (StatusCode::TOO_MANY_REQUESTS, "TOO_MANY_REQUESTS", "RATE_LIMITED"),
            ApiError::KeyReused => (StatusCode::UNPROCESSABLE_ENTITY, "UNPROCESSABLE_ENTITY", "IDEMPOTENCY_KEY_REUSED"),
            ApiError::KeyInUse => (StatusCode::CONFLICT, "CONFLICT", "IDEMPOTENCY_KEY_IN_USE"),
            ApiError::SearchTooSlow => (StatusCode::SERVICE_UNAVAILABLE, "SERVICE_UNAVAILABLE", "SearchTooSlow"),
            ApiError::SearchUnavailable => {
                (StatusCode::SERVICE_UNAVAILABLE, "SERVICE_UNAVAILABLE", "SearchUnavailable")
            }
            ApiError::Unavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, "SERVICE_UNAVAILABLE", "ServiceUnavailable"),
            ApiError::NotReady(_) => (StatusCode::SERVICE_UNAVAILABLE, "SERVICE_UNAVAILABLE", "NotReady"),
            ApiError::Internal(_) => (StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL_SERVER_ERROR", "InternalError"),
        }
    }

    /// The error that stands for a status which the framework answered by itself.
    fn from_status(status: StatusCode, text: String) -> ApiError {
        match status {
            StatusCode::NOT_FOUND => ApiError::NotFound("there is nothing at this path".to_owned(), Vec::new()),
            StatusCode::METHOD_NOT_ALLOWED => ApiError::MethodNotAllowed,
            StatusCode::REQUEST_TIMEOUT => ApiError::RequestTimeout,
            StatusCode::PAYLOAD_TOO_LARGE => ApiError::PayloadTooLarge(text),
            StatusCode::UNSUPPORTED_MEDIA_TYPE => ApiError::UnsupportedMediaType(text),
            status if status.is_client_error() => ApiError::malformed(text),
            status => ApiError::Internal(format!("answered {status}: {text}")),
        }
    }

    /// Its HTTP status.
    pub(super) fn status(&self) -> StatusCode {
        self.table().0
    }

    /// Its body, for the description of the interface.
    pub(super) fn shown(self) -> serde_json::Value {
        serde_json::to_value(self.body()).unwrap_or_default()
    }

    /// Its code and message, for answers that tell of an error without being one.
    pub(super) fn told(self) -> (String, String) {
        if let ApiError::Internal(text) = &self {
            tracing::error!(error = %text, "request failed");
        }
        let body = self.body();
        (body.code.into_owned(), body.message)
    }

    fn body(self) -> ErrorBody {
        let (_, status, code) = self.table();
        let mut body = ErrorBody {
            status: status.into(),
            code: code.into(),
            message: String::new(),
            detail: None,
            timestamp: Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true),
            path: String::new(),
            instance: String::new(),
            current_version: None,
            errors: Vec::new(),
        };
        match self {
            ApiError::BadRequest(message, faults)
            | ApiError::NotFound(message, faults)
            | ApiError::Unprocessable(message, faults) => (body.message, body.errors) = (message, faults),
            ApiError::Conflict(message, faults, current_version) => {
                (body.message, body.errors, body.current_version) = (message, faults, current_version);
            }
            ApiError::Unauthorized(message) | ApiError::Unavailable(message) => body.message = message.to_owned(),
            ApiError::MethodNotAllowed => body.message = "this path does not have that method".to_owned(),
            ApiError::RequestTimeout => body.message = "the request did not arrive in time".to_owned(),
            ApiError::PayloadTooLarge(message)
            | ApiError::UnsupportedMediaType(message)
            | ApiError::Forbidden(message)
            | ApiError::NotReady(message) => body.message = message,
            ApiError::LimitExceeded(message, wait) => {
                let anew = (Utc::now() + wait).date_naive();
                body.detail = Some(format!("The count begins anew on {anew} (UTC)."));
                body.message = message;
            }
            ApiError::RateLimited(wait) => {
                body.message = "this account sends more than its rate allows".to_owned();
                body.detail = Some(format!("The count begins anew in {} seconds.", wait.as_secs()));
            }
            ApiError::KeyReused => {
                body.message = "another request was sent with this Idempotency-Key".to_owned();
                body.detail = Some("Send each request with a key of its own.".to_owned());
            }
            ApiError::KeyInUse => {
                body.message = "the request with this Idempotency-Key is still being done".to_owned();
                body.detail = Some("Ask again in a moment.".to_owned());
            }
            ApiError::SearchTooSlow => {
                body.message = "the search took too long".to_owned();
                body.detail = Some("Narrow the search: longer values are found faster.".to_owned());
            }
            ApiError::SearchUnavailable => body.message = "the search engine does not answer".to_owned(),
            ApiError::Internal(_) => {
                body.message = "something went wrong here; the log has more under this instance".to_owned();
            }
        }
        if body.errors.len() > MAX_FAULTS_TOLD {
            body.detail = Some(format!("{} items fail; the first {MAX_FAULTS_TOLD} are named.", body.errors.len()));
            body.errors.truncate(MAX_FAULTS_TOLD);
        }
        body
    }
}

/// The fault's words, where there is only one; else how many there are.
fn summary(faults: &[Fault], what: &str) -> String {
    match faults {
        [only] => match &only.field {
            Some(field) => format!("{field}: {}", only.message),
            None => only.message.clone(),
        },
        many => format!("{} {what}", many.len()),
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> ApiError {
        match error {
            StoreError::NotFound(faults) => ApiError::NotFound(summary(&faults, "objects do not exist"), faults),
            StoreError::Conflict { faults, current_version } => {
                ApiError::Conflict(summary(&faults, "objects were modified meanwhile"), faults, current_version)
            }
            StoreError::Unprocessable(faults) => {
                ApiError::Unprocessable(summary(&faults, "items cannot be processed"), faults)
            }
            limit @ StoreError::LimitExceeded { .. } => ApiError::LimitExceeded(limit.to_string(), until_next_month()),
            StoreError::Moving => ApiError::Unavailable("the account is being moved to another database"),
            StoreError::Unavailable(error) => {
                tracing::warn!(%error, "the database is not available");
                ApiError::Unavailable("the database does not answer at present")
            }
            StoreError::Database(error) => ApiError::Internal(format!("database: {error}")),
        }
    }
}

impl From<SelectionError> for ApiError {
    fn from(error: SelectionError) -> ApiError {
        match error {
            SelectionError::Filter(FilterError::TooSlow) => ApiError::SearchTooSlow,
            SelectionError::Filter(FilterError::Database(error)) => error.into(),
            SelectionError::Store(error) => error.into(),
        }
    }
}

impl From<SearchError> for ApiError {
    fn from(error: SearchError) -> ApiError {
        match error {
            SearchError::TooSlow => ApiError::SearchTooSlow,
            SearchError::Unavailable(reason) => {
                tracing::warn!(%reason, "search is not available");
                ApiError::SearchUnavailable
            }
            SearchError::Internal(text) => ApiError::Internal(format!("search: {text}")),
        }
    }
}

impl From<sqlx::Error> for ApiError {
    fn from(error: sqlx::Error) -> ApiError {
        StoreError::from(error).into()
    }
}

/// How long the calendar month (UTC) still lasts.
fn until_next_month() -> Duration {
    use chrono::{Datelike, TimeZone};
    let now = Utc::now();
    let (year, month) = if now.month() == 12 { (now.year() + 1, 1) } else { (now.year(), now.month() + 1) };
    let next = Utc.with_ymd_and_hms(year, month, 1, 0, 0, 0).single().unwrap_or(now);
    (next - now).to_std().unwrap_or_default().max(Duration::from_secs(1))
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (status, ..) = self.table();
        let mut response = status.into_response();
        let retry_after = match &self {
            ApiError::LimitExceeded(_, wait) | ApiError::RateLimited(wait) => Some(*wait),
            ApiError::Unavailable(_) | ApiError::KeyInUse => Some(RETRY_AFTER),
            ApiError::SearchTooSlow | ApiError::SearchUnavailable | ApiError::NotReady(_) => Some(SEARCH_RETRY_AFTER),
            _ => None,
        };
        if let Some(wait) = retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(wait.as_secs()));
        }
        if let ApiError::Unauthorized(_) = &self {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let ApiError::Internal(text) = &self {
            tracing::error!(error = %text, "request failed");
        }
        response.extensions_mut().insert(Pending(self.body()));
        response
    }
}

/// Most bytes of a text that the framework answered, repeated in our message.
const MAX_FRAMEWORK_TEXT_BYTES: usize = 1_000;

/// Gives an error answer its body; whatever the framework answered as an error becomes one of ours.
pub(super) async fn finish(mut response: Response, method: &Method, path: &str, instance: &str) -> Response {
    let status = response.status();
    if !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let pending = match response.extensions_mut().remove::<Pending>() {
        Some(pending) => pending,
        None => {
            // What was said beside the error stays: which methods there are, the rate of the account.
            let mut said = std::mem::take(response.headers_mut());
            said.remove(header::CONTENT_TYPE);
            said.remove(header::CONTENT_LENGTH);
            let body = std::mem::take(response.body_mut());
            let text = axum::body::to_bytes(body, MAX_FRAMEWORK_TEXT_BYTES).await.unwrap_or_default();
            let text = String::from_utf8_lossy(&text).into_owned();
            response = ApiError::from_status(status, text).into_response();
            response.headers_mut().extend(said);
            match response.extensions_mut().remove::<Pending>() {
                Some(pending) => pending,
                None => return response,
            }
        }
    };
    let body = ErrorBody { path: path.to_owned(), instance: instance.to_owned(), ..pending.0 };
    let rendered = Json(body).into_response();
    let (parts, body) = rendered.into_parts();
    for (name, value) in &parts.headers {
        response.headers_mut().insert(name, value.clone());
    }
    *response.body_mut() = if method == Method::HEAD { Body::empty() } else { body };
    response
}

#[cfg(test)]
mod tests;
