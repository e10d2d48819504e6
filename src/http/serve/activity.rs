//! Whether anything goes on on a connection.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use tokio::sync::watch;

/// Counts the requests under way on one connection.
pub(super) struct Activity {
    state: watch::Sender<State>,
}

#[derive(Clone, Copy, Default)]
struct State {
    begun: bool,
    under_way: usize,
}

/// One request under way, until dropped.
pub(super) struct UnderWay {
    state: watch::Sender<State>,
}

/// A body that keeps its request under way until it is sent, or given up.
struct TrackedBody {
    body: Body,
    _under_way: UnderWay,
}

impl Activity {
    pub(super) fn new() -> Activity {
        Activity { state: watch::Sender::default() }
    }

    /// Marks the beginning of a request.
    pub(super) fn begin(&self) -> UnderWay {
        self.state.send_modify(|state| {
            state.begun = true;
            state.under_way += 1;
        });
        UnderWay { state: self.state.clone() }
    }

    /// Returns when no request has begun after `first`, or, later on, none has been under way for `idle`.
    pub(super) async fn idle_for_too_long(&self, first: Duration, idle: Duration) {
        let mut state = self.state.subscribe();
        loop {
            let now = *state.borrow_and_update();
            let limit = if now.begun { idle } else { first };
            if now.under_way > 0 {
                // The sender lives as long as `self`: this fails never.
                let _ = state.changed().await;
            } else if tokio::time::timeout(limit, state.changed()).await.is_err() {
                return;
            }
        }
    }
}

impl UnderWay {
    /// Ties the request to its answer: it is under way until the last byte has been handed over.
    pub(super) fn until_sent(self, answer: Response) -> Response {
        answer.map(|body| Body::new(TrackedBody { body, _under_way: self }))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.state.send_modify(|state| state.under_way -= 1);
    }
}

impl HttpBody for TrackedBody {
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
