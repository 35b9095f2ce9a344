//! The parity filter: each 64-byte line is a small linear system over GF(2). Static: all keys are known when it is built.
//!
//! When to choose it: for segments, which never change. At equal memory it has a quarter of the false positives of
//! [`super::blocked`] (at 8.8 bits per key 0.39 % instead of 1.6 %), for 1.05 lines per probe instead of one.
//!
//! # The system of a line
//! A line holds `L` lanes of `R` bits and a *threshold*. Read crosswise, it is a table of `R` rows of `L` bits: lane `j` is bit `j`
//! of every row. A hash gives a vector `c` of `R` coefficients and a fingerprint `f` of `L` bits, and asks whether
//!
//! > for each lane j: parity(lane_j & c) = bit j of f
//!
//! that is, whether the XOR of the rows that `c` selects is `f`. For a member the builder sees to it: every member adds one linear
//! equation (per lane, all with the same left side `c`) to its line, and the table is a solution, found by elimination. For any
//! other key, `f` is independent of everything in the table, so that it passes with probability 2^−L, in full lines and in empty
//! ones. (This is the idea of the XOR and Ribbon filters, Dillinger and Walzer 2021, in the smallest system that a processor
//! reads at once: the lanes make the answer one AND, one population count and one comparison, and no second line is touched.)
//!
//! # Bumping
//! `R` unknowns take about `R` equations: random vectors stay independent until `R` − 1.61 of them on average (Σ over d ≥ 0 of
//! 1 − Π_{j>d} (1 − 2^−j) = 1.61), and a dependent one is contradictory unless its fingerprint happens to fit. Lines receive a
//! binomial number of keys, so some receive more. Each key has a *rank* in its line; equations enter in descending rank until the
//! first contradiction, at rank `t`; then the line's threshold becomes `t` + 1, and all keys of a rank below the threshold are
//! *bumped*: they live in the next level, a filter of the same kind over rehashed hashes. A probe compares its rank to the
//! threshold of the line that it has read, and goes on to the next level instead of answering. (Bumping by thresholds:
//! Dillinger, Hübschle-Schneider, Sanders, Walzer, "Fast Succinct Retrieval and Approximate Membership using Ribbon", 2022.)
//!
//! With λ keys per line, the share that is bumped is E\[max(0, X − C)\] / λ for X ~ Poisson(λ) and the capacity C above, about
//! 5 % for the λ chosen here, and the filter takes 512 / λ / (1 − share) bits per key. A larger λ saves bits and costs lines per
//! probe, 1 / (1 − share); [`Width`] keeps both within their aims.
//!
//! Levels shrink twenty-fold, so that a few hold everything; each has at least one line. Keys that the seventh would bump (an
//! adversary's, not a hash function's) are answered with "maybe" by the threshold rule itself: no build can fail or go on for ever.
//!
//! # Where the bits are
//! With `w0` … `w7` the little-endian words of a line, and bits numbered from 0:
//!
//! | L × R | lane j | threshold |
//! |---|---|---|
//! | 7 × 72 | `wj`, then bits 8j to 8j + 7 of `w7` as rows 64 to 71 | bits 56 to 63 of `w7` |
//! | 8 × 63 | bits 0 to 62 of `wj` | bit 63 of `w0` … `w7` |
//! | 9 × 56 | bits 0 to 55 of `wj`; lane 8: bits 56 to 63 of `w0` … `w6` | bits 56 to 63 of `w7` |
//! | 12 × 42 | bits 0 to 41 of `wj`; lane 8 + i: bits 42 to 62 of `wi`, then of `w(i+4)` | bit 63 of `w0` … `w7` |
//! | 16 × 31 | bits 0 to 30 of the j-th 32-bit half word | bit 31 of the 16 half words |
//!
//! # From a hash to its equation
//! With n the lines of the level: the line is the high word of hash × n, and the rank is the high word of its *low* word times 255
//! (65 535 for 16 lanes). So ranks rise with the hash within a line, and sorting the hashes is all the grouping that a build
//! needs. `c` is the low `R` bits of the folded product (high word XOR low word) of the hash with one constant, `f` the high `L`
//! bits of its plain product with another; for 72 rows, bits 40 to 47 of that are the coefficients of rows 64 to 71. The next
//! level's hash is a bijective mix. Constants stand in `equation.rs`.
//!
//! # Measured
//! Sizes and rates, of 1 million and of 100 million keys, all levels included, as `sidebloom filter table --kind parity` and
//! `sidebloom filter table --kind parity --keys 100000000` print them (the standard deviation of a rate is 1 %). A test
//! holds them to their aims at 400,000 keys.
//!
//! | L × R | bits per key, 1 M | 100 M | false positives, 1 M | 100 M | lines per probe, 1 M | 100 M |
//! |---|---|---|---|---|---|---|
//! | 7 × 72 | 7.676 | 7.673 | 0.784 % | 0.784 % | 1.042 | 1.042 |
//! | 8 × 63 | 8.836 | 8.835 | 0.397 % | 0.389 % | 1.044 | 1.044 |
//! | 9 × 56 | 10.068 | 10.063 | 0.195 % | 0.195 % | 1.043 | 1.043 |
//! | 12 × 42 | 13.739 | 13.731 | 0.0243 % | 0.0241 % | 1.048 | 1.048 |
//! | 16 × 31 | 19.203 | 19.189 | 0.00151 % | 0.00153 % | 1.053 | 1.053 |
//!
//! Times on one thread of an Intel Xeon (Sapphire Rapids), in nanoseconds: a probe of an absent key with all lines in the second cache, the
//! hash excluded (`cargo bench -p micro --bench filter -- hot`), and the build of 10 million keys, the sort included (`… -- build`). A build
//! holds 17.6 to 19.3 bytes a key, its input and its result included (`tests/heap/parity_build_memory.rs` counts them); with hashes that a
//! [`SortHashes`] keeps elsewhere, only its result. Where memory is fresh, a virtual machine takes 1 to 20 ns a key more to give its pages
//! (the process's system time).
//!
//! | L × R | AVX-512 | AVX2 | plain | build, per key |
//! |---|---|---|---|---|
//! | 7 × 72 | 3.4 | 5.0 | 9.1 | 37 |
//! | 8 × 63 | 3.1 | 5.2 | 9.5 | 35 |
//! | 9 × 56 | 3.1 | 3.8 | 7.8 | 36 |
//! | 12 × 42 | 3.2 | 4.3 | 9.2 | 34 |
//! | 16 × 31 | 3.1 | 4.2 | 8.1 | 36 |
//!
//! From a GiB of lines (`cargo bench -p micro --bench memory`, 8 and 12 lanes): a probe that waits for the one before it takes 1.07 to 1.08 times what
//! a load takes there, 219 to 224 ns; in `probe_many` 4,096 hashes take 15.3 to 15.6 ns each, as long as bare loads in batches of 32, one
//! batch upon the other. A call of 32 hashes takes 22 ns each, since its last misses overlap with nothing: bare loads take as long when each
//! batch waits for the one before it.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod build;
mod cost;
mod equation;
mod layout;
mod scalar;
mod solve;
mod sort;
mod walk;

