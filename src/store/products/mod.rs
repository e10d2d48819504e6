//! Products: reading and listing; `create` and `change` write them.

mod batch;
mod change;
mod create;
mod locked;
mod merge;
mod replace;
mod write;

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use sqlx::types::Json;
use sqlx::{Executor, Postgres, QueryBuilder, Row};
use sqlx_macros::FromRow;
use uuid::Uuid;

use crate::domain::applications::ApplicationIssue;
use crate::domain::{Fault, ShopId};
use crate::store::deadline::{FilterError, refused};
use crate::store::details::{StoredDetails, bytes_of, read_all};
use crate::store::pages::{Page, Position};
use crate::store::{Store, StoreError};

pub use batch::{Deletion, Fate, Update};
pub use merge::{Merged, Patched};
pub use replace::Replaced;
pub use write::{Asked, NewProduct};

/// Most bytes of details on a page, which holds at least one product however large.
pub const PAGE_BYTES: i64 = 8 * 1024 * 1024;

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

/// A product that a search found.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct Found {
    /// Its key.
    #[sqlx(rename = "product_key")]
    pub key: i64,
    /// Its id, from behind which a walk goes on even when the product is gone.
    pub product_id: String,
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

/// Bytes of a product's details; of rows that were not measured when they were written they are counted.
pub(super) const SIZE: &str = "coalesce(details_size, octet_length(details::text))";

/// SQL for the bytes of all rows that come before a row, in an order: with it a read is cut where it has enough.
pub(super) fn bytes_before(size: &str, order: &str) -> String {
    format!("coalesce(sum({size}) over (order by {order} rows between unbounded preceding and 1 preceding), 0)")
}

/// A fault that says the product does not exist.
pub(super) fn unknown_product(product_id: &str) -> Fault {
    Fault::at("productId", "UNKNOWN_PRODUCT", format!("there is no product \"{product_id}\"")).on(product_id)
}

/// A page of products, and the ids at its ends, from which to go on: the products themselves may be gone by now, or too
/// damaged to be shown.
#[derive(Clone, Debug)]
pub struct ProductPage {
    /// The products that are there.
    pub page: Page<ProductRecord>,
    /// The first and the last id that the page stands for; none when it stands for nothing.
    pub ends: Option<(String, String)>,
    /// Bytes of what the database told of them.
    pub bytes: usize,
}

impl ProductPage {
    /// A page that stands for these, with the records that are there of them, in the order in which they were read.
    fn new<T>(
        stands_for: Page<T>,
        id: impl Fn(&T) -> String,
        position: &Position<String>,
        mut records: Vec<ProductRecord>,
        bytes: usize,
    ) -> ProductPage {
        if matches!(position, Position::Before(_)) {
            records.reverse();
        }
        let ends = stands_for.ends(id);
        let Page { more_after, more_before, .. } = stands_for;
        ProductPage { page: Page { items: records, more_after, more_before }, ends, bytes }
    }
}

/// One product, as the connection sees it.
pub(super) async fn product_in(
    connection: impl Executor<'_, Database = Postgres>,
    account: i64,
    shop: ShopId,
    product_id: &str,
) -> Result<ProductRecord, StoreError> {
    let mut query = QueryBuilder::new("select ");
    query.push(COLUMNS).push(" from products where account_id = ").push_bind(account);
    query.push(" and shop_id = ").push_bind(shop.stored()).push(" and product_id = ").push_bind(product_id);
    let record = query.build_query_as().fetch_optional(connection).await?;
    record.ok_or_else(|| StoreError::not_found(unknown_product(product_id)))
}

/// Conditions on ids and shops.
fn push_selection(query: &mut QueryBuilder<Postgres>, product_ids: Option<&[String]>, shop_ids: Option<&[i64]>) {
    if let Some(ids) = product_ids {
        query.push(" and product_id = any(").push_bind(ids.to_vec()).push(")");
    }
    if let Some(shops) = shop_ids {
        // The index has no products without shops.
        query.push(" and shop_ids <> '{}' and shop_ids && ").push_bind(shops.to_vec());
    }
}

