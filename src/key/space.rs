//! Where the keys of a keyspace lie among all keys of the store.
//!
//! The store orders one sequence of *stored keys*. A stored key is a key of a keyspace with a *head* in
//! front:
//!
//! ```text
//! head      keyspace
//! nothing   the default one; its key does not start with 0xff
//! ff 00     the default one; its key starts with 0xff
//! ff n num  another one: twice its number in n bytes, 1 to 5, big-endian without leading zeros
//! ```
//!
//! So a key of the default keyspace is stored as it is, except for one in 256 possible first bytes. Keys keep
//! their order within a keyspace, and each keyspace is one contiguous range: first the default one, then the
//! others by number. Number 0 is the [catalog](Space::CATALOG). No stored key starts with ff 06 or greater.
//!
//! Between two keyspaces there is a key that neither has: ff 01, and the head with the next odd number. A
//! range of all keys of a keyspace ends there, so it does not touch the next one.

use super::{MAX_KEY_BYTES, SplitKey};
use crate::bounds::KeyRange;
use std::ops::Bound;

/// The first byte of every head.
const MARK: u8 = 0xff;
/// No stored key without a head is as great as this.
pub const HEADS_START: &[u8] = &[MARK];
/// The head of the default keyspace's keys that start with [`MARK`].
const ESCAPE: &[u8] = &[MARK, 0];
/// The longest head.
const HEAD_BYTES_MAX: usize = 2 + NUMBER_BYTES_MAX;
/// Twice a number, and one more, fit into this many bytes.
const NUMBER_BYTES_MAX: usize = size_of::<u32>() + 1;
/// The end of the default keyspace.
const DEFAULT_END: &[u8] = &[MARK, 1];
/// Largest stored key, in bytes.
pub const MAX_STORED_KEY_BYTES: usize = MAX_KEY_BYTES + HEAD_BYTES_MAX;
/// Stored keys up to this length are put together on the stack.
const SHORT_KEY_BYTES: usize = 128;

/// A keyspace's range of stored keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Space {
    /// `None` for the default keyspace.
    number: Option<u32>,
    head: [u8; HEAD_BYTES_MAX],
    head_bytes: u8,
}

impl Space {
    /// The default keyspace.
    pub const DEFAULT: Space = Space { number: None, head: [0; HEAD_BYTES_MAX], head_bytes: 0 };
    /// The names and options of all other keyspaces.
    pub const CATALOG: Space = Space::new(0);

    /// The keyspace with this number.
    pub const fn new(number: u32) -> Self {
        let twice = (number as u64) << 1;
        let number_bytes = if twice == 0 { 1 } else { twice.ilog2() as usize / 8 + 1 };
        let mut head = [0; HEAD_BYTES_MAX];
        (head[0], head[1]) = (MARK, number_bytes as u8);
        let (bytes, mut at) = (twice.to_be_bytes(), 0);
        while at < number_bytes {
            head[2 + at] = bytes[size_of::<u64>() - number_bytes + at];
            at += 1;
        }
        Space { number: Some(number), head, head_bytes: 2 + number_bytes as u8 }
    }

    /// Its number; `None` for the default keyspace.
    pub fn number(self) -> Option<u32> {
        self.number
    }

    /// The keyspace of a stored key, or of the [end](Self::bounds) of a range of all its keys. `None` for a
    /// key that only a newer version stores.
    #[inline]
    pub fn of(stored: &[u8]) -> Option<Self> {
        if stored.first() == Some(&MARK) { Space::of_head(stored) } else { Some(Space::DEFAULT) }
    }

