//! What clients together may take of memory and processors: who comes in, who waits, and who is sent away in time.
//!
//! A request pays twice: with a place among those at work, once its body is there, and with bytes for its body, for what
//! is made of it, and for its answer. Both are held until the request is over, and an account can hold a part only, so
//! that it does not keep the others out. Who finds no place within a moment is answered 503 with `Retry-After`, long
//! before a client gives up.

mod places;
mod rate;
mod share;
mod turnstile;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::body::HttpBody;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use clap::Args;
use futures::FutureExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::domain::access::TokenHash;
use crate::http::error::ApiError;
use crate::http::guarded::guarded;
pub(super) use places::{Transfer, Work};
use rate::Rate;
pub(super) use rate::RateLeft;
use share::{Held, Share};
use turnstile::Turnstile;

/// How long a request waits for places and for bytes, at most, all in all; and as long before, where it has to be looked up
/// whose it is.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// Waiting requests for each place. One that reads holds its place for a few milliseconds, so that as many are served
/// well within [`LONGEST_WAIT`], and reads that come at a steady rate get over the moment in which others write.
const QUEUE_PER_PLACE: usize = 8;
/// The same for what takes longer: those that classify, explain or search.
const SLOW_QUEUE_PER_PLACE: usize = 2;
/// Of places and bytes, the part that one account may hold, in quarters.
const SHARE_QUARTERS: usize = 3;
/// Accounts whose shares are remembered; beyond it those that sent nothing for a minute are forgotten.
const MAX_SHARES: usize = 4_096;
/// Tokens whose account is remembered, to send it away without a look-up when it has no place left.
const MAX_KNOWN: usize = 16_384;
/// Memory that is asked for before a page is read, for each of its items: the record, what is shown of it, and its text.
pub(super) const ITEM_BYTES: usize = 48 << 10;
/// Answers up to this many bytes are not counted.
const SMALL_ANSWER_BYTES: u64 = 64 << 10;
/// Bytes of one permit of the budget.
const UNIT_BYTES: usize = 1 << 10;
/// Requests whose credential is looked up at one time.
const LOOKUPS: usize = 16;
/// Searches at one time: half of the connections to the database.
const SEARCHES: usize = 12;
/// Files that come in or go out at one time; each may take as much of the disk as a file may have.
const TRANSFERS: usize = 8;
/// Files that are stored at one time, of one account one: each takes a few connections to the database.
const STORED_AT_ONCE: usize = 2;
/// Requests for each processor that classify, explain or search: they take turns at it.
const WORK_PER_CORE: usize = 4;

/// How much clients may take together.
#[derive(Clone, Debug, Args)]
pub struct AdmissionSettings {
    /// Requests at work at one time; eight times as many wait for a moment, others are answered 503.
    #[arg(long, env = "MAX_REQUESTS", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub max_requests: u32,
    /// MiB of memory for bodies and answers of requests under way.
    #[arg(long, env = "REQUEST_MEMORY_MIB", default_value_t = 384, value_parser = clap::value_parser!(u32).range(64..=1_048_576))]
    pub request_memory_mib: u32,
    /// Requests that an account may send in a minute.
    #[arg(long, env = "RATE_REQUESTS_PER_MINUTE", default_value_t = 60_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub rate_requests_per_minute: u64,
    /// MiB that an account may send in a minute.
    #[arg(long, env = "RATE_MIB_PER_MINUTE", default_value_t = 4_096, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub rate_mib_per_minute: u64,
}

impl Default for AdmissionSettings {
    fn default() -> AdmissionSettings {
        AdmissionSettings {
            max_requests: 32,
            request_memory_mib: 384,
            rate_requests_per_minute: 60_000,
            rate_mib_per_minute: 4_096,
        }
    }
}

/// What all requests share.
#[derive(Debug)]
pub struct Admission {
    /// Requests at work.
    requests: Turnstile,
    /// Requests that look up their credential.
    lookups: Turnstile,
    /// Requests that classify, explain or search.
    work: Turnstile,
    /// Searches: each holds a connection to the database, and others need some too.
    searches: Turnstile,
    /// Files that come in or go out.
    transfers: Turnstile,
    /// Turns at storing a file.
    storing: Arc<Semaphore>,
    /// Turns at a processor.
    cores: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    /// All permits of `bytes`.
    budget: usize,
    longest_wait: Duration,
    /// Requests and bytes of an account in a minute.
    rates: (u64, u64),
    shares: Mutex<HashMap<i64, Arc<Share>>>,
    known: Mutex<HashMap<TokenHash, i64>>,
}

/// What one request holds, until it is over. Clones hold together.
#[derive(Clone, Debug)]
pub(super) struct Tab {
    admission: Arc<Admission>,
    share: Arc<Share>,
    held: Arc<Mutex<Vec<Held>>>,
    /// Permits of the budgets, of the account's and of the common one.
    memory: Arc<Mutex<Option<Held>>>,
    entered: Arc<AtomicBool>,
    /// For how long it may still wait.
    patience: Arc<Mutex<Duration>>,
}

