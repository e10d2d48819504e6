//! Reference data of the service: the nomenclatures with their labels, and the VAT rules.
//!
//! They are files in a directory, `models/` or an operator's own with the same layout, read and checked as a whole at
//! start:
//!
//! ```text
//! taxonomy/hs2022/NN.tsv           a chapter of the Harmonized System: code, German label, English label
//! taxonomy/successors.tsv          ended codes and what took their place (may be absent)
//! taxonomy/national/TAXONOMY.tsv   a national list, as `training import-nomenclature` writes it (may be absent)
//! taxonomy/manifest.tsv            how many rows each file of taxonomy/ has at least (may be absent)
//! vat/manifest.tsv                 the same of vat/ (may be absent)
//! taxonomy/lines/TAXONOMY/NN.tsv   our labels of its lines (may be absent); UKGT has those of TARIC, from which it grew
//! vat/sides.tsv                    the sides of partial rules: two digits, German name, English name
//! vat/CC.tsv                       the rates and rules of a country
//! vat/territories/CODE.tsv         a territory with rates or borders of its own (may be absent)
//! ```

mod manifest;

use std::fmt;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};

use chrono::NaiveDate;

use crate::domain::file_fault::FileFault;
use crate::domain::nomenclature::{
    Builder, LabelledRow, Nomenclature, parse_harmonized, parse_line_labels, parse_national, parse_successors,
};
use crate::domain::vat::{CountryRules, VatRules, parse_country, parse_sides};
use crate::domain::{ClassCode, Taxonomy};

pub use manifest::{VAT, write_manifest};

/// Faults shown in one error; a file of another kind would give one for each of its lines.
const MAX_FAULTS_SHOWN: usize = 20;
/// Bytes of one file, at most: the largest national list has 10 MB.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// Where the national list of a taxonomy lies below the directory of reference data.
pub fn national_file(dir: &Path, taxonomy: Taxonomy) -> PathBuf {
    dir.join("taxonomy").join("national").join(format!("{taxonomy}.tsv"))
}

/// The nomenclatures and VAT rules that the service works with.
#[derive(Debug)]
pub struct Reference {
    /// By [`Taxonomy::index`].
    pub nomenclatures: [Nomenclature; 3],
    /// The rules of all countries.
    pub vat: VatRules,
    /// Differs between sets of taxonomies and VAT rules that may lead to other rates.
    pub rule_set: String,
    /// The day on which the codes are alive.
    pub day: NaiveDate,
}

/// Why reference data cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ReferenceError {
    /// A file that must be there cannot be read.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// The file or directory.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// What the files say is wrong.
    #[error("{0}")]
    Faulty(Faults),
}

/// Mistakes in files of reference data, in the order in which they were found.
#[derive(Debug)]
pub struct Faults(pub Vec<FileFault>);

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} mistakes in the reference data", self.0.len())?;
        for fault in self.0.iter().take(MAX_FAULTS_SHOWN) {
            write!(f, "\n  {fault}")?;
        }
        if self.0.len() > MAX_FAULTS_SHOWN { write!(f, "\n  and so on") } else { Ok(()) }
    }
}

impl Reference {
    /// Reads and checks everything below a directory, for codes that are alive today.
    ///
    /// # Errors
    /// When a file is missing or unreadable, or when anything in the files is wrong; then with every mistake, by file
    /// and line.
    pub fn load(dir: &Path) -> Result<Reference, ReferenceError> {
        Reference::load_as_of(dir, chrono::Utc::now().date_naive())
    }

    /// As [`Reference::load`], for codes that are alive on a given day.
    ///
    /// # Errors
    /// As for [`Reference::load`].
    pub fn load_as_of(dir: &Path, date: NaiveDate) -> Result<Reference, ReferenceError> {
        let mut faults = Vec::new();
        manifest::check(dir, &mut faults)?;
        let harmonized = Harmonized::load(dir, &mut faults)?;
        let mut build = |taxonomy: Taxonomy| -> Result<Nomenclature, ReferenceError> {
            let mut builder = Builder::new(taxonomy, date);
            for (file, rows) in &harmonized.chapters {
                builder.harmonized(file, rows, &mut faults);
            }
            builder.successors(&harmonized.successors);
            let path = national_file(dir, taxonomy);
            if path.exists() {
                let national = parse_national(&name(dir, &path), &read(&path)?, taxonomy, &mut faults);
                builder.national(national);
                for (file, rows) in line_labels(dir, taxonomy, &mut faults)? {
                    builder.labels(&file, &rows, &mut faults);
                }
            }
            Ok(builder.build("taxonomy", &mut faults))
        };
        let nomenclatures = [build(Taxonomy::Taric)?, build(Taxonomy::Tares)?, build(Taxonomy::Ukgt)?];
        for (old, new) in harmonized.successors.iter().filter(|(_, new)| !nomenclatures[0].contains(*new)) {
            faults.push(FileFault::at(
                "taxonomy/successors.tsv",
                0,
                format!("{new}, which follows {old}, is not listed"),
            ));
        }
        let (vat, vat_text) = load_vat(dir, &mut faults)?;
        vat.check_codes(&nomenclatures, &mut faults);
        if faults.is_empty() {
            let mut hasher = DefaultHasher::new();
            hasher.write(vat_text.as_bytes());
            nomenclatures.iter().flat_map(Nomenclature::codes).for_each(|code| code.hash(&mut hasher));
            Ok(Reference { nomenclatures, vat, rule_set: format!("{:016x}", hasher.finish()), day: date })
        } else {
            Err(ReferenceError::Faulty(Faults(without_repeats(faults))))
        }
    }