    #[cold]
    fn of_head(stored: &[u8]) -> Option<Self> {
        let number_bytes = usize::from(*stored.get(1)?);
        if number_bytes == 0 || stored == DEFAULT_END {
            return Some(Space::DEFAULT);
        }
        let bytes = stored.get(2..2 + number_bytes).filter(|_| number_bytes <= NUMBER_BYTES_MAX)?;
        let twice = bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte));
        Some(Space::new(u32::try_from(twice >> 1).ok()?)).filter(|space| space.contains(stored))
    }

    /// The length of the head of a stored key; 0 for a key that only a newer version stores.
    #[inline]
    pub fn head_bytes(stored: &[u8]) -> usize {
        match stored {
            [MARK, number_bytes, rest @ ..]
                if usize::from(*number_bytes) <= rest.len().min(NUMBER_BYTES_MAX) =>
            {
                2 + usize::from(*number_bytes)
            }
            _ => 0,
        }
    }

    /// The heads of its stored keys. `may_have` says whether any key of the store has one.
    #[inline]
    pub fn heads(&self, may_have: bool) -> Heads {
        match self.number {
            Some(_) => Heads::All(self.head_bytes),
            None if may_have => Heads::Escapes,
            None => Heads::None,
        }
    }

    /// What precedes a key as stored.
    #[inline]
    pub fn head(&self, key: &[u8]) -> &[u8] {
        match self.number {
            Some(_) => self.head.get(..usize::from(self.head_bytes)).unwrap_or_default(),
            None if key.first() == Some(&MARK) => ESCAPE,
            None => &[],
        }
    }

    /// A key as stored.
    pub fn stored(&self, key: &[u8]) -> Vec<u8> {
        [self.head(key), key].concat()
    }

    /// Passes a key as stored to `with`.
    #[inline(always)]
    pub fn with_stored<R>(&self, key: &[u8], with: impl FnOnce(&[u8]) -> R) -> R {
        match self.head(key) {
            [] => with(key),
            head => {
                let (len, mut short) = (head.len() + key.len(), [0; SHORT_KEY_BYTES]);
                match short.get_mut(..len) {
                    Some(stored) => {
                        let (first, rest) = stored.split_at_mut(head.len());
                        first.copy_from_slice(head);
                        rest.copy_from_slice(key);
                        with(stored)
                    }
                    None => with(&self.stored(key)),
                }
            }
        }
    }

    /// No stored key of the keyspace is smaller.
    #[inline]
    pub fn first_key(&self) -> &[u8] {
        self.head(&[])
    }

    /// The first stored key of the keyspace, and a key after its last one that belongs to no keyspace.
    pub fn bounds(&self) -> (Vec<u8>, Vec<u8>) {
        match self.number {
            None => (Vec::new(), DEFAULT_END.to_vec()),
            Some(_) => {
                let mut end = self.first_key().to_vec();
                end.iter_mut().last().into_iter().for_each(|last| *last |= 1);
                (self.first_key().to_vec(), end)
            }
        }
    }

    /// The range of stored keys for a range of the keyspace's keys.
    pub fn stored_range(&self, (lower, upper): KeyRange) -> KeyRange {
        let stored = |key: Vec<u8>| if self.head(&key).is_empty() { key } else { self.stored(&key) };
        let (first, end) = self.bounds();
        let lower = match lower {
            Bound::Unbounded if self.number.is_none() => Bound::Unbounded,
            Bound::Unbounded => Bound::Included(first),
            bound => bound.map(stored),
        };
        let upper = match upper {
            Bound::Unbounded => Bound::Excluded(end),
            bound => bound.map(stored),
        };
        (lower, upper)
    }

    /// Whether a stored key belongs to the keyspace, or is the [end](Self::bounds) of a range of all its
    /// keys.
    #[inline]
    pub fn contains(&self, stored: &[u8]) -> bool {
        match self.number {
            Some(_) => stored.starts_with(self.first_key()) || self.is_end(stored),
            None => stored.first() != Some(&MARK) || stored.get(1) == Some(&0) || stored == DEFAULT_END,
        }
    }

    #[inline(never)]
    fn is_end(&self, stored: &[u8]) -> bool {
        *self.bounds().1 == *stored
    }
}

/// The heads of the stored keys that a walk passes, all of one keyspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heads {
    /// No key has one.
    None,
    /// Those of the default keyspace's keys that need one.
    Escapes,
    /// Every key has one of this length.
    All(u8),
}

