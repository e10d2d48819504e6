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
    let read = || std::fs::read_to_string(&file).ok().filter(|name| !name.is_empty());
    if let Some(name) = read() {
        return Some(name);
    }
    let name = format!("directory:{}", Uuid::new_v4());
    // Written aside, so that there is a whole name or none, whenever the service dies.
    let beside = directory.join(format!("{PLACE_FILE}.{}", Uuid::new_v4()));
    let mut new = std::fs::File::create_new(&beside).ok()?;
    new.write_all(name.as_bytes()).and_then(|()| new.sync_all()).ok()?;
    // A link is refused where another has named it meanwhile. What is there and empty was left by one that died.
    if std::fs::hard_link(&beside, &file).is_err() && read().is_none() {
        std::fs::rename(&beside, &file).ok()?;
    }
    let _ = std::fs::remove_file(&beside);
    read()
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
mod tests;
