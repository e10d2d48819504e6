//! A source that fails when too much of it is read at a stretch, and a count of open tags: readers of XML keep whatever
//! lies between two tags, and the name of each that is open, and an archive of a few bytes may hold any number of them.

use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use quick_xml::events::Event;

/// Most tags that are open within each other: a cell of a sheet lies below about ten.
const MAX_OPEN_TAGS: usize = 64;

/// A tag that Excel leaves open in what it writes of drawings, as browsers do; and how often it may.
const BREAK: &str = "br";
const MAX_BREAKS: usize = 100_000;

/// How many tags are open, and how many breaks were left so.
#[derive(Debug, Default)]
pub(super) struct Open {
    tags: usize,
    breaks: usize,
}

impl Open {
    /// Goes on behind an event.
    ///
    /// # Errors
    /// When too many are open.
    pub(super) fn follow(&mut self, event: &Event<'_>) -> io::Result<()> {
        match event {
            Event::Start(start) if start.local_name().into_inner() == BREAK => self.breaks += 1,
            Event::End(end) if end.local_name().into_inner() == BREAK => self.breaks = self.breaks.saturating_sub(1),
            Event::Start(_) => self.tags += 1,
            Event::End(_) => self.tags = self.tags.saturating_sub(1),
            _ => {}
        }
        if self.tags > MAX_OPEN_TAGS || self.breaks > MAX_BREAKS {
            return Err(io::Error::other(format!("more than {MAX_OPEN_TAGS} tags are open within each other")));
        }
        Ok(())
    }
}

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
