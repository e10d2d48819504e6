//! Requests that were sent with a key, and their answers, so that a repetition is answered and not done.

use std::time::Duration;

use sqlx::types::Json;
use sqlx_macros::FromRow;
use uuid::Uuid;

use crate::domain::access::Level;
use crate::store::tx::Held;
use crate::store::{Store, StoreError};

/// How long an answer is kept, as an interval of PostgreSQL.
const KEPT: &str = "24 hours";
/// Most keys that an account has at one time, counted now and then.
pub const MAX_KEYS_PER_ACCOUNT: i64 = 1_000_000;
/// Most bytes of answers that an account has at one time, counted now and then.
pub const MAX_BYTES_PER_ACCOUNT: i64 = 1 << 30;
/// Old keys that are removed in one statement.
const REMOVED_AT_ONCE: i64 = 10_000;
/// How often a claim is tried while the key comes and goes.
const MAX_CLAIMS: usize = 3;

/// A key as an account knows it.
#[derive(Clone, Debug)]
pub struct Key {
    /// The account.
    pub account: i64,
    /// The level of the token that sent it.
    pub level: Level,
    /// 1 to 255 characters.
    pub key: String,
}

/// The answer to a request that was done.
#[derive(Clone, Debug)]
pub struct Kept {
    /// SHA-256 of the request.
    pub request_hash: Vec<u8>,
    /// The HTTP status.
    pub status: i16,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// What becomes of a request with a key.
#[derive(Clone, Debug)]
pub enum Claimed {
    /// It is to be done, under this name.
    Fresh(Uuid),
    /// It was done.
    Done(Kept),
    /// It is being done.
    Running,
    /// The account has too many keys.
    Full,
}

#[derive(FromRow)]
struct Row {
    request_hash: Option<Vec<u8>>,
    status: Option<i16>,
    headers: Option<Json<Vec<(String, String)>>>,
    body: Option<Vec<u8>>,
}

impl Store {
    /// Takes a key for a request, for at most this long, unless it was taken before.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn claim_key(&self, key: &Key, lease: Duration) -> Result<Claimed, StoreError> {
        let attempt = Uuid::new_v4();
        for _ in 0..MAX_CLAIMS {
            let fresh = sqlx::query(
                "insert into idempotency_keys (account_id, level, key, attempt, leased_until)
                 select $1, $2, $3, $4, now() + make_interval(secs => $5)
                 where not exists (select from idempotency_usage
                                   where account_id = $1 and (keys > $7 or bytes > $8))
                 on conflict (account_id, level, key) do update
                 set attempt = excluded.attempt, leased_until = excluded.leased_until, created_at = now(),
                     request_hash = null, status = null, headers = null, body = null
                 where idempotency_keys.status is null and idempotency_keys.leased_until < now()
                    or idempotency_keys.created_at < now() - $6::text::interval",
            )
            .bind(key.account)
            .bind(key.level.name())
            .bind(&key.key)
            .bind(attempt)
            .bind(lease.as_secs_f64())
            .bind(KEPT)
            .bind(MAX_KEYS_PER_ACCOUNT)
            .bind(MAX_BYTES_PER_ACCOUNT)
            .execute(self.pool())
            .await?;
            if fresh.rows_affected() > 0 {
                return Ok(Claimed::Fresh(attempt));
            }
            let row: Option<Row> = sqlx::query_as(
                "select request_hash, status, headers, body from idempotency_keys
                 where account_id = $1 and level = $2 and key = $3",
            )
            .bind(key.account)
            .bind(key.level.name())
            .bind(&key.key)
            .fetch_optional(self.pool())
            .await?;
            match row {
                Some(Row { request_hash: Some(request_hash), status: Some(status), headers, body }) => {
                    let headers = headers.map(|headers| headers.0).unwrap_or_default();
                    let body = body.unwrap_or_default();
                    return Ok(Claimed::Done(Kept { request_hash, status, headers, body }));
                }
                Some(_) => return Ok(Claimed::Running),
                // It went away in between, or there was no room for it.
                None => {}
            }
        }
        Ok(Claimed::Full)
    }

    /// Keeps the answer of a request, in the transaction that the request left open, and makes both last. False when
    /// the key was taken from it meanwhile: then nothing of it lasts.
    ///
    /// # Errors
    /// When the database fails; then nothing lasts either.
    pub async fn keep_answer(&self, key: &Key, attempt: Uuid, held: Held, kept: &Kept) -> Result<bool, StoreError> {
        let mut tx = held.open(self).await?;
        let written = sqlx::query(
            "update idempotency_keys set request_hash = $5, status = $6, headers = $7, body = $8
             where account_id = $1 and level = $2 and key = $3 and attempt = $4 and status is null",
        )
        .bind(key.account)
        .bind(key.level.name())
        .bind(&key.key)
        .bind(attempt)
        .bind(&kept.request_hash)
        .bind(kept.status)
        .bind(Json(&kept.headers))
        .bind(&kept.body)
        .execute(&mut *tx)
        .await?;
        if written.rows_affected() == 0 {
            tx.rollback().await?;
            return Ok(false);
        }
        tx.commit().await?;
        Ok(true)
    }

    /// Gives a key back whose request was not done, so that it can be sent again.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn release_key(&self, key: &Key, attempt: Uuid) -> Result<(), StoreError> {
        sqlx::query(
            "delete from idempotency_keys
             where account_id = $1 and level = $2 and key = $3 and attempt = $4 and status is null",
        )
        .bind(key.account)
        .bind(key.level.name())
        .bind(&key.key)
        .bind(attempt)
        .execute(self.pool())
        .await?;
        Ok(())
    }

    /// Removes keys whose time is over.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn forget_old_keys(&self) -> Result<(), StoreError> {
        loop {
            let removed = sqlx::query(
                "delete from idempotency_keys where (account_id, level, key) in (
                    select account_id, level, key from idempotency_keys
                    where created_at < now() - $1::text::interval order by created_at limit $2)",
            )
            .bind(KEPT)
            .bind(REMOVED_AT_ONCE)
            .execute(self.pool())
            .await?;
            if removed.rows_affected() < REMOVED_AT_ONCE as u64 {
                return Ok(());
            }
        }
    }

    /// Counts what accounts keep, which reads all keys.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn count_kept_keys(&self) -> Result<(), StoreError> {
        sqlx::query(
            "with counted as (select account_id, count(*) as keys, coalesce(sum(octet_length(body)), 0) as bytes
                              from idempotency_keys group by account_id),
                  gone as (delete from idempotency_usage
                           where not exists (select from counted where counted.account_id = idempotency_usage.account_id))
             insert into idempotency_usage (account_id, keys, bytes)
             select account_id, keys, bytes from counted order by account_id
             on conflict (account_id) do update set keys = excluded.keys, bytes = excluded.bytes",
        )
        .execute(self.pool())
        .await?;
        Ok(())
    }
}
