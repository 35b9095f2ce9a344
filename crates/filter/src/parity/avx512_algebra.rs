//! [`Algebra`] in AVX-512: a chunk per register, and products of bit matrices by GFNI.

use super::algebra::{Algebra, CHUNK, Matrix};
use std::arch::x86_64::*;

/// The steps in AVX-512. Only the functions of [`super::avx512`] use it; their callers check the features.
pub(super) struct Avx512;

impl Algebra for Avx512 {
    #[inline(always)]
    fn products(keys: &[u64; CHUNK], masks: &[u64; u64::BITS as usize], _: usize) -> [u64; CHUNK] {
        // SAFETY: see `Avx512`.
        unsafe { products(keys, masks) }
    }

    #[inline(always)]
    fn eliminate<const W: usize>(matrix: &mut Matrix, count: usize) -> usize {
        // SAFETY: see `Avx512`.
        unsafe { eliminate::<W>(matrix, count) }
    }
}

/// Byte `b` of word `a` becomes byte `a` of word `b`.
const TRANSPOSED: [u8; 64] = transposed(0);
/// The same, and the bytes of each word in reverse order, as GFNI takes the rows of a matrix.
const TRANSPOSED_REVERSED: [u8; 64] = transposed(7);

const fn transposed(reverse: usize) -> [u8; 64] {
    let (mut order, mut at) = ([0; 64], 0);
    while at < 64 {
        order[at] = (8 * ((at % 8) ^ reverse) + at / 8) as u8;
        at += 1;
    }
    order
}

#[inline]
#[target_feature(enable = "avx512f,avx512vbmi,gfni")]
fn products(keys: &[u64; CHUNK], masks: &[u64; u64::BITS as usize]) -> [u64; CHUNK] {
    // SAFETY: 64 bytes each.
    let [order, reversed] =
        [&TRANSPOSED, &TRANSPOSED_REVERSED].map(|order| unsafe { _mm512_loadu_si512(order.as_ptr().cast()) });
    // Word i has byte i of each key.
    let keys = _mm512_permutexvar_epi8(order, load(keys));
    // Word i of block o: bits 8o to 8o + 7 of each key's product, as far as the key's byte i contributes.
    let (masks, _) = masks.as_chunks::<CHUNK>();
    let mut blocks = [_mm512_setzero_si512(); CHUNK];
    for (block, masks) in blocks.iter_mut().zip(masks) {
        let matrices = _mm512_permutexvar_epi8(reversed, load(masks));
        *block = _mm512_gf2p8affine_epi64_epi8::<0>(keys, matrices);
    }
    // The sums of the words of each block, in three steps.
    let mut pairs = [_mm512_setzero_si512(); 4];
    for (i, pair) in pairs.iter_mut().enumerate() {
        let (a, b) = (blocks[2 * i], blocks[2 * i + 1]);
        *pair = _mm512_xor_si512(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
    }
    let fours = [sums_of_halves(pairs[0], pairs[1]), sums_of_halves(pairs[2], pairs[3])];
    let sums = _mm512_permutexvar_epi8(order, sums_of_halves(fours[0], fours[1]));
    let mut products = [0; CHUNK];
    store(&mut products, sums);
    products
}

/// The sums of neighbouring quarters: those of `a`, then those of `b`.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn sums_of_halves(a: __m512i, b: __m512i) -> __m512i {
    let even = _mm512_shuffle_i64x2::<0b10_00_10_00>(a, b);
    let odd = _mm512_shuffle_i64x2::<0b11_01_11_01>(a, b);
    _mm512_xor_si512(even, odd)
}

/// A row in each lane, in `W` words.
type Rows<const W: usize> = [__m512i; W];

