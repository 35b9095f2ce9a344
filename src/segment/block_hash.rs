//! The block cache's hash of a block's location: blocks close to each other in a file get neighbouring slots
//! of the hash table.
//!
//! A walk looks up consecutive blocks. With unrelated hashes, each lookup misses the CPU's caches in the
//! table, which took a third of its time. This hash only decides speed (I11).

use std::hash::{BuildHasher, Hasher};

/// log2 of the part of a file whose blocks share a neighbourhood.
const UNIT_BITS: u32 = 16;
/// log2 of the part of a file that shares a slot: about a compressed block of the default size.
const SLOT_BITS: u32 = 11;
/// The table compares this many high bits of the hash before the keys. Neighbours must differ there.
const TAG_BITS: u32 = 7;

/// Hashes the digest of a segment and an offset in it.
#[derive(Clone, Default)]
pub struct BlockHash;

/// The hasher of [`BlockHash`]: the last two words written.
#[derive(Default)]
pub struct BlockHasher {
    segment: u64,
    offset: u64,
}

impl BuildHasher for BlockHash {
    type Hasher = BlockHasher;

    #[inline]
    fn build_hasher(&self) -> BlockHasher {
        BlockHasher::default()
    }
}

impl Hasher for BlockHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        (self.segment, self.offset) = (self.offset, word);
    }

    #[inline]
    fn finish(&self) -> u64 {
        let unit = mix(mix(self.segment) ^ self.offset >> UNIT_BITS);
        let slot = (self.offset & ((1 << UNIT_BITS) - 1)) >> SLOT_BITS;
        let tag = mix(self.offset) & !(u64::MAX >> TAG_BITS);
        tag | unit.wrapping_add(slot) & u64::MAX >> TAG_BITS
    }
}

/// Spreads `x` over all bits (the finalizer of SplitMix64).
#[inline]
fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::FileId;
    use std::collections::BTreeMap;

    fn hash(digest: u64, offset: u64) -> u64 {
        BlockHash.hash_one(((FileId(1), digest), offset))
    }

    #[test]
    fn blocks_of_a_unit_have_neighbouring_slots_and_different_tags() {
        let low = |hash: u64| hash & 0xffff_ffff;
        let blocks = (0..32).map(|block| hash(7, (5 << UNIT_BITS) + (block << SLOT_BITS)));
        let blocks: Vec<u64> = blocks.collect();
        assert!(blocks.windows(2).all(|pair| low(pair[1]) == low(pair[0]).wrapping_add(1) & 0xffff_ffff));
        let tags: BTreeMap<u64, ()> = blocks.iter().map(|hash| (hash >> 57, ())).collect();
        assert!(tags.len() > 16, "{} tags of 32 blocks", tags.len());
    }

    #[test]
    fn units_of_all_segments_spread_evenly() {
        let mut parts = [0u32; 64];
        for (digest, unit) in (0..40).flat_map(|digest| (0..400).map(move |unit| (digest, unit))) {
            let hash = hash(digest, unit << UNIT_BITS);
            // The cache's shard comes from the middle of the hash, the slot from its low bits.
            parts[(hash >> 32) as usize % 8 * 8 + (hash >> 10) as usize % 8] += 1;
        }
        assert!(parts.iter().all(|&count| (180..320).contains(&count)), "{parts:?}");
    }
}
