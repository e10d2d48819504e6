//! Which lines of a file spoke of which product, to find what is there twice, in memory that does not grow with the file:
//! what does not fit into it is kept on the disk.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use sha2::{Digest, Sha256};

use crate::domain::ShopId;
use crate::exchange::Spool;

/// Products that are kept in memory, in about 2 MB.
const IN_MEMORY: usize = 50_000;
/// Slots of the first table on the disk; a power of two.
const FIRST_SLOTS: u64 = 1 << 18;
/// Bytes of a slot: the key, and the line, which is 0 where nothing is kept.
const SLOT_BYTES: usize = KEY_BYTES + 4;
/// Bytes of the digest of shop and id that stand for both.
const KEY_BYTES: usize = 12;

type Key = [u8; KEY_BYTES];

/// Products by the first line that spoke of them.
pub(super) struct Seen {
    spool: Spool,
    in_memory: HashMap<Key, u32>,
    most_in_memory: usize,
    on_disk: Option<Slots>,
}

impl Seen {
    pub(super) fn new(spool: Spool) -> Seen {
        Seen { spool, in_memory: HashMap::new(), most_in_memory: IN_MEMORY, on_disk: None }
    }

    /// The line that spoke of a product before this one; else remembers that this one does. Lines count from 1.
    ///
    /// # Errors
    /// When the disk fails.
    pub(super) fn before(&mut self, shop: ShopId, product_id: &str, line: u64) -> io::Result<Option<u32>> {
        let digest = Sha256::digest(format!("{} {product_id}", shop.stored()));
        let mut key: Key = Key::default();
        key.copy_from_slice(&digest[..KEY_BYTES]);
        let line = u32::try_from(line).unwrap_or(u32::MAX);
        if let Some(first) = self.in_memory.get(&key) {
            return Ok(Some(*first));
        }
        if self.in_memory.len() < self.most_in_memory {
            self.in_memory.insert(key, line);
            return Ok(None);
        }
        let slots = match &mut self.on_disk {
            Some(slots) if !slots.is_half_full() => slots,
            Some(slots) => {
                let larger = slots.doubled(&self.spool)?;
                self.on_disk.insert(larger)
            }
            None => self.on_disk.insert(Slots::new(&self.spool, FIRST_SLOTS)?),
        };
        slots.find_or_keep(&key, line)
    }
}

/// A table of keys in a file without a name: a key lies in the slot that it points at, or in the next free one.
struct Slots {
    file: File,
    slots: u64,
    used: u64,
}

impl Slots {
    fn new(spool: &Spool, slots: u64) -> io::Result<Slots> {
        let file = spool.file()?;
        file.set_len(slots * SLOT_BYTES as u64)?;
        Ok(Slots { file, slots, used: 0 })
    }

    fn is_half_full(&self) -> bool {
        self.used * 2 >= self.slots
    }

    fn slot(&self, at: u64) -> io::Result<(Key, u32)> {
        let mut slot = [0; SLOT_BYTES];
        self.file.read_exact_at(&mut slot, at * SLOT_BYTES as u64)?;
        let (mut key, mut line) = (Key::default(), [0; 4]);
        key.copy_from_slice(&slot[..KEY_BYTES]);
        line.copy_from_slice(&slot[KEY_BYTES..]);
        Ok((key, u32::from_le_bytes(line)))
    }

    fn find_or_keep(&mut self, key: &Key, line: u32) -> io::Result<Option<u32>> {
        // A digest is as good as a random number.
        let mut at = key.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte)) % self.slots;
        loop {
            match self.slot(at)? {
                (_, 0) => break,
                (other, first) if other == *key => return Ok(Some(first)),
                _ => at = (at + 1) % self.slots,
            }
        }
        let mut slot = [0; SLOT_BYTES];
        slot[..KEY_BYTES].copy_from_slice(key);
        slot[KEY_BYTES..].copy_from_slice(&line.to_le_bytes());
        self.file.write_all_at(&slot, at * SLOT_BYTES as u64)?;
        self.used += 1;
        Ok(None)
    }

    fn doubled(&self, spool: &Spool) -> io::Result<Slots> {
        let mut larger = Slots::new(spool, self.slots * 2)?;
        for at in 0..self.slots {
            let (key, line) = self.slot(at)?;
            if line > 0 {
                larger.find_or_keep(&key, line)?;
            }
        }
        Ok(larger)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_each_product_is_known_in_memory_and_on_the_disk() {
        let directory = tempfile::tempdir().expect("a directory");
        let spool = Spool::new(directory.path());
        let mut seen = Seen::new(spool.clone());
        seen.most_in_memory = 10;
        // Small enough to be doubled several times.
        seen.on_disk = Some(Slots::new(&spool, 4).expect("a table"));
        for round in 0..2 {
            for number in 0..1_000_u32 {
                let line = u64::from(round * 1_000 + number + 2);
                let before = seen.before(ShopId::GLOBAL, &format!("p{number}"), line).expect("known");
                assert_eq!(before, (round == 1).then_some(number + 2), "{number}");
            }
        }
        let of_shop = seen.before(ShopId::local(7).expect("a shop"), "p1", 9_999).expect("known");
        assert_eq!(of_shop, None, "a local product is another one");
        assert_eq!(seen.in_memory.len(), 10);
    }
}
