//! Numbers with their meaning, out of texts: `12,5 % vol`, `Saftgehalt 60 %`, `6 x 1,5 kg`, `8-10y`, `Gr. 128`.

use unicode_normalization::UnicodeNormalization;

/// A piece of a text, in lower case.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// `12`, `0,75`, `1.5`.
    Number(f64),
    /// Letters.
    Word(String),
    /// Any other character but white space.
    Sign(char),
}

use Token::{Number, Sign, Word};

/// Sizes of clothes by the body's length in centimetres, with the years for which they are made. 98 and 110 are sizes of
/// slim men too, 50 to 68 of men; 146 and 164 lie across a limit.
const SIZES: [(&[f64], f64, f64); 3] = [
    (&[74.0, 80.0, 86.0, 92.0, 104.0, 116.0, 122.0, 128.0, 134.0, 140.0], 0.0, 10.0),
    (&[152.0, 158.0], 11.0, 13.0),
    (&[170.0, 176.0], 14.0, 17.0),
];
/// Sizes by the body's length that men's clothes have too: for children under 11 where a text speaks of children.
const SMALL_SIZES: [f64; 6] = [50.0, 56.0, 62.0, 68.0, 98.0, 110.0];
/// Sizes of shoes that only children under 11 wear, by the European count.
const SMALL_SHOES: std::ops::RangeInclusive<f64> = 16.0..=33.0;
/// Sizes of shoes for children, by the European and the British count, with the lower rate wherever there is one: for
/// the British tax girls' court shoes end at 3, which is 35 1/2; above, heel and sex decide (Notice 714, 4.3).
const CHILDREN_SHOES: std::ops::RangeInclusive<f64> = 16.0..=35.5;
const BRITISH_CHILDREN_SHOES: std::ops::RangeInclusive<f64> = 0.0..=3.0;
/// Tokens between `Saftgehalt` and its number, at most.
const MAX_DISTANCE: usize = 3;
/// Years beyond which a number is no age of a child or of a wearer's size.
const MAX_YEARS: f64 = 20.0;
/// Largest size by the body's length.
const MAX_CHILD_SIZE: f64 = 188.0;
/// Months in a year.
const MONTHS: f64 = 12.0;
/// Grams in a kilogram.
const GRAMS: f64 = 1_000.0;
/// Millilitres in a litre.
const MILLILITRES: f64 = 1_000.0;
/// Per cent of a whole, centilitres in a litre, and litres in a hectolitre.
const WHOLE: f64 = 100.0;

/// Cuts a text into numbers, words and signs; `10kg` is a number and a word.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.nfc().flat_map(char::to_lowercase).collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let rest = &chars[at..];
        let run = |is: fn(&char) -> bool| rest.iter().take_while(|c| is(c)).count();
        let digits = run(char::is_ascii_digit);
        let letters = run(|c| c.is_alphabetic());
        if digits > 0 {
            let decimals = match rest.get(digits) {
                Some(',' | '.') => rest[digits + 1..].iter().take_while(|c| c.is_ascii_digit()).count(),
                _ => 0,
            };
            let length = if decimals > 0 { digits + 1 + decimals } else { digits };
            let number: String = rest[..length].iter().map(|c| if *c == ',' { '.' } else { *c }).collect();
            found.extend(number.parse().ok().map(Number));
            at += length;
        } else if letters > 0 {
            found.push(Word(rest[..letters].iter().collect()));
            at += letters;
        } else {
            found.extend((!rest[0].is_whitespace()).then_some(Sign(rest[0])));
            at += 1;
        }
    }
    found
}

fn number(token: Option<&Token>) -> Option<f64> {
    match token {
        Some(Number(number)) => Some(*number),
        _ => None,
    }
}

fn word(token: Option<&Token>) -> &str {
    match token {
        Some(Word(word)) => word,
        _ => "",
    }
}

/// Alcohol in per cent by volume: `12,5 % vol`, `5% ABV`, `vol. 11 %`.
pub(super) fn alcohol(text: &[Token]) -> Vec<f64> {
    let at = |index: usize| {
        let per_cent = number(text.get(index)).filter(|number| *number <= WHOLE)?;
        let sign = usize::from(text.get(index + 1) == Some(&Sign('%')));
        let unit = word(text.get(index + 1 + sign));
        let named = matches!(unit, "vol" | "abv" | "alkohol" | "alcohol" | "alc" | "alk");
        let before = index.checked_sub(1).map_or("", |before| word(text.get(before)));
        let led = sign == 1 && matches!(before, "alc" | "alk" | "abv" | "alkohol" | "alkoholgehalt");
        ((named && (sign == 1 || unit == "vol" || unit == "abv")) || led).then_some(per_cent)
    };
    (0..text.len()).filter_map(at).collect()
}

