//! Filters from other crates.

use super::filter::Filter;
use crate::error::Result;
use fastbloom::BloomFilter;
use sbbf_rs_safe::Filter as SplitBlock;
use xorf::{BinaryFuse8, BinaryFuse16, Filter as _};

/// fastbloom: a Bloom filter over hashes.
pub struct FastbloomFilter(BloomFilter);

impl FastbloomFilter {
    /// A filter over all keys.
    pub fn build(bits_per_key: f64, keys: &[u64]) -> Self {
        let bits = (bits_per_key * keys.len() as f64) as usize;
        let mut filter = BloomFilter::with_num_bits(bits).seed(&1).expected_items(keys.len());
        keys.iter().for_each(|&key| {
            filter.insert_hash(key);
        });
        FastbloomFilter(filter)
    }
}

impl Filter for FastbloomFilter {
    fn copy(&self) -> Result<Box<dyn Filter>> {
        Ok(Box::new(FastbloomFilter(self.0.clone())))
    }

    fn bytes(&self) -> usize {
        self.0.num_bits() / 8
    }

    #[inline]
    fn may_contain(&self, prepared: u64) -> bool {
        self.0.contains_hash(prepared)
    }
}

/// sbbf-rs: Parquet's split block Bloom filter.
pub struct SbbfFilter(SplitBlock);

impl SbbfFilter {
    /// A filter over all keys.
    pub fn build(bits_per_key: usize, keys: &[u64]) -> Self {
        let mut filter = SplitBlock::new(bits_per_key, keys.len());
        keys.iter().for_each(|&key| {
            filter.insert_hash(key);
        });
        SbbfFilter(filter)
    }
}

impl Filter for SbbfFilter {
    fn copy(&self) -> Result<Box<dyn Filter>> {
        // One key per byte at eight bits per key gives the same length.
        let mut copy = SplitBlock::new(8, self.0.as_bytes().len());
        copy.as_bytes_mut().copy_from_slice(self.0.as_bytes());
        Ok(Box::new(SbbfFilter(copy)))
    }

    fn bytes(&self) -> usize {
        self.0.as_bytes().len()
    }

    #[inline]
    fn may_contain(&self, prepared: u64) -> bool {
        self.0.contains_hash(prepared)
    }
}

/// xorf: a binary fuse filter with 8-bit fingerprints.
pub struct Fuse8Filter(BinaryFuse8);

/// xorf: a binary fuse filter with 16-bit fingerprints.
pub struct Fuse16Filter(BinaryFuse16);

impl Fuse8Filter {
    /// A filter over all keys.
    pub fn build(keys: &[u64]) -> Result<Self> {
        Ok(Fuse8Filter(BinaryFuse8::try_from(keys)?))
    }
}

impl Fuse16Filter {
    /// A filter over all keys.
    pub fn build(keys: &[u64]) -> Result<Self> {
        Ok(Fuse16Filter(BinaryFuse16::try_from(keys)?))
    }
}

impl Filter for Fuse8Filter {
    fn copy(&self) -> Result<Box<dyn Filter>> {
        Ok(Box::new(Fuse8Filter(self.0.clone())))
    }

    fn bytes(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn may_contain(&self, prepared: u64) -> bool {
        self.0.contains(&prepared)
    }
}

impl Filter for Fuse16Filter {
    fn copy(&self) -> Result<Box<dyn Filter>> {
        Ok(Box::new(Fuse16Filter(self.0.clone())))
    }

    fn bytes(&self) -> usize {
        2 * self.0.len()
    }

    #[inline]
    fn may_contain(&self, prepared: u64) -> bool {
        self.0.contains(&prepared)
    }
}
