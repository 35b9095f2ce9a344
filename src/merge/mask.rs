//! What hides entries of a merge: range tombstones are not entries, so the merge does not meet them.

use super::damage::Damage;
use crate::error::{Error, Result};
use crate::key::{Seq, SplitKey};
use crate::segment::Direction;
use std::ops::Bound;

/// Tells which entries are deleted by range tombstones.
pub trait Mask: Send + Sync {
    /// Whether an entry of the key is deleted.
    ///
    /// # Errors
    /// Those of reading the range tombstones.
    fn hides(&mut self, key: SplitKey<'_>, seq: Seq) -> Result<bool>;

    /// How often the keys around the last one were other ones than before: those that the same range tombstones delete.
    fn spans(&self) -> u64;

    /// Where a walk goes on behind the keys around the last one that the same range tombstones delete, and the number below which entries of
    /// these keys are deleted. Unbounded if there is nothing behind them.
    fn edge(&self, direction: Direction) -> Option<(Bound<Vec<u8>>, Seq)>;

    /// Whether the walk goes on behind what cannot be read for this error.
    fn may_skip(&self, error: &Error) -> bool;

    /// Takes note of what the walk goes on behind: entries that it may overwrite or delete are hidden.
    fn skip(&mut self, damage: Damage);
}
