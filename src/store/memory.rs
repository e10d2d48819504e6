//! What people decided, as rows: how services follow them, and what follows from them for products that are alike.
//!
//! The rows are written by a trigger of the journal, in the transaction of the decision.

use sqlx::postgres::PgRow;
use sqlx::{FromRow, Row};
use uuid::Uuid;

use crate::domain::{Details, Precision, Taxonomy};
use crate::store::auto_queue::{self, Touched};
use crate::store::details::{StoredDetails, readable};
use crate::store::journal::{self, Entry, stored_taxonomy, taxonomy_from_stored};
use crate::store::{Store, StoreError, Tx, with_retries};

/// Decisions that are read at once.
pub const PAGE_DECISIONS: i64 = 500;
/// Products that are looked at at once for one decision.
pub const MAX_PRODUCTS_AT_ONCE: i64 = 1_000;
/// Products among which the most alike ones are chosen for a list.
pub const MAX_PRODUCTS_RANKED: i64 = 500;
/// Accounts whose decisions are worked off in one round.
const MAX_LESSONS_AT_ONCE: i64 = 64;
/// The greatest id that a transaction may have.
const LAST_TRANSACTION: &str = "18446744073709551615";
/// Who queues a product again because a decision was made for one that is alike.
pub const MEMORY: &str = "memory";

/// A remembered decision.
#[derive(Clone, Debug, FromRow)]
pub struct RememberedRow {
    /// Its account.
    pub account_id: i64,
    /// The assignment that was decided.
    pub assignment_uuid: Uuid,
    taxonomy: i16,
    /// 1: the class is right; -1: it is wrong; 0: the decision was taken back.
    pub verdict: i16,
    /// The class, written code-NN-NNN.
    pub product_class: Option<String>,
    /// Details with nothing but the texts.
    pub texts: StoredDetails,
}

impl RememberedRow {
    /// The taxonomy of the class.
    pub fn taxonomy(&self) -> Taxonomy {
        taxonomy_from_stored(self.taxonomy)
    }
}

/// Some of the decisions that have changed.
#[derive(Debug, Default)]
pub struct MemoryPage {
    /// The decisions.
    pub rows: Vec<RememberedRow>,
    /// Where the next page begins, if there may be one.
    pub next: Option<(String, Uuid)>,
}

/// A decision whose alike products have yet to be looked at.
#[derive(Clone, Debug)]
pub struct MemoryLesson {
    lesson_id: i64,
    /// The account.
    pub account: i64,
    /// The assignment that was decided.
    pub assignment: Uuid,
    /// Its taxonomy.
    pub taxonomy: Taxonomy,
    /// Products up to this key were looked at before.
    pub worked_to: i64,
    /// The account's own precision.
    pub precision: Precision,
    /// The texts, as they were when it was decided; none when they are gone.
    pub texts: Option<Details>,
}

/// A product that may be alike, with its assignment in one taxonomy.
#[derive(Clone, Debug, FromRow)]
pub struct AlikeProduct {
    /// Its key.
    pub product_key: i64,
    /// Its id.
    pub product_id: String,
    /// Its shop as stored, 0 for a global product.
    pub shop_id: i64,
    /// Its assignment.
    pub assignment_uuid: Uuid,
    /// The assignment's status by name.
    pub status: String,
    /// How its class was found, by name.
    pub strategy: Option<String>,
    /// Its class, written code-NN-NNN.
    pub product_class: Option<String>,
    /// Whether a person decided about it, and be it only that a class is wrong.
    pub is_decided: bool,
    /// Its details.
    pub details: StoredDetails,
}

/// How many decisions an account remembers in a taxonomy.
#[derive(Clone, Debug, FromRow)]
pub struct MemorySize {
    taxonomy: i16,
    /// Classes said to be right.
    pub right: i64,
    /// Classes said to be wrong.
    pub wrong: i64,
}

impl MemorySize {
    /// The taxonomy.
    pub fn taxonomy(&self) -> Taxonomy {
        taxonomy_from_stored(self.taxonomy)
    }
}

