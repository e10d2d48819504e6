//! Manifests: files that lack rows, or the end of their last one, are not taken for whole.
//!
//! An emptied or cut-off table would otherwise read as one that lists less. The manifest of the taxonomy and that of the
//! VAT rules have a line for each file: its path below the folder, a tab, and its number of rows. A file may have more rows
//! than the manifest says, so that a list can grow, but never fewer; one that the manifest does not name is not looked at.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use super::{ReferenceError, name, read, unreadable};
use crate::domain::file_fault::FileFault;

/// The folders that may have a manifest.
const FOLDERS: [&str; 2] = ["taxonomy", VAT];
/// The folder of the VAT rules.
pub const VAT: &str = "vat";
/// The name of a manifest.
const FILE: &str = "manifest.tsv";

/// Notes a fault for every file that has fewer rows than its manifest says. Without a manifest nothing is checked.
pub(super) fn check(dir: &Path, faults: &mut Vec<FileFault>) -> Result<(), ReferenceError> {
    for folder in FOLDERS.map(|folder| dir.join(folder)).iter().filter(|folder| folder.join(FILE).exists()) {
        let manifest = folder.join(FILE);
        let text = read(&manifest)?;
        let lines = text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        for (index, line) in lines {
            let entry = line.split_once('\t').and_then(|(file, rows)| Some((file, rows.parse::<usize>().ok()?)));
            match entry {
                Some((file, rows)) => check_file(dir, &folder.join(file), rows, faults)?,
                None => {
                    let message = "expected a file and its number of rows with a tab between";
                    faults.push(FileFault::at(&name(dir, &manifest), index + 1, message));
                }
            }
        }
    }
    Ok(())
}

fn check_file(dir: &Path, path: &Path, rows: usize, faults: &mut Vec<FileFault>) -> Result<(), ReferenceError> {
    let text = read(path)?;
    let found = text.lines().count();
    if found < rows || !text.is_empty() && !text.ends_with('\n') {
        let message = format!(
            "the file is cut short: it has {found} rows, the manifest says {rows}; where rows were meant to go, the \
             manifest is to be written anew"
        );
        faults.push(FileFault::at(&name(dir, path), 0, message));
    }
    Ok(())
}

/// Writes down how many rows each table of a folder below the directory of reference data has.
///
/// # Errors
/// When a file cannot be read, or the manifest not be written.
pub fn write_manifest(dir: &Path, folder: &str) -> Result<(), ReferenceError> {
    let folder = dir.join(folder);
    let path = folder.join(FILE);
    fs::write(&path, manifest(&folder)?).map_err(|source| unreadable(&path, source))
}

/// The manifest of a folder as its files are.
fn manifest(folder: &Path) -> Result<String, ReferenceError> {
    let mut files = Vec::new();
    tables_below(folder, &mut files)?;
    files.sort();
    let mut text = String::new();
    for file in files {
        let _ = writeln!(text, "{}\t{}", name(folder, &file), read(&file)?.lines().count());
    }
    Ok(text)
}

fn tables_below(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), ReferenceError> {
    for entry in fs::read_dir(folder).map_err(|source| unreadable(folder, source))? {
        let path = entry.map_err(|source| unreadable(folder, source))?.path();
        if path.is_dir() {
            tables_below(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "tsv") && !path.ends_with(FILE) {
            found.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `UPDATE_MANIFEST=1 cargo test --release --lib manifest` writes the manifests anew.
    #[test]
    fn the_manifests_that_ship_name_every_file_and_all_its_rows() {
        let models = Path::new("models");
        for folder in FOLDERS {
            let wanted = manifest(&models.join(folder)).expect("tables");
            assert!(wanted.lines().count() > 30, "{folder}: {wanted}");
            if std::env::var_os("UPDATE_MANIFEST").is_some() {
                write_manifest(models, folder).expect("written");
            }
            let found = fs::read_to_string(models.join(folder).join(FILE)).expect("a manifest");
            assert_eq!(found, wanted, "run UPDATE_MANIFEST=1 cargo test --release --lib manifest");
        }
    }

    #[test]
    fn a_file_that_is_emptied_or_cut_short_is_named() {
        let two = "it has 2 rows, the manifest says 2";
        for folder in FOLDERS {
            for (text, fault) in [
                ("6109\ta\tb\n610910\ta\tb\n", None),
                ("6109\ta\tb\n610910\ta\tb\n610990\ta\tb\n", None),
                ("6109\ta\tb\n610910\ta\tb", Some(two)),
                ("6109\ta\tb\n", Some("it has 1 rows, the manifest says 2")),
                ("", Some("it has 0 rows, the manifest says 2")),
            ] {
                let dir = tempfile::tempdir().expect("a directory");
                fs::create_dir_all(dir.path().join(folder).join("below")).expect("a folder");
                let file = dir.path().join(folder).join("below/61.tsv");
                fs::write(&file, "6109\ta\tb\n610910\ta\tb\n").expect("a table");
                write_manifest(dir.path(), folder).expect("a manifest");
                fs::write(&file, text).expect("a table");
                let mut faults = Vec::new();
                check(dir.path(), &mut faults).expect("readable");
                let told: Vec<String> = faults.iter().map(FileFault::to_string).collect();
                assert_eq!(told.len(), usize::from(fault.is_some()), "{text:?}: {told:?}");
                let named = format!("{folder}/below/61.tsv");
                assert!(fault.is_none_or(|fault| told[0].contains(fault) && told[0].contains(&named)), "{told:?}");
                // What was meant is written down.
                write_manifest(dir.path(), folder).expect("a manifest");
                let mut faults = Vec::new();
                check(dir.path(), &mut faults).expect("readable");
                assert_eq!(faults.len(), usize::from(!text.is_empty() && !text.ends_with('\n')), "{faults:?}");
            }
        }
        let dir = tempfile::tempdir().expect("a directory");
        assert!(check(dir.path(), &mut Vec::new()).is_ok(), "without a manifest nothing is checked");
    }
}
