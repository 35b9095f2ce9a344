//! The checks across the lanes: a second linear system, over the freedom that the lanes' equations leave.
//!
//! With n null vectors and `L` lanes there are n × L unknowns: whether vector v is added to lane j. A check
//! wants a parity of all words. Each unknown contributes the parity of its null vector under the key's
//! coefficients. Checks come in the order in which a quota admits them: the first check of every key, in
//! descending places, then the second, and so on. They are solved up to the first contradiction, by
//! elimination and substitution.

use super::algebra::{Algebra, CHUNK, Chunks, MAX_ROWS, MAX_WORDS, Matrix};
use super::equation::{CHECKS_AT, MAX_CHECKS, Products, ROTATIONS, folded};
use super::layout::{Lanes, Layout, MAX_LANES};
use super::solve::{MAX_EQUATIONS, NullVectors};

const KEY_CHUNKS: usize = MAX_EQUATIONS / CHUNK;

/// The keys of a line in descending places: their products, as in [`Products`].
pub(super) struct Keys {
    coefficients: Chunks<KEY_CHUNKS>,
    fingerprints: Chunks<KEY_CHUNKS>,
}

impl Keys {
    pub fn new() -> Self {
        Keys { coefficients: [[0; CHUNK]; KEY_CHUNKS], fingerprints: [[0; CHUNK]; KEY_CHUNKS] }
    }

    #[inline(always)]
    pub fn set(&mut self, i: usize, key: &Products) {
        self.coefficients[i / CHUNK][i % CHUNK] = key.coefficients;
        self.fingerprints[i / CHUNK][i % CHUNK] = key.fingerprint;
    }
}

/// The most unknowns, apart from spare bits: more would take longer than they save.
const MAX_UNKNOWNS: usize = 96;

/// Null vectors per word of a row.
const fn per_word<L: Layout>() -> usize {
    (u64::BITS as usize - 1 - L::SPARE.len()) / L::LANES
}

/// The most null vectors of use. With 16 lanes, lines have few keys, and a second word would take too long.
pub(super) const fn most_null_vectors<L: Layout>() -> usize {
    let (unknowns, words) = (MAX_UNKNOWNS / L::LANES, if L::LANES > 12 { 1 } else { MAX_WORDS });
    if unknowns < words * per_word::<L>() { unknowns } else { words * per_word::<L>() }
}

/// Fills lines with checks, one after the other, in the same memory. The unknown (v, j) is bit v % n × `L` +
/// j of word v / n, where n = [`per_word`]. Above the unknowns of the first word are the spare bits, and then
/// the right side of the row.
pub(super) struct Checks {
    matrix: Matrix,
    /// For each bit of a row, the bits of a key whose parity it is; and room for the lanes of a null vector
    /// to be written at once.
    masks: [[u64; ROW_BITS + MAX_LANES]; MAX_WORDS],
}

const ROW_BITS: usize = u64::BITS as usize;

impl Checks {
    pub fn new() -> Self {
        Checks { matrix: Matrix::new(), masks: [[0; ROW_BITS + MAX_LANES]; MAX_WORDS] }
    }

    /// Adds null vectors to lanes so that as many checks as possible hold for the first `len` keys. Returns
    /// the number of these checks.
    #[inline(always)]
    pub fn fill<L: Layout, A: Algebra>(
        &mut self,
        keys: &Keys,
        len: usize,
        nulls: &NullVectors,
        lanes: &mut Lanes,
    ) -> usize {
        if nulls.len <= per_word::<L>() {
            self.fill_words::<L, A, 1>(keys, len, nulls, lanes)
        } else {
            self.fill_words::<L, A, MAX_WORDS>(keys, len, nulls, lanes)
        }
    }

    #[inline(always)]
    fn fill_words<L: Layout, A: Algebra, const W: usize>(
        &mut self,
        keys: &Keys,
        len: usize,
        nulls: &NullVectors,
        lanes: &mut Lanes,
    ) -> usize {
        let unknowns = nulls.len * L::LANES + L::SPARE.len();
        let count = (len * MAX_CHECKS).min(unknowns + unknowns / 16).min(MAX_ROWS);
        let spare_at = nulls.len.min(per_word::<L>()) * L::LANES;
        let right = spare_at + L::SPARE.len();
        self.matrix.right = right as u32;
        let words = L::assemble(lanes, 0);
        self.masks[..W].fill([0; ROW_BITS + MAX_LANES]);
        for check in 0..count.div_ceil(len.max(1)) {
            self.set_masks::<L, W>(nulls, spare_at, check, folded::<L>(&words, check));
            let (first, keys_left) = (check * len, len.min(count - check * len));
            for chunk in 0..keys_left.div_ceil(CHUNK) {
                let at = first + chunk * CHUNK..first + (chunk + 1) * CHUNK;
                for w in 0..W {
                    let used = if w == 0 { right + 1 } else { unknowns - spare_at };
                    let masks = self.masks[w].first_chunk().unwrap_or(&[0; ROW_BITS]);
                    let mut rows = A::products(&keys.coefficients[chunk], masks, used);
                    if w == 0 {
                        let keys = rows.iter_mut().zip(&keys.fingerprints[chunk]);
                        keys.for_each(|(row, key)| *row ^= (key >> (CHECKS_AT + check) & 1) << right);
                    }
                    self.matrix.rows[w].as_flattened_mut()[at.clone()].copy_from_slice(&rows);
                }
            }
        }
        for rows in &mut self.matrix.rows[..W] {
            rows.as_flattened_mut()[count..count.next_multiple_of(CHUNK)].fill(0);
        }
        let solved = A::eliminate::<W>(&mut self.matrix, count);
        let solution = self.matrix.substitute::<W>(solved);
        for v in 0..nulls.len {
            let adds = solution[v / per_word::<L>()] >> (v % per_word::<L>() * L::LANES);
            for j in 0..L::LANES {
                let add = (adds >> j & 1).wrapping_neg();
                lanes.low[j] ^= nulls.low[v] & add;
                if L::HIGH_ROWS > 0 {
                    lanes.high[j] ^= nulls.high[v] & add;
                }
            }
        }
        for (i, &(word, bit)) in L::SPARE.iter().enumerate() {
            lanes.spare[word] |= (solution[0] >> (spare_at + i) & 1) << bit;
        }
        solved
    }

    /// Sets the masks for a check, given the current sum of the words.
    #[inline(always)]
    fn set_masks<L: Layout, const W: usize>(
        &mut self,
        nulls: &NullVectors,
        spare_at: usize,
        check: usize,
        folded: u64,
    ) {
        let rotations = &ROTATIONS[check];
        for (v, &null) in nulls.low[..nulls.len].iter().enumerate() {
            let (word, at) = (v / per_word::<L>(), v % per_word::<L>() * L::LANES);
            self.masks[word][at..at + MAX_LANES].copy_from_slice(&L::sums(null, rotations));
        }
        for (i, &(word, bit)) in L::SPARE.iter().enumerate() {
            self.masks[0][spare_at + i] = (1u64 << bit).rotate_right(rotations[word] as u32);
        }
        self.masks[0][spare_at + L::SPARE.len()] = folded;
    }
}
