//! Creating, replacing, patching and deleting products, each in one transaction with all that announces it.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use sqlx::{FromRow, Row};
use uuid::Uuid;

use crate::domain::applications::{self, Application, ApplicationIssue};
use crate::domain::assignment::Status;
use crate::domain::validation::{self, Declarations};
use crate::domain::{Details, Fault, Product, ProductId, ShopId, Taxonomy};
use crate::store::accounts::Caller;
use crate::store::details::StoredDetails;
use crate::store::journal::{self, Entry, new_uuid, taxonomy_from_stored};
use crate::store::products::{ProductRecord, unknown_product};
use crate::store::{Store, StoreError, Tx, attributes, auto_queue, pictures, quota, with_retries};

/// A product as it is to be stored.
#[derive(Clone, Debug)]
pub struct NewProduct {
    /// Its id, not yet checked.
    pub product_id: String,
    /// Its document, well-formed but not yet checked.
    pub product: Product,
}

/// The applications that a request asks to validate for.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// Those that exist.
    pub applications: Vec<Application>,
    /// What is wrong with the others; told together with the faults of products.
    pub faults: Vec<Fault>,
}

/// What became of a PUT or PATCH.
#[derive(Clone, Debug)]
pub struct Replaced {
    /// The product after it.
    pub record: ProductRecord,
    /// Whether the product was created by it.
    pub created: bool,
}

/// A product row as it stands, locked.
#[derive(Clone, Debug)]
struct Current {
    product_key: i64,
    product_id: String,
    version: i64,
    shop_ids: Vec<i64>,
    /// What cannot be read can still be replaced and deleted.
    details: Result<Details, String>,
    applications: Vec<String>,
}

impl FromRow<'_, PgRow> for Current {
    fn from_row(row: &PgRow) -> Result<Current, sqlx::Error> {
        Ok(Current {
            product_key: row.try_get("product_key")?,
            product_id: row.try_get("product_id")?,
            version: row.try_get("version")?,
            shop_ids: row.try_get("shop_ids")?,
            details: row.try_get("details").map(|read: StoredDetails| read.0).map_err(|error| error.to_string()),
            applications: row.try_get("applications")?,
        })
    }
}

/// A checked change of a product row.
struct Change<'a> {
    current: &'a Current,
    product: &'a Product,
    asked: Vec<Application>,
}

impl Store {
    /// Creates products, all or none; with `update_if_exists`, replaces those that exist.
    ///
    /// # Errors
    /// [`StoreError::Unprocessable`] names every product that breaks a rule or exists already.
    pub async fn create_products(
        &self,
        caller: &Caller,
        shop: ShopId,
        products: &[NewProduct],
        asked: &Asked,
        update_if_exists: bool,
    ) -> Result<(), StoreError> {
        with_retries(|| async {
            let mut tx = self.begin().await?;
            let ids: Vec<&str> = products.iter().map(|new| new.product_id.as_str()).collect();
            let existing = lock_products(&mut tx, caller.account, shop, &ids).await?;
            let existing: HashMap<&str, &Current> =
                existing.iter().map(|current| (current.product_id.as_str(), current)).collect();
            let declarations = attributes::declarations(&mut tx, caller.account).await?;
            let mut faults = asked.faults.clone();
            for new in products {
                faults.extend(product_faults(&new.product_id, &new.product, shop, &declarations));
                if !update_if_exists && existing.contains_key(new.product_id.as_str()) {
                    let message = format!("there is a product \"{}\" already", new.product_id);
                    faults.push(Fault::at("productId", "PRODUCT_EXISTS", message).on(&new.product_id));
                }
            }
            if !faults.is_empty() {
                return Err(StoreError::Unprocessable(faults));
            }
            let mut entries = Vec::new();
            let fresh: Vec<&NewProduct> =
                products.iter().filter(|new| !existing.contains_key(new.product_id.as_str())).collect();
            let keys = insert_products(&mut tx, caller, shop, &fresh, &asked.applications).await?;
            for (new, key) in fresh.iter().zip(&keys) {
                creation_entries(&mut entries, caller, shop, *key, &new.product_id);
            }
            let changes: Vec<Change<'_>> = products
                .iter()
                .filter_map(|new| existing.get(new.product_id.as_str()).map(|current| (new, *current)))
                .map(|(new, current)| Change { current, product: &new.product, asked: asked.applications.clone() })
                .collect();
            let requeued = change_products(&mut tx, caller, shop, &changes, &mut entries).await?;
            quota::charge(&mut tx, caller, keys.len() + requeued).await?;
            journal::record(&mut tx, caller.account, &entries).await?;
            Ok(tx.commit().await?)
        })
        .await
    }

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
        with_retries(|| async {
            let mut tx = self.begin().await?;
            let existing = lock_products(&mut tx, caller.account, shop, &[&new.product_id]).await?;
            check_version(existing.first(), current_version, &new.product_id)?;
            let declarations = attributes::declarations(&mut tx, caller.account).await?;
            let mut faults = asked.faults.clone();
            faults.extend(product_faults(&new.product_id, &new.product, shop, &declarations));
            if !faults.is_empty() {
                return Err(StoreError::Unprocessable(faults));
            }
            let mut entries = Vec::new();
            let checks = match existing.first() {
                None => {
                    let keys = insert_products(&mut tx, caller, shop, &[new], &asked.applications).await?;
                    for key in &keys {
                        creation_entries(&mut entries, caller, shop, *key, &new.product_id);
                    }
                    keys.len()
                }
                Some(current) => {
                    if !preserve_files {
                        pictures::remove(&mut tx, current.product_key).await?;
                    }
                    let change = Change { current, product: &new.product, asked: asked.applications.clone() };
                    change_products(&mut tx, caller, shop, &[change], &mut entries).await?
                }
            };
            quota::charge(&mut tx, caller, checks).await?;
            journal::record(&mut tx, caller.account, &entries).await?;
            tx.commit().await?;
            let record = self.product(caller.account, shop, &new.product_id).await?;
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
            let declarations = attributes::declarations(&mut tx, caller.account).await?;
            let mut faults = asked.faults.clone();
            faults.extend(validation::faults(&product, shop, &declarations));
            if !faults.is_empty() {
                return Err(on_product(faults));
            }
            let mut all: Vec<Application> =
                current.applications.iter().filter_map(|name| Application::from_name(name)).collect();
            let further =
                asked.applications.iter().filter(|new| !current.applications.iter().any(|name| name == new.name()));
            all.extend(further);
            let mut entries = Vec::new();
            let change = Change { current, product: &product, asked: all };
            let checks = change_products(&mut tx, caller, shop, &[change], &mut entries).await?;
            quota::charge(&mut tx, caller, checks).await?;
            journal::record(&mut tx, caller.account, &entries).await?;
            tx.commit().await?;
            self.product(caller.account, shop, product_id).await
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
            journal::record(
                &mut tx,
                caller.account,
                &[product_entry(product, "PRODUCT_DELETED", &caller.user, version)],
            )
            .await?;
            Ok(tx.commit().await?)
        })
        .await
    }
}

