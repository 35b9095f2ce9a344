//! The range tombstones of a memtable: an append-only list that readers search while the writer adds to it.
//!
//! 1. Tombstones are kept in *sets* of 2ⁿ, ordered by sequence number. Two sets of one size become one of
//!    twice the size, as in a binary counter. So there are few sets, and adding costs O(log n) amortised
//!    (Bentley and Saxe, "Decomposable searching problems", 1980).
//! 2. A set gives only the newest tombstone of each key. A reader of an older sequence number skips newer
//!    sets. In the one set that spans its number, it searches the two sets that it was made of.
//! 3. A new list replaces the old one, so a reader keeps the list that it has loaded.

use crate::key::Seq;
use crate::ranges::{RangeTombstones, Span};
use crate::sync::ArcSwap;
use std::sync::Arc;

/// The range tombstones of one moment, ordered by sequence number.
#[derive(Default)]
pub struct RangeList {
    sets: Vec<Arc<RangeSet>>,
}

/// Some consecutive range tombstones.
struct RangeSet {
    tombstones: RangeTombstones,
    /// Their number.
    count: usize,
    oldest: Seq,
    newest: Seq,
    /// The older and the newer half, unless it is one tombstone.
    halves: Option<[Arc<RangeSet>; 2]>,
}

impl RangeSet {
    fn join(older: Arc<RangeSet>, newer: Arc<RangeSet>) -> Self {
        RangeSet {
            tombstones: older.tombstones.merged(&newer.tombstones),
            count: older.count + newer.count,
            oldest: older.oldest,
            newest: newer.newest,
            halves: Some([older, newer]),
        }
    }

    /// Calls `take` with sets that together have the tombstones up to `seq`.
    fn visit(&self, seq: Seq, take: &mut dyn FnMut(&RangeTombstones)) {
        if self.newest <= seq {
            take(&self.tombstones);
        } else if self.oldest <= seq {
            self.halves.iter().flatten().for_each(|half| half.visit(seq, take));
        }
    }
}

impl RangeList {
    fn with(&self, tombstones: RangeTombstones, seq: Seq) -> Self {
        let mut sets = self.sets.clone();
        let mut last = Arc::new(RangeSet { tombstones, count: 1, oldest: seq, newest: seq, halves: None });
        while let Some(older) = sets.pop_if(|older| older.count == last.count) {
            last = Arc::new(RangeSet::join(older, last));
        }
        sets.push(last);
        RangeList { sets }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.sets.is_empty()
    }

    fn visit(&self, seq: Seq, mut take: impl FnMut(&RangeTombstones)) {
        self.sets.iter().for_each(|set| set.visit(seq, &mut take));
    }

    /// The newest number; 0 if there is no tombstone.
    pub fn newest(&self) -> Seq {
        self.sets.last().map_or(0, |set| set.newest)
    }

    /// The newest tombstone of the key among those up to `seq`; 0 if there is none.
    pub fn seq_at(&self, key: &[u8], seq: Seq) -> Seq {
        let mut newest = 0;
        self.visit(seq, |tombstones| newest = newest.max(tombstones.seq_at(key)));
        newest
    }

    /// Narrows a span around `key` to where the tombstones up to `seq` stay the same, and adds them to it.
    pub fn narrow(&self, key: &[u8], seq: Seq, span: &mut Span) {
        self.visit(seq, |tombstones| tombstones.narrow(key, span));
    }

    /// All tombstones.
    pub fn all(&self) -> RangeTombstones {
        RangeTombstones::all(self.sets.iter().map(|set| &set.tombstones))
    }
}

/// The list that a memtable's writer adds to.
pub(super) struct MemtableRanges {
    list: ArcSwap<RangeList>,
}

impl MemtableRanges {
    pub fn new() -> Self {
        MemtableRanges { list: ArcSwap::from_pointee(RangeList::default()) }
    }

    /// Adds a tombstone that is newer than all others. Only one thread at a time may call it.
    pub fn add(&self, tombstones: RangeTombstones, seq: Seq) {
        let list = self.list.load().with(tombstones, seq);
        self.list.store(Arc::new(list));
    }

    pub fn load(&self) -> Arc<RangeList> {
        self.list.load_full()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn readers_see_the_newest_tombstone_up_to_their_number(
            ranges in vec((0u8..20, 1u8..10), 0..40),
            seq in 0u64..45,
            key in 0u8..30,
        ) {
            let memtable = MemtableRanges::new();
            for ((from, len), seq) in ranges.iter().zip(1..) {
                let key = |key: u8| Bytes::copy_from_slice(&[key]);
                memtable.add(RangeTombstones::of(key(*from), Some(key(from + len)), seq), seq);
            }
            let covers = |((from, len), at): &(&(u8, u8), u64)| (*from..from + len).contains(&key) && *at <= seq;
            let naive = ranges.iter().zip(1..).filter(covers).map(|(_, at)| at).max().unwrap_or(0);
            let list = memtable.load();
            prop_assert_eq!(list.seq_at(&[key], seq), naive);
            let mut span = Span::default();
            list.narrow(&[key], seq, &mut span);
            prop_assert_eq!(span.seq, naive);
            prop_assert_eq!(list.is_empty(), ranges.is_empty());
            if seq >= ranges.len() as u64 {
                prop_assert_eq!(list.all().seq_at(&[key]), naive);
            }
            prop_assert!(list.sets.len() < 8);
        }
    }
}