impl Admission {
    /// For one service.
    pub fn new(settings: &AdmissionSettings) -> Arc<Admission> {
        Admission::with_wait(settings, LONGEST_WAIT)
    }

    fn with_wait(settings: &AdmissionSettings, longest_wait: Duration) -> Arc<Admission> {
        let places = settings.max_requests as usize;
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        let budget = (settings.request_memory_mib as usize) * ((1 << 20) / UNIT_BYTES);
        Arc::new(Admission {
            requests: Turnstile::new(places, places * QUEUE_PER_PLACE, longest_wait),
            lookups: Turnstile::new(LOOKUPS, places * QUEUE_PER_PLACE, longest_wait),
            work: Turnstile::new(cores * WORK_PER_CORE, cores * WORK_PER_CORE * SLOW_QUEUE_PER_PLACE, longest_wait),
            searches: Turnstile::new(SEARCHES, SEARCHES * SLOW_QUEUE_PER_PLACE, longest_wait),
            transfers: Turnstile::new(TRANSFERS, TRANSFERS, longest_wait),
            storing: Arc::new(Semaphore::new(STORED_AT_ONCE)),
            cores: Arc::new(Semaphore::new(cores)),
            bytes: Arc::new(Semaphore::new(budget)),
            budget,
            longest_wait,
            rates: (settings.rate_requests_per_minute, settings.rate_mib_per_minute << 20),
            shares: Mutex::default(),
            known: Mutex::default(),
        })
    }

    /// Whether all places are taken and the queue is full: of the whole, or of the account that the token had when it was
    /// last looked up.
    pub(super) fn is_full(&self, token: impl FnOnce() -> Option<TokenHash>) -> bool {
        self.requests.is_full() || token().is_some_and(|token| self.has_full_share(&token))
    }

    /// Why a request is sent away where it is so full.
    pub(super) fn refusal() -> ApiError {
        overloaded()
    }

    /// Waits for a turn to look up a credential.
    pub(super) async fn lookup(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        self.lookups.enter().await.ok_or_else(overloaded)
    }

    fn has_full_share(&self, token: &TokenHash) -> bool {
        let Some(account) = self.known(token) else { return false };
        let shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        shares.get(&account).is_some_and(|share| share.requests.is_full())
    }

    /// What the account has left of its rate that the token had when it was last looked up; none where that is not known.
    pub(super) fn left(&self, token: &TokenHash) -> Option<RateLeft> {
        let account = self.known(token)?;
        let shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        shares.get(&account).map(|share| share.rate.left(Instant::now()))
    }

    /// The account that a token had when it was last looked up.
    pub(super) fn known(&self, token: &TokenHash) -> Option<i64> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(token).copied()
    }

    /// Remembers whose token it is. That decides about nothing but for whose place its
    /// requests wait until it is looked up again.
    pub(super) fn remember(&self, token: TokenHash, account: i64) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.insert(token, account);
    }

    /// Opens the tab of a request of an account.
    pub(super) fn tab(self: &Arc<Self>, account: i64) -> Tab {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        if shares.len() >= MAX_SHARES {
            let now = Instant::now();
            shares.retain(|_, share| Arc::strong_count(share) > 1 || !share.rate.is_over(now));
        }
        let share = shares.entry(account).or_insert_with(|| {
            let part = |whole: usize| (whole * SHARE_QUARTERS / 4).max(1);
            Arc::new(Share {
                requests: self.requests.part(SHARE_QUARTERS),
                work: self.work.part(SHARE_QUARTERS),
                searches: self.searches.part(SHARE_QUARTERS),
                transfers: self.transfers.part(SHARE_QUARTERS),
                storing: Arc::new(Semaphore::new(1)),
                bytes: Arc::new(Semaphore::new(part(self.budget))),
                budget: part(self.budget),
                rate: Rate::new(self.rates.0, self.rates.1),
            })
        });
        Tab {
            admission: Arc::clone(self),
            share: Arc::clone(share),
            held: Arc::default(),
            memory: Arc::default(),
            entered: Arc::default(),
            patience: Arc::new(Mutex::new(self.longest_wait)),
        }
    }
}

impl Tab {
    /// Counts a request, of so many bytes as far as announced, against the rate of the account.
    pub(super) fn count(&self, bytes: Option<u64>) -> Result<RateLeft, RateLeft> {
        self.share.rate.take(Instant::now(), bytes.unwrap_or_default())
    }

    /// Counts bytes that were not announced against the rate of the account.
    pub(super) fn count_more(&self, bytes: usize) {
        self.share.rate.add(bytes as u64);
    }

