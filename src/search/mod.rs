//! Selects products by filterCriteria, by one of two engines that agree to the last character.
//!
//! Elasticsearch answers where its URL is set, PostgreSQL otherwise. Both are projections of the products: fed through
//! `search_outbox` by the job in `jobs::projection`, and rebuilt from the products at any time.

mod elasticsearch;
mod settings;
mod verify;
mod versions;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::store::pages::Page;
use crate::store::search::{Change, FilterError, Found, IndexRecord, Outcome, StoredProduct};
use crate::store::{self, Store, StoreError};

use self::elasticsearch::standing;
pub use self::elasticsearch::{ElasticError, Elasticsearch, Standing};

pub(crate) use self::elasticsearch::pause;
pub use crate::store::search::Search;
pub use settings::{ElasticsearchUrls, Settings};
pub use verify::{Difference, Verified};
use versions::is_left_to_later;

/// The family and the name of the projection in the database.
const POSTGRES_FAMILY: &str = "postgresql";
/// The version of that projection: one of another version is rebuilt. To be raised whenever its columns or the
/// normalisation of texts changes.
const POSTGRES_VERSION: i32 = 1;
/// How long searches count on the projection being complete and of this version before they look again.
const READY_FOR: Duration = Duration::from_secs(1);
/// Products that a rebuild writes in one transaction.
const REBUILD_PRODUCTS: usize = 500;

/// Told how many products are done, and of how many.
pub type Progress<'a> = dyn Fn(i64, i64) + Send + Sync + 'a;

/// What answers searches.
#[derive(Clone, Debug)]
pub enum Engine {
    /// A table beside the products.
    Postgres(Postgres),
    /// An index in Elasticsearch.
    Elasticsearch(Elasticsearch),
}

/// The projection in the database.
#[derive(Clone, Debug)]
pub struct Postgres {
    store: Store,
    /// When it was last known to be complete and of this version.
    ready_at: Arc<Mutex<Option<Instant>>>,
}

/// Why a search has no answer.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// It ran into its deadline; a narrower one may not.
    #[error("the search took too long")]
    TooSlow,
    /// The engine cannot be reached, or its index is being built.
    #[error("search is not available: {0}")]
    Unavailable(String),
    /// Something is wrong with us.
    #[error("the search failed: {0}")]
    Internal(String),
}

impl From<FilterError> for SearchError {
    fn from(error: FilterError) -> SearchError {
        match error {
            FilterError::TooSlow => SearchError::TooSlow,
            FilterError::Database(error) if store::is_unavailable(&error) => {
                SearchError::Unavailable(error.to_string())
            }
            FilterError::Database(error) => SearchError::Internal(error.to_string()),
        }
    }
}

