//! The sources of a merge, each of which advances by itself.
//!
//! 1. Where the mask allows it, a source continues past what it cannot read.
//! 2. A walk need not meet every entry that a range tombstone hides. After a few hidden entries, each source
//!    whose segments have nothing newer than the tombstone moves past them at once, up to the end of the
//!    range. The others advance step by step.

use super::damage::Damage;
use super::range_mask::RangeMask;
use super::source::MergeSource;
use crate::direction::Direction;
use crate::error::{Error, Result};
use crate::key::{Seq, SplitKey};
use std::ops::Bound;

/// The sources of a merge, and how far it goes.
pub(super) struct Inputs {
    pub all: Vec<MergeSource>,
    pub direction: Direction,
    pub end: Bound<Vec<u8>>,
    pub mask: Option<Box<RangeMask>>,
}

impl Inputs {
    pub fn new(
        all: Vec<MergeSource>,
        direction: Direction,
        end: Bound<&[u8]>,
        mask: Option<Box<RangeMask>>,
    ) -> Self {
        Inputs { all, direction, end: end.map(<[u8]>::to_vec), mask }
    }

    #[inline]
    pub fn is_within(&self, key: SplitKey<'_>) -> bool {
        match &self.end {
            Bound::Included(end) => self.direction.order(key.cmp_bytes(end)).is_le(),
            Bound::Excluded(end) => self.direction.order(key.cmp_bytes(end)).is_lt(),
            Bound::Unbounded => true,
        }
    }

    /// Whether the current entry of an input is within the end.
    #[inline]
    pub fn is_at_entry_within(&self, index: usize) -> bool {
        self.end == Bound::Unbounded || self.all.get(index).is_some_and(|source| self.is_within(source.key()))
    }

    /// Moves an input to its next entry, past what cannot be read if the mask allows it; `false` at its end.
    #[inline]
    pub fn advance(&mut self, index: usize) -> Result<bool> {
        match self.all[index].advance() {
            Err(error) => self.advance_behind(index, error),
            moved => moved,
        }
    }

    /// Whether all keys of the damage are beyond the end of the walk.
    fn is_beyond(&self, damage: &Damage) -> bool {
        match (self.direction, &damage.from, &self.end) {
            (Direction::Reverse, ..) => !self.is_within(damage.up_to.as_slice().into()),
            (_, Bound::Included(from), _) => !self.is_within(from.as_slice().into()),
            (_, Bound::Excluded(after), Bound::Included(end) | Bound::Excluded(end)) => after >= end,
            _ => false,
        }
    }

    #[cold]
    fn advance_behind(&mut self, index: usize, mut error: Error) -> Result<bool> {
        loop {
            let may_skip = self.mask.as_ref().is_some_and(|mask| mask.may_skip(&error));
            let damage = match self.all.get_mut(index) {
                Some(MergeSource::Run(run)) if may_skip => run.pass_damage(error)?,
                _ => return Err(error),
            };
            if self.is_beyond(&damage) {
                return Ok(false);
            }
            if let Some(mask) = &mut self.mask {
                mask.skip(damage);
            }
            match self.all[index].advance() {
                Err(next) => error = next,
                moved => return moved,
            }
        }
    }

    /// Moves an input past `here`, and up to the edge if it has nothing newer than `deleted` before that.
    pub fn pass(&mut self, index: usize, here: &[u8], edge: &Bound<Vec<u8>>, deleted: Seq) -> Result<bool> {
        let Some(source) = self.all.get_mut(index) else { return Ok(false) };
        let is_here = source.is_open() && source.key().cmp_bytes(here).is_eq();
        let to = match source {
            MergeSource::Run(run) => run.newer_from(self.direction, here, edge, deleted),
            MergeSource::Memtable(_) => None,
        };
        match to.as_ref().map(|to| to.as_ref().map(Vec::as_slice)) {
            Some(Bound::Unbounded) => Ok(false),
            Some(start) => {
                source.seek(self.direction, start);
                self.advance(index)
            }
            None if is_here => self.advance(index),
            None => Ok(true),
        }
    }
}
