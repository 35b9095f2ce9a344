//! The blocked Bloom filter that is filled through shared references: the memtable's, and a guard's fresh keys.

use super::{LINE_BYTES, positions};
use crate::error::Result;
use crate::{Verdict, line_of, sizing};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

#[derive(Default)]
#[repr(align(64))]
struct AtomicLine([AtomicU64; LINE_BYTES / 8]);

/// A Bloom filter of fixed size that many threads insert into and ask at once.
///
/// **Ordering.** All accesses are relaxed: an insert is sure to be seen by the probes that it *happens before*. A memtable
/// therefore inserts a key's hash first and publishes the entry with a release store after; whoever has acquired the entry's
/// sequence number finds the bits. A probe that runs beside an insert may answer either way.
///
/// More keys than planned only raise the rate of [`Verdict::Maybe`].
pub struct AtomicBloom {
    lines: Box<[AtomicLine]>,
    k: u32,
}

impl AtomicBloom {
    /// An empty filter for about `keys` keys at `bits_per_key`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) outside the limits of [`sizing`].
    pub fn new(keys: u64, bits_per_key: f64) -> Result<Self> {
        let count = sizing::lines_for(keys, bits_per_key)?;
        let lines: Box<[AtomicLine]> = std::iter::repeat_with(AtomicLine::default).take(count).collect();
        Ok(AtomicBloom { lines, k: sizing::best_k(keys, count as u64) })
    }

    /// Adds a key's hash.
    #[inline]
    pub fn insert(&self, hash: u64) {
        let AtomicLine(words) = &self.lines[line_of(hash, self.lines.len())];
        for p in positions(hash, self.k) {
            let bit = 1 << (p % 64);
            // Most bits of a key that is written again are there; a load is far cheaper than a locked write.
            if words[p / 64].load(Relaxed) & bit == 0 {
                words[p / 64].fetch_or(bit, Relaxed);
            }
        }
    }

    /// Starts to load the line that [`probe`](Self::probe) will read.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        crate::isa::prefetch(&self.lines[line_of(hash, self.lines.len())]);
    }

    /// Asks for a key's hash.
    #[inline]
    pub fn probe(&self, hash: u64) -> Verdict {
        let AtomicLine(words) = &self.lines[line_of(hash, self.lines.len())];
        let bit = |p: usize| words[p / 64].load(Relaxed) >> (p % 64);
        let present = positions(hash, self.k).fold(1, |all, p| all & bit(p)) == 1;
        if present { Verdict::Maybe } else { Verdict::Absent }
    }

    /// Its memory in bytes.
    pub fn bytes(&self) -> usize {
        self.lines.len() * LINE_BYTES
    }
}

impl fmt::Debug for AtomicBloom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AtomicBloom({} lines, k {})", self.lines.len(), self.k)
    }
}
