//! Ranges of keys, as callers write them.

use std::ops::{Bound, Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// The lower and the upper bound of a range of keys.
pub(crate) type KeyRange = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// A range of keys: `"a".."m"`, `b"a"..=b"m"`, `key..`, `..`, or a pair of [`Bound`]s. A key is anything with
/// bytes: a string, slice, vector or array.
///
/// Unlike [`RangeBounds`], it needs no type annotation for keys: `db.range(..)` and `db.range("a".."m")`
/// compile as they are. The trait is sealed.
pub trait KeyBounds: sealed::Sealed {
    /// The lower and the upper bound. If the lower one is greater, the range is empty.
    fn into_bounds(self) -> (Bound<Vec<u8>>, Bound<Vec<u8>>);
}

mod sealed {
    pub trait Sealed {}
}

fn owned<K: AsRef<[u8]>>(range: &impl RangeBounds<K>) -> KeyRange {
    let owned = |bound: Bound<&K>| bound.map(|key| key.as_ref().to_vec());
    (owned(range.start_bound()), owned(range.end_bound()))
}

macro_rules! key_bounds {
    ($($range:ty),*) => {$(
        impl<K: AsRef<[u8]>> sealed::Sealed for $range {}
        impl<K: AsRef<[u8]>> KeyBounds for $range {
            fn into_bounds(self) -> KeyRange {
                owned(&self)
            }
        }
    )*};
}

key_bounds!(Range<K>, RangeFrom<K>, RangeInclusive<K>, RangeTo<K>, RangeToInclusive<K>, (Bound<K>, Bound<K>));

impl sealed::Sealed for RangeFull {}
impl KeyBounds for RangeFull {
    fn into_bounds(self) -> KeyRange {
        (Bound::Unbounded, Bound::Unbounded)
    }
}

/// Copies a bound over another one and reuses its memory.
pub(crate) fn copy_bound(from: Bound<&[u8]>, into: &mut Bound<Vec<u8>>) {
    let mut key = match std::mem::replace(into, Bound::Unbounded) {
        Bound::Included(key) | Bound::Excluded(key) => key,
        Bound::Unbounded => Vec::new(),
    };
    *into = from.map(|bytes| {
        key.clear();
        key.extend_from_slice(bytes);
        key
    });
}

/// Whether a range contains no key.
pub(crate) fn is_empty((from, to): &KeyRange) -> bool {
    match (from, to) {
        (Bound::Included(from), Bound::Included(to)) => from > to,
        (Bound::Included(from) | Bound::Excluded(from), Bound::Excluded(to))
        | (Bound::Excluded(from), Bound::Included(to)) => from >= to,
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Bound::{Excluded, Included, Unbounded};

    #[test]
    fn every_kind_of_range_and_of_key_gives_its_bounds_without_naming_a_type() {
        let [a, m] = [b"a", b"m"].map(|key| key.to_vec());
        let expected = (Included(a.clone()), Excluded(m.clone()));
        assert_eq!(("a".."m").into_bounds(), expected);
        assert_eq!((String::from("a")..String::from("m")).into_bounds(), expected);
        assert_eq!((&a[..]..&m[..]).into_bounds(), expected);
        assert_eq!((&a..&m).into_bounds(), expected);
        assert_eq!((a.clone()..m.clone()).into_bounds(), expected);
        assert_eq!((b"a"..b"m").into_bounds(), expected);
        assert_eq!(([b'a']..[b'm']).into_bounds(), expected);
        assert_eq!((Included("a"), Excluded("m")).into_bounds(), expected);
        assert_eq!(("a"..="m").into_bounds(), (Included(a.clone()), Included(m.clone())));
        assert_eq!(("a"..).into_bounds(), (Included(a), Unbounded));
        assert_eq!((.."m").into_bounds(), (Unbounded, Excluded(m.clone())));
        assert_eq!((..="m").into_bounds(), (Unbounded, Included(m)));
        assert_eq!((..).into_bounds(), (Unbounded, Unbounded));
    }

    #[test]
    fn a_range_is_empty_if_no_key_can_be_between_its_bounds() {
        for empty in [("b".."a").into_bounds(), ("a".."a").into_bounds(), ("b"..="a").into_bounds()] {
            assert!(is_empty(&empty), "{empty:?}");
        }
        for some in [("a"..="a").into_bounds(), ("a"..).into_bounds(), (.."a").into_bounds()] {
            assert!(!is_empty(&some), "{some:?}");
        }
    }
}