impl Heads {
    /// The key of the keyspace that a stored key stands for.
    #[inline]
    pub fn remove_from(self, stored: SplitKey<'_>) -> SplitKey<'_> {
        match self {
            Heads::None => stored,
            Heads::All(len) => stored.without(usize::from(len)),
            Heads::Escapes if stored.first() == Some(MARK) => stored.without(ESCAPE.len()),
            Heads::Escapes => stored,
        }
    }
}

/// A stored key without its head.
#[inline]
pub fn without_head(stored: &[u8]) -> &[u8] {
    stored.get(Space::head_bytes(stored)..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn space() -> impl Strategy<Value = Space> {
        let number = prop_oneof![
            Just(0),
            1u32..5,
            250u32..260,
            65_530u32..65_540,
            16_777_210u32..16_777_220,
            any::<u32>(),
            Just(u32::MAX)
        ];
        prop::option::weighted(0.7, number).prop_map(|number| number.map_or(Space::DEFAULT, Space::new))
    }

    fn key() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop_oneof![Just(0xff), Just(0), Just(1), any::<u8>()], 0..6)
    }

    proptest! {
        #[test]
        fn stored_keys_are_ordered_by_keyspace_and_then_by_key(a in (space(), key()), b in (space(), key())) {
            let stored = [&a, &b].map(|(space, key)| space.stored(key));
            let order = |(space, key): &(Space, Vec<u8>)| (space.number(), key.clone());
            prop_assert_eq!(stored[0].cmp(&stored[1]), order(&a).cmp(&order(&b)));
            for ((space, key), stored) in [&a, &b].into_iter().zip(&stored) {
                prop_assert_eq!(Space::of(stored), Some(*space));
                prop_assert_eq!(without_head(stored), &**key);
                prop_assert_eq!(space.head(key).len(), Space::head_bytes(stored));
                let (first, end) = space.bounds();
                prop_assert!(first <= *stored && *stored < end && space.contains(stored));
                space.with_stored(key, |passed| assert_eq!(passed, stored));
                let cut = stored.len().min(3);
                let split = SplitKey::new(&stored[..cut], &stored[cut..]);
                prop_assert_eq!(space.heads(true).remove_from(split).to_vec(), &**key);
            }
            prop_assert_eq!(a.0.contains(&stored[1]), a.0 == b.0);
        }

        #[test]
        fn arbitrary_keys_have_at_most_one_keyspace(stored in key(), a in space()) {
            prop_assert_eq!(Space::of(&stored) == Some(a), a.contains(&stored) && Space::of(&stored).is_some());
            prop_assert!(Space::head_bytes(&stored) <= stored.len().min(HEAD_BYTES_MAX));
        }
    }

    #[test]
    fn each_keyspace_ends_before_the_next_one_begins() {
        let numbers = [0, 1, 127, 128, 32_767, 32_768, (1 << 23) - 1, 1 << 23, (1 << 31) - 1, u32::MAX - 1];
        let ends = |space: Space| space.bounds();
        assert!(ends(Space::DEFAULT).1 == [0xff, 1] && ends(Space::DEFAULT).1 < ends(Space::CATALOG).0);
        for number in numbers {
            let (space, next) = (Space::new(number), Space::new(number + 1));
            let (first, end) = space.bounds();
            assert!(first < end && end < next.bounds().0);
            assert!(space.stored(&[0xff; 9]) < end && space.contains(&end) && !next.contains(&end));
            assert_eq!(Space::of(&end), Some(space));
            assert!(!space.contains(&[&end[..], &[0]].concat()));
        }
        assert!(ends(Space::new(u32::MAX)).1 < vec![0xff, 6]);
    }

    #[test]
    fn long_keys_are_stored_like_short_ones() {
        for len in [SHORT_KEY_BYTES - 4, SHORT_KEY_BYTES - 3, SHORT_KEY_BYTES - 2, MAX_KEY_BYTES] {
            let key = vec![0xff; len];
            for space in [Space::DEFAULT, Space::new(7), Space::new(u32::MAX)] {
                space.with_stored(&key, |stored| assert_eq!(without_head(stored), key));
                assert!(space.stored(&key).len() <= MAX_STORED_KEY_BYTES);
            }
        }
    }
}
