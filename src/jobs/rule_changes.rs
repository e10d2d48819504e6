//! Judges assignments again when a VAT rule begins or ends, and when other rules or taxonomies are taken into use, and
//! leads those on whose class is none any more.

use std::sync::Arc;
use std::time::Duration;

use chrono::{NaiveDate, Utc};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::decision::Engine;
use crate::domain::{ProductClass, Taxonomy};
use crate::jobs::wait;
use crate::store::{Store, StoreError};

/// How often it looks whether the day or the rules are others.
pub const ROUND: Duration = Duration::from_secs(5);
/// Assignments of one transaction: enough that a round trip costs little, few enough that nobody waits long for a row.
pub const BATCH_ASSIGNMENTS: usize = 2_000;
/// Classes read at a time.
const BATCH_CLASSES: usize = 1_000;

/// Runs until the service stops.
pub async fn run(store: Store, engine: Arc<Engine>, shutdown: CancellationToken) {
    let nobody = Notify::new();
    loop {
        if let Err(error) = keep_up(&store, &engine, Utc::now().date_naive(), &shutdown).await {
            tracing::warn!(%error, "judging assignments again has to wait");
        }
        if !wait(&nobody, ROUND, &shutdown).await {
            return;
        }
    }
}

/// Judges all assignments, unless that was done by these rules for this day. Answers how many changed.
///
/// What was done stays done when it is cut short, and the next round goes through all classes again.
///
/// # Errors
/// When the database fails.
pub async fn keep_up(
    store: &Store,
    engine: &Engine,
    today: NaiveDate,
    shutdown: &CancellationToken,
) -> Result<usize, StoreError> {
    let rule_set = engine.reference().rule_set.clone();
    let judged_on = store.rule_state().await?.and_then(|(known, day)| (known == rule_set).then_some(day));
    if judged_on == Some(today) {
        return Ok(0);
    }
    let changed = judge_all(store, engine, judged_on, today, shutdown).await?;
    if shutdown.is_cancelled() {
        return Ok(changed);
    }
    store.set_rule_state(&rule_set, today).await?;
    tracing::info!(changed, %today, rule_set, "judged assignments by the VAT rules of the day");
    metrics::counter!("vat_classification_assignments_judged_again_total").increment(changed as u64);
    Ok(changed)
}

/// Judges all, or where these rules have judged all on another day, what the two days tell apart: a day on which no rule
/// begins or ends costs a look at each class, however many assignments there are.
async fn judge_all(
    store: &Store,
    engine: &Engine,
    judged_on: Option<NaiveDate>,
    today: NaiveDate,
    shutdown: &CancellationToken,
) -> Result<usize, StoreError> {
    let mut changed = 0;
    for taxonomy in Taxonomy::ALL {
        let mut last = String::new();
        loop {
            let classes = store.assigned_classes(taxonomy, &last, BATCH_CLASSES).await?;
            let Some(end) = classes.last() else { break };
            last.clone_from(end);
            for class in classes.iter().filter_map(|class| class.parse::<ProductClass>().ok()) {
                // A code may have ended, and a side may have lost its rules.
                let unlisted = engine.class(taxonomy, class).is_err();
                let mut after = unlisted.then_some(i64::MIN);
                while let Some(key) = after.filter(|_| !shutdown.is_cancelled()) {
                    let (queued, more) = store.queue_unlisted(taxonomy, class, key, BATCH_ASSIGNMENTS).await?;
                    changed += queued;
                    after = more;
                }
                let sufficient = engine.is_sufficient(taxonomy, class, today);
                let is_judged = judged_on.is_some_and(|day| engine.is_sufficient(taxonomy, class, day) == sufficient);
                let mut after = (!is_judged).then_some(i64::MIN);
                while let Some(key) = after.filter(|_| !shutdown.is_cancelled()) {
                    let (done, more) = store.judge_again(taxonomy, class, sufficient, key, BATCH_ASSIGNMENTS).await?;
                    changed += done;
                    after = more;
                }
            }
        }
    }
    Ok(changed)
}
