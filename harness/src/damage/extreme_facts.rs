//! Absurd expiries in the blocks of segments, under valid checksums.

use super::store::Victim;
use crate::support::Rng;

/// Where a data block has its widths, and the byte for tombstones and expiries.
const KEY_WIDTH: usize = 16;
const VALUE_WIDTH: usize = 17;
const SEQ_WIDTH: usize = 18;
const EXPIRIES: usize = 19;
const FINGERPRINTS: usize = 28;
/// The type and the checksum after a block.
const TRAILER: usize = 5;

/// Changes the first expiry of a data block, the expiry of a row, or the width of these. `None` if the block
/// has none, is compressed or padded.
pub fn expiry_in_block(rng: &mut Rng, victim: &Victim, number: u64, segment: &mut [u8]) -> Option<String> {
    let range = rng.pick(&victim.layout.as_ref()?.data).bytes.clone();
    let block = &mut segment[range.clone()];
    let end = block.len() - TRAILER;
    let expiry_width = usize::from(block[EXPIRIES] >> 1);
    if block[end] != 0 || expiry_width == 0 {
        return None;
    }
    let u32_at = |at: usize| u32::from_le_bytes(block[at..at + 4].try_into().unwrap()) as usize;
    let (count, prefix) = (u32_at(0), u32_at(4));
    let width = |at: usize| usize::from(block[at] & 0x7f);
    let of_row = 1 + width(KEY_WIDTH) + width(VALUE_WIDTH) + width(SEQ_WIDTH);
    let tombstones = if block[EXPIRIES] & 1 == 1 { count.div_ceil(8) } else { 0 };
    let first = FINGERPRINTS + prefix + count * of_row + tombstones;
    let (at, width) = match rng.below(3) {
        0 => (EXPIRIES, 1), // Above 6 is a newer version's.
        1 => (first, 8),
        _ => (first + 8 + rng.below(count as u64) as usize * expiry_width, expiry_width),
    };
    let number = if at == EXPIRIES { number % 14 } else { number };
    block[at..at + width].copy_from_slice(&number.to_le_bytes()[..width]);
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&block[..=end]);
    hasher.update(&victim.id.to_le_bytes());
    hasher.update(&(range.start as u64).to_le_bytes());
    block[end + 1..].copy_from_slice(&hasher.finalize().to_le_bytes());
    Some(format!("{number} at {at} of the block at {}", range.start))
}
