//! The range tombstones of a view, for walks and lookups. They count whether or not a filter denies the keys that they delete (I9).

use super::doubts::{Doubts, may_skip};
use super::skipped::Skipped;
use super::view::View;
use crate::error::{Error, Result};
use crate::key::{Seq, SplitKey};
use crate::live::LiveSet;
use crate::memtable::RangeList;
use crate::merge::{Damage, Mask};
use crate::ranges::Span;
use crate::segment::Direction;
use std::ops::Bound;
use std::sync::Arc;

/// The range tombstones of a view, as of a sequence number, for a walk.
pub(crate) struct RangeMask {
    memtables: Vec<Arc<RangeList>>,
    live: Arc<LiveSet>,
    seq: Seq,
    /// The neighbourhood of the last key, once there was one.
    span: Option<Span>,
    /// How many neighbourhoods there were.
    spans: u64,
    key: Vec<u8>,
    /// Only if the walk skips damage.
    doubts: Option<Box<Doubts>>,
}

impl Mask for RangeMask {
    #[inline]
    fn hides(&mut self, key: SplitKey<'_>, seq: Seq) -> Result<bool> {
        match &self.span {
            Some(span) if span.has(key) => Ok(seq < span.seq),
            _ => self.find(key).map(|newest| seq < newest),
        }
    }

    fn spans(&self) -> u64 {
        self.spans
    }

    fn edge(&self, direction: Direction) -> Option<(Bound<Vec<u8>>, Seq)> {
        let span = self.span.as_ref()?;
        let edge = match direction {
            Direction::Forward => span.end().map_or(Bound::Unbounded, |end| Bound::Included(end.to_vec())),
            Direction::Reverse if span.start().is_empty() => Bound::Unbounded,
            Direction::Reverse => Bound::Excluded(span.start().to_vec()),
        };
        Some((edge, span.seq))
    }

    fn may_skip(&self, error: &Error) -> bool {
        self.doubts.is_some() && may_skip(error)
    }

    fn skip(&mut self, damage: Damage) {
        self.span = None;
        if let Some(doubts) = &mut self.doubts {
            doubts.add(damage);
        }
    }
}

impl RangeMask {
    fn find(&mut self, key: SplitKey<'_>) -> Result<Seq> {
        let mut span = self.span.take().unwrap_or_default();
        span.reset();
        self.spans += 1;
        key.copy_into(&mut self.key);
        self.memtables.iter().for_each(|list| list.narrow(&self.key, self.seq, &mut span));
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

impl View {
    /// Whether there may be range tombstones.
    #[inline]
    pub fn has_ranges(&self) -> bool {
        self.had_ranges || self.active.has_ranges()
    }

    /// What hides entries of a walk as of `seq`; `None` if nothing does.
    pub fn mask(&self, seq: Seq) -> Option<Box<dyn Mask>> {
        match self.has_ranges() {
            true => Some(Box::new(self.range_mask(seq, None))),
            false => None,
        }
    }

    /// The same for a walk that skips damage, which it adds to `skipped`.
    pub fn mask_with_doubts(&self, seq: Seq, direction: Direction, skipped: &Skipped) -> Box<dyn Mask> {
        Box::new(self.range_mask(seq, Some(Box::new(Doubts::new(skipped, direction)))))
    }

    fn range_mask(&self, seq: Seq, doubts: Option<Box<Doubts>>) -> RangeMask {
        let memtables =
            self.memtables().map(|table| table.ranges()).filter(|list| !list.is_empty()).collect();
        let (live, key) = (Arc::clone(&self.live), Vec::new());
        RangeMask { memtables, live, seq, span: None, spans: 0, key, doubts }
    }

    /// Whether a range tombstone up to `now` deletes an entry of the key with number `seq`.
    ///
    /// # Errors
    /// Those of reading range tombstones.
    pub fn deletes(&self, now: Seq, key: &[u8], seq: Seq) -> Result<bool> {
        let mut memtables = self.memtables().filter(|table| table.has_ranges());
        if memtables.any(|table| table.ranges().seq_at(key, now) > seq) {
            return Ok(true);
        }
        self.live.ranged().delete(key, seq)
    }
}
