//! Where pictures are kept: files in a local directory, or an S3-compatible object store.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::path::Path as ObjectPath;
use object_store::{ClientOptions, ObjectStore, PutPayload, RetryConfig};
use uuid::Uuid;

use super::PICTURE_BYTES;

/// How long one request to an object store may take.
const REQUEST_LIMIT: Duration = Duration::from_secs(10);
/// A picture of 10 MiB goes to a store that takes a megabyte a second.
const LIMITS: Limits = Limits { keeping: Duration::from_secs(10), reading: Duration::from_secs(5) };
/// How long a request is repeated after failures that may pass, and how often.
const RETRY_LIMIT: Duration = Duration::from_secs(15);
const RETRIES: usize = 3;
/// The file that holds the name of a directory of pictures.
const PLACE_FILE: &str = ".place";

/// An S3-compatible store, for those who do not want their pictures in `DATA_DIR/pictures`.
#[derive(Clone, Default, clap::Args)]
pub struct S3Settings {
    /// Bucket of an S3-compatible store for pictures; without it they are kept under DATA_DIR.
    #[arg(long, env = "PICTURES_S3_BUCKET")]
    pub pictures_s3_bucket: Option<String>,
    /// Address of the store, for any but Amazon's own.
    #[arg(long, env = "PICTURES_S3_ENDPOINT", requires = "pictures_s3_bucket")]
    pub pictures_s3_endpoint: Option<String>,
    /// Region of the bucket.
    #[arg(long, env = "PICTURES_S3_REGION", default_value = "us-east-1")]
    pub pictures_s3_region: String,
    /// Access key; without one, the credentials of the machine are used.
    #[arg(long, env = "PICTURES_S3_ACCESS_KEY_ID", requires = "pictures_s3_secret_access_key", hide_env_values = true)]
    pub pictures_s3_access_key_id: Option<String>,
    /// Secret of the access key.
    #[arg(long, env = "PICTURES_S3_SECRET_ACCESS_KEY", requires = "pictures_s3_access_key_id", hide_env_values = true)]
    pub pictures_s3_secret_access_key: Option<String>,
}

/// Shows everything but the key and its secret.
impl std::fmt::Debug for S3Settings {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("S3Settings")
            .field("bucket", &self.pictures_s3_bucket)
            .field("endpoint", &self.pictures_s3_endpoint)
            .field("region", &self.pictures_s3_region)
            .finish_non_exhaustive()
    }
}

/// Keeps pictures under keys that the caller draws: a new key for each upload, so that a key's content never changes.
#[derive(Debug, Clone)]
pub struct PictureStore {
    store: Arc<dyn ObjectStore>,
    place: Option<String>,
    /// The local directory; an object that is not in it may be in another one that the database knows as well.
    directory: Option<PathBuf>,
    limits: Limits,
}

/// How long the store may take, tries included: a client waits for it, and holds a place among the requests at work
/// meanwhile.
#[derive(Clone, Copy, Debug)]
struct Limits {
    keeping: Duration,
    reading: Duration,
}

/// What became of an object that was to be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// It is not in the store any more.
    Gone,
    /// It was not in this directory; it may be in that of another host.
    NotHere,
}

/// Why a picture could not be kept, read or deleted.
#[derive(Debug, thiserror::Error)]
pub enum PictureStoreError {
    /// The local directory cannot be made.
    #[error("cannot create the directory of pictures {path}: {source}")]
    Directory {
        /// The directory.
        path: std::path::PathBuf,
        /// What the operating system answered.
        source: std::io::Error,
    },
    /// The store answered with an error, or not at all.
    #[error("the store of pictures failed: {0}")]
    Store(#[from] object_store::Error),
}

impl PictureStore {
    /// The store that the settings name, or the directory `pictures` of `data_dir`, which is created when missing.
    ///
    /// # Errors
    ///
    /// When the directory cannot be made or the settings make no sense. A remote store is not asked yet.
    pub fn open(data_dir: &Path, settings: &S3Settings) -> Result<PictureStore, PictureStoreError> {
        if let Some(bucket) = &settings.pictures_s3_bucket {
            let endpoint = settings.pictures_s3_endpoint.as_deref().unwrap_or_default();
            let place = Some(format!("s3:{endpoint}/{bucket}"));
            return Ok(PictureStore {
                store: Arc::new(s3(bucket, settings).build()?),
                place,
                directory: None,
                limits: LIMITS,
            });
        }
        let path = data_dir.join("pictures");
        std::fs::create_dir_all(&path).map_err(|source| PictureStoreError::Directory { path: path.clone(), source })?;
        let place = place_of(&path);
        let files = LocalFileSystem::new_with_prefix(&path)?;
        Ok(PictureStore { store: Arc::new(files), place, directory: Some(path), limits: LIMITS })
    }

