//! A line filter together with its key hash, for use on its own.

use crate::blocked::build::{empty, insert};
use crate::blocked::sizing::blocked_fpr;
use crate::error::{Error, Result};
use crate::hash::KeyHasher;
use crate::{BuiltFilter, FilterKind, FilterSpec, LINE_BITS, Prober, SortHashes, Verdict, Width};

/// The number of keys whose lines are prefetched before the first of them is added.
pub(crate) const PREFETCH_BATCH: usize = 32;

/// A parity or blocked Bloom filter with its key hash. A query takes a key and touches one cache line.
///
/// ```
/// use sidebloom_filter::{FilterSpec, LineFilter, Verdict, Width};
///
/// let spec = FilterSpec::Parity { width: Width::Eight }; // 8.8 bits per key, 0.28 %
/// let names = LineFilter::build(spec, ["ada", "grace", "barbara"], 42)?;
/// assert_eq!(names.contains("grace"), Verdict::Maybe);
/// # Ok::<(), sidebloom_filter::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct LineFilter {
    filter: BuiltFilter,
    hasher: KeyHasher,
    prober: Prober,
    capacity: u64,
}

impl LineFilter {
    /// Builds a filter of all keys, hashed with `hasher` (a number is a seed for XXH3). In addition to the
    /// filter, building takes 8 bytes of memory per key, and up to 24 for a parity filter.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for bits per key outside the limits of [`crate::sizing`];
    /// [`Error::TooManyKeys`]; [`Error::OutOfMemory`].
    pub fn build<K: AsRef<[u8]>>(
        spec: FilterSpec,
        keys: impl IntoIterator<Item = K>,
        hasher: impl Into<KeyHasher>,
    ) -> Result<Self> {
        let hasher = hasher.into();
        let hashes: Vec<u64> = keys.into_iter().map(|key| hasher.hash(key.as_ref())).collect();
        LineFilter::from_hashes(spec, &hashes, hasher)
    }

    /// Builds a filter from the hashes of all keys ([`KeyHasher::hash`]), and checks that it denies none.
    ///
    /// # Errors
    /// The errors of [`LineFilter::build`]; [`Error::SelfCheck`].
    pub fn from_hashes(spec: FilterSpec, hashes: &[u64], hasher: impl Into<KeyHasher>) -> Result<Self> {
        let built = BuiltFilter::build(spec, hashes)?;
        built.check_members(hashes)?;
        Ok(LineFilter::from_built(built, hasher.into()))
    }

    /// Builds a parity filter from more hashes than fit in memory. They were pushed to `hashes`, which may
    /// keep them on disk. The filter is bit for bit the one built from a slice of the hashes. They stay in
    /// `hashes`, for a filter of another width.
    ///
    /// # Errors
    /// The errors of [`LineFilter::from_hashes`] and of the sorter.
    pub fn from_sorter<S: SortHashes>(
        width: Width,
        hashes: &mut S,
        hasher: impl Into<KeyHasher>,
    ) -> Result<Self, S::Error> {
        let built = BuiltFilter::from_sorter(width, hashes)?;
        hashes.in_order(&mut |piece| Ok(built.check_members(piece)?))?;
        Ok(LineFilter::from_built(built, hasher.into()))
    }

    /// An empty blocked Bloom filter for `keys` keys at `bits_per_key`, to be filled with
    /// [`LineFilter::insert`].
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for bits per key outside the limits of [`crate::sizing`];
    /// [`Error::TooManyKeys`]; [`Error::OutOfMemory`].
    pub fn empty_blocked(keys: u64, bits_per_key: f64, hasher: impl Into<KeyHasher>) -> Result<Self> {
        let (lines, k) = empty(keys, bits_per_key)?;
        let filter = BuiltFilter { kind: FilterKind::BlockedBloom { k }, keys: 0, lines };
        Ok(LineFilter::from_built(filter, hasher.into()))
    }