/// The products of these ids, locked in the order of their ids, so that writers never wait for each other in a circle.
async fn lock_products(tx: &mut Tx, account: i64, shop: ShopId, ids: &[&str]) -> Result<Vec<Current>, StoreError> {
    let rows = sqlx::query_as(
        "select product_key, product_id, version, shop_ids, details, applications from products
         where account_id = $1 and shop_id = $2 and product_id = any($3) order by product_id for update",
    )
    .bind(account)
    .bind(shop.stored())
    .bind(ids)
    .fetch_all(&mut **tx)
    .await?;
    Ok(rows)
}

fn check_version(current: Option<&Current>, sent: i64, product_id: &str) -> Result<(), StoreError> {
    match current {
        None if sent == 0 => Ok(()),
        None => Err(StoreError::not_found(unknown_product(product_id))),
        Some(current) if current.version == sent => Ok(()),
        Some(current) => {
            let message = format!("the product has version {}, not {sent}", current.version);
            let mut fault = Fault::at("currentVersion", "STALE_VERSION", message).on(product_id);
            fault.current_version = Some(current.version);
            Err(StoreError::Conflict { faults: vec![fault], current_version: Some(current.version) })
        }
    }
}

fn product_faults(product_id: &str, product: &Product, shop: ShopId, declarations: &Declarations) -> Vec<Fault> {
    let mut faults: Vec<Fault> = ProductId::parse(product_id).err().into_iter().collect();
    faults.extend(validation::faults(product, shop, declarations).into_iter().map(|fault| fault.on(product_id)));
    faults
}

/// What the applications columns hold for a product.
fn validated(product: &Product, asked: &[Application]) -> (Value, Value, Value) {
    let (tags, issues) = applications::validate(&product.product_details, asked);
    let names: Vec<&str> = asked.iter().map(|application| application.name()).collect();
    (Value::from(names), Value::from(tags), serde_json::to_value::<Vec<ApplicationIssue>>(issues).unwrap_or_default())
}

