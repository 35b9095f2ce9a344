//! The rotating Bloom filter: keys of a window of time.

use super::bloom::{Bloom, Plan};
use super::hashing::HashFunction;
use crate::Verdict;
use crate::error::{Error, Result};
use std::collections::VecDeque;

/// Buckets of time in a window.
const BUCKETS: u64 = 12;
/// The most sub-filters: those of a window, and the one that is being filled.
const LIVE_MAX: u64 = BUCKETS + 1;
/// The keys that a sub-filter's first layer has room for, at least. It takes 43 KB at a rate of 0.1 %.
const FIRST_KEYS: u64 = 1 << 14;
/// A layer that finds room for fewer than this share of the keys that it should take is not worth its probes.
const WORTHWHILE: u64 = 16;
/// The lowest rate: that of a layer is a small part of it, and at least
/// [`MIN_FPR`](super::shape::MIN_FPR).
const MIN_FPR: f64 = 1e-10;

/// The parameters of a rotating filter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rotation {
    /// How long a key is remembered, in milliseconds; at least 1.
    pub window_ms: u64,
    /// The false-positive rate (0 to 1) that all sub-filters together stay below; at least 1e-10.
    pub fpr: f64,
    /// The most memory for bits, in bytes.
    pub bytes_max: u64,
    /// The hash of keys, with its seed or key.
    pub hash: HashFunction,
}

/// A Bloom filter that forgets: was this key seen within the last hours?
///
/// Time is divided into buckets of a twelfth of the window, each with a sub-filter of the keys that were seen
/// then. A key counts as seen if any live sub-filter has it. At most 13 are live, 12 and the one being
/// filled. Whole sub-filters are dropped, so forgetting costs nothing for each key.
///
/// - A key that was seen within the window is never new.
/// - A key that was not seen within 13/12 of the window is new, except for false positives.
/// - In between, it may be either.
///
/// ```
/// use sidebloom_filter::RotatingBloom;
///
/// const HOUR: u64 = 60 * 60 * 1000;
/// let mut seen = RotatingBloom::new(24 * HOUR, 0.001, 64 << 20)?; // milliseconds, rate, bytes
/// assert!(seen.insert_new("a", 0)?);
/// assert!(!seen.insert_new("a", 24 * HOUR)?); // remembered for another 24 hours
/// assert!(seen.insert_new("a", 50 * HOUR)?);
/// # Ok::<(), sidebloom_filter::Error>(())
/// ```
///
/// # The rate
/// It never exceeds the rate `p` that was asked for. A false positive of the whole is one of a sub-filter, so
/// the sum of their rates is an upper bound: each of the 13 gets p/13. How many keys come in a bucket is
/// unknown, so a sub-filter is a series of layers, as a [`ScalableBloom`](super::ScalableBloom) is. Layer
/// `i`, from 0, gets the share 1/((i+1)(i+2)) of the sub-filter's rate: 1/2, 1/6, 1/12, …, which add up to
/// less than 1. The first layer has room for an eighth more keys than the last bucket had, and each further
/// layer for as many as those before it together. [`fpr`](Self::fpr) computes the rate from the bits set.
///
/// # Memory
/// A key takes 1.44 log₂(26/p) bits in each bucket in which it is seen: 2.0 bytes at p = 1 %, 2.6 at 0.1 %.
/// Layers may be partly empty. A key that would need more than [`Rotation::bytes_max`] is refused.
///
/// # Chosen keys
/// [`new`](Self::new) draws a secret key for the hash. Without one, somebody who chooses keys could make
/// others count as seen.
#[derive(Debug, Clone)]
pub struct RotatingBloom {
    rotation: Rotation,
    /// Oldest first; none without keys.
    filters: VecDeque<SubFilter>,
    /// The bucket of the latest time, and the time at which the next one begins.
    bucket: u128,
    next_bucket_ms: u64,
    /// Keys of the last finished sub-filter.
    keys_of_last: u64,
}