/// Why the index could not be fed or rebuilt.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// There is no complete index of this version.
    #[error("the search index is missing")]
    NotReady,
    /// The index belongs to a later version of the service, which has built it or is about to.
    #[error("the search index is left to a later version of the service")]
    Newer,
    /// Another service is rebuilding.
    #[error("the search index is being rebuilt by another service")]
    Busy,
    /// Elasticsearch failed.
    #[error(transparent)]
    Elasticsearch(#[from] ElasticError),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A task was cancelled or panicked.
    #[error("a task ended early: {0}")]
    Task(#[from] tokio::task::JoinError),
}

/// What is wrong with the settings.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SettingsError(pub(crate) String);

impl Engine {
    /// The engine of the settings. Does not connect: it may be down now and answer later.
    ///
    /// # Errors
    /// When the certificate authority cannot be read or the credentials are malformed.
    pub fn new(settings: &Settings, store: &Store) -> Result<Engine, SettingsError> {
        match &settings.elasticsearch_url {
            Some(urls) => Ok(Engine::Elasticsearch(Elasticsearch::new(settings, urls.as_slice(), store)?)),
            None => Ok(Engine::Postgres(Postgres { store: store.clone(), ready_at: Arc::default() })),
        }
    }

    /// A page of products that satisfy criteria, in the order of their ids. Answers or fails within the deadline.
    ///
    /// # Errors
    /// [`SearchError::TooSlow`] and [`SearchError::Unavailable`] are 503 to a client.
    pub async fn page(&self, search: &Search<'_>) -> Result<Page<Found>, SearchError> {
        let began = Instant::now();
        let (engine, page) = match self {
            Engine::Postgres(postgres) => {
                postgres.require_ready().await?;
                ("postgresql", postgres.store.filter_products(search).await.map_err(SearchError::from))
            }
            Engine::Elasticsearch(elastic) => ("elasticsearch", elastic.page(search).await),
        };
        metrics::histogram!("vat_classification_search_seconds", "engine" => engine).record(began.elapsed());
        page
    }

    /// How many products satisfy criteria, on all pages. Answers or fails within the deadline.
    ///
    /// # Errors
    /// As [`Engine::page`].
    pub async fn count(&self, search: &Search<'_>) -> Result<i64, SearchError> {
        match self {
            Engine::Postgres(postgres) => {
                postgres.require_ready().await?;
                postgres.store.count_filtered(search).await.map_err(SearchError::from)
            }
            Engine::Elasticsearch(elastic) => elastic.count(search).await,
        }
    }

    /// What there is of the index for a service of this version.
    ///
    /// # Errors
    /// When the engine or the database fails.
    pub async fn standing(&self) -> Result<Standing, EngineError> {
        match self {
            Engine::Postgres(postgres) => {
                let indexes = postgres.store.search_indexes().await?;
                Ok(standing(&indexes, POSTGRES_FAMILY, POSTGRES_VERSION))
            }
            Engine::Elasticsearch(elastic) => elastic.standing().await,
        }
    }

    /// Rebuilds the index from the products while writes go on.
    ///
    /// # Errors
    /// [`EngineError::Busy`] while another service does; the old index then stays as it is.
    pub async fn rebuild(&self, progress: &Progress<'_>) -> Result<(), EngineError> {
        self.rebuild_if(|_| true, progress).await.map(drop)
    }

    /// Rebuilds the index where there is none of this version, and tells whether it has.
    ///
    /// # Errors
    /// [`EngineError::Busy`] while another service does, [`EngineError::Newer`] where a later version makes it or has made it.
    pub async fn ensure(&self, progress: &Progress<'_>) -> Result<bool, EngineError> {
        if self.is_left_to_later().await? {
            return Err(EngineError::Newer);
        }
        match self.standing().await? {
            Standing::Ready => Ok(false),
            Standing::Newer => Err(EngineError::Newer),
            // Another service may have done it by the time we have the right to.
            Standing::Missing => self.rebuild_if(|standing| standing == Standing::Missing, progress).await,
        }
    }

    /// Whether the index may hold what the database no longer does, since that was put back to an earlier state. It
    /// answers until it is rebuilt.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn is_stale(&self) -> Result<bool, EngineError> {
        match self {
            // It was put back together with the products.
            Engine::Postgres(_) => Ok(false),
            Engine::Elasticsearch(elastic) => {
                Ok(elastic.targets().await?.0.iter().any(|index| index.stale && !index.building))
            }
        }
    }

    /// Makes an index small that was just built. Takes minutes for a million products; searches and writes go on.
    ///
    /// # Errors
    /// When the engine fails; the index is then as good, and larger.
    pub async fn compact(&self) -> Result<(), EngineError> {
        match self {
            Engine::Postgres(_) => Ok(()),
            Engine::Elasticsearch(elastic) => elastic.compact().await,
        }
    }

    /// Rebuilds the index where its standing is wanted for that, and tells whether it has.
    async fn rebuild_if(&self, wanted: fn(Standing) -> bool, progress: &Progress<'_>) -> Result<bool, EngineError> {
        let Some(lock) = self.store().lock_rebuild().await? else { return Err(EngineError::Busy) };
        let is_wanted = wanted(self.standing().await?);
        if is_wanted {
            match self {
                Engine::Postgres(postgres) => postgres.rebuild(progress).await?,
                Engine::Elasticsearch(elastic) => elastic.rebuild(progress).await?,
            }
        }
        lock.release().await?;
        Ok(is_wanted)
    }

    /// Writes changes, and tells what became of each.
    ///
    /// # Errors
    /// When none of them may be taken as written: [`EngineError::Newer`] where they are left to a later version.
    pub async fn apply(&self, changes: &[Change]) -> Result<Vec<Outcome>, EngineError> {
        match self {
            Engine::Postgres(postgres) => {
                postgres.require_ready().await.map_err(|_| EngineError::NotReady)?;
                postgres.project(changes, false).await?;
                Ok(vec![Outcome::Done; changes.len()])
            }
            Engine::Elasticsearch(elastic) => elastic.apply(changes).await,
        }
    }

    /// Whether the engine answers at all.
    ///
    /// # Errors
    /// When it does not.
    pub async fn ping(&self) -> Result<(), EngineError> {
        match self {
            Engine::Postgres(_) => Ok(()),
            Engine::Elasticsearch(elastic) => Ok(elastic.ping().await?),
        }
    }

    /// Whether a search has met no index since this was last asked.
    pub fn was_missing(&self) -> bool {
        match self {
            Engine::Postgres(_) => false,
            Engine::Elasticsearch(elastic) => elastic.was_missing(),
        }
    }

    /// Removes what only keeps the versions of long deleted products.
    ///
    /// # Errors
    /// When the engine fails.
    pub async fn sweep(&self) -> Result<(), EngineError> {
        match self {
            Engine::Postgres(postgres) => Ok(postgres.store.forget_removed_documents().await?),
            Engine::Elasticsearch(elastic) => elastic.sweep().await,
        }
    }

    /// Makes everything that was written until now visible to searches; for tests.
    ///
    /// # Errors
    /// When the engine fails.
    pub async fn refresh(&self) -> Result<(), EngineError> {
        match self {
            Engine::Postgres(_) => Ok(()),
            Engine::Elasticsearch(elastic) => Ok(elastic.refresh().await?),
        }
    }

    fn store(&self) -> &Store {
        match self {
            Engine::Postgres(postgres) => &postgres.store,
            Engine::Elasticsearch(elastic) => elastic.store(),
        }
    }

    async fn versions(&self, after: i64, limit: usize) -> Result<Vec<(i64, i64)>, EngineError> {
        match self {
            Engine::Postgres(postgres) => Ok(postgres.store.search_document_versions(after, limit).await?),
            Engine::Elasticsearch(elastic) => elastic.versions(after, limit).await,
        }
    }
}

