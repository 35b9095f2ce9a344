//! What a segment's filter is built from.

use crate::filter::format::StoredPrefixes;
use crate::filter::{DistinctPrefixes, PrefixSet};
use crate::hash::KeyHasher;

/// The members of a segment's filter, collected while its keys pass in order: every key, tombstones included (I9), and every distinct
/// prefix of one. The filter is sized from their exact number.
pub struct Members {
    hashes: Vec<u64>,
    prefixes: StoredPrefixes,
    distinct: DistinctPrefixes,
}

impl Members {
    /// No members yet. The prefixes are those of the extractors in `set`.
    pub fn new(set: PrefixSet, hasher: KeyHasher) -> Self {
        let prefixes = StoredPrefixes { set, count: 0 };
        Members { hashes: Vec::new(), prefixes, distinct: DistinctPrefixes::new(&set, hasher) }
    }

    /// Makes room for so many keys.
    pub fn reserve(&mut self, keys: usize) {
        self.hashes.reserve(keys);
    }

    /// Adds a key, which is greater than all before, with its hash, and the prefixes that are new.
    #[inline]
    pub fn add(&mut self, key: &[u8], hash: u64) {
        self.hashes.push(hash);
        self.distinct.of_next(key, |member| {
            self.hashes.push(member);
            self.prefixes.count += 1;
        });
    }

    /// The hashes of all of them.
    pub fn hashes(&self) -> &[u64] {
        &self.hashes
    }

    /// Which of them are prefixes.
    pub fn prefixes(&self) -> StoredPrefixes {
        self.prefixes
    }
}
