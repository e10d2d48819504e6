//! What is told of an import: how far it is, how it ended, and why.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::Fault;
use crate::exchange::{ImportError, Summary};
use crate::files::{FileError, MappingError, RowFault};
use crate::http::error::ApiError;

/// How an import ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum ImportState {
    /// The whole file was read.
    Done,
    /// It ended before the file; `error` says why. What was stored by then stays, and sending the file again is safe.
    Stopped,
}

/// What became of a file.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct ImportAnswer {
    /// DONE, or STOPPED before the end of the file.
    state: ImportState,
    /// Whether everything was judged and nothing stored.
    dry_run: bool,
    /// Products made.
    created: u64,
    /// Products changed.
    updated: u64,
    /// Products that were as the file wants them already.
    unchanged: u64,
    /// Lines that were left because of what is wrong with them.
    refused: u64,
    /// Columns that mean nothing to this service and were left.
    left_columns: Vec<String>,
    /// What is wrong with the lines that were left; at most 1,000. A report in CSV has all.
    faults: Vec<ImportFault>,
    /// How many faults there are beyond those that are named.
    #[serde(skip_serializing_if = "is_zero")]
    more_faults: u64,
    /// Why it stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ImportStop>,
}

/// What is wrong with a line of a file.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ImportFault {
    /// The line, the row of the sheet or the item of the feed, counted from 1.
    line: u64,
    /// The product, as far as the line names it.
    product_id: String,
    /// The column by its name in the file; empty where it is the line as a whole.
    column: String,
    /// What is wrong, in words.
    message: String,
}

/// Why an import stopped.
#[derive(Debug, Serialize, ToSchema)]
struct ImportStop {
    /// The kind of error, as errors name it.
    code: String,
    /// What is wrong, in words.
    message: String,
}

/// A line of an import's progress.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ImportProgress {
    /// Rows that are done with, stored or refused.
    pub(super) rows: u64,
    /// Bytes of the file that are read.
    pub(super) bytes: u64,
    /// Bytes of the file.
    pub(super) size: u64,
}

/// What became of a file, and why it ended before its end.
pub(super) type Ended = (Summary, Option<ImportError>);

impl ImportAnswer {
    pub(super) fn new((summary, stopped): Ended, dry_run: bool) -> ImportAnswer {
        let Summary { created, updated, unchanged, refused, left_columns, faults, more_faults } = summary;
        let error = stopped.map(|error| {
            let (code, message) = refusal(error).told();
            ImportStop { code, message }
        });
        let state = if error.is_none() { ImportState::Done } else { ImportState::Stopped };
        let fault = |RowFault { line, product_id, column, message }| ImportFault { line, product_id, column, message };
        let faults = faults.into_iter().map(fault).collect();
        ImportAnswer { state, dry_run, created, updated, unchanged, refused, left_columns, faults, more_faults, error }
    }

    /// The line of a report that says why it ended early.
    pub(super) fn stopped_line(&self) -> Option<[&str; 5]> {
        self.error.as_ref().map(|error| ["", "", "stopped", "", error.message.as_str()])
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The error that stands for an import that ended early.
pub(super) fn refusal(error: ImportError) -> ApiError {
    let message = error.to_string();
    let unusable = |code: &'static str, field: &str| {
        ApiError::Unprocessable(message.clone(), vec![Fault::at(field, code, message.clone())])
    };
    match error {
        ImportError::File(FileError::Io(error)) | ImportError::Report(error) => no_room(&error),
        ImportError::File(_) => unusable("UNREADABLE_FILE", "file"),
        ImportError::Mapping(MappingError::NoPair(_) | MappingError::NoField(_)) => {
            ApiError::malformed_at("map", message)
        }
        ImportError::Mapping(_) => unusable("UNUSABLE_COLUMNS", "map"),
        ImportError::Store(error) => error.into(),
        ImportError::Reader => ApiError::Internal(message),
    }
}

/// The error where the disk takes nothing or gives nothing.
pub(super) fn no_room(error: &std::io::Error) -> ApiError {
    tracing::warn!(%error, "a file cannot be kept on the disk");
    ApiError::Unavailable("files cannot be taken or given at present")
}
