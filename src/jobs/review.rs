//! The work behind the reviewer's desk: goes on with large actions, keeps counts added up, takes labels that leave from
//! assignments, and forgets old actions.
//!
//! Actions are worked off in small transactions, each time the one that has waited longest, so that a large one holds
//! nobody up. What is done commits together with how far the action has come: a restart goes on behind it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::jobs::{PAUSE_AFTER_FAILURE, POLL, wait};
use crate::store::assignments::{BATCH_ASSIGNMENTS, FOLDED_AT_ONCE};
use crate::store::{Store, StoreError};

/// Time between two looks for actions that ended long ago.
const FORGETTING: Duration = Duration::from_secs(3_600);

/// Runs until the service stops, then finishes the batch in hand.
pub async fn run(store: Store, wake: Arc<Notify>, shutdown: CancellationToken) {
    let mut forgotten: Option<Instant> = None;
    loop {
        let pause = match round(&store, &shutdown).await {
            Ok(()) => POLL,
            Err(error) => {
                tracing::warn!(%error, "the reviewers' work has to wait");
                PAUSE_AFTER_FAILURE
            }
        };
        if forgotten.is_none_or(|last| last.elapsed() >= FORGETTING) {
            forgotten = Some(Instant::now());
            if let Err(error) = forget(&store, &shutdown).await {
                tracing::warn!(%error, "old actions stay for now");
            }
        }
        if !wait(&wake, pause, &shutdown).await {
            return;
        }
    }
}

async fn round(store: &Store, shutdown: &CancellationToken) -> Result<(), StoreError> {
    if !store.has_review_work().await? {
        return Ok(());
    }
    // The few that came meanwhile wait for the next look: added up one by one they would cost a row each.
    while !shutdown.is_cancelled() && store.fold_counts().await? >= FOLDED_AT_ONCE {}
    while !shutdown.is_cancelled() && store.shed_label(None).await? {}
    work_off(store, shutdown).await
}

/// Works until no action waits or the service stops.
///
/// # Errors
/// When the database fails; the batch in hand is then tried again later.
pub async fn work_off(store: &Store, shutdown: &CancellationToken) -> Result<(), StoreError> {
    while !shutdown.is_cancelled() {
        match store.work_on_action(None, BATCH_ASSIGNMENTS).await {
            Ok(Some(_)) => metrics::counter!("vat_classification_action_batches_total").increment(1),
            Ok(None) => return Ok(()),
            Err(error) if error.is_about_data() => match store.waiting_action().await? {
                Some(action) => give_up(store, action, &error).await?,
                None => return Err(error),
            },
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Finds the one item of a batch that the database refuses, and gives it up alone.
async fn give_up(store: &Store, action: Uuid, error: &StoreError) -> Result<(), StoreError> {
    for _ in 0..BATCH_ASSIGNMENTS {
        match store.work_on_action(Some(action), 1).await {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(()),
            Err(again) if again.is_about_data() => {
                tracing::warn!(%error, %action, "an assignment cannot be changed");
                return store.give_up_item(action, "REFUSED_BY_DATABASE").await;
            }
            Err(again) => return Err(again),
        }
    }
    Ok(())
}

async fn forget(store: &Store, shutdown: &CancellationToken) -> Result<(), StoreError> {
    while !shutdown.is_cancelled() && store.forget_old_actions().await? > 0 {}
    Ok(())
}
