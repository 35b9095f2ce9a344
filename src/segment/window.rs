//! Read-ahead: neighbouring blocks in one read.

use super::index::Index;
use super::reader::Segment;
use crate::error::Result;
use std::ops::Range;

/// The size to which reads grow.
pub const READ_BYTES: u64 = 256 << 10;

/// A part of a segment file in memory. The first read is one block, so that a short range stays cheap; each next one is twice as
/// large as the one before, up to 256 KiB.
#[derive(Default)]
pub struct Window {
    bytes: Vec<u8>,
    holds: Range<u64>,
    next_bytes: u64,
    /// Whether its reads count as reads of the store.
    uncounted: bool,
}

impl Window {
    /// For reads that do not count, of full size from the start.
    pub fn uncounted() -> Self {
        Window { next_bytes: READ_BYTES, uncounted: true, ..Window::default() }
    }

    /// Block `at` of `index` as it is stored. Reads it, and blocks behind it (before it when `backwards`), if need be.
    pub fn stored(&mut self, segment: &Segment, index: &Index, at: usize, backwards: bool) -> Result<&[u8]> {
        let handle = index.handle(at);
        if !(self.holds.start <= handle.offset && handle.end() <= self.holds.end) {
            self.read(segment, index.span(at, backwards, self.next_bytes))?;
            self.next_bytes = (2 * self.next_bytes.max(u64::from(handle.len))).min(READ_BYTES);
        }
        let start = (handle.offset - self.holds.start) as usize;
        Ok(&self.bytes[start..start + handle.len as usize])
    }

    /// Reads exactly `span` and gives it.
    pub fn read(&mut self, segment: &Segment, span: Range<u64>) -> Result<&[u8]> {
        let len = (span.end - span.start) as usize;
        if self.bytes.capacity() as u64 > 4 * READ_BYTES {
            self.bytes = Vec::new(); // A huge value has passed through.
        }
        if self.bytes.len() < len {
            self.bytes.resize(len, 0);
        }
        self.holds = 0..0;
        let bytes = &mut self.bytes[..len];
        segment.file.read_exact_at(bytes, span.start)?;
        if !self.uncounted {
            segment.counters.read(len);
        }
        self.holds = span;
        Ok(bytes)
    }
}
