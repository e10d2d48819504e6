//! What search needs of the truth: the queue of changes to project, the list of indices that are being fed, and what is
//! read of the products themselves.

mod indexes;
mod outbox;
mod products;

use crate::computing;

pub use indexes::{IndexRecord, RebuildLock};
pub use outbox::{Change, Claim, LEASE, Outcome, Part, StoredProduct};

/// What to write of products, and of which nothing can be made, and why: a panic costs that product alone. `make` is
/// [`StoredProduct::change`].
pub fn changes_of(
    products: Vec<StoredProduct>,
    make: impl Fn(StoredProduct) -> Change,
) -> (Vec<Change>, Vec<(Change, String)>) {
    let (mut changes, mut refused) = (Vec::with_capacity(products.len()), Vec::new());
    for product in products {
        let (key, account, version) = (product.product_key, product.account_id, product.version);
        match computing::guarded(|| make(product)) {
            Ok(change) => changes.push(change),
            Err(reason) => refused.push((Change { key, account, version, document: None }, reason)),
        }
    }
    (changes, refused)
}
