//! Webhooks: takes those that have something to do, and makes a round of each.

use std::time::{Duration, Instant};

use chrono::Utc;
use futures::StreamExt;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::store::webhooks::{Attempt, Due, LEASE, Round};
use crate::store::{Store, StoreError};
use crate::webhooks::{DEADLINE, Message, Outcome, Sender};

/// Webhooks that this service serves at one time.
const MAX_ROUNDS: usize = 16;
/// Deliveries of a round that are under way at one time.
const CONCURRENT: usize = 8;
/// Deliveries that are taken up at a time: what is under way is done well before the lease ends.
const DUE_AT_ONCE: usize = 32;
/// How long a round goes on while there is work.
const ROUND: Duration = Duration::from_secs(20);
/// How often the job looks for changes to send.
const LOOK: Duration = Duration::from_secs(1);
/// Pauses after the first, the second, … failure, before some is taken off at random; the last one is for all further.
const PAUSES: [Duration; 9] = [
    Duration::from_secs(5),
    Duration::from_secs(30),
    Duration::from_secs(2 * 60),
    Duration::from_secs(10 * 60),
    Duration::from_secs(30 * 60),
    Duration::from_secs(60 * 60),
    Duration::from_secs(2 * 60 * 60),
    Duration::from_secs(4 * 60 * 60),
    Duration::from_secs(8 * 60 * 60),
];
/// The longest pause that a receiver can ask for.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

const _: () = assert!(LEASE.as_secs() > DEADLINE.as_secs() * (DUE_AT_ONCE / CONCURRENT) as u64);

/// Runs until the service stops.
pub async fn run(store: Store, sender: Sender, shutdown: CancellationToken) {
    let mut rounds = JoinSet::new();
    while !shutdown.is_cancelled() {
        while rounds.try_join_next().is_some() {}
        match store.claim_webhooks(MAX_ROUNDS - rounds.len()).await {
            Ok(claimed) => {
                for round in claimed {
                    rounds.spawn(guarded(store.clone(), sender.clone(), round, shutdown.clone()));
                }
            }
            Err(error) => tracing::warn!(%error, "webhooks have to wait"),
        }
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = tokio::time::sleep(LOOK) => {}
        }
    }
    // What is under way is over within the deadline of a delivery.
    while rounds.join_next().await.is_some() {}
}

/// Makes a round of every webhook that has something to do now.
///
/// # Errors
/// When the database fails.
pub async fn work_off(store: &Store, sender: &Sender) -> Result<(), StoreError> {
    loop {
        let claimed = store.claim_webhooks(MAX_ROUNDS).await?;
        if claimed.is_empty() {
            return Ok(());
        }
        for round in claimed {
            make(store, sender, round, &CancellationToken::new(), Duration::from_secs(1)).await?;
        }
    }
}

async fn guarded(store: Store, sender: Sender, round: Round, shutdown: CancellationToken) {
    let id = round.webhook_id;
    if let Err(error) = make(&store, &sender, round, &shutdown, LOOK).await {
        tracing::warn!(webhook = %id, %error, "the round of a webhook broke off; it is made again");
    }
}

