//! Finds classes by words of their labels, German and English alike.

use unicode_normalization::UnicodeNormalization;

use super::{Labels, Nomenclature};
use crate::domain::ClassCode;

/// A class that a search found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit<'a> {
    /// The class.
    pub code: ClassCode,
    /// Its labels.
    pub labels: Labels<'a>,
    /// How many words of the query are whole words of the label; the others are parts of words.
    pub whole_words: usize,
}

impl Nomenclature {
    /// Classes whose labels hold every word of the query, or whose code begins with it when it is digits; at or below
    /// `under` where given. Whole words come before parts of words, then shorter codes, then the order of codes.
    pub fn search(&self, query: &str, under: Option<ClassCode>, limit: usize) -> Vec<Hit<'_>> {
        let range = match under {
            None => 0..self.lines.len(),
            Some(code) => match self.index_of(code) {
                Some(index) => index..self.lines[index].end as usize,
                None => return Vec::new(),
            },
        };
        let digits: String = query.chars().filter(|c| !c.is_whitespace() && *c != '.').collect();
        let by_code = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        let words: Vec<String> = fold(query).split_whitespace().map(str::to_owned).collect();
        if words.is_empty() {
            return Vec::new();
        }
        let mut hits: Vec<Hit<'_>> = range
            .filter_map(|index| {
                let line = &self.lines[index];
                let whole_words = if by_code {
                    line.code.as_str().starts_with(&digits).then_some(0)?
                } else {
                    matches(self.folded_at(index), &words)?
                };
                Some(Hit { code: line.code, labels: self.labels_at(index), whole_words })
            })
            .collect();
        hits.sort_by_key(|hit| (std::cmp::Reverse(hit.whole_words), hit.code.digits(), hit.code));
        hits.truncate(limit);
        hits
    }

    fn folded_at(&self, index: usize) -> &str {
        let start = if index == 0 { 0 } else { self.folded_ends[index - 1] };
        &self.folded[start as usize..self.folded_ends[index] as usize]
    }
}

/// How many of the words are whole words of the text, when it holds all of them.
fn matches(text: &str, words: &[String]) -> Option<usize> {
    if !words.iter().all(|word| text.contains(word.as_str())) {
        return None;
    }
    let whole = |word: &&String| text.split(|c: char| !c.is_alphanumeric()).any(|known| known == word.as_str());
    Some(words.iter().filter(whole).count())
}

/// Lower case, with umlauts and ß written out, so that `Äpfel`, `aepfel` and `ÄPFEL` are the same.
pub(super) fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for c in text.nfc().flat_map(char::to_lowercase) {
        match c {
            'ä' => folded.push_str("ae"),
            'ö' => folded.push_str("oe"),
            'ü' => folded.push_str("ue"),
            'ß' => folded.push_str("ss"),
            c => folded.push(c),
        }
    }
    folded
}
