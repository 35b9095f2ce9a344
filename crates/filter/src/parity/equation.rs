//! What a line requires of a hash: where the hash belongs, its equations, whether the line's control byte
//! bumps it, and its checks (frozen: stored filters depend on it).
//!
//! The control byte of a line says which of its keys it bumps, and how many checks across lanes the others
//! get:
//!
//! | byte | threshold | quota, in sixteenths of a check |
//! |---|---|---|
//! | 0 to 63 | 0 | the byte |
//! | 64 + 4 (t − 1) + s | t, 1 to 48 | s × the step of the layout |
//!
//! Keys whose rank is below the threshold are bumped. The others have as many checks as the quota has whole
//! ones, and keys whose place is in the last q sixteenths of the line have one more, for a remainder of q.

use super::layout::{Equation, Layout, MAX_LANES, Pieces, WORD_BITS, WORDS, Words, mask, words_of};
use crate::line::Line;
use std::num::NonZeroU64;

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
            low: self.coefficients & const { mask(L::LOW_ROWS) },
            high: self.fingerprint >> HIGH_ROWS_AT & const { mask(L::HIGH_ROWS) },
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

/// The lowest byte with a threshold.
const BUMPS: u32 = 64;
/// Quotas per threshold.
const STEPS: u32 = 4;
/// The threshold that bumps every key. Ranks are lower.
pub(super) const BUMP_ALL: u32 = 48;
/// Sixteenths per check.
const UNIT: u32 = 16;

const _: () = assert!(BUMPS + STEPS * BUMP_ALL == 256 && (BUMPS - 1).div_ceil(UNIT) as usize == MAX_CHECKS);

/// The rank of a key: the place in steps of 1 / `RANKS`, up to the last rank, which about half of the places
/// share. Fewer than one line in ten thousand needs a threshold there.
#[inline(always)]
pub(super) fn rank<L: Layout>(place: u64) -> u32 {
    rank_of(place, L::RANKS.into())
}

#[inline(always)]
fn rank_of(place: u64, ranks: u64) -> u32 {
    let scaled = (place >> 32) * ranks;
    ((scaled >> 32) as u32).min(BUMP_ALL - 1)
}

/// The share of places whose rank is below a threshold: the inverse of [`rank`].
pub(super) fn share_bumped<L: Layout>(threshold: u32) -> f64 {
    if threshold == BUMP_ALL { 1.0 } else { f64::from(threshold) / f64::from(L::RANKS) }
}

#[inline(always)]
pub(super) fn is_bumped<L: Layout>(control: u32, place: u64) -> bool {
    control >= BUMPS + STEPS * rank::<L>(place)
}

/// What a probe of the first eight lanes needs to know of a layout with at least as many. As data, so that
/// one loop probes filters of all these widths.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FirstLanes {
    /// The coefficients of the rows in the words of the lanes.
    pub(super) low: NonZeroU64,
    /// The first bit of the fingerprint in its product.
    pub(super) fingerprint_at: u64,
    ranks: u64,
}

impl FirstLanes {
    /// Those of a layout; `None` for [`Seven`](super::layout::Seven), which has rows in other words.
    pub(super) fn of<L: Layout>() -> Option<Self> {
        let low = NonZeroU64::new(mask(L::LOW_ROWS)).filter(|_| L::LANES >= WORDS)?;
        Some(FirstLanes { low, fingerprint_at: 64 - L::LANES as u64, ranks: L::RANKS.into() })
    }

    #[inline(always)]
    pub(super) fn is_bumped(&self, control: u32, place: u64) -> bool {
        control >= BUMPS + STEPS * rank_of(place, self.ranks)
    }
}

/// What a control byte means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Control {
    pub threshold: u32,
    /// In sixteenths of a check.
    pub quota: u32,
}

impl Control {
    #[inline(always)]
    pub fn decode<L: Layout>(control: u32) -> Self {
        match control.checked_sub(BUMPS) {
            None => Control { threshold: 0, quota: control },
            Some(bumps) => Control { threshold: bumps / STEPS + 1, quota: bumps % STEPS * L::QUOTA_STEP },
        }
    }

