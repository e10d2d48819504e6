//! What happened to products and assignments, written in the transaction that does it.

use uuid::Uuid;

use crate::domain::Taxonomy;
use crate::store::{Store, StoreError, Tx};

/// Who auto-assignment is in the history.
pub const AUTO_ASSIGNMENT: &str = "auto-assignment";

/// The product that something happened to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Subject<'a> {
    pub key: i64,
    pub id: &'a str,
    /// Its shop as it is stored.
    pub shop: i64,
}

/// One thing that happened.
#[derive(Clone, Debug, Default)]
pub(super) struct Entry<'a> {
    pub product: Subject<'a>,
    /// The assignment's taxonomy; none when it is the product that changed.
    pub taxonomy: Option<Taxonomy>,
    pub action: &'a str,
    pub actor: &'a str,
    pub status: Option<&'a str>,
    pub strategy: Option<&'a str>,
    pub product_class: Option<String>,
    pub version: i64,
    /// How sure auto-assignment was of the class in force.
    pub confidence: Option<f32>,
    /// What the person wrote beside it.
    pub comment: Option<&'a str>,
    /// The action that it was part of.
    pub action_id: Option<Uuid>,
    /// The model that decided.
    pub model_version: Option<&'a str>,
    /// The labels attached or detached.
    pub labels: Option<&'a [String]>,
}

