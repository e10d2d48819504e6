//! What one account may hold.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::rate::Rate;
use super::turnstile::Turnstile;

/// A permit of the account's share and one of the whole.
pub(super) type Held = [OwnedSemaphorePermit; 2];

/// One account's part of places and bytes.
#[derive(Debug)]
pub(super) struct Share {
    pub(super) requests: Turnstile,
    pub(super) work: Turnstile,
    pub(super) searches: Turnstile,
    pub(super) transfers: Turnstile,
    /// One at a time.
    pub(super) storing: Arc<Semaphore>,
    pub(super) rate: Rate,
    pub(super) bytes: Arc<Semaphore>,
    /// All permits of `bytes`.
    pub(super) budget: usize,
}
