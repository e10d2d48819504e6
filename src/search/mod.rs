//! Selects products by filterCriteria, by one of two engines that agree to the last character.
//!
//! Elasticsearch answers where its URL is set, PostgreSQL otherwise. Both are projections of the products: fed through
//! `search_outbox` by the job in `jobs::projection`, and rebuilt from the products at any time.

mod elasticsearch;
mod postgres;
mod settings;
mod standing;
mod verify;
mod versions;

use std::time::{Duration, Instant};

use crate::domain::filter::Criteria;
use crate::store::deadline::FilterError;
use crate::store::pages::{Page, Position};
use crate::store::products::Found;
use crate::store::search::{Change, Outcome};
use crate::store::{self, Store, StoreError};

pub(crate) use elasticsearch::pause;
pub use elasticsearch::{ElasticError, Elasticsearch};
pub use postgres::Postgres;
pub use settings::{ElasticsearchUrls, Settings};
pub use standing::Standing;
pub use verify::{Difference, Verified};

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

/// A page that is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Search<'a> {
    /// The account whose products are searched.
    pub account: i64,
    /// The stored number of the shop, 0 for global products.
    pub shop: i64,
    /// What products have to satisfy.
    pub criteria: &'a Criteria,
    /// The ids among which they have to be; none for all.
    pub product_ids: Option<&'a [String]>,
    /// The shops with any of which they have to be associated; none for all.
    pub shop_ids: Option<&'a [i64]>,
    /// Where the page begins or ends, in the order of ids.
    pub position: &'a Position<String>,
    /// Most products of the page.
    pub size: usize,
    /// How long the search may take.
    pub deadline: Duration,
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
            None => Ok(Engine::Postgres(Postgres::new(store))),
        }
    }

    /// Judges the settings alone.
    ///
    /// # Errors
    /// As [`Engine::new`].
    pub fn check(settings: &Settings) -> Result<(), SettingsError> {
        settings.elasticsearch_url.as_ref().map_or(Ok(()), |urls| elasticsearch::check(settings, urls.as_slice()))
    }

    /// A page of products that satisfy criteria, in the order of their ids. Answers or fails within the deadline.
    ///
    /// # Errors
    /// [`SearchError::TooSlow`] and [`SearchError::Unavailable`] are 503 to a client.
    pub async fn page(&self, search: &Search<'_>) -> Result<Page<Found>, SearchError> {
        let began = Instant::now();
        let (engine, page) = match self {
            Engine::Postgres(postgres) => ("postgresql", postgres.page(search).await),
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
            Engine::Postgres(postgres) => postgres.count(search).await,
            Engine::Elasticsearch(elastic) => elastic.count(search).await,
        }
    }

    /// What there is of the index for a service of this version.
    ///
    /// # Errors
    /// When the engine or the database fails.
    pub async fn standing(&self) -> Result<Standing, EngineError> {
        match self {
            Engine::Postgres(postgres) => postgres.standing().await,
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
            Engine::Postgres(postgres) => postgres.apply(changes).await,
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
            Engine::Postgres(postgres) => Ok(postgres.forget_removed_documents().await?),
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
            Engine::Postgres(postgres) => postgres.store(),
            Engine::Elasticsearch(elastic) => elastic.store(),
        }
    }

    async fn versions(&self, after: i64, limit: usize) -> Result<Vec<(i64, i64)>, EngineError> {
        match self {
            Engine::Postgres(postgres) => Ok(postgres.versions(after, limit).await?),
            Engine::Elasticsearch(elastic) => elastic.versions(after, limit).await,
        }
    }
}
