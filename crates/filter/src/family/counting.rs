//! The counting Bloom filter: four-bit counters instead of bits, so that keys can be removed.

use super::bloom::{Bloom, Plan};
use super::hashing::HashFunction;
#[cfg(doc)]
use crate::Error;
use crate::error::Result;
use crate::prefetch::prefetch;
use crate::{LINE_BITS, LINE_BYTES, Line, Lines, Verdict};

/// Bits of a counter.
const COUNTER_BITS: usize = 4;
/// A counter stays at this value, because it no longer knows how many keys it counts.
const SATURATED: u8 = 15;
/// Counters per line.
pub(crate) const COUNTERS_PER_LINE: u64 = (LINE_BITS / COUNTER_BITS) as u64;

/// A counting Bloom filter (Fan, Cao, Almeida, Broder, "Summary Cache: A Scalable Wide-Area Web Cache Sharing
/// Protocol", 2000): four times the memory of a [`Bloom`], to support [`remove`](Self::remove). A key that
/// was inserted twice must be removed twice.
///
/// # Saturation
/// A counter stops at 15 and never decreases again. Otherwise, later removals could take it to zero while
/// keys still need it, which would be a false negative. A saturated counter costs at most a little of the
/// false-positive rate. In a full filter with the best `k`, a counter saturates with probability 1.4 × 10⁻¹⁴
/// ([`expected_saturated`](Self::expected_saturated)), unless the same key is inserted repeatedly.
///
/// ```
/// use sidebloom_filter::{CountingBloom, Verdict};
///
/// let mut sessions = CountingBloom::new(10_000, 0.001)?;
/// sessions.insert("alice")?;
/// assert!(sessions.remove("alice"));
/// assert_eq!(sessions.contains("alice"), Verdict::Absent);
/// assert!(!sessions.remove("bob"), "it was certainly never there");
/// # Ok::<(), sidebloom_filter::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct CountingBloom {
    plan: Plan,
    keys: u64,
    lines: Lines,
}

impl CountingBloom {
    /// An empty filter for `keys` keys at a false-positive rate of `fpr` (0 to 1), with a new secret hash key
    /// ([`HashFunction::secret`]). To combine filters, create them [with one plan](Self::with_plan), for
    /// example the [`plan`](Self::plan) of the first.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for no keys, or a rate below [`MIN_FPR`](super::shape::MIN_FPR) or not
    /// below 1; [`Error::TooManyKeys`]; [`Error::OutOfMemory`]; [`Error::Io`] if the operating system
    /// provides no random numbers.
    pub fn new(keys: u64, fpr: f64) -> Result<Self> {
        CountingBloom::with_plan(Plan { hash: HashFunction::secret()?, ..Plan::new(keys, fpr)? })
    }

    /// An empty filter with the given plan.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a rate below [`MIN_FPR`](super::shape::MIN_FPR) or not below 1;
    /// [`Error::OutOfMemory`].
    pub fn with_plan(plan: Plan) -> Result<Self> {
        plan.check()?;
        let lines = Lines::zeroed((plan.shape.bits() / COUNTERS_PER_LINE) as usize)?;
        Ok(CountingBloom { plan, keys: 0, lines })
    }

    /// A filter from its stored parts: one line for every 128 counters of the shape.
    pub(crate) fn from_parts(plan: Plan, keys: u64, lines: Lines) -> Self {
        debug_assert_eq!(plan.shape.bits() / COUNTERS_PER_LINE, lines.len() as u64);
        CountingBloom { plan, keys, lines }
    }