/// Inserts new products, their assignments, and what announces them; answers their keys in the order given.
async fn insert_products(
    tx: &mut Tx,
    caller: &Caller,
    shop: ShopId,
    products: &[&NewProduct],
    asked: &[Application],
) -> Result<Vec<i64>, StoreError> {
    if products.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<&str> = products.iter().map(|new| new.product_id.as_str()).collect();
    let rows: Vec<Value> = products
        .iter()
        .map(|new| {
            let (applications, tags, issues) = validated(&new.product, asked);
            serde_json::json!({"s": new.product.shop_ids, "a": applications, "t": tags, "i": issues})
        })
        .collect();
    let details: Vec<Json<&Details>> = products.iter().map(|new| Json(&new.product.product_details)).collect();
    // A product of the same id that another transaction committed meanwhile breaks the constraint: the whole
    // transaction then runs again and finds it.
    let inserted: Vec<(i64, String)> = sqlx::query_as(
        "insert into products (account_id, shop_id, product_id, version, shop_ids, details, applications,
                               application_tags, application_issues)
         select $1, $2, id, 1, array(select jsonb_array_elements_text(r -> 's')::bigint), details,
                array(select jsonb_array_elements_text(r -> 'a')), array(select jsonb_array_elements_text(r -> 't')),
                r -> 'i'
         from unnest($3::text[], $4::jsonb[], $5::jsonb[]) as new (id, r, details) order by id
         returning product_key, product_id",
    )
    .bind(caller.account)
    .bind(shop.stored())
    .bind(&ids)
    .bind(&rows)
    .bind(&details)
    .fetch_all(&mut **tx)
    .await?;
    let by_id: BTreeMap<&str, i64> = inserted.iter().map(|(key, id)| (id.as_str(), *key)).collect();
    let keys: Vec<i64> = ids.iter().filter_map(|id| by_id.get(id).copied()).collect();

    let repeated = |i: usize| i / Taxonomy::ALL.len();
    let count = keys.len() * Taxonomy::ALL.len();
    sqlx::query(
        "insert into assignments (assignment_uuid, account_id, product_key, taxonomy, product_id, shop_id, auto_state)
         select uuid, $1, key, taxonomy, id, $2, 'PENDING'
         from unnest($3::uuid[], $4::bigint[], $5::smallint[], $6::text[]) as new (uuid, key, taxonomy, id)",
    )
    .bind(caller.account)
    .bind(shop.stored())
    .bind((0..count).map(|_| new_uuid()).collect::<Vec<Uuid>>())
    .bind((0..count).map(|i| keys[repeated(i)]).collect::<Vec<i64>>())
    .bind((0..count).map(|i| (i % Taxonomy::ALL.len()) as i16).collect::<Vec<i16>>())
    .bind((0..count).map(|i| ids[repeated(i)]).collect::<Vec<&str>>())
    .execute(&mut **tx)
    .await?;
    auto_queue::push(tx, &keys).await?;
    announce(tx, caller.account, &keys, &vec![1; keys.len()], false).await?;
    Ok(keys)
}

/// Writes changed products, queues again what depends on them, and answers how many products were queued.
async fn change_products<'a>(
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
    let rows: Vec<Value> = changes
        .iter()
        .map(|change| {
            let (applications, tags, issues) = validated(change.product, &change.asked);
            serde_json::json!({"s": change.product.shop_ids, "a": applications, "t": tags, "i": issues})
        })
        .collect();
    let details: Vec<Json<&Details>> = changes.iter().map(|change| Json(&change.product.product_details)).collect();
    sqlx::query(
        "update products set version = version + 1, details = new.details, updated_at = now(),
                shop_ids = array(select jsonb_array_elements_text(r -> 's')::bigint),
                applications = array(select jsonb_array_elements_text(r -> 'a')),
                application_tags = array(select jsonb_array_elements_text(r -> 't')), application_issues = r -> 'i'
         from unnest($1::bigint[], $2::jsonb[], $3::jsonb[]) as new (key, r, details)
         where product_key = key",
    )
    .bind(&keys)
    .bind(&rows)
    .bind(&details)
    .execute(&mut **tx)
    .await?;
    let versions: Vec<i64> = changes.iter().map(|change| change.current.version + 1).collect();
    announce(tx, caller.account, &keys, &versions, false).await?;
    for change in changes {
        let product = (change.current.product_key, change.current.product_id.as_str(), shop.stored());
        entries.push(product_entry(product, "PRODUCT_UPDATED", &caller.user, change.current.version + 1));
    }

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
        });
    }
    auto_queue::push(tx, &queued).await?;
    Ok(queued.len())
}

fn product_entry<'a>(product: (i64, &'a str, i64), action: &'a str, actor: &'a str, version: i64) -> Entry<'a> {
    Entry { product, taxonomy: None, action, actor, status: None, strategy: None, product_class: None, version }
}

fn creation_entries<'a>(entries: &mut Vec<Entry<'a>>, caller: &'a Caller, shop: ShopId, key: i64, id: &'a str) {
    let product = (key, id, shop.stored());
    entries.push(product_entry(product, "PRODUCT_CREATED", &caller.user, 1));
    for taxonomy in Taxonomy::ALL {
        let created = product_entry(product, "CREATE", &caller.user, 0);
        entries.push(Entry { taxonomy: Some(taxonomy), status: Some(Status::Unassigned.name()), ..created });
    }
}

/// Queues the search entries of products to be written or removed.
async fn announce(tx: &mut Tx, account: i64, keys: &[i64], versions: &[i64], deleted: bool) -> Result<(), StoreError> {
    sqlx::query(
        "insert into search_outbox (product_key, account_id, version, deleted)
         select key, $1, version, $4 from unnest($2::bigint[], $3::bigint[]) as changed (key, version)",
    )
    .bind(account)
    .bind(keys)
    .bind(versions)
    .bind(deleted)
    .execute(&mut **tx)
    .await?;
    Ok(())
}
