//! One account taken to another database, beside services that run on both.
//!
//! The account that is in force is the truth until the last step. Requests for it are asked to come again (503) from the
//! first step on; when those under way have ended, it is copied as it is at one moment, in small transactions, so that
//! the feed of other accounts there does not wait. What jobs do here after that moment they do there again, from the
//! queues that are copied too. Then it is given up here in one transaction, put in force there, and erased here.
//! A copy that is not complete is worth nothing: whoever begins again removes it and begins at the beginning.
//!
//! Keys of products and sequences of the journal are those of a database. Keys get a stretch of their own there, and keep
//! their distances; sequences stay as they are, so that cursors of clients hold: the other database goes on above them.

mod copy;

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection};

use crate::store::Store;
use crate::store::accounts::AccountError;
use crate::store::journal::AUTO_ASSIGNMENT;
use crate::store::limits::{UNLIMITED, limit};
use crate::store::memory::MEMORY;
use crate::store::rule_changes::VAT_RULES;
use copy::{Place, copy_table};

/// Tables that are copied, in the order in which that can be done: the journal before the assignments, so that its trigger
/// finds nothing to remember again, and what jobs wait for last.
pub const COPIED: [&str; 19] = [
    "journal",
    "merchant_product_attributes",
    "assignment_labels",
    "products",
    "assignments",
    "pictures",
    "usage",
    "idempotency_keys",
    "idempotency_usage",
    "assignment_actions",
    "assignment_action_items",
    "memory_decisions",
    "product_words",
    "tokens",
    "webhooks",
    "webhook_deliveries",
    "auto_parked",
    "memory_lessons",
    "auto_queue",
];
/// Tables with rows of accounts that follow from the others: counts by triggers, search by the queue that it gets.
pub const MADE_ANEW: [&str; 6] =
    ["accounts", "assignment_counts", "assignment_count_changes", "search_outbox", "search_documents", "search_parked"];

/// Products whose search documents are asked for in one transaction.
const PRODUCTS_AT_ONCE: i64 = 20_000;
/// Pause between two looks at what has yet to end.
const ROUND: Duration = Duration::from_secs(1);
/// Who writes to the journal without being asked by a person.
const SERVICES: [&str; 3] = [AUTO_ASSIGNMENT, VAT_RULES, MEMORY];

/// What operators say of an account, which leaves no entry in the journal: its plan, its tokens and what it remembers.
const SAID_BY_OPERATORS: &str = "
    select md5(concat_ws('|',
        (select concat_ws(',', plan, decision_precision, disabled) from accounts where account_id = $1),
        (select string_agg(concat_ws(',', encode(token_hash, 'hex'), level, expires_at, revoked_at), ';' order by token_hash)
         from tokens where account_id = $1),
        (select concat_ws(',', count(*), max(changed_in::text::bigint))
         from memory_decisions where account_id = $1 and verdict <> 0)))";

/// What is told by a copy of the state in which it was taken.
struct Taken {
    /// The sequence from which on the journal is looked at again.
    horizon: i64,
    /// How many entries people have behind it.
    by_people: i64,
    /// [`SAID_BY_OPERATORS`].
    by_operators: String,
}

/// The account as one of the two databases has it.
struct Found {
    id: i64,
    moving: Option<String>,
}

impl Store {
    /// Moves an account to another database, and answers how many products it has. `settle` is how long requests that
    /// were under way get to end, and as long again what people have begun by them: longer than any request may take, or
    /// nothing when no service runs. `told` hears of every table.
    ///
    /// After an error the account is in force where it was, unless the error came between giving it up here and putting
    /// it in force there. In every case, and after the program was killed, the same move goes on or begins again.
    ///
    /// # Errors
    /// When there is no such account, the name is taken there, somebody wrote to the account all the same, or a database
    /// fails.
    pub async fn move_account(
        &self,
        name: &str,
        target: &Store,
        settle: Duration,
        mut told: impl FnMut(&str, u64),
    ) -> Result<u64, AccountError> {
        // Held until this is over or the program dead: another move would take the copy for one that was left behind.
        let mut turn = self.begin_limited(&UNLIMITED).await?;
        let is_ours: bool = sqlx::query_scalar("select pg_try_advisory_xact_lock(hashtextextended('move ' || $1, 0))")
            .bind(name)
            .fetch_one(&mut *turn)
            .await?;
        if !is_ours {
            return Err(AccountError::Moving(name.to_owned()));
        }
        let (here, there) = (self.find(name).await?, target.find(name).await?);
        let moving = |found: &Option<Found>| found.as_ref().and_then(|found| found.moving.clone());
        let account = match (&here, moving(&here).as_deref(), &there, moving(&there).as_deref()) {
            (None, _, Some(copy), Some("COPIED")) => return target.put_in_force(copy.id).await,
            (None, ..) => return Err(AccountError::UnknownAccount(name.to_owned())),
            (_, Some("HERE" | "COPIED"), ..) => return Err(AccountError::Moving(name.to_owned())),
            // A complete copy is the account itself where the one here is another that was made since.
            (_, None, Some(_), Some("COPIED")) | (_, _, Some(_), None | Some("AWAY")) => {
                return Err(AccountError::Exists(name.to_owned()));
            }
            (Some(account), ..) => account.id,
        };
        if there.is_some() {
            target.delete_account(name).await?;
        }
        self.set_moving(account, Some("AWAY")).await?;
        let copied = async {
            tokio::time::sleep(settle).await;
            self.wait_for_actions(account, settle).await?;
            self.copy(account, target, &mut told).await
        };
        let (copy, taken) = match copied.await {
            Ok(copied) => copied,
            Err(error) => return Err(self.stay(account, name, target, error).await),
        };
        match self.give_up(account, name, &taken).await {
            Ok(()) => {}
            Err(error @ AccountError::Changed(_)) => return Err(self.stay(account, name, target, error).await),
            // It may be done all the same; nobody is told that it is not.
            Err(error) => return Err(error),
        }
        let products = target.put_in_force(copy).await?;
        self.erase(account).await?;
        turn.rollback().await?;
        Ok(products)
    }