use super::isa::Level;
use super::{Asks, BuiltFilter, FilterKind, Isa, Line, Verdict};
use crate::error::Result;
use build::Built;
pub(super) use cost::lines_per_probe;
use layout::{Eight, Lanes, Layout, Nine, Seven, Sixteen, Twelve};
use solve::System;
use sort::InMemory;
pub use sort::{EachPiece, SortHashes};
use walk::{walk, walk_believed, walk_below, walk_many};

/// The most levels of a filter.
pub const MAX_LEVELS: usize = 7;

/// How many lines each level has, the first first; 0 where there is no such level.
pub type Levels = [u32; MAX_LEVELS];

/// How many lanes a line has: the bits of a fingerprint, and so the false-positive rate, 2 to the minus lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Width {
    /// 7 lanes of 72 rows: about 7.7 bits per key, 0.78 %.
    Seven,
    /// 8 lanes of 63 rows: about 8.8 bits per key, 0.39 %.
    Eight,
    /// 9 lanes of 56 rows: about 10.1 bits per key, 0.195 %.
    Nine,
    /// 12 lanes of 42 rows: about 13.7 bits per key, 0.0244 %.
    Twelve,
    /// 16 lanes of 31 rows: about 19.2 bits per key, 0.0015 %.
    Sixteen,
}

