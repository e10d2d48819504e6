//! Auto-assignment: claims queued products, decides, stores.

use std::sync::Arc;

use chrono::Utc;
use rayon::prelude::*;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::decision::{Engine, Verdict};
use crate::domain::Taxonomy;
use crate::jobs::{PAUSE_AFTER_FAILURE, POLL, wait};
use crate::store::auto_queue::{AutoResult, Batch, Claim};
use crate::store::{Store, StoreError};

/// Products claimed at a time: enough that a round trip costs little, few enough that a crash gives little back.
pub const BATCH_PRODUCTS: usize = 500;

impl From<Verdict> for AutoResult {
    fn from(verdict: Verdict) -> AutoResult {
        let found = verdict.found.map(|found| (found.class, found.strategy, found.confidence, found.sufficient));
        AutoResult { found }
    }
}

/// Runs until the service stops, then finishes the batch in hand.
pub async fn run(store: Store, engine: Arc<Engine>, wake: Arc<Notify>, shutdown: CancellationToken) {
    loop {
        let pause = match work_off(&store, &engine, &shutdown).await {
            Ok(()) => POLL,
            Err(error) => {
                tracing::warn!(%error, "auto-assignment has to wait");
                PAUSE_AFTER_FAILURE
            }
        };
        if !wait(&wake, pause, &shutdown).await {
            return;
        }
    }
}

/// Works until the queue is empty or the service stops.
///
/// # Errors
/// When the database fails; the batch in hand is then given back.
pub async fn work_off(store: &Store, engine: &Arc<Engine>, shutdown: &CancellationToken) -> Result<(), StoreError> {
    while !shutdown.is_cancelled() {
        let Some(batch) = store.claim_auto_assignments(BATCH_PRODUCTS).await? else { return Ok(()) };
        let (batch, results) = decide(engine.clone(), batch).await;
        let stored = batch.complete(&results).await?;
        metrics::counter!("auto_assignments_total").increment(stored as u64);
    }
    Ok(())
}

/// Decides for every claim of a batch, on all cores.
pub async fn decide(engine: Arc<Engine>, batch: Batch) -> (Batch, Vec<Vec<AutoResult>>) {
    let claims = batch.claims.clone();
    let today = Utc::now().date_naive();
    let computed = tokio::task::spawn_blocking(move || {
        let decide = |claim: &Claim| {
            let taxonomies: Vec<Taxonomy> = claim.slots.iter().map(|slot| slot.taxonomy).collect();
            let verdicts = engine.decide(&claim.details, &taxonomies, today);
            verdicts.into_iter().map(AutoResult::from).collect::<Vec<_>>()
        };
        claims.par_iter().map(decide).collect::<Vec<_>>()
    });
    match computed.await {
        Ok(results) => (batch, results),
        // A panic of the classifier must not leave products pending for ever: nothing is found for this batch.
        Err(error) => {
            tracing::error!(%error, products = batch.claims.len(), "auto-assignment failed");
            let nothing = |claim: &Claim| vec![AutoResult { found: None }; claim.slots.len()];
            let results = batch.claims.iter().map(nothing).collect();
            (batch, results)
        }
    }
}
