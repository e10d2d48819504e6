//! Products from files into the database and from it into files, in memory that does not grow with them.

mod export;
mod import;

pub use export::{ExportError, Exported, export};
pub use import::{ImportError, ImportSettings, Progress, Summary, import};
