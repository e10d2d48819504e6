//! A read-only hash table of 32-bit values in plain bytes, so that it can lie in a memory-mapped file.
//!
//! Keys are 64-bit hashes. A slot is eight bytes: the upper half of the hash as fingerprint, and the value plus one
//! (zero marks an empty slot). The lower half of the hash, scaled to the number of slots, chooses the slot; the next ones
//! follow when it is taken.

/// Bytes of a slot.
const SLOT: usize = 8;

/// Running FNV-1a hash of bytes; [`finish`] makes a key of it.
#[derive(Clone, Copy, Debug)]
pub struct Hash(u64);

impl Hash {
    /// The start of a hash in a space of keys of its own.
    pub const fn space(kind: u8) -> Hash {
        Hash(0xcbf2_9ce4_8422_2325 ^ ((kind as u64) << 56)).bytes_of(&[kind])
    }

    /// The hash with these bytes behind it.
    #[inline]
    pub const fn bytes_of(mut self, bytes: &[u8]) -> Hash {
        let mut at = 0;
        while at < bytes.len() {
            self.0 = (self.0 ^ bytes[at] as u64).wrapping_mul(0x0100_0000_01b3);
            at += 1;
        }
        self
    }

    /// The key: FNV mixes its upper bits poorly, so the finalizer of splitmix64 follows.
    #[inline]
    pub const fn finish(self) -> u64 {
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// A table laid over bytes that [`build`] wrote.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a> {
    slots: &'a [[u8; SLOT]],
}

impl<'a> Table<'a> {
    /// A table without entries.
    pub const EMPTY: Table<'static> = Table { slots: &[[0; SLOT]] };

    /// The table in these bytes, or none when they are no whole number of slots.
    pub fn over(bytes: &'a [u8]) -> Option<Table<'a>> {
        let (slots, rest) = bytes.as_chunks::<SLOT>();
        (rest.is_empty() && !slots.is_empty()).then_some(Table { slots })
    }

    /// The value of a key.
    #[inline]
    pub fn get(&self, key: u64) -> Option<u32> {
        let fingerprint = (key >> 32) as u32;
        let mut at = slot_of(key, self.slots.len());
        // A built table is never full, and a damaged one must not hang us: at most one round.
        for _ in 0..self.slots.len() {
            let [a, b, c, d, e, f, g, h] = self.slots[at];
            let value = u32::from_le_bytes([e, f, g, h]);
            if value == 0 {
                return None;
            }
            if u32::from_le_bytes([a, b, c, d]) == fingerprint {
                return Some(value - 1);
            }
            at = if at + 1 == self.slots.len() { 0 } else { at + 1 };
        }
        None
    }
}

#[inline]
fn slot_of(key: u64, slots: usize) -> usize {
    (((key & 0xffff_ffff) * slots as u64) >> 32) as usize
}

/// The bytes of a table with these entries, whose values must be below `u32::MAX`. Of equal keys the first stays.
pub fn build(entries: impl ExactSizeIterator<Item = (u64, u32)>) -> Vec<u8> {
    // Four fifths full: short searches in few bytes.
    let capacity = entries.len() * 5 / 4 + 2;
    let mut slots = vec![[0u8; SLOT]; capacity];
    for (key, value) in entries {
        let mut at = slot_of(key, capacity);
        while slots[at][4..] != [0; 4] {
            at = (at + 1) % capacity;
        }
        slots[at][..4].copy_from_slice(&((key >> 32) as u32).to_le_bytes());
        slots[at][4..].copy_from_slice(&(value + 1).to_le_bytes());
    }
    slots.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_found_with_its_value_and_no_other() {
        let key = |n: u32| Hash::space(b'W').bytes_of(&n.to_le_bytes()).finish();
        let bytes = build((0..5000u32).map(|n| (key(n), n * 3)));
        let table = Table::over(&bytes).expect("whole slots");
        assert!((0..5000).all(|n| table.get(key(n)) == Some(n * 3)));
        assert!((5000..20_000).all(|n| table.get(key(n)).is_none()));
    }

    #[test]
    fn spaces_keep_equal_bytes_apart() {
        assert_ne!(Hash::space(b'W').bytes_of(b"rose").finish(), Hash::space(b'H').bytes_of(b"rose").finish());
    }
}
