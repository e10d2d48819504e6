//! What people decided, in memory, so that products which are alike are classified by it.
//!
//! Each account has a snapshot of its own, made of segments that never change; who asks reads the snapshot of one
//! account and takes no lock. One writer at a time learns: new decisions make a small segment, and small segments are
//! put together, so that learning one costs little however many there are. There is no way from the snapshot of one
//! account to that of another.

mod confidence;
mod judge;
mod opinion;
mod segment;
mod turns;
mod writer;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use uuid::Uuid;

use crate::domain::{ProductClass, Segment as Side, Taxonomy};
use segment::{Known, Segment};
use writer::Writer;

pub use confidence::{Confidence, EVIDENCE, Evidence, NAMES};
pub use judge::{ALIKE, Judgement, Question, Recalled};
pub use opinion::Opinion;
pub use turns::Turns;

/// Most decisions of one account that are kept in memory; the oldest make room.
pub const MAX_DECISIONS_OF_ACCOUNT: usize = 1_000_000;
/// Most decisions of all accounts that are kept in memory; the account with most makes room.
pub const MAX_DECISIONS: usize = 2_000_000;
/// Which part of the decisions of an account makes room at once.
const EVICTED_SHARE: usize = 10;
/// Most decisions that are looked at by one of their words for one question; more have a word only if all do.
const MAX_LOOKED_AT: usize = 20_000;
/// Fewest of a segment that are looked at, however small a part of the memory it is.
const MIN_LOOKED_AT: usize = 500;
/// Most decisions whose likeness is computed in full for one question.
const MAX_COMPARED: usize = 256;

/// A decision of a person with what is known of the product's texts.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The assignment that was decided.
    pub assignment: Uuid,
    /// Its taxonomy.
    pub taxonomy: Taxonomy,
    /// The class that it is about.
    pub class: ProductClass,
    /// Whether the person said that the class is wrong.
    pub against: bool,
    /// What the shipped model says of the texts.
    pub opinion: Opinion,
    /// The side of a VAT rule on which the texts put the goods within the class.
    pub side: Side,
    /// Words of the texts in the order of weight, in 255ths.
    pub words: Box<[(u32, u8)]>,
}

/// Words as they are kept: weights in 255ths.
pub fn packed(words: &[(u32, f32)]) -> Box<[(u32, u8)]> {
    words.iter().map(|(word, weight)| (*word, (weight * 255.0).round().clamp(0.0, 255.0) as u8)).collect()
}

/// Something to be learnt.
#[derive(Clone, Debug)]
pub enum Lesson {
    /// What a person decided; it takes the place of what was known of that assignment.
    Decided(Decision),
    /// What was decided about this assignment has been taken back.
    TakenBack(Uuid),
}

/// What an account remembers, as it is at one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    parts: Vec<Part>,
}

/// A segment and which of its decisions no longer hold.
#[derive(Clone, Debug)]
struct Part {
    id: u32,
    segment: Arc<Segment>,
    gone: Arc<Vec<u64>>,
    live: usize,
}

impl Part {
    fn new(id: u32, segment: Segment) -> Part {
        let live = segment.len();
        Part { id, segment: Arc::new(segment), gone: Arc::new(vec![0; live.div_ceil(64)]), live }
    }

    fn holds(&self, at: usize) -> bool {
        self.gone[at / 64] >> (at % 64) & 1 == 0
    }

    fn forget(&mut self, at: usize) {
        if self.holds(at) {
            Arc::make_mut(&mut self.gone)[at / 64] |= 1 << (at % 64);
            self.live -= 1;
        }
    }

    fn living(&self) -> impl Iterator<Item = Known<'_>> {
        (0..self.segment.len()).filter(|at| self.holds(*at)).map(|at| self.segment.known(at))
    }
}

impl Snapshot {
    /// How many decisions there are.
    pub fn len(&self) -> usize {
        self.parts.iter().map(|part| part.live).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.parts.iter().all(|part| part.live == 0)
    }

    /// Bytes that it takes, but for what only the writer knows.
    pub fn bytes(&self) -> usize {
        self.parts.iter().map(|part| part.segment.bytes() + 8 * part.gone.len()).sum()
    }

    /// Calls `visit` with decisions that may resemble a text, and how much each does, 0 to 1.
    fn alike<'a>(&'a self, taxonomy: Taxonomy, words: &[(u32, f32)], mut visit: impl FnMut(Known<'a>, f32)) {
        let all: usize = self.parts.iter().map(|part| part.segment.len()).sum();
        let mut found: Vec<(f32, u32, u32)> = Vec::new();
        for (index, part) in (0..).zip(&self.parts) {
            let most = (MAX_LOOKED_AT * part.segment.len() / all.max(1)).max(MIN_LOOKED_AT);
            part.segment.sharing(words, most, |at, shared| {
                if part.segment.taxonomy(at) == taxonomy && part.holds(at) {
                    found.push((shared, index, at as u32));
                }
            });
        }
        if found.len() > MAX_COMPARED {
            let newest_of_best =
                |a: &(f32, u32, u32), b: &(f32, u32, u32)| b.0.total_cmp(&a.0).then((b.1, b.2).cmp(&(a.1, a.2)));
            found.select_nth_unstable_by(MAX_COMPARED - 1, newest_of_best);
            found.truncate(MAX_COMPARED);
        }
        let mut sorted = words.to_vec();
        sorted.sort_unstable_by_key(|(word, _)| *word);
        for (_, part, at) in found {
            let known = self.parts[part as usize].segment.known(at as usize);
            visit(known, similarity(&sorted, known));
        }
    }
}

