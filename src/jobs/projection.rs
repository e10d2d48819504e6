//! Feeds the search index from `search_outbox`.
//!
//! Rows are claimed for a few seconds, which are renewed while the engine works; products are read as they are at that
//! moment and written with their versions; then the rows leave. Whatever dies in between, the rows are claimed again.
//! An entry is only ever replaced by one of a higher version, so that the order of writes does not matter, not even
//! between services. The entry of a deleted product stays for a day with the highest version of all.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::search::{Engine, EngineError, pause};
use crate::store::search::{Change, Claim, LEASE, Outcome, StoredProduct, changes_of};
use crate::store::{Store, StoreError};

/// Most rows that are claimed at once.
const CLAIMED_ROWS: usize = 1_000;
/// Time between two looks at an empty queue, unless woken, in milliseconds.
const IDLE_MS: std::ops::Range<u64> = 800..1_000;
/// Least and most time between two attempts at an engine that is down, in milliseconds: it waits longer each time.
const BACKOFF_MS: (u64, u64) = (100, 1_000);
/// Time between two removals of what long deleted products left.
const SWEEP_INTERVAL: Duration = Duration::from_secs(3_600);
/// How long changes are left to a later version that has begun an index and builds it no more: it may only be restarting.
const LATER_PATIENCE: Duration = Duration::from_secs(600);
/// Time between two reports of a rebuild in the log.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// What a round has done.
enum Round {
    /// The queue was empty.
    Idle,
    /// Rows were claimed, and some or all are done.
    Progress,
    /// Rows were claimed, and the engine had no room for any.
    Stalled,
}

