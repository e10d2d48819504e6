use super::*;
use crate::domain::file_fault::FileFault;

const HARMONIZED: &str = "\
# Chapter, heading, subheadings.
61\tStrickware\tKnitted clothing
6109\tT-Shirts und Unterhemden\tT-shirts and vests
610910\tAus Baumwolle\tOf cotton
610990\tAus anderen Stoffen\tOf other textiles
85\tElektrogeräte\tElectrical goods
8517\tTelefone\tTelephones
851713\tSmartphones\tSmartphones
851714\tAndere Funktelefone\tOther wireless telephones
";

const NATIONAL: &str = "\
610910\t80\t2\t6109-80\t1\t2000-01-01\t\t\tamtlich\tofficial
85171310\t80\t3\t851713-80\t0\t2000-01-01\t\t\tMit etwas\tWith something
8517131010\t80\t4\t85171310-80\t1\t2000-01-01\t\t\tneu\tnew
8517131090\t80\t4\t85171310-80\t1\t2000-01-01\t2020-12-31\t8517131010\talt\told
8517131095\t80\t4\t85171310-80\t1\t2000-01-01\t2020-12-31\t\talt\told
85171310\t10\t3\t851713-80\t0\t\t\t\tZwischenzeile\tgroup
";

fn code(text: &str) -> ClassCode {
    ClassCode::new(text).expect("digits")
}

fn built(national: &str) -> Nomenclature {
    let mut faults = Vec::new();
    let mut builder = Builder::new(Taxonomy::Taric, NaiveDate::from_ymd_opt(2026, 11, 1).expect("a date"));
    builder.harmonized("h", &parse_harmonized("h", HARMONIZED, &mut faults), &mut faults);
    builder.successors(&parse_successors("s", "851712\t8517\n690810\t851713\n", &mut faults));
    builder.national(parse_national("n", national, Taxonomy::Taric, &mut faults));
    let nomenclature = builder.build("h", &mut faults);
    assert_eq!(faults, []);
    nomenclature
}

#[test]
fn a_class_is_listed_or_extends_a_listed_code_without_children() {
    let (plain, deep) = (built(""), built(NATIONAL));
    for (digits, in_plain, in_deep) in [
        ("61", true, true),
        ("6109", true, true),
        ("610910", true, true),
        ("61091", false, false),
        ("6110", false, false),
        ("62", false, false),
        ("6109100010", true, false),
        ("6109100", true, false),
        ("85171310", true, true),
        ("85171320", true, false),
        ("8517131010", true, true),
        ("8517131090", true, false),
        ("00", false, false),
        ("99", false, false),
    ] {
        assert_eq!(plain.contains(code(digits)), in_plain, "{digits} without a national list");
        assert_eq!(deep.contains(code(digits)), in_deep, "{digits} with a national list");
    }
}

#[test]
fn a_list_of_facts_is_read_like_one_with_texts() {
    let facts = "610910\t1\t2000-01-01\t\t\n85171310\t0\t2000-01-01\t\t\n8517131010\t1\t2000-01-01\t\t\n\
        8517131090\t1\t2000-01-01\t2020-12-31\t8517131010\n8517131020\t1\t2026-11-02\t\t\n";
    let list = built(facts);
    let class = |digits: &str| list.contains(code(digits));
    assert!(class("8517131010") && !class("8517131011") && !class("6109100010"), "only what is listed is a class");
    assert!(!class("8517131020"), "a line that begins tomorrow is none yet");
    assert_eq!(list.resolve(code("8517131090")).map(|found| found.code), Some(code("8517131010")));
    assert_eq!(list.facts(code("85171310")).map(|facts| facts.declarable), Some(false));
    let labels = list.labels(code("8517131010")).expect("labels");
    assert_eq!((labels.de, labels.en), ("Smartphones", "Smartphones"), "a line is called as what it belongs to");
    assert_eq!(list.own_labels(code("8517131010")), None);
    assert_eq!(
        list.search("smartphones", None, 10).len(),
        1,
        "lines are not found by the words of what they belong to"
    );
    assert_eq!(list.longest_listed(code("8517131077")), Some(code("85171310")));
}

#[test]
fn our_labels_of_lines_take_the_place_of_inherited_ones() {
    let mut faults = Vec::new();
    let mut builder = Builder::new(Taxonomy::Taric, NaiveDate::from_ymd_opt(2026, 11, 1).expect("a date"));
    builder.harmonized("h", &parse_harmonized("h", HARMONIZED, &mut faults), &mut faults);
    builder.national(parse_national("n", "85171310\t1\t\t\t\n", Taxonomy::Taric, &mut faults));
    let rows = parse_line_labels("l", "85171310\tFaltbar\tFoldable\n85179999\tWeg\tGone\n", &mut faults);
    builder.labels("l", &rows, &mut faults);
    assert_eq!(parse_line_labels("l", "851713\tA\tB\n", &mut faults), []);
    assert_eq!(faults.len(), 1, "labels of six digits stand in the chapters: {faults:?}");
    let list = builder.build("h", &mut Vec::new());
    assert_eq!(list.own_labels(code("85171310")).map(|labels| labels.en), Some("Foldable"));
    assert_eq!(list.search("faltbar", None, 5).len(), 1);
}

