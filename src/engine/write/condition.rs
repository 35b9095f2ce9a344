//! Conditional batches: a batch that is committed only if what its writer has read is still the newest.
//!
//! 1. The writer notes the [moment](Seen) and then reads without a lock: filters, memtables, perhaps blocks.
//! 2. The thread that commits the group holds the log, so nothing changes any more. It checks only what may
//!    be newer than the moment: the active memtable, and the batches ahead in the group. If another memtable
//!    has become active since, or rows were ingested, it does not know, and takes the condition for stale.
//! 3. A stale batch is not committed. Its writer reads again: only data decides whether it has a conflict.

use super::log::EncodedBatch;
use crate::engine::shared::Seen;
use crate::hash::KeyHasher;
use crate::key::{MAX_SEQ, Seq};
use crate::memtable::{Memtable, RangeList};
use crate::wal::{self, BatchOp, OpKind};
use bytes::Bytes;
use std::collections::HashSet;
use std::sync::Arc;

/// What must not have changed for a batch to be committed.
#[derive(Clone)]
pub(crate) struct Condition {
    /// When the writer began to read.
    pub seen: Seen,
    pub keys: ReadKeys,
}

/// The keys that a writer has read.
#[derive(Clone)]
pub(crate) enum ReadKeys {
    /// Those of the batch's own operations, which are puts and deletions of keys.
    Own,
    These(Vec<Vec<u8>>),
}

/// What became of a batch that was handed to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Committed,
    /// What its writer has read may have changed, so nothing was written: read again.
    Stale,
}

/// Marks the batches of a group whose conditions may no longer hold. The caller holds the log, with this
/// active memtable, in this epoch.
pub(super) fn mark_stale(group: &mut [EncodedBatch], table: &Memtable, epoch: u64, hasher: &KeyHasher) {
    let mut earlier = Earlier { hasher, keys: HashSet::new(), ranges: Vec::new() };
    let ranges = table.has_ranges().then(|| table.ranges());
    let newest = Newest { table, ranges, hasher };
    let last = group.len().saturating_sub(1);
    for (at, batch) in group.iter_mut().enumerate() {
        if let Some(condition) = &batch.condition {
            let since = condition.seen.seq;
            let is_newer = |key: &[u8]| newest.is_after(key, since) || earlier.may_change(key);
            let changed = condition.seen.epoch != epoch
                || match &condition.keys {
                    ReadKeys::Own => keys_of(&batch.payload).any(|op| is_newer(key_of(&op))),
                    ReadKeys::These(keys) => keys.iter().any(|key| is_newer(key)),
                };
            if changed {
                batch.outcome = Outcome::Stale;
                continue;
            }
        }
        if at < last {
            earlier.add(&batch.payload);
        }
    }
}

fn keys_of(payload: &Bytes) -> impl Iterator<Item = BatchOp> {
    wal::ops(payload.clone())
}

fn key_of(op: &BatchOp) -> &[u8] {
    op.data.get(..op.key_len).unwrap_or_default()
}

/// The newest change of a key in the active memtable.
struct Newest<'a> {
    table: &'a Memtable,
    /// `None` if there are no range tombstones.
    ranges: Option<Arc<RangeList>>,
    hasher: &'a KeyHasher,
}

impl Newest<'_> {
    fn is_after(&self, key: &[u8], since: Seq) -> bool {
        let entry = self.table.get(key, self.hasher.hash(key), MAX_SEQ);
        entry.is_some_and(|entry| entry.seq > since)
            || self.ranges.as_ref().is_some_and(|ranges| ranges.seq_at(key, MAX_SEQ) > since)
    }
}

/// What the batches ahead in a group change. They are not in the memtable yet.
struct Earlier<'a> {
    hasher: &'a KeyHasher,
    /// Hashes suffice: equal ones of different keys cost their writer another read.
    keys: HashSet<u64>,
    /// Starts and ends of deleted ranges; without an end, a range extends to the last key.
    ranges: Vec<(Bytes, Bytes)>,
}

impl Earlier<'_> {
    fn add(&mut self, payload: &Bytes) {
        for op in keys_of(payload) {
            if op.kind == OpKind::DeleteRange {
                let mut start = op.data;
                let end = start.split_off(op.key_len);
                self.ranges.push((start, end));
            } else {
                self.keys.insert(self.hasher.hash(key_of(&op)));
            }
        }
    }

    fn may_change(&self, key: &[u8]) -> bool {
        let within = |(start, end): &(Bytes, Bytes)| **start <= *key && (end.is_empty() || *key < **end);
        self.ranges.iter().any(within) || !self.keys.is_empty() && self.keys.contains(&self.hasher.hash(key))
    }
}
