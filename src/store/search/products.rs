//! What search reads of the products themselves.

use crate::computing;
use crate::domain::filter::Criteria;
use crate::store::details::{StoredDetails, read_all};
use crate::store::{Store, StoreError};

impl Store {
    /// Those of these products that satisfy criteria, and are associated with any of the shops where shops are given, as
    /// they are now, in the order in which they were given.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn satisfying(
        &self,
        keys: &[i64],
        criteria: &Criteria,
        shop_ids: Option<&[i64]>,
    ) -> Result<Vec<i64>, StoreError> {
        let rows = sqlx::query(
            "select product_key, product_id, details from products
             where product_key = any($1) and ($2::bigint[] is null or shop_ids && $2)
             order by array_position($1, product_key)",
        )
        .bind(keys)
        .bind(shop_ids)
        .fetch_all(self.pool())
        .await?;
        let products: Vec<(i64, String, StoredDetails)> = read_all(rows).await?;
        let criteria = criteria.clone();
        // Off the threads that serve requests: a text may have 50,000 characters.
        let satisfying = computing::spawn(move || {
            let satisfies = |(_, id, details): &(i64, String, StoredDetails)| criteria.matches(id, &details.0);
            products.into_iter().filter(satisfies).map(|(key, ..)| key).collect()
        });
        Ok(satisfying.await.map_err(|error| sqlx::Error::Io(std::io::Error::other(error)))?)
    }

    /// Keys, versions and ids of products above this key, in the order of keys.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn product_versions(&self, after: i64, limit: usize) -> Result<Vec<(i64, i64, String)>, StoreError> {
        Ok(sqlx::query_as(
            "select product_key, version, product_id from products where product_key > $1 order by 1 limit $2",
        )
        .bind(after)
        .bind(limit as i64)
        .fetch_all(self.pool())
        .await?)
    }
}
