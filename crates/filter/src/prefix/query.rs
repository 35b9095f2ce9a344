//! The common prefix of all keys of a range.

use super::extractor::PrefixExtractor;
use super::set::PrefixSet;
use crate::hash::KeyHasher;
use std::ops::Bound;

/// A question to filters: may there be a key in a range whose keys all have one prefix?
#[derive(Debug, Clone, Copy)]
pub struct PrefixQuery {
    /// Each extractor that applies with its member hash, the longest prefix first.
    members: [Option<(PrefixExtractor, u64)>; PrefixSet::MAX],
}

impl PrefixQuery {
    /// The question for a range of keys. `None` if no extractor gives all keys of the range the same prefix.
    /// Every prefix begins with the first `head` bytes, which the extractors do not see.
    pub fn new(
        set: &PrefixSet,
        hasher: &KeyHasher,
        head: usize,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
    ) -> Option<Self> {
        let (Bound::Included(from) | Bound::Excluded(from)) = lower else { return None };
        let (mut members, mut lens) = ([None; PrefixSet::MAX], [0; PrefixSet::MAX]);
        for extractor in set.iter() {
            // Keys that start with the prefix of the lower bound have the same prefix.
            let prefix = extractor.extract_after(head, from).filter(|prefix| ends_within(upper, prefix));
            let Some(prefix) = prefix else { continue };
            let Some(at) = lens.iter().position(|len| *len < prefix.len()) else { continue };
            lens[at..].rotate_right(1);
            members[at..].rotate_right(1);
            (lens[at], members[at]) =
                (prefix.len(), Some((extractor, extractor.member(hasher.hash(prefix)))));
        }
        members[0].is_some().then_some(PrefixQuery { members })
    }

    /// The hash to probe for in a filter built with the extractors in `known`: the longest prefix's. `None`
    /// if the filter has none of these prefixes, and so no answer.
    #[inline]
    pub fn hash_for(&self, known: &PrefixSet) -> Option<u64> {
        let known = |(extractor, _): &&(PrefixExtractor, u64)| known.contains(*extractor);
        self.members.iter().flatten().find(known).map(|(_, hash)| *hash)
    }

    /// The hash of the longest prefix, for a filter that has all of them.
    #[inline]
    pub fn longest(&self) -> Option<u64> {
        self.members.iter().flatten().next().map(|(_, hash)| *hash)
    }
}

/// Whether a range that begins with `prefix` ends before the first key after those with the prefix.
fn ends_within(upper: Bound<&[u8]>, prefix: &[u8]) -> bool {
    // Later keys begin with the prefix up to the last byte that can be raised, and that byte raised.
    let Some(last) = prefix.iter().rposition(|&byte| byte != 0xff) else { return true };
    let is_end =
        |key: &[u8]| key.len() == last + 1 && key[..last] == prefix[..last] && key[last] == prefix[last] + 1;
    match upper {
        Bound::Included(key) => key.starts_with(prefix),
        Bound::Excluded(key) => key.starts_with(prefix) || is_end(key),
        Bound::Unbounded => false,
    }
}
