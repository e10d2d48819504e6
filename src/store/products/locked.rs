//! Products that are locked to be changed, and their details, which may be large: read part by part.

use std::collections::HashMap;

use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, FromRow, Row};

use crate::computing;
use crate::domain::limits::MAX_PRODUCT_BYTES;
use crate::domain::{Details, Fault, ShopId};
use crate::store::details::{StoredDetails, bytes_of};
use crate::store::journal::Subject;
use crate::store::products::SIZE;
use crate::store::{StoreError, Tx};

/// Most bytes of stored details that a request reads at one time, but for one product that alone has more: a request of a few
/// kilobytes can name a thousand products, and what a change of one may read is enough for each.
const PART_BYTES: usize = MAX_PRODUCT_BYTES;

/// A product row as it stands, locked.
#[derive(Clone, Debug, sqlx_macros::FromRow)]
pub(super) struct Current {
    pub product_key: i64,
    pub product_id: String,
    pub version: i64,
    pub shop_ids: Vec<i64>,
    pub applications: Vec<String>,
    /// Bytes of its details.
    pub size: i32,
}

impl Current {
    /// The product as the journal names it.
    pub(super) fn in_journal(&self, shop: ShopId) -> Subject<'_> {
        Subject { key: self.product_key, id: &self.product_id, shop: shop.stored() }
    }
}

/// Details as they are stored, or why they cannot be read: such can still be replaced and deleted.
pub(super) type Stored = Result<Details, String>;

/// Details of products by their keys.
pub(super) struct StoredByKey(HashMap<i64, Stored>);

impl StoredByKey {
    /// Those of a product, where it was asked for.
    pub(super) fn of(&self, product: &Current) -> Option<&Stored> {
        self.0.get(&product.product_key)
    }

    /// Those of a product, where they can be read.
    pub(super) fn readable(&self, product: &Current) -> Option<&Details> {
        self.of(product)?.as_ref().ok()
    }
}

/// The products of these ids, locked in the order of their ids, so that writers never wait for each other in a circle.
///
/// Each id is looked up by itself: asked for `any` of them in the order of ids, a planner that has not yet heard how many
/// products there are reads all products of the shop in that order, and compares each with every id.
pub(super) async fn lock_products(
    tx: &mut Tx,
    account: i64,
    shop: ShopId,
    ids: &[&str],
) -> Result<Vec<Current>, StoreError> {
    // Text sorts by its bytes here as the column does, by code points.
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    ids.dedup();
    let rows = sqlx::query_as(AssertSqlSafe(format!(
        "select found.* from unnest($3::text[]) as wanted (id) cross join lateral (
             select product_key, product_id, version, shop_ids, applications, {SIZE} as size from products
             where account_id = $1 and shop_id = $2 and product_id = id for update) as found"
    )))
    .bind(account)
    .bind(shop.stored())
    .bind(ids)
    .fetch_all(&mut **tx)
    .await?;
    Ok(rows)
}

/// A product with its details, locked.
pub(super) async fn lock_product(
    tx: &mut Tx,
    account: i64,
    shop: ShopId,
    id: &str,
) -> Result<Option<(Current, Stored)>, StoreError> {
    let row = sqlx::query(AssertSqlSafe(format!(
        "select product_key, product_id, version, shop_ids, applications, {SIZE} as size, details from products
         where account_id = $1 and shop_id = $2 and product_id = $3 for update"
    )))
    .bind(account)
    .bind(shop.stored())
    .bind(id)
    .fetch_optional(&mut **tx)
    .await?;
    row.map(|row| Ok((Current::from_row(&row)?, stored(&row)))).transpose()
}

/// What concerns products, in parts of which none has more details than [`PART_BYTES`], but where one product alone has; each
/// with the bytes of its details.
pub(super) fn parts<T>(items: &[T], size: impl Fn(&T) -> i32) -> impl Iterator<Item = (usize, &[T])> {
    let mut rest = items;
    std::iter::from_fn(move || {
        let (mut bytes, mut many) = (0, 0);
        for size in rest.iter().map(|item| usize::try_from(size(item)).unwrap_or_default()) {
            if many > 0 && bytes + size > PART_BYTES {
                break;
            }
            (bytes, many) = (bytes + size, many + 1);
        }
        let (part, after) = rest.split_at(many);
        rest = after;
        (many > 0).then_some((bytes, part))
    })
}

/// The details of products that are locked.
pub(super) async fn details_of(
    tx: &mut Tx,
    products: impl Iterator<Item = &Current>,
) -> Result<StoredByKey, StoreError> {
    let keys: Vec<i64> = products.map(|current| current.product_key).collect();
    if keys.is_empty() {
        return Ok(StoredByKey(HashMap::new()));
    }
    let rows = sqlx::query("select product_key, details from products where product_key = any($1)")
        .bind(keys)
        .fetch_all(&mut **tx)
        .await?;
    let read = |row: &PgRow| Ok((row.try_get("product_key")?, stored(row)));
    let read = || rows.iter().map(read).collect::<Result<HashMap<i64, Stored>, sqlx::Error>>();
    Ok(StoredByKey(computing::in_place(bytes_of(&rows), read)?))
}

fn stored(row: &PgRow) -> Stored {
    row.try_get("details").map(|read: StoredDetails| read.0).map_err(|error| error.to_string())
}

/// Why a product cannot be changed by a patch: what it stands on cannot be read.
pub(super) fn unreadable(product_id: &str, error: &str) -> Fault {
    let message = format!("the product as it is stored cannot be read ({error}): replace it");
    Fault::at("productId", "UNREADABLE", message).on(product_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_no_more_details_than_one_product_may_have() {
        let whole = i32::try_from(PART_BYTES).expect("a size");
        for (sizes, expected) in [
            (vec![], vec![]),
            (vec![0, 0, 0], vec![3]),
            (vec![whole, 0, 1], vec![2, 1]),
            (vec![whole + 1, 1, whole - 1, 1], vec![1, 2, 1]),
            (vec![whole / 2 + 1; 3], vec![1, 1, 1]),
            (vec![3 * whole, 3 * whole], vec![1, 1]),
        ] {
            let found: Vec<usize> = parts(&sizes, |size| *size).map(|(_, part)| part.len()).collect();
            assert_eq!(found, expected, "{sizes:?}");
        }
    }
}
