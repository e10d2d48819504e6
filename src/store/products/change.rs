//! Replacing, patching and deleting products, each in one transaction with all that announces it.

use std::collections::HashMap;

use crate::domain::applications::Application;
use crate::domain::assignment::Status;
use crate::domain::validation::Declarations;
use crate::domain::{Fault, Product, ShopId};
use crate::store::accounts::Caller;
use crate::store::journal::{self, Entry, taxonomy_from_stored};
use crate::store::products::create::{Creation, ENTRIES_OF_CREATION};
use crate::store::products::write::{
    Asked, Columns, Current, NewProduct, announce, check_version, has_attributes, lock_products, product_entry,
    product_faults,
};
use crate::store::products::{ProductRecord, product_in, unknown_product};
use crate::store::{Store, StoreError, Tx, attributes, auto_queue, pictures, quota, with_retries};

/// What became of a PUT or PATCH.
#[derive(Clone, Debug)]
pub struct Replaced {
    /// The product after it.
    pub record: ProductRecord,
    /// Whether the product was created by it.
    pub created: bool,
}

/// A checked change of a product row.
pub(super) struct Change<'a> {
    pub current: &'a Current,
    pub product: &'a Product,
    pub columns: &'a Columns,
    pub asked: Vec<Application>,
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
            let existing = lock_products(&mut tx, caller.account, shop, &[&new.product_id]).await?;
            check_version(existing.first(), current_version, &new.product_id)?;
            let declarations = declarations(&mut tx, caller, &new.product).await?;
            let mut faults = asked.faults.clone();
            faults.extend(product_faults(&new.product_id, &new.product, &columns[0], shop, &declarations));
            if !faults.is_empty() {
                return Err(StoreError::Unprocessable(faults));
            }
            let (mut entries, mut written, mut checks) = (Vec::new(), 0, 1);
            match existing.first() {
                None => {
                    let products = std::slice::from_ref(new);
                    let creation = Creation { caller, shop, products, columns, asked: &asked.applications };
                    creation.insert(&mut *tx, |_| true, 0).await?;
                    written = ENTRIES_OF_CREATION;
                }
                Some(current) => {
                    if !preserve_files {
                        pictures::remove(&mut tx, current.product_key).await?;
                    }
                    let asked = asked.applications.clone();
                    let change = Change { current, product: &new.product, columns: &columns[0], asked };
                    checks = change_products(&mut tx, caller, shop, &[change], &mut entries).await?;
                }
            }
            quota::charge(&mut tx, caller, checks).await?;
            journal::record_after(&mut tx, caller.account, written, &entries).await?;
            // Read before the commit: what another writer makes of it afterwards is not the answer to this request.
            let record = product_in(&mut *tx, caller.account, shop, &new.product_id).await?;
            tx.commit().await?;
            Ok(Replaced { record, created: existing.is_empty() })
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
            let existing = lock_products(&mut tx, caller.account, shop, &[product_id]).await?;
            let Some(current) = existing.first() else {
                return Err(StoreError::not_found(unknown_product(product_id)));
            };
            check_version(Some(current), current_version, product_id)?;
            let details = current.details.clone().map_err(|error| sqlx::Error::Decode(error.into()))?;
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
            let declarations = declarations(&mut tx, caller, &product).await?;
            let mut faults = asked.faults.clone();
            faults.extend(product_faults(product_id, &product, &columns, shop, &declarations));
            if !faults.is_empty() {
                return Err(on_product(faults));
            }
            let mut entries = Vec::new();
            let change = Change { current, product: &product, columns: &columns, asked: all };
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
            let product = (current.product_key, product_id, shop.stored());
            let entry = product_entry(product, "PRODUCT_DELETED", &caller.user, version);
            journal::record(&mut tx, caller.account, &[entry]).await?;
            Ok(tx.commit().await?)
        })
        .await
    }
}

/// The declarations that a product has to follow; looked up only where it has to follow any.
async fn declarations(tx: &mut Tx, caller: &Caller, product: &Product) -> Result<Declarations, StoreError> {
    if has_attributes(product) {
        attributes::declarations(tx, caller.account).await
    } else {
        Ok(Declarations::default())
    }
}

