//! Global trade item numbers.

/// Whether the text is 8, 12, 13 or 14 digits of which the last is the right check digit
/// (GS1 General Specifications, section 7.9: weights 3 and 1 from the right).
pub fn is_valid(text: &str) -> bool {
    let bytes = text.as_bytes();
    if !matches!(bytes.len(), 8 | 12 | 13 | 14) || !bytes.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let weighted: u32 = bytes.iter().rev().zip([1, 3].into_iter().cycle()).map(|(b, w)| u32::from(b - b'0') * w).sum();
    weighted.is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gtin_has_a_known_length_and_the_right_check_digit() {
        for good in ["96385074", "036000291452", "4006381333931", "10614141000415"] {
            assert!(is_valid(good), "{good}");
        }
        for bad in ["", "4006381333932", "400638133393", "96385075", "4006381333931 ", "40063813339３1", "1234567"] {
            assert!(!is_valid(bad), "{bad}");
        }
    }
}
