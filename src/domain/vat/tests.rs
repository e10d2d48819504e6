use std::collections::BTreeSet;

use super::*;
use crate::domain::nomenclature::{Builder, parse_harmonized};

const SIDES: &str = "01\tbegünstigt\tfavoured\n02\tsonstige\tothers\n03\tKinder\tchildren's\n";

/// Country rules of a small world; `from` is always the same.
const GB: &str = "\
completeness\ttest
rate\tstandard\t20\t2011-01-04\t\tlaw
rate\tstandard\t17.5\t2000-01-01\t2011-01-03\tlaw
rate\tzero\t0\t2000-01-01\t\tlaw
rate\treduced\t5\t2000-01-01\t\tlaw
rule\t02 0401-0402\twhole\t00-000\tzero\tFOOD\tfood\t2000-01-01\t\tlaw
rule\t61\tpartial\t03-000\tzero\tCHILDREN\tsmall\t2000-01-01\t\tlaw
rule\t6111\twhole\t00-000\tzero\tCHILDREN\tbabies\t2000-01-01\t\tlaw
rule\t6115\twhole\t00-000\tstandard\tEXCLUDED\thosiery\t2000-01-01\t\tlaw
rule\t85\twhole\t00-000\treduced\tENERGY\tall\t2000-01-01\t2010-12-31\tlaw
rule\t85171310\twhole\t00-000\tzero\tAIDS\tdeep\t2000-01-01\t\tlaw
rule\t90\twhole\t00-000\treduced\tAIDS\tall\t2000-01-01\t\tlaw
rule\t9001\tpartial\t01-000\tzero\tAIDS\tsome\t2000-01-01\t\tlaw
rule\t9001\tpartial\t03-001\tstandard\tAIDS\tdetail\t2000-01-01\t\tlaw
rule\t9003\twhole\t00-000\tzero\tAIDS\tthree\t2000-01-01\t\tlaw
rule\t9004\twhole\t00-000\tzero\tAIDS\tfour\t2000-01-01\t\tlaw
rule\t9005\twhole\t00-000\tzero\tAIDS\tfive\t2000-01-01\t2000-12-31\tlaw
rule\t96\twhole\t00-000\treduced\tAIDS\tbase\t2000-01-01\t\tlaw
rule\t9601 9602\twhole\t00-000\tzero\tAIDS\tall headings\t2000-01-01\t\tlaw
";

fn date(text: &str) -> NaiveDate {
    text.parse().expect("a date")
}

fn code(text: &str) -> ClassCode {
    ClassCode::new(text).expect("digits")
}

fn world() -> (Nomenclature, VatRules) {
    let codes = "02 0201 020110 04 0401 040110 0402 040210 0403 040310 61 6109 610910 6111 611120 6115 611510 85 8517 \
        851713 851714 90 9001 900110 900120 9003 900311 9004 900410 96 9601 960110 9602 960200";
    let text: String = codes.split_whitespace().map(|code| format!("{code}\tde\ten\n")).collect();
    let mut faults = Vec::new();
    let mut builder = Builder::new(Taxonomy::Ukgt, date("2026-11-01"));
    builder.harmonized("h", &parse_harmonized("h", &text, &mut faults), &mut faults);
    let nomenclature = builder.build("h", &mut faults);
    let gb = parse_country("GB", "vat/GB.tsv", GB, &[], &mut faults);
    let sides = parse_sides("s", SIDES, &mut faults);
    assert_eq!(faults, []);
    let mut missing = Vec::new();
    let rules = VatRules::new(vec![gb], sides, &mut missing);
    assert_eq!(missing.len(), 29, "all other countries are missing");
    (nomenclature, rules)
}

#[test]
fn a_class_is_sufficient_when_all_its_goods_have_one_rate() {
    let (nomenclature, rules) = world();
    // Class, day, the rates of its goods.
    for (class, day, wanted) in [
        ("020110-00-000", "2026-11-01", "0"),
        ("02-00-000", "2026-11-01", "0"),
        ("0401-00-000", "2026-11-01", "0"),
        ("04-00-000", "2026-11-01", "0 20"),
        ("0403-00-000", "2026-11-01", "20"),
        ("0403-00-000", "2010-11-01", "17.5"),
        // A partial row leaves the plain class open; its segment settles it.
        ("610910-00-000", "2026-11-01", "0 20"),
        ("610910-03-000", "2026-11-01", "0"),
        ("610910-02-000", "2026-11-01", "20"),
        ("610910-01-000", "2026-11-01", "20"),
        // A longer prefix takes the place of a shorter one.
        ("611120-00-000", "2026-11-01", "0"),
        ("6115-00-000", "2026-11-01", "20"),
        ("61-03-000", "2026-11-01", "0 20"),
        ("61-02-000", "2026-11-01", "20 0"),
        // A row that has ended says nothing; a row deeper than the table splits the class.
        ("851714-00-000", "2010-11-01", "5"),
        ("851714-00-000", "2026-11-01", "20"),
        ("851713-00-000", "2026-11-01", "20 0"),
        ("85171310-00-000", "2026-11-01", "0"),
        ("8517131010-00-000", "2026-11-01", "0"),
        ("85171320-00-000", "2026-11-01", "20"),
        // The rest of a partial row bears what stands behind it.
        ("900110-00-000", "2026-11-01", "0 20 5"),
        ("900110-01-000", "2026-11-01", "0"),
        ("900110-02-000", "2026-11-01", "5"),
        ("900110-03-000", "2026-11-01", "20 5"),
        ("900110-03-001", "2026-11-01", "20"),
        ("900110-03-002", "2026-11-01", "5"),
        ("9003-00-000", "2026-11-01", "0"),
        // Where every heading has its own row, the row of the chapter reaches nothing.
        ("96-00-000", "2026-11-01", "0"),
        ("90-00-000", "2026-11-01", "0 20 5 0"),
        // Before the first rate nothing is known.
        ("9003-00-000", "1999-11-01", ""),
    ] {
        let class: ProductClass = class.parse().expect("a class");
        let answer = rules.sufficiency(&nomenclature, class, date(day));
        let country = &answer.countries[0];
        let rates: Vec<String> = country.rates.iter().map(|rate| rate.rate.to_string()).collect();
        let distinct: BTreeSet<&str> = rates.iter().map(String::as_str).collect();
        let wanted: BTreeSet<&str> = wanted.split_whitespace().collect();
        assert_eq!(distinct, wanted, "{class} on {day}");
        assert_eq!(country.sufficient, wanted.len() == 1, "{class} on {day}");
        assert_eq!(country.rate.is_some(), country.sufficient, "{class} on {day}");
        assert_eq!(answer.sufficient, rules.is_sufficient(&nomenclature, class, date(day)), "{class} on {day}");
    }
}

