//! The range tombstones of a view, for walks and lookups.

use super::view::View;
use crate::error::Result;
use crate::key::Seq;
use crate::merge::{RangeMask, Skipped};
use crate::segment::Direction;
use std::sync::Arc;

impl View {
    /// Whether there may be range tombstones.
    #[inline]
    pub fn has_ranges(&self) -> bool {
        self.had_ranges || self.active.has_ranges()
    }

    /// What hides entries of a walk as of `seq`; `None` if nothing does.
    pub fn mask(&self, seq: Seq) -> Option<RangeMask> {
        match self.has_ranges() {
            true => Some(self.range_mask(seq, None)),
            false => None,
        }
    }

    /// The same for a walk that skips damage, which it adds to `skipped`.
    pub fn mask_with_doubts(&self, seq: Seq, direction: Direction, skipped: &Skipped) -> RangeMask {
        self.range_mask(seq, Some((skipped, direction)))
    }

    fn range_mask(&self, seq: Seq, skipped: Option<(&Skipped, Direction)>) -> RangeMask {
        let memtables =
            self.memtables().map(|table| table.ranges()).filter(|list| !list.is_empty()).collect();
        RangeMask::new(memtables, Arc::clone(&self.live), seq, skipped)
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
