//! A count for each level in one word.

use crate::manifest::LEVELS;
use std::ops::{Add, AddAssign};

/// A count of up to [`MAX`](Self::MAX) for each level, before one of them [`is_full`](Self::is_full).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LevelCounts(u64);

/// Bits of a count. The highest is set when the count is full.
const COUNT_BITS: usize = u64::BITS as usize / LEVELS;

/// The highest bit of each count.
const FULL_COUNTS: u64 = {
    let (mut full, mut level) = (0, 0);
    while level < LEVELS {
        full |= 1 << (COUNT_BITS * level + COUNT_BITS - 1);
        level += 1;
    }
    full
};

impl LevelCounts {
    /// The largest count that is not full. Counts that are not full can be added.
    pub const MAX: usize = (1 << (COUNT_BITS - 1)) - 1;

    /// 1 for this level, 0 for the others.
    pub const fn one(level: usize) -> Self {
        LevelCounts(1 << (COUNT_BITS * level))
    }

    /// The count of a level.
    pub const fn of(self, level: usize) -> u64 {
        self.0 >> (COUNT_BITS * level) & ((1 << COUNT_BITS) - 1)
    }

    /// Whether a count has exceeded [`MAX`](Self::MAX).
    #[inline]
    pub const fn is_full(self) -> bool {
        self.0 & FULL_COUNTS != 0
    }

    /// All counts, to store them in an atomic.
    #[inline]
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// The counts from [`to_bits`](Self::to_bits).
    #[inline]
    pub const fn from_bits(bits: u64) -> Self {
        LevelCounts(bits)
    }
}

impl Add for LevelCounts {
    type Output = Self;

    #[inline]
    fn add(self, other: Self) -> Self {
        LevelCounts(self.0 + other.0)
    }
}

impl AddAssign for LevelCounts {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}
