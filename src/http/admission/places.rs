//! Places that are held while a file is stored or sent, and while much is computed.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::share::Held;
use crate::computing;
use crate::http::error::ApiError;

/// A place among the files that come in or go out.
#[derive(Debug)]
pub(in crate::http) struct Transfer {
    /// Of the account, and of all.
    pub(super) storing: [Arc<Semaphore>; 2],
    pub(super) _held: [Held; 2],
}

impl Transfer {
    /// Stores a file when it is its turn, however long that takes: those before it are at most as many as have a place.
    pub(in crate::http) async fn turn<T>(&self, store: impl Future<Output = T>) -> T {
        // Nobody closes these semaphores, so that neither of the two is ever missing.
        let _own = self.storing[0].acquire().await;
        let _common = self.storing[1].acquire().await;
        store.await
    }
}

/// A place among the requests that take much of a processor.
#[derive(Debug)]
pub(in crate::http) struct Work {
    pub(super) cores: Arc<Semaphore>,
    pub(super) _held: Held,
}

impl Work {
    /// Computes on a thread made for work that blocks, when it is this request's turn.
    ///
    /// A request whose client has gone gives up its future and takes no further turn: long work takes many short ones.
    pub(in crate::http) async fn turn<T: Send + 'static>(
        &self,
        compute: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let closed = |error: &dyn std::fmt::Display| ApiError::Internal(format!("computing: {error}"));
        let turn = Arc::clone(&self.cores).acquire_owned().await.map_err(|error| closed(&error))?;
        let compute = move || {
            let _turn = turn;
            compute()
        };
        computing::spawn(compute).await.map_err(|error| closed(&error))
    }
}