impl Width {
    /// All widths, narrow to wide.
    pub const ALL: [Width; 5] = [Width::Seven, Width::Eight, Width::Nine, Width::Twelve, Width::Sixteen];

    /// How many lanes.
    pub fn lanes(self) -> u32 {
        match self {
            Width::Seven => 7,
            Width::Eight => 8,
            Width::Nine => 9,
            Width::Twelve => 12,
            Width::Sixteen => 16,
        }
    }

    /// The width of so many lanes.
    pub fn from_lanes(lanes: u32) -> Option<Width> {
        Width::ALL.into_iter().find(|width| width.lanes() == lanes)
    }

    /// Bits per key of a large filter, all levels included.
    pub fn bits_per_key(self) -> f64 {
        match self {
            Width::Seven => 7.68,
            Width::Eight => 8.84,
            Width::Nine => 10.07,
            Width::Twelve => 13.74,
            Width::Sixteen => 19.19,
        }
    }

    /// The false-positive rate, 0 to 1.
    pub fn fpr(self) -> f64 {
        0.5f64.powi(self.lanes() as i32)
    }

    /// λ: how many keys are dealt to a line, on average.
    fn keys_per_line(self) -> f64 {
        match self {
            Width::Seven => 70.0,
            Width::Eight => 61.0,
            Width::Nine => 53.5,
            Width::Twelve => 39.5,
            Width::Sixteen => 28.5,
        }
    }
}

/// What is read from a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reading {
    /// Whether the line's lanes fit the equation.
    fits: bool,
    threshold: u32,
}

/// Builds the filter of all hashes.
pub(super) fn build(hashes: &[u64], width: Width) -> Result<BuiltFilter> {
    build_from(&mut InMemory::of(hashes), width)
}

/// Builds the filter of all hashes that a sorter has.
pub(super) fn build_from<S: SortHashes>(hashes: &mut S, width: Width) -> Result<BuiltFilter, S::Error> {
    let build = match width {
        Width::Seven => build::build::<Seven, S>,
        Width::Eight => build::build::<Eight, S>,
        Width::Nine => build::build::<Nine, S>,
        Width::Twelve => build::build::<Twelve, S>,
        Width::Sixteen => build::build::<Sixteen, S>,
    };
    let Built { lines, levels, keys } = build(Isa::best(), hashes, width.keys_per_line())?;
    Ok(BuiltFilter { kind: FilterKind::Parity { width, levels }, keys, lines })
}

/// The functions that tell whether a hash may have been added.
pub(super) fn asks(isa: Isa, width: Width) -> Asks {
    match width {
        Width::Seven => asks_on::<Seven>(isa),
        Width::Eight => asks_on::<Eight>(isa),
        Width::Nine => asks_on::<Nine>(isa),
        Width::Twelve => asks_on::<Twelve>(isa),
        Width::Sixteen => asks_on::<Sixteen>(isa),
    }
}

/// As [`Prober::probe_believed`](super::Prober::probe_believed).
pub(super) fn probe_believed(
    width: Width,
    lines: &[Line],
    hash: u64,
    levels: &Levels,
    believe: &mut dyn FnMut(usize) -> bool,
) -> Option<Verdict> {
    let walk = match width {
        Width::Seven => walk_believed::<Seven>,
        Width::Eight => walk_believed::<Eight>,
        Width::Nine => walk_believed::<Nine>,
        Width::Twelve => walk_believed::<Twelve>,
        Width::Sixteen => walk_believed::<Sixteen>,
    };
    walk(lines, hash, levels, believe)
}

fn asks_on<L: Layout>(isa: Isa) -> Asks {
    match isa.level() {
        Level::Scalar => Asks { one: scalar::contains::<L>, many: scalar::contain::<L> },
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => Asks { one: avx2::contains::<L>, many: avx2::contain::<L> },
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => Asks { one: avx512::contains::<L>, many: avx512::contain::<L> },
    }
}

fn solve_on<L: Layout>(isa: Isa, system: &mut System) -> (Lanes, usize) {
    match isa.level() {
        Level::Scalar => system.solve::<L>(),
        // SAFETY: an `Isa` of this level exists only where detection found what the function asks for.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { avx2::solve::<L>(system) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { avx512::solve::<L>(system) },
    }
}

#[cfg(test)]
mod tests;
