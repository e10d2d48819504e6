//! The nodes of Elasticsearch that requests go to, in turn.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use elasticsearch::http::transport::Transport;

/// How long a node that failed is passed over, unless all have failed.
const PASSED_OVER: Duration = Duration::from_secs(10);

/// One node or several of one cluster; there is always one. The crate's own pool of several does not learn which failed.
#[derive(Debug)]
pub(super) struct Nodes {
    nodes: Vec<Node>,
    turn: AtomicUsize,
}

/// A node, and how it has fared.
#[derive(Debug)]
pub(super) struct Node {
    /// Its host and port, without credentials.
    name: String,
    transport: Transport,
    failed_at: Mutex<Option<Instant>>,
}

impl Nodes {
    /// Nodes by their names.
    pub(super) fn new(nodes: Vec<(String, Transport)>) -> Nodes {
        let node = |(name, transport)| Node { name, transport, failed_at: Mutex::default() };
        Nodes { nodes: nodes.into_iter().map(node).collect(), turn: AtomicUsize::new(0) }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The number of the node whose turn it is, and it: one that has not failed of late, where there is any.
    pub(super) fn next(&self) -> (usize, &Transport) {
        let number = self.next_at(Instant::now());
        (number, &self.nodes[number].transport)
    }

    fn next_at(&self, now: Instant) -> usize {
        let (turn, count) = (self.turn.fetch_add(1, Ordering::Relaxed), self.nodes.len());
        let in_turn = (0..count).map(|step| turn.wrapping_add(step) % count);
        in_turn.clone().find(|number| self.nodes[*number].is_well(now)).unwrap_or(turn % count)
    }

    /// Passes a node over for a while.
    pub(super) fn failed(&self, number: usize, reason: &str) {
        let node = &self.nodes[number];
        if node.fail(Instant::now()) && self.len() > 1 {
            tracing::warn!(node = node.name, reason, "a node of Elasticsearch fails and is passed over for a while");
        }
    }

    /// Counts on a node again.
    pub(super) fn answered(&self, number: usize) {
        *self.nodes[number].failure() = None;
    }
}

impl Node {
    fn is_well(&self, now: Instant) -> bool {
        self.failure().is_none_or(|failed_at| now.saturating_duration_since(failed_at) >= PASSED_OVER)
    }

    /// Notes a failure, and tells whether it is the first since an answer.
    fn fail(&self, now: Instant) -> bool {
        self.failure().replace(now).is_none()
    }

    fn failure(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        self.failed_at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_take_turns_and_one_that_failed_is_passed_over_until_it_may_be_back() {
        let node = |name: &str| (name.to_owned(), Transport::single_node("http://127.0.0.1:1").expect("a transport"));
        let nodes = Nodes::new(vec![node("a"), node("b"), node("c")]);
        let began = Instant::now();
        let turns = |now: Instant| -> Vec<usize> { (0..6).map(|_| nodes.next_at(now)).collect() };
        assert_eq!(turns(began), [0, 1, 2, 0, 1, 2]);
        assert!(nodes.nodes[1].fail(began) && !nodes.nodes[1].fail(began));
        assert_eq!(turns(began), [0, 2, 2, 0, 2, 2]);
        assert_eq!(turns(began + PASSED_OVER), [0, 1, 2, 0, 1, 2]);
        nodes.answered(1);
        assert_eq!(turns(began), [0, 1, 2, 0, 1, 2]);
        for number in 0..3 {
            nodes.nodes[number].fail(began);
        }
        assert_eq!(turns(began), [0, 1, 2, 0, 1, 2], "where all have failed any may be back");
    }
}
