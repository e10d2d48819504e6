use chrono::NaiveDate;

use super::*;
use crate::domain::nomenclature::{Builder, parse_harmonized, parse_national, parse_successors};
use crate::domain::product::PlatformCode;

fn nomenclature(taxonomy: Taxonomy, national: &str) -> Nomenclature {
    let text: String = "61 6109 610910 610990 6110 611020 85 8517 851713 851714 8518 01 0101 010121 22 2208"
        .split(' ')
        .map(|code| format!("{code}\tde {code}\ten {code}\n"))
        .collect();
    let mut faults = Vec::new();
    let mut builder = Builder::new(taxonomy, NaiveDate::from_ymd_opt(2026, 11, 1).expect("a date"));
    builder.harmonized("h", &parse_harmonized("h", &text, &mut faults), &mut faults);
    builder.successors(&parse_successors("s", "611099\t611020\n", &mut faults));
    builder.national(parse_national("n", national, taxonomy, &mut faults));
    let built = builder.build("h", &mut faults);
    assert_eq!(faults, []);
    built
}

/// Reads `taric=6109100010 ukgt=…` into the document's fields; `platform=TARIC:6109`.
fn codes(text: &str) -> CustomsCodes {
    let mut codes = CustomsCodes::default();
    for (field, value) in text.split_whitespace().filter_map(|part| part.split_once('=')) {
        let value = Some(value.to_owned());
        match field {
            "cust" => codes.customs_tariff_code = value,
            "taric" => codes.taric_code = value,
            "ezt" => codes.ezt_code = value,
            "tares" => codes.tares_code = value,
            "ukgt" => codes.ukgt_code = value,
            "toll" => codes.tolletaten_code = value,
            "platform" => {
                let (taxonomy, code) = value.as_deref().and_then(|v| v.split_once(':')).expect("taxonomy:code");
                let (taxonomy, code) = (Some(taxonomy.to_owned()), Some(code.to_owned()));
                codes.platform_code = Some(PlatformCode { code, taxonomy });
            }
            other => panic!("unknown field {other}"),
        }
    }
    codes
}

#[test]
fn codes_are_read_as_people_write_them() {
    for (text, width, wanted) in [
        ("6109 10 00", 10, Some("61091000")),
        ("6109.1000.10", 10, Some("6109100010")),
        ("6109-10-00-10-0", 10, Some("6109100010")),
        ("61091000100", 10, Some("6109100010")),
        ("6109.1000 911", 8, Some("61091000")),
        ("6109\u{a0}10", 10, Some("610910")),
        ("610910001234", 10, None),
        ("6109x", 10, None),
        ("6", 10, None),
        ("", 10, None),
        ("６１０９", 10, None),
    ] {
        assert_eq!(normalize(text, width), wanted.and_then(ClassCode::new), "{text}");
    }
}

