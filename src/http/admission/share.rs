//! What one account may hold.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::rate::Rate;
use super::turnstile::Turnstile;

/// A permit of the account's share and one of the whole.
pub(super) type Held = [OwnedSemaphorePermit; 2];

/// One account's part of places and bytes.
#[derive(Debug)]
pub(super) struct Share {
    pub(super) requests: Turnstile,
    pub(super) work: Turnstile,
    pub(super) searches: Turnstile,
    pub(super) transfers: Turnstile,
    /// One at a time.
    pub(super) storing: Arc<Semaphore>,
    pub(super) rate: Rate,
    pub(super) bytes: Arc<Semaphore>,
    /// All permits of `bytes`.
    pub(super) budget: usize,
}

/// An answer that is charged until it is dropped.
pub(super) struct Charged {
    pub(super) body: Body,
    pub(super) _held: Held,
}

impl HttpBody for Charged {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
