//! Conditional batches: a batch that is committed only if what its writer has read is still the newest.
//!
//! 1. The writer notes the [moment](Seen) and then reads without a lock: filters, memtables, perhaps blocks.
//! 2. The thread that commits the group holds the log, so nothing changes any more. It checks only what may
//!    be newer than the moment: the active memtable, and the batches ahead in the group. If another memtable
//!    has become active since, or rows were ingested, it cannot tell, and the condition counts as stale.
//! 3. A stale batch is not committed. Its writer reads again: only data decides whether it has a conflict. If
//!    others write faster than it can read, it reads for the last time while it holds the log.
//!
//! In ranges that were read, the memtable could have any number of newer entries, and to look up very many
//! keys would keep the log locked for long. So the log keeps its latest batches while a transaction with such
//! reads commits (`recent.rs`).

use crate::bounds::KeyRange;
use crate::engine::shared::Seen;
use crate::key::{MAX_STORED_KEY_BYTES, Time};
use crate::ranges::DeletedRange;
use std::ops::Bound;
use std::sync::Arc;

/// After so many attempts, a batch with a condition is committed while other writers wait: they write faster
/// than it can look.
pub(crate) const ATTEMPTS_BESIDE_OTHERS: u32 = 6;

/// What must not have changed for a batch to be committed.
#[derive(Clone)]
pub(crate) struct Condition {
    /// When the writer began to read.
    pub seen: Seen,
    pub reads: Reads,
    /// How often it was stale before.
    pub attempts: u32,
    /// When the first row that was read expires, or never.
    pub until: Time,
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
    /// Sorted and disjoint.
    pub ranges: Vec<KeySpan>,
}

/// The keys from `start` to before `end`, or to the last key without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeySpan {
    pub start: Vec<u8>,
    pub end: Option<Vec<u8>>,
}

impl KeySpan {
    /// The keys in a range; `None` if there are none.
    pub fn of((lower, upper): &KeyRange) -> Option<Self> {
        // No key is longer, so these bounds stand for all longer ones.
        let bounded = |bound: &Bound<Vec<u8>>, longer: fn(Vec<u8>) -> Bound<Vec<u8>>| match bound {
            Bound::Included(key) | Bound::Excluded(key) if key.len() > MAX_STORED_KEY_BYTES => {
                longer(key.get(..MAX_STORED_KEY_BYTES).unwrap_or_default().to_vec())
            }
            bound => bound.clone(),
        };
        let (lower, upper) = (bounded(lower, Bound::Excluded), bounded(upper, Bound::Included));
        let range =
            DeletedRange::of_stored(lower.as_ref().map(Vec::as_slice), upper.as_ref().map(Vec::as_slice));
        range.map(|DeletedRange { start, end }| KeySpan { start, end })
    }

    /// Its bounds.
    pub fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Included(&self.start), self.end.as_deref().map_or(Bound::Unbounded, Bound::Excluded))
    }

    /// Sorts spans, and joins those that overlap or touch.
    pub fn join(mut spans: Vec<Self>) -> Vec<Self> {
        spans.sort_by(|a, b| a.start.cmp(&b.start));
        spans.dedup_by(|next, before| {
            let is_joined = before.end.as_ref().is_none_or(|end| next.start <= *end);
            if is_joined
                && before.end.is_some()
                && next.end.as_ref().is_none_or(|end| Some(end) > before.end.as_ref())
            {
                before.end = next.end.take();
            }
            is_joined
        });
        spans
    }
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
    /// Not written: it names a keyspace that was dropped.
    Dropped,
    /// What its writer has read may have changed, so nothing was written: read again.
    Stale,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: &str, end: &str) -> KeySpan {
        KeySpan { start: start.into(), end: (!end.is_empty()).then(|| end.into()) }
    }

    #[test]
    fn spans_that_overlap_or_touch_are_joined() {
        let joined = |spans: &[(&str, &str)]| {
            let joined = KeySpan::join(spans.iter().map(|(start, end)| span(start, end)).collect());
            let text = |span: &KeySpan| {
                let end = span.end.clone().map(|end| String::from_utf8(end).unwrap());
                format!("{}-{}", String::from_utf8(span.start.clone()).unwrap(), end.unwrap_or_default())
            };
            joined.iter().map(text).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(joined(&[("d", "e"), ("a", "b"), ("f", "g")]), "a-b d-e f-g");
        assert_eq!(joined(&[("a", "c"), ("b", "d"), ("d", "e"), ("x", "y"), ("x", "z")]), "a-e x-z");
        assert_eq!(joined(&[("a", "z"), ("b", "c"), ("c", "")]), "a-");
        assert_eq!(joined(&[("a", ""), ("b", "c"), ("x", "")]), "a-");
        assert_eq!(joined(&[]), "");
    }

    #[test]
    fn bounds_longer_than_any_key_lose_no_key() {
        let long = vec![7; MAX_STORED_KEY_BYTES + 5];
        let longest = long[..MAX_STORED_KEY_BYTES].to_vec();
        let holds = |range: KeyRange| {
            let span = KeySpan::of(&range).unwrap();
            span.start <= longest && span.end.is_none_or(|end| longest < end)
        };
        use Bound::{Excluded, Included, Unbounded};
        assert!(holds((Unbounded, Excluded(long.clone()))) && holds((Unbounded, Included(long.clone()))));
        assert!(!holds((Excluded(long.clone()), Unbounded)) && !holds((Included(long), Unbounded)));
        assert_eq!(KeySpan::of(&(Included(b"b".to_vec()), Excluded(b"a".to_vec()))), None);
    }
}
