//! Whether what the writers of a group have read may have changed: see `condition.rs`.

use super::condition::{ReadSet, Reads};
use super::log::{ActiveLog, EncodedBatch};
use super::recent::changes;
use crate::hash::KeyHasher;
use crate::key::{MAX_SEQ, Seq};
use crate::memtable::{Memtable, RangeList};
use crate::wal::{self, OpKind};
use bytes::Bytes;
use std::collections::HashSet;
use std::sync::Arc;

/// Empties the batches of a group whose conditions may no longer hold, given the epoch. The caller holds the
/// log.
pub(super) fn clear_stale(group: &mut [EncodedBatch], log: &ActiveLog, epoch: u64, hasher: &KeyHasher) {
    let ranges = log.memtable.has_ranges().then(|| log.memtable.ranges());
    let newest = Newest { table: &log.memtable, ranges, hasher };
    let mut earlier = Earlier { hasher, payloads: Vec::new(), keys: HashSet::new(), ranges: Vec::new() };
    let last = group.len().saturating_sub(1);
    for (at, batch) in group.iter_mut().enumerate() {
        if let Some(condition) = &batch.condition {
            let since = condition.seen.seq;
            let may_be_newer = |key: &[u8]| newest.is_after(key, since) || earlier.may_change(key);
            let is_older = condition.seen.epoch != epoch;
            let is_stale = match &condition.reads {
                Reads::OwnKeys => {
                    is_older
                        || wal::ops(batch.payload.clone())
                            .any(|op| op.kind != OpKind::Time && may_be_newer(op.key()))
                }
                Reads::These(reads) if reads.needs_recent() => {
                    log.recent.may_change(reads, condition.seen, condition.attempts) || earlier.changes(reads)
                }
                Reads::These(reads) => is_older || reads.keys.iter().any(|key| may_be_newer(key)),
            };
            if is_stale {
                batch.clear_stale();
                continue;
            }
        }
        if at < last {
            earlier.add(&batch.payload);
        }
    }
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
    payloads: Vec<Bytes>,
    /// Hashes suffice: equal ones of different keys cost their writer another read.
    keys: HashSet<u64>,
    /// Starts and ends of deleted ranges; without an end, a range extends to the last key.
    ranges: Vec<(Bytes, Bytes)>,
}

impl Earlier<'_> {
    fn add(&mut self, payload: &Bytes) {
        for op in wal::ops(payload.clone()) {
            match op.kind {
                OpKind::DeleteRange => {
                    let mut start = op.data;
                    let end = start.split_off(op.key_len);
                    self.ranges.push((start, end));
                }
                OpKind::Time => {}
                OpKind::Put | OpKind::PutUntil | OpKind::Delete => {
                    self.keys.insert(self.hasher.hash(op.key()));
                }
            }
        }
        self.payloads.push(payload.clone());
    }

    fn may_change(&self, key: &[u8]) -> bool {
        let within = |(start, end): &(Bytes, Bytes)| **start <= *key && (end.is_empty() || *key < **end);
        self.ranges.iter().any(within) || !self.keys.is_empty() && self.keys.contains(&self.hasher.hash(key))
    }

    fn changes(&self, reads: &ReadSet) -> bool {
        self.payloads.iter().any(|payload| changes(payload, reads))
    }
}
