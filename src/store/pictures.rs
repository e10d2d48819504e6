//! Which picture a product has; the bytes lie in the object store.
//!
//! An object is written before its row and removed after it, so that a row always names an object that exists.
//! Objects that no row names are noted for removal in the transaction that lets go of them.

use std::time::Duration;

use sqlx_macros::FromRow;

use crate::domain::{Fault, ShopId};
use crate::store::products::unknown_product;
use crate::store::{Store, StoreError, Tx};

/// Orphaned objects that are removed in one go.
pub const ORPHANS_AT_ONCE: i64 = 100;
/// How long an object stays that no picture names: much longer than any request may take that still wants to name it.
pub const ORPHAN_KEPT: Duration = Duration::from_secs(600);

/// A picture of a product.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct PictureRecord {
    /// The key of its bytes in the object store.
    pub object_key: String,
    /// Its media type.
    pub content_type: String,
    /// Pixels across.
    pub width: i32,
    /// Pixels down.
    pub height: i32,
    /// Bytes.
    pub size: i64,
    /// Changes with the bytes.
    pub etag: String,
}

/// An object that was noted as an orphan.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct Orphan {
    /// The key of its bytes in the object store.
    pub object_key: String,
    /// Whether it is known to lie in the store that was asked for.
    pub is_here: bool,
    /// Whether a picture names it after all: a version wrote the picture that does not strike it off the list.
    pub is_named: bool,
}

fn unknown_picture(product_id: &str) -> Fault {
    Fault::of("UNKNOWN_PICTURE", format!("the product \"{product_id}\" has no picture")).on(product_id)
}

impl Store {
    /// The picture of a product.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when there is no such product or it has none.
    pub async fn picture(&self, account: i64, shop: ShopId, product_id: &str) -> Result<PictureRecord, StoreError> {
        let picture = sqlx::query_as(
            "select object_key, content_type, width, height, size, etag from pictures join products using (product_key)
             where account_id = $1 and shop_id = $2 and product_id = $3",
        )
        .bind(account)
        .bind(shop.stored())
        .bind(product_id)
        .fetch_optional(self.pool())
        .await?;
        picture.ok_or_else(|| StoreError::not_found(unknown_picture(product_id)))
    }

    /// Refuses early what [`Store::set_picture`] would refuse, before the bytes are looked at.
    ///
    /// # Errors
    /// As [`Store::set_picture`].
    pub async fn check_picture(
        &self,
        account: i64,
        shop: ShopId,
        product_id: &str,
        replace: bool,
    ) -> Result<(), StoreError> {
        let row: Option<(bool,)> = sqlx::query_as(
            "select exists (select from pictures where pictures.product_key = products.product_key)
             from products where account_id = $1 and shop_id = $2 and product_id = $3",
        )
        .bind(account)
        .bind(shop.stored())
        .bind(product_id)
        .fetch_optional(self.pool())
        .await?;
        check_presence(row.map(|row| row.0), product_id, replace)
    }

    /// Gives a product its first picture, or another one with `replace`.
    ///
    /// # Errors
    /// Not found when there is no such product, or with `replace` no picture; conflict when there is one without it.
    pub async fn set_picture(
        &self,
        account: i64,
        shop: ShopId,
        product_id: &str,
        picture: &PictureRecord,
        replace: bool,
    ) -> Result<(), StoreError> {
        let mut tx = self.begin().await?;
        let locked = lock_product(&mut tx, account, shop, product_id).await?;
        check_presence(locked.map(|(_, has_picture)| has_picture), product_id, replace)?;
        let key = locked.map(|(key, _)| key).unwrap_or_default();
        remove(&mut tx, key).await?;
        // The object is no orphan from now on; where it lies was noted with it.
        sqlx::query(
            "with mine as (delete from orphaned_objects where object_key = $2 returning place)
             insert into pictures (product_key, object_key, content_type, width, height, size, etag, place)
             values ($1, $2, $3, $4, $5, $6, $7, (select place from mine))",
        )
        .bind(key)
        .bind(&picture.object_key)
        .bind(&picture.content_type)
        .bind(picture.width)
        .bind(picture.height)
        .bind(picture.size)
        .bind(&picture.etag)
        .execute(&mut *tx)
        .await?;
        Ok(tx.commit().await?)
    }

