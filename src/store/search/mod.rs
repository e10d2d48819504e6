//! What search keeps in the database: the queue of changes to project, the projection that answers filterCriteria
//! where there is no Elasticsearch, and the list of indices that are being fed.

mod indexes;
mod lower;
mod outbox;
mod projection;
mod query;

pub use indexes::{IndexRecord, RebuildLock};
pub use outbox::{Change, Claim, LEASE, Outcome, Part, StoredProduct};
pub(super) use query::refused;
pub use query::{FilterError, Found, Search};
