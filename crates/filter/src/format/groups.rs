//! The checksums of the groups of lines in a file: written with the lines, and compared on first touch.
//!
//! A checksum covers the lines of its group, the number of the group and the header page. So a group is valid
//! at one place in one file only: intact pages of another filter or from another offset do not match. The
//! checksums need no checksum of their own, because a damaged one matches no group.

use crate::codec::Encode;
use crate::hash::{digest, digest_at};
use crate::{LINE_BYTES, Line};

/// Lines per checksum. A group fills one 4 KiB page of the file, so the first touch of a group costs one page
/// and less than a microsecond. Larger groups would cost more and save little: checksums take 0.2 %.
pub const GROUP_LINES: usize = 64;
/// Bytes per group; the last group may have fewer.
pub const GROUP_BYTES: usize = GROUP_LINES * LINE_BYTES;
/// Bytes per checksum.
pub const CHECKSUM_BYTES: usize = 8;

/// The digest of the header page, which every checksum of the file depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seal(u64);

impl Seal {
    /// The seal of a file with this header page.
    pub fn of(header_page: &[u8]) -> Self {
        Seal(digest(header_page))
    }

    /// The checksum of a group.
    pub fn checksum(self, group: usize, lines: &[u8]) -> u64 {
        digest_at(lines, self.0.wrapping_add(group as u64))
    }

    /// The first group of `lines`, which start at group `first` of the file, that does not match its checksum
    /// in `checksums`, which start at the same group.
    pub fn first_bad_group(self, first: usize, lines: &[u8], checksums: &[u8]) -> Option<usize> {
        let stored = checksums.as_chunks::<CHECKSUM_BYTES>().0;
        let groups = lines.chunks(GROUP_BYTES).enumerate();
        groups
            .map(|(at, lines)| (at, self.checksum(first + at, lines).to_le_bytes()))
            .find_map(|(at, found)| (stored.get(at) != Some(&found)).then_some(first + at))
    }
}

/// Computes the checksums of lines that come in pieces.
pub struct GroupChecksums {
    seal: Seal,
    /// The checksums of the complete groups, as in the file.
    bytes: Vec<u8>,
    /// Lines of an incomplete group.
    begun: Vec<Line>,
}

impl GroupChecksums {
    /// Starts at the first line.
    pub fn new(seal: Seal) -> Self {
        GroupChecksums { seal, bytes: Vec::new(), begun: Vec::with_capacity(GROUP_LINES) }
    }

    /// Appends lines, in the order of the file.
    pub fn add(&mut self, mut lines: &[Line]) {
        while !lines.is_empty() {
            let (now, later) = lines.split_at(lines.len().min(GROUP_LINES - self.begun.len()));
            if now.len() == GROUP_LINES {
                self.put(now);
            } else {
                self.begun.extend_from_slice(now);
                self.end_if(GROUP_LINES);
            }
            lines = later;
        }
    }

    /// All checksums, as in the file.
    pub fn finish(mut self) -> Vec<u8> {
        self.end_if(1);
        self.bytes
    }

    fn end_if(&mut self, at_least: usize) {
        if self.begun.len() >= at_least {
            let lines = std::mem::take(&mut self.begun);
            self.put(&lines);
        }
    }

    fn put(&mut self, lines: &[Line]) {
        let group = self.bytes.len() / CHECKSUM_BYTES;
        self.bytes.put_u64(self.seal.checksum(group, lines.as_flattened()));
    }
}
