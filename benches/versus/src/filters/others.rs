//! Filters of other crates.

use super::Filter;
use crate::engine::Result;
use fastbloom::BloomFilter;
use sbbf_rs_safe::Filter as SplitBlock;
use xorf::{BinaryFuse8, BinaryFuse16, Filter as _};

/// fastbloom: a Bloom filter over hashes.
pub struct Fastbloom(BloomFilter);

impl Fastbloom {
    /// Of all keys.
    pub fn build(bits_per_key: f64, keys: &[u64]) -> Self {
        let bits = (bits_per_key * keys.len() as f64) as usize;
        let mut filter = BloomFilter::with_num_bits(bits).seed(&1).expected_items(keys.len());
        keys.iter().for_each(|&key| {
            filter.insert_hash(key);
        });
        Fastbloom(filter)
    }
}

impl Filter for Fastbloom {
    fn copy(&self) -> Box<dyn Filter> {
        Box::new(Fastbloom(self.0.clone()))
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
pub struct Sbbf(SplitBlock);

impl Sbbf {
    /// Of all keys.
    pub fn build(bits_per_key: usize, keys: &[u64]) -> Self {
        let mut filter = SplitBlock::new(bits_per_key, keys.len());
        keys.iter().for_each(|&key| {
            filter.insert_hash(key);
        });
        Sbbf(filter)
    }
}

impl Filter for Sbbf {
    fn copy(&self) -> Box<dyn Filter> {
        // As many keys of eight bits as it has bytes: the same length.
        let mut copy = SplitBlock::new(8, self.0.as_bytes().len());
        copy.as_bytes_mut().copy_from_slice(self.0.as_bytes());
        Box::new(Sbbf(copy))
    }

    fn bytes(&self) -> usize {
        self.0.as_bytes().len()
    }

    #[inline]
    fn may_contain(&self, prepared: u64) -> bool {
        self.0.contains_hash(prepared)
    }
}

/// xorf: a binary fuse filter of eight bits.
pub struct Fuse8(BinaryFuse8);

/// xorf: a binary fuse filter of sixteen bits.
pub struct Fuse16(BinaryFuse16);

impl Fuse8 {
    /// Of all keys.
    pub fn build(keys: &[u64]) -> Result<Self> {
        Ok(Fuse8(BinaryFuse8::try_from(keys)?))
    }
}

impl Fuse16 {
    /// Of all keys.
    pub fn build(keys: &[u64]) -> Result<Self> {
        Ok(Fuse16(BinaryFuse16::try_from(keys)?))
    }
}

impl Filter for Fuse8 {
    fn copy(&self) -> Box<dyn Filter> {
        Box::new(Fuse8(self.0.clone()))
    }

    fn bytes(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn may_contain(&self, prepared: u64) -> bool {
        self.0.contains(&prepared)
    }
}

impl Filter for Fuse16 {
    fn copy(&self) -> Box<dyn Filter> {
        Box::new(Fuse16(self.0.clone()))
    }

    fn bytes(&self) -> usize {
        2 * self.0.len()
    }

    #[inline]
    fn may_contain(&self, prepared: u64) -> bool {
        self.0.contains(&prepared)
    }
}