#[test]
fn lines_of_other_days_are_known_for_those_days_alone() {
    let list =
        built("61091010\t1\t2000-01-01\t2025-12-31\t61091020\n61091030\t1\t2027-01-01\t\t\n6109109000\t1\t\t\t\n");
    for (digits, day, wanted) in [
        ("61091010", "2025-12-31", true),
        ("6109101000", "2025-12-31", true),
        ("61091010", "2026-01-01", false),
        ("61091010", "1999-12-31", false),
        ("61091030", "2026-12-31", false),
        ("61091030", "2027-01-01", true),
        // What is listed on the day of the table is known from there.
        ("6109109000", "2027-01-01", false),
        ("610910", "2027-01-01", false),
    ] {
        assert_eq!(list.is_listed_on(code(digits), day.parse().expect("a day")), wanted, "{digits} on {day}");
    }
}

#[test]
fn zeros_at_the_end_mean_and_all_below() {
    let deep = built(NATIONAL);
    for (digits, wanted) in [
        ("8517130000", Some("851713")),
        ("8500000000", Some("85")),
        ("8517000000", Some("8517")),
        ("8517131000", Some("85171310")),
        ("8517140000", Some("851714")),
        ("8517142000", None),
        ("8517100000", None),
        ("7700000000", None),
    ] {
        assert_eq!(deep.canonical(code(digits)), wanted.map(code), "{digits}");
    }
}

#[test]
fn digits_lead_to_the_class_their_successor_or_the_longest_prefix() {
    let deep = built(NATIONAL);
    for (digits, wanted) in [
        ("610910", Some(("610910", Via::Listed))),
        ("6109100000", Some(("610910", Via::Listed))),
        ("6109100010", Some(("610910", Via::Prefix))),
        ("8517131090", Some(("8517131010", Via::Successor))),
        ("8517131095", Some(("85171310", Via::LivingParent))),
        ("690810", Some(("851713", Via::Successor))),
        ("6908100000", Some(("851713", Via::Successor))),
        ("851799", Some(("8517", Via::Prefix))),
        ("851399", Some(("85", Via::Prefix))),
        ("7117", None),
    ] {
        let found = deep.resolve(code(digits));
        assert_eq!(found.map(|f| (f.code, f.via)), wanted.map(|(code_, via)| (code(code_), via)), "{digits}");
    }
}

#[test]
fn labels_paths_children_and_search_read_the_table() {
    let deep = built(NATIONAL);
    assert_eq!(deep.labels(code("610910")), Some(Labels { de: "Aus Baumwolle", en: "Of cotton" }));
    assert_eq!(deep.labels(code("6109100010")), None);
    assert_eq!(built("").labels(code("6109100010")), deep.labels(code("610910")));
    assert_eq!(deep.labels(code("6103")), None);
    assert!(deep.facts(code("610910")).is_some_and(|facts| facts.declarable));
    let codes = |list: Vec<(ClassCode, Labels<'_>)>| -> Vec<String> {
        list.into_iter().map(|(code, _)| code.to_string()).collect()
    };
    assert_eq!(codes(deep.path(code("8517131010"))), ["85", "8517", "851713", "85171310", "8517131010"]);
    assert_eq!(codes(deep.path(code("6103"))), Vec::<String>::new());
    assert_eq!(codes(deep.children(code("8517"))), ["851713", "851714"]);
    assert_eq!(codes(deep.chapters()), ["61", "85"]);
    assert_eq!(deep.leaves(code("85")).map(|c| c.to_string()).collect::<Vec<_>>(), ["8517131010", "851714"]);
    let found = |query: &str, under: Option<&str>| -> Vec<String> {
        deep.search(query, under.map(code), 3).into_iter().map(|hit| hit.code.to_string()).collect()
    };
    assert_eq!(found("ELEKTROGERAETE", None), ["85"]);
    assert_eq!(found("andere", None), ["851714", "610990"]);
    assert_eq!(found("telefone", None), ["8517", "851714"]);
    assert_eq!(found("other telephones", None), ["851714"]);
    assert_eq!(found("other", Some("61")), ["610990"]);
    assert_eq!(found("8517.13", None), ["851713", "85171310", "8517131010"]);
    assert_eq!(found("", None), Vec::<String>::new());
}

#[test]
fn mistakes_are_told_by_file_and_line() {
    let mut faults = Vec::new();
    let rows = parse_harmonized("f", "61\ta\n61\ta\tb\n6109x\ta\tb\n6109\t \tb\n\n# c\n610910\ta\tb", &mut faults);
    let mut builder = Builder::new(Taxonomy::Tares, NaiveDate::default());
    builder.harmonized("f", &rows, &mut faults);
    builder.harmonized("g", &rows[..1], &mut faults);
    builder.national(parse_national("n", "610910\t80\n6109109999\t80\t\t\t\t\t\t\t\t", Taxonomy::Tares, &mut faults));
    builder.build("f", &mut faults);
    let told: Vec<String> = faults.iter().map(FileFault::to_string).collect();
    assert_eq!(
        told,
        [
            "f:1: expected code, German label and English label with tabs between, found 2 cells",
            "f:3: `6109x` is not a code of [2, 4, 6] digits",
            "f:4: code 6109 has no German label",
            "g: code 61 is listed twice",
            "n:1: expected 5 or 10 cells with tabs between, found 2",
            "n:2: `6109109999` is not a code of 2 to 8 digits",
            "f: code 610910 is listed and 6109 above it is not",
        ]
    );
}
