//! What a corpus holds: its rows, where each stands, and the faults of its lines.

use anyhow::{Result, bail};
use vat_classification::classify::words::Language;
use vat_classification::domain::ClassCode;

use crate::marks::Marks;

/// A text with the code it stands for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    /// Two, four or six digits.
    pub(crate) code: ClassCode,
    /// Language of the text.
    pub(crate) language: Language,
    /// Name of the product.
    pub(crate) name: String,
    /// Description, when the row has one.
    pub(crate) description: Option<String>,
    /// Tags, such as the shelves on which a shop has it.
    pub(crate) tags: Vec<String>,
    /// Where it stands.
    pub(crate) place: Place,
    /// Hash of the line it comes from: rows of one template share it, and are held out together.
    pub(crate) group: u64,
    /// Whether a template generated it.
    pub(crate) generated: bool,
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    /// Name of the file.
    pub(crate) file: String,
    /// Line, counted from 1.
    pub(crate) line: usize,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fault {
    /// Where.
    pub(crate) place: Place,
    /// What.
    pub(crate) what: String,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// All rows of a corpus and all its faults.
#[derive(Debug, Default)]
pub(crate) struct Corpus {
    /// The rows, in the order of files and lines.
    pub(crate) rows: Vec<Row>,
    /// Lines that were left out, and why.
    pub(crate) faults: Vec<Fault>,
    /// Words and phrases that are no evidence.
    pub(crate) marks: Marks,
    /// Shops' own labels, which are left out of texts.
    pub(crate) own_labels: Vec<String>,
    /// Brands, product lines and store brands among them.
    pub(crate) brands: usize,
}

/// Fails with the first faults when there are any.
pub(crate) fn refuse_faults(corpus: &Corpus) -> Result<()> {
    const SHOWN: usize = 20;
    if corpus.faults.is_empty() {
        return Ok(());
    }
    let shown: Vec<String> = corpus.faults.iter().take(SHOWN).map(ToString::to_string).collect();
    bail!("{} faults in the corpus:\n{}", corpus.faults.len(), shown.join("\n"))
}
