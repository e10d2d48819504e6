//! Traps are texts that the model has never seen: no row of the corpus is one of them.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use vat_classification::classify::text::fold;

use super::Findings;
use crate::rows::Row;

/// The column of the text in the table of traps.
const TEXT: usize = 1;

/// Names every row whose name is a trap.
pub(super) fn check(path: &Path, rows: &[Row], findings: &mut Findings) -> Result<()> {
    let table = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let lines = table.lines().filter(|line| !line.starts_with('#'));
    let traps: HashSet<String> = lines.filter_map(|line| line.split('\t').nth(TEXT)).map(fold).collect();
    for row in rows.iter().filter(|row| traps.contains(&fold(&row.name))) {
        findings.error("a trap in the corpus", format!("{} [{}] {}", row.place, row.code, row.name));
    }
    Ok(())
}