/// Cosine of a text, in the order of words, and of a decision's, 0 to 1.
fn similarity(text: &[(u32, f32)], known: Known<'_>) -> f32 {
    let shared = known.words().filter_map(|(word, weight)| {
        let at = text.binary_search_by_key(&word, |(word, _)| *word).ok()?;
        Some(weight * text[at].1)
    });
    shared.sum::<f32>().min(1.0)
}

/// What the accounts remember.
#[derive(Debug)]
pub struct Memory {
    accounts: ArcSwap<HashMap<i64, Arc<ArcSwap<Snapshot>>>>,
    writer: Mutex<Writer>,
    /// How far what is stored has been learnt; one follower at a time.
    pub followed: tokio::sync::Mutex<Option<Followed>>,
    confidence: Confidence,
}

/// How far what is stored has been learnt.
#[derive(Clone, Debug, PartialEq)]
pub struct Followed {
    /// What the database showed then, in its own words.
    pub snapshot: String,
    /// The model that read the texts.
    pub model_version: String,
}

impl Default for Memory {
    fn default() -> Self {
        Memory::new(Confidence::shipped())
    }
}

impl Memory {
    /// An empty memory that is as sure as `confidence` says.
    pub fn new(confidence: Confidence) -> Memory {
        let (accounts, writer, followed) = Default::default();
        Memory { accounts, writer, followed, confidence }
    }

    /// How sure it is of what it knows.
    pub fn confidence(&self) -> &Confidence {
        &self.confidence
    }

    /// What an account remembers now.
    pub fn of(&self, account: i64) -> Arc<Snapshot> {
        self.accounts.load().get(&account).map(|snapshot| snapshot.load_full()).unwrap_or_default()
    }

    /// How many decisions all accounts remember.
    pub fn len(&self) -> usize {
        self.accounts.load().values().map(|snapshot| snapshot.load().len()).sum()
    }

    /// Whether no account remembers anything.
    pub fn is_empty(&self) -> bool {
        self.accounts.load().values().all(|snapshot| snapshot.load().is_empty())
    }

    /// Forgets everything, to be learnt anew: words mean something else to another model.
    pub fn clear(&self) {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.clear();
        self.accounts.store(Arc::default());
    }

    /// Learns for an account, in the order given.
    pub fn learn(&self, account: i64, lessons: Vec<Lesson>) {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = match self.accounts.load().get(&account) {
            Some(shared) => shared.clone(),
            None => {
                let shared = Arc::new(ArcSwap::from_pointee(Snapshot::default()));
                let mut accounts = HashMap::clone(&self.accounts.load());
                accounts.insert(account, shared.clone());
                self.accounts.store(Arc::new(accounts));
                shared
            }
        };
        let mut snapshot = Snapshot::clone(&shared.load());
        let mut new: Vec<Decision> = Vec::new();
        let mut new_at: HashMap<Uuid, usize> = HashMap::new();
        for lesson in lessons {
            let (assignment, decision) = match lesson {
                Lesson::Decided(decision) => (decision.assignment, Some(decision)),
                Lesson::TakenBack(assignment) => (assignment, None),
            };
            writer.forget(account, &mut snapshot, assignment);
            match (decision, new_at.get(&assignment)) {
                (Some(decision), Some(at)) => new[*at] = decision,
                (Some(decision), None) => {
                    new_at.insert(assignment, new.len());
                    new.push(decision);
                }
                (None, Some(_)) => {
                    new.retain(|known| known.assignment != assignment);
                    new_at = new.iter().enumerate().map(|(at, known)| (known.assignment, at)).collect();
                }
                (None, None) => {}
            }
        }
        if !new.is_empty() {
            writer.add(account, &mut snapshot, &new);
        }
        let over = snapshot.len().saturating_sub(MAX_DECISIONS_OF_ACCOUNT);
        if over > 0 {
            writer.evict(account, &mut snapshot, over + MAX_DECISIONS_OF_ACCOUNT / EVICTED_SHARE);
        }
        writer.tidy(account, &mut snapshot);
        shared.store(Arc::new(snapshot));
        self.make_room(&mut writer);
    }

    fn make_room(&self, writer: &mut Writer) {
        while self.len() > MAX_DECISIONS {
            let accounts = self.accounts.load();
            let Some((account, shared)) = accounts.iter().max_by_key(|(_, shared)| shared.load().len()) else { return };
            let mut snapshot = Snapshot::clone(&shared.load());
            let some = (snapshot.len() / EVICTED_SHARE).max(1);
            writer.evict(*account, &mut snapshot, some);
            writer.tidy(*account, &mut snapshot);
            shared.store(Arc::new(snapshot));
        }
    }
}

#[cfg(test)]
mod tests;
