//! The block cache's hash of a block's location.

use std::hash::{BuildHasher, Hasher};

/// log2 of the part of a file whose blocks share a neighbourhood.
pub const UNIT_BITS: u32 = 16;
/// log2 of the part of a file that shares a slot: about a compressed block of the default size.
pub const SLOT_BITS: u32 = 11;
/// The table compares this many high bits of the hash before the keys. Neighbours must differ there.
const TAG_BITS: u32 = 7;

/// The cache's hash of a block's location, the digest of a segment and an offset in it: blocks close to each
/// other in a file get neighbouring slots of the hash table.
///
/// A walk looks up consecutive blocks. With unrelated hashes, each lookup misses the CPU's caches in the
/// table, which took a third of its time. This hash only decides speed (I11).
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
