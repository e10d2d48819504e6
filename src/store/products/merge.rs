//! Storing what a file says of products: each by a merge patch, new ones made, and each judged by itself.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::computing;
use crate::domain::applications::Application;
use crate::domain::validation::Declarations;
use crate::domain::{Fault, Product, ShopId, merge_patch};
use crate::store::accounts::Caller;
use crate::store::journal::{self, Entry};
use crate::store::products::change::{Change, change_products, in_order};
use crate::store::products::create::{Creation, ENTRIES_OF_CREATION};
use crate::store::products::locked::{Current, StoredByKey, details_of, lock_products, parts, unreadable};
use crate::store::products::write::{Columns, Declared, NewProduct, PRODUCT_BYTES, product_faults};
use crate::store::{Store, StoreError, Tx, quota, with_retries};

/// What became of a product.
#[derive(Clone, Debug, PartialEq)]
pub enum Merged {
    /// It was made.
    Created,
    /// It was changed.
    Updated,
    /// It is as the patch wants it already.
    Unchanged,
    /// It breaks rules and was left as it is.
    Refused(Vec<Fault>),
}

/// A product by its id, and the patch of its document.
pub type Patched<'a> = (&'a str, &'a Value);

/// A product that a file names: its id, the patch, and its row where it is there.
type Named<'a> = (&'a str, &'a Value, Option<&'a Current>);

