//! The members of a segment's filter.

use crate::filter::format::StoredPrefixes;
use crate::filter::{DistinctPrefixes, PrefixSet};
use crate::hash::KeyHasher;
use crate::key::Space;

/// Room for this many members, 8 MiB, is reserved at once. For more, it grows as needed.
const EXPECTED_MAX: usize = 1 << 20;

/// The members of a segment's filter, collected while its keys pass in order: every key, including tombstones
/// (I9), and every distinct prefix. The filter is sized from their exact number.
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

    /// Reserves room for this many keys, or for part of them: the number comes from a file.
    pub fn expect(&mut self, keys: u64) {
        self.hashes.reserve(usize::try_from(keys).unwrap_or(EXPECTED_MAX).min(EXPECTED_MAX));
    }

    /// Adds a key, greater than all before, with its hash and its new prefixes.
    #[inline]
    pub fn add(&mut self, key: &[u8], hash: u64) {
        self.hashes.push(hash);
        self.distinct.of_next(Space::head_bytes(key), key, |member| {
            self.hashes.push(member);
            self.prefixes.count += 1;
        });
    }

    /// The hashes of all members.
    pub fn hashes(&self) -> &[u64] {
        &self.hashes
    }

    /// Which members are prefixes.
    pub fn prefixes(&self) -> StoredPrefixes {
        self.prefixes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_that_claims_too_many_keys_takes_no_memory_for_them() {
        let mut members = Members::new(PrefixSet::default(), 1.into());
        members.expect(u64::MAX);
        assert_eq!(members.hashes.capacity(), EXPECTED_MAX);
        let mut members = Members::new(PrefixSet::default(), 1.into());
        members.expect(1000);
        assert_eq!(members.hashes.capacity(), 1000);
    }
}
