//! What creating and changing products have in common.

use serde_json::Value;

use crate::domain::applications::{self, Application};
use crate::domain::validation::{self, Declarations};
use crate::domain::{Fault, Product, ProductId, ShopId};
use crate::store::accounts::Caller;
use crate::store::journal::{Entry, Subject};
use crate::store::products::locked::Current;
use crate::store::products::unknown_product;
use crate::store::{Store, StoreError, Tx, attributes};

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

/// A product in the form in which its columns take it.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    /// The details as JSON.
    pub details: String,
    /// Shops, tags and issues as JSON; none where all three are empty, as they mostly are.
    pub extra: Option<String>,
}

impl Columns {
    /// Writes a product out, with what it lacks for applications.
    pub(super) fn of(product: &Product, asked: &[Application]) -> Result<Columns, StoreError> {
        let encode = |error: serde_json::Error| sqlx::Error::Encode(error.into());
        let details = serde_json::to_string(&product.product_details).map_err(encode)?;
        let (tags, issues) = applications::validate(&product.product_details, asked);
        let is_plain = product.shop_ids.is_empty() && tags.is_empty() && issues.is_empty();
        let extra = || serde_json::json!({"s": product.shop_ids, "t": tags, "i": issues}).to_string();
        Ok(Columns { details, extra: (!is_plain).then(extra) })
    }

    /// Bytes of the details.
    pub(super) fn size(&self) -> i32 {
        i32::try_from(self.details.len()).unwrap_or(i32::MAX)
    }

    /// A fault when the product is too large.
    pub(super) fn fault(&self) -> Option<Fault> {
        validation::size_fault(self.details.len())
    }
}

pub(super) fn check_version(current: Option<&Current>, sent: i64, product_id: &str) -> Result<(), StoreError> {
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

/// Everything that is wrong with a product.
pub(super) fn product_faults(
    product_id: &str,
    product: &Product,
    columns: &Columns,
    shop: ShopId,
    declarations: &Declarations,
) -> Vec<Fault> {
    let mut faults: Vec<Fault> = ProductId::parse(product_id).err().into_iter().collect();
    let of_product = validation::faults(product, shop, declarations).into_iter().chain(columns.fault());
    faults.extend(of_product.map(|fault| fault.on(product_id)));
    faults
}

/// Bytes of an ordinary product: by their number it is told whether judging them takes long.
pub(super) const PRODUCT_BYTES: usize = 1 << 10;

/// Whether a product has values of merchant attributes, which have to be declared.
fn has_attributes(product: &Product) -> bool {
    let is_given = |values: &Option<serde_json::Map<String, Value>>| values.as_ref().is_some_and(|map| !map.is_empty());
    let details = &product.product_details;
    is_given(&details.merchant_product_attributes)
        || details.languages().any(|(_, texts)| is_given(&texts.merchant_product_attributes))
}

/// The declarations of an account as its products need them: looked up with the first that has attributes. Few have any, and
/// an account may have declared a thousand.
#[derive(Default)]
pub(super) struct Declared {
    declarations: Declarations,
    is_looked_up: bool,
}

impl Declared {
    /// Those that a product has to follow; from then on none is removed before the transaction ends.
    pub(super) async fn for_product(
        &mut self,
        tx: &mut Tx,
        account: i64,
        product: &Product,
    ) -> Result<&Declarations, StoreError> {
        if has_attributes(product) && !self.is_looked_up {
            self.declarations = attributes::declarations(tx, account).await?;
            self.is_looked_up = true;
        }
        Ok(&self.declarations)
    }
}

/// The declarations of attributes that products rely on, as they are before anything is locked; none when no product has any.
pub(super) async fn relied_on(
    store: &Store,
    caller: &Caller,
    products: &[NewProduct],
) -> Result<Option<Declarations>, StoreError> {
    match products.iter().any(|new| has_attributes(&new.product)) {
        true => Ok(Some(attributes::declared(store.pool(), caller.account).await?)),
        false => Ok(None),
    }
}

pub(super) fn product_entry<'a>(product: Subject<'a>, action: &'a str, actor: &'a str, version: i64) -> Entry<'a> {
    Entry { product, action, actor, version, ..Entry::default() }
}

/// Queues the search entries of products to be written or removed.
pub(super) async fn announce(
    tx: &mut Tx,
    account: i64,
    keys: &[i64],
    versions: &[i64],
    deleted: bool,
) -> Result<(), StoreError> {
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