impl Store {
    /// One product.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn product(&self, account: i64, shop: ShopId, product_id: &str) -> Result<ProductRecord, StoreError> {
        product_in(self.pool(), account, shop, product_id).await
    }

    /// How many products there are that are named, where any are, and associated with any of these shops.
    ///
    /// # Errors
    /// [`FilterError::TooSlow`] after the deadline.
    pub async fn count_selected(
        &self,
        account: i64,
        shop: ShopId,
        product_ids: Option<&[String]>,
        shop_ids: Option<&[i64]>,
        deadline: Duration,
    ) -> Result<i64, FilterError> {
        let mut query = QueryBuilder::new("select count(*) from products where account_id = ");
        query.push_bind(account).push(" and shop_id = ").push_bind(shop.stored());
        push_selection(&mut query, product_ids, shop_ids);
        let mut tx = self.begin_within(deadline).await?;
        let counted = query.build_query_scalar().fetch_one(&mut *tx).await.map_err(refused)?;
        tx.rollback().await?;
        Ok(counted)
    }

    /// A page of products in the order of their ids, of all or of those named, associated with any of these shops where
    /// shops are given; of fewer than `size` where more would pass [`PAGE_BYTES`].
    ///
    /// # Errors
    /// When the database fails.
    pub async fn products(
        &self,
        account: i64,
        shop: ShopId,
        product_ids: Option<&[String]>,
        shop_ids: Option<&[i64]>,
        position: &Position<String>,
        size: usize,
    ) -> Result<ProductPage, StoreError> {
        let order = if matches!(position, Position::Before(_)) { "product_id desc" } else { "product_id" };
        let mut query = QueryBuilder::new("select ");
        query.push(COLUMNS).push(", found from (select *, count(*) over () as found, ");
        query.push(bytes_before(SIZE, order)).push(" as before from (select * from products");
        query.push(" where account_id = ").push_bind(account).push(" and shop_id = ").push_bind(shop.stored());
        push_selection(&mut query, product_ids, shop_ids);
        match position {
            Position::Start => {}
            Position::After(id) => {
                query.push(" and product_id > ").push_bind(id.clone());
            }
            Position::Before(id) => {
                query.push(" and product_id < ").push_bind(id.clone());
            }
        }
        query.push(" order by ").push(order).push(" limit ").push_bind(size as i64 + 1);
        query.push(") as products) as products where before < ").push_bind(PAGE_BYTES).push(" order by ").push(order);
        let mut rows = query.build().fetch_all(self.pool()).await?;
        let found: i64 = rows.first().map_or(Ok(0), |row| row.try_get("found"))?;
        rows.truncate(size);
        let more = found > rows.len() as i64;
        let ids = rows.iter().map(|row| row.try_get("product_id")).collect::<Result<Vec<String>, _>>()?;
        let bytes = bytes_of(&rows);
        let stands_for = Page::from_part(ids, more, position);
        Ok(ProductPage::new(stands_for, String::clone, position, read_all(rows).await?, bytes))
    }

    /// The products of a page that a search found, in its order; those that are gone by now are left out, and those
    /// that would pass [`PAGE_BYTES`] are left to the next page.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn products_found(
        &self,
        account: i64,
        found: Page<Found>,
        position: &Position<String>,
    ) -> Result<ProductPage, StoreError> {
        let backwards = matches!(position, Position::Before(_));
        let mut hits = found.items;
        if backwards {
            hits.reverse();
        }
        let keys: Vec<i64> = hits.iter().map(|hit| hit.key).collect();
        let mut query = QueryBuilder::new("select ");
        query
            .push(COLUMNS)
            .push(", turn, found from (select products.*, turn, count(*) over () as found, ")
            .push(bytes_before(SIZE, "turn"));
        query.push(" as before from products join unnest(").push_bind(keys);
        query.push("::bigint[]) with ordinality as hit (key, turn) on product_key = key where account_id = ");
        query.push_bind(account).push(") as products where before < ").push_bind(PAGE_BYTES).push(" order by turn");
        let rows = query.build().fetch_all(self.pool()).await?;
        let existing: i64 = rows.first().map_or(Ok(0), |row| row.try_get("found"))?;
        let mut more = if backwards { found.more_before } else { found.more_after };
        if let Some(last) = rows.last().filter(|_| existing > rows.len() as i64) {
            more = true;
            hits.truncate(usize::try_from(last.try_get::<i64, _>("turn")?).unwrap_or_default());
        }
        let stands_for = Page::from_part(hits, more, position);
        let bytes = bytes_of(&rows);
        Ok(ProductPage::new(stands_for, |hit| hit.product_id.clone(), position, read_all(rows).await?, bytes))
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
}
