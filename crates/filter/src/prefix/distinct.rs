//! The distinct prefixes of sorted keys.

use super::extractor::PrefixExtractor;
use super::set::PrefixSet;
use crate::hash::KeyHasher;

/// Finds the distinct prefixes of keys in ascending order. All keys with one prefix are neighbours, so it
/// only needs the last prefix of each extractor.
pub struct DistinctPrefixes {
    hasher: KeyHasher,
    /// Each extractor with the last prefix; empty before the first.
    last: Vec<(PrefixExtractor, Vec<u8>)>,
}

impl DistinctPrefixes {
    /// For keys that are hashed with `hasher`.
    pub fn new(set: &PrefixSet, hasher: KeyHasher) -> Self {
        DistinctPrefixes { hasher, last: set.iter().map(|extractor| (extractor, Vec::new())).collect() }
    }

    /// Calls `each` with the member hash of every prefix of `key` that no earlier key had. Every prefix
    /// begins with the first `head` bytes, which the extractors do not see.
    #[inline]
    pub fn of_next(&mut self, head: usize, key: &[u8], mut each: impl FnMut(u64)) {
        for (extractor, last) in &mut self.last {
            let prefix = extractor.extract_after(head, key).filter(|prefix| prefix != last);
            let Some(prefix) = prefix else { continue };
            last.clear();
            last.extend_from_slice(prefix);
            each(extractor.member(self.hasher.hash(prefix)));
        }
    }
}
