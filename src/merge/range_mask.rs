//! What hides entries of a merge: range tombstones are not entries, so the merge does not meet them. They
//! count even if a filter denies the keys that they delete (I9).

use super::damage::Damage;
use super::doubts::{Doubts, may_skip};
use super::skipped::Skipped;
use crate::direction::Direction;
use crate::error::{Error, Result};
use crate::key::{Seq, SplitKey};
use crate::live::LiveSet;
use crate::memtable::RangeList;
use crate::ranges::Span;
use std::ops::Bound;
use std::sync::Arc;

/// The range tombstones of a view, as of a sequence number, for a walk.
pub struct RangeMask {
    /// Those of the memtables, each with the number up to which it counts.
    memtables: Vec<(Arc<RangeList>, Seq)>,
    live: Arc<LiveSet>,
    /// The neighbourhood of the last key, once there is one.
    span: Option<Span>,
    /// The number of neighbourhoods so far.
    spans: u64,
    key: Vec<u8>,
    /// Only if the walk skips damage.
    doubts: Option<Box<Doubts>>,
}

impl RangeMask {
    /// The range tombstones of these memtables, each up to a number, and of the segments. With `skipped`, the
    /// walk continues past damage and adds it there.
    pub fn new(
        memtables: Vec<(Arc<RangeList>, Seq)>,
        live: Arc<LiveSet>,
        skipped: Option<(&Skipped, Direction)>,
    ) -> Self {
        let doubts = skipped.map(|(skipped, direction)| Box::new(Doubts::new(skipped, direction)));
        RangeMask { memtables, live, span: None, spans: 0, key: Vec::new(), doubts }
    }

    /// Whether an entry of the key is deleted.
    ///
    /// # Errors
    /// The errors of reading the range tombstones.
    #[inline]
    pub(super) fn hides(&mut self, key: SplitKey<'_>, seq: Seq) -> Result<bool> {
        match &self.span {
            Some(span) if span.has(key) => Ok(seq < span.seq),
            _ => self.find(key).map(|newest| seq < newest),
        }
    }

    /// How often the neighbourhood of the last key has changed: the keys around it that the same range
    /// tombstones delete.
    pub(super) fn spans(&self) -> u64 {
        self.spans
    }

    /// Where a walk continues after the neighbourhood of the last key, and the number below which entries
    /// there are deleted. Unbounded if nothing comes after it.
    pub(super) fn edge(&self, direction: Direction) -> Option<(Bound<Vec<u8>>, Seq)> {
        let span = self.span.as_ref()?;
        let edge = match direction {
            Direction::Forward => span.end().map_or(Bound::Unbounded, |end| Bound::Included(end.to_vec())),
            Direction::Reverse if span.start().is_empty() => Bound::Unbounded,
            Direction::Reverse => Bound::Excluded(span.start().to_vec()),
        };
        Some((edge, span.seq))
    }

    /// Whether the walk continues past what cannot be read, given this error.
    pub(super) fn may_skip(&self, error: &Error) -> bool {
        self.doubts.is_some() && may_skip(error)
    }

    /// Whether the walk continues past what cannot be read.
    pub(super) fn skips_damage(&self) -> bool {
        self.doubts.is_some()
    }

    /// Records what the walk continues past: entries that it may overwrite or delete are hidden.
    pub(super) fn skip(&mut self, damage: Damage) {
        self.span = None;
        if let Some(doubts) = &mut self.doubts {
            doubts.add(damage);
        }
    }

    fn find(&mut self, key: SplitKey<'_>) -> Result<Seq> {
        let mut span = self.span.take().unwrap_or_default();
        span.reset();
        self.spans += 1;
        key.copy_into(&mut self.key);
        self.memtables.iter().for_each(|(list, seq)| list.narrow(&self.key, *seq, &mut span));
        let key = &self.key;
        match &mut self.doubts {
            Some(doubts) => doubts.narrow(&self.live, key, &mut span)?,
            None => self.live.ranged().narrow(key, &mut span, |segment, span| {
                segment.file.ask_ranges(|ranges| ranges.narrow(key, span))
            })?,
        }
        Ok(self.span.insert(span).seq)
    }
}
