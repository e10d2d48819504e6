//! What the customs codes of a product say about its class in one taxonomy.
//!
//! Every code given is read into digits and led to a class of the taxonomy, then ranked:
//!
//! 1. a code of the taxonomy itself that names a class, or did so until it ended;
//! 2. a code of another kind whose shared digits (six; eight in the EU) name a class;
//! 3. a code of the taxonomy itself that names nothing: its longest listed prefix of at least four digits;
//! 4. a code of another kind that names nothing, likewise.
//!
//! The best rank decides. Codes that lie on one line do not contradict each other, and the deepest of them wins, so a
//! broad code of the taxonomy is refined by a deeper one of another kind. Codes that part are a conflict: a lower rank
//! yields to a higher one, equal ranks are cut to what they share, and either way the confidence falls. What leads to no
//! heading, but to a chapter alone, is no evidence.

use crate::domain::nomenclature::{Nomenclature, Via};
use crate::domain::product::CustomsCodes;
use crate::domain::{ClassCode, Taxonomy};

/// Fewest digits of a code, of a prefix that still speaks for a product when its code names nothing, and of the class for
/// which codes speak in the end: a heading.
const MIN_PREFIX_DIGITS: usize = 4;
/// Digits that all nomenclatures share: a subheading of the Harmonized System.
const SHARED_DIGITS: usize = 6;
/// Digits that the member states' tariffs share: a line of the Combined Nomenclature.
const EU_SHARED_DIGITS: usize = 8;
/// Codes in one document, at most: one a field.
const MAX_CODES: usize = 8;

/// How sure a code makes us of its class, by what the class is to the code; not measured, but graded.
mod confidence {
    /// The code is in the list of its own taxonomy.
    pub(super) const LISTED: f32 = 0.99;
    /// The code goes below what our list knows.
    pub(super) const EXTENSION: f32 = 0.97;
    /// The code has ended, and was led to its successor or to what lies above it.
    pub(super) const OUTDATED: f32 = 0.92;
    /// The shared digits of another nomenclature's code.
    pub(super) const SHARED: f32 = 0.95;
    /// The longest prefix of digits that name nothing.
    pub(super) const PREFIX: f32 = 0.75;
    /// Each code that contradicts the one in force takes this share away.
    pub(super) const CONFLICT: f32 = 0.7;
}

/// Why a code led to its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The code names a class of the taxonomy.
    Named,
    /// The code of the taxonomy has ended; its successor.
    Successor,
    /// The code of the taxonomy has ended without successor; the living class above it.
    LivingParent,
    /// The digits that the code shares with the taxonomy.
    SharedDigits,
    /// The code names nothing; its longest listed prefix.
    LongestPrefix,
    /// Codes of equal rank part; what they share.
    CommonPrefix,
}

impl Reason {
    /// The reason in words, for people.
    pub const fn text(self) -> &'static str {
        match self {
            Reason::Named => "the code names this class",
            Reason::Successor => "the code has ended and this is its successor",
            Reason::LivingParent => "the code has ended and this is the nearest class above it",
            Reason::SharedDigits => "the digits that all nomenclatures share name this class",
            Reason::LongestPrefix => "the code names nothing and this is its longest known prefix",
            Reason::CommonPrefix => "the codes contradict each other and this is what they share",
        }
    }
}

