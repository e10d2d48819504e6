//! How fast classes, customs codes and VAT rates are looked up, beside the limits set for them:
//!
//! ```sh
//! cargo bench --bench facts
//! ```

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use chrono::NaiveDate;

use vat_classification::domain::customs_codes;
use vat_classification::domain::product::CustomsCodes;
use vat_classification::domain::{ClassCode, ProductClass, Taxonomy};
use vat_classification::reference::Reference;

/// Passes over the classes of a taxonomy, so that one is long enough to time.
const PASSES: u32 = 20;

fn main() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
    let started = Instant::now();
    let reference = match Reference::load(&dir) {
        Ok(reference) => reference,
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(1);
        }
    };
    report("load and check all reference data", started.elapsed(), Duration::from_millis(300));
    lookups(&reference);
    rates(&reference);
}

fn lookups(reference: &Reference) {
    let nomenclature = reference.nomenclature(Taxonomy::Taric);
    let codes: Vec<ClassCode> = nomenclature.codes().collect();
    let padded = |code: &ClassCode| ClassCode::new(&format!("{:0<8}90", code.as_str()));
    let deep: Vec<ClassCode> = codes.iter().filter_map(padded).collect();
    let each = per_item(codes.len(), || codes.iter().filter(|code| nomenclature.contains(**code)).count());
    report("membership of a listed class", each, Duration::from_micros(1));
    let each = per_item(deep.len(), || deep.iter().filter_map(|code| nomenclature.resolve(*code)).count());
    report("class of ten digits that are not listed", each, Duration::from_micros(1));
    let products: Vec<CustomsCodes> = deep
        .iter()
        .map(|code| CustomsCodes {
            taric_code: Some(code.to_string()),
            ukgt_code: Some(code.to_string()),
            ..CustomsCodes::default()
        })
        .collect();
    let each =
        per_item(products.len(), || products.iter().filter_map(|c| customs_codes::evidence(c, nomenclature)).count());
    report("class from two customs codes of a product", each, Duration::from_micros(1));
}

fn rates(reference: &Reference) {
    let Some(day) = NaiveDate::from_ymd_opt(2026, 11, 1) else { return };
    let started = Instant::now();
    for taxonomy in Taxonomy::ALL {
        let nomenclature = reference.nomenclature(taxonomy);
        for code in nomenclature.codes() {
            black_box(reference.vat.is_sufficient(nomenclature, ProductClass::plain(code), day));
        }
    }
    report("sufficiency of every class of three taxonomies", started.elapsed(), Duration::from_secs(2));
    let nomenclature = reference.nomenclature(Taxonomy::Taric);
    let codes: Vec<ClassCode> = nomenclature.codes().collect();
    let each = per_item(codes.len(), || {
        codes.iter().filter(|code| reference.vat.is_sufficient(nomenclature, ProductClass::plain(**code), day)).count()
    });
    report("sufficiency of a class in 27 countries", each, Duration::from_micros(20));
    let each = per_item(codes.len(), || {
        let rates = |code: &ClassCode| reference.vat.sufficiency(nomenclature, ProductClass::plain(*code), day, false);
        codes.iter().map(|code| rates(code).countries.len()).sum()
    });
    report("rates of a class in 27 countries", each, Duration::from_micros(20));
}

fn per_item(items: usize, mut pass: impl FnMut() -> usize) -> Duration {
    black_box(pass());
    let started = Instant::now();
    for _ in 0..PASSES {
        black_box(pass());
    }
    started.elapsed() / PASSES / items as u32
}

fn report(what: &str, took: Duration, limit: Duration) {
    let verdict = if took <= limit { "within" } else { "OVER" };
    println!("{what:50} {took:>12.1?}   {verdict} {limit:?}");
}