    /// The byte with this threshold and the largest quota that is not above `quota`.
    #[inline(always)]
    pub fn encode<L: Layout>(threshold: u32, quota: u32) -> u32 {
        match threshold {
            0 => quota.min(BUMPS - 1),
            _ => BUMPS + STEPS * (threshold - 1) + (quota / L::QUOTA_STEP).min(STEPS - 1),
        }
    }

    /// The number of checks of a key that is not bumped.
    #[inline(always)]
    pub fn checks(self, place: u64) -> usize {
        (self.quota / UNIT + u32::from(in_remainder(self.quota, place))) as usize
    }

    /// The false-positive rate of the line, and the share of probes that go on to the next level.
    pub fn rates<L: Layout>(self) -> (f64, f64) {
        let bumped = share_bumped::<L>(self.threshold);
        let kept = 1.0 - bumped;
        let more = (f64::from(self.quota % UNIT) / f64::from(UNIT)).min(kept);
        let rate = 1.0 / (1u64 << (L::LANES as u32 + self.quota / UNIT)) as f64;
        ((kept - more + more / 2.0) * rate, bumped)
    }
}

/// Whether a key has one check more than the whole number in the quota.
#[inline(always)]
pub(super) fn in_remainder(quota: u32, place: u64) -> bool {
    (place >> 60) as u32 + quota % UNIT >= UNIT
}

/// The largest quota for which these keys have at most `checks` checks. Their places are in descending order.
#[inline(always)]
pub(super) fn largest_quota(checks: usize, keys: usize, place: impl Fn(usize) -> u64) -> u32 {
    match checks.checked_div(keys) {
        None => UNIT * MAX_CHECKS as u32,
        // The first key for whose additional check there is no room bounds the remainder.
        Some(whole) => UNIT * whole as u32 + UNIT - 1 - (place(checks % keys) >> 60) as u32,
    }
}

/// Whether a line whose first lanes satisfy the equation also satisfies the rest and the key's checks.
#[inline(always)]
pub(super) fn fits_wholly<L: Layout>(line: &Line, products: Products, place: u64, control: u32) -> bool {
    let words = words_of(line).map(|word| word & mask(WORD_BITS));
    let checks = Control::decode::<L>(control).checks(place);
    // Most keys have one check or none, which is hard to predict.
    let first = passes::<L>(&words, &products, 0) | (checks == 0);
    let rest = L::fits_rest(&words, &products.equation::<L>());
    first & rest && (1..checks).all(|check| passes::<L>(&words, &products, check))
}

/// The words of a line, masked with [`read_by_rest`], in vector registers.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "for the vector code of x86-64"))]
pub(super) trait Vectors {
    /// The parities for the first checks, as many as needed or more, the first lowest.
    fn checks(&self, coefficients: u64, needed: usize) -> u32;
    /// For each word, the parity of its piece's rows under the coefficients, word 0 lowest.
    fn parities(&self, rows: u64, pieces: &Pieces) -> u8;
}

/// For each word, the bits that checks read. (Lines of seven lanes have a word that checks do not read, and
/// no lanes in pieces.)
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "for the vector code of x86-64"))]
pub(super) const fn read_by_rest<L: Layout>() -> Words {
    let (mut masks, mut word) = ([0; WORDS], 0);
    while word < L::CROSSED_WORDS {
        masks[word] = mask(WORD_BITS);
        word += 1;
    }
    masks
}

/// [`fits_wholly`] in vectors. Computes unneeded checks, because their number is hard to predict.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "for the vector code of x86-64"))]
#[inline(always)]
pub(super) fn vectors_fit_wholly<L: Layout>(
    words: &impl Vectors,
    products: Products,
    place: u64,
    control: u32,
) -> bool {
    let mut failures = 0;
    if L::LANES > WORDS {
        let equation = products.equation::<L>();
        let mut of_pieces = [0; 2];
        for (parities, pieces) in of_pieces.iter_mut().zip(L::PIECES) {
            *parities = words.parities(equation.low, pieces).into();
        }
        failures |= L::parities_of_rest(of_pieces) ^ equation.fingerprint >> WORDS;
    }
    let checks = Control::decode::<L>(control).checks(place);
    let wanted = (products.fingerprint >> CHECKS_AT) as u32;
    failures |= (words.checks(products.coefficients, checks) ^ wanted) & !(u32::MAX << checks);
    failures == 0
}
