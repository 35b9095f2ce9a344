//! From a hash to its place and its equation (frozen: filters on disk depend on it).

use super::layout::{Layout, MAX_LANES, mask};

/// Odd, without structure: the digits of π's fraction in base 2⁶⁴, the third to the fifth, made odd.
const COEFFICIENTS: u64 = 0xa409_3822_299f_31d1;
const FINGERPRINT: u64 = 0x082e_fa98_ec4e_6c89;
const NEXT_LEVEL: u64 = 0x4528_21e6_38d0_1377;

/// What a hash demands of its line: for each lane `j`, the parity of `lane_j & coefficients` is bit `j` of the fingerprint.
#[derive(Clone, Copy, Default)]
pub(super) struct Equation {
    /// Coefficients of rows 0 to 63.
    pub low: u64,
    /// Coefficients of the rows from 64 on.
    pub high: u64,
    pub fingerprint: u32,
}

impl Equation {
    #[inline(always)]
    pub fn of<L: Layout>(hash: u64) -> Self {
        // The high bits of a product depend on all bits of the hash.
        let product = hash.wrapping_mul(FINGERPRINT);
        Equation {
            low: folded_product(hash, COEFFICIENTS) & mask(L::ROWS),
            high: product >> (64 - MAX_LANES - 8) & mask(L::ROWS.saturating_sub(64)),
            fingerprint: (product >> (64 - L::LANES)) as u32,
        }
    }
}

/// The 128-bit product, its halves XORed: every bit of the hash reaches every bit (Wang Yi's "mum").
#[inline(always)]
fn folded_product(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// The line of a hash among `lines`, and its rank there, 0 to `MAX_THRESHOLD - 1`. In a line, ranks rise with the hash: sorted
/// hashes are sorted by line, and by rank within a line.
#[inline(always)]
pub(super) fn place<L: Layout>(hash: u64, lines: u32) -> (u32, u32) {
    let product = u128::from(hash) * u128::from(lines);
    let rank = u128::from(product as u64) * u128::from(L::MAX_THRESHOLD);
    ((product >> 64) as u32, (rank >> 64) as u32)
}

/// The hash in the next level: a bijection, so that what differs goes on differing.
#[inline]
pub(super) fn next_level(hash: u64) -> u64 {
    let mixed = (hash ^ hash >> 32).wrapping_mul(NEXT_LEVEL);
    mixed ^ mixed >> 29
}