/// The class for which the customs codes of a product speak.
#[derive(Clone, Debug, PartialEq)]
pub struct CodeEvidence {
    /// The class, in its canonical form.
    pub code: ClassCode,
    /// 0 to 1.
    pub confidence: f32,
    /// The field below `customsCodes` that decided.
    pub field: &'static str,
    /// How that field's code led to the class.
    pub reason: Reason,
    /// The fields that contradict it, with the classes for which they speak.
    pub conflicts: Vec<(&'static str, ClassCode)>,
}

/// Reads a customs code as people write it: digits with spaces, dots and dashes between. None when anything else is
/// among them, or when it is not 4 to 11 digits.
///
/// Digits beyond the width of a taxonomy are left out: the eleventh of the German EZT, and the three of the statistical
/// key that may follow the eight of a Swiss number.
pub fn normalize(code: &str, width: usize) -> Option<ClassCode> {
    const MAX_DIGITS: usize = 11;
    let mut digits = [0_u8; MAX_DIGITS];
    let mut len = 0;
    for c in code.chars() {
        match c {
            '0'..='9' if len == MAX_DIGITS => return None,
            '0'..='9' => {
                digits[len] = c as u8;
                len += 1;
            }
            '.' | '-' | '\u{2010}'..='\u{2015}' => {}
            c if c.is_whitespace() => {}
            _ => return None,
        }
    }
    if len < MIN_PREFIX_DIGITS {
        return None;
    }
    ClassCode::new(std::str::from_utf8(&digits[..len.min(width)]).ok()?)
}

/// One code of the product, led to a class.
#[derive(Clone, Copy)]
struct Witness {
    field: &'static str,
    code: ClassCode,
    rank: u8,
    reason: Reason,
    confidence: f32,
}

/// The class of the nomenclature's taxonomy for which a product's customs codes speak; none when none names anything, or
/// when they share nothing.
pub fn evidence(codes: &CustomsCodes, nomenclature: &Nomenclature) -> Option<CodeEvidence> {
    let mut witnesses = [None; MAX_CODES];
    let platform = codes.platform_taxonomy();
    let read = codes.given().filter_map(|(field, text)| witness(field, text, platform, nomenclature));
    for (place, witness) in witnesses.iter_mut().zip(read) {
        *place = Some(witness);
    }
    let witnesses = || witnesses.iter().flatten();
    let rank = witnesses().map(|witness| witness.rank).min()?;
    let agree = |a: ClassCode, b: ClassCode| a.is_under(&b) || b.is_under(&a);
    let mut best: Option<Witness> = None;
    let mut peers_conflict = false;
    for witness in witnesses().filter(|witness| witness.rank == rank) {
        best = Some(match best {
            None => *witness,
            Some(best) if best.code.is_under(&witness.code) => best,
            // Behind a conflict the rest is a part of what is shared, and settles nothing.
            Some(best) if !peers_conflict && witness.code.is_under(&best.code) => *witness,
            Some(best) => {
                peers_conflict = true;
                Witness { code: shared(best.code, witness.code, nomenclature)?, reason: Reason::CommonPrefix, ..best }
            }
        });
    }
    let mut best = best?;
    if !peers_conflict {
        let is_deeper = |next: &Witness, best: &Witness| next.code != best.code && next.code.is_under(&best.code);
        let refine = |best: Witness, next: &Witness| if is_deeper(next, &best) { *next } else { best };
        best = witnesses().filter(|witness| witness.rank != rank).fold(best, refine);
    }
    if best.code.digits() < MIN_PREFIX_DIGITS {
        return None;
    }
    let conflicts: Vec<(&'static str, ClassCode)> = witnesses()
        .filter(|witness| if peers_conflict { witness.code != best.code } else { !agree(witness.code, best.code) })
        .map(|witness| (witness.field, witness.code))
        .collect();
    let confidence = conflicts.iter().fold(best.confidence, |confidence, _| confidence * confidence::CONFLICT);
    Some(CodeEvidence { code: best.code, confidence, field: best.field, reason: best.reason, conflicts })
}

/// What two codes share, as a class; nothing where that is less than a chapter.
fn shared(a: ClassCode, b: ClassCode, nomenclature: &Nomenclature) -> Option<ClassCode> {
    let common = a.as_str().bytes().zip(b.as_str().bytes()).take_while(|(a, b)| a == b).count();
    if common < ClassCode::MIN_DIGITS {
        return None;
    }
    nomenclature.resolve(a.prefix(common)).map(|resolved| resolved.code).filter(|code| a.is_under(code))
}

/// Whether a code may be another one that has lost the zero before it, as spreadsheets make of `09012100`, roasted coffee,
/// `9012100`, which would be an electron microscope. Codes have an even number of digits, and eleven with the last one of
/// the EZT or of a Swiss number; one of five, seven or nine that names something behind a zero is not guessed at.
fn has_lost_a_zero(text: &str, nomenclature: &Nomenclature) -> bool {
    let text = text.trim();
    if !matches!(text.len(), 5 | 7 | 9) || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let whole = ClassCode::new(&format!("0{text}"));
    whole.and_then(|code| nomenclature.resolve(code)).is_some_and(|found| found.via != Via::Prefix)
}

fn witness(
    field: &'static str,
    text: &str,
    platform: Option<Taxonomy>,
    nomenclature: &Nomenclature,
) -> Option<Witness> {
    let taxonomy = nomenclature.taxonomy();
    let own = match field {
        "taricCode" | "eztCode" => taxonomy == Taxonomy::Taric,
        "taresCode" => taxonomy == Taxonomy::Tares,
        "ukgtCode" => taxonomy == Taxonomy::Ukgt,
        "platformCode.code" => platform? == taxonomy,
        _ => false,
    };
    let shared_digits = match field {
        _ if own => taxonomy.width(),
        "customsTariffCode" | "tolletatenCode" if taxonomy == Taxonomy::Taric => EU_SHARED_DIGITS,
        _ => SHARED_DIGITS,
    };
    if has_lost_a_zero(text, nomenclature) {
        return None;
    }
    let digits = normalize(text, shared_digits)?;
    let found = nomenclature.resolve(digits)?;
    let outdated = matches!(found.via, Via::Successor | Via::LivingParent);
    // A national list tells which eight digits exist; without one, the six that are known are what another tariff shares.
    let foreign_extension = !own && found.via == Via::Extension && nomenclature.contains(digits.prefix(SHARED_DIGITS));
    let code = if foreign_extension { digits.prefix(SHARED_DIGITS) } else { found.code };
    let named = matches!(found.via, Via::Listed | Via::Extension) || outdated;
    // A foreign line that this taxonomy does not have still shares the subheading.
    let shares = !own && code.digits() >= SHARED_DIGITS.min(digits.digits());
    let (rank, reason, confidence) = match (own, found.via) {
        (true, Via::Listed) => (1, Reason::Named, confidence::LISTED),
        (true, Via::Extension) => (1, Reason::Named, confidence::EXTENSION),
        (true, Via::Successor) => (1, Reason::Successor, confidence::OUTDATED),
        (true, Via::LivingParent) => (1, Reason::LivingParent, confidence::OUTDATED),
        (false, _) if outdated => (2, Reason::SharedDigits, confidence::OUTDATED * confidence::SHARED),
        (false, _) if named || shares => (2, Reason::SharedDigits, confidence::SHARED),
        (own, _) if code.digits() >= MIN_PREFIX_DIGITS => {
            (if own { 3 } else { 4 }, Reason::LongestPrefix, confidence::PREFIX)
        }
        _ => return None,
    };
    Some(Witness { field, code, rank, reason, confidence })
}

#[cfg(test)]
mod tests;
