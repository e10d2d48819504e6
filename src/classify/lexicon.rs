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
/// Endings of German plurals and cases, the empty one for those that an umlaut alone marks (`Mäntel`).
const ENDINGS: [&str; 9] = ["n", "e", "s", "en", "es", "nen", "er", "ern", ""];
/// The first of them: the others also make other words (`Lüfter` of `Luft`), so that they count for unknown words only.
const SAFE_ENDINGS: usize = 6;
/// A word that stands in fewer rows is read as the one that it is a form of, where that is so many times as common.
const RARE: u32 = 8;
const MUCH_MORE_COMMON: u32 = 8;
/// Endings that alone may stand where an umlaut is all that marks the plural.
const BARE_PLURALS: [&str; 3] = ["el", "en", "er"];
/// Shortest form that is the plural or another case of a word.
const MIN_INFLECTED: usize = 4;
/// Linking elements between the parts of a German compound; the empty one first.
const LINKS: [&[u8]; 6] = [b"", b"s", b"n", b"en", b"es", b"er"];

const GERMAN: u32 = 1;
const ENGLISH: u32 = 2;
const VAGUE: u32 = 4;
const WANTS_A_GOOD: u32 = 8;
const DESCRIBES: u32 = 16;
const COUNT_SHIFT: u32 = 5;
/// Bytes of a word's entry in the table.
pub const WORD_INFO: usize = 3;
const MAX_COUNT: u32 = (1 << (8 * WORD_INFO as u32 - COUNT_SHIFT)) - 1;

/// What the corpus knows of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct WordInfo {
    /// Stands in German rows.
    pub german: bool,
    /// Stands in English rows.
    pub english: bool,
    /// Is no evidence by itself.
    pub vague: bool,
    /// Tells in what a good comes, or where it is used: alone it names none (`gift box`, `Küche`), beside a good another one.
    pub wants_a_good: bool,
    /// Tells in a description how a good is packed or looks (`per Beutel`, `oliv`). In a name and on a shelf it may be a good.
    pub describes: bool,
    /// In how many rows it stands.
    pub count: u32,
}

impl WordInfo {
    /// The form in which a table keeps it.
    pub fn pack(self) -> u32 {
        let flags = [
            (self.german, GERMAN),
            (self.english, ENGLISH),
            (self.vague, VAGUE),
            (self.wants_a_good, WANTS_A_GOOD),
            (self.describes, DESCRIBES),
        ];
        let flags: u32 = flags.iter().filter(|(set, _)| *set).map(|(_, bit)| bit).sum();
        (self.count.min(MAX_COUNT) << COUNT_SHIFT) | flags
    }

