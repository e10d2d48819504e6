//! The products of the account as a file, written while it is sent.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures::stream;

use crate::domain::{Fault, languages};
use crate::exchange::{Export, ExportError};
use crate::files::{CsvTable, MAX_SHEET_ROWS, Table, XlsxTable};
use crate::http::admission::{ITEM_BYTES, Tab, Transfer};
use crate::http::described::errors::{Errors, WRONG_FILE};
use crate::http::described::kinds::{Binary, FileFormat, LanguageList};
use crate::http::error::ApiError;
use crate::http::params::Params;
use crate::http::state::AppState;
use crate::http::transfers::answers::no_room;
use crate::store::accounts::Caller;

/// Products that are read, and held in memory, at one time.
const PAGE: usize = 250;
/// Most languages whose texts a file has.
const MAX_LANGUAGES: usize = 50;
/// The languages where none are named.
const DEFAULT_LANGUAGES: [&str; 2] = ["de", "en"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Csv,
    Xlsx,
}

impl Format {
    fn parse(params: &Params) -> Result<Format, ApiError> {
        match params.one("format")?.map(str::to_ascii_uppercase).as_deref() {
            None | Some("CSV") => Ok(Format::Csv),
            Some("XLSX") => Ok(Format::Xlsx),
            Some(_) => Err(ApiError::malformed_at("format", "is CSV or XLSX")),
        }
    }

    /// The type of the content, and how a browser is told to keep it.
    fn headers(self) -> [(header::HeaderName, &'static str); 2] {
        let (kind, kept) = match self {
            Format::Csv => ("text/csv; charset=utf-8", "attachment; filename=\"products.csv\""),
            Format::Xlsx => (
                "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
                "attachment; filename=\"products.xlsx\"",
            ),
        };
        [(header::CONTENT_TYPE, kind), (header::CONTENT_DISPOSITION, kept)]
    }
}

/// What is written and not yet sent.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Written {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[utoipa::path(get, path = "/exports", tag = "Files", operation_id = "exportProducts",
    summary = "Export a file",
    description = "All products of the account as a file, global ones first, then those of each shop, each with what became of it. It is written while it is sent, however long it is. POST /imports reads it again; cells that a spreadsheet would take for formulas are made safe. CSV begins with a byte-order mark, by which spreadsheets know UTF-8; a text of more than 32,767 characters, which is more than a cell of theirs holds, is left empty in XLSX, and an import of that file leaves it alone.",
    params(
        ("format" = inline(Option<FileFormat>), Query, description = "CSV, which is the default, or XLSX."),
        ("languages" = inline(Option<LanguageList>), Query, description = "Languages whose texts are written, comma-separated or repeated. Default de,en."),
    ),
    responses((status = 200, description = "The file.", content((String = "text/csv"), (Binary = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"))),
        Errors<{ WRONG_FILE }>))]
pub(in crate::http) async fn export(
    State(state): State<AppState>,
    caller: Caller,
    tab: Tab,
    params: Params,
) -> Result<Response, ApiError> {
    let format = Format::parse(&params)?;
    let languages = languages_of(&params)?;
    if format == Format::Xlsx {
        require_room(&state, &caller).await?;
    }
    let transfer = tab.transfer(PAGE * ITEM_BYTES).await?;
    let written = Written::default();
    let table: Box<dyn Table> = match format {
        Format::Csv => Box::new(CsvTable::new(written.clone())),
        Format::Xlsx => Box::new(XlsxTable::new(written.clone()).map_err(|error| no_room(&error))?),
    };
    let export = Export::begin(state.store.clone(), caller.account, &languages, table, PAGE).await;
    let export = export.map_err(|error| match error {
        ExportError::Store(error) => error.into(),
        ExportError::Selection(error) => error.into(),
        ExportError::Io(error) => no_room(&error),
    })?;
    let mut answer = Response::new(Body::from_stream(stream::try_unfold((export, written, transfer), next)));
    for (name, value) in format.headers() {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    Ok(answer)
}

/// The next piece of a file. It is read when the one before is on its way, so that no more than a page lies in memory.
async fn next(
    (mut export, written, transfer): (Export, Written, Transfer),
) -> Result<Option<(Bytes, (Export, Written, Transfer))>, ExportError> {
    loop {
        let may_have_more = export.next_page().await.inspect_err(|error| {
            tracing::warn!(%error, "an export broke off");
        })?;
        let bytes = written.take();
        if !bytes.is_empty() {
            return Ok(Some((bytes.into(), (export, written, transfer))));
        }
        if !may_have_more {
            return Ok(None);
        }
    }
}

fn languages_of(params: &Params) -> Result<Vec<String>, ApiError> {
    let Some(mut asked) = params.list("languages")? else { return Ok(DEFAULT_LANGUAGES.map(str::to_owned).into()) };
    let mut seen = std::collections::BTreeSet::new();
    asked.retain(|language| seen.insert(language.clone()));
    if asked.len() > MAX_LANGUAGES {
        return Err(ApiError::malformed_at("languages", format!("has at most {MAX_LANGUAGES} values")));
    }
    match asked.iter().find(|language| !languages::is_known(language)) {
        Some(unknown) => {
            Err(ApiError::malformed_at("languages", format!("\"{unknown}\" is no language code of ISO 639")))
        }
        None => Ok(asked),
    }
}

/// A sheet has so many rows and no more; better told at once than in the middle of a file.
async fn require_room(state: &AppState, caller: &Caller) -> Result<(), ApiError> {
    let products: u64 =
        state.store.shops(caller.account).await?.iter().map(|(_, products)| products.unsigned_abs()).sum();
    // The header is a row too.
    if products < MAX_SHEET_ROWS {
        return Ok(());
    }
    let message = format!("a sheet has at most {MAX_SHEET_ROWS} rows, these are {products} products; take CSV");
    Err(ApiError::Unprocessable(message.clone(), vec![Fault::at("format", "TOO_MANY_ROWS", message)]))
}
