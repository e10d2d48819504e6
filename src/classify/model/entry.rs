//! What the file says of each feature: where its postings begin, its rarity, and the scale of its weights.

/// Bytes of a feature's entry: postings between the beginning of its block and its first one (2), rarity as a level of
/// [`RARITIES`] (1), scale as a level of [`SCALES`] (1).
pub const FEATURE_ENTRY: usize = 4;
/// Features of a block.
pub const FEATURE_BLOCK: usize = 32;

/// Rarities that can be told apart: 2 % lie between two levels.
static RARITIES: [f32; 256] = levels(0.05, 1.02);
/// Scales that can be told apart: 4 % lie between two levels. Level 0 is that of a feature without weights.
static SCALES: [f32; 256] = levels(1e-4, 1.04);

/// Zero, then levels from the lowest on, each so many times as high as the one before.
const fn levels(lowest: f32, ratio: f32) -> [f32; 256] {
    let mut levels = [0.0; 256];
    let (mut at, mut level) = (1, lowest);
    while at < levels.len() {
        levels[at] = level;
        level *= ratio;
        at += 1;
    }
    levels
}

/// The lowest level that is not below a value; the highest when all are.
fn level_for(levels: &[f32; 256], value: f32) -> u8 {
    levels.partition_point(|level| *level < value).min(255) as u8
}

/// The nearest scale that is not below this one, by which weights are to be divided.
pub fn scale_of(scale: f32) -> f32 {
    SCALES[usize::from(level_for(&SCALES, scale))]
}

/// Entries and beginnings of blocks, feature by feature.
#[derive(Default)]
pub struct Entries {
    entries: Vec<u8>,
    blocks: Vec<u8>,
    block: usize,
}

impl Entries {
    /// Adds a feature with its rarity and the scale of its weights, whose first posting has this place; none when its block
    /// has more postings than two bytes can count.
    pub fn add(&mut self, posting: usize, rarity: f32, scale: f32) -> Option<()> {
        if self.entries.len().is_multiple_of(FEATURE_BLOCK * FEATURE_ENTRY) {
            self.block = posting;
            self.blocks.extend_from_slice(&(posting as u32).to_le_bytes());
        }
        self.entries.extend_from_slice(&u16::try_from(posting - self.block).ok()?.to_le_bytes());
        self.entries.extend_from_slice(&[level_for(&RARITIES, rarity), level_for(&SCALES, scale)]);
        Some(())
    }

    /// The sections of entries and of blocks; an entry without a feature ends the postings of the last one.
    pub fn finish(mut self, postings: usize) -> Option<(Vec<u8>, Vec<u8>)> {
        self.add(postings, 0.0, 0.0)?;
        Some((self.entries, self.blocks))
    }
}

/// What is known of a feature.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FeatureEntry {
    pub(crate) first: usize,
    pub(crate) end: usize,
    /// Inverse frequency over headings.
    pub(crate) rarity: f32,
    /// Weight of one step of a posting's weight.
    pub(crate) scale: f32,
}

impl FeatureEntry {
    /// The entry of a feature; one without postings when there is no such feature.
    #[inline]
    pub(super) fn read(entries: &[[u8; FEATURE_ENTRY]], blocks: &[[u8; 4]], id: usize) -> FeatureEntry {
        let first_of = |id: usize| match (entries.get(id), blocks.get(id / FEATURE_BLOCK)) {
            (Some(&[low, high, ..]), Some(block)) => {
                u32::from_le_bytes(*block) as usize + usize::from(u16::from_le_bytes([low, high]))
            }
            _ => 0,
        };
        let [.., rarity, scale] = entries.get(id).copied().unwrap_or_default();
        FeatureEntry {
            first: first_of(id),
            end: first_of(id + 1),
            rarity: RARITIES[usize::from(rarity)],
            scale: SCALES[usize::from(scale)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_as_they_were_written() {
        let mut entries = Entries::default();
        let features: Vec<(usize, f32, f32)> =
            (0..100).map(|id| (id * 1500, 0.07 + id as f32 * 0.066, id as f32 * 0.003)).collect();
        for &(posting, rarity, scale) in &features {
            entries.add(posting, rarity, scale).expect("room");
        }
        let (entries, blocks) = entries.finish(150_000).expect("room");
        let read = |id| FeatureEntry::read(entries.as_chunks().0, blocks.as_chunks().0, id);
        for (id, &(posting, rarity, scale)) in features.iter().enumerate() {
            let entry = read(id);
            assert_eq!((entry.first, entry.end), (posting, posting + 1500));
            assert!((1.0..1.021).contains(&(entry.rarity / rarity)), "{rarity} is read as {}", entry.rarity);
            assert_eq!(entry.scale, scale_of(scale));
            let fits = if scale == 0.0 { entry.scale == 0.0 } else { (1.0..1.041).contains(&(entry.scale / scale)) };
            assert!(fits, "{scale} is read as {}", entry.scale);
        }
        let beyond = read(100);
        assert_eq!(beyond.first, 150_000);
        assert!(beyond.end <= beyond.first);
        assert!(Entries::default().finish(70_000).is_some());
        let mut full = Entries::default();
        full.add(0, 1.0, 1.0).expect("room");
        assert!(full.finish(70_000).is_none());
    }
}
