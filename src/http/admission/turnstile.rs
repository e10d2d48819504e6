//! A number of places, and a queue that is never longer than it can be worth waiting in.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Places, with a bounded queue for them.
#[derive(Debug)]
pub(super) struct Turnstile {
    places: Arc<Semaphore>,
    queue: Semaphore,
    size: (usize, usize),
    longest_wait: Duration,
}

impl Turnstile {
    /// So many places, and so many who may wait, so long.
    pub(super) fn new(places: usize, queue: usize, longest_wait: Duration) -> Turnstile {
        Turnstile {
            places: Arc::new(Semaphore::new(places)),
            queue: Semaphore::new(queue),
            size: (places, queue),
            longest_wait,
        }
    }

    /// One of so many quarters of the size.
    pub(super) fn part(&self, quarters: usize) -> Turnstile {
        let part = |whole: usize| (whole * quarters / 4).max(1);
        Turnstile::new(part(self.size.0), part(self.size.1), self.longest_wait)
    }

    /// Whether a newcomer would be refused.
    pub(super) fn is_full(&self) -> bool {
        self.places.available_permits() == 0 && self.queue.available_permits() == 0
    }

    /// A place, in the order of arrival; none at once when the queue is full, and none when the wait was too long.
    pub(super) async fn enter(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            return Some(place);
        }
        let _waiting = self.queue.try_acquire().ok()?;
        tokio::time::timeout(self.longest_wait, Arc::clone(&self.places).acquire_owned()).await.ok()?.ok()
    }
}
