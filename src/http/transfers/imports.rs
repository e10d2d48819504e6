//! A file of products into the account.

use std::fs::File;
use std::io::{Seek, Write};
use std::sync::Arc;
use std::time::Duration;

use axum::body::HttpBody;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::response::Response;
use futures::StreamExt;
use tokio::io::AsyncWriteExt;
use tokio_util::task::AbortOnDropHandle;

use crate::domain::forms::LanguageKey;
use crate::domain::languages;
use crate::exchange::{ImportSettings, MEMORY_BYTES, Progress, import_as_far_as_possible};
use crate::files::Given;
use crate::http::admission::{Tab, Transfer};
use crate::http::allowed::KEY_HEADER;
use crate::http::body::broken_off;
use crate::http::described::errors::{BODY, EDIT, Errors, QUOTA, WRONG_FILE};
use crate::http::described::kinds::{Binary, MappingList};
use crate::http::error::ApiError;
use crate::http::params::Params;
use crate::http::state::AppState;
use crate::http::transfers::answers::{Ended, ImportAnswer, ImportProgress, no_room};
use crate::http::transfers::telling::{Form, Telling};
use crate::store::accounts::Caller;

/// Most bytes of a file.
const MAX_FILE_MIB: usize = 1_024;
/// Most bytes of a file that is sent with an idempotency key: its answer is kept.
const MAX_KEYED_MIB: usize = 8;
/// Most rows of a file.
const MAX_ROWS: u64 = 1_000_000;
/// Faults that an answer names.
const FAULTS_SHOWN: usize = 1_000;
/// How long an import may take until its answer begins without its end. Until then a failure has a status of its own.
const PATIENCE: Duration = Duration::from_secs(10);
/// The language of columns that do not name theirs.
const DEFAULT_LANGUAGE: &str = "de";

#[utoipa::path(post, path = "/imports", tag = "Files", operation_id = "importProducts",
    summary = "Import a file",
    description = "Merges a file of products into those of the account: CSV (comma, semicolon or tab; UTF-8, UTF-16 or Windows-1252), XLSX, a product export of Shopify, or a Google Merchant feed (XML or TSV), told apart by content; at most 1 GiB and 1,000,000 rows. What the file does not speak of stays. Errors of a sheet and bytes that are no characters are mistakes of their cell; zeros that a spreadsheet took from customs codes and GTINs are put back; lines that say nothing of a product are passed over. A bad line is named and left, the others are stored in parts; an error status means that nothing was stored. An import that takes longer than ten seconds goes on behind its answer, which then ends with it: `state` says whether it came to the end. Sending a file again is safe. With `Accept: text/csv` the answer tells what became of each line, with `application/x-ndjson` how far it is, line by line, and the summary last.",
    params(
        ("dryRun" = Option<bool>, Query, description = "Judge everything and store nothing. Default false."),
        ("language" = inline(Option<LanguageKey>), Query, description = "The language of columns that do not name theirs. Default de."),
        ("map" = inline(Option<MappingList>), Query, description = "What a column stands for: its name in the file, `=`, and a field such as productId or de:productName; nothing after the `=` leaves the column. Repeated for several columns."),
    ),
    request_body(content = Binary, content_type = "application/octet-stream", description = "The file itself, under any content type but a form."),
    responses((status = 200, description = "What became of the file.", content((ImportAnswer = "application/json"), (String = "text/csv"), (ImportProgress = "application/x-ndjson"))),
        Errors<{ EDIT | WRONG_FILE | BODY | QUOTA }>))]
