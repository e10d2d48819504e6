//! Whether anything goes on on a connection, and for whom it waits.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::response::Response;
use tokio::sync::watch;

use crate::http::guarded::guarded;

/// Counts the requests under way on one connection.
#[derive(Debug)]
pub(super) struct Activity {
    state: Arc<watch::Sender<State>>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    begun: bool,
    under_way: usize,
    /// Requests among them whose body is still to come.
    receiving: usize,
    /// When the present state of waiting began: for a request, or for the rest of one.
    since: Instant,
    /// Since when the peer takes none of the bytes that wait for it.
    stalled: Option<Instant>,
}

/// For whose turn it is on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Waiting {
    /// For the peer's next request, since then.
    Idle(Instant),
    /// For the rest of a request, or for the peer to take an answer, since then.
    Slow(Instant),
}

impl Waiting {
    /// Since when.
    pub(super) fn since(self) -> Instant {
        match self {
            Waiting::Idle(since) | Waiting::Slow(since) => since,
        }
    }
}

/// One request under way, until dropped.
pub(super) struct UnderWay {
    state: Arc<watch::Sender<State>>,
}

/// A body that is still to come, until dropped.
pub(super) struct Receiving {
    state: Arc<watch::Sender<State>>,
}

impl Activity {
    pub(super) fn new() -> Activity {
        let state = State { begun: false, under_way: 0, receiving: 0, since: Instant::now(), stalled: None };
        Activity { state: Arc::new(watch::Sender::new(state)) }
    }

    /// Another handle to the same.
    pub(super) fn share(&self) -> Activity {
        Activity { state: Arc::clone(&self.state) }
    }

    /// Marks the beginning of a request.
    pub(super) fn begin(&self) -> UnderWay {
        self.state.send_modify(|state| {
            state.begun = true;
            state.under_way += 1;
            state.since = Instant::now();
        });
        UnderWay { state: Arc::clone(&self.state) }
    }

    /// Marks that the body of a request is still to come.
    pub(super) fn receive(&self) -> Receiving {
        self.state.send_modify(|state| state.receiving += 1);
        Receiving { state: Arc::clone(&self.state) }
    }

    /// Notes since when the peer takes nothing.
    pub(super) fn stall(&self, since: Option<Instant>) {
        self.state.send_modify(|state| state.stalled = since);
    }

    /// Whether it is the peer's turn, and since when; none while the service is at work.
    pub(super) fn waiting(&self) -> Option<Waiting> {
        let state = *self.state.borrow();
        match (state.under_way, state.stalled) {
            (_, Some(since)) => Some(Waiting::Slow(since)),
            (0, None) => Some(Waiting::Idle(state.since)),
            _ if state.receiving > 0 => Some(Waiting::Slow(state.since)),
            _ => None,
        }
    }

    /// Returns when no request has begun after `first`, or, later on, none has been under way for `idle`.
    pub(super) async fn idle_for_too_long(&self, first: Duration, idle: Duration) {
        let mut state = self.state.subscribe();
        loop {
            let now = *state.borrow_and_update();
            let limit = if now.begun { idle } else { first };
            // The last bytes of an answer may wait for the peer when its request is over.
            if now.under_way > 0 || now.stalled.is_some() {
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
        answer.map(|body| guarded(body, self))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.state.send_modify(|state| {
            state.under_way -= 1;
            state.since = Instant::now();
        });
    }
}

impl Drop for Receiving {
    fn drop(&mut self) {
        self.state.send_modify(|state| state.receiving -= 1);
    }
}