#[test]
fn the_answer_names_the_rule_its_class_and_its_days() {
    let (nomenclature, rules) = world();
    let class = "610910-00-000".parse().expect("a class");
    let answer = serde_json::to_value(rules.sufficiency(&nomenclature, class, date("2026-11-01"))).expect("JSON");
    assert_eq!(
        answer,
        serde_json::json!({"sufficient": false, "countries": [{
            "country": "GB", "sufficient": false, "rate": null, "completeness": "test",
            "rates": [
                {"rate": 0, "category": "CHILDREN", "goods": "small", "productClass": "61-03-000", "source": "law",
                    "validFrom": "2000-01-01"},
                {"rate": 20, "category": "STANDARD", "goods": "Goods for which no rule names another rate",
                    "productClass": "610910-00-000", "source": "law", "validFrom": "2011-01-04"},
            ],
        }]})
    );
}

#[test]
fn the_segments_of_a_code_are_those_of_its_partial_rows() {
    let (_, rules) = world();
    for (text, wanted) in [
        ("610910", "02-000 03-000"),
        ("61", "02-000 03-000"),
        ("6111", ""),
        ("9001", "01-000 02-000 03-001"),
        ("90", "01-000 02-000 03-001"),
        ("9003", ""),
        ("02", ""),
    ] {
        let found = rules.segments(Taxonomy::Ukgt, code(text));
        let told: Vec<String> = found.iter().map(|named| named.segment.to_string()).collect();
        assert_eq!(told.join(" "), wanted, "{text}");
    }
    let defined =
        |text, segment| rules.defines_segment(Taxonomy::Ukgt, code(text), Segment::parse(segment).expect("a segment"));
    assert!(defined("6111", "00-000") && defined("610910", "03-000") && defined("610910", "02-000"));
    assert!(!defined("6111", "03-000") && !defined("610910", "01-000") && !defined("6109", "03-001"));
}

#[test]
fn mistakes_in_rules_are_told_by_file_and_line() {
    let text = "rate\tstandard\t20\t2011-01-04\nrate\tstandard\t120\t2011-01-04\t\tlaw\n\
        rate\tzero\t0\t2011-01-04\t2010-01-01\tlaw\nrule\t02x\twhole\t00-000\tzero\tFOOD\tg\t2011-01-04\t\tl\n\
        rule\t02\twhole\t01-000\tzero\tFOOD\tg\t2011-01-04\t\tl\nrule\t02\twhole\t00-000\tzero\tFUD\tg\t2011-01-04\t\tl\n\
        rule\t0401-02\twhole\t00-000\tzero\tFOOD\tg\t2011-01-04\t\tl\nlike\tCH\n\
        rule\t02 02\twhole\t00-000\tzero\tFOOD\tg\t2011-01-04\t\tl\nwhat\n";
    let mut faults = Vec::new();
    parse_country("GB", "vat/GB.tsv", text, &[], &mut faults);
    let told: Vec<String> = faults.iter().map(|fault| fault.to_string().chars().take(45).collect()).collect();
    assert_eq!(
        told,
        [
            "vat/GB.tsv:1: `rate` with 4 cells is no line ",
            "vat/GB.tsv:2: `120` is no per cent from 0 to ",
            "vat/GB.tsv:3: 2010-01-01 is before 2011-01-04",
            "vat/GB.tsv:4: `02x` is neither a code of 2, 4",
            "vat/GB.tsv:5: `whole` with 01-000: whole goes",
            "vat/GB.tsv:6: `FUD` is no category; there are",
            "vat/GB.tsv:7: `0401-02` is neither a code of ",
            "vat/GB.tsv:8: there are no rules for CH, or t",
            "vat/GB.tsv:10: `what` with 1 cells is no line",
            "vat/GB.tsv: a line `completeness` is missing",
            "vat/GB.tsv: there is no rate `standard`",
            "vat/GB.tsv:4: there is no rate `zero`",
            "vat/GB.tsv:7: there is no rate `zero`",
            "vat/GB.tsv:9: there is no rate `zero`",
            "vat/GB.tsv:9: 02 has a row for these days alr",
        ]
    );
}

#[test]
fn per_cents_are_exact() {
    for (text, wanted) in
        [("19", Some("19")), ("2.1", Some("2.1")), ("25.5", Some("25.5")), ("0", Some("0")), ("13.55", Some("13.55"))]
    {
        assert_eq!(Percent::parse(text).map(|percent| percent.to_string()).as_deref(), wanted, "{text}");
    }
    for bad in ["", ".", "1.", ".5", "101", "-1", "1,5", "1.234", "abc", "+5"] {
        assert_eq!(Percent::parse(bad), None, "{bad}");
    }
}
