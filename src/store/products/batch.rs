//! Many products of one request, each with its own fate: all or none, or as many as can be.

use std::collections::HashMap;

use serde_json::Value;

use crate::computing;
use crate::domain::applications::Application;
use crate::domain::validation::Declarations;
use crate::domain::{Fault, Product, ShopId};
use crate::store::accounts::Caller;
use crate::store::journal::{self, Entry};
use crate::store::products::change::{Change, Replacement, change_products, in_order, replace_products};
use crate::store::products::create::{Creation, ENTRIES_OF_CREATION};
use crate::store::products::locked::{Current, Stored, details_of, lock_products, parts, unreadable};
use crate::store::products::unknown_product;
use crate::store::products::write::{
    Asked, Columns, Declared, NewProduct, PRODUCT_BYTES, announce, check_version, product_entry, product_faults,
    relied_on,
};
use crate::store::{Store, StoreError, Tx, attributes, pictures, quota, with_retries};

/// A change of one product of many.
#[derive(Clone, Debug)]
pub struct Update {
    /// The product.
    pub product_id: String,
    /// The version last read.
    pub current_version: i64,
    /// A merge patch of the right shape.
    pub patch: Value,
}

/// A deletion of one product of many.
#[derive(Clone, Debug)]
pub struct Deletion {
    /// The product.
    pub product_id: String,
    /// The version last read.
    pub current_version: i64,
}

/// What became of one product of many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is there for the first time, with version 1.
    Created,
    /// It has this version now.
    Changed(i64),
    /// It is gone.
    Deleted,
    /// It was left: there is no such product.
    Unknown(Vec<Fault>),
    /// It was left: it has another version.
    Stale(Vec<Fault>),
    /// It was left: what it would become breaks rules.
    Broken(Vec<Fault>),
}

impl Fate {
    fn of(error: StoreError) -> Result<Fate, StoreError> {
        match error {
            StoreError::NotFound(faults) => Ok(Fate::Unknown(faults)),
            StoreError::Conflict { faults, .. } => Ok(Fate::Stale(faults)),
            StoreError::Unprocessable(faults) => Ok(Fate::Broken(faults)),
            other => Err(other),
        }
    }
}

/// The error of a request that is done as a whole or not at all: the first kind of failure that there is, with all its
/// items.
fn first_failure(fates: &[Fate]) -> Option<StoreError> {
    let collect = |of: fn(&Fate) -> Option<&Vec<Fault>>| -> Vec<Fault> {
        fates.iter().filter_map(of).flatten().cloned().collect()
    };
    let unknown = collect(|fate| if let Fate::Unknown(faults) = fate { Some(faults) } else { None });
    let stale = collect(|fate| if let Fate::Stale(faults) = fate { Some(faults) } else { None });
    let broken = collect(|fate| if let Fate::Broken(faults) = fate { Some(faults) } else { None });
    if !unknown.is_empty() {
        Some(StoreError::NotFound(unknown))
    } else if !stale.is_empty() {
        // Of several each entry has its own.
        let current_version =
            if fates.len() == 1 { stale.first().and_then(|fault| fault.current_version) } else { None };
        Some(StoreError::Conflict { faults: stale, current_version })
    } else if !broken.is_empty() {
        Some(StoreError::Unprocessable(broken))
    } else {
        None
    }
}

/// A product as a patch makes it.
struct Patched<'a> {
    current: &'a Current,
    product: Product,
    columns: Columns,
    asked: Vec<Application>,
}

