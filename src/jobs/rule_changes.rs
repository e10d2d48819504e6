//! Judges assignments again when a VAT rule begins or ends, and when other rules or taxonomies are taken into use, and
//! leads those on whose class is none any more.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{NaiveDate, Utc};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::decision::Engine;
use crate::domain::{ProductClass, Taxonomy};
use crate::jobs::wait;
use crate::store::{Store, StoreError};

/// How often it looks whether the day or the rules are others.
pub const ROUND: Duration = Duration::from_secs(5);
/// How long after the first look at a day all is judged once more: what was decided just before may have been stored since.
/// No batch of auto-assignment takes longer than a statement may.
pub const SECOND_LOOK: Duration = Duration::from_secs(90);
/// Assignments of one transaction: enough that a round trip costs little, few enough that nobody waits long for a row.
pub const BATCH_ASSIGNMENTS: usize = 2_000;
/// Classes read at a time.
const BATCH_CLASSES: usize = 1_000;

/// Runs until the service stops.
pub async fn run(store: Store, engine: Arc<Engine>, shutdown: CancellationToken) {
    let nobody = Notify::new();
    let (mut last, mut second) = (None, None::<SecondLook>);
    loop {
        let today = Utc::now().date_naive();
        // Another service may have judged by this day before it began here, where things were decided by the day before.
        if let Some(yesterday) = last.replace(today).filter(|day| *day != today) {
            second = Some(SecondLook::beside(second, Some(yesterday)));
        }
        let judged = async {
            if let Some(due) = second.take_if(|second| second.since.elapsed() >= SECOND_LOOK) {
                let looked = judge_all(&store, &engine, due.before, today, &shutdown).await;
                second = looked.is_err().then_some(due);
                looked?;
            }
            keep_up(&store, &engine, today, &shutdown).await
        };
        match judged.await {
            Ok(Some(judged)) => second = Some(SecondLook::beside(second, judged.before)),
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "judging assignments again has to wait"),
        }
        if !wait(&nobody, ROUND, &shutdown).await {
            return;
        }
    }
}

/// All is to be judged once more.
struct SecondLook {
    /// When that was found.
    since: Instant,
    /// The day by which it may have been judged last; none where it may have been by other rules.
    before: Option<NaiveDate>,
}

impl SecondLook {
    /// One more, together with one that is still to come.
    fn beside(earlier: Option<SecondLook>, before: Option<NaiveDate>) -> SecondLook {
        let before = earlier.map_or(before, |earlier| earlier.before.zip(before).map(|(one, other)| one.min(other)));
        SecondLook { since: Instant::now(), before }
    }
}

/// What was judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judged {
    /// The day on which the same rules had judged before; none where they had not.
    pub before: Option<NaiveDate>,
    /// The day by which all is judged now.
    pub day: NaiveDate,
    /// How many assignments changed.
    pub changed: usize,
}

/// Judges all assignments, unless that was done by these rules for this day, or for the next one, which it may be already by
/// the clock of another service. None where there was nothing to do, or the service stops.
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
) -> Result<Option<Judged>, StoreError> {
    let rule_set = engine.reference().rule_set.clone();
    let state = store.rule_state().await?;
    let before = state.as_ref().and_then(|(known, day)| (*known == rule_set).then_some(*day));
    if before.is_some_and(|day| (0..=1).contains(&(day - today).num_days())) {
        return Ok(None);
    }
    let changed = judge_all(store, engine, before, today, shutdown).await?;
    if shutdown.is_cancelled() {
        return Ok(None);
    }
    if !store.set_rule_state(&rule_set, today, state.as_ref()).await? {
        // An account came meanwhile, or another service judged: the next round looks.
        return Ok(None);
    }
    tracing::info!(changed, %today, rule_set, "judged assignments by the VAT rules of the day");
    metrics::counter!("vat_classification_assignments_judged_again_total").increment(changed as u64);
    Ok(Some(Judged { before, day: today, changed }))
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
