//! What follows from decisions for products that are alike: they are queued again.

use sqlx::Row;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use crate::domain::{Details, Precision, Taxonomy};
use crate::store::auto_queue::{self, Touched};
use crate::store::details::StoredDetails;
use crate::store::journal::{self, AUTO_ASSIGNMENT, Entry, Subject, stored_taxonomy, taxonomy_from_stored};
use crate::store::{Store, StoreError, Tx, with_retries};

/// Accounts whose decisions are worked off in one round.
const MAX_LESSONS_AT_ONCE: i64 = 64;
/// Who queued products again that are alike, in entries of versions before 0069 of the schema.
pub const MEMORY: &str = "memory";

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

impl Store {
    /// Of each account a decision whose alike products have yet to be looked at: one that nobody has begun with comes before
    /// those with thousands of alike products.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn memory_lessons(&self) -> Result<Vec<MemoryLesson>, StoreError> {
        let rows = sqlx::query(
            "select account_id, decision_precision, lesson_id, worked_to, lesson.assignment_uuid,
                    coalesce(taxonomy, 0::smallint) as taxonomy, texts
             from accounts cross join lateral (
                 select lesson_id, worked_to, assignment_uuid from memory_lessons
                 where memory_lessons.account_id = accounts.account_id order by worked_to >= 0, lesson_id limit 1) as lesson
             left join memory_decisions using (account_id, assignment_uuid)
             order by worked_to >= 0, lesson_id limit $1",
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
            match teach_in(&mut tx, lesson, products, worked_to).await {
                Ok(Some(queued)) => {
                    tx.commit().await?;
                    Ok(Some(queued))
                }
                // Its locks are gone when this returns: whoever gives the lesson up next would take it for another's.
                other => {
                    tx.rollback().await?;
                    other
                }
            }
        })
        .await
    }
}

/// Does in a transaction what [`Store::teach`] does; none when the lesson is in other hands.
async fn teach_in(
    tx: &mut Tx,
    lesson: &MemoryLesson,
    products: &[i64],
    worked_to: Option<i64>,
) -> Result<Option<usize>, StoreError> {
    let held: Option<i64> = sqlx::query_scalar(
        "select worked_to from memory_lessons where account_id = $1 and lesson_id = $2 for update skip locked",
    )
    .bind(lesson.account)
    .bind(lesson.lesson_id)
    .fetch_optional(&mut **tx)
    .await?;
    if held != Some(lesson.worked_to) {
        return Ok(None);
    }
    let queued = requeue(tx, lesson, products).await?;
    let change = match worked_to {
        Some(key) => sqlx::query("update memory_lessons set worked_to = $3 where account_id = $1 and lesson_id = $2")
            .bind(lesson.account)
            .bind(lesson.lesson_id)
            .bind(key),
        None => sqlx::query("delete from memory_lessons where account_id = $1 and lesson_id = $2")
            .bind(lesson.account)
            .bind(lesson.lesson_id),
    };
    change.execute(&mut **tx).await?;
    Ok(Some(queued))
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
         returning product_key, product_id, shop_id, taxonomy, status, strategy, product_class, version,
                   true as queued",
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
            product: Subject { key: assignment.product_key, id: &assignment.product_id, shop: assignment.shop_id },
            taxonomy: Some(lesson.taxonomy),
            action: "REQUEUE",
            actor: AUTO_ASSIGNMENT,
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
