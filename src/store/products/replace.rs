//! Replacing, patching and deleting products, each in one transaction with all that announces it.

use crate::domain::applications::Application;
use crate::domain::{Fault, Product, ShopId};
use crate::store::accounts::Caller;
use crate::store::products::change::{Change, change_products};
use crate::store::products::create::{Creation, ENTRIES_OF_CREATION};
use crate::store::products::locked::{lock_product, lock_products, unreadable};
use crate::store::products::write::{
    Asked, Columns, Declared, NewProduct, announce, check_version, product_entry, product_faults,
};
use crate::store::products::{ProductRecord, product_in, unknown_product};
use crate::store::{Store, StoreError, journal, pictures, quota, with_retries};

/// What became of a PUT or PATCH.
#[derive(Clone, Debug)]
pub struct Replaced {
    /// The product after it.
    pub record: ProductRecord,
    /// Whether the product was created by it.
    pub created: bool,
}

impl Store {
    /// Replaces a product entirely; `current_version` 0 means that it does not exist yet.
    ///
    /// # Errors
    /// In this order: not found, conflict, unprocessable, limit.
    pub async fn replace_product(
        &self,
        caller: &Caller,
        shop: ShopId,
        new: &NewProduct,
        current_version: i64,
        asked: &Asked,
        preserve_files: bool,
    ) -> Result<Replaced, StoreError> {
        let columns = Columns::of(&new.product, &asked.applications)?;
        let columns = std::slice::from_ref(&columns);
        with_retries(|| async {
            let mut tx = self.begin().await?;
            let existing = lock_product(&mut tx, caller.account, shop, &new.product_id).await?;
            check_version(existing.as_ref().map(|(current, _)| current), current_version, &new.product_id)?;
            let mut declared = Declared::default();
            let declarations = declared.for_product(&mut tx, caller.account, &new.product).await?;
            let mut faults = asked.faults.clone();
            faults.extend(product_faults(&new.product_id, &new.product, &columns[0], shop, declarations));
            if !faults.is_empty() {
                return Err(StoreError::Unprocessable(faults));
            }
            let (mut entries, mut written, mut checks) = (Vec::new(), 0, 1);
            match &existing {
                None => {
                    let products = std::slice::from_ref(new);
                    let creation = Creation { caller, shop, products, columns, asked: &asked.applications };
                    creation.insert(&mut *tx, |_| true, 0).await?;
                    written = ENTRIES_OF_CREATION;
                }
                Some((current, stored)) => {
                    if !preserve_files {
                        pictures::remove(&mut tx, current.product_key).await?;
                    }
                    let asked = asked.applications.clone();
                    let before = stored.as_ref().ok();
                    let change = Change { current, before, product: &new.product, columns: &columns[0], asked };
                    checks = change_products(&mut tx, caller, shop, &[change], &mut entries).await?;
                }
            }
            quota::charge(&mut tx, caller, checks).await?;
            journal::record_after(&mut tx, caller.account, written, &entries).await?;
            // Read before the commit: what another writer makes of it afterwards is not the answer to this request.
            let record = product_in(&mut *tx, caller.account, shop, &new.product_id).await?;
            tx.commit().await?;
            Ok(Replaced { record, created: existing.is_none() })
        })
        .await
    }

    /// Changes a product by a merge patch, whose outcome `apply` computes from the document in force.
    ///
    /// # Errors
    /// In this order: not found, conflict, unprocessable, limit.
    pub async fn patch_product(
        &self,
        caller: &Caller,
        shop: ShopId,
        product_id: &str,
        current_version: i64,
        asked: &Asked,
        apply: impl Fn(&Product) -> Result<Product, Vec<Fault>>,
    ) -> Result<ProductRecord, StoreError> {
        let apply = &apply;
        with_retries(|| async {
            let mut tx = self.begin().await?;
            let Some((current, stored)) = lock_product(&mut tx, caller.account, shop, product_id).await? else {
                return Err(StoreError::not_found(unknown_product(product_id)));
            };
            check_version(Some(&current), current_version, product_id)?;
            let details = stored.map_err(|error| StoreError::Unprocessable(vec![unreadable(product_id, &error)]))?;
            let before = Product { shop_ids: current.shop_ids.clone(), product_details: details };
            let on_product = |faults: Vec<Fault>| {
                StoreError::Unprocessable(faults.into_iter().map(|fault| fault.on(product_id)).collect())
            };
            let product = apply(&before).map_err(on_product)?;
            let mut all: Vec<Application> =
                current.applications.iter().filter_map(|name| Application::from_name(name)).collect();
            let further =
                asked.applications.iter().filter(|new| !current.applications.iter().any(|name| name == new.name()));
            all.extend(further);
            let columns = Columns::of(&product, &all)?;
            let mut declared = Declared::default();
            let declarations = declared.for_product(&mut tx, caller.account, &product).await?;
            let mut faults = asked.faults.clone();
            faults.extend(product_faults(product_id, &product, &columns, shop, declarations));
            if !faults.is_empty() {
                return Err(on_product(faults));
            }
            let mut entries = Vec::new();
            let change = Change {
                current: &current,
                before: Some(&before.product_details),
                product: &product,
                columns: &columns,
                asked: all,
            };
            let checks = change_products(&mut tx, caller, shop, &[change], &mut entries).await?;
            quota::charge(&mut tx, caller, checks).await?;
            journal::record(&mut tx, caller.account, &entries).await?;
            let record = product_in(&mut *tx, caller.account, shop, product_id).await?;
            tx.commit().await?;
            Ok(record)
        })
        .await
    }

    /// Deletes a product with its assignments and its picture; its history stays.
    ///
    /// # Errors
    /// Not found or conflict.
    pub async fn delete_product(
        &self,
        caller: &Caller,
        shop: ShopId,
        product_id: &str,
        current_version: i64,
    ) -> Result<(), StoreError> {
        with_retries(|| async {
            let mut tx = self.begin().await?;
            let existing = lock_products(&mut tx, caller.account, shop, &[product_id]).await?;
            let Some(current) = existing.first() else {
                return Err(StoreError::not_found(unknown_product(product_id)));
            };
            check_version(Some(current), current_version, product_id)?;
            pictures::remove(&mut tx, current.product_key).await?;
            sqlx::query("delete from products where product_key = $1")
                .bind(current.product_key)
                .execute(&mut *tx)
                .await?;
            let version = current.version + 1;
            announce(&mut tx, caller.account, &[current.product_key], &[version], true).await?;
            let entry = product_entry(current.in_journal(shop), "PRODUCT_DELETED", &caller.user, version);
            journal::record(&mut tx, caller.account, &[entry]).await?;
            Ok(tx.commit().await?)
        })
        .await
    }
}
