//! The words of the corpus: which language they belong to, how common they are, and how compounds fall apart.

use super::table::{Hash, Table};

/// Shortest part of a compound, in bytes of the folded form.
const MIN_PART: usize = 3;
/// Shortest word that is looked at as a compound.
const MIN_COMPOUND: usize = 7;
/// Longest word that is looked at as a compound.
const MAX_COMPOUND: usize = 64;
/// Most parts of a compound.
const MAX_PARTS: usize = 4;
/// How often a part must stand alone in the corpus; rarer ones split words by accident.
const MIN_PART_COUNT: u32 = 2;
/// A three-letter part must be a common word.
const MIN_SHORT_PART_COUNT: u32 = 20;
/// Shortest part that may have lost its last "e" in a compound, as in `Schulranzen` of `Schule`.
const MIN_ELIDED_PART: usize = 4;
/// How often the whole word must stand alone for such a part to count.
const MIN_ELIDED_COUNT: u32 = 4;
/// Shortest end of an unknown word that is read as its head, and letters that must stand before it.
const MIN_KNOWN_END: usize = 4;
const MIN_BEFORE_END: usize = 3;
/// How often that end must stand alone in the corpus.
const MIN_END_COUNT: u32 = 5;
/// Linking elements between the parts of a German compound; the empty one first.
const LINKS: [&[u8]; 6] = [b"", b"s", b"n", b"en", b"es", b"er"];

const GERMAN: u32 = 1;
const ENGLISH: u32 = 2;
const VAGUE: u32 = 4;
const COUNT_SHIFT: u32 = 3;
const MAX_COUNT: u32 = (1 << 20) - 1;

/// What the corpus knows of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct WordInfo {
    /// Stands in German rows.
    pub german: bool,
    /// Stands in English rows.
    pub english: bool,
    /// Is no evidence by itself.
    pub vague: bool,
    /// In how many rows it stands.
    pub count: u32,
}

impl WordInfo {
    /// The form in which a table keeps it.
    pub fn pack(self) -> u32 {
        let flags = [(self.german, GERMAN), (self.english, ENGLISH), (self.vague, VAGUE)];
        let flags: u32 = flags.iter().filter(|(set, _)| *set).map(|(_, bit)| bit).sum();
        (self.count.min(MAX_COUNT) << COUNT_SHIFT) | flags
    }

    fn unpack(value: u32) -> WordInfo {
        WordInfo {
            german: value & GERMAN != 0,
            english: value & ENGLISH != 0,
            vague: value & VAGUE != 0,
            count: value >> COUNT_SHIFT,
        }
    }
}

/// The key of a folded word.
pub fn word_key(word: &str) -> u64 {
    start().bytes_of(word.as_bytes()).finish()
}

const fn start() -> Hash {
    Hash::space(b'L')
}

/// The words of the corpus.
#[derive(Clone, Copy, Debug)]
pub struct Lexicon<'a> {
    table: Table<'a>,
}

/// A part of a compound: where it begins and ends in the word, without its linking element.
pub type Part = (usize, usize);

