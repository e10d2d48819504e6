//! Rates of tax: how many per cent, of which type, for how long.

use std::fmt;

use chrono::NaiveDate;
use serde::Serialize;
use utoipa::ToSchema;

/// A rate of tax in hundredths of a per cent, so that equal rates are equal numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Percent(u16);

impl Percent {
    /// Reads `19`, `2.1` or `25.5`: at most two decimals, at most 100.
    pub fn parse(text: &str) -> Option<Percent> {
        let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
        if whole.is_empty() || decimals.is_empty() || decimals.len() > 2 {
            return None;
        }
        let hundredths = format!("{decimals:0<2}").parse::<u16>().ok()?;
        let all = whole.parse::<u16>().ok()?.checked_mul(100)?.checked_add(hundredths)?;
        (all <= 10_000 && text.bytes().all(|b| b.is_ascii_digit() || b == b'.')).then_some(Percent(all))
    }

    /// The rate in per cent.
    pub fn value(self) -> f64 {
        f64::from(self.0) / 100.0
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.value())
    }
}

impl Serialize for Percent {
    /// A whole rate is written without decimals.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_multiple_of(100) {
            serializer.serialize_u16(self.0 / 100)
        } else {
            serializer.serialize_f64(self.value())
        }
    }
}

/// What the law calls a rate, as returns of the one-stop shop ask for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RateType {
    /// The rate of goods that no rule names.
    Standard,
    /// A reduced rate of at least 5 per cent.
    Reduced,
    /// A reduced rate below 5 per cent.
    SuperReduced,
    /// A reduced rate of at least 12 per cent for goods outside the common list.
    Parking,
    /// Taxed with nothing, with the right to deduct.
    Zero,
    /// Exempt, without the right to deduct.
    Exempt,
}

impl RateType {
    /// Every type with the name it has in files and answers.
    pub const ALL: [(RateType, &'static str); 6] = [
        (RateType::Standard, "STANDARD"),
        (RateType::Reduced, "REDUCED"),
        (RateType::SuperReduced, "SUPER_REDUCED"),
        (RateType::Parking, "PARKING"),
        (RateType::Zero, "ZERO"),
        (RateType::Exempt, "EXEMPT"),
    ];

    /// The type of that exact name.
    pub fn from_name(name: &str) -> Option<RateType> {
        RateType::ALL.into_iter().find(|(_, known)| *known == name).map(|(rate_type, _)| rate_type)
    }
}

/// First and last day; open where no last day is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Period {
    pub(super) from: NaiveDate,
    pub(super) to: Option<NaiveDate>,
}

impl Period {
    pub(super) fn contains(&self, date: NaiveDate) -> bool {
        self.from <= date && self.to.is_none_or(|to| date <= to)
    }

    /// The days on which it begins and after which it no longer holds.
    pub(super) fn changes(&self) -> impl Iterator<Item = NaiveDate> + use<> {
        [Some(self.from), self.to.and_then(|to| to.succ_opt())].into_iter().flatten()
    }

    pub(super) fn overlaps(&self, other: &Period) -> bool {
        self.to.is_none_or(|to| other.from <= to) && other.to.is_none_or(|to| self.from <= to)
    }
}
