//! Checks used in the calendar month.

use sqlx_macros::FromRow;

use crate::domain::access::Plan;
use crate::store::accounts::Caller;
use crate::store::{Store, StoreError, Tx};

/// Over how many rows an account without a limit spreads its count.
pub(super) const SHARDS: i64 = 32;

/// What an account has used.
#[derive(Clone, Debug, FromRow)]
pub struct Usage {
    /// The calendar month (UTC), `2026-11`.
    pub month: String,
    /// Checks used in it.
    pub used: i64,
}

/// Counts checks within the transaction that needs them.
///
/// # Errors
/// [`StoreError::LimitExceeded`] when the plan does not allow that many more.
pub(super) async fn charge(tx: &mut Tx, caller: &Caller, checks: usize) -> Result<(), StoreError> {
    let checks = i64::try_from(checks).unwrap_or(i64::MAX);
    if checks == 0 {
        return Ok(());
    }
    let Some(limit) = caller.plan.monthly_checks() else {
        sqlx::query(
            "insert into usage (account_id, month, shard, used)
             values ($1, date_trunc('month', now() at time zone 'UTC'), pg_current_xact_id()::text::bigint % $3, $2)
             on conflict (account_id, month, shard) do update set used = usage.used + excluded.used",
        )
        .bind(caller.account)
        .bind(checks)
        .bind(SHARDS)
        .execute(&mut **tx)
        .await?;
        return Ok(());
    };
    let row: (i64,) = sqlx::query_as(
        "with charged as (
             insert into usage (account_id, month, shard, used)
             values ($1, date_trunc('month', now() at time zone 'UTC'), 0, $2)
             on conflict (account_id, month, shard) do update set used = usage.used + excluded.used
             returning month, used)
         select used + (
             -- What was used this month while the plan had no limit.
             select coalesce(sum(before.used), 0)::bigint from usage before
             where before.account_id = $1 and before.month = charged.month and before.shard <> 0)
         from charged",
    )
    .bind(caller.account)
    .bind(checks)
    .fetch_one(&mut **tx)
    .await?;
    if row.0 > limit {
        return Err(StoreError::LimitExceeded { limit, used: row.0 - checks, asked: checks });
    }
    Ok(())
}

/// Refuses checks for which there is no room by now, before anything is written; [`charge`] decides.
///
/// # Errors
/// [`StoreError::LimitExceeded`] when the plan does not allow that many more.
pub(super) async fn require_room(tx: &mut Tx, caller: &Caller, checks: usize) -> Result<(), StoreError> {
    let Some(limit) = caller.plan.monthly_checks() else { return Ok(()) };
    let used: i64 = sqlx::query_scalar(
        "select coalesce(sum(used), 0)::bigint from usage
         where account_id = $1 and month = date_trunc('month', now() at time zone 'UTC')",
    )
    .bind(caller.account)
    .fetch_one(&mut **tx)
    .await?;
    let asked = i64::try_from(checks).unwrap_or(i64::MAX);
    if used.saturating_add(asked) > limit && asked > 0 {
        return Err(StoreError::LimitExceeded { limit, used, asked });
    }
    Ok(())
}

impl Store {
    /// Counts checks that store nothing else.
    ///
    /// # Errors
    /// [`StoreError::LimitExceeded`] when the plan does not allow that many more.
    pub async fn charge_checks(&self, caller: &Caller, checks: usize) -> Result<(), StoreError> {
        let mut tx = self.begin().await?;
        // These counts are worth no wait for the disk: no answer depends on their surviving a power failure.
        if caller.plan == Plan::Unlimited {
            sqlx::query("set local synchronous_commit = off").execute(&mut *tx).await?;
        }
        charge(&mut tx, caller, checks).await?;
        Ok(tx.commit().await?)
    }

    /// What the account has used this month.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn usage(&self, account: i64) -> Result<Usage, StoreError> {
        let usage = sqlx::query_as(
            "select to_char(now() at time zone 'UTC', 'YYYY-MM') as month, coalesce(sum(used), 0)::bigint as used
             from usage where account_id = $1 and month = date_trunc('month', now() at time zone 'UTC')",
        )
        .bind(account)
        .fetch_one(self.pool())
        .await?;
        Ok(usage)
    }
}
