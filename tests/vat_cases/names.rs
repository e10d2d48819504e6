//! Plain names of everyday goods with their customs code: whether the class that follows decides the rate everywhere.

use chrono::NaiveDate;
use serde_json::json;

use vat_classification::domain::sides::{self, Facts};
use vat_classification::domain::vat::REST_SIDE;
use vat_classification::domain::{ClassCode, Details, ProductClass, Segment, Taxonomy};
use vat_classification::reference::Reference;

/// Class, language, name, and for each taxonomy `yes` or what stands in the way.
const NAMES: &str = include_str!("names.tsv");

/// Plain names that the table must have in each language.
const MIN_NAMES: usize = 150;

/// What stands in the way where no fact of a product would help.
const NO_FACT: &str = "-";
/// What stands in the way where a rule file does not know the rate.
const GAP: &str = "gap";

/// Sides that no word settles, the codes for which that holds, and why.
const WITHOUT_WORDS: [(u8, &[&str], &str); 18] = [
    (1, &["0101", "0106"], "which animals are for food or farming differs by country"),
    (1, &["0207", "0208", "0712", "0714"], "other goods of the code are gaps in any case"),
    (1, &["1806"], "household chocolate is told from other chocolate by its cocoa"),
    (1, &["3101"], "how the fertiliser was treated is not in its name"),
    (1, &["3501", "3502", "3504"], "casein, albumin and protein have one name as a food and as a glue"),
    (4, &["1901", "2106"], "food for medical purposes stands on a minister's list"),
    (4, &["3006", "3808"], "other goods of the code are gaps in any case"),
    (4, &["8714"], "parts are for whatever they fit"),
    (4, &["9021"], "a prosthesis is an aid for a disability or not by who wears it"),
    (6, &["3102", "3103", "3104", "3105", "3101"], "the weight of a unit decides"),
    (6, &["051191"], "roe for breeding is a gap in any case"),
    (9, &["0403", "1702", "1901", "2106"], "the sugar in it decides"),
    (9, &["1904"], "how sweet or salted it is decides"),
    (14, &["271111", "271119", "271129"], "gas for heating is a gap in any case"),
    (18, &["5805", "97"], "who sells it decides"),
    (19, &["190120"], "dough of bread is a gap in any case"),
    (41, &["4902"], "the register of the press is not in a name"),
    (54, &["0402", "0811", "1901", "1905", "2001", "2005", "2008", "2009", "2101"], "the sugar in it decides"),
];

/// `yes`, or the facts that are missing and the gaps, in order.
fn found(reference: &Reference, taxonomy: Taxonomy, code: ClassCode, facts: &Facts) -> String {
    let named = reference.vat.segments(taxonomy, code);
    let segments: Vec<(Segment, &[u8])> = named.iter().map(|named| (named.segment, named.parts)).collect();
    let class = ProductClass { code, segment: sides::settle(code, &segments, facts) };
    let day: NaiveDate = "2026-11-22".parse().expect("a day");
    let answer = reference.vat.sufficiency(reference.nomenclature(taxonomy), class, day, false);
    if answer.sufficient {
        return "yes".to_owned();
    }
    let open = answer.countries.iter().filter(|country| !country.sufficient).flat_map(|country| &country.rates);
    let mut missing: Vec<&str> =
        open.flat_map(|rate| rate.missing.into_iter().chain(rate.rate.is_none().then_some(GAP))).collect();
    missing.sort_unstable();
    missing.dedup();
    if missing.is_empty() { NO_FACT.to_owned() } else { missing.join(" ") }
}

#[test]
fn plain_names_of_everyday_goods_settle_what_the_law_lets_them() {
    let reference = super::reference();
    let mut wrong = Vec::new();
    let mut names = [0_usize; 2];
    for row in NAMES.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let cells: Vec<&str> = row.split('\t').collect();
        let [code, language, name, taric, tares, ukgt] = cells[..] else { panic!("{row} is not of the shape") };
        names[usize::from(language == "en")] += 1;
        let details = json!({"languageAttributes": {language: {"productName": name}}});
        let details: Details = serde_json::from_value(details).expect("details");
        let facts = Facts::of(&details);
        let code = ClassCode::new(code).expect("digits");
        let listed = Taxonomy::ALL.iter().all(|taxonomy| reference.nomenclature(*taxonomy).contains(code));
        let answers = [Taxonomy::Taric, Taxonomy::Tares, Taxonomy::Ukgt]
            .map(|taxonomy| found(&reference, taxonomy, code, &facts));
        if !listed || answers != [taric, tares, ukgt] {
            wrong.push(format!("{code}\t{language}\t{name}\t{}", answers.join("\t")));
        }
    }
    assert!(names.iter().all(|count| *count >= MIN_NAMES), "{names:?}");
    assert!(wrong.is_empty(), "found\n{}", wrong.join("\n"));
}

#[test]
fn every_side_has_words_or_a_reason_why_it_has_none() {
    let reference = super::reference();
    let day: NaiveDate = "2026-11-22".parse().expect("a day");
    let mut used = [false; WITHOUT_WORDS.len()];
    let mut wordless = Vec::new();
    for taxonomy in Taxonomy::ALL {
        let nomenclature = reference.nomenclature(taxonomy);
        let open = |code: &ClassCode| {
            code.digits() == 6 && !reference.vat.is_sufficient(nomenclature, ProductClass::plain(*code), day)
        };
        for code in nomenclature.codes().filter(open) {
            let segments = reference.vat.segments(taxonomy, code);
            let mut sides: Vec<u8> = segments.iter().flat_map(|named| named.parts.iter().copied()).collect();
            sides.sort_unstable();
            sides.dedup();
            sides.retain(|side| *side != REST_SIDE && !sides::has_words(code, *side));
            for side in sides {
                let is = |(known, under, _): &(u8, &[&str], &str)| {
                    *known == side && under.iter().any(|prefix| code.as_str().starts_with(prefix))
                };
                match WITHOUT_WORDS.iter().position(is) {
                    Some(reason) => used[reason] = true,
                    None => wordless.push(format!("{taxonomy} {code} {side:02}")),
                }
            }
        }
    }
    assert!(wordless.is_empty(), "no words and no reason\n{}", wordless.join("\n"));
    let idle: Vec<&str> =
        WITHOUT_WORDS.iter().zip(used).filter(|(_, used)| !used).map(|((.., reason), _)| *reason).collect();
    assert!(idle.is_empty(), "nothing is without words any more: {idle:?}");
}