    pub(crate) fn from_built(filter: BuiltFilter, hasher: KeyHasher) -> Self {
        let capacity = match filter.kind {
            FilterKind::BlockedBloom { k } => blocked_capacity(filter.lines.len() as u64, k),
            FilterKind::Parity { .. } => filter.keys,
        };
        LineFilter { prober: Prober::new(filter.kind), filter, hasher, capacity }
    }

    /// Queries a key.
    #[inline]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Verdict {
        self.prober.probe(&self.filter.lines, self.hasher.hash(key.as_ref()))
    }

    /// Queries many keys, in order, prefetching their lines.
    pub fn contains_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Verdict> {
        let hashes: Vec<u64> = keys.iter().map(|key| self.hasher.hash(key.as_ref())).collect();
        let mut verdicts = Vec::new();
        self.prober.probe_many(&self.filter.lines, &hashes, &mut verdicts);
        verdicts
    }

    /// Adds a key to a blocked Bloom filter. Returns `false`, without a change, if the filter already
    /// answered "maybe".
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a parity filter, which is built from all its keys at once;
    /// [`Error::Full`] for a new key beyond [`LineFilter::capacity`].
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.insert_hash(self.hasher.hash(key.as_ref()))
    }

    /// Adds many keys, in order, prefetching their lines.
    ///
    /// # Errors
    /// The errors of [`insert`](Self::insert) for the first refused key. All keys before it have been added.
    pub fn insert_many<K: AsRef<[u8]>>(&mut self, keys: &[K]) -> Result<()> {
        for keys in keys.chunks(PREFETCH_BATCH) {
            let mut hashes = [0; PREFETCH_BATCH];
            for (hash, key) in hashes.iter_mut().zip(keys) {
                *hash = self.hasher.hash(key.as_ref());
                self.prober.prefetch(&self.filter.lines, *hash);
            }
            hashes.iter().take(keys.len()).try_for_each(|&hash| self.insert_hash(hash).map(drop))?;
        }
        Ok(())
    }

    fn insert_hash(&mut self, hash: u64) -> Result<bool> {
        let FilterKind::BlockedBloom { k } = self.filter.kind else {
            return Err(Error::InvalidArgument(
                "a parity filter takes no new keys; build it again from all keys".to_owned(),
            ));
        };
        if self.prober.probe(&self.filter.lines, hash) == Verdict::Maybe {
            return Ok(false);
        }
        if self.filter.keys >= self.capacity {
            return Err(Error::Full { capacity: self.capacity, fpr: self.fpr() });
        }
        insert(&mut self.filter.lines, hash, k);
        self.filter.keys += 1;
        Ok(true)
    }

    /// The key hash.
    pub fn hasher(&self) -> KeyHasher {
        self.hasher
    }

    /// The filter without its key hash.
    pub fn built(&self) -> &BuiltFilter {
        &self.filter
    }

    /// The number of keys. A parity filter counts distinct keys; a blocked Bloom filter built at once also
    /// counts duplicates.
    pub fn keys(&self) -> u64 {
        self.filter.keys
    }

    /// The number of keys that it can hold: for a parity filter, those that it has; for a blocked Bloom
    /// filter, the number at which another `k` would become the better choice for its size.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The false-positive rate (0 to 1) to expect ([`BuiltFilter::expected_fpr`]).
    pub fn fpr(&self) -> f64 {
        self.filter.expected_fpr()
    }

    /// The size of the lines in bits.
    pub fn bits(&self) -> u64 {
        self.filter.lines.len() as u64 * LINE_BITS as u64
    }
}

/// The most keys for which `k` bits are no worse than `k` − 1, by bisection: the best `k` falls as it fills.
fn blocked_capacity(lines: u64, k: u32) -> u64 {
    // At 2 bits per key, the minimum, k = 1 is the best.
    let (mut fits, mut full) = (1, (lines * LINE_BITS as u64 / 2).max(2));
    if k == 1 {
        return full;
    }
    while full - fits > 1 {
        let keys = fits.midpoint(full);
        if blocked_fpr(keys, lines, k) <= blocked_fpr(keys, lines, k - 1) { fits = keys } else { full = keys }
    }
    fits
}
