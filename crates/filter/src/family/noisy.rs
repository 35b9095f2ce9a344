//! Noisy filters: parts that are often wrong alone, but rarely together.

use super::bloom::{Bloom, Plan};
use super::hashing::HashFunction;
use crate::Verdict;
use crate::error::{Error, Result};

/// Several Bloom filters with a deliberately high false-positive rate and different seeds. A key may be
/// present only if all of them answer "maybe".
///
/// One part with rate `q` has so many false positives that it reveals little about a single key. `r` parts
/// together have the rate qʳ, because filters with different seeds err independently. The parts can therefore
/// be held by different parties, or be published one by one. Together they take as many bits as one filter
/// with rate qʳ: m grows with −ln p, and −ln qʳ = −r ln q. `examples/noisy_copies.rs` measures it.
///
/// A part is a [`Bloom`] filter, and is stored and sent as one. To build parts without the others, use
/// [`HashFunction::random`]:
///
/// ```
/// use sidebloom_filter::{Bloom, HashFunction, NoisyBloom, Plan, Verdict};
///
/// let list = ["ada", "grace", "barbara"];
/// let part = || -> sidebloom_filter::Result<Bloom> {
///     let mut part = Bloom::with_plan(Plan { hash: HashFunction::random()?, ..Plan::new(3, 0.25)? })?;
///     list.iter().try_for_each(|name| part.insert(name).map(drop))?;
///     Ok(part)
/// };
/// let received = NoisyBloom::from_parts(vec![part()?, part()?, part()?])?;
/// assert_eq!(received.contains("grace"), Verdict::Maybe);
/// assert!(received.fpr() < 0.25);
/// # Ok::<(), sidebloom_filter::Error>(())
/// ```
///
/// What a part does reveal: a key that it denies is certainly not in the list, and a guess that it confirms
/// becomes 1/q times as likely. Parts add up, no matter where they come from. No bit is flipped at random,
/// unlike in filters with differential privacy, which deny keys of their own.
#[derive(Debug, Clone, PartialEq)]
pub struct NoisyBloom {
    parts: Vec<Bloom>,
}

impl NoisyBloom {
    /// `parts` empty filters for `keys` keys, each at a false-positive rate of `part_fpr` (0 to 1), with the
    /// seeds `seed`, `seed` + 1, …
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for no keys, a rate below [`MIN_FPR`](super::shape::MIN_FPR) or not below
    /// 1, or a number of parts outside 1 to 64; [`Error::TooManyKeys`]; [`Error::OutOfMemory`].
    pub fn new(keys: u64, parts: u32, part_fpr: f64, seed: u64) -> Result<Self> {
        if !(1..=64).contains(&parts) {
            return Err(Error::InvalidArgument(format!(
                "{parts} parts of a noisy filter (allowed: 1 to 64)"
            )));
        }
        let plan = Plan::new(keys, part_fpr)?;
        let hash = |i: u32| HashFunction::Xxh3(seed.wrapping_add(u64::from(i)));
        let part = |i: u32| Bloom::with_plan(Plan { hash: hash(i), ..plan });
        Ok(NoisyBloom { parts: (0..parts).map(part).collect::<Result<_>>()? })
    }

    /// Combines parts, for example those of several parties.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if two parts have the same hash: they would err together, and their rates would
    /// not multiply.
    pub fn from_parts(parts: Vec<Bloom>) -> Result<Self> {
        for (i, part) in parts.iter().enumerate() {
            let hash = part.plan.hash;
            if parts.iter().take(i).any(|other| other.plan.hash == hash) {
                let what = format!("two parts of a noisy filter have the same hash, {hash:?}");
                return Err(Error::Mismatch { what });
            }
        }
        Ok(NoisyBloom { parts })
    }

    /// Adds a key to every part. Returns `false` if all parts already answered "maybe".
    ///
    /// # Errors
    /// [`Error::Full`] for a new key beyond the capacity of a part.
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        let key = key.as_ref();
        // Parts that already have the key do not change. Check that all others have room before changing any.
        let lacks = |part: &Bloom| part.contains(key) == Verdict::Absent;
        self.parts.iter().filter(|part| lacks(part)).try_for_each(|part| part.plan.check_room(part.keys))?;
        self.parts.iter_mut().try_fold(false, |new, part| Ok(part.insert(key)? | new))
    }

    /// Queries the parts until one answers "absent".
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Verdict {
        let key = key.as_ref();
        let all = self.parts.iter().all(|part| part.contains(key) == Verdict::Maybe);
        if all { Verdict::Maybe } else { Verdict::Absent }
    }

    /// The parts.
    pub fn parts(&self) -> &[Bloom] {
        &self.parts
    }

    /// The false-positive rate (0 to 1) of all parts together: the product of their rates ([`Bloom::fpr`]).
    pub fn fpr(&self) -> f64 {
        self.parts.iter().map(Bloom::fpr).product()
    }
}
