//! How a client is told of an import while it runs.
//!
//! A short import is answered when it has ended, so that one that stored nothing has the status of its error. A longer
//! one is answered 200 and goes on behind its answer: the answer grows while rows are stored, so that nobody between
//! takes it for dead. A client that goes away ends its import; what was stored stays.

use std::fs::File;
use std::future::Future;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use futures::stream;

use crate::exchange::{ImportError, Progress, Summary};
use crate::files::{CsvTable, Table};
use crate::http::error::ApiError;
use crate::http::transfers::answers::{Ended, ImportAnswer, ImportProgress, no_room, refusal};

/// How often an answer in JSON gets a blank, while there is nothing else to say.
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);
/// How often progress is told, and a report looked at.
const ROUND: Duration = Duration::from_millis(500);
/// Bytes of a report that are read at one time.
const CHUNK_BYTES: usize = 64 << 10;

/// What a client wants to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// One object at the end.
    Summary,
    /// What became of each line, in CSV.
    Lines,
    /// How far it is, a line of JSON now and then, and the summary as the last line.
    Progress,
}

impl Form {
    /// By the header `Accept`.
    pub(super) fn asked_for(headers: &HeaderMap) -> Form {
        let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let kinds = accept.split(',').map(|kind| kind.split(';').next().unwrap_or_default().trim());
        let named = |kind: &str| match kind {
            "application/json" | "*/*" => Some(Form::Summary),
            "text/csv" => Some(Form::Lines),
            "application/x-ndjson" => Some(Form::Progress),
            _ => None,
        };
        kinds.filter_map(named).next().unwrap_or(Form::Summary)
    }

    /// How often there is something to say.
    pub(super) fn round(self) -> Duration {
        if self == Form::Summary { SIGN_OF_LIFE } else { ROUND }
    }

    fn content_type(self) -> &'static str {
        match self {
            Form::Summary => "application/json",
            Form::Lines => "text/csv; charset=utf-8",
            Form::Progress => "application/x-ndjson",
        }
    }
}

/// An import under way.
pub(super) struct Telling<W, C> {
    /// The import; dropping it ends it.
    pub(super) work: W,
    pub(super) form: Form,
    /// How often there is something to say while it runs.
    pub(super) round: Duration,
    pub(super) dry_run: bool,
    pub(super) progress: Arc<Progress>,
    /// Bytes of the file.
    pub(super) length: u64,
    /// Where what became of each line is written.
    pub(super) report: Option<Arc<File>>,
    /// Called when there may be new products.
    pub(super) changed: C,
}

/// What is still to be told.
struct Rest<W, C> {
    telling: Telling<W, C>,
    /// Bytes of the report that were told.
    told: u64,
    /// What is told last, once the import has ended.
    last: Option<Bytes>,
    has_ended: bool,
}

impl<W, C> Telling<W, C>
where
    W: Future<Output = Result<Ended, tokio::task::JoinError>> + Unpin + Send + 'static,
    C: Fn() + Send + 'static,
{
    /// Answers when the import has ended, or when this much time has passed.
    ///
    /// # Errors
    /// When it ended early before it had done anything.
    pub(super) async fn answer(mut self, patience: Duration) -> Result<Response, ApiError> {
        let ended = tokio::time::timeout(patience, &mut self.work).await.ok().map(of_task);
        let has_ended = ended.is_some();
        let mut last = None;
        if let Some((summary, stopped)) = ended {
            (self.changed)();
            match stopped {
                Some(error) if self.progress.rows.load(Relaxed) == 0 => return Err(refusal(error)),
                stopped => last = self.last((summary, stopped)),
            }
        }
        let content_type = HeaderValue::from_static(self.form.content_type());
        let rest = Rest { telling: self, told: 0, last, has_ended };
        let mut answer = Response::new(Body::from_stream(stream::try_unfold(rest, Rest::next)));
        answer.headers_mut().insert(header::CONTENT_TYPE, content_type);
        // Compressing would hold back what is meant to be seen at once.
        answer.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("identity"));
        Ok(answer)
    }

    /// What is told at the end.
    fn last(&self, ended: Ended) -> Option<Bytes> {
        let answer = ImportAnswer::new(ended, self.dry_run);
        match self.form {
            Form::Summary | Form::Progress => line(&answer),
            Form::Lines => answer.stopped_line().map(|cells| row(&cells)),
        }
    }
}

impl<W, C> Rest<W, C>
where
    W: Future<Output = Result<Ended, tokio::task::JoinError>> + Unpin + Send + 'static,
    C: Fn() + Send + 'static,
{
    /// The next piece of the answer.
    async fn next(mut self) -> io::Result<Option<(Bytes, Self)>> {
        loop {
            if let Some(report) = self.telling.report.clone() {
                let told = self.told;
                let read = tokio::task::spawn_blocking(move || read(&report, told));
                let chunk = read.await.map_err(io::Error::other)??;
                if !chunk.is_empty() {
                    self.told += chunk.len() as u64;
                    return Ok(Some((chunk, self)));
                }
            }
            if let Some(last) = self.last.take() {
                return Ok(Some((last, self)));
            }
            if self.has_ended {
                return Ok(None);
            }
            let ended = tokio::time::timeout(self.telling.round, &mut self.telling.work).await;
            (self.telling.changed)();
            match (ended, self.telling.form) {
                (Ok(ended), _) => {
                    self.has_ended = true;
                    self.last = self.telling.last(of_task(ended));
                }
                (Err(_), Form::Lines) => {}
                (Err(_), Form::Summary) => return Ok(Some((Bytes::from_static(b"\n"), self))),
                (Err(_), Form::Progress) => {
                    let (rows, bytes) =
                        (self.telling.progress.rows.load(Relaxed), self.telling.progress.bytes.load(Relaxed));
                    let size = self.telling.length;
                    self.last = line(&ImportProgress { rows, bytes: bytes.min(size), size });
                }
            }
        }
    }
}