    async fn find(&self, name: &str) -> Result<Option<Found>, sqlx::Error> {
        let found: Option<(i64, Option<String>)> =
            sqlx::query_as("select account_id, moving from accounts where name = $1 and deleted_at is null")
                .bind(name)
                .fetch_optional(self.pool())
                .await?;
        Ok(found.map(|(id, moving)| Found { id, moving }))
    }

    async fn set_moving(&self, account: i64, moving: Option<&str>) -> Result<(), sqlx::Error> {
        let set = sqlx::query("update accounts set moving = $2 where account_id = $1");
        set.bind(account).bind(moving).execute(self.pool()).await?;
        Ok(())
    }

    /// Undoes a move as far as that can be done now, and answers why it was none.
    async fn stay(&self, account: i64, name: &str, target: &Store, error: AccountError) -> AccountError {
        let undone = async {
            match target.delete_account(name).await {
                Ok(_) | Err(AccountError::UnknownAccount(_)) => {}
                Err(error) => return Err(error),
            }
            Ok(self.set_moving(account, None).await?)
        };
        if let Err(error) = undone.await {
            tracing::warn!(%error, "the account waits for the same move to be begun again, or for account enable");
        }
        error
    }

    /// Waits for the work that people have begun and jobs do: the move fails when it goes on behind the copy.
    async fn wait_for_actions(&self, account: i64, longest: Duration) -> Result<(), sqlx::Error> {
        let began = Instant::now();
        loop {
            let is_open: bool = sqlx::query_scalar(
                "select exists (select from assignment_actions where account_id = $1 and state = 'RUNNING')
                     or exists (select from assignment_labels where account_id = $1 and leaving)",
            )
            .bind(account)
            .fetch_one(self.pool())
            .await?;
            if !is_open || began.elapsed() >= longest {
                return Ok(());
            }
            tokio::time::sleep(ROUND).await;
        }
    }

    /// Copies an account as it is now. Answers its id there, and the state in which it was taken.
    async fn copy(
        &self,
        account: i64,
        target: &Store,
        told: &mut impl FnMut(&str, u64),
    ) -> Result<(i64, Taken), AccountError> {
        // A connection of its own: one on which a copy was broken off is of no use to anybody else.
        let mut snapshot = self.pool().connect_options().connect().await?;
        // The level has to be set before the first query, and limits are set by one.
        sqlx::raw_sql("begin isolation level repeatable read, read only").execute(&mut snapshot).await?;
        // It lies idle while the other database is made ready.
        limit(&mut snapshot, &UNLIMITED).await?;
        let (last_key, transaction, horizon): (i64, i64, i64) = sqlx::query_as(
            "select last_value, base + pg_snapshot_xmax(pg_current_snapshot())::text::bigint, journal_horizon()
             from products_product_key_seq, journal_base",
        )
        .fetch_one(&mut snapshot)
        .await?;
        let taken = Taken {
            horizon,
            by_people: written_by_people(&mut snapshot, account, horizon).await?,
            by_operators: sqlx::query_scalar(SAID_BY_OPERATORS).bind(account).fetch_one(&mut snapshot).await?,
        };
        let added = target.make_room(last_key, transaction).await?;
        let (name, plan, precision, disabled, created_at): (String, String, i16, bool, DateTime<Utc>) = sqlx::query_as(
            "select name, plan, decision_precision, disabled, created_at from accounts where account_id = $1",
        )
        .bind(account)
        .fetch_one(&mut snapshot)
        .await?;
        let copy: i64 = sqlx::query_scalar(
            "insert into accounts (name, plan, decision_precision, disabled, created_at, moving)
             values ($1, $2, $3, $4, $5, 'HERE') returning account_id",
        )
        .bind(&name)
        .bind(plan)
        .bind(precision)
        .bind(disabled)
        .bind(created_at)
        .fetch_one(target.pool())
        .await?;
        let place = Place { account: copy, added };
        for table in COPIED {
            told(table, copy_table(&mut snapshot, account, target, table, place).await?);
        }
        snapshot.close().await?;
        target.index_all(copy).await?;
        target.set_moving(copy, Some("COPIED")).await?;
        Ok((copy, taken))
    }