/// Writes changed products, queues again what depends on them, and answers how many products were queued.
pub(super) async fn change_products<'a>(
    tx: &mut Tx,
    caller: &'a Caller,
    shop: ShopId,
    changes: &[Change<'a>],
    entries: &mut Vec<Entry<'a>>,
) -> Result<usize, StoreError> {
    if changes.is_empty() {
        return Ok(0);
    }
    let keys: Vec<i64> = changes.iter().map(|change| change.current.product_key).collect();
    let applications: Vec<String> = changes
        .iter()
        .map(|change| change.asked.iter().map(|application| application.name()).collect::<Vec<_>>().join(","))
        .collect();
    sqlx::query(
        "update products set version = version + 1, details = new.details::jsonb, details_size = new.size, updated_at = now(),
                applications = string_to_array(new.asked, ','),
                shop_ids = case when extra is null then '{}'
                                else array(select jsonb_array_elements_text(extra::jsonb -> 's')::bigint) end,
                application_tags = case when extra is null then '{}'
                                        else array(select jsonb_array_elements_text(extra::jsonb -> 't')) end,
                application_issues = case when extra is null then '[]'::jsonb else extra::jsonb -> 'i' end
         from unnest($1::bigint[], $2::text[], $3::integer[], $4::text[], $5::text[])
              as new (key, details, size, extra, asked)
         where product_key = key",
    )
    .bind(&keys)
    .bind(changes.iter().map(|change| change.columns.details.as_str()).collect::<Vec<_>>())
    .bind(changes.iter().map(|change| change.columns.size()).collect::<Vec<_>>())
    .bind(changes.iter().map(|change| change.columns.extra.as_deref()).collect::<Vec<_>>())
    .bind(&applications)
    .execute(&mut **tx)
    .await?;
    let versions: Vec<i64> = changes.iter().map(|change| change.current.version + 1).collect();
    announce(tx, caller.account, &keys, &versions, false).await?;
    for change in changes {
        let product = (change.current.product_key, change.current.product_id.as_str(), shop.stored());
        entries.push(product_entry(product, "PRODUCT_UPDATED", &caller.user, change.current.version + 1));
    }

    let weighed: Vec<(i64, f32)> = changes
        .iter()
        .map(|change| (change, change.product.product_details.review_weight()))
        .filter(|(change, weight)| {
            !change.current.details.as_ref().is_ok_and(|before| before.review_weight() == *weight)
        })
        .map(|(change, weight)| (change.current.product_key, weight))
        .collect();
    auto_queue::weigh(tx, &weighed).await?;

    let affected: HashMap<i64, &str> = changes
        .iter()
        .filter(|change| {
            let before = change.current.details.as_ref();
            !before.is_ok_and(|before| before.same_evidence(&change.product.product_details))
        })
        .map(|change| (change.current.product_key, change.current.product_id.as_str()))
        .collect();
    let mut affected_keys: Vec<i64> = affected.keys().copied().collect();
    affected_keys.sort_unstable();
    let touched = auto_queue::product_changed(tx, &affected_keys).await?;
    let mut queued: Vec<i64> = Vec::new();
    for assignment in touched {
        if assignment.auto_state == "PENDING" && queued.last() != Some(&assignment.product_key) {
            queued.push(assignment.product_key);
        }
        let id = affected.get(&assignment.product_key).copied().unwrap_or_default();
        entries.push(Entry {
            product: (assignment.product_key, id, shop.stored()),
            taxonomy: Some(taxonomy_from_stored(assignment.taxonomy)),
            action: "PRODUCT_CHANGED",
            actor: &caller.user,
            status: Status::from_name(&assignment.status).map(Status::name),
            strategy: assignment.strategy_name(),
            product_class: assignment.product_class,
            version: assignment.version,
            ..Entry::default()
        });
    }
    auto_queue::push(tx, caller.account, &queued).await?;
    Ok(queued.len())
}
