//! A body whose sender must keep up a least rate.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep};

use super::activity::Receiving;

/// The least rate at which a body must arrive, or an answer be taken.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// How long a peer may take before its rate is looked at.
    pub grace: Duration,
    /// Bytes a second from then on, counted from the beginning; at least 1.
    pub bytes_per_second: u64,
}

/// The sender of a body was too slow.
#[derive(Debug)]
pub(crate) struct TooSlow;

impl fmt::Display for TooSlow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the body arrives too slowly")
    }
}

impl Error for TooSlow {}

/// Whether an error in reading a body is that its sender was too slow.
pub(in crate::http) fn is_too_slow(error: &(dyn Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error: &&(dyn Error + 'static)| (*error).source())
        .any(|error| error.is::<TooSlow>())
}

/// Wraps a body; it fails with [`TooSlow`] when less has arrived than the pace asks for.
pub(super) struct Paced<B> {
    body: B,
    pace: Pace,
    began: Instant,
    received: u64,
    /// Kept while there is more to come.
    receiving: Option<Receiving>,
    /// Set while the sender is waited for.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<B> Paced<B> {
    pub(super) fn new(body: B, pace: Pace, receiving: Option<Receiving>) -> Paced<B> {
        Paced { body, pace, began: Instant::now(), received: 0, receiving, deadline: None }
    }

    /// Until when more must have arrived.
    fn due(&self) -> Instant {
        self.began + self.pace.grace + Duration::from_secs(self.received / self.pace.bytes_per_second.max(1))
    }
}

impl<B> HttpBody for Paced<B>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<axum::BoxError>,
{
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::BoxError>>> {
        let this = &mut *self;
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) {
            this.deadline = None;
            if let Some(Ok(frame)) = &frame {
                this.received += frame.data_ref().map_or(0, |data| data.len() as u64);
            }
            if !matches!(frame, Some(Ok(_))) || this.body.is_end_stream() {
                this.receiving = None;
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let due = this.due();
        let deadline = this.deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(due)));
        match deadline.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Some(Err(Box::new(TooSlow)))),
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
