//! Requests with an `Idempotency-Key` are done once: their repetition gets the first answer and changes nothing.
//!
//! The key is taken before the request is done, and the answer is stored in the transaction of the change, so that a
//! crash leaves both or neither. A request that has begun is done to its end even when its client goes away: the client
//! asks again and is told. Of answers that tell of a moment only (401, 403, 408, 413, 429, 5xx) nothing is kept.

mod fingerprint;

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::{FutureExt, StreamExt};
use tracing::Instrument;
use uuid::Uuid;

use crate::http::access;
use crate::http::admission::Tab;
use crate::http::allowed::{KEY_HEADER, MAX_KEY_CHARACTERS};
use crate::http::body::PRODUCTS_MIB;
use crate::http::error::{ApiError, Pending};
use crate::http::layers::REQUEST_TIMEOUT;
use crate::http::openapi;
use crate::http::state::AppState;
use crate::store::idempotency::{Claimed, Kept, Key};
use crate::store::tx::{Held, held};
use fingerprint::Fingerprint;

/// The header of an answer that was given before.
static REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
/// How long a key stays taken when the service dies over its request.
const LEASE: Duration = REQUEST_TIMEOUT.saturating_add(Duration::from_secs(10));
/// When an account that keeps too many keys may ask again: what it keeps is counted every minute.
const FULL_RETRY_AFTER: Duration = Duration::from_secs(60);
/// Bytes of a body that are read beforehand where the operation may read none: by its body a repetition is known.
const MAX_UNREAD_BODY_BYTES: usize = 1 << 20;
/// Headers of an answer that are kept.
const KEPT_HEADERS: [HeaderName; 4] = [header::CONTENT_TYPE, header::LINK, header::LOCATION, header::ETAG];

/// Does a request with a key once.
pub(super) async fn once(State(state): State<AppState>, request: Request, next: Next) -> Response {
    if ![Method::POST, Method::PUT, Method::PATCH, Method::DELETE].contains(request.method()) {
        return next.run(request).await;
    }
    if !is_operation(&request) {
        // The router says that there is none.
        return next.run(request).await;
    }
    let key = match key(&request) {
        Ok(Some(key)) => key,
        Ok(None) => return next.run(request).await,
        Err(error) => return error.into_response(),
    };
    // What the request holds, it holds for as long as it is worked on.
    let tab = request.extensions().get::<Tab>().cloned();
    let work = async move {
        let answer = match state.store.claim_key(&key, LEASE).await {
            Ok(Claimed::Fresh(attempt)) => run(&state, &key, attempt, request, next).await,
            Ok(Claimed::Done(kept)) => replay(kept, request).await,
            Ok(Claimed::Running) => ApiError::KeyInUse.into_response(),
            Ok(Claimed::Full) => ApiError::RateLimited(FULL_RETRY_AFTER).into_response(),
            Err(error) => ApiError::from(error).into_response(),
        };
        drop(tab);
        answer
    };
    // A task goes on when its client goes away: a key that was taken is that of a request that is done.
    match tokio::spawn(work.in_current_span()).await {
        Ok(response) => response,
        Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
        Err(error) => ApiError::Internal(error.to_string()).into_response(),
    }
}

/// Whether there is an operation of the request's method at its path.
fn is_operation(request: &Request) -> bool {
    let route = request.extensions().get::<MatchedPath>();
    route.is_some_and(|route| openapi::query_parameters(request.method(), route.as_str()).is_some())
}

/// The key that a request carries, if it carries one.
fn key(request: &Request) -> Result<Option<Key>, ApiError> {
    let mut sent = request.headers().get_all(KEY_HEADER).iter();
    let Some(value) = sent.next() else { return Ok(None) };
    let text = value.to_str().ok().filter(|text| (1..=MAX_KEY_CHARACTERS).contains(&text.len()));
    let Some(text) = text.filter(|_| sent.next().is_none()) else {
        let message = format!("is sent once, with 1 to {MAX_KEY_CHARACTERS} visible ASCII characters");
        return Err(ApiError::malformed_at("Idempotency-Key", message));
    };
    let (account, level) = access::account_and_level(request.extensions())?;
    Ok(Some(Key { account, level, key: text.to_owned() }))
}

/// Answers again, when the request is the same.
async fn replay(kept: Kept, request: Request) -> Response {
    let mut fingerprint = Fingerprint::begin(&request);
    let mut chunks = request.into_body().into_data_stream();
    let mut length = 0;
    while let Some(chunk) = chunks.next().await {
        let Ok(chunk) = chunk else { return ApiError::malformed("the body did not arrive whole").into_response() };
        length += chunk.len();
        if length > PRODUCTS_MIB << 20 {
            break;
        }
        fingerprint.take(&chunk);
    }
    if !fingerprint.is_kept_as(&kept.request_hash) {
        return ApiError::KeyReused.into_response();
    }
    let status = u16::try_from(kept.status).ok().and_then(|status| StatusCode::from_u16(status).ok());
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status.unwrap_or(StatusCode::OK);
    if response.status().is_client_error() {
        if let Some(pending) = Pending::read(&kept.body) {
            response.extensions_mut().insert(pending);
        }
    } else {
        *response.body_mut() = Body::from(kept.body);
    }
    for (name, value) in kept.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            response.headers_mut().insert(name, value);
        }
    }
    response.headers_mut().insert(REPLAYED.clone(), HeaderValue::from_static("true"));
    response
}

