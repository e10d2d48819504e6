//! A body that keeps something as long as it lives: what is held for an answer is let go when its last byte has been
//! handed over, or when it is given up.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};

/// Most bytes of a frame. A server drops a body as soon as it has taken the last frame, and that may lie there for long: were
/// an answer one frame, what is held for it would be let go before its client has read any of it.
const FRAME_BYTES: usize = 64 << 10;

/// The same body in frames of [`FRAME_BYTES`] at most, which drops the guard when it is dropped.
pub(super) fn guarded(body: Body, guard: impl Send + Unpin + 'static) -> Body {
    Body::new(Guarded { body, rest: Bytes::new(), _guard: guard })
}

struct Guarded<G> {
    body: Body,
    /// What is left of a larger frame.
    rest: Bytes,
    _guard: G,
}

impl<G: Unpin> HttpBody for Guarded<G> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        if this.rest.is_empty() {
            match ready!(Pin::new(&mut this.body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => this.rest = data,
                    Err(other) => return Poll::Ready(Some(Ok(other))),
                },
                end => return Poll::Ready(end),
            }
        }
        let frame = this.rest.split_to(this.rest.len().min(FRAME_BYTES));
        Poll::Ready(Some(Ok(Frame::data(frame))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (hint, rest) = (self.body.size_hint(), self.rest.len() as u64);
        let mut whole = SizeHint::new();
        whole.set_lower(hint.lower() + rest);
        if let Some(upper) = hint.upper() {
            whole.set_upper(upper + rest);
        }
        whole
    }
}
