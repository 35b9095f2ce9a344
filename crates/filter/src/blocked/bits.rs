//! The bits of a hash in its line.

/// The most bits that a key may set: the 32-bit lanes of a line.
pub const MAX_K: u32 = 16;

/// Pairs of odd 16-bit numbers without structure: the first digits of π's fraction in base 2¹⁶, made odd.
pub(super) const MULTIPLIERS: [u32; MAX_K as usize] = [
    0x243f_6a89,
    0x85a3_08d3,
    0x1319_8a2f,
    0x0371_7345,
    0xa409_3823,
    0x299f_31d1,
    0x082f_fa99,
    0xec4f_6c89,
    0x4529_21e7,
    0x38d1_1377,
    0xbe55_66cf,
    0x34e9_0c6d,
    0xc0ad_29b7,
    0xc97d_50dd,
    0x3f85_d5b5,
    0xb547_0917,
];

/// The `k` bits of a hash, as positions in its line. This is the definition; the vector code computes the
/// same positions.
#[inline]
pub(super) fn positions(hash: u64, k: u32) -> impl Iterator<Item = usize> {
    let product = |a: u64, b: u32| ((a as u32 & 0xffff) * (b & 0xffff)) >> 16;
    MULTIPLIERS.iter().take(k as usize).map(move |m| {
        let (word, bit) = (product(hash >> 16, m >> 16) % 16, product(hash, *m) % 32);
        (word * 32 + bit) as usize
    })
}
