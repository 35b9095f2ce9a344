//! Conditional batches: a batch that is committed only if what its writer has read is still the newest.
//!
//! 1. The writer notes the [moment](Seen) and then reads without a lock: filters, memtables, perhaps blocks.
//! 2. The thread that commits the group holds the log, so nothing changes any more. It checks only what may
//!    be newer than the moment: the active memtable, and the batches ahead in the group. If another memtable
//!    has become active since, or rows were ingested, it does not know, and takes the condition for stale.
//! 3. A stale batch is not committed. Its writer reads again: only data decides whether it has a conflict.
//!
//! In ranges that were read, the memtable could have any number of newer entries, and to look up very many
//! keys would keep the log locked for long. So the log keeps its latest batches while a transaction with such
//! reads commits (`recent.rs`).

use crate::bounds::KeyRange;
use crate::engine::shared::Seen;
use std::sync::Arc;

/// What must not have changed for a batch to be committed.
#[derive(Clone)]
pub(crate) struct Condition {
    /// When the writer began to read.
    pub seen: Seen,
    pub reads: Reads,
    /// How often it was stale before.
    pub attempts: u32,
}

/// What a writer has read.
#[derive(Clone)]
pub(crate) enum Reads {
    /// The keys of the batch's own operations, which are puts and deletions of keys.
    OwnKeys,
    These(Arc<ReadSet>),
}

/// Keys and ranges that were read.
#[derive(Debug, Default)]
pub(crate) struct ReadSet {
    /// Sorted.
    pub keys: Vec<Vec<u8>>,
    pub ranges: Vec<KeyRange>,
}

impl ReadSet {
    /// Keys that the holder of the log looks up in the memtable, at most. It takes as long as a few puts.
    const LOOKUPS_MAX: usize = 256;

    /// Whether it is compared with the log's latest batches, instead of the memtable. Whoever hands it in has
    /// called [`Writer::keep_recent`](super::Writer::keep_recent).
    pub fn needs_recent(&self) -> bool {
        !self.ranges.is_empty() || self.keys.len() > Self::LOOKUPS_MAX
    }
}

/// What became of a batch that was handed to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Committed,
    /// What its writer has read may have changed, so nothing was written: read again.
    Stale,
}
