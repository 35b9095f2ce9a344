//! Prefix filters: a walk over keys with a common prefix skips sources that have no such key.
//!
//! 1. The filters of memtables and segments also have the distinct prefixes of their keys as members.
//! 2. A walk between two bounds finds the longest prefix that all keys between them share, and probes the
//!    filter of each source for it. An untrusted filter, or one built with other extractors, denies nothing.
//! 3. The segments of a run that overlap the bounds are neighbours, and the inner ones have only keys with
//!    the prefix. So it is enough to leave out segments at both ends.

use crate::engine::keyspaces::registry::Keyspaces;
use crate::filter::{PrefixExtractor, PrefixQuery, PrefixSet, Verdict};
use crate::hash::KeyHasher;
use crate::key::Space;
use crate::live::Segments;
use crate::memtable::MemtableFilter;
use crate::options::Options;
use crate::shards::{OwnShard, Shards};
use crate::sidecar::Sidecar;
use std::ops::{Bound, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const _: () = assert!(PrefixExtractor::MAX == crate::key::MAX_KEY_BYTES);

/// The extractors of an open store.
pub(crate) struct Prefixes {
    /// Those of the store. Memtable filters have their prefixes.
    pub set: PrefixSet,
    keyspaces: Arc<Keyspaces>,
    hasher: KeyHasher,
    counts: Shards<PrefixCounts>,
}

/// Prefix probes that sidecars answered, and how many of them with "absent".
#[derive(Default)]
#[repr(align(128))]
struct PrefixCounts {
    probes: AtomicU64,
    negatives: AtomicU64,
}

impl Prefixes {
    /// The extractors in the options, and those of keyspaces; `None` if filters are not used.
    pub fn new(options: &Options, hasher: KeyHasher, keyspaces: &Arc<Keyspaces>) -> Option<Arc<Self>> {
        // Opening has refused what is invalid.
        let set = options.prefixes.clone().unwrap_or_default();
        let (keyspaces, counts) = (Arc::clone(keyspaces), Shards::default());
        options.filter_policy.is_on().then(|| Arc::new(Prefixes { set, keyspaces, hasher, counts }))
    }

    /// Calls `each` with the member hash of every prefix of a key.
    pub fn of_key(&self, key: &[u8], mut each: impl FnMut(u64)) {
        for extractor in self.set.iter() {
            if let Some(prefix) = extractor.extract_after(Space::head_bytes(key), key) {
                each(extractor.member(self.hasher.hash(prefix)));
            }
        }
    }

    /// The probe for the keys between two bounds. `None` if they may have different prefixes.
    pub fn ask(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Option<PrefixDenials<'_>> {
        let (Bound::Included(from) | Bound::Excluded(from)) = lower else { return None };
        let own = self.own_of(from);
        let set = own.as_ref().unwrap_or(&self.set);
        if set.is_empty() {
            return None;
        }
        let query = PrefixQuery::new(set, &self.hasher, Space::head_bytes(from), lower, upper)?;
        Some(PrefixDenials { query, is_in_memtables: own.is_none(), counts: self.counts.mine() })
    }

    /// The extractors of the keyspace of a stored key, if it has its own.
    #[inline]
    fn own_of(&self, stored: &[u8]) -> Option<PrefixSet> {
        if Space::head_bytes(stored) == 0 {
            return None;
        }
        Space::of(stored).and_then(|space| self.keyspaces.own_prefixes(space))
    }

    /// The probe for the keys that start with `prefix`. `None` if no extractor applies.
    pub fn ask_prefix(&self, prefix: &[u8]) -> Option<PrefixDenials<'_>> {
        // What they share with `prefix` itself.
        self.ask(Bound::Included(prefix), Bound::Included(prefix))
    }

    /// The sums of the counters: probes, and answers "absent".
    pub fn counts(&self) -> (u64, u64) {
        let counts = self.counts.iter().map(|c| (c.probes.load(Relaxed), c.negatives.load(Relaxed)));
        counts.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }
}

/// Tells which sources have no key with a prefix.
pub(crate) struct PrefixDenials<'p> {
    query: PrefixQuery,
    /// Whether the filters of memtables have such prefixes.
    is_in_memtables: bool,
    counts: OwnShard<'p, PrefixCounts>,
}

impl PrefixDenials<'_> {
    /// Whether a memtable has no such key. Its filter has the prefixes of all the store's extractors.
    pub fn deny_memtable(&self, filter: &MemtableFilter) -> bool {
        self.is_in_memtables && self.query.longest().is_some_and(|hash| filter.denies(hash))
    }

    /// Whether the segment with this sidecar has no such key.
    pub fn deny(&self, sidecar: Option<&Sidecar>) -> bool {
        let verdict = self.ask(sidecar);
        if let Some(verdict) = verdict {
            self.count(1, u64::from(verdict == Verdict::Absent));
        }
        verdict == Some(Verdict::Absent)
    }

    /// Whether the segments with these sidecars have no such key. The answers are counted only then:
    /// otherwise each sidecar is probed again.
    pub fn deny_all<'s>(&self, mut sidecars: impl Iterator<Item = Option<&'s Sidecar>>) -> bool {
        let mut asked = 0;
        let deny = sidecars.all(|sidecar| {
            asked += 1;
            self.ask(sidecar) == Some(Verdict::Absent)
        });
        if deny {
            self.count(asked, asked);
        }
        deny
    }

    fn ask(&self, sidecar: Option<&Sidecar>) -> Option<Verdict> {
        sidecar?.ask_prefix(&self.query)
    }

    fn count(&self, probes: u64, negatives: u64) {
        let counts = self.counts.shard;
        self.counts.add(&counts.probes, probes);
        self.counts.add(&counts.negatives, negatives);
    }

    /// The `overlapping` segments of a run, without those at either end that have no such key.
    pub fn trim(&self, run: &Segments, mut overlapping: Range<usize>) -> Range<usize> {
        let denied = |at: usize| run.get(at).is_some_and(|segment| self.deny(segment.sidecar.as_deref()));
        while !overlapping.is_empty() && denied(overlapping.start) {
            overlapping.start += 1;
        }
        while overlapping.len() > 1 && denied(overlapping.end - 1) {
            overlapping.end -= 1;
        }
        overlapping
    }
}
