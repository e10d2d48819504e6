//! How texts and values are made comparable: NFKC, then case folded per character; and what a word is.

use std::borrow::Cow;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfkc_quick};
use unicode_segmentation::UnicodeSegmentation;

/// A text in NFKC.
pub fn nfkc(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || is_nfkc_quick(text.chars()) == IsNormalized::Yes {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(text.nfkc().collect())
    }
}

/// A text with every character folded by itself, so that the number of characters stays.
pub fn fold(text: &str) -> String {
    if text.is_ascii() { text.to_ascii_lowercase() } else { text.chars().map(fold_character).collect() }
}

/// A text in NFKC and folded: what matching compares.
pub fn normalise(text: &str) -> String {
    fold(&nfkc(text))
}

/// The words of a text that is in NFKC, folded: those of UAX #29 that have a letter or a digit.
pub fn words(nfkc: &str) -> impl Iterator<Item = String> {
    nfkc.unicode_words().map(fold)
}

/// The words of a text that is in NFKC, folded, each with the byte at which it begins and its length in bytes there.
pub fn words_with_places(nfkc: &str) -> impl Iterator<Item = (usize, usize, String)> {
    nfkc.unicode_word_indices().map(|(at, word)| (at, word.len(), fold(word)))
}

/// The runs of characters that are not white space.
pub fn runs(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace()
}

/// Unicode's simple case folding, which maps a character to one character (CaseFolding.txt, statuses C and S).
///
/// It is the small letter of the capital, except where there is no capital or small letter of one character, and
/// except for the dotless i, whose capital is that of the dotted one.
fn fold_character(character: char) -> char {
    match character {
        'A'..='Z' => character.to_ascii_lowercase(),
        '\0'..='\u{7f}' | 'ı' => character,
        _ => {
            let capital = single(character.to_uppercase()).unwrap_or(character);
            single(capital.to_lowercase()).unwrap_or(capital)
        }
    }
}

fn single(mut characters: impl Iterator<Item = char>) -> Option<char> {
    let first = characters.next();
    if characters.next().is_some() { None } else { first }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_is_folded_character_by_character() {
        for (text, folded) in [
            ("ÄÖÜ Straße", "äöü straße"),
            ("STRASSE", "strasse"),
            ("ẞ", "ß"),
            ("ΟΔΟΣ οδος", "οδοσ οδοσ"),
            ("İıI", "İıi"),
            ("ДОМ", "дом"),
            ("ᲐᲑ ა", "აბ ა"),
            ("日本 👍🏽", "日本 👍🏽"),
        ] {
            assert_eq!(fold(text), folded, "{text}");
        }
    }

    #[test]
    fn folding_keeps_the_number_of_characters_and_is_stable() {
        for character in '\0'..=char::MAX {
            let once = fold_character(character);
            assert_eq!(fold_character(once), once, "{character:?}");
        }
    }

    #[test]
    fn normal_form_comes_before_folding() {
        for (text, normal) in [
            ("A\u{308}pfel", "äpfel"),
            ("Ａ４", "a4"),
            ("ﬁn", "fin"),
            ("½", "1⁄2"),
            ("a\u{a0}b", "a b"),
            ("Å\u{212b}", "åå"),
            ("\u{212a}g", "kg"),
        ] {
            assert_eq!(normalise(text), normal, "{text}");
        }
    }

    #[test]
    fn words_have_a_letter_or_a_digit() {
        for (text, expected) in [
            ("T-Shirt, 3.5 mm", "t|shirt|3.5|mm"),
            ("don't stop_me … 👍", "don't|stop_me"),
            ("  ", ""),
            ("日本 кофе", "日|本|кофе"),
        ] {
            assert_eq!(words(text).collect::<Vec<_>>().join("|"), expected, "{text}");
        }
    }
}
