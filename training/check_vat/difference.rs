//! Where the rules differ from the Commission's database.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use chrono::NaiveDate;
use serde::Deserialize;
use vat_classification::domain::vat::Percent;
use vat_classification::domain::{ClassCode, ProductClass, Taxonomy};
use vat_classification::reference::Reference;

/// Characters of a comment in the table.
const MAX_COMMENT: usize = 80;

#[derive(Deserialize)]
struct Export {
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    member_state: String,
    rate_value: String,
    #[serde(default)]
    comment: Option<String>,
    #[serde(default)]
    codes: Vec<Code>,
}

#[derive(Deserialize)]
struct Code {
    kind: String,
    code: String,
}

/// A line for every code of the Combined Nomenclature for which a country reports a rate that the rules never tell, with
/// what they tell; the country's comment may explain it.
pub(super) fn table(reference: &Reference, text: &str, day: NaiveDate) -> Result<String> {
    let export: Export = serde_json::from_str(text).context("this is no export of the database")?;
    let nomenclature = reference.nomenclature(Taxonomy::Taric);
    let mut table = String::new();
    let mut lines = 0;
    for row in &export.rows {
        // The database writes EL for Greece.
        let country = if row.member_state == "EL" { "GR" } else { &row.member_state };
        let value = row.rate_value.trim_end_matches('0').trim_end_matches('.');
        let Some(reported) = Percent::parse(if value.is_empty() { "0" } else { value }) else { continue };
        for code in row.codes.iter().filter(|code| code.kind == "CN") {
            let digits: String = code.code.chars().filter(char::is_ascii_digit).collect();
            let Some(code) = ClassCode::new(&digits).filter(|code| nomenclature.contains(code.prefix(6))) else {
                continue;
            };
            let answer = reference.vat.sufficiency(nomenclature, ProductClass::plain(code), day, false);
            let Some(told) = answer.countries.iter().find(|told| told.country == country) else { continue };
            if told.rates.iter().any(|rate| rate.rate.is_none_or(|rate| rate == reported)) {
                continue;
            }
            let rates: Vec<String> =
                told.rates.iter().filter_map(|rate| rate.rate).map(|rate| rate.to_string()).collect();
            let comment: String =
                row.comment.as_deref().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
            let comment: String = comment.chars().take(MAX_COMMENT).collect();
            writeln!(table, "{country}\t{code}\treported {reported}\ttold {}\t{comment}", rates.join(" "))?;
            lines += 1;
        }
    }
    writeln!(table, "{lines} codes differ")?;
    Ok(table)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn only_codes_with_a_rate_that_the_rules_never_tell_are_in_the_table() {
        let reference = Reference::load(Path::new("models")).expect("the facts that ship");
        let row = |state: &str, rate: &str, kind: &str, code: &str| serde_json::json!({"member_state": state, "rate_value": rate, "comment": "a\n  b", "codes": [{"kind": kind, "code": code}]});
        let export = serde_json::json!({"rows": [
            row("DE", "7.0", "CN", "4901"), row("DE", "8.0", "CN", "4901"), row("EL", "6.0", "CN", "4901 99 00"),
            row("EL", "13.0", "CN", "4901 99 00"), row("DE", "8.0", "CPA", "49.01"), row("DE", "8.0", "CN", "9999"),
            row("BG", "9.0", "CN", "4905 91 00"),
        ]});
        let day = "2026-11-22".parse().expect("a day");
        let found = table(&reference, &export.to_string(), day).expect("a table");
        assert_eq!(
            found.lines().collect::<Vec<_>>(),
            ["DE\t4901\treported 8\ttold 19 7\ta b", "GR\t49019900\treported 13\ttold 6\ta b", "2 codes differ"]
        );
        assert!(table(&reference, "[]", day).is_err());
    }
}
