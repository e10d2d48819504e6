//! Accounts and access tokens.

use chrono::{DateTime, Utc};
use sqlx_macros::FromRow;

use crate::domain::Precision;
use crate::domain::access::{Level, Plan, TokenHash};
use crate::store::Store;

/// Who sends a request: the account, and the user whose name history shows.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The account that all data of the request belongs to.
    pub account: i64,
    /// The token's user.
    pub user: String,
    /// The account's plan.
    pub plan: Plan,
    /// How sure a decision by text must be for the account.
    pub precision: Precision,
}

/// What a well-formed token turns out to be.
#[derive(Clone, Debug)]
pub enum Credential {
    /// Never issued, or expired.
    Unknown,
    /// Revoked, or of a disabled account.
    Withdrawn,
    /// Of an account that is being moved to another database.
    Moving,
    /// In force.
    Valid(Caller, Level),
}

#[derive(FromRow)]
struct TokenRow {
    account_id: i64,
    user_name: String,
    level: String,
    plan: String,
    decision_precision: i16,
    withdrawn: bool,
    moving: bool,
    seldom_used: bool,
}

/// How old the note of a token's last use may get before it is written anew, as an interval of PostgreSQL.
const USE_NOTED: &str = "1 hour";

/// Why an account or token could not be made or ended.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    /// The name is taken.
    #[error("an account named {0} exists already")]
    Exists(String),
    /// No such account.
    #[error("there is no account named {0}")]
    UnknownAccount(String),
    /// No such token.
    #[error("there is no such token")]
    UnknownToken,
    /// It is not told yet in which of two databases the account is in force.
    #[error("the account {0} is being moved to another database")]
    Moving(String),
    /// Somebody wrote to an account while it was moved.
    #[error("the account {0} was changed while it was copied, and stays where it is: move it again")]
    Changed(String),
    /// The database failed.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

impl Store {
    /// Makes an account.
    ///
    /// # Errors
    /// When the name is taken.
    pub async fn create_account(&self, name: &str, plan: Plan) -> Result<(), AccountError> {
        self.create_account_with(name, plan, Precision::default()).await
    }

    /// Makes an account with a balance of decisions of its own.
    ///
    /// # Errors
    /// When the name is taken.
    pub async fn create_account_with(&self, name: &str, plan: Plan, precision: Precision) -> Result<(), AccountError> {
        let made = sqlx::query(
            "insert into accounts (name, plan, decision_precision) values ($1, $2, $3) on conflict (name) do nothing",
        )
        .bind(name)
        .bind(plan.name())
        .bind(precision.percent())
        .execute(self.pool())
        .await?;
        if made.rows_affected() == 0 { Err(AccountError::Exists(name.to_owned())) } else { Ok(()) }
    }

    /// Sets how sure a decision by text must be for an account. What is decided already stays as it is.
    ///
    /// # Errors
    /// When there is no such account.
    pub async fn set_precision(&self, name: &str, precision: Precision) -> Result<(), AccountError> {
        let set = sqlx::query("update accounts set decision_precision = $2 where name = $1")
            .bind(name)
            .bind(precision.percent())
            .execute(self.pool())
            .await?;
        if set.rows_affected() == 0 { Err(AccountError::UnknownAccount(name.to_owned())) } else { Ok(()) }
    }

    /// Stores a token's hash, and answers the id by which operators name the token.
    ///
    /// # Errors
    /// When the account does not exist.
    pub async fn create_token(
        &self,
        account: &str,
        user: &str,
        level: Level,
        hash: &TokenHash,
        expires_at: Option<DateTime<Utc>>,
    ) -> Result<String, AccountError> {
        let made: Option<String> = sqlx::query_scalar(
            "insert into tokens (token_hash, account_id, user_name, level, expires_at)
             select $1, account_id, $3, $4, $5 from accounts where name = $2 returning token_id",
        )
        .bind(hash.as_slice())
        .bind(account)
        .bind(user)
        .bind(level.name())
        .bind(expires_at)
        .fetch_optional(self.pool())
        .await?;
        made.ok_or_else(|| AccountError::UnknownAccount(account.to_owned()))
    }

