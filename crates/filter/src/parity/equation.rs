//! From a hash to its line, its rank and its equation (frozen: stored filters depend on it).

use super::layout::{Equation, Layout, MAX_LANES, mask};

/// Odd, without structure: the third to fifth digits of the fraction of π in base 2⁶⁴, made odd.
const COEFFICIENTS: u64 = 0xa409_3822_299f_31d1;
const FINGERPRINT: u64 = 0x082e_fa98_ec4e_6c89;
const NEXT_LEVEL: u64 = 0x4528_21e6_38d0_1377;

/// A hash with what its equations have in common in all widths, so that a lookup that asks several filters computes it once.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct ProbeHash {
    pub(crate) hash: u64,
    pub(super) coefficients: u64,
    pub(super) fingerprint: u64,
}

impl ProbeHash {
    /// Of the hash of a key.
    #[inline(always)]
    pub fn new(hash: u64) -> Self {
        // The high bits of a product depend on all bits of the hash.
        let fingerprint = hash.wrapping_mul(FINGERPRINT);
        ProbeHash { hash, coefficients: folded_product(hash, COEFFICIENTS), fingerprint }
    }

    /// The hash itself.
    #[inline(always)]
    pub fn hash(&self) -> u64 {
        self.hash
    }

    #[inline(always)]
    pub(super) fn equation<L: Layout>(&self) -> Equation {
        Equation {
            low: self.coefficients & mask(L::ROWS),
            high: self.fingerprint >> (64 - MAX_LANES - 8) & mask(L::ROWS.saturating_sub(64)),
            fingerprint: (self.fingerprint >> (64 - L::LANES)) as u32,
        }
    }
}

/// The equation of a hash.
#[inline(always)]
pub(super) fn equation_of<L: Layout>(hash: u64) -> Equation {
    ProbeHash::new(hash).equation::<L>()
}

/// The 128-bit product with its halves XORed, so that every bit of the hash affects every bit (Wang Yi's "mum").
#[inline(always)]
fn folded_product(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// The line of a hash among `lines`, and its rank in that line, 0 to `MAX_THRESHOLD - 1`. Within a line, ranks rise with the hash, so
/// sorted hashes are sorted by line, and by rank within each line.
#[inline(always)]
pub(super) fn place<L: Layout>(hash: u64, lines: u32) -> (u32, u32) {
    let product = u128::from(hash) * u128::from(lines);
    ((product >> 64) as u32, rank_of::<L>(product as u64))
}

/// The rank of a hash in its line, given what the choice of the line leaves of it: the low word of hash × lines.
#[inline(always)]
pub(super) fn rank_of<L: Layout>(fraction: u64) -> u32 {
    ((u128::from(fraction) * u128::from(L::MAX_THRESHOLD)) >> 64) as u32
}

/// The hash in the next level. The mix is a bijection, so distinct hashes stay distinct.
#[inline]
pub(super) fn next_level(hash: u64) -> u64 {
    let mixed = (hash ^ hash >> 32).wrapping_mul(NEXT_LEVEL);
    mixed ^ mixed >> 29
}