/// The keys of one bucket of time.
#[derive(Debug, Clone)]
struct SubFilter {
    bucket: u128,
    layers: Vec<Bloom>,
}

impl SubFilter {
    fn holds(&self, hash: (u64, u64)) -> bool {
        // The last layer is the largest.
        self.layers.iter().rev().any(|layer| layer.contains_hash(hash) == Verdict::Maybe)
    }

    fn keys(&self) -> u64 {
        self.layers.iter().map(Bloom::keys).sum()
    }
}

impl RotatingBloom {
    /// An empty filter that remembers keys for `window_ms` milliseconds, stays below a false-positive rate of
    /// `fpr` (0 to 1), takes at most `bytes_max` bytes, and hashes with a new secret key
    /// ([`HashFunction::secret`]).
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an empty window, or a rate below 1e-10 or not below 1; [`Error::Io`] if
    /// the operating system provides no random numbers.
    pub fn new(window_ms: u64, fpr: f64, bytes_max: u64) -> Result<Self> {
        let hash = HashFunction::secret()?;
        RotatingBloom::with_rotation(Rotation { window_ms, fpr, bytes_max, hash })
    }

    /// An empty filter.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an empty window, or a rate below 1e-10 or not below 1.
    pub fn with_rotation(rotation: Rotation) -> Result<Self> {
        if rotation.window_ms == 0 {
            return Err(Error::InvalidArgument("a window of 0 milliseconds (at least 1)".to_owned()));
        }
        if !(MIN_FPR..1.0).contains(&rotation.fpr) {
            let fpr = rotation.fpr;
            let why = format!("false-positive rate {fpr:?} (allowed: {MIN_FPR:e} to below 1)");
            return Err(Error::InvalidArgument(why));
        }
        let filters = VecDeque::new();
        Ok(RotatingBloom { rotation, filters, bucket: 0, next_bucket_ms: 0, keys_of_last: 0 })
    }

    /// Remembers a key as seen at `time_ms`, in milliseconds since any fixed moment. Returns whether it was
    /// new. A time before the latest one counts as the latest one, so the key is remembered no shorter.
    ///
    /// # Errors
    /// [`Error::Full`] for a key that needs more than [`Rotation::bytes_max`], and [`Error::OutOfMemory`]:
    /// the key is not remembered.
    pub fn insert_new(&mut self, key: impl AsRef<[u8]>, time_ms: u64) -> Result<bool> {
        self.advance(time_ms);
        let hash = self.rotation.hash.hash(key.as_ref());
        let mut newest_first = self.filters.iter().rev();
        let seen_in = newest_first.find(|filter| filter.holds(hash)).map(|filter| filter.bucket);
        if seen_in != Some(self.bucket) {
            // Also a key that an older sub-filter has: it must be remembered longer than that one is.
            self.remember(hash)?;
        }
        Ok(seen_in.is_none())
    }

    /// Queries a key, as of the latest time.
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Verdict {
        let hash = self.rotation.hash.hash(key.as_ref());
        if self.filters.iter().rev().any(|filter| filter.holds(hash)) {
            Verdict::Maybe
        } else {
            Verdict::Absent
        }
    }

    /// Forgets what was last seen before the window that ends at `time_ms`; a time before the latest one does
    /// nothing. [`insert_new`](Self::insert_new) does this itself.
    pub fn advance(&mut self, time_ms: u64) {
        if time_ms < self.next_bucket_ms {
            return;
        }
        // In exact fractions: in whole milliseconds, a window of 1000 would have 13 buckets.
        let (window, buckets) = (u128::from(self.rotation.window_ms), u128::from(BUCKETS));
        self.bucket = u128::from(time_ms) * buckets / window;
        self.next_bucket_ms =
            u64::try_from(((self.bucket + 1) * window).div_ceil(buckets)).unwrap_or(u64::MAX);
        if let Some(last) = self.filters.back() {
            self.keys_of_last = last.keys();
        }
        // A key was seen at the earliest at the start of its bucket, b: its window ends in bucket b + 12.
        while self.filters.front().is_some_and(|filter| filter.bucket + buckets < self.bucket) {
            // Sub-filters come and go in many sizes. An allocator that keeps their pages may take up to half
            // as much memory again as `bytes_max`.
            let forgotten = self.filters.pop_front().into_iter().flat_map(|filter| filter.layers);
            forgotten.for_each(|layer| layer.lines.give_back());
        }
    }

