//! How much of its rate an account has used.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, HeaderName, HeaderValue};

/// Rates are counted in windows of this length.
const WINDOW: Duration = Duration::from_secs(60);

static LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
static REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
static RESET: HeaderName = HeaderName::from_static("ratelimit-reset");

/// Requests and bytes that an account may send in a window, and how many it has sent in this one.
#[derive(Debug)]
pub(super) struct Rate {
    requests: u64,
    bytes: u64,
    used: Mutex<Used>,
}

#[derive(Clone, Copy, Debug)]
struct Used {
    began: Instant,
    requests: u64,
    bytes: u64,
}

/// What an account has left of its rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http) struct RateLeft {
    limit: u64,
    remaining: u64,
    /// Until the count begins anew, in whole seconds, at least 1.
    pub(in crate::http) reset: Duration,
}

impl Rate {
    pub(super) fn new(requests: u64, bytes: u64) -> Rate {
        Rate { requests, bytes, used: Mutex::new(Used { began: Instant::now(), requests: 0, bytes: 0 }) }
    }

    /// Counts a request of so many bytes; an error, and nothing counted, when the window's requests or bytes are used up.
    /// The request that crosses the limit of bytes is the last.
    pub(super) fn take(&self, now: Instant, bytes: u64) -> Result<RateLeft, RateLeft> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        *used = used.at(now);
        let may = used.requests < self.requests && used.bytes < self.bytes;
        if may {
            used.requests += 1;
            used.bytes = used.bytes.saturating_add(bytes);
        }
        let standing = self.standing(*used, now);
        if may { Ok(standing) } else { Err(standing) }
    }

    /// What is left, with nothing counted.
    pub(super) fn left(&self, now: Instant) -> RateLeft {
        let used = *self.used.lock().unwrap_or_else(PoisonError::into_inner);
        self.standing(used.at(now), now)
    }

    fn standing(&self, used: Used, now: Instant) -> RateLeft {
        let left = WINDOW.saturating_sub(now.saturating_duration_since(used.began));
        let remaining = if used.bytes < self.bytes { self.requests - used.requests } else { 0 };
        let reset = Duration::from_secs(left.as_secs_f64().ceil().max(1.0) as u64);
        RateLeft { limit: self.requests, remaining, reset }
    }

    /// Counts bytes that were not announced.
    pub(super) fn add(&self, bytes: u64) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.bytes = used.bytes.saturating_add(bytes);
    }

    /// Whether the window is over, so that nothing is lost by forgetting it.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        now.saturating_duration_since(used.began) >= WINDOW
    }
}

impl Used {
    /// What is used of the window of this moment.
    fn at(self, now: Instant) -> Used {
        let is_over = now.saturating_duration_since(self.began) >= WINDOW;
        if is_over { Used { began: now, requests: 0, bytes: 0 } } else { self }
    }
}

impl RateLeft {
    /// Tells the account in the headers of an answer.
    pub(in crate::http) fn tell(&self, headers: &mut HeaderMap) {
        for (name, value) in [(&LIMIT, self.limit), (&REMAINING, self.remaining), (&RESET, self.reset.as_secs())] {
            headers.insert(name.clone(), HeaderValue::from(value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_bytes_are_counted_by_the_minute() {
        let rate = Rate::new(2, 100);
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        let standing = |remaining, reset| RateLeft { limit: 2, remaining, reset: Duration::from_secs(reset) };
        assert_eq!(rate.take(at(60), 10), Ok(standing(1, 60)));
        assert_eq!(rate.take(at(61), 10), Ok(standing(0, 59)));
        assert_eq!(rate.left(at(100)), standing(0, 20));
        assert_eq!(rate.take(at(119), 0), Err(standing(0, 1)));
        assert_eq!([rate.left(at(120)), rate.left(at(120))], [standing(2, 60); 2], "asking counts nothing");
        assert_eq!(rate.take(at(120), 100), Ok(standing(0, 60)), "a new minute, and all of its bytes");
        assert_eq!(rate.take(at(121), 0), Err(standing(0, 59)));
        assert!(!rate.is_over(at(179)) && rate.is_over(at(180)));
        assert_eq!(rate.take(at(180), 1), Ok(standing(1, 60)));
        rate.add(99);
        assert_eq!(rate.take(at(181), 0), Err(standing(0, 59)), "bytes that were not announced");
    }
}
