//! Removes what nothing names any more.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::jobs::wait;
use crate::pictures::{Deleted, PictureStore};
use crate::store::pictures::Orphan;
use crate::store::{Store, StoreError};

/// How often it looks.
pub const ROUND: Duration = Duration::from_secs(60);
/// Rounds from one count of the keys that accounts keep to the next: it reads the keys of a whole day.
const ROUNDS_BETWEEN_COUNTS: u32 = 5;
/// Objects that are deleted at one time: a store far away takes its time for each.
const DELETED_AT_ONCE: usize = 8;

/// Runs until the service stops.
pub async fn run(store: Store, pictures: Arc<PictureStore>, shutdown: CancellationToken) {
    let nobody = Notify::new();
    let mut round = 0;
    while wait(&nobody, ROUND, &shutdown).await {
        if let Err(error) = remove_orphans(&store, &pictures, &shutdown).await {
            tracing::warn!(%error, "orphaned pictures stay for now");
        }
        if let Err(error) = store.forget_old_keys().await {
            tracing::warn!(%error, "old idempotency keys stay for now");
        }
        if round == 0
            && let Err(error) = store.count_kept_keys().await
        {
            tracing::warn!(%error, "idempotency keys are not counted for now");
        }
        round = (round + 1) % ROUNDS_BETWEEN_COUNTS;
        if let Err(error) = store.erase_deleted().await {
            tracing::warn!(%error, "what is left of deleted accounts stays for now");
        }
    }
}

/// Removes objects that no picture names, until none is left that can be removed now; answers how many it has removed.
///
/// # Errors
/// When the database fails. An object that cannot be deleted keeps no other from it.
pub async fn remove_orphans(
    store: &Store,
    pictures: &PictureStore,
    shutdown: &CancellationToken,
) -> Result<usize, StoreError> {
    let mut removed = 0;
    while !shutdown.is_cancelled() {
        let orphans = store.orphaned_objects(pictures.place()).await?;
        if orphans.is_empty() {
            break;
        }
        let outcomes: Vec<(Orphan, bool)> = futures::stream::iter(orphans)
            .map(|orphan| async move {
                let done = orphan.is_named || delete(pictures, &orphan.object_key, orphan.is_here).await;
                (orphan, done)
            })
            .buffer_unordered(DELETED_AT_ONCE)
            .collect()
            .await;
        let (gone, kept): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(|(_, done)| *done);
        let keys = |outcomes: &[(Orphan, bool)]| -> Vec<String> {
            outcomes.iter().map(|(orphan, _)| orphan.object_key.clone()).collect()
        };
        removed += gone.iter().filter(|(orphan, _)| !orphan.is_named).count();
        store.forget_orphans(&keys(&gone)).await?;
        // Each is either forgotten or put back by the time for which orphans are kept, so that this ends.
        store.postpone_orphans(&keys(&kept)).await?;
    }
    metrics::counter!("vat_classification_orphaned_objects_removed_total").increment(removed as u64);
    Ok(removed)
}

/// Deletes an object; whether it may be forgotten. One that this directory never had is left to the host that has it.
async fn delete(pictures: &PictureStore, key: &str, is_here: bool) -> bool {
    // A key of ours is a UUID; what is none names no object.
    let Ok(uuid) = Uuid::try_parse(key) else { return true };
    match pictures.delete(uuid).await {
        Ok(Deleted::Gone) => true,
        Ok(Deleted::NotHere) => is_here,
        Err(error) => {
            tracing::warn!(key, %error, "an orphaned picture cannot be deleted now");
            false
        }
    }
}