/// Writes all entries of a transaction; called once in it, since entries are numbered from 0.
pub(super) async fn record(tx: &mut Tx, account: i64, entries: &[Entry<'_>]) -> Result<(), StoreError> {
    record_for_accounts(tx, &vec![account; entries.len()], entries).await
}

/// As [`record`], behind entries of the same transaction that were written otherwise.
pub(super) async fn record_after(
    tx: &mut Tx,
    account: i64,
    written: usize,
    entries: &[Entry<'_>],
) -> Result<(), StoreError> {
    insert(tx, &vec![account; entries.len()], written, entries).await
}

/// As [`record`], for entries of several accounts.
pub(super) async fn record_for_accounts(
    tx: &mut Tx,
    accounts: &[i64],
    entries: &[Entry<'_>],
) -> Result<(), StoreError> {
    insert(tx, accounts, 0, entries).await
}

async fn insert(tx: &mut Tx, accounts: &[i64], written: usize, entries: &[Entry<'_>]) -> Result<(), StoreError> {
    fn column<'a, T>(entries: &[Entry<'a>], value: impl Fn(&Entry<'a>) -> T) -> Vec<T> {
        entries.iter().map(value).collect()
    }
    if entries.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "insert into journal (sequence, account_id, product_key, product_id, shop_id, taxonomy, action, actor, status,
                              strategy, product_class, version, confidence, comment, action_id, model_version, labels)
         select start + ordinal - 1, account_id, product_key, product_id, shop_id, taxonomy, action, actor, status,
                strategy, product_class, version, confidence, comment, action_id, model_version,
                string_to_array(labels, ',')
         from unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::smallint[], $6::text[], $7::text[],
                     $8::text[], $9::text[], $10::text[], $11::bigint[], $12::real[], $13::text[], $14::uuid[],
                     $15::text[], $16::text[]) with ordinality
              as entry (account_id, product_key, product_id, shop_id, taxonomy, action, actor, status, strategy,
                        product_class, version, confidence, comment, action_id, model_version, labels, ordinal),
              (select journal_sequence($17)) as first (start)",
    )
    .bind(accounts)
    .bind(column(entries, |entry| entry.product.key))
    .bind(column(entries, |entry| entry.product.id))
    .bind(column(entries, |entry| entry.product.shop))
    .bind(column(entries, |entry| entry.taxonomy.map(stored_taxonomy)))
    .bind(column(entries, |entry| entry.action))
    .bind(column(entries, |entry| entry.actor))
    .bind(column(entries, |entry| entry.status))
    .bind(column(entries, |entry| entry.strategy))
    .bind(column(entries, |entry| entry.product_class.clone()))
    .bind(column(entries, |entry| entry.version))
    .bind(column(entries, |entry| entry.confidence))
    .bind(column(entries, |entry| entry.comment))
    .bind(column(entries, |entry| entry.action_id))
    .bind(column(entries, |entry| entry.model_version))
    // No label has a comma.
    .bind(column(entries, |entry| entry.labels.map(|labels| labels.join(","))))
    .bind(i64::try_from(written).unwrap_or(i64::MAX))
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// The number under which a taxonomy is stored.
pub(super) fn stored_taxonomy(taxonomy: Taxonomy) -> i16 {
    taxonomy.index() as i16
}

/// The taxonomy of a stored number.
pub(super) fn taxonomy_from_stored(number: i16) -> Taxonomy {
    Taxonomy::ALL.get(number as usize).copied().unwrap_or(Taxonomy::Taric)
}

/// An identifier whose values grow with time, so that new ones lie together in an index.
pub(super) fn new_uuid() -> Uuid {
    Uuid::now_v7()
}

/// Transactions that a database may have lost when it is put back to an earlier state: sequences go on behind all that
/// clients may have seen of them.
const LOST_TRANSACTIONS: i64 = 1 << 24;

/// The timeline of the log that is written now. That of the last checkpoint lags behind a promotion.
const TIMELINE_OF_LOG: &str = "select ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer";
/// The timeline of the last checkpoint, for databases that have no log to look at, as some that are rented.
const TIMELINE_OF_CHECKPOINT: &str = "select timeline_id from pg_control_checkpoint()";
/// PostgreSQL's codes for what a database does not have, and for what it does not show.
const NOT_SHOWN: [&str; 3] = ["55000", "0A000", "42501"];

/// Whether nothing is known of the database yet, and whether it is the same as when this was last looked at.
const PAST: &str = "
    select timeline is null, cluster is not distinct from system_identifier and timeline is not distinct from $1
           and relation is not distinct from 'journal_base'::regclass::oid
    from journal_base, pg_control_system()";

impl Store {
    /// Sees to it that new sequences lie above all old ones: when a dump was restored into a cluster whose transaction ids
    /// begin lower than those of the old one, when a cluster was put back to an earlier state, and when a standby has taken
    /// over. A dump that was restored in the cluster that it was taken from is told by the table, which is another one there.
    ///
    /// If nothing of that kind has happened since this was done last, two rows are read. Otherwise it waits until nobody has
    /// half of a journal's entries written: theirs would lie below what readers have been told by then. An index outside of
    /// the database may be ahead of it then, and is marked as stale; one in the making is begun anew.
    pub(crate) async fn notice_another_past(&self) -> Result<(), sqlx::Error> {
        let timeline = self.timeline().await?;
        let look = || sqlx::query_as::<_, (bool, bool)>(PAST).bind(timeline);
        let (is_new, is_same) = look().fetch_one(self.pool()).await?;
        if is_same {
            return Ok(());
        }
        if !is_new {
            // First, and not behind the lock for which everybody waits: whoever writes to an index holds its row for a while.
            let stale = "update search_indexes set stale = not building, built_to = null";
            sqlx::query(stale).execute(self.pool()).await?;
        }
        let mut tx = self.begin_alone("journal").await?;
        let (is_new, is_same) = look().fetch_one(&mut *tx).await?;
        if !is_same {
            raise_base(&mut tx, timeline, if is_new { 0 } else { LOST_TRANSACTIONS }).await?;
        }
        tx.commit().await
    }

    async fn timeline(&self) -> Result<i32, sqlx::Error> {
        match sqlx::query_scalar(TIMELINE_OF_LOG).fetch_one(self.pool()).await {
            Err(sqlx::Error::Database(error)) if error.code().is_some_and(|code| NOT_SHOWN.contains(&&*code)) => {
                sqlx::query_scalar(TIMELINE_OF_CHECKPOINT).fetch_one(self.pool()).await
            }
            timeline => timeline,
        }
    }
}

/// Reads the end of each account's journal, by its index, and raises the base above it by so many transactions.
async fn raise_base(tx: &mut Tx, timeline: i32, lost: i64) -> Result<(), sqlx::Error> {
    sqlx::query(
        "with highest as (
             select coalesce(max(last.sequence), 0) / 131072 as transaction
             from accounts cross join lateral (
                 select sequence from journal where journal.account_id = accounts.account_id
                 order by sequence desc limit 1) as last)
         update journal_base
         set cluster = system_identifier, timeline = $2, relation = 'journal_base'::regclass::oid,
             base = $1 + case when base + pg_current_xact_id()::text::bigint <= highest.transaction
                              then highest.transaction + 1 else base end
         from highest, pg_control_system()",
    )
    .bind(lost)
    .bind(timeline)
    .execute(&mut **tx)
    .await?;
    Ok(())
}
