//! Which sides of partial VAT rules a product is on, where its own data and words leave no doubt.
//!
//! Goods that share a code and differ for VAT are told apart by the segment of their class (see [`crate::domain::vat`]).
//! A customs code or a classifier cannot tell it; a name, a number or an attribute sometimes can: a tampon is for
//! menstrual hygiene, whatever else heading 9619 holds, and a shirt of size 128 is for a child.
//!
//! Each side that the rules define for the code is answered with yes, no or not known. One yes puts the goods on that
//! side, unless they may be on another at the same time of which nothing is known; several make the side that stands for
//! them together; all no make the rest. Everything else leaves the plain class, which says nothing.

mod facts;
mod numbers;
mod table;

pub use facts::{Facts, is_fact};

use table::{ADULTS, CLOTHES, YOUNG};

use crate::domain::vat::REST_SIDE;
use crate::domain::{ClassCode, Segment};

/// The side of goods for children under 11 and babies.
const CHILDREN: u8 = 3;
/// The side of goods for children of 11 to 13.
const OLDER_CHILDREN: u8 = 35;
/// The side of goods in units that farms buy.
const FARMING: u8 = 6;
/// The side of still wine of at most 13 per cent of alcohol.
const LIGHT_WINE: u8 = 12;
/// The side of beer low in alcohol.
const LIGHT_BEER: u8 = 24;
/// The side of goods on prescription.
const PRESCRIBED: u8 = 23;
/// The side of drinks and juices without added sugar.
const UNSWEETENED: u8 = 27;
/// The side of drinks with much juice.
const JUICY: u8 = 28;
/// The side of juices with added sugar.
const SWEETENED: u8 = 33;
/// The side of fortified wine.
const FORTIFIED: u8 = 53;
/// The side of foods with added sugar and much sugar in all.
const SUGARY: u8 = 54;
/// The side of feed for greyhounds in packs that trainers buy.
const GREYHOUNDS: u8 = 61;

/// Years up to which every country with a rate for children's clothes takes in the clothes of that age.
const MAX_YOUNG_YEARS: f64 = 10.0;
/// Years up to which some do.
const MAX_OLDER_YEARS: f64 = 13.0;
/// Most alcohol of wine with the parking rate, per cent by volume.
const MAX_WINE_ALCOHOL: f64 = 13.0;
/// Alcohol in per cent by volume between which wine may be fortified or strong by fermentation alone.
const MAYBE_FORTIFIED_ALCOHOL: std::ops::Range<f64> = 15.0..17.0;
/// Most alcohol of beer that counts as food, per cent by volume.
const MAX_BEER_ALCOHOL: f64 = 3.5;
/// Least juice of drinks with the rate of juices, per cent.
const MIN_JUICE: f64 = 20.0;
/// Juice of what is nothing but juice, per cent.
const PURE_JUICE: f64 = 100.0;
/// The heading of juices.
const JUICES: &str = "2009";
/// Least sugar in all of foods with added sugar that have a rate of their own, in grams per 100.
const MIN_SUGAR_GRAMS: f64 = 10.0;
/// The chapter of shoes.
const SHOES: &str = "64";
/// Kilograms of a litre of the lightest and of the heaviest fertiliser.
const LIGHT_FERTILISER: f64 = 0.8;
const HEAVY_FERTILISER: f64 = 2.0;
/// Least weight of a unit of fertiliser with the rate of farms, in kilograms.
const MIN_FERTILISER_KILOGRAMS: f64 = 10.0;
/// Least weight of a pack of feed for greyhounds with a rate of its own, in kilograms.
const MIN_GREYHOUND_KILOGRAMS: f64 = 10.0;

/// The segment of a class that the facts of a product settle; the plain one when they do not.
///
/// `segments` are those that the rules define for the code, each with the sides on which its goods are at once.
pub fn settle(code: ClassCode, segments: &[(Segment, &[u8])], facts: &Facts) -> Segment {
    let mut sides: Vec<u8> = segments.iter().flat_map(|(_, parts)| parts.iter().copied()).collect();
    sides.retain(|side| *side != REST_SIDE);
    sides.sort_unstable();
    sides.dedup();
    if sides.is_empty() {
        return Segment::PLAIN;
    }
    let mut answers: Vec<(u8, Option<bool>)> = sides.iter().map(|side| (*side, answer(code, *side, facts))).collect();
    let is_yes = |answers: &[(u8, Option<bool>)], side: u8| answers.contains(&(side, Some(true)));
    for (_, winner, losers) in table::INSTEAD.iter().filter(|(prefix, ..)| code.as_str().starts_with(prefix)) {
        if is_yes(&answers, *winner) {
            answers.iter_mut().filter(|(side, _)| losers.contains(side)).for_each(|(_, answer)| *answer = Some(false));
        }
    }
    let yes: Vec<u8> = answers.iter().filter(|(_, answer)| *answer == Some(true)).map(|(side, _)| *side).collect();
    let both = |a: u8, b: u8| segments.iter().any(|(_, parts)| parts.contains(&a) && parts.contains(&b));
    let open = |side: &u8| answers.contains(&(*side, None));
    let found = match yes.as_slice() {
        [] if answers.iter().all(|(_, answer)| *answer == Some(false)) => Some(REST_SIDE),
        [] => None,
        all if sides.iter().any(|side| open(side) && all.iter().all(|known| both(*known, *side))) => None,
        all => segments.iter().find(|(_, parts)| *parts == all).map(|(segment, _)| segment.side),
    };
    let segment = found.map(|side| Segment { side, detail: 0 });
    segment.filter(|found| segments.iter().any(|(known, _)| known == found)).unwrap_or(Segment::PLAIN)
}

