//! Which side of a partial VAT rule a product is on, where its own words leave no doubt.
//!
//! Goods that share a code and differ for VAT are told apart by the segment of their class (see [`crate::domain::vat`]).
//! A customs code or a classifier cannot tell it, a name sometimes can: a tampon is for menstrual hygiene, whatever else
//! heading 9619 holds. Only words that mean one side are in the table. `Kinder`, `girls` and `baby` are not: clothes for
//! children have the lower rate up to an age that differs by country, and baby blue and baby alpaca are for adults too.
//! Words of two sides, or of none, leave the plain class.

use crate::domain::vat::REST_SIDE;
use crate::domain::{ClassCode, Segment};

/// The side of goods for children under 11 and babies.
const CHILDREN: u8 = 3;
/// The side of goods for children of 11 to 13.
const OLDER_CHILDREN: u8 = 35;
/// Years up to which every country with a rate for children's clothes takes in the clothes of that age.
const MAX_YEARS: u32 = 10;
/// The same in months, as clothes for babies count them.
const MAX_MONTHS: u32 = 36;
/// Chapters of clothes, shoes and hats.
const CLOTHES: &[&str] = &["61", "62", "64", "65"];

/// Words that mean a side, for goods of certain codes.
struct Words {
    side: u8,
    /// Prefixes of the codes for which the words mean that side.
    under: &'static [&'static str],
    /// Words, or several with spaces between; a star stands for any end of a word.
    says: &'static [&'static str],
}

const TABLE: &[Words] = &[
    Words {
        side: 13,
        under: &["9619", "392490", "401490"],
        says: &[
            "tampon*",
            "damenbinde*",
            "monatsbinde*",
            "slipeinlage*",
            "menstruationstasse*",
            "menstruationsschwamm*",
            "periodenslip*",
            "periodenunterwäsche",
            "menstrual cup*",
            "menstrual pad*",
            "period cup*",
            "period pants",
            "period underwear",
            "sanitary towel*",
            "sanitary pad*",
            "sanitary napkin*",
            "panty liner*",
        ],
    },
    Words {
        side: 13,
        under: &["6108", "6208"],
        says: &[
            "periodenslip*",
            "periodenunterwäsche",
            "menstruationsslip*",
            "menstruationsunterwäsche",
            "period pants",
            "period underwear",
            "period knickers",
            "menstrual underwear",
        ],
    },
    Words {
        side: CHILDREN,
        under: &["9619"],
        says: &["babywindel*", "baby nappies", "baby nappy", "baby diaper*", "babies nappies", "windeln baby*"],
    },
    Words { side: 4, under: &["9619"], says: &["inkontinenz*", "incontinence"] },
    Words {
        side: 26,
        under: &["220299"],
        says: &[
            "haferdrink*",
            "hafermilch",
            "sojadrink*",
            "sojamilch",
            "mandeldrink*",
            "mandelmilch",
            "reisdrink*",
            "oat drink*",
            "oat milk",
            "soya drink*",
            "soya milk",
            "soy milk",
            "almond drink*",
            "almond milk",
            "rice drink*",
            "rice milk",
        ],
    },
    Words { side: 16, under: &["8523"], says: &["hörbuch", "hörbücher", "audiobook*", "audio book*"] },
    Words { side: 25, under: &["854143"], says: &["balkonkraftwerk*", "balkonsolar*", "balcony power plant*"] },
    Words {
        side: CHILDREN,
        under: &["940180"],
        says: &["kinderautositz*", "autokindersitz*", "babyautositz*", "child car seat*", "baby car seat*"],
    },
    Words {
        side: 7,
        under: &["650610"],
        says: &[
            "motorradhelm*",
            "fahrradhelm*",
            "motorcycle helmet*",
            "bicycle helmet*",
            "cycle helmet*",
            "bike helmet*",
        ],
    },
    Words {
        side: CHILDREN,
        under: CLOTHES,
        says: &["säugling*", "neugeborene*", "newborn*", "babybody*", "babystrampler*", "babyschuh*", "babymütze*"],
    },
];