/// Keeps the words by which products are found: key, account, hashes.
pub(super) async fn keep_words(tx: &mut Tx, products: &[(i64, i64, &[i32])]) -> Result<(), StoreError> {
    if products.is_empty() {
        return Ok(());
    }
    // PostgreSQL has no lists of lists of unequal length: words are told apart by whose they are.
    let (mut owners, mut words) = (Vec::new(), Vec::new());
    for (key, _, own) in products {
        owners.extend(std::iter::repeat_n(*key, own.len()));
        words.extend_from_slice(own);
    }
    sqlx::query(
        "with words as (
             select owner, array_agg(word) as words from unnest($3::bigint[], $4::integer[]) as of (owner, word) group by owner
         )
         insert into product_words (product_key, account_id, words)
         select product_key, account, coalesce(words.words, '{}')
         from unnest($1::bigint[], $2::bigint[]) as product (product_key, account)
         left join words on owner = product_key
         order by product_key
         on conflict (product_key) do update set words = excluded.words
         where product_words.words <> excluded.words",
    )
    .bind(products.iter().map(|(key, ..)| *key).collect::<Vec<_>>())
    .bind(products.iter().map(|(_, account, _)| *account).collect::<Vec<_>>())
    .bind(owners)
    .bind(words)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// The oldest transaction that a snapshot does not show for certain, and the first that it cannot show.
fn bounds(snapshot: &str) -> (&str, &str) {
    let mut parts = snapshot.split(':');
    (parts.next().unwrap_or("0"), parts.next().unwrap_or(LAST_TRANSACTION))
}