    /// Adds a key, or counts it once more. Returns `true` if it was certainly new.
    ///
    /// # Errors
    /// [`Error::Full`] beyond the capacity; the filter is unchanged.
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        let key = key.as_ref();
        self.plan.check_room(self.keys)?;
        let new = self.contains(key) == Verdict::Absent;
        self.change(key, |counter| (counter + 1).min(SATURATED));
        self.keys += 1;
        Ok(new)
    }

    /// Removes one insert of a key. Returns `false`, without a change, if the key was certainly not there.
    ///
    /// Remove only keys that were inserted. Removing a false positive takes counts from other keys, which the
    /// filter may then deny although they are there. The filter cannot detect this. Without the secret key of
    /// the hash, nobody can choose such keys; by chance, a share of `fpr` of all keys are such keys.
    pub fn remove(&mut self, key: impl AsRef<[u8]>) -> bool {
        let key = key.as_ref();
        if self.contains(key) == Verdict::Absent {
            return false;
        }
        self.change(key, |counter| if counter == SATURATED { SATURATED } else { counter.saturating_sub(1) });
        self.keys = self.keys.saturating_sub(1);
        true
    }

    /// Queries a key.
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Verdict {
        let all = self.plan.positions(key.as_ref()).all(|p| {
            let (line, byte, shift) = place(p);
            self.lines[line][byte] >> shift & SATURATED != 0
        });
        if all { Verdict::Maybe } else { Verdict::Absent }
    }

    /// See [`Bloom::prefetch`].
    #[inline]
    pub(super) fn prefetch(&self, key: &[u8], positions: usize) {
        let positions = self.plan.positions(key).take(positions);
        positions.for_each(|p| prefetch(&self.lines[place(p).0]));
    }

    fn change(&mut self, key: &[u8], next: impl Fn(u8) -> u8) {
        for p in self.plan.positions(key) {
            let (line, byte, shift) = place(p);
            let pair = &mut self.lines[line][byte];
            let counter = *pair >> shift & SATURATED;
            *pair = *pair & !(SATURATED << shift) | next(counter) << shift;
        }
    }

    fn counters(&self) -> impl Iterator<Item = u8> + '_ {
        self.lines.as_flattened().iter().flat_map(|pair| [pair & SATURATED, pair >> 4])
    }

    /// The shape (in counters), the hash and the rate.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Inserts minus removals.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// The number of nonzero counters.
    pub fn ones(&self) -> u64 {
        self.counters().filter(|&counter| counter > 0).count() as u64
    }

    /// The false-positive rate (0 to 1) of the current counters: share of nonzero counters to the power k.
    pub fn fpr(&self) -> f64 {
        (self.ones() as f64 / self.plan.shape.bits() as f64).powi(self.plan.shape.hashes() as i32)
    }

    /// The number of saturated counters.
    pub fn saturated(&self) -> u64 {
        self.counters().filter(|&counter| counter == SATURATED).count() as u64
    }

    /// The expected number of saturated counters after `keys` distinct keys: m × P(X ≥ 15), for X binomial
    /// with kn draws at 1/m.
    pub fn expected_saturated(&self, keys: u64) -> f64 {
        let m = self.plan.shape.bits() as f64;
        let draws = keys as f64 * f64::from(self.plan.shape.hashes());
        // Poisson with the same mean; the error is of order 1/m. Each term is the previous one times λ/i.
        let mean = draws / m;
        let at_limit = (1..=u32::from(SATURATED)).fold((-mean).exp(), |p, i| p * mean / f64::from(i));
        let tail = (1..200u32).scan(at_limit, |p, i| {
            let term = *p;
            *p *= mean / f64::from(u32::from(SATURATED) + i);
            Some(term)
        });
        m * tail.sum::<f64>().min(1.0)
    }

    /// The plain Bloom filter of the same keys, in a quarter of the memory, for set algebra and for sending.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn to_bloom(&self) -> Result<Bloom> {
        let mut bloom = Bloom::with_plan(self.plan)?;
        let bits = bloom.lines.as_flattened_mut();
        for (bits, pairs) in bits.iter_mut().zip(self.lines.as_flattened().chunks_exact(4)) {
            let counters = pairs.iter().flat_map(|pair| [pair & SATURATED, pair >> 4]);
            *bits = counters.enumerate().fold(0, |byte, (i, counter)| byte | u8::from(counter > 0) << i);
        }
        bloom.keys = self.keys;
        Ok(bloom)
    }

    /// The counters. Counter `c` is the low half of byte `c / 2` if `c` is even, else the high half.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }
}

/// The line, the byte and the shift of a counter.
#[inline]
fn place(p: u64) -> (usize, usize, u32) {
    ((p / COUNTERS_PER_LINE) as usize, (p / 2) as usize % LINE_BYTES, (p % 2) as u32 * 4)
}