    /// Sets a stretch of keys aside, as long as all that there are elsewhere, and sees to it that what is written from now
    /// on has a higher sequence than anything that was written elsewhere. Nobody takes a key, and nobody has half of a
    /// journal's entries written, while this is done. Answers what is to be added to keys.
    async fn make_room(&self, last_key: i64, transaction: i64) -> Result<i64, sqlx::Error> {
        let mut tx = self.begin_alone("products, journal").await?;
        let added: i64 = sqlx::query_scalar("select nextval('products_product_key_seq')").fetch_one(&mut *tx).await?;
        sqlx::query("select setval('products_product_key_seq', $1 + $2)")
            .bind(added)
            .bind(last_key)
            .execute(&mut *tx)
            .await?;
        sqlx::query("update journal_base set base = greatest(base, $1 + 1 - pg_current_xact_id()::text::bigint)")
            .bind(transaction)
            .execute(&mut *tx)
            .await?;
        tx.commit().await?;
        Ok(added)
    }

    /// Has search documents made of all products of an account.
    async fn index_all(&self, account: i64) -> Result<(), sqlx::Error> {
        let mut after = i64::MIN;
        loop {
            let last: Option<i64> = sqlx::query_scalar(
                "with part as (
                     select product_key, version from products where account_id = $1 and product_key > $2
                     order by product_key limit $3
                 ), told as (
                     insert into search_outbox (account_id, product_key, version, deleted)
                     select $1, product_key, version, false from part
                 )
                 select max(product_key) from part",
            )
            .bind(account)
            .bind(after)
            .bind(PRODUCTS_AT_ONCE)
            .fetch_one(self.pool())
            .await?;
            match last {
                None => return Ok(()),
                Some(key) => after = key,
            }
        }
    }

    /// Gives the account up in one transaction, unless somebody wrote to it after it was copied, or an operator said
    /// something else of it. Pictures stay in their store: the other database names them now.
    async fn give_up(&self, account: i64, name: &str, taken: &Taken) -> Result<(), AccountError> {
        let mut tx = self.begin_limited(&UNLIMITED).await?;
        for locked in ["accounts", "tokens"] {
            let lock = format!("select from {locked} where account_id = $1 for update");
            sqlx::query(AssertSqlSafe(lock)).bind(account).execute(&mut *tx).await?;
        }
        let by_operators: String = sqlx::query_scalar(SAID_BY_OPERATORS).bind(account).fetch_one(&mut *tx).await?;
        let given_up = sqlx::query(
            "update accounts set disabled = true, deleted_at = now(), name = 'moved ' || gen_random_uuid()
             where account_id = $1 and moving = 'AWAY' and deleted_at is null",
        )
        .bind(account)
        .execute(&mut *tx)
        .await?;
        if given_up.rows_affected() == 0
            || by_operators != taken.by_operators
            || written_by_people(&mut tx, account, taken.horizon).await? != taken.by_people
        {
            return Err(AccountError::Changed(name.to_owned()));
        }
        sqlx::query("delete from tokens where account_id = $1").bind(account).execute(&mut *tx).await?;
        forget_pictures(&mut tx, account).await?;
        Ok(tx.commit().await?)
    }

    /// Serves the account from now on, and answers how many products it has.
    async fn put_in_force(&self, account: i64) -> Result<u64, AccountError> {
        let mut tx = self.begin_limited(&[]).await?;
        sqlx::query("update webhooks set next_round_at = now() where account_id = $1 and next_round_at = 'infinity'")
            .bind(account)
            .execute(&mut *tx)
            .await?;
        sqlx::query("update accounts set moving = null where account_id = $1").bind(account).execute(&mut *tx).await?;
        // The rules by which assignments were judged there may be others than those by which all was judged here.
        sqlx::query("delete from rule_state").execute(&mut *tx).await?;
        let products: i64 = sqlx::query_scalar("select count(*) from products where account_id = $1")
            .bind(account)
            .fetch_one(&mut *tx)
            .await?;
        tx.commit().await?;
        Ok(products.unsigned_abs())
    }
}

/// Takes the pictures of an account from its products, and leaves the objects where they are.
pub(super) async fn forget_pictures(connection: &mut PgConnection, account: i64) -> Result<(), sqlx::Error> {
    sqlx::query(
        "delete from pictures using products
         where pictures.product_key = products.product_key and products.account_id = $1",
    )
    .bind(account)
    .execute(connection)
    .await?;
    Ok(())
}

/// Entries of the journal from a sequence on that no service made by itself.
async fn written_by_people(connection: &mut PgConnection, account: i64, from: i64) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar(
        "select count(*) from journal where account_id = $1 and sequence >= $2 and actor <> all($3::text[])",
    )
    .bind(account)
    .bind(from)
    .bind(SERVICES.as_slice())
    .fetch_one(connection)
    .await
}
