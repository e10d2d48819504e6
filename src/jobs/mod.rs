//! Work that goes on beside requests: it claims rows, and writes results.

pub mod auto_assignment;
pub mod housekeeping;
pub mod memory;
pub mod past;
pub mod projection;
pub mod review;
pub mod rule_changes;
pub mod sampling;
pub mod webhooks;

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::computing;

/// How often a job looks for work of which nobody told it: work of other services, and what a crash left.
pub const POLL: Duration = Duration::from_secs(1);
/// How long a job waits after the database failed.
pub const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(2);

/// Waits until there may be work; false when the service stops.
async fn wait(wake: &Notify, longest: Duration, shutdown: &CancellationToken) -> bool {
    tokio::select! {
        () = shutdown.cancelled() => false,
        () = wake.notified() => true,
        () = tokio::time::sleep(longest) => true,
    }
}

/// Runs a job until it ends, as it does when the service stops. One that panics is told of, counted, and begun again after
/// [`PAUSE_AFTER_FAILURE`]: whatever it left half done, its rows are claimed again.
pub async fn keep<J: Future<Output = ()>>(name: &'static str, shutdown: CancellationToken, begin: impl Fn() -> J) {
    keep_pausing(PAUSE_AFTER_FAILURE, name, shutdown, begin).await;
}

async fn keep_pausing<J: Future<Output = ()>>(
    pause: Duration,
    name: &'static str,
    shutdown: CancellationToken,
    begin: impl Fn() -> J,
) {
    while let Err(panic) = AssertUnwindSafe(async { begin().await }).catch_unwind().await {
        tracing::error!(job = name, reason = computing::said(panic), "a job panicked; it begins again");
        metrics::counter!("vat_classification_job_panics_total", "job" => name).increment(1);
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn a_job_that_panics_begins_again_and_one_that_ends_does_not() {
        let begun = AtomicUsize::new(0);
        let job = || async { assert!(begun.fetch_add(1, Ordering::SeqCst) >= 2, "not yet") };
        keep_pausing(Duration::ZERO, "test", CancellationToken::new(), job).await;
        assert_eq!(begun.into_inner(), 3);
    }

    #[tokio::test]
    async fn a_job_that_panics_as_the_service_stops_is_not_begun_again() {
        let (begun, shutdown) = (AtomicUsize::new(0), CancellationToken::new());
        let job = || async {
            begun.fetch_add(1, Ordering::SeqCst);
            shutdown.cancel();
            panic!("no more");
        };
        keep_pausing(Duration::MAX, "test", shutdown.clone(), job).await;
        assert_eq!(begun.into_inner(), 1);
    }
}
