//! Rounds of a webhook: changes become deliveries, deliveries are attempted, and what became of them is noted.
//!
//! A webhook is in the hands of one service at a time, by a lease. Whoever has lost the lease changes nothing any more,
//! so that the worst that can happen is that a receiver gets something twice, with the same id.

use std::time::Duration;

use serde_json::json;
use sqlx_macros::FromRow;
use uuid::Uuid;

use crate::store::changes::Selection;
use crate::store::journal::taxonomy_from_stored;
use crate::store::{Store, StoreError, Tx};

/// How long a service may take for a round.
pub const LEASE: Duration = Duration::from_secs(60);
/// Most deliveries that wait at one time; further changes stay in the journal until there is room.
const MAX_PENDING: i64 = 1_000;
/// Changes that become deliveries at a time.
const CHANGES_AT_ONCE: usize = 250;
/// Finished deliveries of a webhook that are kept to be looked at.
const KEPT: i64 = 1_000;
/// How long a delivery is tried, as an interval of PostgreSQL; then the webhook is disabled.
const TRIED_FOR: &str = "3 days";

/// A webhook in the hands of this service.
#[derive(Clone, Debug, FromRow)]
pub struct Round {
    /// Which one.
    pub webhook_id: Uuid,
    account_id: i64,
    /// Where it sends.
    pub url: String,
    types: Vec<String>,
    taxonomy: Option<i16>,
    /// The key of signatures.
    pub secret: Vec<u8>,
    position: i64,
    /// Rounds in a row in which nothing was delivered.
    pub failures: i32,
    lease: Uuid,
}

/// A delivery whose turn it is.
#[derive(Clone, Debug, FromRow)]
pub struct Due {
    /// The sequence of its change.
    pub sequence: i64,
    /// The same at every attempt.
    pub message_id: Uuid,
    /// JSON.
    pub body: String,
    /// Attempts made before.
    pub attempts: i32,
}

/// What became of an attempt.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The sequence of the delivery.
    pub sequence: i64,
    /// Whether the receiver took it.
    pub delivered: bool,
    /// The status of the answer.
    pub status: Option<u16>,
    /// What went wrong.
    pub error: Option<String>,
    /// How long to wait before the next attempt.
    pub pause: Duration,
}