impl<'a> Lexicon<'a> {
    /// A lexicon over a table of [`WordInfo::pack`]ed values by [`word_key`].
    pub fn new(table: Table<'a>) -> Lexicon<'a> {
        Lexicon { table }
    }

    /// What is known of a folded word.
    #[inline]
    pub fn get(&self, word: &str) -> Option<WordInfo> {
        self.table.get(word_key(word)).map(WordInfo::unpack)
    }

    /// The parts of a compound, left to right, the last one its head; none when the word does not fall apart.
    ///
    /// Of several ways the one with fewest parts wins, and among those the one whose rarest part is most common.
    pub fn split(&self, word: &str, parts: &mut Vec<Part>) -> bool {
        parts.clear();
        let bytes = word.as_bytes();
        if !(MIN_COMPOUND..=MAX_COMPOUND).contains(&bytes.len()) || !word.is_ascii() {
            return false;
        }
        // best[end] is the best way to cover the word up to `end`.
        let mut best = [Cover::NONE; MAX_COMPOUND + 1];
        best[0] = Cover { parts: 0, rarest: u32::MAX, from: 0, part_end: 0 };
        for from in 0..=bytes.len() - MIN_PART {
            if best[from].parts as usize >= MAX_PARTS || (from > 0 && best[from].parts == 0) {
                continue;
            }
            self.extend(bytes, from, &mut best);
        }
        if best[bytes.len()].parts < 2 {
            return false;
        }
        let mut end = bytes.len();
        while end > 0 {
            parts.push((best[end].from, best[end].part_end));
            end = best[end].from;
        }
        parts.reverse();
        true
    }

    /// Tries every part that begins at `from`, with every linking element behind it.
    fn extend(&self, bytes: &[u8], from: usize, best: &mut Covers) {
        let mut hash = start();
        for end in from + 1..=bytes.len() {
            hash = hash.bytes_of(&bytes[end - 1..end]);
            if end - from < MIN_PART || end - from == bytes.len() {
                continue;
            }
            let Some(count) = self.part_count(hash, end - from) else { continue };
            for link in LINKS {
                let rest = end + link.len();
                let is_end = end == bytes.len();
                if (!link.is_empty() && (is_end || rest + MIN_PART > bytes.len())) || !bytes[end..].starts_with(link) {
                    continue;
                }
                let cover = Cover {
                    parts: best[from].parts + 1,
                    // A linking element is a little less likely than none.
                    rarest: best[from].rarest.min(if link.is_empty() { count } else { count.div_ceil(2) }),
                    from,
                    part_end: end,
                };
                if cover.beats(&best[rest]) {
                    best[rest] = cover;
                }
            }
        }
    }

    fn part_count(&self, hash: Hash, len: usize) -> Option<u32> {
        let Some(info) = self.table.get(hash.finish()).map(WordInfo::unpack) else {
            return self.elided_count(hash, len);
        };
        let enough = if len == MIN_PART { MIN_SHORT_PART_COUNT } else { MIN_PART_COUNT };
        (info.count >= enough).then_some(info.count)
    }

    /// Count of a German word that is the part with an "e" behind it; halved, since it is a little less likely.
    fn elided_count(&self, part: Hash, len: usize) -> Option<u32> {
        if len < MIN_ELIDED_PART {
            return None;
        }
        let info = WordInfo::unpack(self.table.get(part.bytes_of(b"e").finish())?);
        (info.german && info.count >= MIN_ELIDED_COUNT).then_some(info.count.div_ceil(2))
    }

    /// Where the longest known end of an unknown folded word begins: `Xyloschrank` is a `schrank` at least.
    pub fn known_end(&self, word: &str) -> Option<usize> {
        let last = word.len().checked_sub(MIN_KNOWN_END).filter(|_| word.is_ascii())?;
        (MIN_BEFORE_END..=last)
            .find(|&from| self.get(&word[from..]).is_some_and(|info| info.count >= MIN_END_COUNT && !info.vague))
    }
}

/// The best cover up to each byte.
type Covers = [Cover; MAX_COMPOUND + 1];

/// A way to cover a word from its beginning.
#[derive(Clone, Copy)]
struct Cover {
    parts: u8,
    rarest: u32,
    from: usize,
    part_end: usize,
}

impl Cover {
    const NONE: Cover = Cover { parts: 0, rarest: 0, from: 0, part_end: 0 };

    fn beats(&self, other: &Cover) -> bool {
        other.parts == 0 || self.parts < other.parts || (self.parts == other.parts && self.rarest > other.rarest)
    }
}

#[cfg(test)]
mod tests {
    use super::super::table;
    use super::*;

    #[test]
    fn compounds_fall_into_known_parts_with_the_head_last() {
        let words = [
            "damen", "leder", "jacke", "kueche", "kuechen", "maschine", "arbeit", "schuhe", "tooth", "brush", "schule",
            "ranzen",
        ];
        let info = WordInfo { german: true, count: 9, ..WordInfo::default() };
        let entries: Vec<(u64, u32)> = words.iter().map(|word| (word_key(word), info.pack())).collect();
        let bytes = table::build(entries.into_iter());
        let lexicon = Lexicon::new(Table::over(&bytes).expect("table"));
        for (word, expected) in [
            ("damenlederjacke", "damen leder jacke"),
            ("kuechenmaschine", "kuechen maschine"),
            ("arbeitsschuhe", "arbeit schuhe"),
            ("toothbrush", "tooth brush"),
            ("schulranzen", "schul ranzen"),
            ("maschine", ""),
            ("lederxyz", ""),
        ] {
            let mut parts = Vec::new();
            lexicon.split(word, &mut parts);
            let found: Vec<&str> = parts.iter().map(|&(from, end)| &word[from..end]).collect();
            assert_eq!(found.join(" "), expected, "{word}");
        }
        for (word, expected) in [("xqlederjacke", Some("jacke")), ("xyzmaschine", Some("maschine")), ("xjacke", None)] {
            assert_eq!(lexicon.known_end(word).map(|from| &word[from..]), expected, "{word}");
        }
    }
}
