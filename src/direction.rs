//! The direction of a walk.

use std::cmp::Ordering;

/// The direction of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Towards larger keys.
    Forward,
    /// Towards smaller keys.
    Reverse,
}

impl Direction {
    /// The order of two keys in this direction.
    #[inline]
    pub fn order(self, order: Ordering) -> Ordering {
        if self == Direction::Reverse { order.reverse() } else { order }
    }
}