impl Postgres {
    async fn require_ready(&self) -> Result<(), SearchError> {
        if self.ready_at().is_some_and(|known| known.elapsed() < READY_FOR) {
            return Ok(());
        }
        let indexes = self.store.search_indexes().await.map_err(|error| SearchError::Internal(error.to_string()))?;
        let is_left = is_left_to_later(&indexes, POSTGRES_FAMILY, POSTGRES_VERSION);
        if is_left || standing(&indexes, POSTGRES_FAMILY, POSTGRES_VERSION) != Standing::Ready {
            return Err(SearchError::Unavailable("the index is being built".to_owned()));
        }
        *self.ready_at() = Some(Instant::now());
        Ok(())
    }

    fn ready_at(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        self.ready_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes documents of the shape of this version, unless a later one writes its own; `anew` over those of another shape.
    async fn project(&self, changes: &[Change], anew: bool) -> Result<(), EngineError> {
        if self.store.project(changes, POSTGRES_FAMILY, POSTGRES_VERSION, anew).await? {
            return Ok(());
        }
        *self.ready_at() = None;
        Err(EngineError::Newer)
    }

    async fn rebuild(&self, progress: &Progress<'_>) -> Result<(), EngineError> {
        let total = self.store.count_products().await?;
        // How far it is, is kept under a name that no search looks at.
        let checkpoint = IndexRecord {
            name: format!("{POSTGRES_FAMILY}-{POSTGRES_VERSION}-rebuild"),
            family: POSTGRES_FAMILY.to_owned(),
            mapping_version: POSTGRES_VERSION,
            building: true,
            stale: false,
            built_to: None,
        };
        let mut indexes = self.store.search_indexes().await?;
        if is_left_to_later(&indexes, POSTGRES_FAMILY, POSTGRES_VERSION) {
            // Nobody begins this beside a later version but who has come back from it; its documents are written over.
            for index in indexes.extract_if(.., |index| index.family == POSTGRES_FAMILY) {
                self.store.remove_search_index(&index.name).await?;
            }
        }
        let known = indexes.into_iter().find(|index| index.name == checkpoint.name);
        if known.is_none() {
            self.store.add_search_index(&checkpoint).await?;
        }
        let (mut after, mut done) = (known.and_then(|index| index.built_to).unwrap_or(i64::MIN), 0);
        loop {
            let part = self.store.products_after_key(after, REBUILD_PRODUCTS).await?;
            let Some(last) = part.last else { break };
            after = last;
            let changes: Vec<Change> =
                tokio::task::spawn_blocking(move || part.products.into_iter().map(StoredProduct::change).collect())
                    .await?;
            self.project(&changes, true).await?;
            self.store.set_built_to(&checkpoint.name, after).await?;
            done += changes.len() as i64;
            progress(done, total.max(done));
        }
        self.store.sweep_search_documents().await?;
        let record = IndexRecord {
            name: POSTGRES_FAMILY.to_owned(),
            family: POSTGRES_FAMILY.to_owned(),
            mapping_version: POSTGRES_VERSION,
            building: false,
            stale: false,
            built_to: None,
        };
        self.store.add_search_index(&record).await?;
        self.store.set_search_index(&record.name).await?;
        *self.ready_at() = Some(Instant::now());
        Ok(())
    }
}
