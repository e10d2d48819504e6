//! The manifest of the taxonomy: files that lack rows, or the end of their last one, are not taken for whole.
//!
//! An emptied or cut-off table would otherwise read as one that lists less. The manifest has a line for each file: its
//! path below `taxonomy`, a tab, and its number of rows. A file may have more rows than the manifest says, so that a list
//! can grow, but never fewer; one that the manifest does not name is not looked at.

use std::path::{Path, PathBuf};

use super::{ReferenceError, name, read};
use crate::domain::file_fault::FileFault;

/// Where the manifest lies below the directory of reference data.
const FILE: &str = "taxonomy/manifest.tsv";

/// Notes a fault for every file that has fewer rows than the manifest says. Without a manifest nothing is checked.
pub(super) fn check(dir: &Path, faults: &mut Vec<FileFault>) -> Result<(), ReferenceError> {
    let path = dir.join(FILE);
    if !path.exists() {
        return Ok(());
    }
    for (index, line) in read(&path)?.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
    {
        let entry = line.split_once('\t').and_then(|(file, rows)| Some((file, rows.parse::<usize>().ok()?)));
        match entry {
            Some((file, rows)) => check_file(dir, file, rows, faults)?,
            None => {
                faults.push(FileFault::at(FILE, index + 1, "expected a file and its number of rows with a tab between"))
            }
        }
    }
    Ok(())
}

fn check_file(dir: &Path, file: &str, rows: usize, faults: &mut Vec<FileFault>) -> Result<(), ReferenceError> {
    let path: PathBuf = dir.join("taxonomy").join(file);
    let text = read(&path)?;
    let found = text.lines().count();
    if found < rows || !text.ends_with('\n') {
        let message = format!("the file is cut short: it has {found} rows, the manifest says {rows}");
        faults.push(FileFault::at(&name(dir, &path), 0, message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                files_below(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "tsv") && !path.ends_with("manifest.tsv") {
                found.push(path);
            }
        }
        found.sort();
    }

    /// `UPDATE_MANIFEST=1 cargo test --release --lib manifest` writes the manifest anew.
    #[test]
    fn the_manifest_that_ships_names_every_file_and_all_its_rows() {
        let folder = Path::new("models/taxonomy");
        let mut files = Vec::new();
        files_below(folder, &mut files);
        let line = |path: &PathBuf| {
            let rows = fs::read_to_string(path).expect("a table").lines().count();
            format!("{}\t{rows}\n", path.strip_prefix(folder).expect("a file below").display())
        };
        let wanted: String = files.iter().map(line).collect();
        if std::env::var_os("UPDATE_MANIFEST").is_some() {
            fs::write(folder.join("manifest.tsv"), &wanted).expect("written");
        }
        let found = fs::read_to_string(folder.join("manifest.tsv")).expect("a manifest");
        assert_eq!(found, wanted, "run UPDATE_MANIFEST=1 cargo test --release --lib manifest");
    }

    #[test]
    fn a_file_that_is_emptied_or_cut_short_is_named() {
        for (text, fault) in [
            ("6109\ta\tb\n610910\ta\tb\n", None),
            ("6109\ta\tb\n610910\ta\tb\n610990\ta\tb\n", None),
            ("6109\ta\tb\n610910\ta\tb", Some("it has 2 rows, the manifest says 2")),
            ("6109\ta\tb\n", Some("it has 1 rows, the manifest says 2")),
            ("", Some("it has 0 rows, the manifest says 2")),
        ] {
            let dir = tempfile::tempdir().expect("a directory");
            fs::create_dir_all(dir.path().join("taxonomy/hs2022")).expect("a folder");
            fs::write(dir.path().join(FILE), "hs2022/61.tsv\t2\n").expect("a manifest");
            fs::write(dir.path().join("taxonomy/hs2022/61.tsv"), text).expect("a table");
            let mut faults = Vec::new();
            check(dir.path(), &mut faults).expect("readable");
            let told: Vec<String> = faults.iter().map(FileFault::to_string).collect();
            assert_eq!(told.len(), usize::from(fault.is_some()), "{text:?}: {told:?}");
            assert!(fault.is_none_or(|fault| told[0].contains(fault) && told[0].contains("61.tsv")), "{told:?}");
        }
        let dir = tempfile::tempdir().expect("a directory");
        assert!(check(dir.path(), &mut Vec::new()).is_ok(), "without a manifest nothing is checked");
    }
}