/// What a task tells; one that broke off stored what it stored.
fn of_task(ended: Result<Ended, tokio::task::JoinError>) -> Ended {
    ended.unwrap_or_else(|error| {
        tracing::error!(%error, "an import broke off");
        (Summary::default(), Some(ImportError::Reader))
    })
}

fn read(report: &File, from: u64) -> io::Result<Bytes> {
    let mut chunk = vec![0; CHUNK_BYTES];
    let length = report.read_at(&mut chunk, from)?;
    chunk.truncate(length);
    Ok(chunk.into())
}

fn line(value: &impl serde::Serialize) -> Option<Bytes> {
    let mut text = serde_json::to_vec(value).ok()?;
    text.push(b'\n');
    Some(text.into())
}

fn row(cells: &[&str]) -> Bytes {
    let mut bytes = Vec::new();
    let mut table = Box::new(CsvTable::new(&mut bytes));
    let cells: Vec<String> = cells.iter().map(|cell| (*cell).to_owned()).collect();
    // A buffer in memory takes whatever is written.
    let written = table.row(&cells).and_then(|()| table.finish());
    if let Err(error) = written {
        tracing::warn!(error = ?no_room(&error), "the last line of a report");
    }
    bytes.into()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use futures::{FutureExt, StreamExt};
    use tokio::sync::oneshot;

    use super::*;
    use crate::files::FileError;

    /// How long these tests wait for anything.
    const SHORT: Duration = Duration::from_millis(1);

    type Task = futures::future::BoxFuture<'static, Result<Ended, tokio::task::JoinError>>;

    fn under_way(form: Form, report: Option<Arc<File>>) -> (Telling<Task, impl Fn()>, oneshot::Sender<Ended>) {
        let (end, ended) = oneshot::channel();
        let work = async { Ok(ended.await.expect("an end")) }.boxed();
        let progress = Arc::new(Progress::default());
        progress.rows.store(7, Relaxed);
        (Telling { work, form, round: SHORT, dry_run: false, progress, length: 100, report, changed: || {} }, end)
    }

    fn broken() -> ImportError {
        FileError::TooManyRows(7).into()
    }

    #[tokio::test]
    async fn a_long_import_gives_signs_of_life_until_it_ends() {
        for (form, sign) in [(Form::Summary, "\n"), (Form::Progress, "{\"rows\":7,\"bytes\":0,\"size\":100}\n")] {
            let (telling, end) = under_way(form, None);
            let answer = telling.answer(SHORT).await.expect("an answer");
            assert_eq!(answer.status(), 200);
            let mut body = answer.into_body().into_data_stream();
            for _ in 0..3 {
                assert_eq!(body.next().await.expect("a sign").expect("bytes"), sign);
            }
            end.send((Summary { created: 7, ..Summary::default() }, Some(broken()))).expect("a listener");
            let last = body.next().await.expect("the end").expect("bytes");
            let last: serde_json::Value = serde_json::from_slice(&last).expect("JSON");
            assert_eq!((&last["state"], &last["created"]), (&"STOPPED".into(), &7.into()));
            assert_eq!(last["error"]["code"], "INVALID_DATA_EXCEPTION");
            assert!(body.next().await.is_none());
        }
    }

    #[tokio::test]
    async fn a_report_is_told_as_it_grows_and_ends_with_why_it_ended() {
        let report = Arc::new(tempfile::tempfile().expect("a file"));
        let (telling, end) = under_way(Form::Lines, Some(report.clone()));
        let answer = telling.answer(Duration::ZERO).await.expect("an answer");
        let mut body = answer.into_body().into_data_stream();
        for part in ["1,a,created\n", "2,b,created\n"] {
            (&*report).write_all(part.as_bytes()).expect("written");
            assert_eq!(body.next().await.expect("a part").expect("bytes"), part);
        }
        end.send((Summary::default(), Some(broken()))).expect("a listener");
        let last = body.next().await.expect("the end").expect("bytes");
        assert!(last.starts_with(b",,stopped,,") && last.ends_with(b"\n"), "{last:?}");
        assert!(body.next().await.is_none());
    }

    #[tokio::test]
    async fn an_import_that_did_nothing_has_the_status_of_its_error() {
        let (telling, end) = under_way(Form::Summary, None);
        telling.progress.rows.store(0, Relaxed);
        end.send((Summary::default(), Some(broken()))).expect("a listener");
        assert!(matches!(telling.answer(Duration::from_secs(10)).await, Err(ApiError::Unprocessable(..))));
    }

    #[test]
    fn the_form_is_that_which_is_asked_for_first() {
        for (accept, form) in [
            ("", Form::Summary),
            ("*/*", Form::Summary),
            ("text/csv", Form::Lines),
            ("text/html, text/csv;q=0.5, application/json", Form::Lines),
            ("application/json, text/csv", Form::Summary),
            ("application/x-ndjson", Form::Progress),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
            assert_eq!(Form::asked_for(&headers), form, "{accept}");
        }
    }
}