    /// Keeps `bytes` under `key`. Nobody ever sees a part of them.
    ///
    /// # Errors
    ///
    /// When the store fails or takes longer than 10 s; it may then hold the picture or not.
    pub async fn put(&self, key: Uuid, bytes: Bytes) -> Result<(), PictureStoreError> {
        within(self.limits.keeping, self.keep(key, bytes)).await
    }

    async fn keep(&self, key: Uuid, bytes: Bytes) -> Result<(), PictureStoreError> {
        self.require_directory().await?;
        self.store.put(&path(key), PutPayload::from_bytes(bytes)).await?;
        if let Some(directory) = self.directory.clone() {
            let settled = tokio::task::spawn_blocking(move || settle(&directory, &path(key))).await;
            let settled = settled.unwrap_or_else(|error| Err(std::io::Error::other(error)));
            settled.map_err(|source| object_store::Error::Generic { store: "pictures", source: source.into() })?;
        }
        Ok(())
    }

    /// The bytes under `key`; none when there are none.
    ///
    /// # Errors
    ///
    /// When the store fails or takes longer than 5 s, or holds something under this key that is greater than any picture.
    pub async fn get(&self, key: Uuid) -> Result<Option<Bytes>, PictureStoreError> {
        within(self.limits.reading, self.read(key)).await
    }