    /// Adds a key to the bucket of the latest time, which lacks it.
    fn remember(&mut self, hash: (u64, u64)) -> Result<()> {
        let current = self.filters.back_mut().filter(|last| last.bucket == self.bucket);
        let last_layer = current.and_then(|filter| filter.layers.last_mut());
        if let Some(layer) = last_layer
            && layer.keys() < layer.plan().capacity()
        {
            return layer.insert_hash(hash).map(drop);
        }
        let mut layer = Bloom::with_plan(self.next_layer()?)?;
        layer.insert_hash(hash)?;
        match self.filters.back_mut().filter(|last| last.bucket == self.bucket) {
            Some(current) => current.layers.push(layer),
            None => self.filters.push_back(SubFilter { bucket: self.bucket, layers: vec![layer] }),
        }
        Ok(())
    }

    /// The next layer of the current bucket: as large as wanted, or as the memory allows.
    fn next_layer(&self) -> Result<Plan> {
        let current = self.filters.back().filter(|last| last.bucket == self.bucket);
        let layers = current.map_or(0, |filter| filter.layers.len());
        let keys = current.map_or(self.keys_of_last / 8 * 9, SubFilter::keys).max(FIRST_KEYS);
        let share = self.rotation.fpr / LIVE_MAX as f64 / ((layers + 1) * (layers + 2)) as f64;
        let plan = |keys| Plan::new(keys, share).map(|plan| Plan { hash: self.rotation.hash, ..plan });
        let bytes = |plan: &Plan| plan.shape.bits() / 8;
        let room = self.rotation.bytes_max.saturating_sub(self.bytes());
        let wanted = plan(keys)?;
        if bytes(&wanted) <= room {
            return Ok(wanted);
        }
        // Sizes are rounded up by less than 1/64, or to a line.
        let fewer = (keys as f64 * room as f64 / bytes(&wanted) as f64 * (1.0 - 1.0 / 32.0)) as u64;
        let smaller = if fewer < keys / WORTHWHILE { None } else { Some(plan(fewer)?) };
        let full = || Error::Full { capacity: self.keys(), fpr: self.rotation.fpr };
        smaller.filter(|plan| bytes(plan) <= room).ok_or_else(full)
    }

    /// The parameters.
    pub fn rotation(&self) -> &Rotation {
        &self.rotation
    }

    /// The number of live sub-filters: 0 to 13.
    pub fn filters(&self) -> usize {
        self.filters.len()
    }

    /// The number of keys in all live sub-filters. A key that was seen in several buckets counts in each.
    pub fn keys(&self) -> u64 {
        self.filters.iter().map(SubFilter::keys).sum()
    }

    /// The memory for bits, in bytes.
    pub fn bytes(&self) -> u64 {
        self.layers().map(|layer| layer.plan().shape.bits() / 8).sum()
    }

    /// The false-positive rate (0 to 1) of the current bits: 1 − Π (1 − pᵢ) over the layers of all live
    /// sub-filters. Reads all bits.
    pub fn fpr(&self) -> f64 {
        1.0 - self.layers().map(|layer| 1.0 - layer.fpr()).product::<f64>()
    }

    pub(super) fn layers(&self) -> impl Iterator<Item = &Bloom> {
        self.filters.iter().flat_map(|filter| &filter.layers)
    }
}
