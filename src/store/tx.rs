//! A transaction, and how that of a request can wait for the request's answer.
//!
//! Most transactions end where they say so. Inside [`held`] the last one of a request stays open behind its `commit`, so
//! that the answer can be stored with what it tells of: both are there after a crash, or neither is.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

use sqlx::{PgConnection, Postgres, Transaction};

use crate::store::{Store, StoreError};

/// The transaction that waits, if there is one.
type Slot = Arc<Mutex<Option<Transaction<'static, Postgres>>>>;

tokio::task_local! {
    static SLOT: Slot;
}

/// A transaction on the database; undone when it is dropped.
#[derive(Debug)]
pub struct Tx(Transaction<'static, Postgres>);

impl Tx {
    pub(super) fn new(begun: Transaction<'static, Postgres>) -> Tx {
        Tx(begun)
    }

    /// Makes what was done last. Inside [`held`] it waits for its [`Held::commit`].
    ///
    /// # Errors
    /// When the database fails.
    pub async fn commit(self) -> Result<(), sqlx::Error> {
        match SLOT.try_with(Arc::clone) {
            Err(_) => self.0.commit().await,
            Ok(slot) => {
                *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.0);
                Ok(())
            }
        }
    }

    /// Undoes what was done.
    ///
    /// # Errors
    /// When the database fails; it is undone all the same.
    pub async fn rollback(self) -> Result<(), sqlx::Error> {
        self.0.rollback().await
    }
}

impl Deref for Tx {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.0
    }
}

impl DerefMut for Tx {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.0
    }
}

/// Commits the transaction that waits, if there is one, before another begins: only the last of a request goes with its
/// answer.
pub(super) async fn finish_earlier() -> Result<(), sqlx::Error> {
    match SLOT.try_with(take).ok().flatten() {
        Some(earlier) => earlier.commit().await,
        None => Ok(()),
    }
}

/// The transaction that waits, to read what it wrote, and to wait on when it commits again.
pub(super) fn waiting() -> Option<Tx> {
    SLOT.try_with(take).ok().flatten().map(Tx)
}

/// Whether transactions wait here for an answer: then all that is done has to be done in one, and what can be done later
/// is left to the jobs.
pub fn is_held() -> bool {
    SLOT.try_with(|_| ()).is_ok()
}

fn take(slot: &Slot) -> Option<Transaction<'static, Postgres>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// The transaction that a request left open, or none when it had none.
#[derive(Debug)]
pub struct Held(Option<Transaction<'static, Postgres>>);

impl Held {
    /// The transaction, to add to it; a new one where there is none.
    pub(super) async fn open(self, store: &Store) -> Result<Tx, StoreError> {
        match self.0 {
            Some(held) => Ok(Tx(held)),
            None => store.begin().await,
        }
    }

    /// Makes what was done last.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn commit(self) -> Result<(), sqlx::Error> {
        match self.0 {
            Some(held) => held.commit().await,
            None => Ok(()),
        }
    }
}

/// Runs work so that its last transaction stays open. Dropping what it left undoes it.
pub async fn held<T>(work: impl Future<Output = T>) -> (T, Held) {
    let slot = Slot::default();
    let done = SLOT.scope(slot.clone(), work).await;
    (done, Held(take(&slot)))
}