impl Store {
    /// What the database shows now, in its own words.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn memory_snapshot(&self) -> Result<String, StoreError> {
        Ok(sqlx::query_scalar("select pg_current_snapshot()::text").fetch_one(self.pool()).await?)
    }

    /// Decisions that changed between two snapshots, in pages; all of them where nothing was seen before.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn memory_page(
        &self,
        seen: Option<&str>,
        now: &str,
        after: Option<(String, Uuid)>,
    ) -> Result<MemoryPage, StoreError> {
        let (from, until) = match seen {
            Some(seen) => (bounds(seen).0, bounds(now).1),
            // A restored row may have been written by a transaction that is yet to come here.
            None => ("0", LAST_TRANSACTION),
        };
        let (from, assignment) = after.unwrap_or_else(|| (from.to_owned(), Uuid::nil()));
        let rows = sqlx::query(
            "select account_id, assignment_uuid, taxonomy, verdict, product_class, texts, changed_in::text as changed_in
             from memory_decisions
             where (changed_in, assignment_uuid) > ($1::text::xid8, $2) and changed_in < $3::text::xid8
               and ($4::text is null or not pg_visible_in_snapshot(changed_in, $4::text::pg_snapshot))
             order by changed_in, assignment_uuid limit $5",
        )
        .bind(from)
        .bind(assignment)
        .bind(until)
        .bind(seen)
        .bind(PAGE_DECISIONS)
        .fetch_all(self.pool())
        .await?;
        let next = match rows.last() {
            Some(last) if rows.len() as i64 == PAGE_DECISIONS => {
                Some((last.try_get("changed_in")?, last.try_get("assignment_uuid")?))
            }
            _ => None,
        };
        Ok(MemoryPage { rows: readable(&rows), next })
    }

    /// The first decision of each account whose alike products have yet to be looked at.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn memory_lessons(&self) -> Result<Vec<MemoryLesson>, StoreError> {
        let rows = sqlx::query(
            "select account_id, decision_precision, lesson_id, worked_to, lesson.assignment_uuid,
                    coalesce(taxonomy, 0::smallint) as taxonomy, texts
             from accounts cross join lateral (
                 select lesson_id, worked_to, assignment_uuid from memory_lessons
                 where memory_lessons.account_id = accounts.account_id order by lesson_id limit 1) as lesson
             left join memory_decisions using (account_id, assignment_uuid)
             order by lesson_id limit $1",
        )
        .bind(MAX_LESSONS_AT_ONCE)
        .fetch_all(self.pool())
        .await?;
        let lesson = |row: &PgRow| {
            Ok(MemoryLesson {
                lesson_id: row.try_get("lesson_id")?,
                account: row.try_get("account_id")?,
                assignment: row.try_get("assignment_uuid")?,
                taxonomy: taxonomy_from_stored(row.try_get("taxonomy")?),
                worked_to: row.try_get("worked_to")?,
                precision: Precision::from_percent(row.try_get("decision_precision")?).unwrap_or_default(),
                texts: row.try_get::<Option<StoredDetails>, _>("texts").ok().flatten().map(|texts| texts.0),
            })
        };
        Ok(rows.iter().map(lesson).collect::<Result<_, sqlx::Error>>()?)
    }

    /// Products of an account that share words, by their keys and behind `after`, and behind which key there may be more.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn products_with_words(
        &self,
        account: i64,
        taxonomy: Taxonomy,
        words: &[i32],
        after: i64,
    ) -> Result<(Vec<AlikeProduct>, Option<i64>), StoreError> {
        let rows = sqlx::query(
            "with found as materialized (
                 select product_key, words from product_words join products using (product_key)
                 where words && $3 and product_words.account_id = $1
             ), near as materialized (
                 select product_key from found
                 where product_key > $4
                   and 3 * (select count(*) from unnest(words) as word where word = any($3))
                       >= least(cardinality(words), cardinality($3))
                 order by product_key limit $5
             )
             select product_key, a.product_id, a.shop_id, assignment_uuid, status, strategy, product_class, details,
                    exists (select from memory_decisions known where known.account_id = $1
                            and known.assignment_uuid = a.assignment_uuid and known.verdict <> 0) as is_decided
             from near join products p using (product_key) join assignments a using (product_key)
             where p.account_id = $1 and a.taxonomy = $2 order by product_key",
        )
        .bind(account)
        .bind(stored_taxonomy(taxonomy))
        .bind(words)
        .bind(after)
        .bind(MAX_PRODUCTS_AT_ONCE)
        .fetch_all(self.pool())
        .await?;
        let full = rows.len() as i64 == MAX_PRODUCTS_AT_ONCE;
        let last = rows.last().filter(|_| full).map(|row| row.try_get("product_key")).transpose()?;
        Ok((readable(&rows), last))
    }

    /// Products of an account that share most words, at most [`MAX_PRODUCTS_RANKED`].
    ///
    /// # Errors
    /// When the database fails.
    pub async fn products_alike(
        &self,
        account: i64,
        taxonomy: Taxonomy,
        words: &[i32],
    ) -> Result<Vec<AlikeProduct>, StoreError> {
        let rows = sqlx::query(
            "with near as materialized (
                 select product_key from product_words where words && $3 and account_id = $1
                 order by (select count(*) from unnest(words) as word where word = any($3)) desc, product_key
                 limit $4
             )
             select product_key, a.product_id, a.shop_id, assignment_uuid, status, strategy, product_class, details,
                    exists (select from memory_decisions known where known.account_id = $1
                            and known.assignment_uuid = a.assignment_uuid and known.verdict <> 0) as is_decided
             from near join products p using (product_key) join assignments a using (product_key)
             where p.account_id = $1 and a.taxonomy = $2",
        )
        .bind(account)
        .bind(stored_taxonomy(taxonomy))
        .bind(words)
        .bind(MAX_PRODUCTS_RANKED)
        .fetch_all(self.pool())
        .await?;
        Ok(readable(&rows))
    }

    /// Queues products again for what was decided about one that is alike, and notes how far its alike products have been
    /// looked at: none is left when `worked_to` is none. What people decided stays. Answers how many were queued; none when
    /// another service was faster.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn teach(
        &self,
        lesson: &MemoryLesson,
        products: &[i64],
        worked_to: Option<i64>,
    ) -> Result<Option<usize>, StoreError> {
        with_retries(|| async {
            let mut tx = self.begin().await?;
            let held: Option<i64> = sqlx::query_scalar(
                "select worked_to from memory_lessons where account_id = $1 and lesson_id = $2 for update skip locked",
            )
            .bind(lesson.account)
            .bind(lesson.lesson_id)
            .fetch_optional(&mut *tx)
            .await?;
            if held != Some(lesson.worked_to) {
                return Ok(None);
            }
            let queued = requeue(&mut tx, lesson, products).await?;
            match worked_to {
                Some(key) => {
                    sqlx::query("update memory_lessons set worked_to = $3 where account_id = $1 and lesson_id = $2")
                        .bind(lesson.account)
                        .bind(lesson.lesson_id)
                        .bind(key)
                        .execute(&mut *tx)
                        .await?
                }
                None => {
                    sqlx::query("delete from memory_lessons where account_id = $1 and lesson_id = $2")
                        .bind(lesson.account)
                        .bind(lesson.lesson_id)
                        .execute(&mut *tx)
                        .await?
                }
            };
            tx.commit().await?;
            Ok(Some(queued))
        })
        .await
    }

    /// Removes what was taken back a day ago, of which every service has heard.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn forget_taken_back(&self) -> Result<u64, StoreError> {
        let done =
            sqlx::query("delete from memory_decisions where verdict = 0 and decided_at < now() - interval '1 day'")
                .execute(self.pool())
                .await?;
        Ok(done.rows_affected())
    }

    /// How many decisions an account remembers, by taxonomy.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn memory_sizes(&self, account: i64) -> Result<Vec<MemorySize>, StoreError> {
        let sizes = sqlx::query_as(
            "select taxonomy, count(*) filter (where verdict = 1) as right, count(*) filter (where verdict = -1) as wrong
             from memory_decisions where account_id = $1 and verdict <> 0 group by taxonomy order by taxonomy",
        )
        .bind(account)
        .fetch_all(self.pool())
        .await?;
        Ok(sizes)
    }

    /// Forgets all that an account remembers, and answers how many decisions that were. The decisions themselves stay, and
    /// so do the classes that alike products got by them.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn clear_memory(&self, account: i64) -> Result<u64, StoreError> {
        let mut tx = self.begin().await?;
        let cleared = sqlx::query(
            "update memory_decisions set verdict = 0, product_class = null, texts = '{}', decided_at = now(),
                    changed_in = pg_current_xact_id()
             where account_id = $1 and verdict <> 0",
        )
        .bind(account)
        .execute(&mut *tx)
        .await?;
        sqlx::query("delete from memory_lessons where account_id = $1").bind(account).execute(&mut *tx).await?;
        tx.commit().await?;
        Ok(cleared.rows_affected())
    }
}

