//! Zeros that a spreadsheet has lost: what is all digits it takes for a number, and a number begins with none.

use std::borrow::Cow;

use crate::domain::gtin;

/// The last headings of the chapters 1 to 9 of the Harmonized System; a chapter's headings begin with 1.
const LAST_HEADINGS: [u8; 9] = [6, 10, 9, 10, 11, 4, 14, 14, 10];

/// A customs code with the zero that it has lost: `9012100` is `09012100`, roasted coffee, and not 901210, microscopes.
///
/// Codes have an even number of digits: headings 4, HS 6, CN and TARES 8, TARIC and UKGT 10; only Germany adds an
/// eleventh, and Switzerland three to its eight. So a bare number of 3, 5, 7 or 9 digits is a code of the chapters 1 to 9
/// without its zero, if it then begins with a heading that there is: `9403600` does not, and stays as it is. With a dot or
/// a blank in it, it was a text, which loses nothing. Ten digits may be eleven that have lost one; they are what they say.
pub(super) fn code(cell: &str) -> Cow<'_, str> {
    let number = cell.trim();
    let is_lost = matches!(number.len(), 3 | 5 | 7 | 9) && is_digits(number) && begins_with_low_heading(number);
    if is_lost { format!("0{number}").into() } else { cell.into() }
}

fn begins_with_low_heading(number: &str) -> bool {
    let [chapter, tens, ones, ..] = number.as_bytes() else { return false };
    let last = LAST_HEADINGS.get(usize::from(chapter - b'0').wrapping_sub(1));
    last.is_some_and(|last| (1..=*last).contains(&((tens - b'0') * 10 + ones - b'0')))
}

/// A GTIN with the zero that it has lost: 7 and 11 digits are no GTIN, and are one of 8 and 12 where the check digit
/// fits, which zeros before it do not change. One of 13 or 14 digits that has lost its zero is a GTIN all the same.
pub(super) fn trade_number(cell: &str) -> Cow<'_, str> {
    let padded = || Some(format!("0{cell}")).filter(|padded| gtin::is_valid(padded));
    let found = if matches!(cell.len(), 7 | 11) { padded() } else { None };
    found.map_or(Cow::Borrowed(cell), Cow::Owned)
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_that_has_lost_its_zero_gets_it_again() {
        for (cell, read) in [
            ("9012100", "09012100"),
            ("901210000", "0901210000"),
            (" 90121 ", "090121"),
            ("901", "0901"),
            ("101", "0101"),
            ("714", "0714"),
            // No heading of a chapter below 10.
            ("9403600", "9403600"),
            ("715", "715"),
            ("500", "500"),
            ("00901", "00901"),
            // Nothing is lost of these.
            ("09012100", "09012100"),
            ("901210", "901210"),
            ("901.2100", "901.2100"),
            ("9012100000", "9012100000"),
            ("90121000000", "90121000000"),
            ("901210x", "901210x"),
            ("", ""),
        ] {
            assert_eq!(code(cell), read, "{cell}");
        }
    }

    #[test]
    fn a_gtin_that_has_lost_its_zero_gets_it_again() {
        for (cell, read) in [
            ("36000291452", "036000291452"),
            ("1234565", "01234565"),
            ("36000291453", "36000291453"),
            ("036000291452", "036000291452"),
            ("4006381333931", "4006381333931"),
            ("3600029145x", "3600029145x"),
            ("", ""),
        ] {
            assert_eq!(trade_number(cell), read, "{cell}");
        }
    }
}