    async fn read(&self, key: Uuid) -> Result<Option<Bytes>, PictureStoreError> {
        let found = match self.store.get(&path(key)).await {
            Ok(found) => found,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if found.meta.size > PICTURE_BYTES as u64 {
            let source = "the object is greater than any picture".into();
            return Err(object_store::Error::Generic { store: "pictures", source }.into());
        }
        Ok(Some(found.bytes().await?))
    }

    /// A directory that has lost its name is another one: its disk is away, and what is written now would be hidden when
    /// that is back.
    async fn require_directory(&self) -> Result<(), PictureStoreError> {
        let (Some(directory), Some(place)) = (&self.directory, &self.place) else { return Ok(()) };
        let name = tokio::fs::read_to_string(directory.join(PLACE_FILE)).await;
        let source = match name {
            Ok(name) if name == *place => return Ok(()),
            Ok(_) => std::io::Error::other("the directory of pictures is not the one that was there at the start"),
            Err(error) => error,
        };
        Err(object_store::Error::Generic { store: "pictures", source: source.into() }.into())
    }

    /// The name of this store, by which the database knows where an object lies. None for a directory that has no name
    /// because it cannot be written to.
    pub fn place(&self) -> Option<&str> {
        self.place.as_deref()
    }

    /// Deletes what is under `key`, if anything.
    ///
    /// # Errors
    ///
    /// When the store fails; to be tried again then.
    pub async fn delete(&self, key: Uuid) -> Result<Deleted, PictureStoreError> {
        match self.store.delete(&path(key)).await {
            Ok(()) => Ok(Deleted::Gone),
            Err(object_store::Error::NotFound { .. }) if self.directory.is_some() => Ok(Deleted::NotHere),
            Err(object_store::Error::NotFound { .. }) => Ok(Deleted::Gone),
            Err(error) => Err(error.into()),
        }
    }
}

/// What comes of work with the store, unless it takes longer.
async fn within<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, PictureStoreError>>,
) -> Result<T, PictureStoreError> {
    tokio::time::timeout(limit, work)
        .await
        .unwrap_or_else(|source| Err(object_store::Error::Generic { store: "pictures", source: source.into() }.into()))
}

/// Brings a new file and the directories that lead to it onto the disk: a picture is announced by a row that survives a
/// loss of power, and so must it.
fn settle(directory: &Path, object: &ObjectPath) -> std::io::Result<()> {
    let file = directory.join(object.as_ref());
    for path in [file.as_path(), file.parent().unwrap_or(directory), directory] {
        std::fs::File::open(path)?.sync_all()?;
    }
    Ok(())
}

/// The name of a directory: drawn when it is made, kept in it, and the same for all who share it.
fn place_of(directory: &Path) -> Option<String> {
    let file = directory.join(PLACE_FILE);
    if let Ok(mut new) = std::fs::File::create_new(&file) {
        let name = format!("directory:{}", Uuid::new_v4());
        new.write_all(name.as_bytes()).and_then(|()| new.sync_all()).ok()?;
    }
    std::fs::read_to_string(file).ok().filter(|name| !name.is_empty())
}

fn s3(bucket: &str, settings: &S3Settings) -> AmazonS3Builder {
    let retry = RetryConfig { max_retries: RETRIES, retry_timeout: RETRY_LIMIT, ..RetryConfig::default() };
    let client = ClientOptions::new().with_timeout(REQUEST_LIMIT).with_connect_timeout(REQUEST_LIMIT);
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(bucket)
        .with_region(&settings.pictures_s3_region)
        .with_client_options(client)
        .with_retry(retry);
    if let Some(endpoint) = &settings.pictures_s3_endpoint {
        // Stores of one's own are often reached without TLS, inside one's own network.
        builder = builder.with_endpoint(endpoint).with_allow_http(endpoint.starts_with("http://"));
    }
    if let (Some(id), Some(secret)) = (&settings.pictures_s3_access_key_id, &settings.pictures_s3_secret_access_key) {
        builder = builder.with_access_key_id(id).with_secret_access_key(secret);
    }
    builder
}

/// A directory for each of the first 256 beginnings, since directories with very many files are slow.
fn path(key: Uuid) -> ObjectPath {
    let name = key.simple().to_string();
    ObjectPath::from_iter([&name[..2], &name])
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Mutex;

    use axum::Router;
    use axum::extract::{Path as UrlPath, State};
    use axum::http::{HeaderMap, Method, StatusCode, header};
    use axum::response::IntoResponse;

    use super::*;

    async fn keeps_and_forgets(store: &PictureStore) {
        let (key, other) = (Uuid::new_v4(), Uuid::new_v4());
        let bytes = Bytes::from_static(b"a picture");
        assert_eq!(store.get(key).await.expect("an answer"), None);
        store.put(key, bytes.clone()).await.expect("kept");
        store.put(key, bytes.clone()).await.expect("kept again");
        assert_eq!(store.get(key).await.expect("an answer"), Some(bytes));
        assert_eq!(store.get(other).await.expect("an answer"), None);
        for again in [false, true] {
            let deleted = store.delete(key).await.expect("deleted");
            assert_eq!(deleted, if again && store.directory.is_some() { Deleted::NotHere } else { Deleted::Gone });
            assert_eq!(store.get(key).await.expect("an answer"), None);
        }
    }

    #[tokio::test]
    async fn a_local_directory_keeps_and_forgets_pictures() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = PictureStore::open(directory.path(), &S3Settings::default()).expect("a store");
        keeps_and_forgets(&store).await;
        store.put(Uuid::nil(), Bytes::from_static(b"kept")).await.expect("kept");
        let store = PictureStore::open(directory.path(), &S3Settings::default()).expect("the same store");
        assert_eq!(store.get(Uuid::nil()).await.expect("an answer"), Some(Bytes::from_static(b"kept")));
    }

    #[test]
    fn a_directory_keeps_its_name_and_no_two_have_the_same() {
        let (one, other) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
        let place = |directory: &Path| {
            let store = PictureStore::open(directory, &S3Settings::default()).expect("a store");
            store.place().expect("a name").to_owned()
        };
        assert_eq!(place(one.path()), place(one.path()));
        assert_ne!(place(one.path()), place(other.path()));
    }

