//! What search needs of the truth: the queue of changes to project, the list of indices that are being fed, and what is
//! read of the products themselves.

mod indexes;
mod outbox;
mod products;

pub use indexes::{IndexRecord, RebuildLock};
pub use outbox::{Change, Claim, LEASE, Outcome, Part, StoredProduct};
