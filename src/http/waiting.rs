//! Requests that wait for a change: few of them, and each asks seldom.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// Requests that wait at one time.
const MAX_WAITING: usize = 256;
/// Of these, requests of one account.
const MAX_WAITING_PER_ACCOUNT: usize = 16;
/// The least and the greatest pause between two looks at the feed.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(500));

/// Those that wait, until the service stops.
#[derive(Clone, Debug, Default)]
pub struct Waiting {
    /// How many wait, by account.
    places: Arc<Mutex<HashMap<i64, usize>>>,
    stopping: CancellationToken,
}

impl Waiting {
    /// Nobody yet; whoever comes waits no longer than until the service stops.
    pub fn new(stopping: CancellationToken) -> Waiting {
        Waiting { places: Arc::default(), stopping }
    }

    pub(super) fn is_over(&self) -> bool {
        self.stopping.is_cancelled()
    }

    pub(super) async fn over(&self) {
        self.stopping.cancelled().await;
    }

    /// A place, unless they are all taken.
    pub(super) fn take(&self, account: i64) -> Option<Place> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = places.values().sum();
        let own = places.get(&account).copied().unwrap_or_default();
        if all >= MAX_WAITING || own >= MAX_WAITING_PER_ACCOUNT {
            return None;
        }
        places.insert(account, own + 1);
        Some(Place { places: self.places.clone(), account, pause: PAUSES.0 })
    }
}

/// A place among those that wait, given back when it is dropped.
pub(super) struct Place {
    places: Arc<Mutex<HashMap<i64, usize>>>,
    account: i64,
    pause: Duration,
}

impl Place {
    /// How long to wait until the next look: longer each time.
    pub(super) fn pause(&mut self) -> Duration {
        let pause = self.pause;
        self.pause = (pause * 2).min(PAUSES.1);
        pause
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = places.get_mut(&self.account) {
            *own -= 1;
            if *own == 0 {
                places.remove(&self.account);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_has_so_many_places_and_gets_them_back() {
        let waiting = Waiting::default();
        let places: Vec<Place> = (0..MAX_WAITING_PER_ACCOUNT).filter_map(|_| waiting.take(1)).collect();
        assert_eq!(places.len(), MAX_WAITING_PER_ACCOUNT);
        assert!(waiting.take(1).is_none() && waiting.take(2).is_some());
        drop(places);
        let mut place = waiting.take(1).expect("a place");
        let pauses: Vec<Duration> = (0..10).map(|_| place.pause()).collect();
        assert!(pauses.is_sorted() && pauses.last() == Some(&PAUSES.1));
        let others: Vec<Place> = (2..1_000).filter_map(|account| waiting.take(account)).collect();
        assert_eq!(others.len(), MAX_WAITING - 1);
    }
}
