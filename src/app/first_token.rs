//! The file that the token of the first start is written to, which only the user of the service may read.

use std::fs::{self, OpenOptions};
use std::io::{IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use anyhow::Context;

use crate::app::settings::ServeSettings;

/// The name of the file in the data directory.
const NAME: &str = "first-token";
/// Only its owner may read and write it.
const MODE: u32 = 0o600;

/// Where the token is to be written: where the settings say, else into the data directory when what the service prints
/// goes to no terminal and may be gone before anybody reads it.
pub(super) fn file(settings: &ServeSettings) -> Option<PathBuf> {
    let named = settings.first_token_file.clone();
    named.or_else(|| (!std::io::stdout().is_terminal()).then(|| settings.database.data_dir.join(NAME)))
}

/// A token written beside its place; it goes away again unless it is kept.
#[derive(Debug)]
pub(super) struct Written {
    beside: PathBuf,
    path: PathBuf,
}

impl Written {
    pub(super) fn new(path: PathBuf, token: &str) -> anyhow::Result<Written> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}", std::process::id()));
        let beside = path.with_file_name(name);
        // One by our own number is of a service that died over it: in a container all have the same.
        let _ = fs::remove_file(&beside);
        let written = OpenOptions::new().write(true).create_new(true).mode(MODE).open(&beside).and_then(|mut file| {
            writeln!(file, "{token}")?;
            file.sync_all()
        });
        written.with_context(|| format!("FIRST_TOKEN_FILE: cannot write {}", beside.display()))?;
        Ok(Written { beside, path })
    }

    /// Gives the file its name, and answers it.
    pub(super) fn keep(self) -> anyhow::Result<PathBuf> {
        let path = self.path.clone();
        fs::rename(&self.beside, &path)
            .with_context(|| format!("FIRST_TOKEN_FILE: cannot write {}", path.display()))?;
        Ok(path)
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        // After it was kept there is nothing by this name any more.
        let _ = fs::remove_file(&self.beside);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_kept_token_is_the_owners_alone_and_another_leaves_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("first-token");
        drop(Written::new(path.clone(), "one").expect("written"));
        assert_eq!(fs::read_dir(directory.path()).expect("a list").count(), 0);
        Written::new(path.clone(), "two").expect("written").keep().expect("kept");
        assert_eq!(fs::read_to_string(&path).expect("a token"), "two\n");
        assert_eq!(fs::metadata(&path).expect("facts").permissions().mode() & 0o777, MODE);
        let left = Written::new(path.clone(), "three").expect("written");
        Written::new(path.clone(), "four").expect("in place of one that was left").keep().expect("kept");
        drop(left);
        assert_eq!(fs::read_to_string(&path).expect("a token"), "four\n");
        assert_eq!(fs::read_dir(directory.path()).expect("a list").count(), 1);
    }
}
