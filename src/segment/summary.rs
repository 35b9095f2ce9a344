//! What is known about a segment without opening it.

use super::format::{Footer, WRITES};
use super::properties::Properties;
use crate::id::FileId;
use crate::key::Seq;
use bytes::Bytes;

/// A segment's identity, bounds, counts and sizes, from its footer and properties. The manifest keeps a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentSummary {
    /// Its file number.
    pub id: FileId,
    /// The version of its file's format.
    pub version: u32,
    /// The 64-bit digest of the file up to its footer. A sidecar is bound to it.
    pub digest: u64,
    /// Number of entries, tombstones included; never 0.
    pub entries: u64,
    /// Number of tombstones.
    pub tombstones: u64,
    /// Length of the longest streak of tombstones, of keys and ranges, without a put in between.
    pub longest_streak: u64,
    /// Number of ranges that range tombstones delete.
    pub ranges: u64,
    /// The smallest key of an entry or a deleted range.
    pub smallest: Vec<u8>,
    /// The largest one. The end of a deleted range counts, although it is not deleted itself. Segments whose
    /// ranges have no end share the memory of the last key of all.
    pub largest: Bytes,
    /// The smallest sequence number.
    pub min_seq: Seq,
    /// The largest sequence number.
    pub max_seq: Seq,
    /// Length of the file, in bytes.
    pub file_bytes: u64,
    /// Length of the data blocks as stored, in bytes.
    pub data_bytes: u64,
    /// Length of keys and values before compression, in bytes.
    pub raw_bytes: u64,
}

impl SegmentSummary {
    /// Whether it has tombstones, of keys or ranges.
    pub fn has_tombstones(&self) -> bool {
        self.tombstones > 0 || self.ranges > 0
    }

    /// Whether its file has an earlier release's format, which a compaction replaces.
    pub fn is_of_earlier_format(&self) -> bool {
        self.version < WRITES
    }

    /// Combines footer and properties.
    pub(super) fn new(footer: &Footer, properties: Properties, data_bytes: u64, file_bytes: u64) -> Self {
        let properties = properties.numbered(footer.number);
        SegmentSummary {
            id: footer.id,
            version: footer.version,
            digest: footer.digest,
            entries: properties.entries,
            tombstones: properties.tombstones,
            longest_streak: properties.longest_streak,
            ranges: properties.ranges,
            smallest: properties.smallest,
            largest: properties.largest,
            min_seq: properties.min_seq,
            max_seq: properties.max_seq,
            file_bytes,
            data_bytes,
            raw_bytes: properties.raw_bytes,
        }
    }
}