/// Words that say that clothes are for adults.
const ADULTS: &[&str] =
    &["herren*", "damen*", "erwachsene*", "mens", "men", "womens", "women", "ladies", "adult", "adults"];

/// Words that leave open whether clothes are for adults, beside words that say so.
const YOUNG: &[&str] = &[
    "kind",
    "kinder*",
    "kids",
    "kid",
    "child*",
    "boy*",
    "girl*",
    "jungen*",
    "mädchen*",
    "baby*",
    "babies",
    "toddler*",
    "infant*",
    "junior*",
    "teen*",
    "jugend*",
    "schul*",
    "school*",
    "säugling*",
    "neugeborene*",
    "newborn*",
    "family",
    "familie*",
    "partnerlook",
    "puppe*",
    "doll*",
];

/// Words beside which a number of years is not the age of a wearer.
const NO_AGE: &[&str] = &["garantie*", "gewährleistung*", "warranty", "guarantee*"];

/// The segment of a class that its texts settle; the plain one when they do not.
///
/// `segments` are those that the rules define for the code, `texts` the names and tags of the product in any language.
pub fn settle<'a>(code: ClassCode, segments: &[Segment], texts: impl Iterator<Item = &'a str>) -> Segment {
    let under = |prefixes: &[&str]| prefixes.iter().any(|prefix| code.as_str().starts_with(prefix));
    let clothes = under(CLOTHES);
    if segments.is_empty() || !(clothes || TABLE.iter().any(|words| under(words.under))) {
        return Segment::PLAIN;
    }
    let said: Vec<Vec<String>> = texts.map(words_of).collect();
    let says = |patterns: &[&str]| said.iter().any(|words| patterns.iter().any(|pattern| occurs(pattern, words)));
    let mut sides: Vec<u8> =
        TABLE.iter().filter(|words| under(words.under) && says(words.says)).map(|words| words.side).collect();
    if clothes && !says(NO_AGE) && wearer_is_young(&said) {
        sides.push(CHILDREN);
    }
    let adults = clothes && says(ADULTS);
    // Beside goods for children there must be no third kind of goods, on whose side the product might be.
    let only_children = segments.iter().all(|segment| [CHILDREN, OLDER_CHILDREN, REST_SIDE].contains(&segment.side));
    if adults && only_children && sides.is_empty() && !says(YOUNG) {
        sides.push(REST_SIDE);
    }
    sides.sort_unstable();
    sides.dedup();
    let contradicted = adults && sides.contains(&CHILDREN);
    let segment = match sides.as_slice() {
        [side] if !contradicted => Segment { side: *side, detail: 0 },
        _ => Segment::PLAIN,
    };
    if segments.contains(&segment) { segment } else { Segment::PLAIN }
}

