//! What can be wrong with a model file.

use std::path::PathBuf;

/// Why a model file is refused.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// It cannot be read.
    #[error("model file {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is no model file, or cut short.
    #[error("not a model file: {0}")]
    Malformed(&'static str),
    /// Its bytes are not those that were written.
    #[error("the checksum does not match: the model file is damaged")]
    Checksum,
    /// It was made for another version of the program.
    #[error("{what} is version {found}, this program needs {wanted}: fit the model again")]
    Version {
        /// Whose version it is.
        what: &'static str,
        /// What the file says.
        found: u32,
        /// What this program has.
        wanted: u32,
    },
}
