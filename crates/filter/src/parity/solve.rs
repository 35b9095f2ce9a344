//! The linear system of one line: Gauss–Jordan elimination over GF(2).
//!
//! Every pivot reduces all rows, without branches. These are plain loops over arrays, which the compiler
//! vectorizes, and the solution is complete after the last pivot, without back-substitution. This takes more
//! XORs than elimination key by key, yet is much faster (12 ns per key with AVX-512, 8 lanes), because
//! nothing stalls and no branch is mispredicted.

use super::layout::{Equation, Lanes, Layout, mask};

/// The most equations of one line: more than the rows of any layout, and a multiple of the widest vector.
pub(super) const MAX_EQUATIONS: usize = 80;

/// Where `high` holds the coefficients of the high rows, above the fingerprint.
const HIGH_AT: u32 = 32;

/// The equations of a line in descending order of keys, as arrays. Unused entries are zero, without effect.
pub(super) struct System {
    /// The coefficients of the low rows, and the fingerprint above them if it [fits](one_word).
    low: [u64; MAX_EQUATIONS],
    /// Otherwise, the fingerprint in the low 32 bits, and the coefficients of the high rows above it.
    high: [u64; MAX_EQUATIONS],
    /// The pivot of each solved equation, as a bit of the low or the high rows; neither if it has none.
    pivot_low: [u64; MAX_EQUATIONS],
    pivot_high: [u64; MAX_EQUATIONS],
    len: usize,
}

/// Equations that a layout can have, rounded up to full vectors.
const fn capacity<L: Layout>() -> usize {
    (L::LOW_ROWS + L::HIGH_ROWS + 1).next_multiple_of(8)
}

/// Whether an equation fits into one word, which takes half the time.
const fn one_word<L: Layout>() -> bool {
    L::LOW_ROWS + L::LANES <= u64::BITS as usize && L::HIGH_ROWS == 0
}

impl System {
    pub fn new() -> Self {
        let none = [0; MAX_EQUATIONS];
        System { low: none, high: none, pivot_low: none, pivot_high: none, len: 0 }
    }

    /// Whether another equation would be contradictory, or follow from the others.
    pub fn is_full<L: Layout>(&self) -> bool {
        self.len == L::LOW_ROWS + L::HIGH_ROWS + 1
    }

    #[inline(always)]
    pub fn push<L: Layout>(&mut self, equation: Equation) {
        let fingerprint = u64::from(equation.fingerprint);
        if one_word::<L>() {
            self.low[self.len] = equation.low | fingerprint << L::LOW_ROWS;
        } else {
            self.low[self.len] = equation.low;
            self.high[self.len] = equation.high << HIGH_AT | fingerprint;
        }
        self.len += 1;
    }

    /// Solves the equations in order up to the first contradiction. Returns how many equations hold.
    #[inline(always)]
    pub fn solve<L: Layout>(&mut self) -> usize {
        let capacity = capacity::<L>();
        let (low, high) = (&mut self.low[..capacity], &mut self.high[..capacity]);
        let mut solved = 0;
        while solved < self.len {
            let (l, h) = (low[solved], high[solved]);
            if l & mask(L::LOW_ROWS) != 0 {
                let pivot = l.trailing_zeros();
                for (i, (low, high)) in low.iter_mut().zip(high.iter_mut()).enumerate() {
                    let hit = (*low >> pivot & u64::from(i != solved)).wrapping_neg();
                    *low ^= l & hit;
                    if !one_word::<L>() {
                        *high ^= h & hit;
                    }
                }
                self.pivot_low[solved] = 1 << pivot;
            } else if L::HIGH_ROWS > 0 && h >> HIGH_AT != 0 {
                let pivot = (h >> HIGH_AT).trailing_zeros() + HIGH_AT;
                for (i, high) in high.iter_mut().enumerate() {
                    *high ^= h & (*high >> pivot & u64::from(i != solved)).wrapping_neg();
                }
                self.pivot_high[solved] = 1 << (pivot - HIGH_AT);
            } else if l | h != 0 {
                break;
            } else {
                // It follows from the others (a repeated hash, for example), so it holds with them; its zero
                // fingerprint sets no bit.
                solved += 1;
                continue;
            }
            solved += 1;
        }
        solved
    }

