use std::collections::BTreeSet;

use super::*;
use crate::domain::ProductClass;
use crate::domain::nomenclature::{Builder, parse_harmonized};

const SIDES: &str = "01\t-\tkind\tbegünstigt\tfavoured\n02\t-\t-\tsonstige\tothers\n\
    03\t-\tage\tKinder\tchildren's\n04\t01 03\t-\tbeides\tboth\n05\t-\t-\tanderes\tother\n";

/// Country rules of a small world; `from` is always the same.
const GB: &str = "\
completeness\ttest
read\t2026-11-22
since\t1995-01-01
rate\tstandard\tSTANDARD\t20\t2011-01-04\t\tlaw
rate\tstandard\tSTANDARD\t17.5\t1990-01-01\t2011-01-03\tlaw
rate\tzero\tZERO\t0\t1990-01-01\t\tlaw
rate\treduced\tREDUCED\t5\t2000-01-01\t\tlaw
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
    let rules = VatRules::new(&[gb], &[], sides, &mut missing);
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
        // Before the rules are known nothing is told.
        ("9003-00-000", "1999-11-01", "17.5"),
        ("9003-00-000", "1994-11-01", ""),
    ] {
        let class: ProductClass = class.parse().expect("a class");
        let answer = rules.sufficiency(&nomenclature, class, date(day), false);
        let country = &answer.countries[0];
        let told = |percent: Option<Percent>| percent.map_or("?".to_owned(), |percent| percent.to_string());
        let rates: Vec<String> = country.rates.iter().map(|rate| told(rate.rate)).collect();
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
    let answer =
        serde_json::to_value(rules.sufficiency(&nomenclature, class, date("2026-11-01"), false)).expect("JSON");
    assert_eq!(
        answer,
        serde_json::json!({"sufficient": false, "ruleSetDate": "2026-11-22", "countries": [{
            "country": "GB", "sufficient": false, "rate": null, "completeness": "test",
            "rates": [
                {"rate": 0, "rateType": "ZERO", "category": "CHILDREN", "goods": "small", "productClass": "61-03-000",
                    "source": "law", "missing": "age", "validFrom": "2000-01-01"},
                {"rate": 20, "rateType": "STANDARD", "category": "STANDARD",
                    "goods": "Goods for which no rule names another rate", "productClass": "610910-00-000",
                    "source": "law", "validFrom": "2011-01-04"},
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
        ("9001", "01-000 02-000 03-000 03-001 04-000"),
        ("90", "01-000 02-000 03-000 03-001 04-000"),
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
    let text = "rate\tstandard\t20\t2011-01-04\nrate\tstandard\tSTANDARD\t120\t2011-01-04\t\tlaw\n\
        rate\tzero\tZERO\t0\t2011-01-04\t2010-01-01\tlaw\nrule\t02x\twhole\t00-000\tzero\tFOOD\tg\t2011-01-04\t\tl\n\
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
            "vat/GB.tsv: a line `read` is missing",
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

/// Two countries with rows for different sides of one code, a gap, and a territory.
fn two_sided() -> (Nomenclature, VatRules) {
    let text: String =
        "30 3004 300490 90 9001 900110 900130".split(' ').map(|code| format!("{code}\tde\ten\n")).collect();
    let mut faults = Vec::new();
    let mut builder = Builder::new(Taxonomy::Tares, date("2026-11-01"));
    builder.harmonized("h", &parse_harmonized("h", &text, &mut faults), &mut faults);
    let nomenclature = builder.build("h", &mut faults);
    let head = "completeness\ttest\nread\t2026-11-22\nsince\t2020-01-01\nrate\tstandard\tSTANDARD\t20\t2000-01-01\t\tlaw\n\
        rate\tzero\tZERO\t0\t2000-01-01\t\tlaw\n";
    let first = format!(
        "{head}rule\t3004\tpartial\t01-000\tzero\tMEDICINES\toral\t2000-01-01\t\tlaw\n\
        gap\t900130\t00-000\tAIDS\tlenses\t2000-01-01\t2026-12-31\n\
        gap\t300490\t05-000\tMEDICINES\todd\t2027-01-01\t\n"
    );
    let second = format!("{head}rule\t3004\tpartial\t03-000\tzero\tMEDICINES\tprescribed\t2000-01-01\t\tlaw\n");
    let first = parse_country("CH", "f", &first, &[], &mut faults);
    let second = parse_country("LI", "s", &second, &[], &mut faults);
    let island =
        "name\tIsland\ncompleteness\ttest\nlike\tCH\nrate\tstandard\tSTANDARD\t15\t2000-01-01\t\tlaw\nunknown\tzero\n";
    let enclave = "name\tEnclave\ncompleteness\ttest\nlike\tCH\noutside\tNo VAT is due here\n";
    let known = [first.clone()];
    let territories =
        [("CH-A", island), ("CH-B", enclave)].map(|(code, text)| parse_country(code, code, text, &known, &mut faults));
    assert_eq!(faults, []);
    let sides = parse_sides("s", SIDES, &mut faults);
    (nomenclature, VatRules::new(&[first, second], &territories, sides, &mut faults))
}

/// Country, rate or `-`, of each country of the answer.
fn told(answer: &Sufficiency<'_>) -> Vec<String> {
    let rate = |country: &CountryVat<'_>| country.rate.map_or("-".to_owned(), |rate| rate.to_string());
    answer.countries.iter().map(|country| format!("{} {}", country.country, rate(country))).collect()
}

#[test]
fn a_segment_may_stand_for_several_sides_and_each_country_reads_its_own() {
    let (nomenclature, rules) = two_sided();
    for (class, wanted) in [
        ("300490-01-000", ["CH 0", "LI 20"]),
        ("300490-03-000", ["CH 20", "LI 0"]),
        ("300490-04-000", ["CH 0", "LI 0"]),
        ("300490-02-000", ["CH 20", "LI 20"]),
        ("300490-00-000", ["CH -", "LI -"]),
    ] {
        let class = class.parse().expect("a class");
        assert_eq!(told(&rules.sufficiency(&nomenclature, class, date("2026-11-01"), false)), wanted, "{class}");
    }
    let segments = rules.segments(Taxonomy::Tares, code("3004"));
    let told: Vec<(String, &[u8])> = segments.iter().map(|named| (named.segment.to_string(), named.parts)).collect();
    let wanted: [(&str, &[u8]); 5] =
        [("01-000", &[1]), ("02-000", &[2]), ("03-000", &[3]), ("04-000", &[1, 3]), ("05-000", &[5])];
    assert_eq!(told.iter().map(|(segment, parts)| (segment.as_str(), *parts)).collect::<Vec<_>>(), wanted);
}

#[test]
fn a_class_that_touches_a_gap_is_not_sufficient_and_says_so() {
    let (nomenclature, rules) = two_sided();
    for (class, day, wanted, change) in [
        ("900130-00-000", "2026-11-01", ["CH -", "LI 20"], Some("2027-01-01")),
        ("900130-00-000", "2027-01-01", ["CH 20", "LI 20"], None),
        ("9001-00-000", "2026-11-01", ["CH -", "LI 20"], Some("2027-01-01")),
        ("900110-00-000", "2026-11-01", ["CH 20", "LI 20"], None),
        // A gap at one side leaves the other sides as they are, and hides the rows of shorter prefixes.
        ("300490-05-000", "2027-01-01", ["CH -", "LI 20"], None),
        ("300490-02-000", "2026-11-01", ["CH 20", "LI 20"], None),
    ] {
        let class: ProductClass = class.parse().expect("a class");
        let answer = rules.sufficiency(&nomenclature, class, date(day), false);
        assert_eq!(told(&answer), wanted, "{class} on {day}");
        assert_eq!(answer.next_change.map(|day| day.to_string()).as_deref(), change, "{class} on {day}");
        assert_eq!(answer.sufficient, rules.is_sufficient(&nomenclature, class, date(day)), "{class} on {day}");
    }
    let class = "900130-00-000".parse().expect("a class");
    let answer = rules.sufficiency(&nomenclature, class, date("2026-11-01"), false);
    let gap = answer.countries[0].rates.iter().find(|rate| rate.rate.is_none()).expect("a gap");
    assert_eq!((gap.category, gap.goods, gap.rate_type), (UNKNOWN_CATEGORY, "lenses", None));
}

#[test]
fn territories_have_rates_of_their_own_or_none_and_say_why() {
    let (nomenclature, rules) = two_sided();
    let class = "300490-01-000".parse().expect("a class");
    let answer = rules.sufficiency(&nomenclature, class, date("2026-11-01"), true);
    assert_eq!(told(&answer), ["CH 0", "LI 20", "CH-A -", "CH-B -"]);
    assert!(!answer.countries[3].sufficient);
    assert_eq!(answer.countries[3].reason.as_deref(), Some("No VAT is due here"));
    let unknown: Vec<_> = answer.countries[2].rates.iter().map(|rate| (rate.rate, rate.category)).collect();
    assert_eq!(unknown, [(None, UNKNOWN_CATEGORY)]);
    assert_eq!((answer.countries[2].name, answer.countries[0].name), (Some("Island"), None));
    let other = rules.sufficiency(&nomenclature, "300490-03-000".parse().expect("a class"), date("2026-11-01"), true);
    assert_eq!(told(&other), ["CH 20", "LI 0", "CH-A 15", "CH-B -"]);
    assert!(
        rules
            .sufficiency(&nomenclature, "900110-00-000".parse().expect("a class"), date("2026-11-01"), true)
            .sufficient
    );
}

#[test]
fn before_the_rules_were_checked_nothing_is_told_and_the_reason_is() {
    let (nomenclature, rules) = two_sided();
    let class = "900110-00-000".parse().expect("a class");
    let answer = rules.sufficiency(&nomenclature, class, date("2019-12-31"), false);
    assert!(!answer.sufficient && answer.countries.iter().all(|country| country.rates.is_empty()));
    let reason = answer.countries[0].reason.as_deref().unwrap_or_default();
    assert!(reason.contains("2020-01-01"), "{reason}");
}

#[test]
fn mistakes_in_the_list_of_sides_are_told_by_line() {
    let text = "01\t-\tage\tde\ten\n1\t-\t-\tde\ten\n01\t-\t-\tde\ten\n03\t01 09\t-\tde\ten\n04\t-\tcolour\tde\ten\n\
        05\t-\t-\tde\n06\t-\t-\tde\t\n";
    let mut faults = Vec::new();
    assert_eq!(parse_sides("s", text, &mut faults).len(), 1);
    assert_eq!(faults.iter().map(|fault| fault.line).collect::<Vec<_>>(), [2, 3, 4, 5, 6, 7]);
}

#[test]
fn what_is_taken_over_comes_before_what_is_own() {
    let mut faults = Vec::new();
    let known = [parse_country("GB", "vat/GB.tsv", GB, &[], &mut faults)];
    assert_eq!(faults, []);
    let head = "completeness\ttest\nread\t2026-11-22\nsince\t1995-01-01\n";
    let rate = "rate\tzero\tZERO\t0\t1990-01-01\t\tlaw\n";
    let rule = "rule\t97\twhole\t00-000\tzero\tART\tart\t2000-01-01\t\tlaw\n";
    let gap = "gap\t97\t00-000\tART\tart\t2000-01-01\t\n";
    let like = "like\tGB\n";
    for (lines, line) in [
        (vec![head, like], None),
        (vec![like, head, rate, rule], None),
        (vec![head, like, "unknown\tzero\n"], None),
        (vec![head, rate, like], Some(5)),
        (vec![head, rule, like], Some(5)),
        (vec![head, gap, like], Some(5)),
        (vec![head, "unknown\tzero\n", like], Some(5)),
        (vec![head, like, like], Some(5)),
    ] {
        let text = lines.concat();
        let mut faults = Vec::new();
        parse_country("XX", "vat/territories/XX.tsv", &text, &known, &mut faults);
        let late: Vec<usize> =
            faults.iter().filter(|fault| fault.to_string().contains("`like` stands")).map(|fault| fault.line).collect();
        assert_eq!(late, line.into_iter().collect::<Vec<_>>(), "{text}{faults:?}");
    }
}