    /// Ends a token; one that is ended already stays so.
    ///
    /// # Errors
    /// When the token is not known.
    pub async fn revoke_token(&self, hash: &TokenHash) -> Result<(), AccountError> {
        let ended = sqlx::query("update tokens set revoked_at = coalesce(revoked_at, now()) where token_hash = $1")
            .bind(hash.as_slice())
            .execute(self.pool())
            .await?;
        if ended.rows_affected() == 0 { Err(AccountError::UnknownToken) } else { Ok(()) }
    }

    /// Makes the first account with one ADMIN token, unless there is any account.
    ///
    /// Two services that start at once on an empty database make one account between them.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn create_first_account(&self, name: &str, user: &str, hash: &TokenHash) -> Result<bool, sqlx::Error> {
        let mut tx = self.begin_limited(&[]).await?;
        sqlx::query("lock table accounts in share row exclusive mode").execute(&mut *tx).await?;
        let made: Option<i64> = sqlx::query_scalar(
            "insert into accounts (name, plan) select $1, 'UNLIMITED' where not exists (select from accounts)
             returning account_id",
        )
        .bind(name)
        .fetch_optional(&mut *tx)
        .await?;
        if let Some(account) = made {
            sqlx::query("insert into tokens (token_hash, account_id, user_name, level) values ($1, $2, $3, 'ADMIN')")
                .bind(hash.as_slice())
                .bind(account)
                .bind(user)
                .execute(&mut *tx)
                .await?;
        }
        tx.commit().await?;
        Ok(made.is_some())
    }

    /// The caller that a command acts for, when there is such an account.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn account_by_name(&self, name: &str, user: &str) -> Result<Option<Caller>, sqlx::Error> {
        let row: Option<(i64, String, i16)> =
            sqlx::query_as("select account_id, plan, decision_precision from accounts where name = $1")
                .bind(name)
                .fetch_optional(self.pool())
                .await?;
        let caller = row.and_then(|(account, plan, precision)| {
            let (plan, precision) = (Plan::from_name(&plan)?, Precision::from_percent(precision)?);
            Some(Caller { account, user: user.to_owned(), plan, precision })
        });
        Ok(caller)
    }

    /// The same, where whoever names an account means one that is there.
    ///
    /// # Errors
    /// When there is none, or the database fails.
    pub async fn require_account(&self, name: &str, user: &str) -> Result<Caller, AccountError> {
        let caller = self.account_by_name(name, user).await?;
        caller.ok_or_else(|| AccountError::UnknownAccount(name.to_owned()))
    }

    /// Looks a token up.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn authenticate(&self, hash: &TokenHash) -> Result<Credential, sqlx::Error> {
        let row: Option<TokenRow> = sqlx::query_as(
            "select account_id, user_name, level, plan, decision_precision, revoked_at is not null or disabled as withdrawn,
                    moving is not null as moving,
                    last_used_at is null or last_used_at < now() - $2::text::interval as seldom_used
             from tokens join accounts using (account_id)
             where token_hash = $1 and (expires_at is null or expires_at > now() or revoked_at is not null)",
        )
        .bind(hash.as_slice())
        .bind(USE_NOTED)
        .fetch_optional(self.pool())
        .await?;
        let Some(row) = row else { return Ok(Credential::Unknown) };
        let (Some(level), Some(plan), Some(precision)) =
            (Level::from_name(&row.level), Plan::from_name(&row.plan), Precision::from_percent(row.decision_precision))
        else {
            return Ok(Credential::Withdrawn);
        };
        if row.withdrawn {
            return Ok(Credential::Withdrawn);
        }
        if row.moving {
            return Ok(Credential::Moving);
        }
        if row.seldom_used {
            self.note_use(hash).await;
        }
        Ok(Credential::Valid(Caller { account: row.account_id, user: row.user_name, plan, precision }, level))
    }

    /// Notes that a token is in use. Of several requests at once one does; the answer to none depends on it.
    async fn note_use(&self, hash: &TokenHash) {
        let noted = sqlx::query(
            "update tokens set last_used_at = now() where token_hash in (
                 select token_hash from tokens
                 where token_hash = $1 and (last_used_at is null or last_used_at < now() - $2::text::interval)
                 for update skip locked)",
        )
        .bind(hash.as_slice())
        .bind(USE_NOTED)
        .execute(self.pool())
        .await;
        if let Err(error) = noted {
            tracing::debug!(%error, "the use of a token is not noted");
        }
    }
}
