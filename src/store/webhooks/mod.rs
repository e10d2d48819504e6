//! Webhooks and their deliveries. `rounds` makes deliveries of changes and notes what became of them.

mod rounds;

use chrono::{DateTime, Utc};
use sqlx::QueryBuilder;
use sqlx_macros::FromRow;
use uuid::Uuid;

use crate::domain::{Fault, Taxonomy};
use crate::store::journal::{stored_taxonomy, taxonomy_from_stored};
use crate::store::pages::{Page, Position};
use crate::store::{Store, StoreError};

pub use rounds::{Attempt, Due, LEASE, MAX_ROUNDS_OF_ACCOUNT, Noted, Round};

/// Most webhooks of an account.
pub const MAX_WEBHOOKS: i64 = 20;

/// A webhook.
#[derive(Clone, Debug, FromRow)]
pub struct Webhook {
    /// Its identity.
    pub webhook_id: Uuid,
    /// Where it sends.
    pub url: String,
    /// Types of changes that it sends.
    pub types: Vec<String>,
    taxonomy: Option<i16>,
    /// When it was disabled, if it is.
    pub disabled_at: Option<DateTime<Utc>>,
    /// Why.
    pub disabled_reason: Option<String>,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When a client last changed it.
    pub updated_at: DateTime<Utc>,
    /// Deliveries that wait.
    pub pending: i64,
    /// When the last attempt was made.
    pub last_attempt_at: Option<DateTime<Utc>>,
    /// What the last failure was, while deliveries fail.
    pub last_error: Option<String>,
}

impl Webhook {
    /// The taxonomy to which it keeps.
    pub fn taxonomy(&self) -> Option<Taxonomy> {
        self.taxonomy.map(taxonomy_from_stored)
    }
}

/// What a client says of a webhook.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Where it sends.
    pub url: String,
    /// Types of changes that it sends.
    pub types: Vec<String>,
    /// The taxonomy to which it keeps.
    pub taxonomy: Option<Taxonomy>,
}

/// A change of a webhook: what is none stays.
#[derive(Clone, Debug, Default)]
pub struct WebhookChange {
    /// Where it sends.
    pub url: Option<String>,
    /// Types of changes that it sends.
    pub types: Option<Vec<String>>,
    /// The taxonomy to which it keeps; none inside for all.
    pub taxonomy: Option<Option<Taxonomy>>,
    /// Whether it sends.
    pub enabled: Option<bool>,
}

/// How far a delivery is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It waits to be made or to be tried again.
    Pending,
    /// The receiver took it.
    Delivered,
    /// It was given up, since the receiver refused it for three days while it took others.
    Failed,
}

/// A delivery.
#[derive(Clone, Debug, FromRow)]
pub struct Delivery {
    /// The sequence of its change.
    pub sequence: i64,
    /// The same at every attempt.
    pub message_id: Uuid,
    /// The product.
    pub product_id: String,
    /// The type of the change.
    #[sqlx(rename = "type")]
    pub kind: String,
    /// When the receiver took it, or it was given up.
    ended_at: Option<DateTime<Utc>>,
    given_up: bool,
    /// Attempts made.
    pub attempts: i32,
    /// When the last one was made.
    pub last_attempt_at: Option<DateTime<Utc>>,
    /// When the next one may be made.
    pub next_attempt_at: DateTime<Utc>,
    /// The status of the last answer.
    pub last_status: Option<i16>,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// When it was made.
    pub created_at: DateTime<Utc>,
}

impl Delivery {
    /// How far it is.
    pub fn stage(&self) -> Stage {
        match self.ended_at {
            None => Stage::Pending,
            Some(_) if self.given_up => Stage::Failed,
            Some(_) => Stage::Delivered,
        }
    }
}

const COLUMNS: &str = "webhook_id, url, types, taxonomy, disabled_at, disabled_reason, created_at, updated_at,
    (select count(*) from webhook_deliveries
     where webhook_deliveries.webhook_id = webhooks.webhook_id and delivered_at is null) as pending,
    (select last_attempt_at from webhook_deliveries
     where webhook_deliveries.webhook_id = webhooks.webhook_id and last_attempt_at is not null
     order by last_attempt_at desc limit 1) as last_attempt_at,
    (select last_error from webhook_deliveries
     where webhook_deliveries.webhook_id = webhooks.webhook_id and delivered_at is null and last_error is not null
     order by last_attempt_at desc limit 1) as last_error";

fn unknown_webhook(id: &str) -> StoreError {
    StoreError::not_found(Fault::at("webhookId", "UNKNOWN_WEBHOOK", format!("there is no webhook \"{id}\"")))
}

impl Store {
    /// Makes a webhook, which sends what happens from now on.
    ///
    /// # Errors
    /// [`StoreError::Unprocessable`] when the account has as many as it may have.
    pub async fn create_webhook(&self, account: i64, wanted: &Wanted, secret: &[u8]) -> Result<Webhook, StoreError> {
        let mut tx = self.begin().await?;
        // Two that are made at once are counted one after the other.
        sqlx::query("select from accounts where account_id = $1 for update").bind(account).execute(&mut *tx).await?;
        let count: i64 = sqlx::query_scalar("select count(*) from webhooks where account_id = $1")
            .bind(account)
            .fetch_one(&mut *tx)
            .await?;
        if count >= MAX_WEBHOOKS {
            let message = format!("an account has at most {MAX_WEBHOOKS} webhooks");
            return Err(StoreError::Unprocessable(vec![Fault::of("TOO_MANY", message)]));
        }
        let id = Uuid::new_v4();
        // The place of the feed at this moment: what commits from here on has a higher sequence, as has what is committed
        // and not told yet because of transactions that still run.
        sqlx::query(
            "insert into webhooks (webhook_id, account_id, url, types, taxonomy, secret, position)
             values ($1, $2, $3, $4, $5, $6, journal_horizon() - 1)",
        )
        .bind(id)
        .bind(account)
        .bind(&wanted.url)
        .bind(&wanted.types)
        .bind(wanted.taxonomy.map(stored_taxonomy))
        .bind(secret)
        .execute(&mut *tx)
        .await?;
        let made = one(&mut tx, account, id).await?;
        tx.commit().await?;
        Ok(made)
    }

