//! Known VAT cases, looked up in the laws and in the Commission's database of rates, not derived from the rules here;
//! and the plain names of everyday goods.

mod names;

use std::path::Path;

use chrono::NaiveDate;

use vat_classification::domain::{ProductClass, Taxonomy};
use vat_classification::reference::Reference;

/// Country, class, day, per cent (`-` where the class does not decide it), the goods and where the rate is from.
const CASES: &str = include_str!("known.txt");

/// Cases that the table must have, so that none gets lost.
const MIN_CASES: usize = 800;

fn reference() -> Reference {
    match Reference::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("models")) {
        Ok(reference) => reference,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn known_cases_have_the_rate_of_the_law() {
    let reference = reference();
    let mut wrong = Vec::new();
    let cases: Vec<&str> = CASES.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    assert!(cases.len() >= MIN_CASES);
    for case in cases {
        let mut cells = case.split_whitespace();
        let mut cell = || cells.next().expect("a cell");
        let (country, class, day, wanted) = (cell(), cell(), cell(), cell());
        let class: ProductClass = class.parse().expect("a class");
        let day: NaiveDate = day.parse().expect("a day");
        let taxonomy = Taxonomy::ALL.into_iter().find(|taxonomy| taxonomy.countries().contains(&country));
        let taxonomy = taxonomy.expect("a supported country");
        if !reference.nomenclature(taxonomy).contains(class.code) {
            wrong.push(format!("{case}: there is no such class"));
            continue;
        }
        if !reference.vat.defines_segment(taxonomy, class.code, class.segment) {
            wrong.push(format!("{case}: the class has no such segment"));
            continue;
        }
        let answer = reference.vat.sufficiency(reference.nomenclature(taxonomy), class, day, false);
        let found = answer.countries.iter().find(|found| found.country == country).expect("an answer");
        let rate = found.rate.map_or_else(|| "-".to_owned(), |rate| rate.to_string());
        if rate != wanted {
            wrong.push(format!("{case}: found {rate}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn both_ways_to_ask_for_sufficiency_agree_for_every_class() {
    let reference = reference();
    let day = "2026-11-01".parse().expect("a day");
    for taxonomy in Taxonomy::ALL {
        let nomenclature = reference.nomenclature(taxonomy);
        for code in nomenclature.codes() {
            let class = ProductClass::plain(code);
            let full = reference.vat.sufficiency(nomenclature, class, day, false).sufficient;
            assert_eq!(reference.vat.is_sufficient(nomenclature, class, day), full, "{taxonomy} {class}");
        }
    }
}

#[test]
fn every_country_says_how_complete_its_rules_are() {
    let reference = reference();
    let told: Vec<(&str, &str)> = reference.vat.completeness().collect();
    assert_eq!(told.len(), 30);
    assert!(told.iter().all(|(_, text)| text.len() > 20), "{told:?}");
}
