//! Unknown words that are known ones misspelt, cut short, or written without vowels ("schwraz", "trouse", "shmpoo").
//!
//! A table leads from spellings of known words to features. A word is found by one letter missing, added, changed or
//! swapped behind the first (both sides drop one letter), by its beginning, or by its consonants. What remains unknown is
//! read by its character n-grams.

use super::table::Hash;

/// Fewest letters of a word in which one may be wrong.
const MIN_TYPO: usize = 5;
/// Most letters of a word that is found by spelling; longer ones have too many spellings.
const MAX_LETTERS: usize = 20;
/// Fewest letters by which a beginning stands for a word.
const MIN_PREFIX: usize = 4;
/// Fewest consonants that stand for a word.
const MIN_CONSONANTS: usize = 3;

const SPACE_GRAM: Hash = Hash::space(b'G');
const SPACE_TYPO: Hash = Hash::space(b'D');
const SPACE_PREFIX: Hash = Hash::space(b'P');
const SPACE_CONSONANTS: Hash = Hash::space(b'S');

/// Letters of a character n-gram, the marks of a word's beginning and end included.
const GRAM: usize = 5;
/// Longest word whose n-grams are taken.
const MAX_GRAM_WORD: usize = 40;

/// Visits the keys of the character n-grams of a folded word, by which an unknown word resembles known ones.
pub fn grams(word: &str, mut visit: impl FnMut(u64)) {
    let letters = word.as_bytes();
    if letters.len() + 2 < GRAM || letters.len() > MAX_GRAM_WORD || !word.is_ascii() {
        return;
    }
    let mut marked = [b'<'; MAX_GRAM_WORD + 2];
    marked[1..=letters.len()].copy_from_slice(letters);
    marked[letters.len() + 1] = b'>';
    for gram in marked[..letters.len() + 2].windows(GRAM) {
        visit(SPACE_GRAM.bytes_of(gram).finish());
    }
}

/// How an unknown word resembles a known one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Likeness {
    /// One letter is wrong.
    Typo,
    /// It is the beginning.
    Prefix,
    /// It has the consonants.
    Consonants,
}

impl Likeness {
    /// Weight of the known word's feature beside one that is spelt well.
    pub fn weight(self) -> f32 {
        match self {
            Likeness::Typo => 0.7,
            Likeness::Prefix | Likeness::Consonants => 0.5,
        }
    }
}

/// Visits the keys under which a known folded word is to be found.
pub fn spellings(word: &str, mut visit: impl FnMut(Likeness, u64)) {
    let letters = word.as_bytes();
    if !is_plain(letters) {
        return;
    }
    typo_keys(letters, |key| visit(Likeness::Typo, key));
    for end in MIN_PREFIX..letters.len().saturating_sub(1) {
        visit(Likeness::Prefix, SPACE_PREFIX.bytes_of(&letters[..end]).finish());
    }
    if let Some(key) = consonants_key(letters) {
        visit(Likeness::Consonants, key);
    }
}

/// The first value that `find` has for a key of an unknown folded word, and how the word resembles the known one.
pub fn find<T>(word: &str, mut find: impl FnMut(u64) -> Option<T>) -> Option<(Likeness, T)> {
    let letters = word.as_bytes();
    if !is_plain(letters) {
        return None;
    }
    let mut found = None;
    typo_keys(letters, |key| {
        if found.is_none() {
            found = find(key).map(|value| (Likeness::Typo, value));
        }
    });
    if found.is_none() && letters.len() >= MIN_PREFIX {
        found = find(SPACE_PREFIX.bytes_of(letters).finish()).map(|value| (Likeness::Prefix, value));
    }
    let few_vowels = letters.iter().filter(|&&letter| is_vowel(letter)).count() <= 1;
    if found.is_none() && few_vowels {
        let value = consonants_key(letters).and_then(find);
        found = value.map(|value| (Likeness::Consonants, value));
    }
    found
}

fn is_plain(letters: &[u8]) -> bool {
    (MIN_CONSONANTS..=MAX_LETTERS).contains(&letters.len()) && letters.iter().all(u8::is_ascii_lowercase)
}

/// The word itself, and the word without each of its letters but the first.
fn typo_keys(letters: &[u8], mut visit: impl FnMut(u64)) {
    if letters.len() < MIN_TYPO {
        return;
    }
    visit(SPACE_TYPO.bytes_of(letters).finish());
    for at in 1..letters.len() {
        // Of doubled letters the first says it all.
        if letters[at] != letters[at - 1] {
            visit(SPACE_TYPO.bytes_of(&letters[..at]).bytes_of(&letters[at + 1..]).finish());
        }
    }
}

/// First letter and consonants, doubled ones once; none when there are too few.
fn consonants_key(letters: &[u8]) -> Option<u64> {
    let mut kept = [0u8; MAX_LETTERS];
    let mut count = 0;
    for (at, &letter) in letters.iter().enumerate() {
        let repeats = count > 0 && kept[count - 1] == letter;
        if (at == 0 || !is_vowel(letter)) && !repeats {
            kept[count] = letter;
            count += 1;
        }
    }
    (count >= MIN_CONSONANTS).then(|| SPACE_CONSONANTS.bytes_of(&kept[..count]).finish())
}

fn is_vowel(letter: u8) -> bool {
    matches!(letter, b'a' | b'e' | b'i' | b'o' | b'u')
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn misspelt_cut_and_vowelless_words_are_found() {
        let mut table = HashMap::new();
        for known in ["schwarz", "trousers", "shampoo", "protect"] {
            spellings(known, |_, key| {
                table.entry(key).or_insert(known);
            });
        }
        for (word, expected) in [
            ("schwraz", Some((Likeness::Typo, "schwarz"))),
            ("schwarzz", Some((Likeness::Typo, "schwarz"))),
            ("schwaz", Some((Likeness::Typo, "schwarz"))),
            ("trouse", Some((Likeness::Prefix, "trousers"))),
            ("prtct", Some((Likeness::Consonants, "protect"))),
            ("shmp", Some((Likeness::Consonants, "shampoo"))),
            ("xqzvk", None),
            ("tr", None),
        ] {
            assert_eq!(find(word, |key| table.get(&key).copied()), expected, "{word}");
        }
    }
}
