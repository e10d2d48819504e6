//! What operators do with accounts and tokens, beside a running service.

use chrono::{DateTime, Utc};
use sqlx::AssertSqlSafe;
use sqlx_macros::FromRow;

use crate::domain::Precision;
use crate::domain::access::Plan;
use crate::store::accounts::AccountError;
use crate::store::{Store, StoreError, moving};

/// Products that are erased in one transaction.
const PRODUCTS_AT_ONCE: i64 = 1_000;
/// Rows of any other table that are erased in one statement.
const ROWS_AT_ONCE: i64 = 5_000;
/// Most tokens that one account is shown.
pub const MAX_TOKENS_LISTED: i64 = 1_000;
/// Times that an erasure begins anew because something was written meanwhile, before it is left to the job.
const MAX_ROUNDS: usize = 10;

/// Tables that name accounts and are not emptied as a whole: the account itself with its tokens goes first, the outbox has
/// yet to tell the search engine what to delete, and words go with their products.
const APART: [&str; 4] = ["accounts", "tokens", "search_outbox", "product_words"];

/// An account as operators see it.
#[derive(Clone, Debug, FromRow)]
pub struct AccountRow {
    /// Its name.
    pub name: String,
    /// Its plan's name.
    pub plan: String,
    /// Share of the decisions by text that are meant to be right, in per cent.
    pub decision_precision: i16,
    /// Whether its tokens are refused.
    pub disabled: bool,
    /// Whether it is on its way from one database to another.
    pub moving: bool,
    /// When it was made.
    pub created_at: DateTime<Utc>,
}

impl AccountRow {
    /// The share of the decisions by text that are meant to be right.
    pub fn precision(&self) -> Precision {
        Precision::from_percent(self.decision_precision).unwrap_or_default()
    }
}

/// A token as operators see it.
#[derive(Clone, Debug, FromRow)]
pub struct TokenListing {
    /// By which it is named.
    pub token_id: String,
    /// The name of its account.
    pub account: String,
    /// The name that histories show.
    pub user_name: String,
    /// Its level's name.
    pub level: String,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// From when on it is no longer good.
    pub expires_at: Option<DateTime<Utc>>,
    /// When it was used, to the hour.
    pub last_used_at: Option<DateTime<Utc>>,
    /// When it was ended.
    pub revoked_at: Option<DateTime<Utc>>,
}

/// Which tokens are ended.
#[derive(Clone, Copy, Debug)]
pub enum Tokens<'a> {
    /// The one of this id.
    Id(&'a str),
    /// All of this user of this account.
    User {
        /// The account's name.
        account: &'a str,
        /// The user's name.
        user: &'a str,
    },
}

