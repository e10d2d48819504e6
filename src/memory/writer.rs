//! How what an account remembers changes: new decisions make a small segment, and small segments are put together.

use std::collections::HashMap;

use uuid::Uuid;

use super::segment::Segment;
use super::{Decision, Part, Snapshot};

/// Where a decision lies: the segment's number and the place in it.
type Place = (u32, u32);

/// What only the writer knows.
#[derive(Debug, Default)]
pub(super) struct Writer {
    /// By the random half of the assignment's id: that takes half the memory, and what is found is compared with the whole.
    places: HashMap<i64, HashMap<u64, Place>>,
    next_segment: u32,
}

/// The half of an id that is random in every version of it.
fn key(assignment: Uuid) -> u64 {
    assignment.as_u128() as u64
}

impl Writer {
    /// Forgets where everything lies.
    pub(super) fn clear(&mut self) {
        self.places.clear();
    }

    /// How many decisions of an account have a place.
    #[cfg(test)]
    pub(super) fn len(&self, account: i64) -> usize {
        self.places.get(&account).map_or(0, HashMap::len)
    }

    /// Forgets what was decided about an assignment.
    pub(super) fn forget(&mut self, account: i64, snapshot: &mut Snapshot, assignment: Uuid) {
        if let Some((id, at)) = self.places.entry(account).or_default().remove(&key(assignment))
            && let Some(part) = snapshot.parts.iter_mut().find(|part| part.id == id)
            && part.segment.known(at as usize).fact.assignment == assignment
        {
            part.forget(at as usize);
        }
    }

    /// Adds a segment; the last ones are put into it for as long as they are not much larger, so that there are few.
    pub(super) fn add(&mut self, account: i64, snapshot: &mut Snapshot, new: &[Decision]) {
        let mut count = new.len();
        let mut from = snapshot.parts.len();
        while from > 0 && snapshot.parts[from - 1].live < 2 * count {
            from -= 1;
            count += snapshot.parts[from].live;
        }
        let older = snapshot.parts.split_off(from);
        let segment = Segment::new(older.iter().flat_map(Part::living), new);
        snapshot.parts.push(self.part(account, segment));
    }

    fn part(&mut self, account: i64, segment: Segment) -> Part {
        self.next_segment += 1;
        let places = self.places.entry(account).or_default();
        for at in 0..segment.len() {
            places.insert(key(segment.known(at).fact.assignment), (self.next_segment, at as u32));
        }
        Part::new(self.next_segment, segment)
    }

    /// Forgets the oldest decisions.
    pub(super) fn evict(&mut self, account: i64, snapshot: &mut Snapshot, count: usize) {
        let places = self.places.entry(account).or_default();
        let mut left = count;
        for part in &mut snapshot.parts {
            for at in 0..part.segment.len() {
                if left == 0 {
                    return;
                }
                if part.holds(at) {
                    places.remove(&key(part.segment.known(at).fact.assignment));
                    part.forget(at);
                    left -= 1;
                }
            }
        }
    }

    /// Drops segments of which nothing holds, and writes those anew of which less than half does.
    pub(super) fn tidy(&mut self, account: i64, snapshot: &mut Snapshot) {
        snapshot.parts.retain(|part| part.live > 0);
        for part in &mut snapshot.parts {
            if 2 * part.live < part.segment.len() {
                let living = Segment::new(part.living(), &[]);
                *part = self.part(account, living);
            }
        }
    }
}