    /// The nomenclature of a taxonomy.
    pub fn nomenclature(&self, taxonomy: Taxonomy) -> &Nomenclature {
        &self.nomenclatures[taxonomy.index()]
    }
}

/// The part that the three taxonomies share.
struct Harmonized {
    chapters: Vec<(String, Vec<LabelledRow>)>,
    successors: Vec<(ClassCode, ClassCode)>,
}

impl Harmonized {
    fn load(dir: &Path, faults: &mut Vec<FileFault>) -> Result<Harmonized, ReferenceError> {
        let folder = dir.join("taxonomy").join("hs2022");
        let mut loaded = Harmonized { chapters: Vec::new(), successors: Vec::new() };
        for path in files_in(&folder)? {
            let (file, text) = (name(dir, &path), read(&path)?);
            let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            let rows = parse_harmonized(&file, &text, faults);
            for row in rows.iter().filter(|row| !row.code.as_str().starts_with(stem)) {
                faults.push(FileFault::at(&file, 0, format!("code {} belongs to another chapter", row.code)));
            }
            loaded.chapters.push((file, rows));
        }
        let path = dir.join("taxonomy").join("successors.tsv");
        if path.exists() {
            loaded.successors = parse_successors(&name(dir, &path), &read(&path)?, faults);
        }
        Ok(loaded)
    }
}

/// Our labels of the lines of a national list, by file; none where nobody wrote any.
fn line_labels(
    dir: &Path,
    taxonomy: Taxonomy,
    faults: &mut Vec<FileFault>,
) -> Result<Vec<(String, Vec<LabelledRow>)>, ReferenceError> {
    // The eight digits of the United Kingdom are those of the Combined Nomenclature that it left.
    let written_for = if taxonomy == Taxonomy::Ukgt { Taxonomy::Taric } else { taxonomy };
    let folder = dir.join("taxonomy").join("lines").join(written_for.to_string());
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let mut labels = Vec::new();
    for path in files_in(&folder)? {
        let file = name(dir, &path);
        let rows = parse_line_labels(&file, &read(&path)?, faults);
        labels.push((file, rows));
    }
    Ok(labels)
}

/// The rules, and all texts that they were read from.
fn load_vat(dir: &Path, faults: &mut Vec<FileFault>) -> Result<(VatRules, String), ReferenceError> {
    let folder = dir.join("vat");
    let sides_file = folder.join("sides.tsv");
    let mut all = read(&sides_file)?;
    let sides = parse_sides(&name(dir, &sides_file), &all, faults);
    let mut load = |code: &str, path: &Path, known: &[CountryRules]| -> Result<CountryRules, ReferenceError> {
        let text = read(path)?;
        let rules = parse_country(code, &name(dir, path), &text, known, faults);
        all.push_str(&text);
        Ok(rules)
    };
    let mut countries: Vec<CountryRules> = Vec::new();
    for country in Taxonomy::ALL.into_iter().flat_map(Taxonomy::countries) {
        let rules = load(country, &folder.join(format!("{country}.tsv")), &countries)?;
        countries.push(rules);
    }
    let mut territories: Vec<CountryRules> = Vec::new();
    let folder = folder.join("territories");
    for path in if folder.exists() { files_in(&folder)? } else { Vec::new() } {
        let code = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        territories.push(load(code, &path, &countries)?);
    }
    Ok((VatRules::new(&countries, &territories, sides, faults), all))
}

/// The files of a folder that hold tables, in order.
fn files_in(folder: &Path) -> Result<Vec<PathBuf>, ReferenceError> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(|source| unreadable(folder, source))? {
        let path = entry.map_err(|source| unreadable(folder, source))?.path();
        if path.extension().is_some_and(|extension| extension == "tsv") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn read(path: &Path) -> Result<String, ReferenceError> {
    let failed = |source| unreadable(path, source);
    if fs::metadata(path).map_err(failed)?.len() > MAX_FILE_BYTES {
        return Err(failed(io::Error::other("the file is too large")));
    }
    fs::read_to_string(path).map_err(failed)
}

fn unreadable(path: &Path, source: io::Error) -> ReferenceError {
    ReferenceError::Unreadable { path: path.to_owned(), source }
}

/// The path of a file as it lies below the directory, for messages.
fn name(dir: &Path, path: &Path) -> String {
    path.strip_prefix(dir).unwrap_or(path).display().to_string()
}

/// The three taxonomies share files, and would name each mistake three times.
fn without_repeats(faults: Vec<FileFault>) -> Vec<FileFault> {
    let mut once: Vec<FileFault> = Vec::new();
    for fault in faults {
        if !once.contains(&fault) {
            once.push(fault);
        }
    }
    once
}

#[cfg(test)]
mod tests;
