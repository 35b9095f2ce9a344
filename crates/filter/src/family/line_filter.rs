//! A filter of lines with the hash of its keys: what the store keeps beside its segments, for use on its own.

use crate::error::{Error, Result};
use crate::hash::KeyHasher;
use crate::sizing::blocked_fpr;
use crate::{BuiltFilter, FilterKind, FilterSpec, LINE_BITS, Prober, SortHashes, Verdict, Width, parity};

/// Keys whose lines are fetched before the first of them is added.
pub(super) const FETCHED_AT_ONCE: usize = 32;

/// A parity or blocked Bloom filter and its key hash: one cache line a probe, asked by key.
///
/// ```
/// use sidebloom_filter::{FilterSpec, LineFilter, Verdict, Width};
///
/// let spec = FilterSpec::Parity { width: Width::Eight }; // 8.8 bits per key, 0.39 %
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
    /// Builds from all keys, hashed by `hasher` (a number is the seed of XXH3). Takes 8 bytes of memory a key beside the filter, and up to 24 for a parity filter.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for sizes outside the limits of [`crate::sizing`].
    pub fn build<K: AsRef<[u8]>>(
        spec: FilterSpec,
        keys: impl IntoIterator<Item = K>,
        hasher: impl Into<KeyHasher>,
    ) -> Result<Self> {
        let hasher = hasher.into();
        let hashes: Vec<u64> = keys.into_iter().map(|key| hasher.hash(key.as_ref())).collect();
        LineFilter::from_hashes(spec, &hashes, hasher)
    }

    /// Builds from the hashes of all keys, as [`KeyHasher::hash`] gives them, and checks that none of them is denied.
    ///
    /// # Errors
    /// As [`LineFilter::build`]; [`Error::SelfCheck`].
    pub fn from_hashes(spec: FilterSpec, hashes: &[u64], hasher: impl Into<KeyHasher>) -> Result<Self> {
        let built = BuiltFilter::build(spec, hashes)?;
        built.check_members(hashes)?;
        Ok(LineFilter::from_built(built, hasher.into()))
    }

    /// Builds a parity filter from more hashes than memory holds: they have been pushed to `hashes`, which may keep them on disk. The same
    /// filter, bit for bit, as from a slice of them.
    ///
    /// # Errors
    /// As [`LineFilter::from_hashes`], and the sorter's own.
    pub fn from_sorter<S: SortHashes>(
        width: Width,
        mut hashes: S,
        hasher: impl Into<KeyHasher>,
    ) -> Result<Self, S::Error> {
        let built = parity::build_from(&mut hashes, width)?;
        hashes.in_order(&mut |piece| Ok(built.check_members(piece)?))?;
        Ok(LineFilter::from_built(built, hasher.into()))
    }

    /// An empty blocked Bloom filter for `keys` keys at `bits_per_key`, to be filled by [`LineFilter::insert`].
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for sizes outside the limits of [`crate::sizing`].
    pub fn empty_blocked(keys: u64, bits_per_key: f64, hasher: impl Into<KeyHasher>) -> Result<Self> {
        Ok(LineFilter::from_built(crate::blocked::empty(keys, bits_per_key)?, hasher.into()))
    }

    pub(crate) fn from_built(filter: BuiltFilter, hasher: KeyHasher) -> Self {
        let capacity = match filter.kind {
            FilterKind::BlockedBloom { k } => blocked_capacity(filter.lines.len() as u64, k),
            FilterKind::Parity { .. } => filter.keys,
        };
        LineFilter { prober: Prober::new(filter.kind), filter, hasher, capacity }
    }

    /// Asks for a key.
    #[inline]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Verdict {
        self.prober.probe(&self.filter.lines, self.hasher.hash(key.as_ref()))
    }

    /// Asks for many keys, in their order, with their lines fetched ahead.
    pub fn contains_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Verdict> {
        let hashes: Vec<u64> = keys.iter().map(|key| self.hasher.hash(key.as_ref())).collect();
        let mut verdicts = Vec::new();
        self.prober.probe_many(&self.filter.lines, &hashes, &mut verdicts);
        verdicts
    }

    /// Adds a key to a blocked Bloom filter. `false` when it was *maybe* there already: then nothing has changed.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a parity filter, which is built from all its keys at once; [`Error::Full`] for a new key
    /// beyond [`LineFilter::capacity`].
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.insert_hash(self.hasher.hash(key.as_ref()))
    }

    /// [`insert`](Self::insert)s many keys, in their order, with their lines fetched ahead.
    ///
    /// # Errors
    /// As [`insert`](Self::insert), of the first key that is refused; those before it have been added.
    pub fn insert_many<K: AsRef<[u8]>>(&mut self, keys: &[K]) -> Result<()> {
        for keys in keys.chunks(FETCHED_AT_ONCE) {
            let mut hashes = [0; FETCHED_AT_ONCE];
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
                "a parity filter takes no new keys: build it again from all of them".to_owned(),
            ));
        };
        if self.prober.probe(&self.filter.lines, hash) == Verdict::Maybe {
            return Ok(false);
        }
        if self.filter.keys >= self.capacity {
            return Err(Error::Full { capacity: self.capacity, fpr: self.fpr() });
        }
        crate::blocked::insert(&mut self.filter.lines, hash, k);
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

    /// How many keys it holds: a parity filter, different ones; a blocked Bloom filter that was built at once, duplicates too.
    pub fn keys(&self) -> u64 {
        self.filter.keys
    }

    /// How many keys it can hold: a parity filter those that it has, a blocked Bloom filter as many as make another number of bits per
    /// key the better choice for its size.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The false-positive rate (0 to 1) to expect.
    pub fn fpr(&self) -> f64 {
        self.filter.kind.expected_fpr(self.filter.keys, self.filter.lines.len() as u64)
    }

    /// Its memory in bits.
    pub fn bits(&self) -> u64 {
        self.filter.lines.len() as u64 * LINE_BITS as u64
    }
}

/// The most keys for which `k` bits are no worse than `k` − 1, by bisection: the first keys want many bits each, later ones fewer.
fn blocked_capacity(lines: u64, k: u32) -> u64 {
    // At 2 bits per key, the least that such a filter can be asked for, one bit a key is the best.
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
