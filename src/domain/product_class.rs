//! Taxonomies, the codes of their classes, and the written form of a product class.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A customs nomenclature in which every product gets a class of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Taxonomy {
    /// The integrated tariff of the European Union.
    Taric,
    /// The customs tariff of Switzerland and Liechtenstein.
    Tares,
    /// The United Kingdom global tariff.
    Ukgt,
}

impl Taxonomy {
    /// Every taxonomy, in the order in which answers list them.
    pub const ALL: [Taxonomy; 3] = [Taxonomy::Taric, Taxonomy::Tares, Taxonomy::Ukgt];

    /// The name used in paths and bodies.
    pub const fn name(self) -> &'static str {
        match self {
            Taxonomy::Taric => "TARIC",
            Taxonomy::Tares => "TARES",
            Taxonomy::Ukgt => "UKGT",
        }
    }

    /// The taxonomy of that exact name.
    pub fn from_name(name: &str) -> Option<Taxonomy> {
        Taxonomy::ALL.into_iter().find(|taxonomy| taxonomy.name() == name)
    }

    /// Digits of a fixed-width class code: 8 for TARES, else 10.
    pub const fn width(self) -> usize {
        match self {
            Taxonomy::Tares => 8,
            Taxonomy::Taric | Taxonomy::Ukgt => 10,
        }
    }

    /// ISO 3166-1 alpha-2 codes of the countries whose VAT rates follow from a class of this taxonomy.
    pub const fn countries(self) -> &'static [&'static str] {
        match self {
            Taxonomy::Taric => &[
                "AT", "BE", "BG", "CY", "CZ", "DE", "DK", "EE", "ES", "FI", "FR", "GR", "HR", "HU", "IE", "IT", "LT",
                "LU", "LV", "MT", "NL", "PL", "PT", "RO", "SE", "SI", "SK",
            ],
            Taxonomy::Tares => &["CH", "LI"],
            Taxonomy::Ukgt => &["GB"],
        }
    }

    /// Position in [`Taxonomy::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Taxonomy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The code of a class: 2 to 10 digits, where a prefix stands for all classes below it.
///
/// Kept as digits in a fixed array, so that it is `Copy` and ordered as text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassCode {
    digits: [u8; Self::MAX_DIGITS],
    len: u8,
}

impl ClassCode {
    /// Fewest digits: a chapter.
    pub const MIN_DIGITS: usize = 2;
    /// Most digits: a national line of TARIC or UKGT.
    pub const MAX_DIGITS: usize = 10;

    /// The code of these ASCII digits, or none when it is not 2 to 10 of them.
    pub fn new(digits: &str) -> Option<ClassCode> {
        let bytes = digits.as_bytes();
        if !(Self::MIN_DIGITS..=Self::MAX_DIGITS).contains(&bytes.len()) || !bytes.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let mut code = [0; Self::MAX_DIGITS];
        code[..bytes.len()].copy_from_slice(bytes);
        Some(ClassCode { digits: code, len: bytes.len() as u8 })
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.digits[..usize::from(self.len)]).unwrap_or_default()
    }

    /// How many digits there are, 2 to 10.
    pub fn digits(&self) -> usize {
        usize::from(self.len)
    }

    /// The first `digits` digits; the code itself when it has no more than that. At least two are kept.
    pub fn prefix(&self, digits: usize) -> ClassCode {
        let len = digits.clamp(Self::MIN_DIGITS, self.digits());
        let mut code = [0; Self::MAX_DIGITS];
        code[..len].copy_from_slice(&self.digits[..len]);
        ClassCode { digits: code, len: len as u8 }
    }

    /// Whether `self` is `other` or lies below it.
    pub fn is_under(&self, other: &ClassCode) -> bool {
        let len = other.digits();
        len <= self.digits() && self.digits[..len] == other.digits[..len]
    }

    /// The code padded with zeros on the right to the width of the taxonomy.
    pub fn fixed_width(&self, taxonomy: Taxonomy) -> String {
        format!("{:0<width$}", self.as_str(), width = taxonomy.width())
    }
}

impl fmt::Display for ClassCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for ClassCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClassCode({})", self.as_str())
    }
}

impl Serialize for ClassCode {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// The two segments that tell apart goods which share a code and differ for VAT: `NN-NNN`.
///
/// `00-000` is the plain class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Segment {
    /// 0 to 99: which side of a partial VAT rule the goods are on.
    pub side: u8,
    /// 0 to 999: a further distinction, 0 where the rules define none.
    pub detail: u16,
}

impl Segment {
    /// The segments of the plain class, `00-000`.
    pub const PLAIN: Segment = Segment { side: 0, detail: 0 };

    /// Reads `NN-NNN`.
    pub fn parse(text: &str) -> Option<Segment> {
        let (side, detail) = text.split_once('-')?;
        let all_digits = |part: &str, len| part.len() == len && part.bytes().all(|b| b.is_ascii_digit());
        if !all_digits(side, 2) || !all_digits(detail, 3) {
            return None;
        }
        Some(Segment { side: side.parse().ok()?, detail: detail.parse().ok()? })
    }
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}-{:03}", self.side, self.detail)
    }
}

/// A class of a taxonomy as clients write it: `code-NN-NNN`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProductClass {
    /// The code segment.
    pub code: ClassCode,
    /// The two segments behind it.
    pub segment: Segment,
}

impl ProductClass {
    /// The class of a code without any distinction for VAT.
    pub const fn plain(code: ClassCode) -> ProductClass {
        ProductClass { code, segment: Segment::PLAIN }
    }
}

impl fmt::Display for ProductClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.code, self.segment)
    }
}

/// The text is not of the shape `code-NN-NNN` with a code of 2 to 10 digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a product class is written code-NN-NNN, such as 610910-00-000, with a code of 2 to 10 digits")]
pub struct MalformedProductClass;

impl FromStr for ProductClass {
    type Err = MalformedProductClass;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (code, segment) = text.split_once('-').ok_or(MalformedProductClass)?;
        Ok(ProductClass {
            code: ClassCode::new(code).ok_or(MalformedProductClass)?,
            segment: Segment::parse(segment).ok_or(MalformedProductClass)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_class_is_three_segments() {
        for good in ["61-00-000", "6109-00-000", "8517130000-01-002"] {
            assert_eq!(good.parse::<ProductClass>().map(|class| class.to_string()), Ok(good.to_owned()));
        }
        for bad in
            ["", "6109", "6109-00", "6109-0-000", "6109-00-0000", "6-00-000", "61O9-00-000", "61091000000-00-000"]
        {
            assert_eq!(bad.parse::<ProductClass>(), Err(MalformedProductClass), "{bad}");
        }
    }

    #[test]
    fn codes_are_ordered_as_text_and_know_their_prefixes() {
        let code = |text| ClassCode::new(text).expect("digits");
        assert!(code("61") < code("6109") && code("6109") < code("62"));
        assert_eq!(code("610910").prefix(4), code("6109"));
        assert_eq!(code("61").prefix(4), code("61"));
        assert!(code("610910").is_under(&code("6109")) && !code("6109").is_under(&code("610910")));
        assert_eq!(code("6109").fixed_width(Taxonomy::Tares), "61090000");
        assert_eq!(code("6109").fixed_width(Taxonomy::Taric), "6109000000");
    }
}
