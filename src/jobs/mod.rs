//! Work that goes on beside requests: it claims rows, and writes results.

pub mod auto_assignment;
pub mod housekeeping;
pub mod memory;
pub mod projection;
pub mod review;
pub mod rule_changes;
pub mod sampling;
pub mod webhooks;

use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

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
