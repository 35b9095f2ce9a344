//! Steps through numbers in either direction, and what a walk knows about the blocks that they lead to.

use crate::direction::Direction;
use crate::segment::block::Block;
use std::ops::Range;

/// The numbers below `count` that follow `at` in the direction of the walk.
pub fn beyond(direction: Direction, at: usize, count: usize) -> Range<usize> {
    match direction {
        Direction::Forward => (at + 1).min(count)..count,
        Direction::Reverse => 0..at,
    }
}

/// The next number in the direction of the walk.
#[inline]
pub fn step(direction: Direction, left: &mut Range<usize>) -> Option<usize> {
    match direction {
        Direction::Forward => left.next(),
        Direction::Reverse => left.next_back(),
    }
}

/// A partition, or a block of it, that could not be read.
pub struct Stop {
    pub partition: usize,
    pub block: Option<usize>,
}

/// What the cursor knows about the block that it enters next.
#[derive(Default)]
pub enum Ahead {
    #[default]
    Unknown,
    Missing,
    Cached(Block),
}
