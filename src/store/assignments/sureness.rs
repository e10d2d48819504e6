//! Where bands of confidence begin, as answers show them and as the database tells them apart.
//!
//! Answers show four decimals: a confidence belongs to what is shown of it, so that bands and ranges begin half of the last
//! decimal earlier.

use std::ops::{Range, RangeInclusive};

use sqlx::{Postgres, QueryBuilder};

/// Bands of confidence that are kept by themselves.
pub(super) const HUNDREDTHS: i16 = 100;
/// Share of a hundredth below which a range covers little of it. Of 80,000 assignments in one, a walk to the first page of
/// this share goes past as many as the share holds.
const NARROW: f32 = 0.025;
/// The last decimal that answers show.
pub(super) const LAST_DECIMAL: f64 = 0.0001;
/// Half of it: what rounds to a confidence as shown lies within this of it.
const HALF_A_DECIMAL: f64 = LAST_DECIMAL / 2.0;

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

/// Appends the condition that a confidence lies in one of these hundredths, as an index has them.
pub(super) fn push_hundredths(query: &mut QueryBuilder<Postgres>, hundredths: Range<i16>) {
    query.push(" and confidence is not null and confidence_hundredth(confidence) >= ").push_bind(hundredths.start);
    query.push(" and confidence_hundredth(confidence) < ").push_bind(hundredths.end);
}

/// The hundredths of a range in which it covers more than a little, and its ends, from where to below where, of which each
/// lies within one hundredth and covers little of it: reading a hundredth in another order goes past what is beside the end.
pub(super) fn wide_hundredths(from: Option<f64>, to: Option<f64>) -> (Range<i16>, Vec<(f32, f32)>) {
    let (from_bound, below_bound) = span(from, to);
    let (mut first, mut last) = hundredths(from, to).into_inner();
    // The last one holds what is quite sure.
    let end_of = |number: i16| if number + 1 == HUNDREDTHS { 1f32.next_up() } else { hundredth(number + 1) };
    let covered = |number: i16| {
        let begin = from_bound.map_or(hundredth(number), |from| from.max(hundredth(number)));
        (begin, below_bound.map_or(end_of(number), |below| below.min(end_of(number))))
    };
    let is_narrow = |number: i16| {
        let (begin, end) = covered(number);
        (end - begin) * f32::from(HUNDREDTHS) < NARROW
    };
    let mut narrow = Vec::new();
    if first <= last && is_narrow(first) {
        narrow.push(covered(first));
        first += 1;
    }
    if first <= last && is_narrow(last) {
        narrow.push(covered(last));
        last -= 1;
    }
    (first..last + 1, narrow)
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
    fn ends_that_cover_little_of_their_hundredth_are_told_apart() {
        for (from, to, wide, ends) in [
            (None, None, (0, 100), 0),
            (Some(0.5), Some(0.77), (50, 77), 1),
            (Some(0.5), Some(0.7799), (50, 78), 0),
            (Some(0.5099), Some(0.77), (51, 77), 2),
            (Some(0.5), Some(0.5), (51, 51), 1),
            (Some(0.5), Some(0.51), (50, 51), 1),
            (Some(0.98), Some(1.0), (98, 100), 0),
            (Some(0.9999), None, (100, 100), 1),
            (Some(0.6), Some(0.5), (60, 51), 0),
        ] {
            let (found, narrow) = wide_hundredths(from, to);
            assert_eq!(((found.start, found.end), narrow.len()), (wide, ends), "{from:?} to {to:?}");
            let (begin, below) = span(from, to);
            for (slice_begin, slice_end) in narrow {
                assert!(slice_begin < slice_end, "{from:?} to {to:?}");
                assert!(begin.is_none_or(|begin| begin <= slice_begin), "{from:?} to {to:?}");
                assert!(below.is_none_or(|below| slice_end <= below), "{from:?} to {to:?}");
                let beside = slice_end <= hundredth(found.start) || slice_begin >= hundredth(found.end);
                assert!(beside || found.is_empty(), "{from:?} to {to:?}");
            }
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