/// Does the request and keeps the answer.
async fn run(state: &AppState, key: &Key, attempt: Uuid, request: Request, next: Next) -> Response {
    let fingerprint = Arc::new(Mutex::new(Fingerprint::begin(&request)));
    let request = match observed(request, fingerprint.clone()).await {
        Ok(request) => request,
        Err(error) => {
            release(state, key, attempt).await;
            return error.into_response();
        }
    };
    let (answer, held) =
        held(AssertUnwindSafe(tokio::time::timeout(REQUEST_TIMEOUT, next.run(request))).catch_unwind()).await;
    match answer {
        Ok(Ok(answer)) => settle(state, key, attempt, answer, held, &fingerprint).await,
        Ok(Err(_)) => {
            drop(held);
            release(state, key, attempt).await;
            ApiError::RequestTimeout.into_response()
        }
        Err(panic) => {
            drop(held);
            release(state, key, attempt).await;
            resume_unwind(panic)
        }
    }
}

/// The same request, whose body is looked at as it is read.
async fn observed(request: Request, fingerprint: Arc<Mutex<Fingerprint>>) -> Result<Request, ApiError> {
    let (parts, body) = request.into_parts();
    let note = move |chunk: Option<&[u8]>| {
        let mut fingerprint = fingerprint.lock().unwrap_or_else(PoisonError::into_inner);
        match chunk {
            Some(chunk) => fingerprint.take(chunk),
            None => fingerprint.whole = true,
        }
    };
    let body = if parts.method == Method::DELETE || parts.uri.path().ends_with("/undo") {
        let bytes = axum::body::to_bytes(body, MAX_UNREAD_BODY_BYTES).await;
        let bytes = bytes.map_err(|error| ApiError::malformed(format!("the body did not arrive whole: {error}")))?;
        note(Some(&bytes));
        note(None);
        Body::from(bytes)
    } else {
        let mut chunks = Box::pin(body.into_data_stream());
        Body::from_stream(futures::stream::poll_fn(move |context| {
            let next = chunks.as_mut().poll_next_unpin(context);
            if let std::task::Poll::Ready(chunk) = &next {
                match chunk {
                    Some(Ok(chunk)) => note(Some(chunk)),
                    Some(Err(_)) => {}
                    None => note(None),
                }
            }
            next
        }))
    };
    Ok(Request::from_parts(parts, body))
}

/// Keeps an answer together with what it tells of, or gives the key back.
async fn settle(
    state: &AppState,
    key: &Key,
    attempt: Uuid,
    answer: Response,
    held: Held,
    fingerprint: &Mutex<Fingerprint>,
) -> Response {
    let status = answer.status();
    let (digest, whole) = {
        let fingerprint = fingerprint.lock().unwrap_or_else(PoisonError::into_inner);
        (fingerprint.value(), fingerprint.whole)
    };
    let told = matches!(status.as_u16(), 400 | 404 | 409 | 415 | 422) && whole;
    if !(status.is_success() || told) {
        // What was done is undone where the service failed; an abort that a refused action leaves behind stays.
        let mut undone = None;
        if status.is_server_error() {
            drop(held);
        } else {
            undone = held.commit().await.err();
        }
        release(state, key, attempt).await;
        return match undone {
            None => answer,
            Some(error) => ApiError::from(error).into_response(),
        };
    }
    let (mut parts, body) = answer.into_parts();
    let bytes = match parts.extensions.get::<Pending>() {
        Some(pending) => pending.written(),
        None => match axum::body::to_bytes(body, usize::MAX).await {
            Ok(bytes) => bytes.to_vec(),
            Err(error) => {
                drop(held);
                release(state, key, attempt).await;
                return ApiError::Internal(format!("an answer has no body: {error}")).into_response();
            }
        },
    };
    let of = |name: &HeaderName| Some((name.to_string(), parts.headers.get(name)?.to_str().ok()?.to_owned()));
    let kept = Kept {
        request_hash: digest,
        status: i16::try_from(status.as_u16()).unwrap_or_default(),
        headers: KEPT_HEADERS.iter().filter_map(of).collect(),
        body: bytes,
    };
    match state.store.keep_answer(key, attempt, held, &kept).await {
        Ok(true) => {
            // The jobs were told when the change was made, which was before it could be seen.
            state.products_changed();
            state.wake.review.notify_one();
            parts.headers.remove(header::CONTENT_LENGTH);
            let body = if status.is_success() { Body::from(kept.body) } else { Body::empty() };
            Response::from_parts(parts, body)
        }
        Ok(false) => ApiError::KeyInUse.into_response(),
        Err(error) => {
            release(state, key, attempt).await;
            ApiError::from(error).into_response()
        }
    }
}

async fn release(state: &AppState, key: &Key, attempt: Uuid) {
    if let Err(error) = state.store.release_key(key, attempt).await {
        tracing::warn!(%error, "an idempotency key stays taken until its lease ends");
    }
}
