//! Read-only tables by 64-bit hashes in plain bytes, so that they can be used where they lie in the model file.
//!
//! The keys stand in rising order. Their upper bits choose a bucket, of which it is known where it begins; of each key the
//! next [`KEY`] bytes are kept, which is searched from the front: four to eight keys a bucket, next to each other in memory.
//! A key that is not there is taken for another in fewer than one of two million cases.
//!
//! | bytes | content |
//! |---|---|
//! | 4 | number of keys |
//! | 4 each | place of the first key of every bucket, and the number of keys |
//! | 3 each | keys, without the bits of their bucket |
//! | `WIDTH` each | values, in a [`Table`] |

/// Bytes that are kept of a key.
const KEY: usize = 3;
/// Keys in a bucket, at least and on average, where there are so many; fewer than twice as many.
const MIN_BUCKET: usize = 4;
/// Most bits that choose a bucket.
const MAX_BITS: u32 = 24;

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

/// Keys laid over bytes that [`build_keys`] wrote.
#[derive(Clone, Copy, Debug)]
pub struct Keys<'a> {
    bits: u32,
    starts: &'a [[u8; 4]],
    keys: &'a [[u8; KEY]],
}

impl<'a> Keys<'a> {
    /// No keys at all.
    pub const EMPTY: Keys<'static> = Keys { bits: 1, starts: &[[0; 4]; 3], keys: &[] };

    /// The keys in these bytes, or none when they are too short or too long.
    pub fn over(bytes: &'a [u8]) -> Option<Keys<'a>> {
        Keys::split(bytes).filter(|(_, rest)| rest.is_empty()).map(|(keys, _)| keys)
    }

    /// The keys at the beginning of these bytes, and the bytes behind them.
    fn split(bytes: &'a [u8]) -> Option<(Keys<'a>, &'a [u8])> {
        let (count, bytes) = bytes.split_first_chunk::<4>()?;
        let count = u32::from_le_bytes(*count) as usize;
        let bits = bits_for(count);
        let (starts, bytes) = bytes.split_at_checked(4 * ((1 << bits) + 1))?;
        let (keys, rest) = bytes.split_at_checked(KEY * count)?;
        Some((Keys { bits, starts: starts.as_chunks().0, keys: keys.as_chunks().0 }, rest))
    }

    /// The place of a key in the order of keys.
    #[inline]
    pub fn place(&self, key: u64) -> Option<u32> {
        let bucket = (key >> (64 - self.bits)) as usize;
        let start = |at: usize| self.starts.get(at).map(|start| u32::from_le_bytes(*start) as usize);
        let first = start(bucket)?;
        let wanted = rest_of(key, self.bits);
        for (at, &[a, b, c]) in self.keys.get(first..start(bucket + 1)?)?.iter().enumerate() {
            let key = u32::from_le_bytes([a, b, c, 0]);
            if key >= wanted {
                return (key == wanted).then_some((first + at) as u32);
            }
        }
        None
    }

    /// How many keys there are.
    pub fn count(&self) -> usize {
        self.keys.len()
    }
}

/// How many bits of a key choose its bucket.
fn bits_for(count: usize) -> u32 {
    (count / MIN_BUCKET).max(2).ilog2().min(MAX_BITS)
}

/// What is kept of a key: the bits behind those of its bucket.
#[inline]
fn rest_of(key: u64, bits: u32) -> u32 {
    (key >> (64 - 8 * KEY as u32 - bits)) as u32 & 0xff_ffff
}

/// The bytes of keys that are in rising order.
pub fn build_keys(keys: impl ExactSizeIterator<Item = u64> + Clone) -> Vec<u8> {
    let count = keys.len();
    let bits = bits_for(count);
    let mut starts = vec![0u32; (1 << bits) + 1];
    keys.clone().for_each(|key| starts[(key >> (64 - bits)) as usize + 1] += 1);
    for bucket in 1..starts.len() {
        starts[bucket] += starts[bucket - 1];
    }
    let mut bytes = (count as u32).to_le_bytes().to_vec();
    bytes.extend(starts.iter().flat_map(|start| start.to_le_bytes()));
    bytes.extend(keys.flat_map(|key| rest_of(key, bits).to_le_bytes().into_iter().take(KEY)));
    bytes
}

/// Keys with a value of `WIDTH` bytes each, laid over bytes that [`build`] wrote.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a, const WIDTH: usize> {
    keys: Keys<'a>,
    values: &'a [[u8; WIDTH]],
}

