//! Learns what people decide, and queues again the products that are alike.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use rayon::prelude::*;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::computing;
use crate::decision::{Basis, Engine, Texts};
use crate::domain::{Details, ProductClass};
use crate::jobs::{PAUSE_AFTER_FAILURE, wait};
use crate::memory::{ALIKE, Followed, Lesson};
use crate::store::memory::{AlikeProduct, MemoryLesson, RememberedRow};
use crate::store::{Store, StoreError};

/// How often it looks for what people decided at other services.
pub const FOLLOW: Duration = Duration::from_secs(1);
/// Time between two looks for what was taken back long ago.
const FORGETTING: Duration = Duration::from_secs(3_600);

/// Runs until the service stops; `assigns` is told when products were queued.
pub async fn run(
    store: Store,
    engine: Arc<Engine>,
    wake: Arc<Notify>,
    assigns: Arc<Notify>,
    shutdown: CancellationToken,
) {
    let mut forgotten: Option<Instant> = None;
    loop {
        let pause = match work_off(&store, &engine, &shutdown).await {
            Ok(queued) => {
                if queued > 0 {
                    assigns.notify_one();
                }
                FOLLOW
            }
            Err(error) => {
                tracing::warn!(%error, "what people decided is not learnt for now");
                PAUSE_AFTER_FAILURE
            }
        };
        if forgotten.is_none_or(|last| last.elapsed() >= FORGETTING) {
            forgotten = Some(Instant::now());
            if let Err(error) = store.forget_taken_back().await {
                tracing::warn!(%error, "what was taken back stays for now");
            }
        }
        if !wait(&wake, pause, &shutdown).await {
            return;
        }
    }
}

