//! What people decided, in memory, so that products which are alike are classified by it.
//!
//! Each account has a snapshot of its own, made of segments that never change; who asks reads the snapshot of one
//! account and takes no lock. One writer at a time learns: new decisions make a small segment, and small segments are
//! put together, so that learning one costs little however many there are. There is no way from the snapshot of one
//! account to that of another.

mod judge;
mod segment;
mod turns;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use uuid::Uuid;

use crate::domain::{ClassCode, ProductClass, Segment as Side, Taxonomy};
use segment::Segment;

pub use judge::{ALIKE, Judgement, Question, Recalled};
pub use turns::Qualities;

/// Most decisions of one account that are kept in memory; the oldest make room.
pub const MAX_DECISIONS_OF_ACCOUNT: usize = 1_000_000;
/// Most decisions of all accounts that are kept in memory; the account with most makes room.
pub const MAX_DECISIONS: usize = 2_000_000;
/// Which part of the decisions of an account makes room at once.
const EVICTED_SHARE: usize = 10;

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
    /// The class that the shipped model gives the texts, where it is more likely than not.
    pub prior: Option<ClassCode>,
    /// The side of a VAT rule on which the texts put the goods within the class.
    pub side: Side,
    /// Words that turn the class.
    pub qualities: Qualities,
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
    id: u64,
    segment: Arc<Segment>,
    gone: Arc<Vec<u64>>,
    live: usize,
}

impl Part {
    fn new(id: u64, decisions: Vec<Decision>) -> Part {
        let live = decisions.len();
        Part { id, segment: Arc::new(Segment::new(decisions)), gone: Arc::new(vec![0; live.div_ceil(64)]), live }
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

    fn living(&self) -> impl Iterator<Item = &Decision> {
        self.segment.decisions.iter().enumerate().filter(|(at, _)| self.holds(*at)).map(|(_, decision)| decision)
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

    /// Calls `visit` with decisions that may resemble a text, and how much each does, 0 to 1.
    fn alike<'a>(&'a self, taxonomy: Taxonomy, words: &[(u32, f32)], mut visit: impl FnMut(&'a Decision, f32)) {
        for part in &self.parts {
            part.segment.alike(words, |at, similarity| {
                let decision = &part.segment.decisions[at];
                if decision.taxonomy == taxonomy && part.holds(at) {
                    visit(decision, similarity);
                }
            });
        }
    }
}

/// Where a decision lies: the segment's number and the place in it.
type Place = (u64, u32);

/// What only the writer knows.
#[derive(Debug, Default)]
struct Writer {
    places: HashMap<i64, HashMap<Uuid, Place>>,
    next_segment: u64,
}

/// What the accounts remember.
#[derive(Debug, Default)]
pub struct Memory {
    accounts: ArcSwap<HashMap<i64, Arc<ArcSwap<Snapshot>>>>,
    writer: Mutex<Writer>,
    /// How far what is stored has been learnt; one follower at a time.
    pub followed: tokio::sync::Mutex<Option<Followed>>,
}

/// How far what is stored has been learnt.
#[derive(Clone, Debug, PartialEq)]
pub struct Followed {
    /// What the database showed then, in its own words.
    pub snapshot: String,
    /// The model that read the texts.
    pub model_version: String,
}

impl Memory {
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
        writer.places.clear();
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
            if let Some((id, at)) = writer.places.entry(account).or_default().remove(&assignment)
                && let Some(part) = snapshot.parts.iter_mut().find(|part| part.id == id)
            {
                part.forget(at as usize);
            }
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
            writer.add(account, &mut snapshot, new);
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

impl Writer {
    /// Adds a segment; the last ones are put into it for as long as they are not much larger, so that there are few.
    fn add(&mut self, account: i64, snapshot: &mut Snapshot, new: Vec<Decision>) {
        let mut decisions = new;
        while let Some(last) = snapshot.parts.pop_if(|last| last.live < 2 * decisions.len()) {
            let mut older: Vec<Decision> = last.living().cloned().collect();
            older.append(&mut decisions);
            decisions = older;
        }
        let part = self.part(account, decisions);
        snapshot.parts.push(part);
    }

    fn part(&mut self, account: i64, decisions: Vec<Decision>) -> Part {
        self.next_segment += 1;
        let places = self.places.entry(account).or_default();
        for (at, decision) in (0..).zip(&decisions) {
            places.insert(decision.assignment, (self.next_segment, at));
        }
        Part::new(self.next_segment, decisions)
    }

    /// Forgets the oldest decisions.
    fn evict(&mut self, account: i64, snapshot: &mut Snapshot, count: usize) {
        let places = self.places.entry(account).or_default();
        let mut left = count;
        for part in &mut snapshot.parts {
            for at in 0..part.segment.decisions.len() {
                if left == 0 {
                    return;
                }
                if part.holds(at) {
                    places.remove(&part.segment.decisions[at].assignment);
                    part.forget(at);
                    left -= 1;
                }
            }
        }
    }

    /// Drops segments of which nothing holds, and writes those anew of which less than half does.
    fn tidy(&mut self, account: i64, snapshot: &mut Snapshot) {
        snapshot.parts.retain(|part| part.live > 0);
        for part in &mut snapshot.parts {
            if 2 * part.live < part.segment.decisions.len() {
                let living = part.living().cloned().collect();
                *part = self.part(account, living);
            }
        }
    }
}

#[cfg(test)]
mod tests;