/// Juice in per cent: `60 % Saft`, `Fruchtgehalt: 60 %`, `60% juice`.
pub(super) fn juice(text: &[Token]) -> Vec<f64> {
    let is_juice =
        |word: &str| word.ends_with("saft") || word.ends_with("gehalt") || matches!(word, "juice" | "juices");
    let is_content = |word: &str| matches!(word, "saftgehalt" | "fruchtgehalt" | "fruchtsaftgehalt");
    let at = |index: usize| {
        let per_cent = number(text.get(index)).filter(|number| *number <= WHOLE)?;
        if text.get(index + 1) != Some(&Sign('%')) {
            return None;
        }
        let after = (2..=MAX_DISTANCE)
            .any(|step| is_juice(word(text.get(index + step))) && !word(text.get(index + step)).starts_with("alkohol"));
        let before =
            (1..=MAX_DISTANCE).any(|step| index.checked_sub(step).is_some_and(|at| is_content(word(text.get(at)))));
        // `Apfelsaft 100 %`, but not `Saft 20 % mehr Inhalt`.
        let whole = per_cent == WHOLE && index.checked_sub(1).is_some_and(|at| is_juice(word(text.get(at))));
        (after || before || whole).then_some(per_cent)
    };
    (0..text.len()).filter_map(at).collect()
}

/// Grams of sugars, as labels tell them: `davon Zucker 4,5 g`, `of which sugars: 12 g`.
pub(super) fn sugars(text: &[Token]) -> Vec<f64> {
    let at = |index: usize| {
        let of = matches!(word(text.get(index)), "davon" | "which");
        let named = of && matches!(word(text.get(index + 1)), "zucker" | "sugar" | "sugars");
        let colon = usize::from(text.get(index + 2) == Some(&Sign(':')));
        let grams = number(text.get(index + 2 + colon))?;
        (named && word(text.get(index + 3 + colon)) == "g").then_some(grams)
    };
    (0..text.len()).filter_map(at).collect()
}

/// An amount in a unit of weight, as kilograms.
pub(super) fn kilograms(amount: f64, unit: &str) -> Option<f64> {
    match unit {
        "kg" | "kilo" | "kilogramm" => Some(amount),
        "g" | "gr" | "gramm" => Some(amount / GRAMS),
        "t" => Some(amount * GRAMS),
        _ => None,
    }
}

/// An amount in a unit of volume, as litres.
pub(super) fn litres(amount: f64, unit: &str) -> Option<f64> {
    match unit {
        "l" | "ltr" | "liter" | "litre" | "litres" => Some(amount),
        "cl" => Some(amount / WHOLE),
        "ml" => Some(amount / MILLILITRES),
        "hl" => Some(amount * WHOLE),
        _ => None,
    }
}

/// Litres of one unit: of `6 x 33 cl` one holds 0.33.
pub(super) fn volumes(text: &[Token]) -> Vec<f64> {
    let at = |index: usize| litres(number(text.get(index))?, word(text.get(index + 1)));
    (0..text.len()).filter_map(at).collect()
}

/// Kilograms of one unit: of `6 x 1,5 kg` one weighs 1.5.
pub(super) fn weights(text: &[Token]) -> Vec<f64> {
    let at = |index: usize| kilograms(number(text.get(index))?, word(text.get(index + 1)));
    (0..text.len()).filter_map(at).collect()
}

/// Years of the youngest and the oldest wearer, for each age and size that a text names; `children` where the product
/// speaks of them.
pub(super) fn ages(text: &[Token], children: bool) -> Vec<(f64, f64)> {
    let warranty = |token: &Token| matches!(token, Word(word) if ["garantie", "gewährleistung", "warranty", "guarantee"].iter().any(|no| word.starts_with(no)));
    if text.iter().any(warranty) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut index = 0;
    while index < text.len() {
        let Some(first) = number(text.get(index)) else {
            index += 1;
            continue;
        };
        let ranged = matches!(text.get(index + 1), Some(Sign('-' | '–' | '/')))
            || matches!(word(text.get(index + 1)), "to" | "bis");
        let last = if ranged { number(text.get(index + 2)) } else { None };
        let unit = word(text.get(index + if last.is_some() { 3 } else { 1 }));
        let lead = lead(text, index);
        found.extend(age(first, last, unit, lead).or_else(|| size(first, last, (unit, lead), children)));
        index += if last.is_some() { 3 } else { 1 };
    }
    found
}