/// Learns what was decided, and queues products that are alike, every account in turn, until none is left or the service
/// stops. Answers how many were queued.
///
/// # Errors
/// When the database fails; the rest is then done later.
pub async fn work_off(store: &Store, engine: &Arc<Engine>, shutdown: &CancellationToken) -> Result<usize, StoreError> {
    let mut queued = 0;
    loop {
        if !follow(store, engine, shutdown).await? {
            return Ok(queued);
        }
        let lessons = store.memory_lessons().await?;
        if lessons.is_empty() {
            return Ok(queued);
        }
        let (mut is_ours, mut failed) = (false, None);
        for lesson in lessons {
            if shutdown.is_cancelled() {
                return Ok(queued);
            }
            match teach(store, engine, &lesson).await {
                Ok(taught) => {
                    is_ours |= taught.is_some();
                    queued += taught.unwrap_or_default();
                }
                // It would come first again: those of other accounts are not to wait for it.
                Err(error) if error.is_too_slow() || error.is_about_data() => {
                    given_up(&lesson, &error.to_string());
                    is_ours |= store.teach(&lesson, &[], None).await?.is_some();
                }
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        if let Some(error) = failed {
            return Err(error);
        }
        // What is left is in the hands of other services.
        if !is_ours {
            return Ok(queued);
        }
    }
}

/// Learns all that people decided until now, at this service or another; at a start that is all that was ever decided.
/// False when the service stops before all is known.
///
/// # Errors
/// When the database fails; what was learnt before stays.
pub async fn follow(store: &Store, engine: &Arc<Engine>, shutdown: &CancellationToken) -> Result<bool, StoreError> {
    shutdown
        .run_until_cancelled(learn_what_is_new(store, engine))
        .await
        .map_or(Ok(false), |learnt| learnt.map(|()| true))
}

/// Learns all that was ever decided where none of it is known yet, or only as another model read it; otherwise nothing.
/// False when the service stops before all is known.
///
/// # Errors
/// When the database fails; what was learnt before stays.
pub async fn follow_first(
    store: &Store,
    engine: &Arc<Engine>,
    shutdown: &CancellationToken,
) -> Result<bool, StoreError> {
    let is_known = async {
        let followed = engine.memory().followed.lock().await;
        followed.as_ref().is_some_and(|followed| followed.model_version == engine.model().version)
    };
    match shutdown.run_until_cancelled(is_known).await {
        Some(true) => Ok(true),
        Some(false) => follow(store, engine, shutdown).await,
        None => Ok(false),
    }
}

async fn learn_what_is_new(store: &Store, engine: &Arc<Engine>) -> Result<(), StoreError> {
    let mut followed = engine.memory().followed.lock().await;
    let model_version = engine.model().version;
    if followed.as_ref().is_some_and(|followed| followed.model_version != model_version) {
        engine.memory().clear();
        *followed = None;
    }
    let snapshot = store.memory_snapshot().await?;
    let seen = followed.as_ref().map(|followed| followed.snapshot.clone());
    let mut after = None;
    loop {
        let page = store.memory_page(seen.as_deref(), &snapshot, after).await?;
        if !page.rows.is_empty() {
            let engine = engine.clone();
            let learnt = tokio::task::spawn_blocking(move || learn(&engine, page.rows)).await;
            if let Err(error) = learnt {
                // What cannot be read once cannot be read again: the rest is worth more.
                tracing::error!(%error, "some decisions are not remembered");
            }
        }
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    *followed = Some(Followed { snapshot, model_version });
    Ok(())
}

fn learn(engine: &Engine, rows: Vec<RememberedRow>) {
    let lesson = |row: &RememberedRow| {
        let class: Option<ProductClass> = row.product_class.as_deref().and_then(|class| class.parse().ok());
        let lesson = match class {
            Some(class) if row.verdict != 0 => {
                let (assignment, against) = (row.assignment_uuid, row.verdict < 0);
                Lesson::Decided(engine.remembered(assignment, row.taxonomy(), class, against, &row.texts))
            }
            _ => Lesson::TakenBack(row.assignment_uuid),
        };
        (row.account_id, lesson)
    };
    let guarded = |row: &RememberedRow| match computing::guarded(|| lesson(row)) {
        Ok(lesson) => Some(lesson),
        Err(reason) => {
            tracing::error!(account = row.account_id, assignment = %row.assignment_uuid, reason, "a decision is not learnt");
            metrics::counter!("vat_classification_memory_decisions_left_out_total").increment(1);
            None
        }
    };
    let lessons: Vec<(i64, Lesson)> = rows.par_iter().filter_map(guarded).collect();
    let mut accounts: BTreeMap<i64, Vec<Lesson>> = BTreeMap::new();
    for (account, lesson) in lessons {
        accounts.entry(account).or_default().push(lesson);
    }
    for (account, lessons) in accounts {
        engine.memory().learn(account, lessons);
    }
}

/// Tells that products like that of a decision are not looked at.
fn given_up(lesson: &MemoryLesson, reason: &str) {
    tracing::error!(account = lesson.account, assignment = %lesson.assignment, reason, "alike products of a decision are not looked at again");
    metrics::counter!("vat_classification_memory_lessons_given_up_total").increment(1);
}

/// Looks at some of the products that are alike, and queues those that would now be decided otherwise.
async fn teach(store: &Store, engine: &Arc<Engine>, lesson: &MemoryLesson) -> Result<Option<usize>, StoreError> {
    let Some(texts) = lesson.texts.clone() else { return store.teach(lesson, &[], None).await };
    let keys = computing::guarded(|| engine.words(&texts).keys(lesson.account)).unwrap_or_else(|reason| {
        given_up(lesson, &reason);
        Vec::new()
    });
    if keys.is_empty() {
        return store.teach(lesson, &[], None).await;
    }
    let (products, more) = store.products_with_words(lesson.account, lesson.taxonomy, &keys, lesson.worked_to).await?;
    let (engine, asked) = (engine.clone(), lesson.clone());
    let changed = tokio::task::spawn_blocking(move || changed(&engine, &asked, &texts, &products)).await;
    let queued = store.teach(lesson, &changed.unwrap_or_default(), more).await?;
    metrics::counter!("vat_classification_memory_requeued_total").increment(queued.unwrap_or_default() as u64);
    Ok(queued)
}

/// The keys of alike products that no person has decided and that would now get another class than they have.
fn changed(engine: &Engine, lesson: &MemoryLesson, texts: &Details, products: &[AlikeProduct]) -> Vec<i64> {
    let today = Utc::now().date_naive();
    let words = engine.words(texts);
    let basis = Basis { precision: lesson.precision, account: Some(lesson.account) };
    let would_change = |product: &AlikeProduct| {
        let is_own = product.assignment_uuid == lesson.assignment;
        if is_own || product.is_decided || product.strategy.as_deref() == Some("MANUAL") || product.status == "DENIED" {
            return false;
        }
        let texts = Texts::with_words();
        if words.similarity(engine.words_by(&texts, &product.details)) < ALIKE {
            return false;
        }
        let verdict = engine.decide_by(&texts, &product.details, &[lesson.taxonomy], basis, today);
        let class = verdict.first().and_then(|verdict| verdict.found).map(|found| found.class.to_string());
        class != product.product_class
    };
    // One that cannot be judged stays as it is: auto-assignment parks it when it comes by.
    let changes = |product: &&AlikeProduct| computing::guarded(|| would_change(product)).unwrap_or(false);
    products.par_iter().filter(changes).map(|product| product.product_key).collect()
}