impl Store {
    /// Creates products, or with `update_if_exists` replaces those that exist; those that break a rule or exist already
    /// are left.
    ///
    /// # Errors
    /// [`StoreError::Unprocessable`] when an application does not exist, and the plan's limit.
    pub async fn create_what_can_be(
        &self,
        caller: &Caller,
        shop: ShopId,
        products: &[NewProduct],
        asked: &Asked,
        update_if_exists: bool,
    ) -> Result<Vec<Fate>, StoreError> {
        if !asked.faults.is_empty() {
            return Err(StoreError::Unprocessable(asked.faults.clone()));
        }
        let columns: Vec<Columns> =
            products.iter().map(|new| Columns::of(&new.product, &asked.applications)).collect::<Result<_, _>>()?;
        let ids: Vec<&str> = products.iter().map(|new| new.product_id.as_str()).collect();
        let (judged_by, none) = (relied_on(self, caller, products).await?, Declarations::default());
        let judge = |declarations: &Declarations| -> Vec<Vec<Fault>> {
            let one = |(new, columns): (&NewProduct, &Columns)| {
                product_faults(&new.product_id, &new.product, columns, shop, declarations)
            };
            products.iter().zip(&columns).map(one).collect()
        };
        // Before there is a lock that others wait for.
        let judged = computing::in_place(products.len() * PRODUCT_BYTES, || judge(judged_by.as_ref().unwrap_or(&none)));
        with_retries(|| async {
            let mut tx = self.begin().await?;
            let mut judged = judged.clone();
            if let Some(judged_by) = &judged_by {
                let declarations = attributes::declarations(&mut tx, caller.account).await?;
                // One may have come or gone since the first look; from here on none goes.
                if declarations != *judged_by {
                    judged = judge(&declarations);
                }
            }
            let existing = lock_products(&mut tx, caller.account, shop, &ids).await?;
            let existing: HashMap<&str, &Current> =
                existing.iter().map(|current| (current.product_id.as_str(), current)).collect();
            let fate = |new: &NewProduct, mut faults: Vec<Fault>| {
                let current = existing.get(new.product_id.as_str());
                if current.is_some() && !update_if_exists {
                    let message = format!("there is a product \"{}\" already", new.product_id);
                    faults.push(Fault::at("productId", "PRODUCT_EXISTS", message).on(&new.product_id));
                }
                match (faults.is_empty(), current) {
                    (false, _) => Fate::Broken(faults),
                    (true, Some(current)) => Fate::Changed(current.version + 1),
                    (true, None) => Fate::Created,
                }
            };
            let fates: Vec<Fate> = products.iter().zip(judged).map(|(new, faults)| fate(new, faults)).collect();
            let made: HashMap<&str, &Fate> = ids.iter().copied().zip(&fates).collect();
            let creation = Creation { caller, shop, products, columns: &columns, asked: &asked.applications };
            let fresh = fates.iter().filter(|fate| **fate == Fate::Created).count();
            quota::require_room(&mut tx, caller, fresh).await?;
            creation.insert(&mut *tx, |new| made.get(new.product_id.as_str()) == Some(&&Fate::Created), 0).await?;
            let replacements: Vec<Replacement<'_, '_>> = products
                .iter()
                .zip(&columns)
                .zip(&fates)
                .filter(|(_, fate)| matches!(fate, Fate::Changed(_)))
                .filter_map(|((new, columns), _)| Some((*existing.get(new.product_id.as_str())?, new, columns)))
                .collect();
            let mut entries = Vec::new();
            let asked = &asked.applications;
            let requeued = replace_products(&mut tx, caller, shop, &replacements, asked, &mut entries).await?;
            quota::charge(&mut tx, caller, fresh + requeued).await?;
            journal::record_after(&mut tx, caller.account, fresh * ENTRIES_OF_CREATION, &entries).await?;
            tx.commit().await?;
            Ok(fates)
        })
        .await
    }