    /// Takes a product's picture away.
    ///
    /// # Errors
    /// Not found when there is no such product, or it has no picture.
    pub async fn remove_picture(&self, account: i64, shop: ShopId, product_id: &str) -> Result<(), StoreError> {
        let mut tx = self.begin().await?;
        let locked = lock_product(&mut tx, account, shop, product_id).await?;
        check_presence(locked.map(|(_, has_picture)| has_picture), product_id, true)?;
        remove(&mut tx, locked.map(|(key, _)| key).unwrap_or_default()).await?;
        Ok(tx.commit().await?)
    }

    /// Notes that an object is about to be written to the store of this name, which no row may ever name.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn orphan_object(&self, object_key: &str, place: Option<&str>) -> Result<(), StoreError> {
        sqlx::query("insert into orphaned_objects (object_key, place) values ($1, $2) on conflict do nothing")
            .bind(object_key)
            .bind(place)
            .execute(self.pool())
            .await?;
        Ok(())
    }

    /// Some objects that were orphaned long ago, of the store of this name or of one that is not known; those that have
    /// waited longest first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn orphaned_objects(&self, place: Option<&str>) -> Result<Vec<Orphan>, StoreError> {
        // Chosen before they are looked up among the pictures, so that neither table is read as a whole.
        let orphans = sqlx::query_as(
            "with due as materialized (
                 select object_key, place, orphaned_at from orphaned_objects
                 where (place is null or place = $2) and orphaned_at < now() - $3 order by orphaned_at limit $1)
             select due.object_key, due.place is not null as is_here, named is not null as is_named
             from due left join lateral (
                 select true as named from pictures where pictures.object_key = due.object_key limit 1) as picture on true
             order by orphaned_at",
        )
        .bind(ORPHANS_AT_ONCE)
        .bind(place)
        .bind(ORPHAN_KEPT)
        .fetch_all(self.pool())
        .await?;
        Ok(orphans)
    }

    /// Forgets objects that were removed, or are none.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn forget_orphans(&self, keys: &[String]) -> Result<(), StoreError> {
        sqlx::query("delete from orphaned_objects where object_key = any($1)").bind(keys).execute(self.pool()).await?;
        Ok(())
    }

    /// Puts objects that could not be removed behind all others.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn postpone_orphans(&self, keys: &[String]) -> Result<(), StoreError> {
        sqlx::query("update orphaned_objects set orphaned_at = now() where object_key = any($1)")
            .bind(keys)
            .execute(self.pool())
            .await?;
        Ok(())
    }
}

/// Locks a product and tells its key and whether it has a picture; none when there is no such product.
async fn lock_product(
    tx: &mut Tx,
    account: i64,
    shop: ShopId,
    product_id: &str,
) -> Result<Option<(i64, bool)>, StoreError> {
    let key: Option<i64> = sqlx::query_scalar(
        "select product_key from products where account_id = $1 and shop_id = $2 and product_id = $3 for update",
    )
    .bind(account)
    .bind(shop.stored())
    .bind(product_id)
    .fetch_optional(&mut **tx)
    .await?;
    let Some(key) = key else { return Ok(None) };
    // Asked once the row is ours: the snapshot of the statement that waited for it is from before the wait.
    let has_picture = sqlx::query_scalar("select exists (select from pictures where product_key = $1)")
        .bind(key)
        .fetch_one(&mut **tx)
        .await?;
    Ok(Some((key, has_picture)))
}

fn check_presence(has_picture: Option<bool>, product_id: &str, replace: bool) -> Result<(), StoreError> {
    match (has_picture, replace) {
        (None, _) => Err(StoreError::not_found(unknown_product(product_id))),
        (Some(false), true) => Err(StoreError::not_found(unknown_picture(product_id))),
        (Some(true), false) => {
            let message = format!("the product \"{product_id}\" has a picture already; replace it with PUT");
            let faults = vec![Fault::of("PICTURE_EXISTS", message).on(product_id)];
            Err(StoreError::Conflict { faults, current_version: None })
        }
        _ => Ok(()),
    }
}

/// Lets go of a product's picture, if it has one.
pub(super) async fn remove(tx: &mut Tx, product_key: i64) -> Result<(), StoreError> {
    sqlx::query(
        "with removed as (delete from pictures where product_key = $1 returning object_key, place)
         insert into orphaned_objects (object_key, place) select object_key, place from removed on conflict do nothing",
    )
    .bind(product_key)
    .execute(&mut **tx)
    .await?;
    Ok(())
}
