//! Rounds of a webhook: changes become deliveries, deliveries are attempted, and what became of them is noted.
//!
//! A webhook is in the hands of one service at a time, by a lease, which is taken back when a client changes it.
//! Whoever has lost the lease changes nothing any more, so that the worst that can happen is that a receiver gets
//! something twice, with the same id.

use std::time::Duration;

use serde_json::json;
use sha2::{Digest, Sha256};
use sqlx_macros::FromRow;
use uuid::Uuid;

use crate::store::changes::Selection;
use crate::store::journal::taxonomy_from_stored;
use crate::store::{Store, StoreError, Tx};

/// How long a service may take for a round.
pub const LEASE: Duration = Duration::from_secs(60);
/// Webhooks of an account that are in hand at one time: its receivers, slow as they may be, leave room for those of
/// other accounts.
pub const MAX_ROUNDS_OF_ACCOUNT: i64 = 4;
/// Most deliveries that wait at one time of products of which none is refused; further changes stay in the journal until
/// there is room.
const MAX_PENDING: i64 = 1_000;
/// Most deliveries that wait at one time in all: what is refused, and what waits behind it, takes none of the room of
/// other products up to here, and beyond holds everything up.
const MAX_WAITING: i64 = 10_000;
/// Changes that become deliveries at a time.
const CHANGES_AT_ONCE: usize = 250;
/// Deliveries of a webhook that are kept to be looked at: so many that were made, and so many that were given up.
const KEPT: i64 = 1_000;
/// How long deliveries are tried, as an interval of PostgreSQL. When the receiver takes none for so long, the webhook
/// is disabled; when it refuses one for so long while it takes others, that one is given up.
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

/// What attempts led to.
#[derive(Clone, Copy, Debug)]
pub struct Noted {
    /// Whether the webhook still is enabled.
    pub enabled: bool,
    /// Deliveries that were given up.
    pub given_up: u64,
}