impl Store {
    /// Takes webhooks that have something to do and are in nobody's hands.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn claim_webhooks(&self, most: usize) -> Result<Vec<Round>, StoreError> {
        let rounds = sqlx::query_as(
            "with next as (
                 select webhook_id from webhooks
                 where disabled_at is null and next_round_at <= now()
                   and (leased_until is null or leased_until < now())
                   and (exists (select from journal
                                where journal.account_id = webhooks.account_id and sequence > position)
                        or exists (select from webhook_deliveries
                                   where webhook_deliveries.webhook_id = webhooks.webhook_id
                                     and delivered_at is null and next_attempt_at <= now()))
                 order by next_round_at limit $1 for update skip locked)
             update webhooks set lease = gen_random_uuid(), leased_until = now() + make_interval(secs => $2)
             from next where webhooks.webhook_id = next.webhook_id
             returning webhooks.webhook_id, account_id, url, types, taxonomy, secret, position, failures, lease",
        )
        .bind(most as i64)
        .bind(LEASE.as_secs_f64())
        .fetch_all(self.pool())
        .await?;
        Ok(rounds)
    }

    /// Makes deliveries of changes, as far as there is room for them. True when there may be more changes.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn prepare_deliveries(&self, round: &mut Round) -> Result<bool, StoreError> {
        let waiting: i64 = sqlx::query_scalar(
            "select count(*) from webhook_deliveries where webhook_id = $1 and delivered_at is null",
        )
        .bind(round.webhook_id)
        .fetch_one(self.pool())
        .await?;
        if waiting >= MAX_PENDING {
            return Ok(false);
        }
        let selection =
            Selection { types: Some(round.types.clone()), taxonomy: round.taxonomy.map(taxonomy_from_stored) };
        let changes = self.changes(round.account_id, round.position, CHANGES_AT_ONCE, &selection).await?;
        if changes.next == round.position {
            return Ok(false);
        }
        let told: Vec<_> = changes.items.iter().map(|change| change.told()).collect();
        let bodies =
            told.iter().map(|told| json!({"type": told.kind, "timestamp": told.timestamp, "data": told}).to_string());
        let mut tx = self.begin().await?;
        hold(&mut tx, round).await?;
        sqlx::query(
            "insert into webhook_deliveries (webhook_id, sequence, message_id, product_key, product_id, type, body)
             select $1, sequence, message, key, product, type, body
             from unnest($2::bigint[], $3::uuid[], $4::bigint[], $5::text[], $6::text[], $7::text[])
                  as change (sequence, message, key, product, type, body)
             on conflict do nothing",
        )
        .bind(round.webhook_id)
        .bind(changes.items.iter().map(|change| change.sequence).collect::<Vec<_>>())
        .bind(changes.items.iter().map(|_| Uuid::new_v4()).collect::<Vec<_>>())
        .bind(changes.items.iter().map(|change| change.product_key).collect::<Vec<_>>())
        .bind(changes.items.iter().map(|change| change.product_id.as_str()).collect::<Vec<_>>())
        .bind(told.iter().map(|told| told.kind.as_str()).collect::<Vec<_>>())
        .bind(bodies.collect::<Vec<_>>())
        .execute(&mut *tx)
        .await?;
        sqlx::query("update webhooks set position = $2 where webhook_id = $1")
            .bind(round.webhook_id)
            .bind(changes.next)
            .execute(&mut *tx)
            .await?;
        sqlx::query(
            "delete from webhook_deliveries where webhook_id = $1 and delivered_at is not null and sequence <
                (select sequence from webhook_deliveries where webhook_id = $1 and delivered_at is not null
                 order by sequence desc offset $2 limit 1)",
        )
        .bind(round.webhook_id)
        .bind(KEPT)
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        round.position = changes.next;
        Ok(!changes.at_end)
    }

    /// Deliveries whose turn it is: of each product the oldest one that waits, if it may be tried now.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn due_deliveries(&self, round: &Round, most: usize) -> Result<Vec<Due>, StoreError> {
        let due = sqlx::query_as(
            "select sequence, message_id, body, attempts from (
                 select distinct on (product_key) sequence, message_id, body, attempts, next_attempt_at
                 from webhook_deliveries where webhook_id = $1 and delivered_at is null
                 order by product_key, sequence) as heads
             where next_attempt_at <= now() order by sequence limit $2",
        )
        .bind(round.webhook_id)
        .bind(most as i64)
        .fetch_all(self.pool())
        .await?;
        Ok(due)
    }

    /// Notes what became of attempts, renews the lease, and disables the webhook when a delivery has failed for three
    /// days. True while the webhook is enabled.
    ///
    /// # Errors
    /// When the database fails, or the lease is lost.
    pub async fn note_attempts(&self, round: &Round, attempts: &[Attempt]) -> Result<bool, StoreError> {
        let mut tx = self.begin().await?;
        hold(&mut tx, round).await?;
        sqlx::query(
            "update webhook_deliveries
             set attempts = attempts + 1, first_attempt_at = coalesce(first_attempt_at, now()), last_attempt_at = now(),
                 delivered_at = case when delivered then now() end, last_status = status, last_error = error,
                 next_attempt_at = now() + make_interval(secs => pause)
             from unnest($2::bigint[], $3::boolean[], $4::smallint[], $5::text[], $6::float8[])
                  as attempt (at, delivered, status, error, pause)
             where webhook_id = $1 and sequence = at",
        )
        .bind(round.webhook_id)
        .bind(attempts.iter().map(|attempt| attempt.sequence).collect::<Vec<_>>())
        .bind(attempts.iter().map(|attempt| attempt.delivered).collect::<Vec<_>>())
        .bind(attempts.iter().map(|attempt| attempt.status.map(|status| status as i16)).collect::<Vec<_>>())
        .bind(attempts.iter().map(|attempt| attempt.error.as_deref()).collect::<Vec<_>>())
        .bind(attempts.iter().map(|attempt| attempt.pause.as_secs_f64()).collect::<Vec<_>>())
        .execute(&mut *tx)
        .await?;
        let disabled = sqlx::query(
            "update webhooks set disabled_at = now(), disabled_reason = 'a delivery failed for three days: ' || last_error
             from (select last_error from webhook_deliveries
                   where webhook_id = $1 and delivered_at is null and last_error is not null
                     and first_attempt_at < now() - $2::text::interval order by sequence limit 1) as failed
             where webhook_id = $1",
        )
        .bind(round.webhook_id)
        .bind(TRIED_FOR)
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok(disabled.rows_affected() == 0)
    }

    /// Disables a webhook whose receiver wants no more.
    ///
    /// # Errors
    /// When the database fails, or the lease is lost.
    pub async fn disable_webhook(&self, round: &Round, reason: &str) -> Result<(), StoreError> {
        let mut tx = self.begin().await?;
        hold(&mut tx, round).await?;
        sqlx::query("update webhooks set disabled_at = now(), disabled_reason = $2 where webhook_id = $1")
            .bind(round.webhook_id)
            .bind(reason)
            .execute(&mut *tx)
            .await?;
        Ok(tx.commit().await?)
    }

    /// Gives a webhook out of hand until its next round.
    ///
    /// # Errors
    /// When the database fails, or the lease is lost.
    pub async fn finish_round(&self, round: &Round, failures: i32, pause: Duration) -> Result<(), StoreError> {
        let mut tx = self.begin().await?;
        hold(&mut tx, round).await?;
        sqlx::query(
            "update webhooks set lease = null, leased_until = null, failures = $2,
                    next_round_at = now() + make_interval(secs => $3)
             where webhook_id = $1",
        )
        .bind(round.webhook_id)
        .bind(failures)
        .bind(pause.as_secs_f64())
        .execute(&mut *tx)
        .await?;
        Ok(tx.commit().await?)
    }
}

/// Locks the webhook of a round and renews its lease.
async fn hold(tx: &mut Tx, round: &Round) -> Result<(), StoreError> {
    let held = sqlx::query(
        "update webhooks set leased_until = now() + make_interval(secs => $3) where webhook_id = $1 and lease = $2",
    )
    .bind(round.webhook_id)
    .bind(round.lease)
    .bind(LEASE.as_secs_f64())
    .execute(&mut **tx)
    .await?;
    match held.rows_affected() {
        0 => Err(StoreError::not_found(crate::domain::Fault::of("LEASE_LOST", "the webhook is in other hands"))),
        _ => Ok(()),
    }
}
