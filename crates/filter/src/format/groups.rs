//! The checksums of a file's groups of lines: written with the lines, compared on first touch.
//!
//! A checksum covers its group's lines, the group's number and the header page, so that a group belongs to one place in one file: sound
//! pages of another filter, or of another place, do not match. It needs no checksum of its own, since a changed one matches no group.

use crate::codec::Encode;
use crate::hash::{digest, digest_at};
use crate::{LINE_BYTES, Line};

/// Lines that one checksum covers. With the header page before them they fill one 4 KiB page of the file, so that the first touch of a
/// group costs one page and less than a microsecond; larger groups would make it dearer and save nothing that matters (0.2 % of the lines).
pub const GROUP_LINES: usize = 64;
/// Bytes of a group's lines; the last group may have fewer.
pub const GROUP_BYTES: usize = GROUP_LINES * LINE_BYTES;
/// Bytes of a checksum.
pub const CHECKSUM_BYTES: usize = 8;

/// What the checksums of a file depend on besides lines and place: the digest of its header page.
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

    /// The first group of `lines` (whole groups from the file's first on) whose checksum in `checksums` is another.
    pub fn first_bad_group(self, lines: &[u8], checksums: &[u8]) -> Option<usize> {
        let stored = checksums.as_chunks::<CHECKSUM_BYTES>().0;
        let groups = lines.chunks(GROUP_BYTES).enumerate();
        groups
            .map(|(group, lines)| (group, self.checksum(group, lines).to_le_bytes()))
            .find_map(|(group, found)| (stored.get(group) != Some(&found)).then_some(group))
    }
}

/// Checksums of lines that come in pieces.
pub struct Checksums {
    seal: Seal,
    /// Of the whole groups so far, as in the file.
    bytes: Vec<u8>,
    /// Lines of a group that is not whole yet.
    begun: Vec<Line>,
}

impl Checksums {
    /// Starts at the first line.
    pub fn new(seal: Seal) -> Self {
        Checksums { seal, bytes: Vec::new(), begun: Vec::with_capacity(GROUP_LINES) }
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

    /// All checksums, as they stand in the file.
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
