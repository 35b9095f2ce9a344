//! Levels, and the code of a segment that left them for quarantine.

/// Number of levels of a store. Level 0 holds flushed memtables in the order of flushing, every other level one sorted run.
pub const LEVELS: usize = 7;

/// Where a quarantined segment belongs in the order of ages. The manifest stores its code in place of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quarantine {
    /// The level that the segment left.
    pub left: u8,
    /// The deepest level that newer entries of its key range may have reached since; `left` when none went deeper.
    pub overtaken: u8,
}

impl Quarantine {
    const BASE: u8 = 64;

    /// The value of [`SegmentMeta::level`](super::SegmentMeta::level).
    pub fn to_level(self) -> u8 {
        Self::BASE + 8 * self.left + self.overtaken
    }

    /// `None` for a level below [`LEVELS`] and for an invalid code.
    pub fn of_level(level: u8) -> Option<Self> {
        let code = level.checked_sub(Self::BASE)?;
        let (left, overtaken) = (code / 8, code % 8);
        (left <= overtaken && usize::from(overtaken) < LEVELS).then_some(Quarantine { left, overtaken })
    }
}