    /// Changes products by merge patches, whose outcome `apply` computes from the document in force: all or none, or
    /// with `skip` those that can be. Fates come in the order of the updates.
    ///
    /// # Errors
    /// Without `skip` in this order: not found, conflict, unprocessable. The plan's limit.
    pub async fn update_products(
        &self,
        caller: &Caller,
        shop: ShopId,
        updates: &[Update],
        skip: bool,
        apply: impl Fn(&Product, &Value) -> Result<Product, Vec<Fault>>,
    ) -> Result<Vec<Fate>, StoreError> {
        let apply = &apply;
        let ids: Vec<&str> = updates.iter().map(|update| update.product_id.as_str()).collect();
        with_retries(|| async {
            let mut tx = self.begin().await?;
            let existing = lock_products(&mut tx, caller.account, shop, &ids).await?;
            let existing: HashMap<&str, &Current> =
                existing.iter().map(|current| (current.product_id.as_str(), current)).collect();
            let mut fates: Vec<Option<Fate>> = Vec::with_capacity(updates.len());
            let mut named = Vec::with_capacity(updates.len());
            for (at, update) in updates.iter().enumerate() {
                let current = existing.get(update.product_id.as_str()).copied();
                fates.push(match found(current, &update.product_id, update.current_version) {
                    Ok(current) => {
                        named.push((at, update, current));
                        None
                    }
                    Err(error) => Some(Fate::of(error)?),
                });
            }
            let keys: Vec<i64> = named.iter().map(|(.., current)| current.product_key).collect();
            // Assignments are locked part by part, and everybody locks them by the keys of their products.
            named.sort_by_key(|(.., current)| current.product_key);
            let declared = Declared::default();
            let mut updating = Updating { caller, shop, skip, fates, declared, entries: Vec::new(), requeued: 0 };
            for (bytes, part) in parts(&named, |(.., current)| current.size) {
                updating.part(&mut tx, bytes, part, apply).await?;
            }
            let Updating { fates, mut entries, requeued, .. } = updating;
            in_order(&mut entries, keys.into_iter());
            let fates: Vec<Fate> = fates.into_iter().flatten().collect();
            if let Some(error) = first_failure(&fates).filter(|_| !skip) {
                return Err(error);
            }
            quota::charge(&mut tx, caller, requeued).await?;
            journal::record(&mut tx, caller.account, &entries).await?;
            tx.commit().await?;
            Ok(fates)
        })
        .await
    }

    /// Deletes products with their assignments and pictures: all or none, or with `skip` those that can be. Fates come
    /// in the order of the deletions.
    ///
    /// # Errors
    /// Without `skip` in this order: not found, conflict.
    pub async fn delete_products(
        &self,
        caller: &Caller,
        shop: ShopId,
        deletions: &[Deletion],
        skip: bool,
    ) -> Result<Vec<Fate>, StoreError> {
        let ids: Vec<&str> = deletions.iter().map(|deletion| deletion.product_id.as_str()).collect();
        with_retries(|| async {
            let mut tx = self.begin().await?;
            let existing = lock_products(&mut tx, caller.account, shop, &ids).await?;
            let existing: HashMap<&str, &Current> =
                existing.iter().map(|current| (current.product_id.as_str(), current)).collect();
            let (mut fates, mut gone) = (Vec::new(), Vec::new());
            for deletion in deletions {
                match found(
                    existing.get(deletion.product_id.as_str()).copied(),
                    &deletion.product_id,
                    deletion.current_version,
                ) {
                    Ok(current) => {
                        fates.push(Fate::Deleted);
                        gone.push(current);
                    }
                    Err(error) => fates.push(Fate::of(error)?),
                }
            }
            if let Some(error) = first_failure(&fates).filter(|_| !skip) {
                return Err(error);
            }
            let keys: Vec<i64> = gone.iter().map(|current| current.product_key).collect();
            let versions: Vec<i64> = gone.iter().map(|current| current.version + 1).collect();
            for key in &keys {
                pictures::remove(&mut tx, *key).await?;
            }
            sqlx::query("delete from products where product_key = any($1)").bind(&keys).execute(&mut *tx).await?;
            announce(&mut tx, caller.account, &keys, &versions, true).await?;
            let entries: Vec<_> = gone
                .iter()
                .map(|current| {
                    product_entry(current.in_journal(shop), "PRODUCT_DELETED", &caller.user, current.version + 1)
                })
                .collect();
            journal::record(&mut tx, caller.account, &entries).await?;
            tx.commit().await?;
            Ok(fates)
        })
        .await
    }
}