#[inline]
#[target_feature(enable = "avx512f")]
fn eliminate<const W: usize>(matrix: &mut Matrix, count: usize) -> usize {
    let (chunks, right) = (count.div_ceil(CHUNK), matrix.right);
    for chunk in 0..chunks {
        let mut rows: Rows<W> = std::array::from_fn(|w| load(&matrix.rows[w][chunk]));
        let (mut reduced, mut pivots) = eliminate_chunk(rows, right);
        let contradictory = no_unknown(&reduced, right) & _mm512_test_epi64_mask(reduced[0], reduced[0]);
        let before = contradictory.trailing_zeros();
        if contradictory != 0 {
            // Again, without the rows from there on.
            rows = rows.map(|rows| _mm512_maskz_mov_epi64((1 << before) - 1, rows));
            (reduced, pivots) = eliminate_chunk(rows, right);
        }
        for w in 0..W {
            store(&mut matrix.rows[w][chunk], reduced[w]);
            store(&mut matrix.pivots[w][chunk], pivots[w]);
        }
        if contradictory != 0 {
            return chunk * CHUNK + before as usize;
        }
        for other in chunk + 1..chunks {
            let mut rows: Rows<W> = std::array::from_fn(|w| load(&matrix.rows[w][other]));
            // No row of the chunk has a pivot of another one, so adding a row adds no pivot.
            let before = rows;
            for i in 0..CHUNK {
                let lane = _mm512_set1_epi64(i as i64);
                let this = reduced.map(|rows| _mm512_permutexvar_epi64(lane, rows));
                let pivot = pivots.map(|pivots| _mm512_permutexvar_epi64(lane, pivots));
                add(&mut rows, hits(&before, &pivot), &this);
            }
            (0..W).for_each(|w| store(&mut matrix.rows[w][other], rows[w]));
        }
    }
    count
}

/// Reduces the rows of a chunk with each other. Returns them with their pivots.
#[inline]
#[target_feature(enable = "avx512f")]
fn eliminate_chunk<const W: usize>(mut rows: Rows<W>, right: u32) -> (Rows<W>, Rows<W>) {
    let zero = _mm512_setzero_si512();
    let mut pivots = [zero; W];
    for i in 0..CHUNK {
        let lane = _mm512_set1_epi64(i as i64);
        let this = rows.map(|rows| _mm512_permutexvar_epi64(lane, rows));
        let mut found = 0;
        let pivot: Rows<W> = std::array::from_fn(|w| {
            let unknowns = if w == 0 { without(this[0], right) } else { this[w] };
            let lowest = _mm512_and_si512(unknowns, _mm512_sub_epi64(zero, unknowns));
            let pivot = _mm512_maskz_mov_epi64(!found, lowest);
            found |= _mm512_test_epi64_mask(unknowns, unknowns);
            pivot
        });
        let to = hits(&rows, &pivot) & !(1 << i);
        add(&mut rows, to, &this);
        (0..W).for_each(|w| pivots[w] = _mm512_mask_mov_epi64(pivots[w], 1 << i, pivot[w]));
    }
    (rows, pivots)
}

/// The rows that have a pivot, which is in all lanes.
#[inline]
#[target_feature(enable = "avx512f")]
fn hits<const W: usize>(rows: &Rows<W>, pivot: &Rows<W>) -> __mmask8 {
    (0..W).fold(0, |hits, w| hits | _mm512_test_epi64_mask(rows[w], pivot[w]))
}

/// Adds a row, which is in all lanes, to some rows.
#[inline]
#[target_feature(enable = "avx512f")]
fn add<const W: usize>(rows: &mut Rows<W>, to: __mmask8, this: &Rows<W>) {
    (0..W).for_each(|w| rows[w] = _mm512_mask_xor_epi64(rows[w], to, rows[w], this[w]));
}

/// The rows that have no unknown.
#[inline]
#[target_feature(enable = "avx512f")]
fn no_unknown<const W: usize>(rows: &Rows<W>, right: u32) -> __mmask8 {
    let unknowns = (1..W).fold(without(rows[0], right), |all, w| _mm512_or_si512(all, rows[w]));
    _mm512_testn_epi64_mask(unknowns, unknowns)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn without(rows: __m512i, bit: u32) -> __m512i {
    _mm512_andnot_si512(_mm512_set1_epi64(1 << bit), rows)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(chunk: &[u64; CHUNK]) -> __m512i {
    // SAFETY: a chunk has 64 bytes, one unaligned load.
    unsafe { _mm512_loadu_si512(chunk.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(chunk: &mut [u64; CHUNK], rows: __m512i) {
    // SAFETY: a chunk has 64 bytes, one unaligned store.
    unsafe { _mm512_storeu_si512(chunk.as_mut_ptr().cast(), rows) }
}
