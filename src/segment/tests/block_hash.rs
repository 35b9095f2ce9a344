//! The slots of blocks in the cache.

use crate::id::FileId;
use crate::segment::block_hash::{BlockHash, SLOT_BITS, UNIT_BITS};
use std::collections::BTreeMap;
use std::hash::BuildHasher;

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
