//! Any filter that can be stored or sent.

use super::line_filter::PREFETCH_BATCH;
use super::{Bloom, CountingBloom, LineFilter, ScalableBloom, SmallFilter};
use crate::error::{Error, Result};
use crate::{Line, Verdict};

/// The average number of bits that a query for an absent key reads in a half-full filter.
pub(crate) const POSITIONS_OF_AN_ABSENT_KEY: usize = 2;

/// A filter whose kind is known only once it is read ([`receive_filter`](crate::receive_filter)).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum AnyFilter {
    /// Parity or blocked Bloom.
    Lines(LineFilter),
    /// Classic Bloom.
    Bloom(Bloom),
    /// Counting Bloom.
    Counting(CountingBloom),
    /// A growing series.
    Scalable(ScalableBloom),
    /// The compact filter for small sets.
    Small(SmallFilter),
}

impl AnyFilter {
    /// The display name of the kind: "parity", "blocked-bloom", "bloom", "counting", "scalable", "small".
    pub fn name(&self) -> &'static str {
        match self {
            AnyFilter::Lines(filter) => filter.built().kind.family(),
            AnyFilter::Bloom(_) => "bloom",
            AnyFilter::Counting(_) => "counting",
            AnyFilter::Scalable(_) => "scalable",
            AnyFilter::Small(_) => "small",
        }
    }

    /// Queries a key.
    #[inline]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Verdict {
        match self {
            AnyFilter::Lines(filter) => filter.contains(key),
            AnyFilter::Bloom(filter) => filter.contains(key),
            AnyFilter::Counting(filter) => filter.contains(key),
            AnyFilter::Scalable(filter) => filter.contains(key),
            AnyFilter::Small(filter) => filter.contains(key),
        }
    }

    /// Queries many keys, in order, prefetching their lines.
    pub fn contains_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Verdict> {
        if let AnyFilter::Lines(filter) = self {
            return filter.contains_many(keys);
        }
        let query = |keys: &[K]| {
            self.prefetch(keys, POSITIONS_OF_AN_ABSENT_KEY);
            keys.iter().map(|key| self.contains(key)).collect::<Vec<_>>()
        };
        keys.chunks(PREFETCH_BATCH).flat_map(query).collect()
    }

    fn prefetch<K: AsRef<[u8]>>(&self, keys: &[K], positions: usize) {
        let keys = keys.iter().map(AsRef::as_ref);
        match self {
            // A line filter prefetches by itself; small filters stay in the cache.
            AnyFilter::Lines(_) | AnyFilter::Small(_) => {}
            AnyFilter::Bloom(filter) => keys.for_each(|key| filter.prefetch(key, positions)),
            AnyFilter::Counting(filter) => keys.for_each(|key| filter.prefetch(key, positions)),
            AnyFilter::Scalable(filter) => keys.for_each(|key| filter.prefetch(key, positions)),
        }
    }

    /// Adds a key. Returns `false` if the filter already answered "maybe".
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a parity or a small filter; [`Error::Full`] beyond the capacity.
    #[inline]
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        match self {
            AnyFilter::Lines(filter) => filter.insert(key),
            AnyFilter::Bloom(filter) => filter.insert(key),
            AnyFilter::Counting(filter) => filter.insert(key),
            AnyFilter::Scalable(filter) => filter.insert(key),
            AnyFilter::Small(_) => Err(Error::InvalidArgument(
                "a small filter takes no new keys; build it again from all keys".to_owned(),
            )),
        }
    }

    /// Adds many keys, in order, prefetching their lines.
    ///
    /// # Errors
    /// The errors of [`insert`](Self::insert) for the first refused key. All keys before it have been added.
    pub fn insert_many<K: AsRef<[u8]>>(&mut self, keys: &[K]) -> Result<()> {
        if let AnyFilter::Lines(filter) = self {
            return filter.insert_many(keys);
        }
        for keys in keys.chunks(PREFETCH_BATCH) {
            self.prefetch(keys, usize::MAX);
            keys.iter().try_for_each(|key| self.insert(key).map(drop))?;
        }
        Ok(())
    }

    /// Removes one insert of a key. Returns `false` if the key was certainly not there. See
    /// [`CountingBloom::remove`].
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for every kind except the counting one.
    pub fn remove(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        match self {
            AnyFilter::Counting(filter) => Ok(filter.remove(key)),
            _ => Err(Error::InvalidArgument(format!(
                "a {} filter cannot remove keys; only a counting filter can",
                self.name()
            ))),
        }
    }

    /// The number of keys, as far as the kind can tell.
    pub fn keys(&self) -> u64 {
        match self {
            AnyFilter::Lines(filter) => filter.keys(),
            AnyFilter::Bloom(filter) => filter.keys(),
            AnyFilter::Counting(filter) => filter.keys(),
            AnyFilter::Scalable(filter) => filter.keys(),
            AnyFilter::Small(filter) => filter.keys(),
        }
    }

    /// The number of keys that it can hold; `None` for a growing series.
    pub fn capacity(&self) -> Option<u64> {
        match self {
            AnyFilter::Lines(filter) => Some(filter.capacity()),
            AnyFilter::Bloom(filter) => Some(filter.plan().capacity()),
            AnyFilter::Counting(filter) => Some(filter.plan().capacity()),
            AnyFilter::Scalable(_) => None,
            AnyFilter::Small(filter) => Some(filter.keys()),
        }
    }

    /// The size of the lines, or of a small filter's values, in memory, in bytes.
    pub fn bytes(&self) -> u64 {
        let of_lines = |lines: &[Line]| lines.as_flattened().len() as u64;
        match self {
            AnyFilter::Lines(filter) => of_lines(&filter.built().lines),
            AnyFilter::Bloom(filter) => of_lines(filter.lines()),
            AnyFilter::Counting(filter) => of_lines(filter.lines()),
            AnyFilter::Scalable(filter) => filter.layers().iter().map(|layer| of_lines(layer.lines())).sum(),
            AnyFilter::Small(filter) => filter.bytes(),
        }
    }

    /// The current false-positive rate (0 to 1).
    pub fn fpr(&self) -> f64 {
        match self {
            AnyFilter::Lines(filter) => filter.fpr(),
            AnyFilter::Bloom(filter) => filter.fpr(),
            AnyFilter::Counting(filter) => filter.fpr(),
            AnyFilter::Scalable(filter) => filter.fpr(),
            AnyFilter::Small(filter) => filter.fpr(),
        }
    }
}
