//! Linear algebra over GF(2), eight rows at a time, in plain loops that the compiler vectorizes.

/// Numbers that one vector of AVX-512 holds.
pub(super) const CHUNK: usize = 8;

/// Numbers in chunks.
pub(super) type Chunks<const N: usize> = [[u64; CHUNK]; N];

/// The most rows of a matrix.
pub(super) const MAX_ROWS: usize = 112;

/// One extra, so that a chunk may begin within another one.
const ROW_CHUNKS: usize = MAX_ROWS / CHUNK + 1;

/// The most words of a row.
pub(super) const MAX_WORDS: usize = 2;

/// A system of linear equations: in each row the coefficients of the unknowns, and in one bit of the first
/// word the right side.
pub(super) struct Matrix {
    pub rows: [Chunks<ROW_CHUNKS>; MAX_WORDS],
    /// The pivot of each row, as a bit of one word; none if it follows from the others.
    pub pivots: [Chunks<ROW_CHUNKS>; MAX_WORDS],
    /// The bit of the right side.
    pub right: u32,
}

/// The steps that differ between instruction sets. The results are the same.
pub(super) trait Algebra {
    /// For each key, bit `i` is the parity of its bits under mask `i`. Masks from `used` on are zero.
    fn products(keys: &[u64; CHUNK], masks: &[u64; u64::BITS as usize], used: usize) -> [u64; CHUNK];

    /// Makes the pivot of each of the first `count` rows, its lowest unknown, zero in the other rows of its
    /// chunk and in the chunks below. Rows from `count` to the end of its chunk are zero. Returns the number
    /// of rows before the first contradiction, where only the right side is left. Later rows have no pivot.
    fn eliminate<const W: usize>(matrix: &mut Matrix, count: usize) -> usize;
}

/// Plain loops.
pub(super) struct Portable;

impl Algebra for Portable {
    #[inline(always)]
    fn products(keys: &[u64; CHUNK], masks: &[u64; u64::BITS as usize], used: usize) -> [u64; CHUNK] {
        let mut products = [0; CHUNK];
        for mask in masks[..used].iter().rev() {
            for (product, key) in products.iter_mut().zip(keys) {
                *product = *product << 1 | u64::from((key & mask).count_ones() & 1);
            }
        }
        products
    }

    #[inline(always)]
    fn eliminate<const W: usize>(matrix: &mut Matrix, count: usize) -> usize {
        let chunks = count.div_ceil(CHUNK);
        for chunk in 0..chunks {
            let rows = CHUNK.min(count - chunk * CHUNK);
            let solved = matrix.eliminate_chunk::<W>(chunk, rows);
            if solved < rows {
                return chunk * CHUNK + solved;
            }
            let [this, pivots] = [&matrix.rows, &matrix.pivots].map(|from| words::<W>(from, chunk));
            for other in chunk + 1..chunks {
                let mut rows = words::<W>(&matrix.rows, other);
                for i in 0..CHUNK {
                    reduce(&mut rows, this.map(|rows| rows[i]), pivots.map(|pivots| pivots[i]), CHUNK);
                }
                (0..W).for_each(|w| matrix.rows[w][other] = rows[w]);
            }
        }
        count
    }
}

/// A chunk of rows or of pivots, in `W` words.
#[inline(always)]
fn words<const W: usize>(from: &[Chunks<ROW_CHUNKS>; MAX_WORDS], chunk: usize) -> [[u64; CHUNK]; W] {
    std::array::from_fn(|w| from[w][chunk])
}

/// Adds a row to all rows that have its pivot, except to row `own`.
#[inline(always)]
fn reduce<const W: usize>(rows: &mut [[u64; CHUNK]; W], this: [u64; W], pivot: [u64; W], own: usize) {
    let mut hits = [0; CHUNK];
    for (rows, pivot) in rows.iter().zip(&pivot) {
        hits.iter_mut().zip(rows).for_each(|(hit, row)| *hit |= row & pivot);
    }
    for (i, hit) in hits.iter_mut().enumerate() {
        *hit = if *hit != 0 && i != own { u64::MAX } else { 0 };
    }
    for (rows, this) in rows.iter_mut().zip(&this) {
        rows.iter_mut().zip(&hits).for_each(|(row, hit)| *row ^= this & hit);
    }
}

impl Matrix {
    pub fn new() -> Self {
        let none = [[[0; CHUNK]; ROW_CHUNKS]; MAX_WORDS];
        Matrix { rows: none, pivots: none, right: 0 }
    }

    /// [`Algebra::eliminate`] within a chunk.
    #[inline(always)]
    fn eliminate_chunk<const W: usize>(&mut self, chunk: usize, count: usize) -> usize {
        let mut rows = words::<W>(&self.rows, chunk);
        let mut pivots = [[0; CHUNK]; W];
        let mut solved = 0;
        while solved < count {
            let this = rows.map(|rows| rows[solved]);
            let mut pivot = [0; W];
            let mut found = 0;
            for w in 0..W {
                let unknowns = if w == 0 { this[0] & !(1 << self.right) } else { this[w] };
                pivot[w] = if found == 0 { unknowns & unknowns.wrapping_neg() } else { 0 };
                found |= pivot[w];
            }
            if found == 0 && this[0] != 0 {
                break;
            }
            reduce(&mut rows, this, pivot, solved);
            (0..W).for_each(|w| pivots[w][solved] = pivot[w]);
            solved += 1;
        }
        for w in 0..W {
            self.rows[w][chunk] = rows[w];
            self.pivots[w][chunk] = pivots[w];
        }
        solved
    }

    /// The unknowns that solve the first `count` rows, after their elimination. All but the pivots are zero.
    #[inline(always)]
    pub fn substitute<const W: usize>(&self, count: usize) -> [u64; W] {
        let mut solution = [0; W];
        for chunk in (0..count.div_ceil(CHUNK)).rev() {
            // No row has a pivot of another one in its chunk, so all of them can be solved at once.
            let mut values = [0u64; CHUNK];
            for (i, value) in values.iter_mut().enumerate() {
                let known = (0..W).fold(0, |known, w| known ^ self.rows[w][chunk][i] & solution[w]);
                let set = self.rows[0][chunk][i] >> self.right & 1 ^ u64::from(known.count_ones() & 1);
                *value = set.wrapping_neg();
            }
            for (w, solution) in solution.iter_mut().enumerate() {
                let pivots = values.iter().zip(&self.pivots[w][chunk]);
                *solution |= pivots.fold(0, |all, (value, pivot)| all | value & pivot);
            }
        }
        solution
    }
}
