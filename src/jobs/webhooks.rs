//! Webhooks: takes those that have something to do, and makes a round of each.

use std::time::{Duration, Instant};

use chrono::Utc;
use futures::StreamExt;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

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
/// The longest pause that a receiver can ask for, for the delivery that it answers.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 60 * 60);
/// The longest pause of a webhook of which nothing was taken. It is far shorter than those of a delivery: a single one
/// may be refused, and the next that is tried is another.
const MAX_REST: Duration = Duration::from_secs(2 * 60);

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
    match make(&store, &sender, round, &shutdown, LOOK).await {
        Ok(()) => {}
        // A client that changes or deletes a webhook takes it out of our hands.
        Err(StoreError::NotFound(_)) => tracing::debug!(webhook = %id, "the round of a webhook was ended"),
        Err(error) => tracing::warn!(webhook = %id, %error, "the round of a webhook broke off; it is made again"),
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
        // After a failure one delivery finds out whether the receiver is back. It is one that was refused least, so
        // that what is refused always does not take the turns of all others.
        let is_failing = failures > 0;
        let most = if is_failing { 1 } else { DUE_AT_ONCE };
        let due = store.due_deliveries(&round, most, is_failing).await?;
        if due.is_empty() && !more {
            return store.finish_round(&round, failures, idle).await;
        }
        let outcomes = attempt_all(store, sender, &round, due).await;
        let gone = outcomes.iter().any(|(_, gone)| *gone);
        let attempts: Vec<Attempt> = outcomes.into_iter().map(|(attempt, _)| attempt).collect();
        let delivered = attempts.iter().filter(|attempt| attempt.delivered).count();
        metrics::counter!("vat_classification_webhook_attempts_total", "outcome" => "delivered")
            .increment(delivered as u64);
        metrics::counter!("vat_classification_webhook_attempts_total", "outcome" => "failed")
            .increment((attempts.len() - delivered) as u64);
        let mut enabled = true;
        if !attempts.is_empty() {
            let noted = store.note_attempts(&round, &attempts).await?;
            enabled = noted.enabled;
            if noted.given_up > 0 {
                let (webhook, deliveries) = (round.webhook_id, noted.given_up);
                tracing::warn!(%webhook, deliveries, "gave up deliveries that are always refused");
            }
        }
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
        } else if !attempts.is_empty() {
            return store.finish_round(&round, failures + 1, rest(failures, round.webhook_id)).await;
        }
        if shutdown.is_cancelled() || began.elapsed() > ROUND {
            return store.finish_round(&round, failures, Duration::ZERO).await;
        }
    }
}

/// Attempts deliveries, some at a time; with whether the receiver wants no more.
async fn attempt_all(store: &Store, sender: &Sender, round: &Round, due: Vec<Due>) -> Vec<(Attempt, bool)> {
    let attempts = due.into_iter().enumerate().map(|(at, due)| attempt_if_held(store, sender, round, at, due));
    let made: Vec<_> = futures::stream::iter(attempts).buffer_unordered(CONCURRENT).collect().await;
    made.into_iter().flatten().collect()
}

/// Makes an attempt, unless a client has changed the webhook meanwhile. The first ones begin as soon as they are read;
/// those behind them wait for slow answers to others, and look again.
async fn attempt_if_held(
    store: &Store,
    sender: &Sender,
    round: &Round,
    at: usize,
    due: Due,
) -> Option<(Attempt, bool)> {
    // What cannot be looked up now is left to the next round.
    if at >= CONCURRENT && !store.holds(round).await.unwrap_or(false) {
        return None;
    }
    Some(attempt(sender, round, due).await)
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
            attempt.pause = spread(pause(due.attempts), due.sequence as u64).max(asked);
        }
    }
    (attempt, false)
}

/// How long a webhook of which nothing was taken rests, after so many rounds before in which nothing was taken.
fn rest(failures: i32, webhook: Uuid) -> Duration {
    spread(pause(failures).min(MAX_REST), webhook.as_u64_pair().1)
}

/// The longest pause after so many failures before.
fn pause(failures: i32) -> Duration {
    usize::try_from(failures).ok().and_then(|at| PAUSES.get(at)).copied().unwrap_or(PAUSES[PAUSES.len() - 1])
}

/// A pause that is up to a quarter shorter, so that receivers are not met by all at once.
fn spread(longest: Duration, seed: u64) -> Duration {
    // Sequences lie apart by any number: spread by multiplying, as hashing does.
    let share = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    longest.mul_f64(1.0 - 0.25 * (share as f64 / f64::from(u32::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_are_spread() {
        let longest: Vec<Duration> = (0..20).map(pause).collect();
        assert!(longest.is_sorted() && longest[0] == PAUSES[0] && longest[19] == PAUSES[8]);
        let spread: Vec<Duration> = (1..100).map(|seed| spread(PAUSES[3], seed * 131_072)).collect();
        assert!(spread.iter().all(|pause| (PAUSES[3].mul_f64(0.75)..=PAUSES[3]).contains(pause)));
        assert!(spread.iter().max() > spread.iter().min());
        assert!(PAUSES.iter().sum::<Duration>() < Duration::from_secs(3 * 24 * 60 * 60), "three days see every pause");
    }

    #[test]
    fn a_webhook_rests_for_minutes_however_often_it_failed() {
        let rests: Vec<Duration> = (0..20).map(|failures| rest(failures, Uuid::nil())).collect();
        assert!(rests.is_sorted() && rests[0] == PAUSES[0] && rests[19] == MAX_REST);
    }
}
