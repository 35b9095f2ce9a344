//! Sorting the hashes of a level.

use crate::error::{Error, Result};
use crate::huge_pages::advise_huge_pages;

/// Sorts the hashes of a level of a parity filter, in memory or elsewhere; see
/// [`LineFilter::from_sorter`](crate::LineFilter::from_sorter). All calls of `push` come before those of
/// `distinct` and `in_order`, of which there may be several.
pub trait SortHashes: Sized {
    /// The error of the sorter.
    type Error: From<Error>;

    /// An empty sorter for the hashes that this level bumps to the next, about a twentieth.
    ///
    /// # Errors
    /// The sorter's errors.
    fn another(&self) -> Result<Self, Self::Error>;

    /// Adds a hash. Hashes may come in any order and more than once.
    ///
    /// # Errors
    /// The sorter's errors.
    fn push(&mut self, hash: u64) -> Result<(), Self::Error>;

    /// The number of distinct hashes. No more hashes are pushed after this call.
    ///
    /// # Errors
    /// The sorter's errors.
    fn distinct(&mut self) -> Result<u64, Self::Error>;

    /// Passes every distinct hash to `each` once, in ascending pieces: each is sorted and above the last.
    ///
    /// # Errors
    /// The sorter's errors, and those of `each`, which stop the iteration.
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
    pub fn of(hashes: &[u64]) -> Result<Self> {
        Ok(InMemory { hashes: sorted(hashes)?, in_order: true })
    }
}

impl SortHashes for InMemory {
    type Error = Error;

    fn another(&self) -> Result<Self> {
        let mut hashes = Vec::new();
        reserve(&mut hashes, self.hashes.len() / 16)?;
        Ok(InMemory { hashes, in_order: false })
    }

    #[inline]
    fn push(&mut self, hash: u64) -> Result<()> {
        if self.hashes.len() == self.hashes.capacity() {
            reserve(&mut self.hashes, 1)?;
        }
        self.hashes.push(hash);
        Ok(())
    }

    fn distinct(&mut self) -> Result<u64> {
        if !self.in_order {
            *self = InMemory::of(&self.hashes)?;
        }
        Ok(self.hashes.len() as u64)
    }

    fn in_order(&mut self, each: EachPiece<'_, Error>) -> Result<()> {
        each(&self.hashes)
    }
}

/// Reserves memory for `more` hashes, or for as many as there already are if that is more.
pub(super) fn reserve(hashes: &mut Vec<u64>, more: usize) -> Result<()> {
    let all = hashes.len().saturating_add(more) as u64;
    hashes.try_reserve(more).map_err(|_| Error::OutOfMemory { bytes: all.saturating_mul(8) })
}

/// The average number of hashes in a bucket.
const IN_BUCKET: usize = 256;
/// 2048 buckets. Sixteen times as many made no difference at 10 million keys.
const MAX_BUCKET_BITS: u32 = 11;
const MAX_SLOT_BITS: u32 = 16;
/// The most hashes of a slot that are sorted by insertion.
const FEW: usize = 16;

/// All distinct hashes in ascending order: a scatter by the high bits into buckets; a scatter of each bucket,
/// within L1, by the next bits into about as many slots as it has hashes; and an insertion sort. (If hashes
/// are not uniform, some slots have too many, and the bucket falls back to a comparison sort.)
fn sorted(hashes: &[u64]) -> Result<Vec<u64>> {
    let mut sorted = Vec::new();
    reserve(&mut sorted, hashes.len())?;
    sorted.resize(hashes.len(), 0);
    advise_huge_pages(&sorted);
    let (mut ends, mut slot_ends, mut bucket) = (Vec::new(), Vec::new(), Vec::new());
    let bits = bits_for(hashes.len() / IN_BUCKET).min(MAX_BUCKET_BITS);
    scatter(hashes, &mut sorted, 0, bits, &mut ends)?;
    let mut start = 0;
    for end in ends.into_iter().map(|end| end as usize) {
        let scattered = &mut sorted[start..end];
        bucket.clear();
        reserve(&mut bucket, scattered.len())?;
        bucket.extend_from_slice(scattered);
        let slot_bits = bits_for(bucket.len()).min(MAX_SLOT_BITS);
        scatter(&bucket, scattered, bits, slot_bits, &mut slot_ends)?;
        let most = slot_ends.windows(2).map(|ends| ends[1] - ends[0]).max();
        if most.max(slot_ends.first().copied()) <= Some(FEW as u64) {
            sort_by_insertion(scattered);
        } else {
            scattered.sort_unstable();
        }
        start = end;
    }
    sorted.dedup();
    Ok(sorted)
}

fn sort_by_insertion(hashes: &mut [u64]) {
    for i in 1..hashes.len() {
        let (hash, mut at) = (hashes[i], i);
        while at > 0 && hashes[at - 1] > hash {
            hashes[at] = hashes[at - 1];
            at -= 1;
        }
        hashes[at] = hash;
    }
}

/// Enough bits, and at least one, to number this many buckets.
fn bits_for(buckets: usize) -> u32 {
    buckets.next_power_of_two().ilog2().max(1)
}

/// Moves the hashes into 2^`bits` buckets, by the bits after the first `skipped`. Returns their ends.
fn scatter(from: &[u64], to: &mut [u64], skipped: u32, bits: u32, ends: &mut Vec<u64>) -> Result<()> {
    let bucket_of = |hash: u64| (hash << skipped >> (u64::BITS - bits)) as usize;
    ends.clear();
    reserve(ends, 1 << bits)?;
    ends.resize(1 << bits, 0);
    from.iter().for_each(|&hash| ends[bucket_of(hash)] += 1);
    let mut start = 0;
    for end in &mut *ends {
        start += std::mem::replace(end, start);
    }
    for &hash in from {
        let end = &mut ends[bucket_of(hash)];
        to[*end as usize] = hash;
        *end += 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_of_any_distribution_are_sorted() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut uniform = |count| -> Vec<u64> { (0..count).map(|_| rng.u64(..)).collect() };
        let few_buckets = uniform(3000).iter().map(|hash| hash & !(u64::MAX >> 2)).collect();
        let few_slots = uniform(3000).iter().map(|hash| hash & 0xffe0_0000_0000_0fff).collect();
        let close = (0..3000).map(|i| u64::MAX - 7 * (i * 1001 % 3000)).collect();
        let descending = (0..3000).rev().map(|i| i << 52).collect();
        let sizes = [0, 1, 2, 3, 255, 256, 257, 511, 512, 513, 5000, 600_000].map(&mut uniform);
        for hashes in sizes.into_iter().chain([few_buckets, few_slots, close, descending, vec![0; 3000]]) {
            let mut expected = hashes.clone();
            expected.sort_unstable();
            expected.dedup();
            assert_eq!(sorted(&hashes).unwrap(), expected);
        }
    }
}
