//! Sorting the hashes of a level.

use crate::error::{Error, Result};
use crate::huge_pages::advise_huge_pages;

/// Sorts the hashes of a level of a parity filter, in memory or elsewhere; see [`LineFilter::from_sorter`](crate::LineFilter::from_sorter).
/// Call order: `push* distinct in_order*`.
pub trait SortHashes: Sized {
    /// The error of the sorter.
    type Error: From<Error>;

    /// An empty sorter for the hashes that this level bumps to the next, about a twentieth.
    ///
    /// # Errors
    /// The sorter's own.
    fn another(&self) -> Result<Self, Self::Error>;

    /// Adds a hash. Hashes may come in any order and more than once.
    ///
    /// # Errors
    /// The sorter's own.
    fn push(&mut self, hash: u64) -> Result<(), Self::Error>;

    /// The number of distinct hashes. No more hashes are pushed after this call.
    ///
    /// # Errors
    /// The sorter's own.
    fn distinct(&mut self) -> Result<u64, Self::Error>;

    /// Passes every distinct hash to `each` once, in ascending pieces: each piece is sorted and lies above the one before it.
    ///
    /// # Errors
    /// The sorter's own, and those of `each`, which stop the iteration.
    fn in_order(&mut self, each: EachPiece<'_, Self::Error>) -> Result<(), Self::Error>;
}

/// A function that receives a piece of sorted hashes.
pub type EachPiece<'a, E> = &'a mut dyn FnMut(&[u64]) -> Result<(), E>;

/// A sorter that keeps all hashes in one vector.
pub(crate) struct InMemory {
    hashes: Vec<u64>,
    in_order: bool,
}

impl InMemory {
    pub fn of(hashes: &[u64]) -> Self {
        InMemory { hashes: sorted(hashes), in_order: true }
    }
}

impl SortHashes for InMemory {
    type Error = Error;

    fn another(&self) -> Result<Self> {
        Ok(InMemory { hashes: Vec::with_capacity(self.hashes.len() / 16), in_order: false })
    }

    #[inline]
    fn push(&mut self, hash: u64) -> Result<()> {
        self.hashes.push(hash);
        Ok(())
    }

    fn distinct(&mut self) -> Result<u64> {
        if !self.in_order {
            *self = InMemory::of(&self.hashes);
        }
        Ok(self.hashes.len() as u64)
    }

    fn in_order(&mut self, each: EachPiece<'_, Error>) -> Result<()> {
        each(&self.hashes)
    }
}

/// The average number of keys in a bucket of the sort: a few levels of a comparison sort, within L1.
const BUCKET_KEYS: usize = 256;
/// Sixteen times as many buckets made no difference at 10 million keys.
const MAX_BUCKETS: usize = 1 << 11;

/// All distinct hashes in ascending order: a scatter by the high bits, then a sort of each bucket.
fn sorted(hashes: &[u64]) -> Vec<u64> {
    let buckets = (hashes.len() / BUCKET_KEYS).next_power_of_two().clamp(2, MAX_BUCKETS);
    let bucket_of = |hash: u64| (hash >> (64 - buckets.trailing_zeros())) as usize;
    let mut ends = vec![0usize; buckets];
    hashes.iter().for_each(|&hash| ends[bucket_of(hash)] += 1);
    let mut start = 0;
    for end in &mut ends {
        start += std::mem::replace(end, start);
    }
    let mut sorted = vec![0; hashes.len()];
    advise_huge_pages(&sorted);
    for &hash in hashes {
        let end = &mut ends[bucket_of(hash)];
        sorted[*end] = hash;
        *end += 1;
    }
    let mut start = 0;
    for end in ends {
        sorted[start..end].sort_unstable();
        start = end;
    }
    sorted.dedup();
    sorted
}
