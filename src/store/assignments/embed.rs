//! What lists of assignments show beside them, their products and histories, and what that weighs.

use sqlx::{AssertSqlSafe, Executor, Postgres};
use sqlx_macros::FromRow;

use crate::domain::Taxonomy;
use crate::store::details::{StoredDetails, read_all};
use crate::store::journal::stored_taxonomy;
use crate::store::products::{PAGE_BYTES, SIZE};
use crate::store::{Store, StoreError};

/// Most events on a page, and of one assignment the most that are shown: the last.
pub const MAX_EVENTS: i64 = 20_000;
/// Bytes that an event weighs beside its comment and its labels: so much that a page of [`PAGE_BYTES`] has no more than
/// [`MAX_EVENTS`].
const EVENT_BYTES: i64 = PAGE_BYTES / MAX_EVENTS + 1;
const _: () = assert!(PAGE_BYTES / EVENT_BYTES <= MAX_EVENTS);

/// What is read to be shown beside assignments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Embedded {
    /// Their products.
    pub products: bool,
    /// Their histories.
    pub events: bool,
}

/// How many of the first of these weights make up a page, and their sum: at least one, and no more than [`PAGE_BYTES`].
pub(super) fn fitting(weights: &[i64]) -> (usize, i64) {
    let mut sum = 0;
    for (index, weight) in weights.iter().enumerate() {
        if index > 0 && sum + weight > PAGE_BYTES {
            return (index, sum);
        }
        sum += weight;
    }
    (weights.len(), sum)
}

/// What is read beside the assignments of these products weighs, in bytes, in the order of the products.
pub(super) async fn weights(
    connection: impl Executor<'_, Database = Postgres>,
    taxonomy: Taxonomy,
    keys: &[i64],
    embedded: Embedded,
) -> Result<Vec<i64>, sqlx::Error> {
    if embedded == Embedded::default() {
        return Ok(vec![0; keys.len()]);
    }
    sqlx::query_scalar(AssertSqlSafe(format!(
        "select (case when $3 then coalesce((select {SIZE} from products where product_key = key), 0) else 0 end
                 + case when $4 then (select coalesce(sum(bytes), 0) from (
                       select $5 + coalesce(octet_length(comment), 0)
                              + coalesce(octet_length(array_to_string(labels, ',')), 0) as bytes
                       from journal where product_key = key and taxonomy = $2 order by sequence desc limit $6) as told)
                   else 0 end)::bigint
         from unnest($1::bigint[]) with ordinality as shown (key, turn) order by turn"
    )))
    .bind(keys)
    .bind(stored_taxonomy(taxonomy))
    .bind(embedded.products)
    .bind(embedded.events)
    .bind(EVENT_BYTES)
    .bind(MAX_EVENTS)
    .fetch_all(connection)
    .await
}

/// A product behind an assignment.
#[derive(Clone, Debug, FromRow)]
pub struct ReviewedProduct {
    /// Its key.
    pub product_key: i64,
    /// Its id.
    pub product_id: String,
    /// Its shop as stored, 0 for a global product.
    pub shop_id: i64,
    /// Its version.
    pub version: i64,
    /// Shops with which it is associated.
    pub shop_ids: Vec<i64>,
    /// Its details.
    pub details: StoredDetails,
    /// Whether it has a picture.
    pub has_picture: bool,
}

impl Store {
    /// Products by their keys, in no order; those that are gone by now are left out.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn reviewed_products(&self, account: i64, keys: &[i64]) -> Result<Vec<ReviewedProduct>, StoreError> {
        let rows = sqlx::query(
            "select product_key, product_id, shop_id, version, shop_ids, details,
                    exists (select from pictures where pictures.product_key = products.product_key) as has_picture
             from products where account_id = $1 and product_key = any($2)",
        )
        .bind(account)
        .bind(keys)
        .fetch_all(self.pool())
        .await?;
        read_all(rows).await
    }

    /// The shops in which an account has products as stored, 0 for global ones, in their order; at most
    /// [`MAX_SHOPS_SEARCHED`].
    ///
    /// # Errors
    /// When the database fails.
    pub async fn shops_of(&self, account: i64) -> Result<Vec<i64>, StoreError> {
        // From each shop a step to the next, however many products lie between.
        let shops = sqlx::query_scalar(
            "with recursive shops (shop_id) as (
                 (select shop_id from products where account_id = $1 order by shop_id limit 1)
                 union all
                 select (select p.shop_id from products p where p.account_id = $1 and p.shop_id > shops.shop_id
                         order by p.shop_id limit 1)
                 from shops where shops.shop_id is not null)
             select shop_id from shops where shop_id is not null limit $2",
        )
        .bind(account)
        .bind(MAX_SHOPS_SEARCHED)
        .fetch_all(self.pool())
        .await?;
        Ok(shops)
    }
}

/// Most shops whose products one search for assignments looks through.
const MAX_SHOPS_SEARCHED: i64 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_holds_what_fits_and_never_nothing() {
        let half = PAGE_BYTES / 2;
        for (weights, fits) in [
            (vec![], (0, 0)),
            (vec![0, 0, 0], (3, 0)),
            (vec![half, half, 1], (2, PAGE_BYTES)),
            (vec![half, half, 0, 1], (3, PAGE_BYTES)),
            (vec![PAGE_BYTES + 1, 0], (1, PAGE_BYTES + 1)),
            (vec![1, PAGE_BYTES], (1, 1)),
        ] {
            assert_eq!(fitting(&weights), fits, "{weights:?}");
        }
    }
}
