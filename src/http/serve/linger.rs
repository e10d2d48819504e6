//! A body whose rest is still taken in when nobody reads it any more.
//!
//! A request may be refused before its body is there: for its token, its type, its length. Many clients send all of a
//! body before they read an answer. Were the connection closed on what they still send, the refusal would be lost with
//! it, and they would be told of a broken connection instead of the reason.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use futures::StreamExt;
use hyper::body::{Frame, SizeHint};
use tokio::runtime::Handle;

/// Most bytes that are taken in after a refusal: twice what the largest body of JSON may have.
const LINGER_BYTES: usize = 64 << 20;
/// How long they are waited for.
const LINGER_TIMEOUT: Duration = Duration::from_secs(10);

/// Wraps a body. Dropped before its end, it goes on reading without keeping anything, within bounds.
pub(super) struct Lingering {
    /// None when it has ended.
    body: Option<Body>,
}

impl Lingering {
    pub(super) fn new(body: Body) -> Lingering {
        Lingering { body: Some(body) }
    }
}

impl Drop for Lingering {
    fn drop(&mut self) {
        if let (Some(body), Ok(runtime)) = (self.body.take(), Handle::try_current()) {
            runtime.spawn(tokio::time::timeout(LINGER_TIMEOUT, take_in(body)));
        }
    }
}

async fn take_in(body: Body) {
    let mut left = LINGER_BYTES;
    let mut chunks = body.into_data_stream();
    while let Some(Ok(chunk)) = chunks.next().await {
        left = left.saturating_sub(chunk.len());
        if left == 0 {
            return;
        }
    }
}

impl HttpBody for Lingering {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let frame = ready!(Pin::new(&mut *body).poll_frame(context));
        if !matches!(frame, Some(Ok(_))) || body.is_end_stream() {
            self.body = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint)
    }
}
