use std::fs;
use std::path::Path;

use super::*;
use crate::domain::{ProductClass, Segment};

fn write(dir: &Path, file: &str, text: &str) {
    let path = dir.join(file);
    fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
    fs::write(path, text).expect("a file");
}

/// A small world of reference data that loads.
fn small() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    write(dir.path(), "taxonomy/hs2022/61.tsv", "61\tde\ten\n6109\tde\ten\n610910\tde\ten\n");
    write(dir.path(), "vat/sides.tsv", "02\t-\t-\tRest\trest\n03\t-\tage\tKinder\tchildren\n");
    for country in Taxonomy::ALL.into_iter().flat_map(Taxonomy::countries) {
        let text = "completeness\tnothing\nread\t2026-11-01\nrate\tstandard\tSTANDARD\t20\t2020-01-01\t\tlaw\n";
        write(dir.path(), &format!("vat/{country}.tsv"), text);
    }
    dir
}

fn date() -> NaiveDate {
    NaiveDate::from_ymd_opt(2026, 11, 1).expect("a date")
}

#[test]
fn a_directory_loads_with_and_without_national_lists() {
    let dir = small();
    let code = ClassCode::new("6109100010").expect("digits");
    let plain = Reference::load_as_of(dir.path(), date()).expect("reference data");
    assert_eq!(plain.nomenclature(Taxonomy::Taric).len(), 3);
    assert!(!plain.nomenclature(Taxonomy::Taric).is_listed(code));
    write(dir.path(), "taxonomy/national/TARIC.tsv", "6109100010\t80\t3\t610910-80\t1\t2000-01-01\t\t\tde\ten\n");
    let deep = Reference::load_as_of(dir.path(), date()).expect("reference data");
    assert!(deep.nomenclature(Taxonomy::Taric).is_listed(code));
    assert!(!deep.nomenclature(Taxonomy::Ukgt).is_listed(code));
}

#[test]
fn every_mistake_is_named_once_by_file_and_line() {
    let dir = small();
    write(dir.path(), "taxonomy/hs2022/62.tsv", "# c\n62\tde\n6309\tde\ten\n");
    let rule = "rule\t62\tpartial\t07-000\tstandard\tFOOD\tg\t2020-01-01\t\tlaw\n";
    write(
        dir.path(),
        "vat/GB.tsv",
        &format!("completeness\tno\nread\t2026-11-01\nrate\tstandard\tSTANDARD\t20\t2020-01-01\t\tlaw\n{rule}"),
    );
    let error = Reference::load_as_of(dir.path(), date()).expect_err("mistakes").to_string();
    assert_eq!(
        error.lines().collect::<Vec<_>>(),
        [
            "5 mistakes in the reference data",
            "  taxonomy/hs2022/62.tsv:2: expected code, German label and English label with tabs between, found 2 cells",
            "  taxonomy/hs2022/62.tsv: code 6309 belongs to another chapter",
            "  taxonomy: code 6309 is listed and 63 above it is not",
            "  vat/GB.tsv:4: side 07 has no name in the list of sides",
            "  vat/GB.tsv:4: 62 is not in the UKGT nomenclature",
        ]
    );
}

#[test]
fn a_missing_file_is_named() {
    let dir = small();
    fs::remove_file(dir.path().join("vat/FR.tsv")).expect("removed");
    let error = Reference::load(dir.path()).expect_err("an error").to_string();
    assert!(error.contains("FR.tsv"), "{error}");
    assert!(Reference::load(&dir.path().join("nowhere")).is_err());
}

#[test]
fn what_follows_from_a_subheading_follows_from_its_lines() {
    let shipped = Reference::load(Path::new("models")).expect("reference data");
    let mut lost = Vec::new();
    for taxonomy in Taxonomy::ALL {
        let nomenclature = shipped.nomenclature(taxonomy);
        let sufficient = |class| shipped.vat.is_sufficient(nomenclature, class, shipped.day);
        for line in nomenclature.codes().filter(|code| code.digits() > 6) {
            let subheading = line.prefix(6);
            let segments = shipped.vat.segments(taxonomy, subheading).into_iter().map(|named| named.segment);
            for segment in segments.chain([Segment::PLAIN]) {
                // A side that no rule names for the line is no side of it.
                let defined = shipped.vat.defines_segment(taxonomy, line, segment);
                let own = if defined { segment } else { Segment::PLAIN };
                let (above, below) =
                    (ProductClass { code: subheading, segment }, ProductClass { code: line, segment: own });
                if sufficient(above) && !sufficient(below) {
                    lost.push(format!("{taxonomy} {below} of {above}"));
                }
            }
        }
    }
    assert!(lost.is_empty(), "{} lines: {:?}", lost.len(), &lost[..lost.len().min(20)]);
}

#[test]
fn a_vat_file_that_ends_early_at_the_end_of_a_line_is_not_taken_for_whole() {
    let dir = small();
    write_manifest(dir.path(), VAT).expect("a manifest");
    Reference::load_as_of(dir.path(), date()).expect("reference data");
    let rule = "rule\t6109\twhole\t00-000\tstandard\tCLOTHING\tshirts\t2020-01-01\t\tlaw\n";
    let path = dir.path().join("vat/FR.tsv");
    let text = fs::read_to_string(&path).expect("a file");
    write(dir.path(), "vat/FR.tsv", &format!("{text}{rule}"));
    Reference::load_as_of(dir.path(), date()).expect("a file may grow");
    write_manifest(dir.path(), VAT).expect("a manifest");
    write(dir.path(), "vat/FR.tsv", &text);
    let error = Reference::load_as_of(dir.path(), date()).expect_err("a file cut short").to_string();
    assert!(error.contains("vat/FR.tsv: the file is cut short: it has 3 rows, the manifest says 4"), "{error}");
}
