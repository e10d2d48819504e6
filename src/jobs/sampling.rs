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
        let (size, idle) = (store.pool().size(), store.pool().num_idle());
        metrics::gauge!("vat_classification_database_connections", "state" => "idle").set(idle as f64);
        metrics::gauge!("vat_classification_database_connections", "state" => "used")
            .set((size as usize).saturating_sub(idle) as f64);
        match store.queue_lengths().await {
            Ok(lengths) => {
                metrics::gauge!("vat_classification_auto_assignment_queue_products").set(lengths.auto_queue as f64);
                metrics::gauge!("vat_classification_auto_assignment_parked_products").set(lengths.auto_parked as f64);
                metrics::gauge!("vat_classification_search_outbox_rows").set(lengths.search_outbox as f64);
                metrics::gauge!("vat_classification_search_parked_products").set(lengths.search_parked as f64);
                metrics::gauge!("vat_classification_orphaned_objects").set(lengths.orphaned_objects as f64);
                metrics::gauge!("vat_classification_auto_assignment_oldest_seconds").set(lengths.auto_queue_seconds);
                metrics::gauge!("vat_classification_search_outbox_oldest_seconds").set(lengths.search_outbox_seconds);
            }
            Err(error) => tracing::warn!(%error, "the queues cannot be measured now"),
        }
        if !wait(&nobody, ROUND, &shutdown).await {
            return;
        }
    }
}
