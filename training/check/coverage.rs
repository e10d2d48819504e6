//! Which kinds of goods the corpus covers: tables of a category, the code of its goods, and how many rows speak of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use vat_classification::domain::ClassCode;

use super::Findings;
use crate::labels::Label;
use crate::rows::Row;

/// Reads every `*.tsv` of a directory, prints how much is covered, and names lines that cannot be true.
pub(super) fn check(directory: &Path, rows: &[Row], labels: &[Label], findings: &mut Findings) -> Result<()> {
    if !directory.is_dir() {
        return Ok(());
    }
    let mut rows_under: BTreeMap<ClassCode, usize> = BTreeMap::new();
    for row in rows {
        for digits in [2, 4, 6].into_iter().filter(|digits| *digits <= row.code.digits()) {
            *rows_under.entry(row.code.prefix(digits)).or_default() += 1;
        }
    }
    let codes: BTreeSet<ClassCode> = labels.iter().map(|label| label.code).collect();
    let mut files: Vec<_> = fs::read_dir(directory)
        .with_context(|| directory.display().to_string())?
        .collect::<Result<Vec<_>, _>>()?
        .into_iter()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "tsv"))
        .collect();
    files.sort();
    let (mut categories, mut covered) = (BTreeSet::new(), BTreeSet::new());
    for path in files {
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        for (index, line) in text.lines().enumerate() {
            let fields: Vec<&str> = line.split('\t').collect();
            let is_heading = index == 0 && fields.get(1).is_some_and(|field| ClassCode::new(field).is_none());
            if line.trim().is_empty() || line.starts_with('#') || is_heading {
                continue;
            }
            let place = format!("{}:{}", path.display(), index + 1);
            let (Some(category), Some(code)) = (fields.first(), fields.get(1)) else {
                findings.error("coverage", format!("{place}: not category, code, rows"));
                continue;
            };
            categories.insert((*category).to_owned());
            if *code == "-" {
                continue;
            }
            match ClassCode::new(code).filter(|code| codes.contains(code)) {
                Some(code) => {
                    let said: usize = fields.get(2).and_then(|rows| rows.parse().ok()).unwrap_or(1);
                    let there = rows_under.get(&code).copied().unwrap_or_default();
                    if there < said.max(1) {
                        findings.error("coverage", format!("{place}: {code} has {there} rows, not {said}"));
                    }
                    covered.insert((*category).to_owned());
                }
                None => findings.error("coverage", format!("{place}: no code {code}")),
            }
        }
    }
    println!("coverage: {} of {} categories looked at have goods with rows", covered.len(), categories.len());
    Ok(())
}