    #[tokio::test]
    async fn a_directory_whose_disk_is_away_takes_no_picture() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = PictureStore::open(directory.path(), &S3Settings::default()).expect("a store");
        let (there, away) = (directory.path().join("pictures"), directory.path().join("away"));
        std::fs::rename(&there, &away).expect("taken away");
        std::fs::create_dir(&there).expect("what lies below the disk");
        let bytes = Bytes::from_static(b"a picture");
        store.put(Uuid::nil(), bytes.clone()).await.expect_err("it would be hidden once the disk is back");
        assert_eq!(std::fs::read_dir(&there).expect("a directory").count(), 0);
        std::fs::remove_dir(&there).expect("empty");
        std::fs::rename(&away, &there).expect("back");
        store.put(Uuid::nil(), bytes).await.expect("kept");
    }

    #[tokio::test]
    async fn a_store_that_does_not_answer_is_given_up_in_time() {
        let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let settings = S3Settings {
            pictures_s3_bucket: Some("bucket".to_owned()),
            pictures_s3_endpoint: Some(format!("http://{}", silent.local_addr().expect("an address"))),
            pictures_s3_access_key_id: Some("the-key".to_owned()),
            pictures_s3_secret_access_key: Some("the-secret".to_owned()),
            ..S3Settings::default()
        };
        let soon = Duration::from_millis(50);
        let store = PictureStore::open(Path::new("."), &settings).expect("a store");
        let store = PictureStore { limits: Limits { keeping: soon, reading: soon }, ..store };
        let began = std::time::Instant::now();
        store.get(Uuid::nil()).await.expect_err("no answer");
        store.put(Uuid::nil(), Bytes::from_static(b"a picture")).await.expect_err("no answer");
        // A single request would be waited for as long.
        assert!(began.elapsed() < REQUEST_LIMIT, "{:?}", began.elapsed());
    }

    type Objects = Arc<Mutex<HashMap<String, Bytes>>>;

    /// The part of S3 that is needed: objects by path, and only for signed requests.
    async fn object(
        State(objects): State<Objects>,
        method: Method,
        UrlPath(path): UrlPath<String>,
        headers: HeaderMap,
        body: Bytes,
    ) -> axum::response::Response {
        let signed = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        if !signed.is_some_and(|value| value.starts_with("AWS4-HMAC-SHA256 Credential=the-key/")) {
            return StatusCode::FORBIDDEN.into_response();
        }
        let headers = [(header::ETAG, "\"1\""), (header::LAST_MODIFIED, "Sat, 21 Nov 2026 00:00:00 GMT")];
        let mut objects = objects.lock().expect("not poisoned");
        match method {
            Method::PUT => {
                objects.insert(path, body);
                headers.into_response()
            }
            Method::DELETE => {
                objects.remove(&path);
                StatusCode::NO_CONTENT.into_response()
            }
            _ => match objects.get(&path) {
                Some(bytes) => (headers, bytes.clone()).into_response(),
                None => StatusCode::NOT_FOUND.into_response(),
            },
        }
    }

    #[tokio::test]
    async fn an_s3_compatible_store_keeps_and_forgets_pictures() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
        let objects = Objects::default();
        let router = Router::new().fallback_service(
            Router::new().route("/{*path}", axum::routing::any(object)).with_state(Arc::clone(&objects)),
        );
        let server = tokio::spawn(async move { axum::serve(listener, router).await });
        let settings = S3Settings {
            pictures_s3_bucket: Some("bucket".to_owned()),
            pictures_s3_endpoint: Some(endpoint),
            pictures_s3_region: "eu-central-1".to_owned(),
            pictures_s3_access_key_id: Some("the-key".to_owned()),
            pictures_s3_secret_access_key: Some("the-secret".to_owned()),
        };
        assert!(!format!("{settings:?}").contains("the-"), "{settings:?}");
        let directory = tempfile::tempdir().expect("a directory");
        let store = PictureStore::open(directory.path(), &settings).expect("a store");
        keeps_and_forgets(&store).await;
        store.put(Uuid::nil(), Bytes::from_static(b"kept")).await.expect("kept");
        let paths: Vec<String> = objects.lock().expect("not poisoned").keys().cloned().collect();
        assert_eq!(paths, ["bucket/00/00000000000000000000000000000000"]);
        server.abort();
    }
}