/// Makes deliveries of what happened, and attempts those whose turn it is. `idle` is the pause after a round that had
/// nothing to do.
async fn make(
    store: &Store,
    sender: &Sender,
    mut round: Round,
    shutdown: &CancellationToken,
    idle: Duration,
) -> Result<(), StoreError> {
    let began = Instant::now();
    let mut failures = round.failures;
    loop {
        let more = store.prepare_deliveries(&mut round).await?;
        // After a failure one delivery finds out whether the receiver is back.
        let most = if failures > 0 { 1 } else { DUE_AT_ONCE };
        let due = store.due_deliveries(&round, most).await?;
        if due.is_empty() && !more {
            return store.finish_round(&round, failures, idle).await;
        }
        let outcomes = attempt_all(sender, &round, due).await;
        let gone = outcomes.iter().any(|(_, gone)| *gone);
        let attempts: Vec<Attempt> = outcomes.into_iter().map(|(attempt, _)| attempt).collect();
        let delivered = attempts.iter().filter(|attempt| attempt.delivered).count();
        metrics::counter!("vat_classification_webhook_attempts_total", "outcome" => "delivered")
            .increment(delivered as u64);
        metrics::counter!("vat_classification_webhook_attempts_total", "outcome" => "failed")
            .increment((attempts.len() - delivered) as u64);
        let mut enabled = attempts.is_empty() || store.note_attempts(&round, &attempts).await?;
        if gone {
            store.disable_webhook(&round, "the receiver answered 410 Gone").await?;
            enabled = false;
        }
        if !enabled {
            tracing::warn!(webhook = %round.webhook_id, "disabled a webhook whose deliveries fail");
            return store.finish_round(&round, 0, Duration::ZERO).await;
        }
        if delivered > 0 {
            failures = 0;
        } else if let Some(longest) = attempts.iter().map(|attempt| attempt.pause).max() {
            return store.finish_round(&round, failures + 1, longest).await;
        }
        if shutdown.is_cancelled() || began.elapsed() > ROUND {
            return store.finish_round(&round, failures, Duration::ZERO).await;
        }
    }
}

/// Attempts deliveries, some at a time; with whether the receiver wants no more.
async fn attempt_all(sender: &Sender, round: &Round, due: Vec<Due>) -> Vec<(Attempt, bool)> {
    let attempts = due.into_iter().map(|due| attempt(sender, round, due));
    futures::stream::iter(attempts).buffer_unordered(CONCURRENT).collect().await
}

async fn attempt(sender: &Sender, round: &Round, due: Due) -> (Attempt, bool) {
    let id = format!("msg_{}", due.message_id.simple());
    let message = Message { id: &id, body: &due.body, at: Utc::now(), secret: &round.secret };
    let outcome = sender.send(&round.url, &message).await;
    let mut attempt =
        Attempt { sequence: due.sequence, delivered: false, status: None, error: None, pause: Duration::ZERO };
    match outcome {
        Outcome::Delivered(status) => (attempt.delivered, attempt.status) = (true, Some(status)),
        Outcome::Gone => {
            (attempt.status, attempt.error) = (Some(410), Some("answered 410 Gone".to_owned()));
            return (attempt, true);
        }
        Outcome::Failed { status, reason, retry_after } => {
            (attempt.status, attempt.error) = (status, Some(reason));
            let asked = retry_after.unwrap_or_default().min(MAX_RETRY_AFTER);
            attempt.pause = pause(due.attempts, due.sequence).max(asked);
        }
    }
    (attempt, false)
}

/// The pause after so many failures of a delivery, up to a quarter shorter, so that receivers are not met by all at once.
fn pause(attempts: i32, seed: i64) -> Duration {
    let longest = usize::try_from(attempts).ok().and_then(|at| PAUSES.get(at)).unwrap_or(&PAUSES[PAUSES.len() - 1]);
    // Sequences lie apart by any number: spread by multiplying, as hashing does.
    let share = (seed as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    longest.mul_f64(1.0 - 0.25 * (share as f64 / f64::from(u32::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_are_spread() {
        let longest: Vec<Duration> = (0..20).map(|attempts| pause(attempts, 0)).collect();
        assert!(longest.is_sorted() && longest[0] == PAUSES[0] && longest[19] == PAUSES[8]);
        let spread: Vec<Duration> = (1..100).map(|seed| pause(3, seed * 131_072)).collect();
        assert!(spread.iter().all(|pause| (PAUSES[3].mul_f64(0.75)..=PAUSES[3]).contains(pause)));
        assert!(spread.iter().max() > spread.iter().min());
        assert!(PAUSES.iter().sum::<Duration>() < Duration::from_secs(3 * 24 * 60 * 60), "three days see every pause");
    }
}
