//! Ranges of keys as arguments.

use std::ops::{Bound, Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// A range of keys: `a..b`, `a..=b`, `a..`, `..b`, `..=b`, `..`, or a pair of bounds, of anything that is bytes.
pub trait KeyBounds: sealed::Sealed {
    /// The lower and the upper bound.
    fn into_bounds(self) -> (Bound<Vec<u8>>, Bound<Vec<u8>>);
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! key_bounds {
    ($range:ty, $self:ident => $bounds:expr) => {
        impl<K: AsRef<[u8]>> sealed::Sealed for $range {}
        impl<K: AsRef<[u8]>> KeyBounds for $range {
            fn into_bounds($self) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
                let (lower, upper): (Bound<K>, Bound<K>) = $bounds;
                (lower.map(|key| key.as_ref().to_vec()), upper.map(|key| key.as_ref().to_vec()))
            }
        }
    };
}

key_bounds!(Range<K>, self => (Bound::Included(self.start), Bound::Excluded(self.end)));
key_bounds!(RangeFrom<K>, self => (Bound::Included(self.start), Bound::Unbounded));
key_bounds!(RangeTo<K>, self => (Bound::Unbounded, Bound::Excluded(self.end)));
key_bounds!(RangeToInclusive<K>, self => (Bound::Unbounded, Bound::Included(self.end)));
key_bounds!((Bound<K>, Bound<K>), self => self);
key_bounds!(RangeInclusive<K>, self => {
    let (start, end) = self.into_inner();
    (Bound::Included(start), Bound::Included(end))
});

impl sealed::Sealed for RangeFull {}
impl KeyBounds for RangeFull {
    fn into_bounds(self) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        (Bound::Unbounded, Bound::Unbounded)
    }
}
