//! The table of labels: which codes exist, and their names in own words.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use vat_classification::domain::ClassCode;

/// A class with its labels.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Label {
    /// Two, four or six digits.
    pub(crate) code: ClassCode,
    /// German label.
    pub(crate) de: String,
    /// English label.
    pub(crate) en: String,
}

/// All labels below a directory of `NN.tsv` files (code, German, English), in the order of files and lines.
pub(crate) fn read(directory: &Path) -> Result<Vec<Label>> {
    let mut files: Vec<_> = fs::read_dir(directory)
        .with_context(|| format!("label tables in {}", directory.display()))?
        .collect::<Result<Vec<_>, _>>()?
        .into_iter()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "tsv"))
        .collect();
    files.sort();
    let mut labels = Vec::new();
    for path in files {
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        for (index, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') || line.starts_with("code\t") {
                continue;
            }
            let fields: Vec<&str> = line.split('\t').collect();
            let &[code, de, en] = &fields[..] else {
                bail!("{}:{}: {} fields instead of code, German, English", path.display(), index + 1, fields.len());
            };
            let code = ClassCode::new(code).filter(|code| [2, 4, 6].contains(&code.digits()));
            let code =
                code.with_context(|| format!("{}:{}: not a code of 2, 4 or 6 digits", path.display(), index + 1))?;
            labels.push(Label { code, de: de.trim().to_owned(), en: en.trim().to_owned() });
        }
    }
    Ok(labels)
}