/// The words of a text in lower case, with `men's` as one word.
fn words_of(text: &str) -> Vec<String> {
    let plain: String = text.chars().filter(|c| !matches!(c, '\'' | '\u{2019}')).flat_map(char::to_lowercase).collect();
    plain.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Whether the words of a pattern stand one after the other.
fn occurs(pattern: &str, words: &[String]) -> bool {
    let is = |wanted: &str, word: &String| match wanted.strip_suffix('*') {
        Some(beginning) => word.starts_with(beginning),
        None => word == wanted,
    };
    let length = pattern.split(' ').count();
    words.windows(length).any(|window| pattern.split(' ').zip(window).all(|(wanted, word)| is(wanted, word)))
}

/// Whether the texts name ages such as `age 3-4` or `6-9 months`, and none above the limit.
fn wearer_is_young(said: &[Vec<String>]) -> bool {
    let mut young = false;
    for words in said {
        for at in 0..words.len().saturating_sub(1) {
            let number = |at: usize| words.get(at).and_then(|word| word.parse::<u32>().ok());
            let (Some(first), Some(last)) = (number(at), number(at + 1)) else { continue };
            let before = at.checked_sub(1).map_or("", |before| words[before].as_str());
            let after = words.get(at + 2).map_or("", String::as_str);
            let limit = match (before, after) {
                (_, "years" | "year" | "yrs" | "jahre" | "jahren") => MAX_YEARS,
                (_, "months" | "mths" | "monate" | "monaten") => MAX_MONTHS,
                ("age" | "ages" | "aged" | "alter", _) => MAX_YEARS,
                _ => continue,
            };
            if first >= last || last > limit {
                return false;
            }
            young = true;
        }
    }
    young
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_settle_a_side_only_where_they_leave_no_doubt() {
        let segments = |text: &str| -> Vec<Segment> { text.split(' ').filter_map(Segment::parse).collect() };
        let (clothes, hygiene) = ("02-000 03-000 35-000", "02-000 03-000 04-000 13-000");
        for (code, defined, texts, wanted) in [
            ("961900", hygiene, "Tampons Super, 32 Stück", "13-000"),
            ("961900", hygiene, "Always sanitary towels with wings", "13-000"),
            ("961900", hygiene, "Babywindeln Gr. 4", "03-000"),
            ("961900", hygiene, "Inkontinenzeinlagen für Männer", "04-000"),
            ("961900", hygiene, "Windeln Gr. 4", "00-000"),
            ("961900", hygiene, "Slipeinlagen bei Inkontinenz", "00-000"),
            ("961900", "02-000 13-000", "Babywindeln Gr. 4", "00-000"),
            ("961900", "", "Tampons", "00-000"),
            ("610821", "02-000 03-000 13-000", "Period pants, black", "13-000"),
            ("610821", "02-000 03-000 13-000", "Damen Slip schwarz", "00-000"),
            ("610910", clothes, "Herren T-Shirt", "02-000"),
            ("610910", clothes, "Men\u{2019}s crew neck tee", "02-000"),
            ("610910", clothes, "Damenshirt", "02-000"),
            ("610910", clothes, "Damen und Mädchen Shirt", "00-000"),
            ("610910", clothes, "Damen Shirt|Kinder", "00-000"),
            ("610910", clothes, "T-Shirt Kinder", "00-000"),
            ("610910", clothes, "T-shirt baby blue", "00-000"),
            ("610910", clothes, "Girls' T-shirt age 3-4", "03-000"),
            ("610910", clothes, "T-shirt 6-9 months", "03-000"),
            ("610910", clothes, "T-Shirt Mädchen 5-6 Jahre", "03-000"),
            ("610910", clothes, "T-shirt 3-4 years, 13-14 years", "00-000"),
            ("610910", clothes, "Ladies T-shirt, age 3-4", "00-000"),
            ("610910", clothes, "T-shirt, warranty 2-3 years", "00-000"),
            ("640391", "02-000 03-000 07-000", "Damen Stiefel", "00-000"),
            ("650610", "02-000 03-000 07-000", "Motorradhelm matt", "07-000"),
            ("220299", "01-000 02-000 26-000", "Bio Haferdrink ungesüßt 1 l", "26-000"),
            ("220299", "01-000 02-000 26-000", "Limonade Hafer", "00-000"),
            ("852349", "02-000 16-000", "Hörbuch auf 6 CDs", "16-000"),
            ("852349", "02-000 16-000", "Hörspiel", "00-000"),
            ("854143", "02-000 25-000", "Balkonkraftwerk 800 W", "25-000"),
            ("854143", "02-000 25-000", "Solarmodul 400 W", "00-000"),
            ("090121", "02-000 03-000", "Kaffee für Damen", "00-000"),
        ] {
            let code = ClassCode::new(code).expect("digits");
            let found = settle(code, &segments(defined), texts.split('|'));
            assert_eq!(found.to_string(), wanted, "{code} {texts}");
        }
    }
}