pub(in crate::http) async fn import(
    State(state): State<AppState>,
    caller: Caller,
    tab: Tab,
    params: Params,
    request: Request,
) -> Result<Response, ApiError> {
    let settings = ImportSettings { spool: state.spool.clone(), ..settings(&params)? };
    let form = Form::asked_for(request.headers());
    let transfer = tab.transfer(MEMORY_BYTES).await?;
    let (file, length) = spooled(&state, &tab, request).await?;
    let report = match form {
        Form::Lines => Some(Arc::new(state.spool.file().map_err(|error| no_room(&error))?)),
        Form::Summary | Form::Progress => None,
    };
    let progress = Arc::new(Progress::default());
    let dry_run = settings.dry_run;
    let work = store(state.clone(), caller, transfer, file, settings, progress.clone(), report.clone());
    let telling = Telling {
        work: AbortOnDropHandle::new(tokio::spawn(work)),
        form,
        round: form.round(),
        dry_run,
        progress,
        length,
        report,
        changed: move || state.products_changed(),
    };
    let patience = if form == Form::Progress { Duration::ZERO } else { PATIENCE };
    telling.answer(patience).await
}

/// Stores a spooled file when it is its turn. Dropping this ends it, and what reads the file a moment later: only then
/// is the place given back.
async fn store(
    state: AppState,
    caller: Caller,
    transfer: Transfer,
    file: File,
    settings: ImportSettings,
    progress: Arc<Progress>,
    report: Option<Arc<File>>,
) -> Ended {
    let report = report.map(|file| Box::new(file) as Box<dyn Write + Send>);
    let transfer = Arc::new(transfer);
    let place = Arc::clone(&transfer);
    transfer.turn(import_as_far_as_possible(&state.store, &caller, file, place, &settings, &progress, report)).await
}

fn settings(params: &Params) -> Result<ImportSettings, ApiError> {
    let language = params.one("language")?.unwrap_or(DEFAULT_LANGUAGE);
    if !languages::is_known(language) {
        return Err(ApiError::malformed_at("language", "is a language code of ISO 639 in lower case"));
    }
    let pairs: Vec<String> = params.all("map").into_iter().map(str::to_owned).collect();
    let columns = Given::parse(&pairs, language).map_err(|error| ApiError::malformed_at("map", error.to_string()))?;
    let dry_run = params.boolean("dryRun")?.unwrap_or(false);
    Ok(ImportSettings {
        columns,
        dry_run,
        faults_shown: FAULTS_SHOWN,
        most_rows: MAX_ROWS,
        ..ImportSettings::default()
    })
}

/// The body of a request on the disk, and its length.
async fn spooled(state: &AppState, tab: &Tab, request: Request) -> Result<(File, u64), ApiError> {
    require_file(request.headers())?;
    let mib = if request.headers().contains_key(KEY_HEADER) { MAX_KEYED_MIB } else { MAX_FILE_MIB };
    let too_large = || ApiError::PayloadTooLarge(format!("a file has at most {mib} MiB here; send it in parts"));
    let most = (mib as u64) << 20;
    if request.body().size_hint().lower() > most {
        return Err(too_large());
    }
    let is_announced = request.headers().contains_key(header::CONTENT_LENGTH);
    let mut file = tokio::fs::File::from_std(state.spool.file().map_err(|error| no_room(&error))?);
    let (mut chunks, mut length) = (request.into_body().into_data_stream(), 0);
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(broken_off)?;
        length += chunk.len() as u64;
        if length > most {
            return Err(too_large());
        }
        if !is_announced {
            tab.count_more(chunk.len());
        }
        file.write_all(&chunk).await.map_err(|error| no_room(&error))?;
    }
    if length == 0 {
        return Err(ApiError::malformed("the body is empty; send the file itself as the body"));
    }
    file.flush().await.map_err(|error| no_room(&error))?;
    let mut file = file.into_std().await;
    file.rewind().map_err(|error| no_room(&error))?;
    Ok((file, length))
}

/// Refuses what is a file within something else.
fn require_file(headers: &HeaderMap) -> Result<(), ApiError> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.to_ascii_lowercase();
    if kind.starts_with("multipart/") || kind.starts_with("application/json") {
        let message = "send the file itself as the body, such as curl --data-binary @products.csv does";
        return Err(ApiError::UnsupportedMediaType(message.to_owned()));
    }
    Ok(())
}
