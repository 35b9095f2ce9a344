//! Noisy filters: several that are wrong often, right together.

use super::bloom::{Bloom, Plan};
use super::hashing::HashFunction;
use crate::Verdict;
use crate::error::{Error, Result};

/// Several Bloom filters of a deliberately high false-positive rate, each with a seed of its own, which all must say "maybe".
///
/// One part of rate `q` names so many keys that are not there that it tells little about a single one; `r` of them together have the
/// rate qʳ, because different seeds err independently. So the parts can be held by different parties, or be published one by one.
/// Together they take the bits of one filter of rate qʳ: m grows with −ln p, and −ln qʳ = −r ln q.
#[derive(Debug, Clone, PartialEq)]
pub struct NoisyBloom {
    parts: Vec<Bloom>,
}

impl NoisyBloom {
    /// `parts` empty filters for `keys` keys, each at a false-positive rate of `part_fpr` (0 to 1), with the seeds `seed`, `seed` + 1, …
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for no keys, a rate outside (0, 1), an absurd size, or a number of parts outside 1 to 64.
    pub fn new(keys: u64, parts: u32, part_fpr: f64, seed: u64) -> Result<Self> {
        if !(1..=64).contains(&parts) {
            return Err(Error::InvalidArgument(format!(
                "a noisy filter of {parts} parts (allowed: 1 to 64)"
            )));
        }
        let plan = Plan::new(keys, part_fpr)?;
        let hash = |i: u32| HashFunction::Xxh3(seed.wrapping_add(u64::from(i)));
        let part = |i: u32| Bloom::with_plan(Plan { hash: hash(i), ..plan });
        Ok(NoisyBloom { parts: (0..parts).map(part).collect::<Result<_>>()? })
    }

    /// Puts parts together again, for example those that came from several parties.
    ///
    /// # Errors
    /// [`Error::Mismatch`] when two have the same hash: they would err together, and the rates would not multiply.
    pub fn from_parts(parts: Vec<Bloom>) -> Result<Self> {
        for (i, part) in parts.iter().enumerate() {
            let hash = part.plan.hash;
            if parts.iter().take(i).any(|other| other.plan.hash == hash) {
                let what = format!("two parts of a noisy filter hash by the same {hash:?}");
                return Err(Error::Mismatch { what });
            }
        }
        Ok(NoisyBloom { parts })
    }

    /// Adds a key to every part. `false` when all had it already, maybe.
    ///
    /// # Errors
    /// [`Error::Full`] for a new key beyond the capacity of a part.
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        let key = key.as_ref();
        // A part that knows the key stays as it is; all are checked for room before one is changed.
        let lacks = |part: &Bloom| part.contains(key) == Verdict::Absent;
        self.parts.iter().filter(|part| lacks(part)).try_for_each(|part| part.plan.check_room(part.keys))?;
        self.parts.iter_mut().try_fold(false, |new, part| Ok(part.insert(key)? | new))
    }

    /// Asks all parts; the first "absent" decides.
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Verdict {
        let key = key.as_ref();
        let all = self.parts.iter().all(|part| part.contains(key) == Verdict::Maybe);
        if all { Verdict::Maybe } else { Verdict::Absent }
    }

    /// The parts.
    pub fn parts(&self) -> &[Bloom] {
        &self.parts
    }

    /// The false-positive rate of all together (0 to 1): the product of the parts' ([`Bloom::fpr`]).
    pub fn fpr(&self) -> f64 {
        self.parts.iter().map(Bloom::fpr).product()
    }
}
