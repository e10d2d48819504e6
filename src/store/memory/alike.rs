//! Products that share words with another.

use sqlx::{AssertSqlSafe, Row};
use sqlx_macros::FromRow;
use uuid::Uuid;

use crate::domain::Taxonomy;
use crate::store::details::{StoredDetails, read_all, readable};
use crate::store::journal::stored_taxonomy;
use crate::store::memory::READ_BYTES;
use crate::store::products::{SIZE, bytes_before};
use crate::store::{Store, StoreError, Tx};

/// Products that are looked at at once for one decision.
pub const MAX_PRODUCTS_AT_ONCE: i64 = 1_000;
/// Products among which the most alike ones are chosen for a list.
pub const MAX_PRODUCTS_RANKED: i64 = 500;

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

/// Keeps the words by which products are found: key, account, hashes.
pub(in crate::store) async fn keep_words(tx: &mut Tx, products: &[(i64, i64, &[i32])]) -> Result<(), StoreError> {
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

impl Store {
    /// Products of an account that share words, by their keys and behind `after`, and behind which key there may be more: no
    /// more than [`READ_BYTES`] of them are read at one time.
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
        let rows = sqlx::query(AssertSqlSafe(format!(
            "with found as materialized (
                 select product_key, words from product_words
                 where words && $3 and account_id = $1 and product_key > $4
             ), near as materialized (
                 select product_key from found
                 where 3 * (select count(*) from unnest(words) as word where word = any($3))
                       >= least(cardinality(words), cardinality($3))
                 order by product_key limit $5
             ), sized as materialized (
                 select product_key, count(*) over () as found, {} as before
                 from near join products using (product_key) where account_id = $1
             )
             select product_key, a.product_id, a.shop_id, assignment_uuid, status, strategy, product_class, details, found,
                    exists (select from memory_decisions known where known.account_id = $1
                            and known.assignment_uuid = a.assignment_uuid and known.verdict <> 0) as is_decided
             from sized join products p using (product_key) join assignments a using (product_key)
             where p.account_id = $1 and a.taxonomy = $2 and before < $6 order by product_key",
            bytes_before(SIZE, "product_key")
        )))
        .bind(account)
        .bind(stored_taxonomy(taxonomy))
        .bind(words)
        .bind(after)
        .bind(MAX_PRODUCTS_AT_ONCE)
        .bind(READ_BYTES as i64)
        .fetch_all(self.pool())
        .await?;
        let found: i64 = rows.first().map_or(Ok(0), |row| row.try_get("found"))?;
        let full = found == MAX_PRODUCTS_AT_ONCE || rows.len() as i64 != found;
        let last = rows.last().filter(|_| full).map(|row| row.try_get("product_key")).transpose()?;
        Ok((readable(&rows), last))
    }

    /// Products of an account that share most words, at most [`MAX_PRODUCTS_RANKED`] and no more than [`READ_BYTES`].
    ///
    /// # Errors
    /// When the database fails.
    pub async fn products_alike(
        &self,
        account: i64,
        taxonomy: Taxonomy,
        words: &[i32],
    ) -> Result<Vec<AlikeProduct>, StoreError> {
        let rows = sqlx::query(AssertSqlSafe(format!(
            "with near as materialized (
                 select product_key, (select count(*) from unnest(words) as word where word = any($3)) as shared
                 from product_words where words && $3 and account_id = $1 order by shared desc, product_key limit $4
             ), sized as materialized (
                 select product_key, shared, {} as before
                 from near join products using (product_key) where account_id = $1
             )
             select product_key, a.product_id, a.shop_id, assignment_uuid, status, strategy, product_class, details,
                    exists (select from memory_decisions known where known.account_id = $1
                            and known.assignment_uuid = a.assignment_uuid and known.verdict <> 0) as is_decided
             from sized join products p using (product_key) join assignments a using (product_key)
             where p.account_id = $1 and a.taxonomy = $2 and before < $5 order by shared desc, product_key",
            bytes_before(SIZE, "shared desc, product_key")
        )))
        .bind(account)
        .bind(stored_taxonomy(taxonomy))
        .bind(words)
        .bind(MAX_PRODUCTS_RANKED)
        .bind(READ_BYTES as i64)
        .fetch_all(self.pool())
        .await?;
        read_all(rows).await
    }
}
