//! Read-ahead: neighbouring blocks in one read.

use super::index::Index;
use super::reader::Segment;
use crate::error::Result;
use std::ops::Range;
use std::time::Duration;

/// Largest read-ahead.
pub const READ_BYTES: u64 = 256 << 10;
/// A mapped block that takes this long probably comes from the disk. From memory, it takes 1 to 3 µs.
const FROM_DISK: Duration = Duration::from_micros(10);

/// A part of a segment file in memory. The first read is one block, so that a short range stays cheap; each
/// further read is twice as large as the previous one, up to 256 KiB.
#[derive(Default)]
pub struct ReadAhead {
    bytes: Vec<u8>,
    holds: Range<u64>,
    next_bytes: u64,
    /// What [`announce`](Self::announce) has announced.
    announced: Range<u64>,
    /// The block with which that begins came from memory, not from the disk.
    was_warm: bool,
    /// Its reads do not count as reads of the store.
    uncounted: bool,
    /// Bytes read so far.
    read_bytes: u64,
}

impl ReadAhead {
    /// A window whose reads do not count, and are of full size from the start.
    pub fn uncounted() -> Self {
        ReadAhead { next_bytes: READ_BYTES, uncounted: true, ..ReadAhead::default() }
    }

    /// Bytes read from files so far.
    pub fn read_bytes(&self) -> u64 {
        self.read_bytes
    }

    /// Starts again with a read of one block, for another walk.
    pub fn start_over(&mut self) {
        (self.next_bytes, self.was_warm) = (0, false);
    }

    /// Forgets its contents, for another segment.
    pub fn forget(&mut self) {
        (self.holds, self.announced) = (0..0, 0..0);
    }

    /// Asks for the blocks that a walk in place will enter after block `at` (before it when `backwards`), in
    /// requests that grow as reads do. The first request covers `at` alone, which is read at once anyway.
    ///
    /// A request is a system call. It is saved if `at` `was_read` before and the previous request was for
    /// memory: the caller passes how long its first block took to [`note_time`](Self::note_time). Returns
    /// whether it shall.
    pub fn announce(
        &mut self,
        segment: &Segment,
        index: &Index,
        at: usize,
        backwards: bool,
        was_read: bool,
    ) -> bool {
        let handle = index.handle(at);
        if self.announced.start <= handle.offset && handle.end() <= self.announced.end {
            return false;
        }
        self.announced = index.span(at, backwards, self.next_bytes);
        if self.next_bytes > 0 && !(was_read && self.was_warm) {
            segment.file.will_need(self.announced.start, self.announced.end - self.announced.start);
        }
        self.next_bytes = (2 * self.next_bytes.max(u64::from(handle.len))).min(READ_BYTES);
        self.was_warm = false;
        was_read
    }

    /// How long the first block of the last request took.
    pub fn note_time(&mut self, time: Duration) {
        self.was_warm = time < FROM_DISK;
    }

    /// Block `at` of `index` as stored. On a miss, reads it with the blocks after it (before it when
    /// `backwards`), or alone if one of them cannot be read.
    pub fn stored(&mut self, segment: &Segment, index: &Index, at: usize, backwards: bool) -> Result<&[u8]> {
        let handle = index.handle(at);
        if !(self.holds.start <= handle.offset && handle.end() <= self.holds.end) {
            let (span, alone) = (index.span(at, backwards, self.next_bytes), handle.offset..handle.end());
            if let Err(error) = self.read(segment, span.clone()) {
                if span == alone {
                    return Err(error);
                }
                self.start_over();
                self.read(segment, alone)?;
            }
            self.next_bytes = (2 * self.next_bytes.max(u64::from(handle.len))).min(READ_BYTES);
        }
        let start = (handle.offset - self.holds.start) as usize;
        Ok(&self.bytes[start..start + handle.len as usize])
    }

    /// Reads exactly `span`.
    pub fn read(&mut self, segment: &Segment, span: Range<u64>) -> Result<&[u8]> {
        let len = (span.end - span.start) as usize;
        if self.bytes.capacity() as u64 > 4 * READ_BYTES {
            self.bytes = Vec::new(); // Give back the memory of a huge value.
        }
        if self.bytes.len() < len {
            self.bytes.resize(len, 0);
        }
        self.holds = 0..0;
        let bytes = &mut self.bytes[..len];
        segment.file.read_exact_at(bytes, span.start)?;
        self.read_bytes += len as u64;
        if !self.uncounted {
            segment.counters.read(len);
        }
        self.holds = span;
        Ok(bytes)
    }
}

impl Segment {
    /// Loads the index partitions that are not in memory yet, in large reads.
    pub fn warm_index(&self) -> Result<()> {
        let mut window = ReadAhead::default();
        for at in 0..self.top.len() {
            if !self.has_partition(at) {
                let stored = window.stored(self, &self.top, at, false)?;
                self.keep_partition(at, stored)?;
            }
        }
        Ok(())
    }
}
