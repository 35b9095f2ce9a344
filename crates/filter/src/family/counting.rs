//! The counting Bloom filter: a four-bit counter in place of each bit, so that keys can leave.

use super::bloom::{Bloom, Plan};
use super::hashing::HashFunction;
use crate::error::Result;
use crate::{LINE_BITS, LINE_BYTES, Line, Lines, Verdict, isa};

/// Bits of a counter.
const COUNTER_BITS: usize = 4;
/// A counter that has got here stays: how many keys it stands for is no longer known.
const SATURATED: u8 = 15;
/// Counters of a line.
pub(crate) const COUNTERS_PER_LINE: u64 = (LINE_BITS / COUNTER_BITS) as u64;

/// A counting Bloom filter (Fan, Cao, Almeida, Broder, "Summary Cache: A Scalable Wide-Area Web Cache Sharing Protocol", 2000): four
/// times the memory of a [`Bloom`], for [`remove`](Self::remove). A key that was inserted twice must be removed twice.
///
/// # Saturation
/// Counters stop at 15 and then never go down again: a later removal would otherwise let them reach zero while keys still need them,
/// a false negative. A stuck counter costs a little of the false-positive rate at most. In a filter of the best `k`, full, a counter
/// gets there with probability 1.4 × 10⁻¹⁴ ([`expected_saturated`](Self::expected_saturated)), unless the same key is inserted over and over.
///
/// ```
/// use sidebloom_filter::{CountingBloom, Verdict};
///
/// let mut sessions = CountingBloom::new(10_000, 0.001)?;
/// sessions.insert("alice")?;
/// assert!(sessions.remove("alice"));
/// assert_eq!(sessions.contains("alice"), Verdict::Absent);
/// assert!(!sessions.remove("bob"), "it was surely never there");
/// # Ok::<(), sidebloom_filter::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct CountingBloom {
    plan: Plan,
    keys: u64,
    lines: Lines,
}

impl CountingBloom {
    /// An empty filter for `keys` keys at a false-positive rate of `fpr` (0 to 1), with a hash of its own ([`HashFunction::secret`]). Filters
    /// that are to be combined take a [plan](Self::with_plan) in common: the [`plan`](Self::plan) of one for all of them, for instance.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) for no keys, a rate outside (0, 1), or an absurd size;
    /// [`Error::Io`](crate::Error::Io) when the operating system gives no random numbers.
    pub fn new(keys: u64, fpr: f64) -> Result<Self> {
        CountingBloom::with_plan(Plan { hash: HashFunction::secret()?, ..Plan::new(keys, fpr)? })
    }

    /// An empty filter of a given plan.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) for a rate outside (0, 1), or more memory than there is.
    pub fn with_plan(plan: Plan) -> Result<Self> {
        plan.check()?;
        let lines = Lines::zeroed((plan.shape.bits() / COUNTERS_PER_LINE) as usize)?;
        Ok(CountingBloom { plan, keys: 0, lines })
    }

    /// From the parts of a file: one line for every 128 counters of the shape.
    pub(crate) fn from_parts(plan: Plan, keys: u64, lines: Lines) -> Self {
        debug_assert_eq!(plan.shape.bits() / COUNTERS_PER_LINE, lines.len() as u64);
        CountingBloom { plan, keys, lines }
    }

    /// Adds a key, once more if it is there already. `true` when it was surely new.
    ///
    /// # Errors
    /// [`Error::Full`](crate::Error::Full) beyond the capacity; the filter is unchanged.
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        let key = key.as_ref();
        self.plan.check_room(self.keys)?;
        let new = self.contains(key) == Verdict::Absent;
        self.change(key, |counter| (counter + 1).min(SATURATED));
        self.keys += 1;
        Ok(new)
    }

    /// Takes one insert of a key back. `false` when the key was surely not there: then nothing has changed.
    ///
    /// Remove only what was inserted. A key that never was, and is a false positive, takes counts from others, which may then be
    /// denied though they are there; this filter cannot tell. Without the hash's secret key nobody can choose such keys; by chance, `fpr` of
    /// all keys are.
    pub fn remove(&mut self, key: impl AsRef<[u8]>) -> bool {
        let key = key.as_ref();
        if self.contains(key) == Verdict::Absent {
            return false;
        }
        self.change(key, |counter| if counter == SATURATED { SATURATED } else { counter.saturating_sub(1) });
        self.keys = self.keys.saturating_sub(1);
        true
    }

    /// Asks for a key.
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Verdict {
        let all = self.plan.positions(key.as_ref()).all(|p| {
            let (line, byte, shift) = place(p);
            self.lines[line][byte] >> shift & SATURATED != 0
        });
        if all { Verdict::Maybe } else { Verdict::Absent }
    }

    /// As [`Bloom::prefetch`].
    #[inline]
    pub(super) fn prefetch(&self, key: &[u8], positions: usize) {
        let positions = self.plan.positions(key).take(positions);
        positions.for_each(|p| isa::prefetch(&self.lines[place(p).0]));
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

    /// Its shape (in counters), hash and rate.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Inserts less removals.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// How many counters are not zero.
    pub fn ones(&self) -> u64 {
        self.counters().filter(|&counter| counter > 0).count() as u64
    }

    /// The false-positive rate (0 to 1) of these very counters: the share that is not zero, to the power k.
    pub fn fpr(&self) -> f64 {
        (self.ones() as f64 / self.plan.shape.bits() as f64).powi(self.plan.shape.hashes() as i32)
    }

    /// How many counters are stuck at 15.
    pub fn saturated(&self) -> u64 {
        self.counters().filter(|&counter| counter == SATURATED).count() as u64
    }

    /// How many counters are expected to be stuck after `keys` distinct keys: m × P(X ≥ 15), for X binomial with kn draws at 1/m.
    pub fn expected_saturated(&self, keys: u64) -> f64 {
        let m = self.plan.shape.bits() as f64;
        let draws = keys as f64 * f64::from(self.plan.shape.hashes());
        // Poisson with the same mean: the error is of the order 1/m. Upper terms first would overflow; each is the last times λ/i.
        let mean = draws / m;
        let at_limit = (1..=u32::from(SATURATED)).fold((-mean).exp(), |p, i| p * mean / f64::from(i));
        let tail = (1..200u32).scan(at_limit, |p, i| {
            let term = *p;
            *p *= mean / f64::from(u32::from(SATURATED) + i);
            Some(term)
        });
        m * tail.sum::<f64>().min(1.0)
    }

    /// The plain filter of the same keys: a quarter of the memory, for set algebra and for sending.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) when there is not enough memory.
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

    /// Its counters: counter `c` is the low half of byte `c / 2` when `c` is even, else the high half.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }
}

/// Line, byte and shift of a counter.
#[inline]
fn place(p: u64) -> (usize, usize, u32) {
    ((p / COUNTERS_PER_LINE) as usize, (p / 2) as usize % LINE_BYTES, (p % 2) as u32 * 4)
}