async fn requeue(tx: &mut Tx, lesson: &MemoryLesson, products: &[i64]) -> Result<usize, StoreError> {
    if products.is_empty() {
        return Ok(0);
    }
    sqlx::query("select from assignments where product_key = any($1) order by product_key, taxonomy for update")
        .bind(products)
        .execute(&mut **tx)
        .await?;
    let mut touched: Vec<Touched> = sqlx::query_as(
        "update assignments set auto_state = 'PENDING', auto_epoch = auto_epoch + 1, updated_at = now()
         where product_key = any($1) and taxonomy = $2 and account_id = $3
           and strategy is distinct from 'MANUAL' and status <> 'DENIED'
         returning product_key, product_id, shop_id, taxonomy, status, strategy, product_class, version, auto_state",
    )
    .bind(products)
    .bind(stored_taxonomy(lesson.taxonomy))
    .bind(lesson.account)
    .fetch_all(&mut **tx)
    .await?;
    touched.sort_by_key(|assignment| assignment.product_key);
    let comment = format!("a product that is alike was decided: assignment {}", lesson.assignment);
    let entries: Vec<Entry<'_>> = touched
        .iter()
        .map(|assignment| Entry {
            product: (assignment.product_key, &assignment.product_id, assignment.shop_id),
            taxonomy: Some(lesson.taxonomy),
            action: "REQUEUE",
            actor: MEMORY,
            status: Some(&assignment.status),
            strategy: assignment.strategy_name(),
            product_class: assignment.product_class.clone(),
            version: assignment.version,
            comment: Some(&comment),
            ..Entry::default()
        })
        .collect();
    let keys: Vec<i64> = touched.iter().map(|assignment| assignment.product_key).collect();
    auto_queue::push(tx, lesson.account, &keys).await?;
    journal::record(tx, lesson.account, &entries).await?;
    Ok(keys.len())
}