/// Whether there are words that put goods of a code on a side, or keep them from it.
pub fn has_words(code: ClassCode, side: u8) -> bool {
    let clothes =
        matches!(side, CHILDREN | OLDER_CHILDREN) && CLOTHES.iter().any(|prefix| code.as_str().starts_with(prefix));
    clothes || rows(code, side).next().is_some()
}

/// The words of a side that are for goods of a code.
fn rows(code: ClassCode, side: u8) -> impl Iterator<Item = &'static table::Words> {
    let under = move |row: &&table::Words| row.under.iter().any(|prefix| code.as_str().starts_with(prefix));
    table::TABLE.iter().filter(move |row| row.side == side).filter(under)
}

/// Whether the goods are on a side; none where nothing is known.
fn answer(code: ClassCode, side: u8, facts: &Facts) -> Option<bool> {
    let under = |prefixes: &[&str]| prefixes.iter().any(|prefix| code.as_str().starts_with(prefix));
    let at_most = |limit: f64| move |value: f64| value <= limit;
    let number = match side {
        CHILDREN | OLDER_CHILDREN if under(CLOTHES) => return age(side, under(&[SHOES]), facts),
        LIGHT_WINE => facts.alcohol().map(at_most(MAX_WINE_ALCOHOL)),
        LIGHT_BEER => facts.alcohol().map(at_most(MAX_BEER_ALCOHOL)),
        FORTIFIED => {
            let clear = facts.alcohol().filter(|alcohol| !MAYBE_FORTIFIED_ALCOHOL.contains(alcohol));
            clear.map(|alcohol| alcohol >= MAYBE_FORTIFIED_ALCOHOL.end)
        }
        JUICY => facts.juice().map(|juice| juice >= MIN_JUICE),
        // A juice of nothing but juice has no sugar added.
        UNSWEETENED => facts.added_sugar().map(|sugar| !sugar).or_else(|| pure_juice(code, facts).then_some(true)),
        SWEETENED => facts.added_sugar().or_else(|| pure_juice(code, facts).then_some(false)),
        SUGARY => match facts.sugar() {
            (Some(added), _) if added <= 0.0 => Some(false),
            (Some(added), _) if added >= MIN_SUGAR_GRAMS => Some(true),
            // Whether sugar was added does not matter where there is little in all.
            (_, Some(all)) if all < MIN_SUGAR_GRAMS => Some(false),
            _ => None,
        },
        PRESCRIBED => facts.prescription(),
        FARMING if under(&["3102", "3103", "3104", "3105"]) => {
            facts.kilograms().map(|weight| weight >= MIN_FERTILISER_KILOGRAMS).or_else(|| heavy(facts.litres()?))
        }
        _ => None,
    };
    let yes: Vec<&str> = rows(code, side).flat_map(|row| row.yes.iter().copied()).collect();
    let no: Vec<&str> = rows(code, side).flat_map(|row| row.no.iter().copied()).collect();
    let words = facts.weigh(&yes, &no);
    if side == GREYHOUNDS && words == Some(true) {
        return facts.kilograms().map(|weight| weight >= MIN_GREYHOUND_KILOGRAMS);
    }
    match (number, words) {
        (Some(number), Some(words)) if number != words => None,
        (Some(known), _) | (None, Some(known)) => Some(known),
        (None, None) => None,
    }
}

/// Whether so many litres of a fertiliser weigh as much as a unit of farms; none where that depends on the fertiliser.
fn heavy(litres: f64) -> Option<bool> {
    match litres {
        _ if litres * LIGHT_FERTILISER >= MIN_FERTILISER_KILOGRAMS => Some(true),
        _ if litres * HEAVY_FERTILISER < MIN_FERTILISER_KILOGRAMS => Some(false),
        _ => None,
    }
}

/// Whether a juice says that it is nothing else.
fn pure_juice(code: ClassCode, facts: &Facts) -> bool {
    code.as_str().starts_with(JUICES) && facts.juice().is_some_and(|juice| juice >= PURE_JUICE)
}

/// Whether clothes are for children of the side's age, by the ages and sizes that the product names, else by its words.
fn age(side: u8, shoes: bool, facts: &Facts) -> Option<bool> {
    let ages = if shoes { facts.ages_of_shoes() } else { facts.ages() };
    let adults = facts.says(ADULTS);
    let named = table::TABLE.iter().any(|row| row.side == CHILDREN && row.under == CLOTHES && facts.says(&row.yes));
    if adults && (named || facts.says(YOUNG) || ages.is_some()) {
        return None;
    }
    match ages {
        Some((_, oldest)) if oldest <= MAX_YOUNG_YEARS => Some(side == CHILDREN),
        Some((youngest, oldest)) if youngest > MAX_YOUNG_YEARS && oldest <= MAX_OLDER_YEARS => {
            Some(side == OLDER_CHILDREN)
        }
        Some((youngest, _)) if youngest > MAX_OLDER_YEARS => Some(false),
        Some(_) => None,
        None if named => Some(side == CHILDREN),
        None if adults => Some(false),
        None => None,
    }
}

#[cfg(test)]
mod tests;