#[test]
fn the_evidence_of_every_combination_is_in_the_table() {
    let national = "6109100010\t80\t\t\t1\t\t\t\ta\tb\n6109909900\t80\t\t\t1\t\t2020-01-01\t6109100010\ta\tb\n";
    let taxonomies = [
        nomenclature(Taxonomy::Taric, ""),
        nomenclature(Taxonomy::Tares, ""),
        nomenclature(Taxonomy::Ukgt, ""),
        nomenclature(Taxonomy::Taric, national),
    ];
    let (taric, tares, ukgt, deep) = (0, 1, 2, 3);
    // Taxonomy, codes, and the class with the field that decided and how many contradict it.
    for (taxonomy, given, wanted) in [
        (taric, "taric=6109100000", Some("610910 taricCode 0")),
        (taric, "taric=6109100010", Some("6109100010 taricCode 0")),
        (taric, "ezt=61091000105", Some("6109100010 eztCode 0")),
        (deep, "taric=6109100010", Some("6109100010 taricCode 0")),
        (deep, "taric=6109909900", Some("6109100010 taricCode 0")),
        (deep, "taric=6109100090", Some("610910 taricCode 0")),
        (taric, "taric=61", None),
        (taric, "taric=6100000000", None),
        (taric, "taric=6100000000 ukgt=610910", Some("610910 ukgtCode 0")),
        // A spreadsheet may have taken a zero away, or not.
        (taric, "taric=1012100", None),
        (taric, "taric=6109100", Some("610910 taricCode 0")),
        (taric, "taric=1012100 ukgt=010121", Some("010121 ukgtCode 0")),
        (tares, "tares=6109.1000", Some("610910 taresCode 0")),
        (tares, "tares=61091000911", Some("610910 taresCode 0")),
        (ukgt, "ukgt=6109100010", Some("6109100010 ukgtCode 0")),
        // A code of another kind speaks for the digits that all share.
        (tares, "ukgt=6109100010", Some("610910 ukgtCode 0")),
        (ukgt, "taric=6109100010", Some("610910 taricCode 0")),
        (taric, "cust=61091000", Some("610910 customsTariffCode 0")),
        (taric, "toll=61091090", Some("610910 tolletatenCode 0")),
        (deep, "cust=6109100010", Some("610910 customsTariffCode 0")),
        (taric, "platform=TARIC:6109100010", Some("6109100010 platformCode.code 0")),
        (tares, "platform=TARIC:6109100010", Some("610910 platformCode.code 0")),
        (taric, "platform=OTHER:6109100010", None),
        // The taxonomy's own code wins, and a conflict is told.
        (taric, "taric=610910 ukgt=851713", Some("610910 taricCode 1")),
        (ukgt, "taric=610910 ukgt=851713", Some("851713 ukgtCode 1")),
        (tares, "taric=610910 ukgt=851713", None),
        (tares, "taric=610910 ukgt=611020", None),
        (tares, "taric=610910 ukgt=610990", Some("6109 taricCode 2")),
        (taric, "taric=610910 ezt=610990", Some("6109 taricCode 2")),
        (tares, "cust=610910 taric=610910 ukgt=610910", Some("610910 customsTariffCode 0")),
        (tares, "cust=610910 taric=610910 ukgt=610990", Some("6109 customsTariffCode 3")),
        (tares, "cust=610910 taric=610990 ukgt=610910", Some("6109 customsTariffCode 3")),
        (tares, "cust=610990 taric=610910 ukgt=6109", Some("6109 customsTariffCode 2")),
        // What lies on one line agrees, and the deepest wins.
        (taric, "taric=6109 ukgt=6109100010", Some("610910 ukgtCode 0")),
        (taric, "taric=6109 ezt=610910", Some("610910 eztCode 0")),
        (taric, "taric=610910 ukgt=6109", Some("610910 taricCode 0")),
        // Outdated codes and codes that name nothing.
        (taric, "taric=6110990000", Some("611020 taricCode 0")),
        (tares, "taric=6110990000", Some("611020 taricCode 0")),
        (taric, "taric=8517990000", Some("8517 taricCode 0")),
        (taric, "taric=8517990000 ukgt=851713", Some("851713 ukgtCode 0")),
        (taric, "taric=8517990000 ukgt=610910", Some("610910 ukgtCode 1")),
        (tares, "taric=8517990000", Some("8517 taricCode 0")),
        (taric, "taric=8599990000", None),
        (taric, "taric=9999", None),
        (taric, "", None),
    ] {
        let found = evidence(&codes(given), &taxonomies[taxonomy]);
        let told = found.map(|found| format!("{} {} {}", found.code, found.field, found.conflicts.len()));
        assert_eq!(told.as_deref(), wanted, "{given} for {}", taxonomies[taxonomy].taxonomy());
    }
}

#[test]
fn a_conflict_lowers_the_confidence() {
    let taric = nomenclature(Taxonomy::Taric, "");
    let confidence = |given| evidence(&codes(given), &taric).map_or(0.0, |found| found.confidence);
    assert!(confidence("taric=610910") > confidence("ukgt=610910"));
    assert!(confidence("ukgt=610910") > confidence("taric=610910 ukgt=851713"));
    assert!(confidence("taric=610910 ukgt=851713") > confidence("taric=610910 ukgt=851713 tares=611020"));
}
