//! What is at stake where a class is wrong: how far the VAT rates of the classes in question lie apart.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use chrono::NaiveDate;

use crate::domain::{ClassCode, ProductClass, Taxonomy};
use crate::reference::Reference;

/// Classes in question that are looked at, the best first.
pub(super) const CLASSES_COMPARED: usize = 5;
/// What a wrong class costs where all rates are the same, in percentage points: it is wrong at customs all the same, and
/// what is less sure still comes first.
const LEAST_SPREAD: f32 = 1.0;
/// Classes whose rates are remembered; beyond it they are forgotten and computed anew.
const MAX_REMEMBERED: usize = 50_000;

/// The least and the greatest rate of each country of the taxonomy, in per cent.
type Ranges = Arc<[(f32, f32)]>;

/// The rates of classes on a day.
type OfDay = (NaiveDate, HashMap<(Taxonomy, ClassCode), Ranges>);

/// Remembers the rates of classes for a day: a few thousand classes come up again and again.
#[derive(Debug, Default)]
pub(super) struct Stakes {
    remembered: RwLock<OfDay>,
}

impl Stakes {
    /// The chance that a class is wrong, times the spread of the rates of the classes in question in percentage points.
    pub(super) fn risk(
        &self,
        reference: &Reference,
        taxonomy: Taxonomy,
        classes: impl Iterator<Item = ClassCode>,
        confidence: Option<f32>,
        day: NaiveDate,
    ) -> f32 {
        let ranges: Vec<Ranges> =
            classes.take(CLASSES_COMPARED).map(|code| self.ranges(reference, taxonomy, code, day)).collect();
        let chance = 1.0 - confidence.unwrap_or(0.0).clamp(0.0, 1.0);
        chance * (LEAST_SPREAD + spread(&ranges))
    }

    /// Forgets what other rules led to.
    pub(super) fn forget(&self) {
        *self.remembered.write().unwrap_or_else(PoisonError::into_inner) = OfDay::default();
    }

    fn ranges(&self, reference: &Reference, taxonomy: Taxonomy, code: ClassCode, day: NaiveDate) -> Ranges {
        {
            let remembered = self.remembered.read().unwrap_or_else(PoisonError::into_inner);
            if remembered.0 == day
                && let Some(ranges) = remembered.1.get(&(taxonomy, code))
            {
                return ranges.clone();
            }
        }
        let vat = reference.vat.sufficiency(reference.nomenclature(taxonomy), ProductClass::plain(code), day, false);
        let range = |rates: &mut dyn Iterator<Item = f32>| {
            rates.fold(None, |range: Option<(f32, f32)>, rate| {
                Some(range.map_or((rate, rate), |(least, most)| (least.min(rate), most.max(rate))))
            })
        };
        let ranges: Ranges = vat
            .countries
            .iter()
            // A country that knows no rate says nothing about what is at stake there.
            .map(|country| {
                range(&mut country.rates.iter().filter_map(|rate| rate.rate).map(|rate| rate.value() as f32))
                    .unwrap_or((0.0, 0.0))
            })
            .collect();
        let mut remembered = self.remembered.write().unwrap_or_else(PoisonError::into_inner);
        if remembered.0 != day || remembered.1.len() >= MAX_REMEMBERED {
            *remembered = (day, HashMap::new());
        }
        remembered.1.insert((taxonomy, code), ranges.clone());
        ranges
    }
}

/// How far the rates of classes lie apart: of each country the greatest less the least, and of those the mean.
fn spread(classes: &[Ranges]) -> f32 {
    let countries = classes.iter().map(|ranges| ranges.len()).max().unwrap_or(0);
    if countries == 0 {
        return 0.0;
    }
    let apart = |country: usize| {
        let ranges = classes.iter().filter_map(|ranges| ranges.get(country));
        let (least, most) =
            ranges.fold((f32::MAX, f32::MIN), |(least, most), range| (least.min(range.0), most.max(range.1)));
        (most - least).max(0.0)
    };
    (0..countries).map(apart).sum::<f32>() / countries as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_is_the_mean_over_countries_of_what_lies_between_the_extremes() {
        let class = |ranges: &[(f32, f32)]| Ranges::from(ranges.to_vec());
        for (classes, expected) in [
            (vec![], 0.0),
            (vec![class(&[(19.0, 19.0), (20.0, 20.0)])], 0.0),
            (vec![class(&[(7.0, 19.0), (20.0, 20.0)])], 6.0),
            (vec![class(&[(7.0, 7.0), (5.0, 5.0)]), class(&[(19.0, 19.0), (20.0, 20.0)])], 13.5),
        ] {
            assert_eq!(spread(&classes), expected);
        }
    }
}
