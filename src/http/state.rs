//! What every handler may use.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use metrics_exporter_prometheus::PrometheusHandle;
use tokio::sync::Notify;

use crate::decision::Engine;
use crate::exchange::Spool;
use crate::http::admission::Admission;
use crate::http::links::Links;
use crate::http::waiting::Waiting;
use crate::http::watch::DatabaseWatch;
use crate::pictures::{Inspector, PictureStore};
use crate::search;
use crate::store::Store;
use crate::webhooks;

/// Wakes the jobs of this service, so that they need not look often for work.
#[derive(Clone, Default)]
pub struct Wake {
    /// There may be products to assign.
    pub auto_assignment: Arc<Notify>,
    /// People may have decided something that is to be learnt.
    pub memory: Arc<Notify>,
    /// There may be actions of people to go on with.
    pub review: Arc<Notify>,
    /// There may be search entries to write.
    pub projection: Arc<Notify>,
}

/// What every handler may use; a clone is one count, since each layer around a request takes one.
#[derive(Clone)]
pub struct AppState(Arc<Services>);

/// What there is for handlers.
pub struct Services {
    /// The database.
    pub store: Store,
    /// Classifier and facts.
    pub engine: Arc<Engine>,
    /// Answers filterCriteria.
    pub search: search::Engine,
    /// How long a search may take.
    pub search_deadline: Duration,
    /// Bytes of pictures.
    pub pictures: Arc<PictureStore>,
    /// Files that come in or go out.
    pub spool: Spool,
    /// Looks at uploaded pictures, a few at a time.
    pub inspector: Arc<Inspector>,
    /// What clients may take of memory and processors.
    pub admission: Arc<Admission>,
    /// Whether the database answers.
    pub database: DatabaseWatch,
    /// Makes URLs.
    pub links: Arc<Links>,
    /// Wakes the jobs.
    pub wake: Wake,
    /// Requests that wait for changes.
    pub waiting: Waiting,
    /// Judges the addresses of webhooks.
    pub webhooks: webhooks::Sender,
    /// What `/metrics` shows.
    pub metrics: PrometheusHandle,
    /// Whether metrics are served at an address of their own, and not beside the interface.
    pub metrics_apart: bool,
}

impl From<Services> for AppState {
    fn from(services: Services) -> AppState {
        AppState(Arc::new(services))
    }
}

impl Deref for AppState {
    type Target = Services;

    fn deref(&self) -> &Services {
        &self.0
    }
}

impl AppState {
    /// Tells the jobs that a committed change made work for them.
    pub(super) fn products_changed(&self) {
        self.wake.auto_assignment.notify_one();
        self.wake.projection.notify_one();
    }
}