/// Feeds the engine until shutdown. `wake` is notified after commits of this service; those of others are found
/// within a second. Makes the index where there is none.
pub async fn run(store: Store, engine: Engine, wake: Arc<Notify>, shutdown: CancellationToken) {
    let mut feeder = Feeder {
        store,
        engine,
        ready: false,
        limit: CLAIMED_ROWS,
        claimed: CLAIMED_ROWS,
        failures: 0,
        swept: Instant::now(),
        left: Left::default(),
        shutdown: shutdown.clone(),
    };
    while !shutdown.is_cancelled() {
        let wait = tokio::select! {
            () = shutdown.cancelled() => return,
            wait = feeder.round() => wait,
        };
        let Some(wait) = wait else { continue };
        tokio::select! {
            () = shutdown.cancelled() => return,
            // A failing engine is not tried more often because there is more to write.
            () = wake.notified(), if feeder.failures == 0 => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
}

struct Feeder {
    store: Store,
    engine: Engine,
    ready: bool,
    /// How many rows are claimed next, and were last.
    limit: usize,
    claimed: usize,
    failures: u32,
    swept: Instant,
    left: Left,
    shutdown: CancellationToken,
}

/// Since when a later version has been left to feed.
#[derive(Debug, Default)]
struct Left {
    since: Option<Instant>,
}

impl Left {
    /// Notes that it is left to feed still, and tells whether it has had time enough.
    fn is_long(&mut self, now: Instant) -> bool {
        now.duration_since(*self.since.get_or_insert(now)) >= LATER_PATIENCE
    }

    /// Begins anew: it is at work, or there is none.
    fn end(&mut self) {
        self.since = None;
    }
}

impl Feeder {
    /// One look at the queue; answers how long to wait for the next.
    async fn round(&mut self) -> Option<Duration> {
        match self.try_round().await {
            Ok(Round::Progress) => {
                self.recovered();
                self.limit = (self.limit * 2).min(CLAIMED_ROWS);
                None
            }
            Ok(Round::Idle) => {
                self.recovered();
                self.ready &= !self.engine.was_missing();
                self.sweep().await;
                Some(pause(IDLE_MS))
            }
            Ok(Round::Stalled) => Some(self.backoff()),
            Err(error) => {
                if self.failures == 0 {
                    tracing::warn!(%error, "the search index cannot be fed; it catches up later");
                }
                self.ready &= !matches!(error, EngineError::NotReady | EngineError::Newer);
                if matches!(error, EngineError::Newer) {
                    self.take_back().await;
                }
                Some(self.backoff())
            }
        }
    }

    fn recovered(&mut self) {
        if self.failures > 0 {
            tracing::info!("the search index is fed again");
        }
        self.failures = 0;
        self.left.end();
    }

    /// Feeds again where a later version has been taken back before its index was complete.
    async fn take_back(&mut self) {
        if !self.left.is_long(Instant::now()) {
            return;
        }
        match self.engine.take_back().await {
            Ok(true) => {
                tracing::info!("a later version has left its search index unfinished; this one feeds its own again")
            }
            Ok(false) => self.left.end(),
            Err(error) => {
                tracing::warn!(%error, "it is not known whether a later version still builds its search index")
            }
        }
    }

    /// The time to wait after a failure; fewer rows are claimed next, so that one that always fails is found.
    fn backoff(&mut self) -> Duration {
        self.limit = (self.limit.min(self.claimed) / 2).max(1);
        let longest = (BACKOFF_MS.0 << self.failures.min(10)).min(BACKOFF_MS.1);
        self.failures += 1;
        pause(longest / 2..longest)
    }

    async fn try_round(&mut self) -> Result<Round, EngineError> {
        if self.failures > 0 {
            // Cheaper than a bulk request that is not answered.
            self.engine.ping().await?;
        }
        if !self.ready {
            self.make_ready().await?;
        }
        let Some(mut claim) = self.store.claim_search_changes(self.limit).await? else { return Ok(Round::Idle) };
        let (changes, refused) = changes_by(&mut claim, StoredProduct::change).await?;
        self.claimed = changes.len() + refused.len();
        let outcomes = match self.apply(&claim, &changes).await {
            Err(EngineError::Store(error)) if changes.len() == 1 && is_about_data(&error) => {
                vec![Outcome::Never(error.to_string())]
            }
            Err(error) => {
                claim.release().await?;
                return Err(error);
            }
            Ok(outcomes) => outcomes,
        };
        let stalled = !outcomes.is_empty() && outcomes.iter().all(|outcome| matches!(outcome, Outcome::Retry(_)));
        let finished: Vec<(Change, Outcome)> = changes.into_iter().zip(outcomes).chain(refused).collect();
        for (change, outcome) in &finished {
            if let Outcome::Never(reason) = outcome {
                tracing::warn!(product_key = change.key, reason, "a product cannot be indexed");
                metrics::counter!("vat_classification_search_parked_total").increment(1);
            }
        }
        metrics::counter!("vat_classification_search_changes_total").increment(finished.len() as u64);
        claim.finish(&finished).await?;
        Ok(if stalled { Round::Stalled } else { Round::Progress })
    }

    /// Writes changes, and holds the claim for as long as that takes.
    async fn apply(&self, claim: &Claim, changes: &[Change]) -> Result<Vec<Outcome>, EngineError> {
        let mut writing = std::pin::pin!(self.engine.apply(changes));
        loop {
            tokio::select! {
                written = &mut writing => return written,
                () = tokio::time::sleep(LEASE / 3) => claim.renew().await?,
            }
        }
    }

    /// Sees to it that there is an index of this version.
    async fn make_ready(&mut self) -> Result<(), EngineError> {
        let reported = std::sync::Mutex::new(Instant::now());
        let report = move |done: i64, total: i64| {
            let Ok(mut reported) = reported.lock() else { return };
            if reported.elapsed() >= REPORT_INTERVAL {
                *reported = Instant::now();
                tracing::info!(done, total, "the search index is being built");
            }
        };
        if self.engine.ensure(&report).await? {
            let engine = self.engine.clone();
            // Changes are not kept waiting for it, and nothing is lost where the service ends before it does.
            tokio::spawn(async move {
                if let Err(error) = engine.compact().await {
                    tracing::warn!(%error, "the new search index stays larger than it need be");
                }
            });
        }
        self.ready = true;
        if self.engine.is_stale().await? {
            tracing::warn!("the database was put back to an earlier state; the search index is built anew");
            let (engine, shutdown) = (self.engine.clone(), self.shutdown.clone());
            // It holds a connection, for which a service that ends would wait.
            tokio::spawn(async move {
                if let Some(Err(error)) = shutdown.run_until_cancelled(engine.rebuild(&|_, _| {})).await {
                    tracing::warn!(%error, "the search index could not be built anew; it is tried at the next start");
                }
            });
        }
        Ok(())
    }

    async fn sweep(&mut self) {
        if self.swept.elapsed() < SWEEP_INTERVAL {
            return;
        }
        self.swept = Instant::now();
        if let Err(error) = self.engine.sweep().await {
            tracing::warn!(%error, "entries of deleted products stay in the search index for now");
        }
    }
}

/// The changes of a claim, made from its products off the threads that serve requests; with those of which nothing can be
/// made, and why. `make` is [`StoredProduct::change`].
///
/// # Errors
/// None but when the service stops.
pub async fn changes_by(
    claim: &mut Claim,
    make: impl Fn(StoredProduct) -> Change + Send + 'static,
) -> Result<(Vec<Change>, Vec<(Change, Outcome)>), EngineError> {
    let (products, removals) = claim.take();
    let (made, refused) = tokio::task::spawn_blocking(move || changes_of(products, make)).await?;
    let mut changes = removals;
    changes.extend(made);
    Ok((changes, refused.into_iter().map(|(change, reason)| (change, Outcome::Never(reason))).collect()))
}

/// Whether the database refuses what a document holds (data exceptions, program limits), rather than failing.
fn is_about_data(error: &StoreError) -> bool {
    let StoreError::Database(sqlx::Error::Database(error)) = error else { return false };
    error.code().is_some_and(|code| code.starts_with("22") || code.starts_with("54"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_version_has_ten_minutes_from_the_first_change_that_is_left_to_it_and_as_many_again_while_it_is_at_work()
    {
        let mut left = Left::default();
        let began = Instant::now();
        let mut after = |seconds| left.is_long(began + Duration::from_secs(seconds));
        assert_eq!([0, 1, 599].map(&mut after), [false; 3]);
        assert_eq!([600, 601].map(&mut after), [true; 2], "until it is known whether it builds");
        left.end();
        let mut after = |seconds| left.is_long(began + Duration::from_secs(seconds));
        assert_eq!([601, 1_200].map(&mut after), [false; 2]);
        assert!(after(1_201));
    }
}
