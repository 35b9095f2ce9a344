//! What is known about a segment without opening it.

use super::facts::Facts;
use super::format::{Footer, WRITES};
use crate::id::FileId;
use crate::key::Space;
use std::ops::Deref;

/// A segment's identity, sizes and facts, from its footer and properties. The manifest keeps a copy.
/// Dereferences to the facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentSummary {
    /// Its file number.
    pub id: FileId,
    /// The version of its file's format.
    pub version: u32,
    /// The 64-bit digest of the file up to its footer. A sidecar is bound to it.
    pub digest: u64,
    /// Length of the file, in bytes.
    pub file_bytes: u64,
    /// Length of the data blocks as stored, in bytes.
    pub data_bytes: u64,
    /// What it holds.
    pub facts: Facts,
}

impl Deref for SegmentSummary {
    type Target = Facts;
    #[inline]
    fn deref(&self) -> &Facts {
        &self.facts
    }
}

impl SegmentSummary {
    /// Whether its file has an earlier release's format, which a compaction replaces.
    pub fn is_of_earlier_format(&self) -> bool {
        self.version < WRITES
    }

    /// Combines footer and facts.
    pub(super) fn new(footer: &Footer, facts: Facts, data_bytes: u64, file_bytes: u64) -> Self {
        let &Footer { id, version, digest, number, .. } = footer;
        SegmentSummary { id, version, digest, file_bytes, data_bytes, facts: facts.numbered(number) }
    }

    /// The keyspace of all its keys; `None` if there are several.
    pub fn owner(&self) -> Option<Space> {
        Space::of(&self.facts.smallest).filter(|space| space.contains(&self.facts.largest))
    }
}
