//! Whether what a transaction has read is the same in a later view.

use super::reads::TransactionReads;
use crate::direction::Direction;
use crate::engine::read::Reader;
use crate::engine::read::view::View;
use crate::engine::shared::Seen;
use crate::engine::write::condition::{KeySpan, ReadSet};
use crate::error::{Error, Result};
use crate::key::{AsOf, Time, without_head};
use crate::memtable::{Memtable, MemtableCursor};
use crate::merge::{MergeCursor, MergeSource};
use crate::segment::Access;
use std::sync::Arc;

/// Keys whose versions are looked up together.
const KEYS_AT_ONCE: usize = 256;

/// Two moments of the store.
pub(super) struct Comparison<'a> {
    reader: &'a Reader,
    before: (&'a View, AsOf),
    now: (&'a View, AsOf),
    /// The memtables that have everything newer than the earlier moment. `None` if some is only in segments.
    newer: Option<Vec<&'a Arc<Memtable>>>,
}

/// A view with everything up to a number, and the time of that.
type Moment<'a> = (&'a (Arc<View>, Seen), Time);

impl<'a> Comparison<'a> {
    pub fn new(reader: &'a Reader, before: Moment<'a>, now: Moment<'a>) -> Self {
        let of = |((view, seen), time): Moment<'a>| (&**view, AsOf { seq: seen.seq, time });
        let (before, now) = (of(before), of(now));
        Comparison { reader, before, now, newer: now.0.memtables_since(before.0) }
    }

    /// Fails with [`Error::Conflict`] if a key that was read has another version now, or a range has other
    /// rows. What was read equals what the earlier moment has. Returns when the first row of it expires, or
    /// never.
    pub fn check(&self, reads: &TransactionReads, set: &ReadSet) -> Result<Time> {
        let has_expired = reads.until() <= self.now.1.time;
        let suspects: Vec<_> =
            reads.versions().filter(|(key, _)| has_expired || self.may_differ(key)).collect();
        for suspects in suspects.chunks(KEYS_AT_ONCE) {
            let keys: Vec<&[u8]> = suspects.iter().map(|(key, _)| *key).collect();
            let mut versions = Vec::with_capacity(keys.len());
            let (view, as_of) = self.now;
            self.reader.find_each(view, as_of, &keys, |entry| entry.seq, |seq| versions.push(seq))?;
            if let Some(((key, _), _)) =
                suspects.iter().zip(&versions).find(|((_, before), now)| before != *now)
            {
                return Err(Error::conflict(without_head(key)));
            }
        }
        set.ranges.iter().try_fold(reads.until(), |until, range| Ok(until.min(self.check_range(range)?)))
    }

    /// Whether something newer may have changed a key, from memory alone.
    fn may_differ(&self, key: &[u8]) -> bool {
        let Some(newer) = &self.newer else { return true };
        let hash = self.reader.hash(key);
        newer.iter().any(|table| {
            table.get(key, hash, self.now.1.seq).is_some_and(|entry| entry.seq > self.before.1.seq)
                || table.has_ranges() && table.ranges().seq_at(key, self.now.1.seq) > self.before.1.seq
        })
    }

    /// Fails if a range shows other rows, or other versions of them. Returns when the first row expires, or
    /// never.
    fn check_range(&self, range: &KeySpan) -> Result<Time> {
        let may_expire = self.reader.storage().clock.is_needed();
        if !may_expire && !self.may_differ_within(range) {
            return Ok(Time::NEVER);
        }
        let (lower, upper) = range.bounds();
        let walk =
            |(view, as_of): (&View, AsOf)| view.merge(as_of, Direction::Forward, lower, upper, Access::Keys);
        let (mut before, mut now, mut until) = (walk(self.before), walk(self.now), Time::NEVER);
        loop {
            match (before.advance_visible()?, now.advance_visible()?) {
                (true, true) if before.key() == now.key() && before.seq() == now.seq() => {
                    until = until.min(now.kind().expiry().unwrap_or(Time::NEVER));
                }
                (false, false) => return Ok(until),
                (true, true) => return Err(Error::conflict(without_head(&first_of(&before, &now)))),
                (true, false) => return Err(Error::conflict(without_head(&before.key().to_vec()))),
                (false, true) => return Err(Error::conflict(without_head(&now.key().to_vec()))),
            }
        }
    }

    /// Whether there may be anything newer within a range, from memory alone. Segments cannot tell: a
    /// compaction drops what was deleted together with its tombstone.
    fn may_differ_within(&self, range: &KeySpan) -> bool {
        let Some(newer) = &self.newer else { return true };
        let (seq, since) = (self.now.1.seq, self.before.1.seq);
        let (lower, upper) = range.bounds();
        newer.iter().filter(|table| table.last_seq() > since).any(|&table| {
            if table.has_ranges() && table.ranges().newest() > since {
                return true; // Rarely, so the rows may tell.
            }
            let source = MemtableCursor::new(Arc::clone(table), seq, Direction::Forward, lower);
            let sources = vec![MergeSource::Memtable(source)];
            let mut walk = MergeCursor::new(sources, Direction::Forward, upper, None);
            while walk.advance().unwrap_or(false) {
                if walk.seq() > since {
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
