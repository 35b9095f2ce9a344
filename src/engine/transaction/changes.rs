//! Whether what a transaction has read is the same in a later view.

use super::reads::TransactionReads;
use crate::bounds::KeyRange;
use crate::direction::Direction;
use crate::engine::read::Reader;
use crate::engine::read::view::View;
use crate::engine::shared::Seen;
use crate::engine::write::condition::ReadSet;
use crate::error::{Error, Result};
use crate::key::Seq;
use crate::memtable::MemtableCursor;
use crate::merge::MergeCursor;
use crate::segment::Access;
use std::ops::Bound;
use std::sync::Arc;

/// Keys whose versions are looked up together.
const KEYS_AT_ONCE: usize = 256;

/// Two moments of the store.
pub(super) struct Comparison<'a> {
    reader: &'a Reader,
    before: (&'a View, Seq),
    now: (&'a View, Seq),
    /// Both have the same segments, so only memtables can have something newer.
    same_segments: bool,
}

impl<'a> Comparison<'a> {
    pub fn new(
        reader: &'a Reader,
        (before, then): &'a (Arc<View>, Seen),
        (now, seen): &'a (Arc<View>, Seen),
    ) -> Self {
        let same_segments = Arc::ptr_eq(&before.live, &now.live);
        Comparison { reader, before: (before, then.seq), now: (now, seen.seq), same_segments }
    }

    /// Fails with [`Error::Conflict`] if a key that was read has another version now, or a range has other
    /// rows. What was read equals what the earlier moment has.
    pub fn check(&self, reads: &TransactionReads, set: &ReadSet) -> Result<()> {
        let suspects: Vec<_> = reads.versions().filter(|(key, _)| self.may_differ(key)).collect();
        for suspects in suspects.chunks(KEYS_AT_ONCE) {
            let keys: Vec<&[u8]> = suspects.iter().map(|(key, _)| *key).collect();
            let mut versions = Vec::with_capacity(keys.len());
            self.reader.each_entry(self.now.0, self.now.1, &keys, |entry| {
                versions.push(entry.map(|entry| entry.seq));
            })?;
            if let Some(((key, _), _)) =
                suspects.iter().zip(&versions).find(|((_, before), now)| before != *now)
            {
                return Err(Error::conflict(key));
            }
        }
        set.ranges.iter().try_for_each(|range| self.check_range(range))
    }

    /// Whether something newer may have changed a key. From memory alone, if only memtables have it.
    fn may_differ(&self, key: &[u8]) -> bool {
        if !self.same_segments {
            return true;
        }
        let hash = self.reader.hash(key);
        self.now.0.memtables().any(|table| {
            table.get(key, hash, self.now.1).is_some_and(|entry| entry.seq > self.before.1)
                || table.has_ranges() && table.ranges().seq_at(key, self.now.1) > self.before.1
        })
    }

    /// Fails if a range shows other rows, or other versions of them.
    fn check_range(&self, range: &KeyRange) -> Result<()> {
        let bounds = (range.0.as_ref().map(Vec::as_slice), range.1.as_ref().map(Vec::as_slice));
        if self.same_segments && !self.may_differ_within(bounds) {
            return Ok(());
        }
        let walk =
            |(view, seq): (&View, Seq)| view.merge(seq, Direction::Forward, bounds.0, bounds.1, Access::Keys);
        let (mut before, mut now) = (walk(self.before), walk(self.now));
        loop {
            match (before.advance_visible()?, now.advance_visible()?) {
                (true, true) if before.key() == now.key() && before.seq() == now.seq() => {}
                (false, false) => return Ok(()),
                (true, true) => return Err(Error::conflict(&first_of(&before, &now))),
                (true, false) => return Err(Error::conflict(&before.key().to_vec())),
                (false, true) => return Err(Error::conflict(&now.key().to_vec())),
            }
        }
    }

    /// Whether a memtable has anything newer within the bounds.
    fn may_differ_within(&self, (lower, upper): (Bound<&[u8]>, Bound<&[u8]>)) -> bool {
        self.now.0.memtables().any(|table| {
            if table.last_seq() <= self.before.1 {
                return false;
            }
            if table.has_ranges() && table.ranges().newest() > self.before.1 {
                return true; // Rarely. The rows tell.
            }
            let mut cursor = MemtableCursor::new(Arc::clone(table), self.now.1, Direction::Forward, lower);
            while cursor.advance() {
                let is_within = match upper {
                    Bound::Included(last) => cursor.key().cmp_bytes(last).is_le(),
                    Bound::Excluded(after) => cursor.key().cmp_bytes(after).is_lt(),
                    Bound::Unbounded => true,
                };
                if !is_within {
                    return false;
                }
                if cursor.seq() > self.before.1 {
                    return true;
                }
            }
            false
        })
    }
}

/// The smaller key of two: the other side does not have it, or another version.
fn first_of(a: &MergeCursor, b: &MergeCursor) -> Vec<u8> {
    a.key().to_vec().min(b.key().to_vec())
}
