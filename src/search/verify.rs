//! Compares the index with the database.

use std::collections::BTreeMap;
use std::fmt;

use crate::search::{Engine, EngineError};

/// Entries that are compared at once.
const COMPARED: usize = 5_000;

/// How an entry differs from its product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The product has no entry.
    Missing {
        /// The product's key.
        key: i64,
        /// Its id.
        product_id: String,
    },
    /// The entry is of another version.
    Version {
        /// The product's key.
        key: i64,
        /// Its id.
        product_id: String,
        /// Its version.
        version: i64,
        /// The version of the entry.
        indexed: i64,
    },
    /// There is no such product.
    Extra {
        /// The key of the entry.
        key: i64,
    },
}

/// What a comparison found.
#[derive(Clone, Debug, Default)]
pub struct Verified {
    /// How many products were compared.
    pub products: i64,
    /// How many differ.
    pub differences: i64,
    /// How many changes were still on their way: they may explain differences.
    pub waiting: i64,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::Missing { key, product_id } => write!(f, "product {product_id:?} (key {key}) is not indexed"),
            Difference::Version { key, product_id, version, indexed } => {
                write!(f, "product {product_id:?} (key {key}) has version {version}, its entry {indexed}")
            }
            Difference::Extra { key } => write!(f, "the entry with key {key} belongs to no product"),
        }
    }
}

impl Engine {
    /// Compares every product with its entry, telling each difference.
    ///
    /// # Errors
    /// When the engine or the database fails.
    pub async fn verify(&self, tell: &(dyn Fn(&Difference) + Send + Sync)) -> Result<Verified, EngineError> {
        self.refresh().await?;
        let mut verified = Verified { waiting: self.store().search_queue_length().await?, ..Verified::default() };
        let mut after = i64::MIN;
        loop {
            let products = self.store().product_versions(after, COMPARED).await?;
            let entries = self.versions(after, COMPARED).await?;
            // Beyond the last key of a full page nothing is known yet.
            let end =
                [(products.len(), products.last().map(|row| row.0)), (entries.len(), entries.last().map(|row| row.0))]
                    .into_iter()
                    .filter(|(length, _)| *length == COMPARED)
                    .filter_map(|(_, last)| last)
                    .min();
            let within = |key: i64| end.is_none_or(|end| key <= end);
            let mut entries: BTreeMap<i64, i64> = entries.into_iter().filter(|(key, _)| within(*key)).collect();
            for (key, version, product_id) in products.into_iter().filter(|(key, ..)| within(*key)) {
                verified.products += 1;
                let difference = match entries.remove(&key) {
                    Some(indexed) if indexed == version => continue,
                    Some(indexed) => Difference::Version { key, product_id, version, indexed },
                    None => Difference::Missing { key, product_id },
                };
                verified.differences += 1;
                tell(&difference);
            }
            for key in entries.into_keys() {
                verified.differences += 1;
                tell(&Difference::Extra { key });
            }
            let Some(end) = end else { return Ok(verified) };
            after = end;
        }
    }
}
