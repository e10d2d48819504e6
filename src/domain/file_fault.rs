//! What is wrong with one line of a file that someone wrote.

use std::fmt;

/// A mistake in a file of reference data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFault {
    /// The file, as the caller named it.
    pub file: String,
    /// The line, counted from 1; 0 where the mistake is of the file as a whole.
    pub line: usize,
    /// The mistake in words.
    pub message: String,
}

impl FileFault {
    /// A mistake at a line.
    pub fn at(file: &str, line: usize, message: impl Into<String>) -> FileFault {
        FileFault { file: file.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for FileFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.message),
            line => write!(f, "{}:{line}: {}", self.file, self.message),
        }
    }
}

/// Lines that carry something, with their number from 1: not empty and no comment beginning with `#`.
pub(crate) fn content_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line.trim_end_matches('\r')))
        .filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))
}
