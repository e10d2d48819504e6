//! Where files lie between a client and the database: on disk, without a name, so that nothing is left of them.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use uuid::Uuid;

/// Makes files that are gone when they are closed, however the service ends.
#[derive(Clone, Debug)]
pub struct Spool {
    directory: PathBuf,
}

impl Spool {
    /// Files in this directory, which is made when it is needed.
    pub fn new(directory: &Path) -> Spool {
        Spool { directory: directory.to_owned() }
    }

    /// An empty file to write and to read.
    ///
    /// # Errors
    /// When the directory or the disk fails.
    pub fn file(&self) -> io::Result<File> {
        fs::create_dir_all(&self.directory)?;
        let path = self.directory.join(Uuid::new_v4().to_string());
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        fs::remove_file(&path)?;
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, Write};

    use super::*;

    #[test]
    fn a_file_can_be_read_again_and_has_no_name() {
        let directory = tempfile::tempdir().expect("a directory");
        let spool = Spool::new(&directory.path().join("spool"));
        let mut file = spool.file().expect("a file");
        file.write_all(b"rows").expect("written");
        file.rewind().expect("rewound");
        let mut text = String::new();
        file.read_to_string(&mut text).expect("read");
        assert_eq!(text, "rows");
        assert_eq!(fs::read_dir(directory.path().join("spool")).expect("a directory").count(), 0);
    }
}
