//! Products: reading and listing; `write` creates, replaces, patches and deletes them.

mod write;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use sqlx::types::Json;
use sqlx::{FromRow, QueryBuilder};
use uuid::Uuid;

use crate::domain::applications::ApplicationIssue;
use crate::domain::{Fault, ShopId};
use crate::store::details::{StoredDetails, readable};
use crate::store::pages::{Page, Position};
use crate::store::{Store, StoreError};

pub use write::{Asked, NewProduct, Replaced};

/// What is known of a product's picture.
#[derive(Clone, Debug, Deserialize)]
pub struct PictureFacts {
    /// Its media type.
    pub content_type: String,
    /// Pixels across.
    pub width: i32,
    /// Pixels down.
    pub height: i32,
    /// Bytes.
    pub size: i64,
}

/// A stored product.
#[derive(Clone, Debug, FromRow)]
pub struct ProductRecord {
    /// Its key in the database.
    pub product_key: i64,
    /// Its id.
    pub product_id: String,
    /// Its shop as stored, 0 for global products.
    pub shop_id: i64,
    /// Grows by one with every change by a client.
    pub version: i64,
    /// Shops with which it is associated.
    pub shop_ids: Vec<i64>,
    /// Its details.
    pub details: StoredDetails,
    /// Applications for which it is complete.
    pub application_tags: Vec<String>,
    /// What it lacks for the others that were asked for.
    pub application_issues: Json<Vec<ApplicationIssue>>,
    /// When it was created.
    pub created_at: DateTime<Utc>,
    /// When a client last changed it.
    pub updated_at: DateTime<Utc>,
    /// Its assignments, in the order of taxonomies.
    pub assignments: Vec<Uuid>,
    /// Its picture, if it has one.
    pub picture: Option<Json<PictureFacts>>,
}

/// Columns of a [`ProductRecord`].
const COLUMNS: &str = "product_key, product_id, shop_id, version, shop_ids, details, application_tags,
    application_issues, created_at, updated_at,
    array(select assignment_uuid from assignments where assignments.product_key = products.product_key
          order by taxonomy) as assignments,
    (select jsonb_build_object('content_type', content_type, 'width', width, 'height', height, 'size', size)
     from pictures where pictures.product_key = products.product_key) as picture";

/// A fault that says the product does not exist.
pub(super) fn unknown_product(product_id: &str) -> Fault {
    Fault::at("productId", "UNKNOWN_PRODUCT", format!("there is no product \"{product_id}\"")).on(product_id)
}

impl Store {
    /// One product.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn product(&self, account: i64, shop: ShopId, product_id: &str) -> Result<ProductRecord, StoreError> {
        let mut query = QueryBuilder::new("select ");
        query.push(COLUMNS).push(" from products where account_id = ").push_bind(account);
        query.push(" and shop_id = ").push_bind(shop.stored()).push(" and product_id = ").push_bind(product_id);
        let record = query.build_query_as().fetch_optional(self.pool()).await?;
        record.ok_or_else(|| StoreError::not_found(unknown_product(product_id)))
    }

    /// A page of products in the order of their ids, of all or of those named.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn products(
        &self,
        account: i64,
        shop: ShopId,
        product_ids: Option<&[String]>,
        position: &Position<String>,
        size: usize,
    ) -> Result<Page<ProductRecord>, StoreError> {
        let mut query = QueryBuilder::new("select ");
        query.push(COLUMNS).push(" from products where account_id = ").push_bind(account);
        query.push(" and shop_id = ").push_bind(shop.stored());
        if let Some(ids) = product_ids {
            query.push(" and product_id = any(").push_bind(ids.to_vec()).push(")");
        }
        match position {
            Position::Start => query.push(" order by product_id"),
            Position::After(id) => query.push(" and product_id > ").push_bind(id.clone()).push(" order by product_id"),
            Position::Before(id) => {
                query.push(" and product_id < ").push_bind(id.clone()).push(" order by product_id desc")
            }
        };
        query.push(" limit ").push_bind(size as i64 + 1);
        let rows = query.build().fetch_all(self.pool()).await?;
        Ok(Page::from_rows(readable(&rows), size, position))
    }

    /// Where an account has products, with how many: global ones first, then shops by number.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn shops(&self, account: i64) -> Result<Vec<(ShopId, i64)>, StoreError> {
        let rows: Vec<(i64, i64)> = sqlx::query_as(
            "select shop_id, count(*) from products where account_id = $1 group by shop_id order by shop_id",
        )
        .bind(account)
        .fetch_all(self.pool())
        .await?;
        Ok(rows.into_iter().map(|(shop, count)| (ShopId::from_stored(shop), count)).collect())
    }

    /// Products by their keys, in the order of the keys given; those that are gone by now are left out.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn products_by_key(&self, account: i64, keys: &[i64]) -> Result<Vec<ProductRecord>, StoreError> {
        let mut query = QueryBuilder::new("select ");
        query.push(COLUMNS).push(" from products where account_id = ").push_bind(account);
        query.push(" and product_key = any(").push_bind(keys.to_vec());
        query.push(") order by array_position(").push_bind(keys.to_vec()).push(", product_key)");
        Ok(readable(&query.build().fetch_all(self.pool()).await?))
    }
}
