//! `check-vat`: whether the VAT rules are whole, how many classes they settle and what stands in the way of the others,
//! and where they differ from the Commission's database.
//!
//! Loading names unlisted codes, overlaps and missing cells; the audit of the rules names days without a rate, sources
//! without a paragraph and rows that hide others. An export of the database is a JSON document with `rows`, each with
//! `member_state`, `rate_value`, `comment` and `codes`, a list of `kind` and `code`.

mod difference;
mod page;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use chrono::NaiveDate;
use clap::Args;
use vat_classification::domain::{ClassCode, ProductClass, Taxonomy};
use vat_classification::reference::{Reference, VAT, write_manifest};

/// Digits of a subheading of the Harmonized System.
const SUBHEADING_DIGITS: usize = 6;
/// What stands in the way where no attribute of a product would help.
const NO_FACT: &str = "-";

/// Options of `check-vat`.
#[derive(Args)]
pub(crate) struct Options {
    /// Directory with taxonomy/ and vat/.
    #[arg(long, default_value = "models")]
    models: PathBuf,
    /// The day by whose rules classes are judged; default today.
    #[arg(long)]
    date: Option<NaiveDate>,
    /// Writes down first how many rows each file of vat/ has: one with fewer is from then on taken for cut short.
    #[arg(long)]
    manifest: bool,
    /// An export of the Commission's database of rates, to be compared.
    #[arg(long)]
    tedb: Option<PathBuf>,
    /// Writes the page for the tax side there.
    #[arg(long)]
    page: Option<PathBuf>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let day = options.date.unwrap_or_else(|| chrono::Utc::now().date_naive());
    if options.manifest {
        write_manifest(&options.models, VAT)?;
    }
    let reference = Reference::load(&options.models)?;
    for taxonomy in Taxonomy::ALL {
        let classes = subheadings(&reference, taxonomy);
        let counts = obstacles(&reference, taxonomy, &classes, day);
        println!("{taxonomy}: {} of {} six-digit classes are sufficient on {day}", counts.sufficient, classes.len());
        for ((country, fact), count) in counts.sorted() {
            println!("  {count:5}  {country}  {fact}");
        }
    }
    if let Some(file) = &options.tedb {
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        print!("{}", difference::table(&reference, &text, day)?);
    }
    if let Some(file) = &options.page {
        let page = page::page(&reference);
        fs::write(file, page).with_context(|| format!("cannot write {}", file.display()))?;
    }
    let faults = reference.vat.audit();
    for fault in &faults {
        println!("{fault}");
    }
    ensure!(faults.is_empty(), "{} faults in the VAT rules", faults.len());
    Ok(())
}

/// The six-digit classes of a taxonomy.
fn subheadings(reference: &Reference, taxonomy: Taxonomy) -> Vec<ClassCode> {
    reference.nomenclature(taxonomy).codes().filter(|code| code.digits() == SUBHEADING_DIGITS).collect()
}

/// How many classes are sufficient, and how many others each country and missing fact stands in the way of.
#[derive(Default)]
struct Counts {
    sufficient: usize,
    obstacles: BTreeMap<(String, String), usize>,
}

impl Counts {
    /// The most frequent obstacles first.
    fn sorted(&self) -> Vec<(&(String, String), usize)> {
        let mut all: Vec<_> = self.obstacles.iter().map(|(what, count)| (what, *count)).collect();
        all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        all
    }
}

fn obstacles(reference: &Reference, taxonomy: Taxonomy, classes: &[ClassCode], day: NaiveDate) -> Counts {
    let mut counts = Counts::default();
    for code in classes {
        let class = ProductClass::plain(*code);
        let answer = reference.vat.sufficiency(reference.nomenclature(taxonomy), class, day, false);
        counts.sufficient += usize::from(answer.sufficient);
        for country in answer.countries.iter().filter(|country| !country.sufficient) {
            let mut facts: Vec<&str> = country.rates.iter().filter_map(|rate| rate.missing).collect();
            facts.extend(country.rates.iter().any(|rate| rate.rate.is_none()).then_some("gap"));
            facts.sort_unstable();
            facts.dedup();
            let facts = if facts.is_empty() { NO_FACT.to_owned() } else { facts.join(" ") };
            *counts.obstacles.entry((country.country.to_owned(), facts)).or_default() += 1;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn reference() -> Reference {
        Reference::load(Path::new("models")).expect("the facts that ship")
    }

    #[test]
    fn the_rules_that_ship_are_whole() {
        let faults: Vec<String> = reference().vat.audit().iter().map(ToString::to_string).collect();
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    #[test]
    fn the_page_for_the_tax_side_is_made_from_the_files() {
        let page = fs::read_to_string("docs/vat.md").expect("the page");
        assert_eq!(page, page::page(&reference()), "write it anew with `training check-vat --page docs/vat.md`");
    }

    #[test]
    fn classes_without_a_fact_are_counted_by_country_and_fact() {
        let reference = reference();
        let day = "2026-11-22".parse().expect("a day");
        let shirts = ClassCode::new("610910").expect("digits");
        let counts = obstacles(&reference, Taxonomy::Ukgt, &[shirts], day);
        assert_eq!((counts.sufficient, counts.sorted().len()), (0, 1));
        assert_eq!(counts.sorted()[0].0, &("GB".to_owned(), "age".to_owned()));
    }
}
