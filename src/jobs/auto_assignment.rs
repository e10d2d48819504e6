//! Auto-assignment: claims queued products, decides, stores.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{NaiveDate, Utc};
use rayon::prelude::*;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::computing;
use crate::decision::{Basis, Engine, Texts};
use crate::domain::{Taxonomy, Verdict};
use crate::jobs::memory;
use crate::jobs::{PAUSE_AFTER_FAILURE, POLL, wait};
use crate::store::auto_queue::{Batch, Claim, Decided};
use crate::store::{Store, StoreError};

/// Most products claimed at a time: enough that a round trip costs little, few enough that a crash gives little back.
pub const BATCH_PRODUCTS: usize = 500;
/// Fewest products claimed at a time, however long they take.
const LEAST_PRODUCTS: usize = 32;
/// How long a batch should take. A product waits for the batches in hand and then for the rest of its own, whosoever
/// they are full of: on a machine with much to do, 500 take seconds.
const BATCH_TIME: Duration = Duration::from_millis(250);

/// How often one of the jobs looks that the others wake.
const SELDOM: Duration = Duration::from_secs(30);

/// Runs until the service stops, then finishes the batch in hand. Of several jobs the `first` looks often; whoever has
/// claimed something wakes another, which may find more.
pub async fn run(store: Store, engine: Arc<Engine>, wake: Arc<Notify>, first: bool, shutdown: CancellationToken) {
    let mut pace = Pace::default();
    loop {
        let pause = match work(&store, &engine, &wake, &mut pace, &shutdown).await {
            Ok(()) if first => POLL,
            Ok(()) => SELDOM,
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
    work(store, engine, &Notify::new(), &mut Pace::default(), shutdown).await
}

/// How many products are claimed at a time, by how long the last took.
#[derive(Debug)]
struct Pace {
    products: usize,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace { products: BATCH_PRODUCTS }
    }
}

impl Pace {
    /// Notes how long so many products took. A few that took their time say nothing of many.
    fn note(&mut self, products: usize, took: Duration) {
        if products < self.products / 2 && took <= BATCH_TIME {
            return;
        }
        let fitting = products as f64 * BATCH_TIME.as_secs_f64() / took.as_secs_f64().max(f64::EPSILON);
        self.products = (fitting as usize).clamp(LEAST_PRODUCTS, BATCH_PRODUCTS);
    }
}

async fn work(
    store: &Store,
    engine: &Arc<Engine>,
    others: &Notify,
    pace: &mut Pace,
    shutdown: &CancellationToken,
) -> Result<(), StoreError> {
    while !shutdown.is_cancelled() {
        // To learn all that was ever decided may take minutes, over which no claim is held.
        if !memory::follow_first(store, engine, shutdown).await? {
            return Ok(());
        }
        let claimed = Instant::now();
        let Some(batch) = store.claim_auto_assignments(pace.products).await? else { return Ok(()) };
        let products = batch.claims.len();
        others.notify_one();
        // What was decided before these products were queued is known to whoever decides for them.
        if !memory::follow(store, engine, shutdown).await? {
            return Ok(());
        }
        let (began, basis) = (Instant::now(), Standing::of(engine));
        let (batch, results) = decide(engine.clone(), batch).await;
        metrics::histogram!("vat_classification_decision_seconds").record(began.elapsed());
        let stored = store_unless_outdated(engine, &basis, batch, &results).await?;
        pace.note(products, claimed.elapsed());
        metrics::counter!("vat_classification_auto_assignments_total").increment(stored as u64);
    }
    Ok(())
}

/// By what a batch is decided beside what it holds.
#[derive(Debug, PartialEq, Eq)]
pub struct Standing {
    model_version: String,
    rule_set: String,
    day: NaiveDate,
}

impl Standing {
    /// As it is now.
    pub fn of(engine: &Engine) -> Standing {
        let rule_set = engine.reference().rule_set.clone();
        Standing { model_version: engine.model().version, rule_set, day: Utc::now().date_naive() }
    }
}

/// Stores what was decided; answers how many results. What was decided by another model, whose memory may have been
/// forgotten meanwhile, or by rules or a day by which all others have been judged again, is given back and decided anew.
///
/// # Errors
/// When the database fails; the batch is then given back.
pub async fn store_unless_outdated(
    engine: &Engine,
    basis: &Standing,
    batch: Batch,
    results: &[Decided],
) -> Result<usize, StoreError> {
    if Standing::of(engine) != *basis { Ok(0) } else { batch.complete(results).await }
}

/// Decides for every claim of a batch, on all cores.
pub async fn decide(engine: Arc<Engine>, mut batch: Batch) -> (Batch, Vec<Decided>) {
    batch.model_version = Some(engine.model().version);
    let today = Utc::now().date_naive();
    let computed = compute(&batch, move |claim: &Claim| {
        let taxonomies: Vec<Taxonomy> = claim.slots.iter().map(|slot| slot.taxonomy).collect();
        let basis = Basis { precision: claim.precision, account: Some(claim.account()) };
        let texts = Texts::with_words();
        let verdicts = engine.decide_by(&texts, &claim.details, &taxonomies, basis, today);
        (verdicts, engine.words_by(&texts, &claim.details).keys(claim.account()))
    })
    .await;
    let (mut decided, mut words) = (Vec::with_capacity(computed.len()), Vec::with_capacity(computed.len()));
    for one in computed {
        match one {
            Ok((results, keys)) => {
                decided.push(Ok(results));
                words.push(keys);
            }
            // A product that cannot be read is parked, and nothing finds it.
            Err(reason) => {
                decided.push(Err(reason));
                words.push(Vec::new());
            }
        }
    }
    batch.words = words;
    (batch, decided)
}

/// The same with a rule of its own. A panic costs the product alone for which it happened.
pub async fn decide_by(
    batch: Batch,
    rule: impl Fn(&Claim) -> Vec<Verdict> + Send + Sync + 'static,
) -> (Batch, Vec<Decided>) {
    let decided = compute(&batch, rule).await;
    (batch, decided)
}

/// What a rule says of every claim, in their order; of those for which it panics what the panic said.
async fn compute<T: Send + 'static>(
    batch: &Batch,
    rule: impl Fn(&Claim) -> T + Send + Sync + 'static,
) -> Vec<Result<T, String>> {
    let claims = batch.claims.clone();
    let computed = tokio::task::spawn_blocking(move || {
        claims.par_iter().map(|claim| computing::guarded(|| rule(claim))).collect::<Vec<Result<T, String>>>()
    });
    let decided = match computed.await {
        Ok(decided) => decided,
        // Nothing is left to panic but the collecting itself.
        Err(error) => batch.claims.iter().map(|_| Err(error.to_string())).collect(),
    };
    for (claim, reason) in
        batch.claims.iter().zip(&decided).filter_map(|(claim, one)| Some((claim, one.as_ref().err()?)))
    {
        tracing::error!(product_key = claim.key(), reason, "auto-assignment of a product failed; it is parked");
        metrics::counter!("vat_classification_auto_assignment_parked_total").increment(1);
    }
    decided
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_as_large_as_fits_its_time() {
        let mut pace = Pace::default();
        let mut after = |products, milliseconds| {
            pace.note(products, Duration::from_millis(milliseconds));
            pace.products
        };
        assert_eq!(after(500, 100), 500);
        assert_eq!(after(500, 2_500), 50);
        assert_eq!(after(50, 250), 50);
        assert_eq!(after(50, 60_000), 32, "a round trip costs something, too");
        assert_eq!(after(1, 20), 32, "one product alone says nothing");
        assert_eq!(after(32, 16), 500);
        assert_eq!(after(500, 0), 500);
    }
}
