//! The first bytes of keys as integers, which order like the keys, up to ties.

use std::ops::Range;

/// The [front](super::SplitKey::front) of a key, and that of the key after its first 16 bytes.
pub type LongFront = (u128, u128);
/// Bytes of a key that its [`LongFront`] has.
pub const LONG_FRONT_BYTES: usize = 32;

/// The first eight bytes of `key` as a big-endian integer, zero-padded. Orders like the keys, up to ties.
#[inline]
pub fn prefix8(key: &[u8]) -> u64 {
    match (key.first_chunk(), key.first_chunk(), key.last_chunk()) {
        (Some(first), ..) => u64::from_be_bytes(*first),
        // The last four bytes overlap the first four, which the shift pushes out.
        (None, Some(first), Some(last)) => {
            let rest = u32::from_be_bytes(*last).unbounded_shl(8 * (8 - key.len() as u32));
            u64::from(u32::from_be_bytes(*first)) << 32 | u64::from(rest)
        }
        _ => key.iter().enumerate().fold(0, |acc, (i, &b)| acc | u64::from(b) << (56 - 8 * i)),
    }
}

/// The [`LongFront`] of a key.
#[inline]
pub fn long_front(key: &[u8]) -> LongFront {
    (prefix16(key), prefix16(key.get(16..).unwrap_or_default()))
}

/// [`SplitKey::front`](super::SplitKey::front) of a part of `bytes`. Loads 16 bytes at once where there are
/// as many, and drops those that are not of the part.
#[inline]
pub fn front_of(bytes: &[u8], part: Range<usize>) -> u128 {
    match bytes.get(part.start..).and_then(|rest| rest.first_chunk()) {
        Some(front) => {
            let other_bits = 128u32.saturating_sub(8 * part.len().min(16) as u32);
            u128::from_be_bytes(*front) & u128::MAX.unbounded_shl(other_bits)
        }
        None => prefix16(bytes.get(part).unwrap_or_default()),
    }
}

/// [`prefix8`] for 16 bytes.
#[inline]
pub fn prefix16(key: &[u8]) -> u128 {
    match (key.first_chunk(), key.first_chunk(), key.last_chunk()) {
        (Some(first), ..) => u128::from_be_bytes(*first),
        (None, Some(first), Some(last)) => {
            let rest = u64::from_be_bytes(*last).unbounded_shl(8 * (16 - key.len() as u32));
            u128::from(u64::from_be_bytes(*first)) << 64 | u128::from(rest)
        }
        _ => u128::from(prefix8(key)) << 64,
    }
}
