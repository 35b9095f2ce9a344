//! Steps through numbers in either direction.

use crate::direction::Direction;
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