impl<'a, const WIDTH: usize> Table<'a, WIDTH> {
    /// A table without entries.
    pub const EMPTY: Table<'static, WIDTH> = Table { keys: Keys::EMPTY, values: &[] };

    /// The table in these bytes, or none when they are too short or too long.
    pub fn over(bytes: &'a [u8]) -> Option<Table<'a, WIDTH>> {
        let (keys, values) = Keys::split(bytes)?;
        let (values, rest) = values.as_chunks();
        (rest.is_empty() && values.len() == keys.count()).then_some(Table { keys, values })
    }

    /// The value of a key.
    #[inline]
    pub fn get(&self, key: u64) -> Option<u32> {
        let value = self.values.get(self.keys.place(key)? as usize)?;
        Some(value.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte)))
    }
}

/// The bytes of a table with these entries, in any order, whose values must fit in `WIDTH` bytes. Of equal keys the first
/// is found.
pub fn build<const WIDTH: usize>(entries: impl IntoIterator<Item = (u64, u32)>) -> Vec<u8> {
    let mut entries: Vec<(u64, u32)> = entries.into_iter().collect();
    entries.sort_by_key(|(key, _)| *key);
    let mut bytes = build_keys(entries.iter().map(|(key, _)| *key));
    bytes.extend(entries.iter().flat_map(|(_, value)| value.to_le_bytes().into_iter().take(WIDTH)));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u32) -> u64 {
        Hash::space(b'W').bytes_of(&n.to_le_bytes()).finish()
    }

    #[test]
    fn every_key_is_found_with_its_value_and_no_other() {
        for count in [0, 1, 2, 3, 7, 8, 9, 100, 5000] {
            let bytes = build::<3>((0..count).map(|n| (key(n), n * 3)));
            let table = Table::<3>::over(&bytes).expect("a table");
            assert!((0..count).all(|n| table.get(key(n)) == Some(n * 3)), "{count}");
            assert!((count..20_000).all(|n| table.get(key(n)).is_none()), "{count}");
            assert_eq!((Table::<3>::EMPTY.get(key(0)), Table::<3>::EMPTY.get(u64::MAX)), (None, None));
        }
    }

    #[test]
    fn a_key_has_its_place_in_their_order() {
        let mut keys: Vec<u64> = (0..1000).map(key).chain([0, u64::MAX]).collect();
        keys.sort_unstable();
        let bytes = build_keys(keys.iter().copied());
        let found = Keys::over(&bytes).expect("keys");
        assert!(keys.iter().zip(0..).all(|(key, place)| found.place(*key) == Some(place)));
        assert_eq!(found.count(), keys.len());
    }

    #[test]
    fn of_equal_keys_the_first_is_found() {
        let bytes = build::<2>([(key(7), 1), (key(8), 5), (key(7), 2)]);
        assert_eq!(Table::<2>::over(&bytes).expect("a table").get(key(7)), Some(1));
    }

    #[test]
    fn bytes_of_another_length_are_no_table_and_damaged_ones_do_no_harm() {
        let bytes = build::<2>((0..50).map(|n| (key(n), n)));
        assert!(Table::<2>::over(&bytes[..bytes.len() - 1]).is_none());
        assert!(Table::<3>::over(&bytes).is_none());
        assert!(Keys::over(&bytes).is_none());
        assert!((0..4).all(|len| Keys::over(&bytes[..len]).is_none()));
        let mut damaged = bytes.clone();
        damaged[4..40].fill(0xff);
        let table = Table::<2>::over(&damaged).expect("lengths are as they were");
        assert!((0..50).all(|n| table.get(key(n)).is_none_or(|value| value < 50)));
    }

    #[test]
    fn spaces_keep_equal_bytes_apart() {
        assert_ne!(Hash::space(b'W').bytes_of(b"rose").finish(), Hash::space(b'H').bytes_of(b"rose").finish());
    }
}
