//! The latest batches of the active log, for transactions that have read ranges, or very many keys.

use super::condition::{KeySpan, ReadSet};
use crate::key::Seq;
use crate::wal::{self, OpKind};
use bytes::Bytes;
use std::collections::VecDeque;

/// How many bytes of newer batches the holder of the log compares with what was read, at the first attempt.
/// The limit doubles with each further one, so that a transaction gets through however fast others write.
const COMPARED_BYTES: usize = 256 << 10;

/// The latest batches that went into the active memtable. Kept only while such a transaction commits.
/// They share the memtable's memory, and are dropped with it.
#[derive(Default)]
pub(crate) struct Recent {
    /// All batches after this number are here. `None` if none are kept.
    since: Option<Seq>,
    /// Each with its first sequence number, oldest first.
    batches: VecDeque<(Seq, Bytes)>,
}

impl Recent {
    /// Begins to keep batches, from after `last_seq` on, or stops.
    #[cold]
    pub fn keep(&mut self, wanted: bool, last_seq: Seq) {
        if wanted {
            self.since.get_or_insert(last_seq);
        } else {
            self.clear();
        }
    }

    /// Whether batches are kept.
    pub fn is_kept(&self) -> bool {
        self.since.is_some()
    }

    /// Forgets everything, because another memtable is active.
    pub fn clear(&mut self) {
        (self.since, self.batches) = (None, VecDeque::new());
    }

    /// Keeps a batch that goes into the memtable.
    #[cold]
    pub fn add(&mut self, first_seq: Seq, payload: &Bytes) {
        self.batches.push_back((first_seq, payload.clone()));
    }

    /// Whether a batch after number `since` may change something that was read.
    pub fn may_change(&self, reads: &ReadSet, since: Seq, attempts: u32) -> bool {
        if self.since.is_none_or(|from| since < from) {
            return true;
        }
        let newer = self.batches.partition_point(|(seq, _)| *seq <= since);
        let mut left = COMPARED_BYTES.saturating_mul(1 << attempts.min(30));
        self.batches.range(newer..).any(|(_, payload)| {
            let is_beyond = left < payload.len();
            left = left.saturating_sub(payload.len());
            is_beyond || changes(payload, reads)
        })
    }
}

/// Whether a batch changes a key that was read, or one within a range that was read.
pub(super) fn changes(payload: &Bytes, ReadSet { keys, ranges }: &ReadSet) -> bool {
    wal::ops(payload.clone()).any(|op| match op.kind {
        OpKind::Put | OpKind::Delete => {
            let behind = ranges.partition_point(|range| range.start.as_slice() <= op.key());
            let range = behind.checked_sub(1).and_then(|at| ranges.get(at));
            keys.binary_search_by(|key| key.as_slice().cmp(op.key())).is_ok()
                || range.is_some_and(|range| range.end.as_ref().is_none_or(|end| op.key() < end.as_slice()))
        }
        OpKind::DeleteRange => {
            let end = op.data.get(op.key_len..).filter(|end| !end.is_empty());
            let is_before_end = |start: &[u8]| end.is_none_or(|end| start < end);
            let key = keys.get(keys.partition_point(|key| key.as_slice() < op.key()));
            let ends_before =
                |range: &KeySpan| range.end.as_ref().is_some_and(|end| end.as_slice() <= op.key());
            let range = ranges.get(ranges.partition_point(ends_before));
            key.is_some_and(|key| is_before_end(key))
                || range.is_some_and(|range| is_before_end(&range.start))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wal::Batch;
    use std::ops::Bound;

    fn put(key: &str, value: &[u8]) -> Bytes {
        let mut batch = Batch::new();
        batch.put(key, value);
        batch.into_bytes()
    }

    fn range(from: &str, to: &str) -> ReadSet {
        ReadSet { keys: Vec::new(), ranges: vec![KeySpan { start: from.into(), end: Some(to.into()) }] }
    }

    #[test]
    fn only_batches_after_the_moment_that_touch_a_range_change_it() {
        let mut recent = Recent::default();
        assert!(recent.may_change(&range("a", "z"), 9, 0), "nothing is kept, so nothing is known");
        recent.keep(true, 7);
        recent.add(8, &put("c", b""));
        recent.add(9, &put("m", b""));
        assert!(recent.may_change(&range("a", "b"), 6, 0), "from before it began");
        assert!(!recent.may_change(&range("a", "b"), 7, 0));
        assert!(recent.may_change(&range("a", "d"), 7, 0));
        assert!(!recent.may_change(&range("a", "d"), 8, 0));
        assert!(recent.may_change(&range("a", "n"), 8, 0));
        assert!(!recent.may_change(&range("a", "n"), 9, 0));
        recent.keep(true, 9);
        assert!(!recent.may_change(&range("a", "b"), 7, 0), "it still has the older ones");
        let large = put("y", &[0; COMPARED_BYTES]);
        recent.add(10, &large);
        assert!(recent.may_change(&range("a", "b"), 9, 0), "too much to look at");
        assert!(!recent.may_change(&range("a", "b"), 9, 1), "the second time, it looks further");
        recent.keep(false, 10);
        assert!(recent.may_change(&range("a", "b"), 10, 0));
    }

    #[test]
    fn a_deleted_range_touches_what_it_overlaps() {
        let deletes = |from: &str, to: &str| {
            let mut batch = Batch::new();
            batch.delete_range((
                Bound::Included(from),
                if to.is_empty() { Bound::Unbounded } else { Bound::Excluded(to) },
            ));
            batch.into_bytes()
        };
        let ranges = range("d", "g");
        for (from, to, touches) in [
            ("a", "d", false),
            ("a", "e", true),
            ("e", "f", true),
            ("f", "z", true),
            ("g", "z", false),
            ("a", "", true),
            ("g", "", false),
        ] {
            assert_eq!(changes(&deletes(from, to), &ranges), touches, "{from}..{to}");
        }
        let all = ReadSet { keys: Vec::new(), ranges: vec![KeySpan { start: Vec::new(), end: None }] };
        assert!(changes(&deletes("a", "b"), &all) && changes(&put("", b""), &all));
        let keys = ReadSet { keys: ["b", "d"].map(Into::into).into(), ranges: Vec::new() };
        for (from, to, touches) in
            [("a", "b", false), ("a", "c", true), ("c", "d", false), ("c", "", true), ("e", "", false)]
        {
            assert_eq!(changes(&deletes(from, to), &keys), touches, "{from}..{to}");
        }
        assert!(changes(&put("d", b""), &keys) && !changes(&put("c", b""), &keys));
    }
}