/// Updates that are being made: what became of those so far, and what is still to be written of them.
struct Updating<'a> {
    caller: &'a Caller,
    shop: ShopId,
    /// Whether what cannot be done is left, and the rest done.
    skip: bool,
    /// By the place of the update; none where its part is yet to come.
    fates: Vec<Option<Fate>>,
    declared: Declared,
    entries: Vec<Entry<'a>>,
    requeued: usize,
}

impl<'a> Updating<'a> {
    /// Patches the products of one part, and writes those that may be.
    async fn part(
        &mut self,
        tx: &mut Tx,
        bytes: usize,
        part: &[(usize, &Update, &'a Current)],
        apply: &impl Fn(&Product, &Value) -> Result<Product, Vec<Fault>>,
    ) -> Result<(), StoreError> {
        let stored = details_of(tx, part.iter().map(|(.., current)| *current)).await?;
        let made = part.iter().map(|&(at, update, current)| match stored.of(current) {
            Some(details) => (at, patch(details, current, update, apply)),
            None => (at, Err(StoreError::not_found(unknown_product(&update.product_id)))),
        });
        let made: Vec<_> = computing::in_place(bytes, || made.collect());
        let mut patched = Vec::with_capacity(part.len());
        for (at, made) in made {
            self.fates[at] = Some(match made {
                Err(error) => Fate::of(error)?,
                Ok(made) => {
                    let id = &made.current.product_id;
                    let declarations = self.declared.for_product(tx, self.caller.account, &made.product).await?;
                    let faults = product_faults(id, &made.product, &made.columns, self.shop, declarations);
                    if faults.is_empty() {
                        let version = made.current.version + 1;
                        patched.push(made);
                        Fate::Changed(version)
                    } else {
                        Fate::Broken(faults)
                    }
                }
            });
        }
        // Of what is done as a whole or not at all, the rest is judged only where something cannot be done.
        if self.skip || self.fates.iter().flatten().all(|fate| matches!(fate, Fate::Changed(_))) {
            let changes: Vec<Change<'_, '_>> = patched
                .iter()
                .map(|made| Change {
                    current: made.current,
                    before: stored.readable(made.current),
                    product: &made.product,
                    columns: &made.columns,
                    asked: made.asked.clone(),
                })
                .collect();
            self.requeued += change_products(tx, self.caller, self.shop, &changes, &mut self.entries).await?;
        }
        Ok(())
    }
}

/// The product, if it is there with the version that was sent.
fn found<'a>(current: Option<&'a Current>, product_id: &str, sent: i64) -> Result<&'a Current, StoreError> {
    let Some(current) = current else { return Err(StoreError::not_found(unknown_product(product_id))) };
    check_version(Some(current), sent, product_id)?;
    Ok(current)
}

/// What a patch makes of a product.
fn patch<'a>(
    details: &Stored,
    current: &'a Current,
    update: &Update,
    apply: impl Fn(&Product, &Value) -> Result<Product, Vec<Fault>>,
) -> Result<Patched<'a>, StoreError> {
    let on_product = |faults: Vec<Fault>| {
        StoreError::Unprocessable(faults.into_iter().map(|fault| fault.on(&update.product_id)).collect())
    };
    let details = details.clone().map_err(|error| on_product(vec![unreadable(&update.product_id, &error)]))?;
    let before = Product { shop_ids: current.shop_ids.clone(), product_details: details };
    let product = apply(&before, &update.patch).map_err(on_product)?;
    let asked: Vec<Application> = current.applications.iter().filter_map(|name| Application::from_name(name)).collect();
    let columns = Columns::of(&product, &asked)?;
    Ok(Patched { current, product, columns, asked })
}
