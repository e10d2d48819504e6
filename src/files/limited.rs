//! A source that fails when too much of it is read at a stretch: readers of XML keep whatever lies between two tags, and
//! an archive of a few bytes may hold any number of them.

use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes since whoever reads last said that it can go on.
#[derive(Clone, Debug, Default)]
pub(super) struct Stretch(Arc<AtomicU64>);

impl Stretch {
    /// Begins anew.
    pub(super) fn begin(&self) {
        self.0.store(0, Relaxed);
    }
}

/// The source.
pub(super) struct Limited<R> {
    source: R,
    stretch: Stretch,
    most: u64,
}

impl<R> Limited<R> {
    /// At most so many bytes at a stretch.
    pub(super) fn new(source: R, most: u64) -> Limited<R> {
        Limited { source, stretch: Stretch::default(), most }
    }

    /// To begin stretches.
    pub(super) fn stretch(&self) -> Stretch {
        self.stretch.clone()
    }
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        let since = self.stretch.0.fetch_add(read as u64, Relaxed) + read as u64;
        if since > self.most {
            return Err(io::Error::other(format!("more than {} bytes belong together", self.most)));
        }
        Ok(read)
    }
}

impl<R: Seek> Seek for Limited<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.stretch.begin();
        self.source.seek(to)
    }
}
