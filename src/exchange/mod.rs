//! Products from files into the database and from it into files, in memory that does not grow with them.

mod export;
mod import;
mod seen;
mod spool;

pub use export::{Export, ExportError, Exported, export};
pub use import::{ImportError, ImportSettings, MEMORY_BYTES, Progress, Summary, import, import_as_far_as_possible};
pub use spool::Spool;
