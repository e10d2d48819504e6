//! The page for the tax side: what sufficient means, what is covered in each country, and how a rule is corrected.

use std::fmt::Write as _;

use vat_classification::domain::Taxonomy;
use vat_classification::domain::vat::CountryRules;
use vat_classification::reference::Reference;

const HEAD: &str = "\
# VAT rules

This page is made from the files in `models/vat` by `training check-vat --page docs/vat.md`; correct the files, not the
page.

## What sufficient means

A class is sufficient on a day when, for every supported country of its taxonomy, all goods under it have one and the
same VAT rate: the 27 member states for TARIC, the United Kingdom for UKGT, Switzerland and Liechtenstein for TARES. The
rate is that of a sale in a shop; who buys, where the goods are delivered to and how they are served is not looked at,
and territories do not count.

Three things make a class insufficient. Its goods may have different rates, which the class does not tell apart:
`rates` then lists the rules that disagree, and `missing` names what a product must tell to settle it. A country's file
may not know the rate of some of its goods: a row of the category `UNKNOWN` says so. And the day may lie before the
one from which a country's history was checked: `rates` is empty and `reason` says why.

## How a product settles a rate

Goods that share a code and differ for VAT have segments `NN-NNN` behind the code. Names and tags in German and English
settle them where a word leaves no doubt; so do numbers (`Gr. 128`, `8-10y`, `12,5 % vol`, `Saftgehalt 60 %`, `25 kg`),
the physical measure, and merchant attributes of these names: `age` (years), `alcohol` (per cent by volume), `juice` (per
cent), `sugar` (grams added per 100), `prescription` (yes or no), `weight` (kilograms).

## How to correct or add a rule

1. Find the line in `models/vat/CC.tsv`; the cells are explained in `src/domain/vat/parse.rs`, the sides in
   `models/vat/sides.tsv`.
2. Change it with the paragraph of the law as its source. A rule that ends gets its last day, and a new line begins on
   the next; what the law names and you could not settle becomes a `gap` line. Set `read` to the day on which you read it.
3. Add a known case with its source to `tests/vat_cases/known.txt`.
4. Run `training check-vat --manifest`, which writes down in `models/vat/manifest.tsv` how many rows each file has: the
   service does not start with a file that has fewer. Add `--tedb FILE` to compare with an export of the Commission's
   database, and write this page anew. A directory of your own needs no manifest.
5. Send SIGHUP to a running service: it takes the files and judges assignments again whose sufficiency changes.

## What is covered

";

/// The whole page.
pub(super) fn page(reference: &Reference) -> String {
    let mut page = HEAD.to_owned();
    for taxonomy in Taxonomy::ALL {
        for country in reference.vat.countries(taxonomy) {
            describe(&mut page, country);
        }
    }
    page.push_str("## Territories\n\n| territory | name | rates |\n|---|---|---|\n");
    let mut shown: Vec<&str> = Vec::new();
    for territory in Taxonomy::ALL.into_iter().flat_map(|taxonomy| reference.vat.territories(taxonomy)) {
        if !shown.contains(&territory.country()) {
            shown.push(territory.country());
            let words = territory.outside().unwrap_or(territory.completeness());
            let _ = writeln!(page, "| {} | {} | {words} |", territory.country(), territory.name().unwrap_or_default());
        }
    }
    page
}

fn describe(page: &mut String, country: &CountryRules) {
    let read = country.read();
    let mut rates: Vec<String> = country.rates_on(read).iter().map(|rate| format!("{} %", rate.percent)).collect();
    rates.sort_unstable();
    rates.dedup();
    let _ = writeln!(
        page,
        "### {}\n\nRead on {read}; history from {}; {} lines of rules; rates {}.\n\n{}\n",
        country.country(),
        country.since(),
        country.rule_lines(),
        rates.join(", "),
        country.completeness()
    );
    let gaps = country.gaps_on(read);
    if gaps.is_empty() {
        return;
    }
    page.push_str("Not known:\n\n");
    for gap in gaps {
        let _ = writeln!(page, "- {}: {}", gap.codes.join(", "), gap.goods);
    }
    page.push('\n');
}