impl Store {
    /// Whether there is any account, or was one lately.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn has_accounts(&self) -> Result<bool, sqlx::Error> {
        sqlx::query_scalar("select exists (select from accounts)").fetch_one(self.pool()).await
    }

    /// All accounts, by name.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn accounts(&self) -> Result<Vec<AccountRow>, sqlx::Error> {
        sqlx::query_as(
            "select name, plan, decision_precision, disabled, moving is not null as moving, created_at from accounts
             where deleted_at is null order by name collate \"C\"",
        )
        .fetch_all(self.pool())
        .await
    }

    /// Refuses the tokens of an account, or takes them again. One that was left on its way to another database is in force
    /// here again when it is enabled.
    ///
    /// # Errors
    /// When there is no such account.
    pub async fn set_disabled(&self, name: &str, disabled: bool) -> Result<(), AccountError> {
        let set = sqlx::query(
            "update accounts set disabled = $2, moving = case when $2 then moving else nullif(moving, 'AWAY') end
             where name = $1 and deleted_at is null",
        )
        .bind(name)
        .bind(disabled)
        .execute(self.pool())
        .await?;
        if set.rows_affected() == 0 { Err(AccountError::UnknownAccount(name.to_owned())) } else { Ok(()) }
    }

    /// Sets how much an account may use. What it has used this month counts.
    ///
    /// # Errors
    /// When there is no such account.
    pub async fn set_plan(&self, name: &str, plan: Plan) -> Result<(), AccountError> {
        let set = sqlx::query("update accounts set plan = $2 where name = $1 and deleted_at is null")
            .bind(name)
            .bind(plan.name())
            .execute(self.pool())
            .await?;
        if set.rows_affected() == 0 { Err(AccountError::UnknownAccount(name.to_owned())) } else { Ok(()) }
    }

    /// The tokens of one account or of all, ended ones too, by account, user and age.
    ///
    /// # Errors
    /// When there is no such account.
    pub async fn tokens(&self, account: Option<&str>) -> Result<Vec<TokenListing>, AccountError> {
        let tokens: Vec<TokenListing> = sqlx::query_as(
            "select token_id, name as account, user_name, level, tokens.created_at, expires_at, last_used_at, revoked_at
             from tokens join accounts using (account_id) where $1::text is null or name = $1
             order by name collate \"C\", user_name collate \"C\", tokens.created_at, token_id",
        )
        .bind(account)
        .fetch_all(self.pool())
        .await?;
        if let Some(name) = account.filter(|_| tokens.is_empty()) {
            self.account_id(name).await?;
        }
        Ok(tokens)
    }

    /// The tokens of an account that are in force, by user and age; at most [`MAX_TOKENS_LISTED`].
    ///
    /// # Errors
    /// When the database fails.
    pub async fn tokens_in_force(&self, account: i64) -> Result<Vec<TokenListing>, StoreError> {
        let tokens = sqlx::query_as(
            "select token_id, name as account, user_name, level, tokens.created_at, expires_at, last_used_at, revoked_at
             from tokens join accounts using (account_id)
             where account_id = $1 and revoked_at is null and (expires_at is null or expires_at > now())
             order by user_name collate \"C\", tokens.created_at, token_id limit $2",
        )
        .bind(account)
        .bind(MAX_TOKENS_LISTED)
        .fetch_all(self.pool())
        .await?;
        Ok(tokens)
    }

    /// Ends tokens by what is known of them, and answers how many were in force until now.
    ///
    /// # Errors
    /// When there is none of that kind, ended or not.
    pub async fn revoke_tokens(&self, which: Tokens<'_>) -> Result<u64, AccountError> {
        let (id, account, user) = match which {
            Tokens::Id(id) => (Some(id), None, None),
            Tokens::User { account, user } => (None, Some(account), Some(user)),
        };
        let (found, ended): (i64, i64) = sqlx::query_as(
            "with meant as (
                 select token_hash, revoked_at from tokens join accounts using (account_id)
                 where token_id = $1 or (name = $2 and user_name = $3)
             ), ended as (
                 update tokens set revoked_at = now() from meant
                 where tokens.token_hash = meant.token_hash and tokens.revoked_at is null
                 returning 1
             )
             select (select count(*) from meant), (select count(*) from ended)",
        )
        .bind(id)
        .bind(account)
        .bind(user)
        .fetch_one(self.pool())
        .await?;
        if found == 0 { Err(AccountError::UnknownToken) } else { Ok(ended.unsigned_abs()) }
    }

    /// Deletes an account with everything that is known of it, and answers how many products it had.
    ///
    /// From the first moment its tokens are unknown and its name is free. The rest goes in small transactions, so that
    /// a running service is not held up; begun again after an interruption by [`Store::erase_deleted`].
    ///
    /// # Errors
    /// When there is no such account, or it is being moved to another database.
    pub async fn delete_account(&self, name: &str) -> Result<u64, AccountError> {
        let mut tx = self.begin_limited(&[]).await?;
        let deleted: Option<(i64, Option<String>)> = sqlx::query_as(
            "update accounts set disabled = true, deleted_at = now(), name = 'deleted ' || gen_random_uuid()
             where name = $1 and deleted_at is null returning account_id, moving",
        )
        .bind(name)
        .fetch_optional(&mut *tx)
        .await?;
        let account = match deleted {
            None => return Err(AccountError::UnknownAccount(name.to_owned())),
            Some((_, Some(moving))) if moving == "AWAY" => return Err(AccountError::Moving(name.to_owned())),
            Some((account, moving)) => {
                // The objects of a copy are those of the account that it was made of.
                if moving.is_some() {
                    moving::forget_pictures(&mut tx, account).await?;
                }
                account
            }
        };
        sqlx::query("delete from tokens where account_id = $1").bind(account).execute(&mut *tx).await?;
        tx.commit().await?;
        self.erase(account).await
    }

    /// Erases again what was written for deleted accounts by requests that were under way, and what an interrupted
    /// deletion left. Answers how many accounts are gone for good, their rows too.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn erase_deleted(&self) -> Result<u64, StoreError> {
        let accounts: Vec<i64> = sqlx::query_scalar("select account_id from accounts where deleted_at is not null")
            .fetch_all(self.pool())
            .await?;
        for account in accounts {
            match self.erase(account).await {
                Ok(_) => {}
                Err(AccountError::Database(error)) => return Err(error.into()),
                Err(error) => tracing::warn!(%error, "a deleted account is not erased yet"),
            }
        }
        let gone = sqlx::query("delete from accounts where deleted_at < now() - interval '1 day'")
            .execute(self.pool())
            .await?;
        Ok(gone.rows_affected())
    }

    async fn account_id(&self, name: &str) -> Result<i64, AccountError> {
        let account: Option<i64> = sqlx::query_scalar("select account_id from accounts where name = $1")
            .bind(name)
            .fetch_optional(self.pool())
            .await?;
        account.ok_or_else(|| AccountError::UnknownAccount(name.to_owned()))
    }

    /// Erases all rows of an account but its own, and answers how many products there were.
    pub(super) async fn erase(&self, account: i64) -> Result<u64, AccountError> {
        let tables = self.tables_of_accounts().await?;
        let mut products = 0;
        for _ in 0..MAX_ROUNDS {
            let erased = self.erase_products(account).await?;
            products += erased;
            let mut rows = erased;
            for table in &tables {
                rows += self.erase_rows(table, account).await?;
            }
            if rows == 0 {
                break;
            }
        }
        Ok(products)
    }

    /// The tables with rows of accounts, in the order in which they can be emptied: those that refer to others first.
    async fn tables_of_accounts(&self) -> Result<Vec<String>, sqlx::Error> {
        sqlx::query_scalar(
            "select relname::text from pg_class
             where relkind in ('r', 'p') and relnamespace = current_schema()::regnamespace and relname <> all($1)
               and exists (select from pg_attribute where attrelid = pg_class.oid and attname = 'account_id'
                           and not attisdropped)
             order by (select count(*) from pg_constraint where contype = 'f' and confrelid = pg_class.oid), relname",
        )
        .bind(APART)
        .fetch_all(self.pool())
        .await
    }

    /// Erases products with what hangs on them; their objects become orphans, and the search engine is told.
    async fn erase_products(&self, account: i64) -> Result<u64, sqlx::Error> {
        let mut products = 0;
        loop {
            let erased: i64 = sqlx::query_scalar(
                "with part as materialized (
                     select product_key from products where account_id = $1 order by shop_id, product_id limit $2
                     for update
                 ), pictured as (
                     insert into orphaned_objects (object_key, place)
                     select object_key, place from pictures join part using (product_key) on conflict do nothing
                 ), gone as (
                     delete from products using part where products.product_key = part.product_key
                     returning products.product_key, version
                 ), told as (
                     insert into search_outbox (account_id, product_key, version, deleted)
                     select $1, product_key, version + 1, true from gone
                 )
                 select count(*) from gone",
            )
            .bind(account)
            .bind(PRODUCTS_AT_ONCE)
            .fetch_one(self.pool())
            .await?;
            products += erased.unsigned_abs();
            if erased < PRODUCTS_AT_ONCE {
                return Ok(products);
            }
        }
    }

    async fn erase_rows(&self, table: &str, account: i64) -> Result<u64, sqlx::Error> {
        // The name is one that the catalogue gave.
        let statement = format!(
            "delete from \"{}\" where ctid = any(array(select ctid from \"{0}\" where account_id = $1 limit $2))",
            table.replace('"', "\"\"")
        );
        let mut rows = 0;
        loop {
            let erased = sqlx::query(AssertSqlSafe(statement.clone()))
                .bind(account)
                .bind(ROWS_AT_ONCE)
                .execute(self.pool())
                .await?
                .rows_affected();
            rows += erased;
            if erased < ROWS_AT_ONCE.unsigned_abs() {
                return Ok(rows);
            }
        }
    }
}