impl Store {
    /// Takes webhooks that have something to do and are in nobody's hands: of each account only some, and the first of
    /// each before the second of any.
    ///
    /// Several services may look in the same moment: more are looked at than are taken, since some go to others, and an
    /// account may have as many taken by each.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn claim_webhooks(&self, most: usize) -> Result<Vec<Round>, StoreError> {
        // Changes are looked up in order: asked only whether there is one, PostgreSQL may read the whole journal.
        let rounds = sqlx::query_as(
            "with free as (
                 select webhook_id, account_id, next_round_at,
                        row_number() over (partition by account_id order by next_round_at, webhook_id) as turn
                 from webhooks
                 where disabled_at is null and next_round_at <= now()
                   and (leased_until is null or leased_until < now())
                   and ((select sequence from journal
                         where journal.account_id = webhooks.account_id and sequence > position
                         order by sequence limit 1) is not null
                        or exists (select from webhook_deliveries
                                   where webhook_deliveries.webhook_id = webhooks.webhook_id
                                     and delivered_at is null and next_attempt_at <= now()))
             ), held as (
                 select account_id, count(*) as rounds from webhooks where leased_until >= now() group by account_id
             ), turns as (
                 select webhook_id, turn + coalesce(rounds, 0) as turn from free left join held using (account_id)
                 where turn + coalesce(rounds, 0) <= $3
                 order by turn + coalesce(rounds, 0), next_round_at limit 4 * $1
             ), next as (
                 select webhooks.webhook_id from turns join webhooks on webhooks.webhook_id = turns.webhook_id
                 where disabled_at is null and (leased_until is null or leased_until < now())
                 order by turn, next_round_at limit $1 for update of webhooks skip locked)
             update webhooks set lease = gen_random_uuid(), leased_until = now() + make_interval(secs => $2)
             from next where webhooks.webhook_id = next.webhook_id
             returning webhooks.webhook_id, account_id, url, types, taxonomy, secret, position, failures, lease",
        )
        .bind(most as i64)
        .bind(LEASE.as_secs_f64())
        .bind(MAX_ROUNDS_OF_ACCOUNT)
        .fetch_all(self.pool())
        .await?;
        Ok(rounds)
    }

    /// Whether a webhook is still in these hands. Who changes or deletes it takes it out of them.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn holds(&self, round: &Round) -> Result<bool, StoreError> {
        let holds: bool =
            sqlx::query_scalar("select exists (select from webhooks where webhook_id = $1 and lease = $2)")
                .bind(round.webhook_id)
                .bind(round.lease)
                .fetch_one(self.pool())
                .await?;
        Ok(holds)
    }

    /// Makes deliveries of changes, as far as there is room for them. True when there may be more changes.
    ///
    /// # Errors
    /// When the database fails, or the lease is lost.
    pub async fn prepare_deliveries(&self, round: &mut Round) -> Result<bool, StoreError> {
        let (free, all): (i64, i64) = sqlx::query_as(
            "select coalesce(sum(waiting) filter (where not refused), 0)::bigint, coalesce(sum(waiting), 0)::bigint
             from (select count(*) as waiting, bool_or(attempts > 0) as refused from webhook_deliveries
                   where webhook_id = $1 and delivered_at is null group by product_key) as products",
        )
        .bind(round.webhook_id)
        .fetch_one(self.pool())
        .await?;
        if free >= MAX_PENDING || all >= MAX_WAITING {
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
        .bind(changes.items.iter().map(|change| message_id(round.webhook_id, change.sequence)).collect::<Vec<_>>())
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
        forget_old(&mut tx, round, false).await?;
        tx.commit().await?;
        round.position = changes.next;
        Ok(!changes.at_end)
    }

    /// Deliveries whose turn it is: of each product the oldest one that waits, if it may be tried now. Those that were
    /// tried least come first when `by_attempts`, else the oldest. None when the lease is lost.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn due_deliveries(&self, round: &Round, most: usize, by_attempts: bool) -> Result<Vec<Due>, StoreError> {
        let due = sqlx::query_as(
            "select sequence, message_id, body, attempts from (
                 select distinct on (product_key) sequence, message_id, body, attempts, next_attempt_at
                 from webhook_deliveries where webhook_id = $1 and delivered_at is null
                 order by product_key, sequence) as heads
             where next_attempt_at <= now() and exists (select from webhooks where webhook_id = $1 and lease = $2)
             order by case when $4 then attempts end, sequence limit $3",
        )
        .bind(round.webhook_id)
        .bind(round.lease)
        .bind(most as i64)
        .bind(by_attempts)
        .fetch_all(self.pool())
        .await?;
        Ok(due)
    }

    /// Notes what became of attempts, and renews the lease. Disables the webhook when the receiver took nothing for
    /// three days, and gives up what it refused for three days while it took others.
    ///
    /// # Errors
    /// When the database fails, or the lease is lost.
    pub async fn note_attempts(&self, round: &Round, attempts: &[Attempt]) -> Result<Noted, StoreError> {
        let mut tx = self.begin().await?;
        hold(&mut tx, round).await?;
        let refused: Vec<i64> =
            attempts.iter().filter(|attempt| !attempt.delivered).map(|attempt| attempt.sequence).collect();
        if refused.len() < attempts.len() {
            sqlx::query("update webhooks set taken_at = now() where webhook_id = $1")
                .bind(round.webhook_id)
                .execute(&mut *tx)
                .await?;
        }
        // What was refused in the time before the receiver took something has been overtaken.
        sqlx::query(
            "update webhook_deliveries
             set attempts = attempts + 1, first_attempt_at = coalesce(first_attempt_at, now()), last_attempt_at = now(),
                 overtaken_at = case
                     when overtaken_at is null and not delivered and coalesce(first_attempt_at, now())
                          <= (select taken_at from webhooks where webhooks.webhook_id = $1) then now()
                     else overtaken_at end,
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
        let mut noted = Noted { enabled: true, given_up: 0 };
        if !refused.is_empty() {
            noted.enabled = !disable_when_nothing_is_taken(&mut tx, round).await?;
            // A webhook that is disabled can be enabled again, with all that waits.
            if noted.enabled {
                noted.given_up = give_up(&mut tx, round, &refused).await?;
            }
        }
        tx.commit().await?;
        Ok(noted)
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

/// The id of a message: the same however often a delivery is made of a change, be it in the database to which an
/// account moved or in one that was put back to an earlier state, so that the receiver knows a repetition.
fn message_id(webhook: Uuid, sequence: i64) -> Uuid {
    let digest = Sha256::digest([webhook.as_bytes().as_slice(), &sequence.to_be_bytes()].concat());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    Uuid::from_bytes(bytes)
}

/// Disables a webhook that has tried for three days in which its receiver took nothing; answers whether it has.
async fn disable_when_nothing_is_taken(tx: &mut Tx, round: &Round) -> Result<bool, StoreError> {
    let disabled = sqlx::query(
        "update webhooks set disabled_at = now(), disabled_reason = 'nothing was taken for three days: ' || last_error
         from (select last_error from webhook_deliveries
               where webhook_id = $1 and delivered_at is null and last_error is not null
                 and first_attempt_at < now() - $2::text::interval order by sequence limit 1) as failed
         where webhook_id = $1 and (taken_at is null or taken_at < now() - $2::text::interval)",
    )
    .bind(round.webhook_id)
    .bind(TRIED_FOR)
    .execute(&mut **tx)
    .await?;
    Ok(disabled.rows_affected() > 0)
}

/// Gives up those of the deliveries just refused that were overtaken three days ago; answers how many. The time in
/// which the receiver was away does not count: what it missed is tried for three days more when it is back.
async fn give_up(tx: &mut Tx, round: &Round, refused: &[i64]) -> Result<u64, StoreError> {
    let given_up = sqlx::query(
        "update webhook_deliveries set given_up = true, delivered_at = now()
         where webhook_id = $1 and sequence = any($2) and overtaken_at < now() - $3::text::interval",
    )
    .bind(round.webhook_id)
    .bind(refused)
    .bind(TRIED_FOR)
    .execute(&mut **tx)
    .await?
    .rows_affected();
    if given_up > 0 {
        forget_old(tx, round, true).await?;
    }
    Ok(given_up)
}

/// Removes the oldest deliveries that were made, or that were given up, beyond those that are kept.
async fn forget_old(tx: &mut Tx, round: &Round, given_up: bool) -> Result<(), StoreError> {
    sqlx::query(
        "delete from webhook_deliveries
         where webhook_id = $1 and delivered_at is not null and given_up = $3 and sequence <
            (select sequence from webhook_deliveries
             where webhook_id = $1 and delivered_at is not null and given_up = $3
             order by sequence desc offset $2 limit 1)",
    )
    .bind(round.webhook_id)
    .bind(KEPT)
    .bind(given_up)
    .execute(&mut **tx)
    .await?;
    Ok(())
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