impl Store {
    /// Merges patches into products of one shop, in one transaction; those that break a rule are left out of it. What a
    /// patch does not speak of stays, and a product that it does not change keeps its version. With `dry_run` nothing is
    /// stored, and the outcome is what it would be.
    ///
    /// Every id may be there once.
    ///
    /// # Errors
    /// [`StoreError::LimitExceeded`] when the plan does not allow that many checks, [`StoreError::Moving`] when the account
    /// is being moved; nothing is then stored.
    pub async fn merge_products(
        &self,
        caller: &Caller,
        shop: ShopId,
        patched: &[Patched<'_>],
        dry_run: bool,
    ) -> Result<Vec<Merged>, StoreError> {
        with_retries(|| self.merge_once(caller, shop, patched, dry_run)).await
    }

    async fn merge_once(
        &self,
        caller: &Caller,
        shop: ShopId,
        patched: &[Patched<'_>],
        dry_run: bool,
    ) -> Result<Vec<Merged>, StoreError> {
        let mut tx = self.begin().await?;
        require_presence(&mut tx, caller.account).await?;
        let ids: Vec<&str> = patched.iter().map(|(id, _)| *id).collect();
        let existing = lock_products(&mut tx, caller.account, shop, &ids).await?;
        let existing: HashMap<&str, &Current> =
            existing.iter().map(|current| (current.product_id.as_str(), current)).collect();
        let mut named: Vec<Named<'_>> =
            patched.iter().map(|(id, patch)| (*id, *patch, existing.get(id).copied())).collect();
        let keys: Vec<i64> = named.iter().filter_map(|(.., current)| Some((*current)?.product_key)).collect();
        // Assignments are locked part by part, and everybody locks them by the keys of their products.
        let mut places: Vec<usize> = (0..named.len()).collect();
        places.sort_by_key(|place| named[*place].2.map(|current| current.product_key));
        named.sort_by_key(|(.., current)| current.map(|current| current.product_key));
        let mut merging = Merging::of(caller, shop);
        for (bytes, part) in parts(&named, |(.., current)| current.map_or(0, |current| current.size)) {
            merging.part(&mut tx, bytes, part).await?;
        }
        let Merging { merged, products, columns, mut entries, requeued, .. } = merging;
        in_order(&mut entries, keys.into_iter());
        // Last, since a statement that makes products numbers their entries from the first.
        let fresh = products.len();
        quota::require_room(&mut tx, caller, fresh).await?;
        let creation = Creation { caller, shop, products: &products, columns: &columns, asked: &[] };
        creation.insert(&mut *tx, |_| true, 0).await?;
        quota::charge(&mut tx, caller, fresh + requeued).await?;
        journal::record_after(&mut tx, caller.account, fresh * ENTRIES_OF_CREATION, &entries).await?;
        if dry_run {
            tx.rollback().await?;
        } else {
            tx.commit().await?;
        }
        let mut merged: Vec<(usize, Merged)> = places.into_iter().zip(merged).collect();
        merged.sort_by_key(|(place, _)| *place);
        Ok(merged.into_iter().map(|(_, merged)| merged).collect())
    }
}

/// Patches that are being merged: what became of those so far, and what is still to be written of them.
struct Merging<'a> {
    caller: &'a Caller,
    shop: ShopId,
    declared: Declared,
    merged: Vec<Merged>,
    /// Products that are to be made, with their columns.
    products: Vec<NewProduct>,
    columns: Vec<Columns>,
    entries: Vec<Entry<'a>>,
    requeued: usize,
}

impl<'a> Merging<'a> {
    fn of(caller: &'a Caller, shop: ShopId) -> Merging<'a> {
        Merging {
            caller,
            shop,
            declared: Declared::default(),
            merged: Vec::new(),
            products: Vec::new(),
            columns: Vec::new(),
            entries: Vec::new(),
            requeued: 0,
        }
    }

    /// Merges one part, and writes the products of it that are there and change.
    async fn part(&mut self, tx: &mut Tx, bytes: usize, part: &[Named<'a>]) -> Result<(), StoreError> {
        let stored = details_of(tx, part.iter().filter_map(|(.., current)| *current)).await?;
        let made = computing::in_place(bytes + part.len() * PRODUCT_BYTES, || {
            part.iter().map(|named| merged_product(named, &stored)).collect::<Result<Vec<_>, _>>()
        })?;
        let mut written = Vec::new();
        for ((id, _, current), made) in part.iter().zip(made) {
            let product = match made {
                Err(done) => {
                    self.merged.push(done);
                    continue;
                }
                Ok(product) => product,
            };
            let declarations = self.declared.for_product(tx, self.caller.account, &product).await?;
            match judge(*current, id, product, self.shop, declarations)? {
                Err(faults) => self.merged.push(Merged::Refused(faults)),
                Ok((new, columns)) => match current {
                    Some(current) => {
                        self.merged.push(Merged::Updated);
                        written.push((*current, new, columns));
                    }
                    None => {
                        self.merged.push(Merged::Created);
                        self.products.push(new);
                        self.columns.push(columns);
                    }
                },
            }
        }
        let changes: Vec<Change<'_, '_>> = written
            .iter()
            .map(|(current, new, columns)| {
                let (before, asked) = (stored.readable(current), applications_of(current));
                Change { current, before, product: &new.product, columns, asked }
            })
            .collect();
        self.requeued += change_products(tx, self.caller, self.shop, &changes, &mut self.entries).await?;
        Ok(())
    }
}

/// Sees to it that the account stays in this database until the transaction ends: the import of a file goes on for longer
/// than the credential holds with which it came.
async fn require_presence(tx: &mut Tx, account: i64) -> Result<(), StoreError> {
    let is_moving: Option<bool> = sqlx::query_scalar(
        "select moving is not null or deleted_at is not null from accounts where account_id = $1 for share",
    )
    .bind(account)
    .fetch_optional(&mut **tx)
    .await?;
    if is_moving == Some(false) { Ok(()) } else { Err(StoreError::Moving) }
}

/// What a patch makes of a product; or else what becomes of it, where nothing is to be written.
fn merged_product(
    (id, patch, current): &Named<'_>,
    stored: &StoredByKey,
) -> Result<Result<Product, Merged>, StoreError> {
    let refused = |fault: Fault| Ok(Err(Merged::Refused(vec![fault.on(*id)])));
    let before = match current.and_then(|current| Some((current, stored.of(current)?))) {
        None => None,
        Some((current, Ok(details))) => {
            Some(Product { shop_ids: current.shop_ids.clone(), product_details: details.clone() })
        }
        Some((_, Err(error))) => return refused(unreadable(id, error)),
    };
    let mut document = match &before {
        None => json!({"shopIds": [], "productDetails": {}}),
        Some(before) => serde_json::to_value(before).map_err(|error| sqlx::Error::Encode(error.into()))?,
    };
    merge_patch::apply(&mut document, (*patch).clone());
    let product: Product = match serde_path_to_error::deserialize(document) {
        Ok(product) => product,
        Err(error) => {
            return refused(Fault::at(error.path().to_string(), "INVALID_VALUE", error.inner().to_string()));
        }
    };
    Ok(if before.as_ref() == Some(&product) { Err(Merged::Unchanged) } else { Ok(product) })
}

/// A product as its columns take it, or why it may not be written.
fn judge(
    current: Option<&Current>,
    id: &str,
    product: Product,
    shop: ShopId,
    declarations: &Declarations,
) -> Result<Result<(NewProduct, Columns), Vec<Fault>>, StoreError> {
    let asked = current.map(applications_of).unwrap_or_default();
    let columns = Columns::of(&product, &asked)?;
    let faults = product_faults(id, &product, &columns, shop, declarations);
    Ok(match faults.is_empty() {
        true => Ok((NewProduct { product_id: id.to_owned(), product }, columns)),
        false => Err(faults),
    })
}

/// The applications that the product was last validated for.
fn applications_of(current: &Current) -> Vec<Application> {
    current.applications.iter().filter_map(|name| Application::from_name(name)).collect()
}
