//! The blocked Bloom filter with inserts through shared references, for a memtable or a guard's new keys.

use super::bits::positions;
use super::sizing;
use crate::error::Result;
use crate::huge_pages::zero_pages;
use crate::line::{AtomicLine, LINE_BYTES, line_of};
use crate::prefetch::prefetch;
use crate::verdict::Verdict;
use std::fmt;
use std::sync::atomic::Ordering::Relaxed;

/// A Bloom filter of fixed size that many threads can insert into and probe at once.
///
/// **Ordering.** All accesses are relaxed: a probe is guaranteed to see the inserts that *happen before* it.
/// A memtable therefore inserts the hash of a key first and then publishes the entry with a release store; a
/// thread that acquires the entry's sequence number sees the bits. A probe that races with an insert may
/// return either verdict.
///
/// Inserting more keys than planned only raises the false-positive rate.
pub struct AtomicBloom {
    lines: Box<[AtomicLine]>,
    k: u32,
}

impl AtomicBloom {
    /// An empty filter sized for `keys` keys at `bits_per_key`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) for bits per key outside the limits of
    /// [`sizing`]; [`Error::TooManyKeys`](crate::Error::TooManyKeys).
    pub fn new(keys: u64, bits_per_key: f64) -> Result<Self> {
        let count = sizing::lines_for(keys, bits_per_key)?;
        let lines: Box<[AtomicLine]> = std::iter::repeat_with(AtomicLine::default).take(count).collect();
        Ok(AtomicBloom { lines, k: sizing::best_k(keys, count as u64) })
    }

    /// Adds the hash of a key.
    #[inline]
    pub fn insert(&self, hash: u64) {
        let AtomicLine(words) = &self.lines[line_of(hash, self.lines.len())];
        let mut bits = [0; LINE_BYTES / 8];
        for p in positions(hash, self.k) {
            bits[p / 64] |= 1 << (p % 64);
        }
        for (word, bits) in words.iter().zip(bits) {
            // The bits of a rewritten key are already set, and a load is far cheaper than a locked write.
            if word.load(Relaxed) & bits != bits {
                word.fetch_or(bits, Relaxed);
            }
        }
    }

    /// Prefetches the line that [`probe`](Self::probe) will read.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        prefetch(&self.lines[line_of(hash, self.lines.len())]);
    }

    /// Probes for the hash of a key.
    #[inline]
    pub fn probe(&self, hash: u64) -> Verdict {
        let AtomicLine(words) = &self.lines[line_of(hash, self.lines.len())];
        let bit = |p: usize| words[p / 64].load(Relaxed) >> (p % 64);
        // Four bits at a time: absent keys rarely pass the first four, and a branch for each bit would be
        // mispredicted often.
        let mut positions = positions(hash, self.k);
        loop {
            let mut four = positions.by_ref().take(4).peekable();
            if four.peek().is_none() {
                return Verdict::Maybe;
            }
            if four.fold(1, |all, p| all & bit(p)) & 1 == 0 {
                return Verdict::Absent;
            }
        }
    }

    /// Forgets all keys and gives the memory of a large filter back to the kernel. The filter stays usable. A
    /// probe during the call may return either verdict.
    pub fn clear(&self) {
        let zero = zero_pages(&self.lines);
        for (_, AtomicLine(words)) in self.lines.iter().enumerate().filter(|(at, _)| !zero.contains(at)) {
            words.iter().for_each(|word| word.store(0, Relaxed));
        }
    }

    /// The size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        self.lines.len() * LINE_BYTES
    }
}

impl fmt::Debug for AtomicBloom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AtomicBloom({} lines, k {})", self.lines.len(), self.k)
    }
}
