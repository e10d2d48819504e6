//! Removes what nothing names any more.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::jobs::wait;
use crate::pictures::PictureStore;
use crate::store::Store;

/// How often it looks.
pub const ROUND: Duration = Duration::from_secs(60);

/// Runs until the service stops.
pub async fn run(store: Store, pictures: Arc<PictureStore>, shutdown: CancellationToken) {
    let nobody = Notify::new();
    while wait(&nobody, ROUND, &shutdown).await {
        if let Err(error) = remove_orphans(&store, &pictures).await {
            tracing::warn!(%error, "orphaned pictures stay for now");
        }
    }
}

/// Removes objects that no picture names.
async fn remove_orphans(store: &Store, pictures: &PictureStore) -> anyhow::Result<()> {
    let keys = store.orphaned_objects().await?;
    for key in &keys {
        if let Ok(key) = Uuid::try_parse(key) {
            pictures.delete(key).await?;
        }
    }
    store.forget_orphans(&keys).await?;
    Ok(())
}
