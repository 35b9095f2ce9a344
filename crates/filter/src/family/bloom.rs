//! The classic Bloom filter.

use super::hashing::{HashFunction, positions_of};
use super::shape::{Shape, check_fpr};
use crate::error::{Error, Result};
use crate::prefetch::prefetch;
use crate::{LINE_BITS, LINE_BYTES, Line, Lines, Verdict};

/// The parameters of a filter. Filters with the same shape and hash can be combined.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    /// Bits and positions per key.
    pub shape: Shape,
    /// The hash of keys, with its seed or key.
    pub hash: HashFunction,
    /// The false-positive rate that the filter may reach, 0 to 1. It determines the capacity, and does not
    /// affect the bits.
    pub fpr: f64,
}

impl Plan {
    /// The smallest filter for `keys` keys at a false-positive rate of `fpr`, with the default hash, seed 0.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for no keys, or a rate below [`MIN_FPR`](super::shape::MIN_FPR) or not
    /// below 1; [`Error::TooManyKeys`].
    pub fn new(keys: u64, fpr: f64) -> Result<Self> {
        let shape = Shape::for_keys(keys, fpr)?;
        Ok(Plan { shape, hash: HashFunction::default(), fpr })
    }

    /// The number of keys that fit.
    pub fn capacity(&self) -> u64 {
        self.shape.capacity(self.fpr)
    }

    pub(super) fn check(&self) -> Result<()> {
        check_fpr(self.fpr)
    }

    pub(super) fn positions(&self, key: &[u8]) -> impl Iterator<Item = u64> + use<> {
        self.hash.positions(key, self.shape.bits(), self.shape.hashes())
    }

    pub(crate) fn positions_of(&self, hash: (u64, u64)) -> impl Iterator<Item = u64> + use<> {
        positions_of(hash, self.shape.bits(), self.shape.hashes())
    }

    /// Fails if the filter has no room for another key.
    pub(super) fn check_room(&self, keys: u64) -> Result<()> {
        let capacity = self.capacity();
        if keys < capacity { Ok(()) } else { Err(Error::Full { capacity, fpr: self.fpr }) }
    }
}

/// The classic Bloom filter: `m` bits, of which each key sets `k` (Bloom 1970).
///
/// ```
/// use sidebloom_filter::{Bloom, Verdict};
///
/// let mut seen = Bloom::new(1_000_000, 0.01)?; // keys, false-positive rate; takes 1.2 MB
/// assert!(seen.insert("https://example.com/")?); // true: it was new
/// assert_eq!(seen.contains("https://example.com/"), Verdict::Maybe);
/// assert_eq!(seen.contains("https://example.com/about"), Verdict::Absent);
/// # Ok::<(), sidebloom_filter::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Bloom {
    pub(super) plan: Plan,
    pub(super) keys: u64,
    pub(super) lines: Lines,
}

impl Bloom {
    /// An empty filter for `keys` keys at a false-positive rate of `fpr` (0 to 1), with XXH3, seed 0.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for no keys, or a rate below [`MIN_FPR`](super::shape::MIN_FPR) or not
    /// below 1; [`Error::TooManyKeys`]; [`Error::OutOfMemory`].
    pub fn new(keys: u64, fpr: f64) -> Result<Self> {
        Bloom::with_plan(Plan::new(keys, fpr)?)
    }

    /// An empty filter with the given plan.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a rate below [`MIN_FPR`](super::shape::MIN_FPR) or not below 1;
    /// [`Error::OutOfMemory`].
    pub fn with_plan(plan: Plan) -> Result<Self> {
        plan.check()?;
        Ok(Bloom { plan, keys: 0, lines: Lines::zeroed(plan.shape.lines())? })
    }

    /// A filter from its stored parts. The number of lines must match the shape.
    pub(crate) fn from_parts(plan: Plan, keys: u64, lines: Lines) -> Self {
        debug_assert_eq!(plan.shape.lines(), lines.len());
        Bloom { plan, keys, lines }
    }

    /// Adds a key. Returns `false`, without a change, if the filter already answered "maybe".
    ///
    /// # Errors
    /// [`Error::Full`] for a new key beyond the capacity; the filter is unchanged.
    #[inline]
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.insert_hash(self.plan.hash.hash(key.as_ref()))
    }

    /// Adds a key by its [hash](HashFunction::hash), which must be that of the plan.
    #[inline]
    pub(super) fn insert_hash(&mut self, hash: (u64, u64)) -> Result<bool> {
        if self.contains_hash(hash) == Verdict::Maybe {
            return Ok(false);
        }
        self.plan.check_room(self.keys)?;
        self.plan.positions_of(hash).for_each(|p| *byte_of(&mut self.lines, p) |= 1 << (p % 8));
        self.keys += 1;
        Ok(true)
    }

    /// Queries a key.
    #[inline]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Verdict {
        self.contains_hash(self.plan.hash.hash(key.as_ref()))
    }

    /// Queries a key by its hash.
    #[inline]
    pub(super) fn contains_hash(&self, hash: (u64, u64)) -> Verdict {
        let all_set = self.plan.positions_of(hash).all(|p| is_set(&self.lines, p));
        if all_set { Verdict::Maybe } else { Verdict::Absent }
    }

    /// Prefetches the lines of the first `positions` bits of a key.
    #[inline]
    pub(super) fn prefetch(&self, key: &[u8], positions: usize) {
        let positions = self.plan.positions(key).take(positions);
        positions.for_each(|p| prefetch(&self.lines[(p / LINE_BITS as u64) as usize]));
    }

    /// The shape, the hash and the rate.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The number of inserts that changed the filter: the distinct keys, minus the few that were false
    /// positives when they were inserted. After set algebra, an estimate.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// The number of bits set.
    pub fn ones(&self) -> u64 {
        ones(&self.lines)
    }

    /// The share of bits set, 0 to 1; 0.5 for a full filter with the best `k`.
    pub fn fill(&self) -> f64 {
        self.ones() as f64 / self.plan.shape.bits() as f64
    }

    /// The false-positive rate (0 to 1) of the current bits: fill to the power k.
    pub fn fpr(&self) -> f64 {
        self.fill().powi(self.plan.shape.hashes() as i32)
    }

    /// The bits, in lines of 512. Bit `p` of the filter is bit `p % 8` of byte `p / 8`.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }
}

/// The byte that holds bit `p`. Positions are below the shape's number of bits, which matches the lines.
#[inline]
fn byte_of(lines: &mut [Line], p: u64) -> &mut u8 {
    &mut lines[(p / LINE_BITS as u64) as usize][(p / 8) as usize % LINE_BYTES]
}

#[inline]
pub(crate) fn is_set(lines: &[Line], p: u64) -> bool {
    lines[(p / LINE_BITS as u64) as usize][(p / 8) as usize % LINE_BYTES] >> (p % 8) & 1 == 1
}

/// The words of a line, to process 64 bits at once.
pub(super) fn words(line: &Line) -> impl Iterator<Item = u64> + '_ {
    line.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word))
}

pub(super) fn ones(lines: &[Line]) -> u64 {
    lines.iter().flat_map(words).map(|word| u64::from(word.count_ones())).sum()
}
