//! From a hash to its line and its equations (frozen: stored filters depend on it).

use super::layout::{Equation, Layout, MAX_LANES, WORDS, Words, mask};

/// Odd, without structure: the third to fifth digits of the fraction of π in base 2⁶⁴, made odd.
const COEFFICIENTS: u64 = 0xa409_3822_299f_31d1;
const FINGERPRINT: u64 = 0x082e_fa98_ec4e_6c89;
const NEXT_LEVEL: u64 = 0x4528_21e6_38d0_1377;

/// The most checks across the lanes that a line has for a key.
pub(super) const MAX_CHECKS: usize = 4;

/// The first bits of the fingerprint product: for the checks, for the coefficients of high rows, and for the
/// lanes, from bit 48 on.
pub(super) const CHECKS_AT: usize = 32;
const HIGH_ROWS_AT: usize = 64 - MAX_LANES - 9;

/// A hash with the parts of its equations that all widths share, computed once for a lookup in several
/// filters.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct ProbeHash {
    pub(crate) hash: u64,
    pub(super) products: Products,
}

impl ProbeHash {
    /// Of the hash of a key.
    #[inline(always)]
    pub fn new(hash: u64) -> Self {
        ProbeHash { hash, products: Products::of(hash) }
    }

    /// The hash itself.
    #[inline(always)]
    pub fn hash(&self) -> u64 {
        self.hash
    }
}

/// The products of a hash that its equations and checks are taken from.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct Products {
    pub coefficients: u64,
    pub fingerprint: u64,
}

impl Products {
    #[inline(always)]
    pub fn of(hash: u64) -> Self {
        // The high bits of a product depend on all bits of the hash.
        Products {
            coefficients: folded_product(hash, COEFFICIENTS),
            fingerprint: hash.wrapping_mul(FINGERPRINT),
        }
    }

    #[inline(always)]
    pub fn equation<L: Layout>(&self) -> Equation {
        Equation {
            low: self.coefficients & mask(L::LOW_ROWS),
            high: self.fingerprint >> HIGH_ROWS_AT & mask(L::HIGH_ROWS),
            fingerprint: (self.fingerprint >> (64 - L::LANES)) as u32,
        }
    }

    /// The parity that a check wants, 0 or 1.
    #[inline(always)]
    pub fn wanted(&self, check: usize) -> u32 {
        (self.fingerprint >> (CHECKS_AT + check)) as u32 & 1
    }
}

/// How far a check rotates a word. All rotations differ: equal ones would read the sum of two words only. And
/// no two checks differ by the same rotation of all words, because the coefficients of both would then depend
/// on each other in all lines.
pub(super) const ROTATIONS: [[u64; WORDS]; MAX_CHECKS] = {
    let (mut rotations, mut i) = ([[0; WORDS]; MAX_CHECKS], 0);
    while i < MAX_CHECKS * WORDS {
        let (check, word) = (i / WORDS, i % WORDS);
        rotations[check][word] = (2 * (WORDS * check + word * (2 * check + 1) % WORDS) + 1) as u64;
        i += 1;
    }
    assert!(2 * i <= u64::BITS as usize);
    rotations
};

/// The sum of all words, which have no control bits, rotated for a check.
#[inline(always)]
pub(super) fn folded<L: Layout>(words: &Words, check: usize) -> u64 {
    let words = words[..L::CROSSED_WORDS].iter().zip(ROTATIONS[check]);
    words.fold(0, |sum, (word, by)| sum ^ word.rotate_right(by as u32))
}

/// Whether a line, without its control bits, passes a check across its lanes.
#[inline(always)]
pub(super) fn passes<L: Layout>(words: &Words, products: &Products, check: usize) -> bool {
    (products.coefficients & folded::<L>(words, check)).count_ones() & 1 == products.wanted(check)
}

/// The 128-bit product with its halves XORed, so that every input bit affects every bit (Wang Yi's "mum").
#[inline(always)]
fn folded_product(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// The line of a hash among `lines`, and its place within the line, as a fraction of 2⁶⁴. Sorted hashes are
/// sorted by line, and by place within each line.
#[inline(always)]
pub(super) fn place(hash: u64, lines: u32) -> (u32, u64) {
    let product = u128::from(hash) * u128::from(lines);
    ((product >> 64) as u32, product as u64)
}

/// The hash in the next level. The mix is a bijection, so distinct hashes stay distinct.
#[inline]
pub(super) fn next_level(hash: u64) -> u64 {
    let mixed = (hash ^ hash >> 32).wrapping_mul(NEXT_LEVEL);
    mixed ^ mixed >> 29
}
