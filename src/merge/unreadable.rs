//! Going on behind what cannot be read, where the mask of a walk allows it.

use super::damage::Damage;
use super::{MergeCursor, MergeSource};
use crate::error::{Error, Result};
use crate::segment::Direction;
use std::ops::Bound;

impl MergeCursor {
    /// Moves an input to its next entry, behind what cannot be read if the mask allows it; `false` at its end.
    #[inline]
    pub(super) fn advance_input(&mut self, index: usize) -> Result<bool> {
        match self.inputs[index].advance() {
            Err(error) => self.advance_behind(index, error),
            moved => moved,
        }
    }

    /// Whether all keys of the damage are behind the end of the walk.
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
            let damage = match self.inputs.get_mut(index).map(|input| &mut input.source) {
                Some(MergeSource::Run(run)) if may_skip => run.pass_damage(error)?,
                _ => return Err(error),
            };
            if self.is_beyond(&damage) {
                return Ok(false);
            }
            if let Some(mask) = &mut self.mask {
                mask.skip(damage);
            }
            match self.inputs[index].advance() {
                Err(next) => error = next,
                moved => return moved,
            }
        }
    }
}
