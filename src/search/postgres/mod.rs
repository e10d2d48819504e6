//! The engine in PostgreSQL: a table of documents beside the products.

mod lower;
mod projection;
mod query;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::search::standing::{Standing, standing};
use crate::search::versions::is_left_to_later;
use crate::search::{EngineError, Progress, SearchError};
use crate::store::Store;
use crate::store::search::{Change, IndexRecord, Outcome, StoredProduct, changes_of};

/// The family and the name of the projection in the database.
const FAMILY: &str = "postgresql";
/// The version of that projection: one of another version is rebuilt. To be raised whenever its columns or the
/// normalisation of texts changes.
const VERSION: i32 = 1;
/// How long searches count on the projection being complete and of this version before they look again.
const READY_FOR: Duration = Duration::from_secs(1);
/// Products that a rebuild writes in one transaction.
const REBUILD_PRODUCTS: usize = 500;

/// The projection in the database.
#[derive(Clone, Debug)]
pub struct Postgres {
    store: Store,
    /// When it was last known to be complete and of this version.
    ready_at: Arc<Mutex<Option<Instant>>>,
}

impl Postgres {
    /// The engine over the database of a store.
    pub fn new(store: &Store) -> Postgres {
        Postgres { store: store.clone(), ready_at: Arc::default() }
    }

    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    /// The family of the projection, and the version of its shape that this program knows.
    pub(super) fn shape(&self) -> (&str, i32) {
        (FAMILY, VERSION)
    }

    /// What there is of the projection for a service of this version.
    ///
    /// # Errors
    /// When the database fails.
    pub(super) async fn standing(&self) -> Result<Standing, EngineError> {
        Ok(standing(&self.store.search_indexes().await?, FAMILY, VERSION))
    }

    /// Writes changes.
    ///
    /// # Errors
    /// [`EngineError::NotReady`] and [`EngineError::Newer`], and when the database fails; then none is written.
    pub(super) async fn apply(&self, changes: &[Change]) -> Result<Vec<Outcome>, EngineError> {
        self.require_ready().await.map_err(|_| EngineError::NotReady)?;
        self.project(changes, false).await?;
        Ok(vec![Outcome::Done; changes.len()])
    }

    async fn require_ready(&self) -> Result<(), SearchError> {
        if self.ready_at().is_some_and(|known| known.elapsed() < READY_FOR) {
            return Ok(());
        }
        let indexes = self.store.search_indexes().await.map_err(|error| SearchError::Internal(error.to_string()))?;
        let is_left = is_left_to_later(&indexes, FAMILY, VERSION);
        if is_left || standing(&indexes, FAMILY, VERSION) != Standing::Ready {
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
        if self.write(changes, anew).await? {
            return Ok(());
        }
        *self.ready_at() = None;
        Err(EngineError::Newer)
    }

    /// Rebuilds the projection from the products, from where the last one stopped.
    pub(super) async fn rebuild(&self, progress: &Progress<'_>) -> Result<(), EngineError> {
        let total = self.store.count_products().await?;
        // How far it is, is kept under a name that no search looks at.
        let checkpoint = IndexRecord {
            name: format!("{FAMILY}-{VERSION}-rebuild"),
            family: FAMILY.to_owned(),
            mapping_version: VERSION,
            building: true,
            stale: false,
            built_to: None,
        };
        let mut indexes = self.store.search_indexes().await?;
        if is_left_to_later(&indexes, FAMILY, VERSION) {
            // Nobody begins this beside a later version but who has come back from it; its documents are written over.
            for index in indexes.extract_if(.., |index| index.family == FAMILY) {
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
            let (changes, refused) =
                tokio::task::spawn_blocking(move || changes_of(part.products, StoredProduct::change)).await?;
            for (change, reason) in &refused {
                self.store.park_search_change(change, reason).await?;
            }
            self.project(&changes, true).await?;
            self.store.set_built_to(&checkpoint.name, after).await?;
            done += changes.len() as i64;
            progress(done, total.max(done));
        }
        self.sweep_documents().await?;
        let record = IndexRecord {
            name: FAMILY.to_owned(),
            family: FAMILY.to_owned(),
            mapping_version: VERSION,
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