    /// Takes a place among the requests at work.
    pub(super) async fn enter(&self) -> Result<(), ApiError> {
        self.keep(self.places(&self.share.requests, &self.admission.requests).await?);
        self.entered.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Whether the request was among those at work: its body is there.
    pub(super) fn has_entered(&self) -> bool {
        self.entered.load(Ordering::Relaxed)
    }

    /// Takes memory for so many bytes more. A request that needs more than the whole share gets the whole share.
    pub(super) async fn charge(&self, bytes: usize) -> Result<(), ApiError> {
        let left = self.share.budget.saturating_sub(self.charged());
        let more = self.units(bytes.div_ceil(UNIT_BYTES).min(left)).await?;
        merge(&mut self.memory.lock().unwrap_or_else(PoisonError::into_inner), more);
        Ok(())
    }

    /// Takes memory until so many bytes are held in all: who holds enough already does not queue behind those who hold
    /// nothing and wait for what is held.
    pub(super) async fn cover(&self, bytes: usize) -> Result<(), ApiError> {
        self.charge(bytes.saturating_sub(self.charged() * UNIT_BYTES)).await
    }

    /// Permits of the budget that are held.
    fn charged(&self) -> usize {
        count(&self.memory.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn units(&self, units: usize) -> Result<Held, ApiError> {
        let units = u32::try_from(units).unwrap_or(u32::MAX);
        let both = async {
            let own = Arc::clone(&self.share.bytes).acquire_many_owned(units).await.ok()?;
            Some([own, Arc::clone(&self.admission.bytes).acquire_many_owned(units).await.ok()?])
        };
        self.wait_for(both).await
    }

    /// A place of the account's and one of all.
    async fn places(&self, own: &Turnstile, common: &Turnstile) -> Result<Held, ApiError> {
        self.wait_for(async { Some([own.enter().await?, common.enter().await?]) }).await
    }

    /// Waits for as long as the request may still.
    async fn wait_for(&self, held: impl Future<Output = Option<Held>>) -> Result<Held, ApiError> {
        let left = *self.patience.lock().unwrap_or_else(PoisonError::into_inner);
        let began = Instant::now();
        let held = match left.is_zero() {
            true => held.now_or_never(),
            false => tokio::time::timeout(left, held).await.ok(),
        };
        let left = left.saturating_sub(began.elapsed());
        *self.patience.lock().unwrap_or_else(PoisonError::into_inner) = left;
        held.flatten().ok_or_else(overloaded)
    }

    fn keep(&self, held: Held) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).push(held);
    }

    /// Gives back what the request held but for the memory of its answer, which is charged until it is sent or given up. An
    /// answer for which there is no memory is refused where nothing was changed, and otherwise goes out all the same.
    pub(super) async fn send(&self, answer: Response, changes: bool) -> Response {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.held.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let length = answer.body().size_hint().lower();
        if length <= SMALL_ANSWER_BYTES {
            return answer;
        }
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let (units, held) = (length.div_ceil(UNIT_BYTES).min(self.share.budget), count(&memory));
        if let Some(memory) = &mut memory {
            for permits in memory {
                drop(permits.split(held.saturating_sub(units)));
            }
        }
        match self.units(units.saturating_sub(held)).await {
            Ok(more) => merge(&mut memory, more),
            Err(error) if !changes => return error.into_response(),
            Err(_) => {}
        }
        answer.map(|body| guarded(body, memory))
    }

    /// Takes a place among those that search, until the request is over.
    pub(super) async fn search(&self) -> Result<(), ApiError> {
        self.keep(self.places(&self.share.searches, &self.admission.searches).await?);
        Ok(())
    }

    /// Admits a file of which so many bytes are in memory at one time, until it is stored or sent.
    pub(super) async fn transfer(&self, bytes: usize) -> Result<Transfer, ApiError> {
        let places = self.places(&self.share.transfers, &self.admission.transfers).await?;
        let memory = self.units(bytes.div_ceil(UNIT_BYTES).min(self.share.budget)).await?;
        let storing = [Arc::clone(&self.share.storing), Arc::clone(&self.admission.storing)];
        Ok(Transfer { storing, _held: [places, memory] })
    }

    /// Admits a request that takes much of a processor. While it has its place it takes turns at the processors with
    /// the others: see [`Work::turn`].
    pub(super) async fn work(&self) -> Result<Work, ApiError> {
        let held = self.places(&self.share.work, &self.admission.work).await?;
        Ok(Work { cores: Arc::clone(&self.admission.cores), _held: held })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Tab {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let tab = parts.extensions.get::<Tab>().cloned();
        tab.ok_or_else(|| ApiError::Internal("a route is not behind authentication".to_owned()))
    }
}

/// Adds permits to those that are held.
fn merge(held: &mut Option<Held>, more: Held) {
    match held {
        Some(held) => held.iter_mut().zip(more).for_each(|(held, more)| held.merge(more)),
        None => *held = Some(more),
    }
}

/// How many permits are held, of either budget.
fn count(held: &Option<Held>) -> usize {
    held.as_ref().map_or(0, |held| held[0].num_permits())
}

fn overloaded() -> ApiError {
    ApiError::Unavailable("there is more to do here at present than can be done")
}

#[cfg(test)]
mod tests;