    /// The webhooks of an account, oldest first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn webhooks(&self, account: i64) -> Result<Vec<Webhook>, StoreError> {
        let mut query = QueryBuilder::new("select ");
        query.push(COLUMNS).push(" from webhooks where account_id = ").push_bind(account);
        query.push(" order by created_at, webhook_id");
        Ok(query.build_query_as().fetch_all(self.pool()).await?)
    }

    /// One webhook.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn webhook(&self, account: i64, id: Uuid) -> Result<Webhook, StoreError> {
        let mut tx = self.begin().await?;
        let found = one(&mut tx, account, id).await;
        tx.rollback().await?;
        found
    }

    /// Changes a webhook. One that is enabled again goes on where it stopped, at once.
    ///
    /// Its lease is taken back: a round that goes by what was wanted before goes past no further change, notes nothing
    /// of what becomes of its attempts, and begins no more of them.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn change_webhook(&self, account: i64, id: Uuid, change: &WebhookChange) -> Result<Webhook, StoreError> {
        let mut tx = self.begin().await?;
        let changed = sqlx::query(
            "update webhooks set url = coalesce($3, url), types = coalesce($4, types),
                    taxonomy = case when $5 then $6 else taxonomy end,
                    disabled_at = case when $7 then null when not $7 then coalesce(disabled_at, now()) else disabled_at end,
                    disabled_reason = case when $7 then null
                                           when not $7 then coalesce(disabled_reason, 'disabled by the account')
                                           else disabled_reason end,
                    lease = null, leased_until = null, failures = 0, next_round_at = now(), updated_at = now()
             where account_id = $1 and webhook_id = $2",
        )
        .bind(account)
        .bind(id)
        .bind(&change.url)
        .bind(&change.types)
        .bind(change.taxonomy.is_some())
        .bind(change.taxonomy.flatten().map(stored_taxonomy))
        .bind(change.enabled)
        .execute(&mut *tx)
        .await?;
        if changed.rows_affected() == 0 {
            return Err(unknown_webhook(&id.to_string()));
        }
        // Three days begin anew for what waits.
        sqlx::query(
            "update webhook_deliveries set first_attempt_at = null, overtaken_at = null, next_attempt_at = now()
             where webhook_id = $1 and delivered_at is null",
        )
        .bind(id)
        .execute(&mut *tx)
        .await?;
        let changed = one(&mut tx, account, id).await?;
        tx.commit().await?;
        Ok(changed)
    }

    /// Deletes a webhook and what it had yet to send.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn delete_webhook(&self, account: i64, id: Uuid) -> Result<(), StoreError> {
        let mut tx = self.begin().await?;
        let deleted = sqlx::query("delete from webhooks where account_id = $1 and webhook_id = $2")
            .bind(account)
            .bind(id)
            .execute(&mut *tx)
            .await?;
        if deleted.rows_affected() == 0 {
            return Err(unknown_webhook(&id.to_string()));
        }
        Ok(tx.commit().await?)
    }

    /// A page of deliveries, the latest first; only those at a stage, if asked for.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when there is no such webhook.
    pub async fn deliveries(
        &self,
        account: i64,
        id: Uuid,
        stage: Option<Stage>,
        position: &Position<i64>,
        size: usize,
    ) -> Result<Page<Delivery>, StoreError> {
        self.webhook(account, id).await?;
        let mut query = QueryBuilder::new(
            "select sequence, message_id, product_id, type, delivered_at as ended_at, given_up, attempts,
                    last_attempt_at, next_attempt_at, last_status, last_error, created_at
             from webhook_deliveries where webhook_id = ",
        );
        query.push_bind(id);
        match stage {
            Some(Stage::Pending) => query.push(" and delivered_at is null"),
            Some(Stage::Delivered) => query.push(" and delivered_at is not null and not given_up"),
            Some(Stage::Failed) => query.push(" and given_up"),
            None => &mut query,
        };
        match position {
            Position::Start => query.push(" order by sequence desc"),
            Position::After(at) => query.push(" and sequence < ").push_bind(*at).push(" order by sequence desc"),
            Position::Before(at) => query.push(" and sequence > ").push_bind(*at).push(" order by sequence"),
        };
        query.push(" limit ").push_bind(size as i64 + 1);
        let rows = query.build_query_as().fetch_all(self.pool()).await?;
        Ok(Page::from_rows(rows, size, position))
    }
}

async fn one(tx: &mut crate::store::Tx, account: i64, id: Uuid) -> Result<Webhook, StoreError> {
    let mut query = QueryBuilder::new("select ");
    query.push(COLUMNS).push(" from webhooks where account_id = ").push_bind(account);
    query.push(" and webhook_id = ").push_bind(id);
    let found = query.build_query_as().fetch_optional(&mut **tx).await?;
    found.ok_or_else(|| unknown_webhook(&id.to_string()))
}
