//! Days as people and programs write them.

use chrono::NaiveDate;

/// The day of a text in the form of ISO 8601, such as `2026-01-31`: four, two and two digits and nothing else, where the
/// parser of chrono would take blanks and signs among them too.
pub fn day(text: &str) -> Option<NaiveDate> {
    let is_in_place = |(at, byte): (usize, u8)| if at == 4 || at == 7 { byte == b'-' } else { byte.is_ascii_digit() };
    let is_of_form = text.len() == "2026-01-31".len() && text.bytes().enumerate().all(is_in_place);
    is_of_form.then(|| NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_has_ten_characters_each_in_its_place() {
        assert_eq!(day("2026-01-31"), NaiveDate::from_ymd_opt(2026, 1, 31));
        assert_eq!(day("2028-02-29"), NaiveDate::from_ymd_opt(2028, 2, 29));
        for none in
            ["2026- 1-31", "+2026-1-31", " 2026-1-31", "2026-1-31", "2026-01-32", "2026-01-31 ", "2026/01/31", ""]
        {
            assert_eq!(day(none), None, "{none}");
        }
    }
}
