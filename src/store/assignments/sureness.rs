//! Where bands of confidence begin, as answers show them and as the database tells them apart.
//!
//! Answers show four decimals: a confidence belongs to what is shown of it, so that bands and ranges begin half of the last
//! decimal earlier.

use std::ops::RangeInclusive;

/// Bands of confidence that are kept by themselves.
pub(super) const HUNDREDTHS: i16 = 100;
/// Half of the last decimal that answers show.
const HALF_A_DECIMAL: f64 = 0.00005;

/// The number that is the least of this kind and not below another.
fn at_or_above(value: f64) -> f32 {
    let near = value as f32;
    if f64::from(near) < value { near.next_up() } else { near }
}

/// Where a hundredth begins, as the database tells them apart.
pub(super) fn hundredth(number: i16) -> f32 {
    at_or_above((f64::from(number) / f64::from(HUNDREDTHS) - HALF_A_DECIMAL).max(0.0))
}

/// From where to below where a confidence lies that is shown as one of this range.
pub(super) fn span(from: Option<f64>, to: Option<f64>) -> (Option<f32>, Option<f32>) {
    let from = from.map(|from| at_or_above((from - HALF_A_DECIMAL).max(0.0)));
    (from, to.map(|to| at_or_above(to + HALF_A_DECIMAL)))
}

/// The hundredths in which a confidence may lie that is shown as one of this range.
pub(super) fn hundredths(from: Option<f64>, to: Option<f64>) -> RangeInclusive<i16> {
    let of = |confidence: f32| (((f64::from(confidence) + HALF_A_DECIMAL) * 100.0).floor() as i16).min(HUNDREDTHS - 1);
    let (from, below) = span(from, to);
    from.map_or(0, of)..=below.map_or(HUNDREDTHS - 1, |below| of(below.next_down()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_lies_in_the_hundredths_of_its_ends() {
        for (from, to, hundredths_of_it) in [
            (None, None, 0..=99),
            (Some(0.0), Some(0.0), 0..=0),
            (Some(0.5), Some(0.5), 50..=50),
            (Some(0.5), None, 50..=99),
            (Some(0.4999), Some(0.5099), 49..=50),
            (Some(0.4999), Some(0.51), 49..=51),
            (None, Some(0.3), 0..=30),
            (Some(0.98), Some(1.0), 98..=99),
            (Some(1.0), None, 99..=99),
        ] {
            assert_eq!(hundredths(from, to), hundredths_of_it, "{from:?} to {to:?}");
        }
    }

    #[test]
    fn hundredths_begin_where_the_database_says() {
        for number in 1..HUNDREDTHS {
            let begin = hundredth(number);
            let band = |confidence: f32| ((f64::from(confidence) + HALF_A_DECIMAL) * 100.0).floor() as i16;
            assert_eq!((band(begin), band(begin.next_down())), (number, number - 1));
        }
    }
}