    fn unpack(value: u32) -> WordInfo {
        WordInfo {
            german: value & GERMAN != 0,
            english: value & ENGLISH != 0,
            vague: value & VAGUE != 0,
            wants_a_good: value & WANTS_A_GOOD != 0,
            describes: value & DESCRIBES != 0,
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

/// Words that stand one behind the other, as the lexicon knows shops' own labels.
#[derive(Clone, Copy, Debug)]
pub struct Sequence(Hash);

impl Default for Sequence {
    fn default() -> Self {
        Sequence(Hash::space(b'S'))
    }
}

impl Sequence {
    /// The sequence with this folded word behind it.
    #[inline]
    pub fn and(self, word: &str) -> Sequence {
        Sequence(self.0.bytes_of(word.as_bytes()).bytes_of(b" "))
    }

    /// Its key in the table of words.
    #[inline]
    pub fn key(self) -> u64 {
        self.0.finish()
    }
}

/// The words of the corpus.
#[derive(Clone, Copy, Debug)]
pub struct Lexicon<'a> {
    table: Table<'a, WORD_INFO>,
}

/// A part of a compound: where it begins and ends in the word, without its linking element.
pub type Part = (usize, usize);

impl<'a> Lexicon<'a> {
    /// A lexicon over a table of [`WordInfo::pack`]ed values by [`word_key`].
    pub fn new(table: Table<'a, WORD_INFO>) -> Lexicon<'a> {
        Lexicon { table }
    }

    /// What is known of a folded word.
    #[inline]
    pub fn get(&self, word: &str) -> Option<WordInfo> {
        self.table.get(word_key(word)).map(WordInfo::unpack)
    }

    /// Whether these words are a shop's own label.
    #[inline]
    pub fn is_own_label(&self, words: Sequence) -> bool {
        self.table.get(words.key()).is_some()
    }

    /// The parts of a compound, left to right, the last one its head; none when the word does not fall apart.
    ///
    /// Of several ways the one with fewest parts wins, and among those the one whose rarest part is most common.
    pub fn split(&self, word: &str, parts: &mut Vec<Part>) -> bool {
        parts.clear();
        let Some(best) = self.covers(word).filter(|best| best[word.len()].parts >= 2) else { return false };
        let mut end = word.len();
        while end > 0 {
            parts.push((best[end].from, best[end].part_end));
            end = best[end].from;
        }
        parts.reverse();
        true
    }

    /// The best way to cover a word up to each of its bytes; none when its length or its letters are not those of a compound.
    fn covers(&self, word: &str) -> Option<Covers> {
        let bytes = word.as_bytes();
        if !(MIN_COMPOUND..=MAX_COMPOUND).contains(&bytes.len()) || !word.is_ascii() {
            return None;
        }
        let mut best = [Cover::NONE; MAX_COMPOUND + 1];
        best[0] = Cover { parts: 0, rarest: u32::MAX, from: 0, part_end: 0 };
        for from in 0..=bytes.len() - MIN_PART {
            if best[from].parts as usize >= MAX_PARTS || (from > 0 && best[from].parts == 0) {
                continue;
            }
            self.extend(bytes, from, &mut best);
        }
        Some(best)
    }

    /// Writes an unknown German word anew with its head in the form that the corpus has: `Flurbänke`, which stands nowhere,
    /// is written like `Flurbank`, so that it falls apart or at least ends in a word that is known. False, and nothing
    /// written, when its head is known as it is, or in no form; `info` is what is known of the word.
    ///
    /// A word that is known and rare is read as the one that it is a form of, where that is far more common.
    pub fn basic_form(&self, word: &str, info: Option<WordInfo>, form: &mut String) -> bool {
        if !(MIN_INFLECTED..=MAX_COMPOUND).contains(&word.len()) || !word.is_ascii() {
            return false;
        }
        if let Some(info) = info {
            let may_be_a_form = info.german && !info.vague && info.count < RARE;
            return may_be_a_form && self.base(word, &ENDINGS[..SAFE_ENDINGS], info.count * MUCH_MORE_COMMON, form);
        }
        if self.base(word, &ENDINGS, MIN_PART_COUNT, form) {
            return true;
        }
        let covers = self.covers(word);
        if covers.is_some_and(|covers| covers[word.len()].parts >= 2) {
            return false;
        }
        let tails =
            |first: usize| (first..(word.len() + 1).saturating_sub(MIN_INFLECTED)).map(|from| word.split_at(from));
        let mut write = |least: u32, (before, tail): (&str, &str)| {
            let found = self.base(tail, &ENDINGS, least, form);
            if found {
                form.insert_str(0, before);
            }
            found
        };
        // The longest head, before which all falls apart into known words or is one.
        let is_covered = |before: &str| covers.is_some_and(|covers| covers[before.len()].parts > 0);
        if tails(MIN_PART).filter(|(before, _)| is_covered(before)).any(|split| write(MIN_PART_COUNT, split)) {
            return true;
        }
        // Or else the longest known end of it, in whichever form.
        let end = self.known_end(word).unwrap_or(word.len());
        tails(MIN_BEFORE_END).take_while(|(before, _)| before.len() < end).any(|split| write(MIN_END_COUNT, split))
    }

    /// Writes the German word of which another is the plural or a case, when it stands so often in the corpus.
    fn base(&self, inflected: &str, endings: &[&str], least: u32, base: &mut String) -> bool {
        let is_known =
            |base: &str| self.get(base).is_some_and(|info| info.german && !info.vague && info.count >= least);
        for ending in endings {
            let Some(stem) = inflected.strip_suffix(*ending).filter(|stem| stem.len() >= MIN_PART) else { continue };
            base.clear();
            base.push_str(stem);
            if !ending.is_empty() && is_known(base) {
                return true;
            }
            if (!ending.is_empty() || BARE_PLURALS.iter().any(|plural| stem.ends_with(plural)))
                && without_last_umlaut(base)
                && is_known(base)
            {
                return true;
            }
        }
        base.clear();
        false
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

/// Takes the last umlaut of a folded word back (`baenk` to `bank`); false when it has none. The `ue` of `Quelle`, `Bauer`
/// and `neue` is none.
fn without_last_umlaut(word: &mut String) -> bool {
    let bytes = word.as_bytes();
    let is_umlaut = |at: usize| {
        bytes[at + 1] == b'e'
            && matches!(bytes[at], b'a' | b'o' | b'u')
            && !(bytes[at] == b'u' && at > 0 && matches!(bytes[at - 1], b'a' | b'e' | b'q'))
    };
    let last = (0..bytes.len().saturating_sub(1)).rev().find(|&at| is_umlaut(at));
    last.map(|at| word.remove(at + 1)).is_some()
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
        let words = "damen leder jacke kueche kuechen maschine arbeit schuhe tooth brush schule ranzen";
        let info = WordInfo { german: true, count: 9, ..WordInfo::default() };
        let bytes = table::build::<WORD_INFO>(words.split(' ').map(|word| (word_key(word), info.pack())));
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

    #[test]
    fn an_unknown_plural_is_written_like_the_word_that_is_known() {
        let words =
            ["flur", "bank", "hammer", "axt", "quelle", "bauer", "schuhe", "kueche", "jacke", "mantel", "buch", "mmer"];
        let info = WordInfo { german: true, count: 9, ..WordInfo::default() };
        let bytes = table::build::<WORD_INFO>(words.into_iter().map(|word| (word_key(word), info.pack())));
        let lexicon = Lexicon::new(Table::over(&bytes).expect("table"));
        for (word, expected) in [
            ("baenke", Some("bank")),
            ("flurbaenke", Some("flurbank")),
            ("flurbaenken", Some("flurbank")),
            ("haemmer", Some("hammer")),
            ("klauenhaemmer", Some("klauenhammer")),
            ("aexte", Some("axt")),
            ("buecherflur", None),
            ("notizbuecher", Some("notizbuch")),
            ("wintermaentel", Some("wintermantel")),
            ("kuechen", Some("kueche")),
            ("flurquellen", Some("flurquelle")),
            ("flurjacken", Some("flurjacke")),
            ("flurschuhe", None),
            ("xqwhaemmer", Some("xqwhammer")),
            ("xyz", None),
            ("xqwvbnm", None),
        ] {
            let mut form = String::new();
            let found = lexicon.basic_form(word, lexicon.get(word), &mut form).then_some(form.as_str());
            assert_eq!(found, expected, "{word}");
        }
        for (word, count, expected) in [("baenke", 1, true), ("baenke", 2, false), ("buecher", 1, false)] {
            let mut form = String::new();
            let known = Some(WordInfo { count, ..info });
            assert_eq!(lexicon.basic_form(word, known, &mut form), expected, "{word} in {count} rows");
        }
    }
}
