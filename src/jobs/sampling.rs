//! Measures queues for `/metrics`, so that no request counts rows.

use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::jobs::wait;
use crate::store::Store;

/// How often it looks.
pub const ROUND: Duration = Duration::from_secs(15);

/// Runs until the service stops.
pub async fn run(store: Store, shutdown: CancellationToken) {
    let nobody = Notify::new();
    loop {
        match store.queue_lengths().await {
            Ok(lengths) => {
                metrics::gauge!("auto_assignment_queue_products").set(lengths.auto_queue as f64);
                metrics::gauge!("auto_assignment_parked_products").set(lengths.auto_parked as f64);
                metrics::gauge!("search_outbox_rows").set(lengths.search_outbox as f64);
                metrics::gauge!("search_parked_products").set(lengths.search_parked as f64);
                metrics::gauge!("orphaned_objects").set(lengths.orphaned_objects as f64);
            }
            Err(error) => tracing::warn!(%error, "the queues cannot be measured now"),
        }
        if !wait(&nobody, ROUND, &shutdown).await {
            return;
        }
    }
}
