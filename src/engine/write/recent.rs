//! The latest batches, for transactions that have read ranges, or very many keys.

use super::condition::{KeySpan, ReadSet};
use crate::engine::shared::Seen;
use crate::key::Seq;
use crate::wal::{self, OpKind};
use bytes::Bytes;
use std::collections::VecDeque;

/// How many bytes of newer batches the holder of the log compares with what was read, at the first attempt.
/// The limit is eight times higher with each further one.
const COMPARED_BYTES: usize = 256 << 10;

/// The latest batches. Kept only while such a transaction commits, also when their memtable is flushed: a
/// comparison of a large range may take longer than others need to fill memtables. They share the memory of
/// their memtable.
#[derive(Default)]
pub(crate) struct Recent {
    /// All that was written after this moment is here. `None` if nothing is kept.
    since: Option<Seen>,
    /// Each with its first sequence number, oldest first.
    batches: VecDeque<(Seq, Bytes)>,
    /// Of all of them, with what an entry takes here.
    bytes: u64,
}

/// The memory of an entry.
const ENTRY_BYTES: u64 = size_of::<(Seq, Bytes)>() as u64;

impl Recent {
    /// Begins to keep batches, from now on, or stops.
    #[cold]
    pub fn keep(&mut self, wanted: bool, now: Seen) {
        if wanted {
            self.since.get_or_insert(now);
        } else if self.is_kept() {
            self.clear();
        }
    }

    /// Whether batches are kept.
    pub fn is_kept(&self) -> bool {
        self.since.is_some()
    }

    /// Forgets everything: rows were written that are in no batch.
    pub fn clear(&mut self) {
        *self = Recent::default();
    }

    /// Keeps a batch that goes into the memtable, and forgets the oldest ones if there are more than
    /// `bytes_max`.
    #[cold]
    pub fn add(&mut self, first_seq: Seq, payload: &Bytes, bytes_max: u64) {
        self.bytes += payload.len() as u64 + ENTRY_BYTES;
        self.batches.push_back((first_seq, payload.clone()));
        while self.bytes > bytes_max
            && self.batches.len() > 1
            && let Some((_, oldest)) = self.batches.pop_front()
            && let (Some(since), Some((next, _))) = (&mut self.since, self.batches.front())
        {
            self.bytes -= oldest.len() as u64 + ENTRY_BYTES;
            since.seq = next - 1;
        }
    }

    /// Whether something that was written after a moment may change something that was read.
    pub fn may_change(&self, reads: &ReadSet, seen: Seen, attempts: u32) -> bool {
        if self.since.is_none_or(|since| seen.epoch < since.epoch || seen.seq < since.seq) {
            return true;
        }
        let newer = self.batches.partition_point(|(seq, _)| *seq <= seen.seq);
        let mut left = COMPARED_BYTES.saturating_mul(1 << (3 * attempts.min(10)));
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
        OpKind::Time => false,
        OpKind::Put | OpKind::PutUntil | OpKind::Delete => {
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

    fn at(epoch: u64, seq: Seq) -> Seen {
        Seen { seq, epoch }
    }

    #[test]
    fn only_batches_after_the_moment_that_touch_a_range_change_it() {
        let mut recent = Recent::default();
        assert!(recent.may_change(&range("a", "z"), at(0, 9), 0), "nothing is kept, so nothing is known");
        recent.keep(true, at(3, 7));
        recent.add(8, &put("c", b""), 999);
        recent.add(9, &put("m", b""), 999);
        assert!(recent.may_change(&range("a", "b"), at(3, 6), 0), "from before it began");
        assert!(
            recent.may_change(&range("a", "b"), at(2, 7), 0),
            "rows may have been ingested before it began"
        );
        assert!(!recent.may_change(&range("a", "b"), at(3, 7), 0));
        assert!(recent.may_change(&range("a", "d"), at(3, 7), 0));
        assert!(!recent.may_change(&range("a", "d"), at(3, 8), 0));
        assert!(recent.may_change(&range("a", "n"), at(3, 8), 0));
        assert!(!recent.may_change(&range("a", "n"), at(4, 9), 0), "another memtable changes nothing");
        recent.keep(true, at(4, 9));
        assert!(!recent.may_change(&range("a", "b"), at(3, 7), 0), "it still has the older ones");
        let large = put("y", &[0; COMPARED_BYTES]);
        recent.add(10, &large, u64::MAX);
        assert!(recent.may_change(&range("a", "b"), at(4, 9), 0), "too much to look at");
        assert!(!recent.may_change(&range("a", "b"), at(4, 9), 1), "the second time, it looks further");
        recent.keep(false, at(4, 10));
        assert!(recent.may_change(&range("a", "b"), at(4, 10), 0));
    }

    #[test]
    fn the_oldest_batches_are_forgotten() {
        let mut recent = Recent::default();
        recent.keep(true, at(0, 7));
        let two = 2 * (put("c", b"").len() as u64 + ENTRY_BYTES);
        (8..=10).for_each(|seq| recent.add(seq, &put("c", b""), two));
        assert!(recent.may_change(&range("a", "b"), at(0, 7), 0), "batch 8 is forgotten");
        assert!(!recent.may_change(&range("a", "b"), at(0, 8), 0));
        recent.add(11, &put("c", &[0; 100]), two);
        assert!(recent.may_change(&range("a", "b"), at(0, 9), 0));
        assert!(recent.may_change(&range("a", "d"), at(0, 10), 0), "the newest stays, however large");
        assert!(!recent.may_change(&range("a", "b"), at(0, 10), 0));
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
