//! What lists of assignments show of their products.

use sqlx_macros::FromRow;

use crate::store::details::{StoredDetails, readable};
use crate::store::{Store, StoreError};

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
        Ok(readable(&rows))
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
