//! Notices beside running work that the database has another past: a standby has taken over, or a backup was put back.

use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::jobs::wait;
use crate::store::Store;

/// How often it looks: until it has, events may get sequences that clients have gone past already.
pub const ROUND: Duration = Duration::from_secs(5);

/// Runs until the service stops.
pub async fn run(store: Store, shutdown: CancellationToken) {
    let nobody = Notify::new();
    while wait(&nobody, ROUND, &shutdown).await {
        if let Err(error) = store.notice_another_past().await {
            tracing::warn!(%error, "whether the database was put back is not known now");
        }
    }
}