    /// The lanes that solve the equations: the row of each pivot is the fingerprint of its equation, and all
    /// other rows are zero.
    #[inline(always)]
    pub fn lanes<L: Layout>(&self) -> Lanes {
        let mut lanes = Lanes::default();
        let (fingerprints, at) = if one_word::<L>() { (&self.low, L::LOW_ROWS) } else { (&self.high, 0) };
        let equations = fingerprints.iter().zip(&self.pivot_low).zip(&self.pivot_high);
        for ((fingerprint, pivot_low), pivot_high) in equations.take(capacity::<L>()) {
            for j in 0..L::LANES {
                let set = (fingerprint >> (at + j) & 1).wrapping_neg();
                lanes.low[j] |= pivot_low & set;
                if L::HIGH_ROWS > 0 {
                    lanes.high[j] |= pivot_high & set;
                }
            }
        }
        lanes
    }

    /// Vectors that may be added to any lane, because they satisfy the solved equations with zero on the
    /// right: one per row without pivot, at most `most`. The first array has their low rows, the second the
    /// high ones.
    #[inline(always)]
    pub fn null_vectors<L: Layout>(&self, nulls: &mut NullVectors, most: usize) {
        nulls.len = 0;
        let any = |pivots: &[u64; MAX_EQUATIONS]| pivots.iter().fold(0, |all, pivot| all | pivot);
        let (pivots_low, pivots_high) = (any(&self.pivot_low), any(&self.pivot_high));
        let mut free = mask(L::LOW_ROWS) & !pivots_low;
        while free != 0 && nulls.len < most {
            let row = free.trailing_zeros();
            free &= free - 1;
            let (low, high) = self.with_free_row::<L>(&self.low, row);
            nulls.push(low | 1 << row, high);
        }
        let mut free = mask(L::HIGH_ROWS) & !pivots_high;
        while free != 0 && nulls.len < most {
            let row = free.trailing_zeros();
            free &= free - 1;
            let (low, high) = self.with_free_row::<L>(&self.high, HIGH_AT + row);
            nulls.push(low, high | 1 << row);
        }
    }

    /// The pivots of the equations in which a free row appears.
    #[inline(always)]
    fn with_free_row<L: Layout>(&self, rows: &[u64; MAX_EQUATIONS], bit: u32) -> (u64, u64) {
        let (mut low, mut high) = (0, 0);
        let equations = rows.iter().zip(&self.pivot_low).zip(&self.pivot_high);
        for ((row, pivot_low), pivot_high) in equations.take(capacity::<L>()) {
            // Equations that were not solved have no pivots.
            let set = (row >> bit & 1).wrapping_neg();
            low |= pivot_low & set;
            if L::HIGH_ROWS > 0 {
                high |= pivot_high & set;
            }
        }
        (low, high)
    }

    /// Forgets all equations.
    pub fn clear(&mut self) {
        *self = System::new();
    }
}

/// The most vectors that [`System::null_vectors`] returns.
pub(super) const MAX_NULL_VECTORS: usize = 16;

/// Vectors of one bit per row, low rows and high rows.
pub(super) struct NullVectors {
    pub low: [u64; MAX_NULL_VECTORS],
    pub high: [u64; MAX_NULL_VECTORS],
    pub len: usize,
}

impl NullVectors {
    pub fn new() -> Self {
        NullVectors { low: [0; MAX_NULL_VECTORS], high: [0; MAX_NULL_VECTORS], len: 0 }
    }

    #[inline(always)]
    fn push(&mut self, low: u64, high: u64) {
        self.low[self.len] = low;
        self.high[self.len] = high;
        self.len += 1;
    }
}