/// The word before a number, over a point or a colon.
fn lead(text: &[Token], index: usize) -> &str {
    let before = |steps: usize| index.checked_sub(steps).and_then(|at| text.get(at));
    match before(1) {
        Some(Sign('.' | ':')) => word(before(2)),
        token => word(token),
    }
}

fn age(first: f64, last: Option<f64>, unit: &str, lead: &str) -> Option<(f64, f64)> {
    let years = matches!(unit, "years" | "year" | "yrs" | "yr" | "y" | "jahre" | "jahren" | "jahr" | "j");
    let months = matches!(unit, "months" | "month" | "mths" | "mth" | "monate" | "monaten" | "monat" | "m")
        && (last.is_some() || unit != "m");
    let led = matches!(lead, "age" | "ages" | "aged" | "alter");
    let scale = if months { MONTHS } else { 1.0 };
    let (first, last) = (first / scale, last.map(|last| last / scale));
    // `from 3 years` names no oldest wearer.
    let open = last.is_none() && matches!(lead, "ab" | "from" | "seit" | "über" | "over");
    let ordered = last.is_none_or(|last| first < last);
    let known = (years || months || led) && ordered && first <= MAX_YEARS;
    (known && (!open || first > super::MAX_OLDER_YEARS)).then_some((first, last.unwrap_or(first)))
}

/// Whether the word before a number makes it a size.
fn marks_size(lead: &str) -> bool {
    matches!(lead, "gr" | "größe" | "grösse" | "groesse" | "size" | "sizes" | "größen")
}

/// Sizes of shoes that only children under 11 wear, as years of their wearers: `Gr. 28`, `EU 30`, `Größe 24-29`; with
/// `children`, where the product speaks of them, those of their shoes: `Gr. 35`, `UK 2`.
pub(super) fn shoes(text: &[Token], children: bool) -> Vec<(f64, f64)> {
    let at = |index: usize| {
        let first = number(text.get(index))?;
        let ranged = matches!(text.get(index + 1), Some(Sign('-' | '–' | '/')));
        let last = if ranged { number(text.get(index + 2)) } else { None };
        let unit = word(text.get(index + if last.is_some() { 3 } else { 1 }));
        let lead = lead(text, index);
        let european = (marks_size(lead) || lead == "eu") && !matches!(unit, "cm" | "mm" | "uk" | "us");
        let british = lead == "uk" || (marks_size(lead) && unit == "uk");
        let sizes = match (european, british, children) {
            (true, _, false) => SMALL_SHOES,
            (true, _, true) => CHILDREN_SHOES,
            (false, true, true) => BRITISH_CHILDREN_SHOES,
            _ => return None,
        };
        let small = sizes.contains(&first) && last.is_none_or(|last| first < last && sizes.contains(&last));
        small.then_some((0.0, super::MAX_YOUNG_YEARS))
    };
    (0..text.len()).filter_map(at).collect()
}

fn size(first: f64, last: Option<f64>, (unit, lead): (&str, &str), children: bool) -> Option<(f64, f64)> {
    let marked = marks_size(lead);
    let alone = matches!(unit, "" | "cm" | "für" | "for" | "kinder" | "mädchen" | "jungen");
    let of = |size: f64| {
        let known = SIZES.iter().find(|(sizes, ..)| sizes.contains(&size));
        let small = (children && SMALL_SIZES.contains(&size)).then_some((0.0, super::MAX_YOUNG_YEARS));
        known.map(|(_, youngest, oldest)| (*youngest, *oldest)).or(small)
    };
    let found = of(first).or_else(|| of(last?)).filter(|_| marked && alone)?;
    // Of two sizes both must be of the same years; one that nobody else has speaks for the other.
    let same =
        last.is_none_or(|last| first < last && last <= MAX_CHILD_SIZE && of(last).is_none_or(|other| other == found));
    same.then_some(found)
}
