//! The parity filter: each 64-byte line is a small linear system over GF(2). It is static: all keys must be known when it is built.
//!
//! Choose it for key sets that never change, such as segments. At equal size it has a quarter of the false positives of a
//! [`blocked`](crate::blocked) Bloom filter (at 8.8 bits per key, 0.39 % instead of 1.6 %), and reads 1.05 lines per probe instead of one.
//!
//! # The system of a line
//! A line holds `L` lanes of `R` bits and a *threshold*. Read crosswise, it is a table of `R` rows of `L` bits: lane `j` is bit `j`
//! of every row. A hash gives a vector `c` of `R` coefficients and a fingerprint `f` of `L` bits. A probe tests whether
//!
//! > for each lane j: parity(lane_j & c) = bit j of f
//!
//! that is, whether the XOR of the rows that `c` selects is `f`. The builder makes this true for members: every member adds one linear
//! equation (per lane, all with the same left side `c`) to its line, and elimination finds a table that solves them. For any
//! other key, `f` is independent of the table, so the key passes with probability 2^−L, in full lines and in empty ones.
//! (This is the idea of the XOR and Ribbon filters, Dillinger and Walzer 2021, in the smallest system that a CPU reads at
//! once: with lanes, a probe is one AND, one population count and one comparison, and it touches no second line.)
//!
//! # Bumping
//! `R` unknowns satisfy about `R` equations: random vectors stay independent until there are `R` − 1.61 of them on average (Σ over
//! d ≥ 0 of 1 − Π_{j>d} (1 − 2^−j) = 1.61), and a dependent one is contradictory unless its fingerprint happens to fit. Lines receive a
//! binomial number of keys, so some receive more. Each key has a *rank* in its line. The builder adds equations in descending rank until
//! the first contradiction, at rank `t`, and sets the threshold of the line to `t` + 1. All keys with a rank below the threshold are
//! *bumped*: they are stored in the next level, a filter of the same kind over rehashed hashes. A probe whose rank is below the
//! threshold of the line that it read continues with the next level. (Bumping by thresholds:
//! Dillinger, Hübschle-Schneider, Sanders, Walzer, "Fast Succinct Retrieval and Approximate Membership using Ribbon", 2022.)
//!
//! With λ keys per line, the share of bumped keys is E\[max(0, X − C)\] / λ for X ~ Poisson(λ) and the capacity C above, about
//! 5 % for the λ chosen here, and the filter takes 512 / λ / (1 − share) bits per key. A larger λ saves bits, but costs lines per
//! probe, 1 / (1 − share); [`Width`] balances the two.
//!
//! Each level is a twentieth of the one before, so a few levels hold everything; each has at least one line. For keys that the seventh
//! level would bump (only an adversary has any), the threshold rule itself answers "maybe". A build can therefore neither fail nor loop
//! forever.
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
//! For a level of n lines, the line is the high word of hash × n, and the rank is the high word of its *low* word times 255 (65 535
//! for 16 lanes). Within a line, ranks rise with the hash, so sorting the hashes is all the grouping that a build needs. `c` is
//! the low `R` bits of the folded product (high word XOR low word) of the hash with one constant. `f` is the high `L` bits of its plain
//! product with another; for 72 rows, bits 40 to 47 of that product are the coefficients of rows 64 to 71. The hash for the next level
//! is a bijective mix. The constants are in `equation.rs`.
//!
//! # Measured
//! Sizes and rates for 1 million and for 100 million keys, including all levels, as printed by `sidebloom filter table --kind parity`
//! and `sidebloom filter table --kind parity --keys 100000000` (the standard deviation of a rate is 1 %). A test checks the limits
//! at 400,000 keys.
//!
//! | L × R | bits per key, 1 M | 100 M | false positives, 1 M | 100 M | lines per probe, 1 M | 100 M |
//! |---|---|---|---|---|---|---|
//! | 7 × 72 | 7.676 | 7.673 | 0.784 % | 0.784 % | 1.042 | 1.042 |
//! | 8 × 63 | 8.836 | 8.835 | 0.397 % | 0.389 % | 1.044 | 1.044 |
//! | 9 × 56 | 10.068 | 10.063 | 0.195 % | 0.195 % | 1.043 | 1.043 |
//! | 12 × 42 | 13.739 | 13.731 | 0.0243 % | 0.0241 % | 1.048 | 1.048 |
//! | 16 × 31 | 19.203 | 19.189 | 0.00151 % | 0.00153 % | 1.053 | 1.053 |
//!
//! Times on one thread of an Intel Xeon (Sapphire Rapids), in nanoseconds: a probe of an absent key with all lines in L2, without the
//! hash (`cargo bench -p micro --bench filter -- hot`), and the build of 10 million keys, including the sort (`… -- build`). A build
//! uses 17.6 to 19.3 bytes per key, including its input and its result (`tests/heap/parity_build_memory.rs` counts them); when
//! a [`SortHashes`] keeps the hashes elsewhere, it uses only its result. In fresh memory of a virtual machine, page faults add 1 to 20 ns
//! per key (system time).
//!
//! | L × R | AVX-512 | AVX2 | scalar | build, per key |
//! |---|---|---|---|---|
//! | 7 × 72 | 3.4 | 5.0 | 9.1 | 37 |
//! | 8 × 63 | 3.1 | 5.2 | 9.5 | 35 |
//! | 9 × 56 | 3.1 | 3.8 | 7.8 | 36 |
//! | 12 × 42 | 3.2 | 4.3 | 9.2 | 34 |
//! | 16 × 31 | 3.1 | 4.2 | 8.1 | 36 |
//!
//! With a GiB of lines (`cargo bench -p micro --bench memory`, 8 and 12 lanes), a probe that waits for the one before
//! it takes 1.07 to 1.08 times as long as a plain load, which takes 219 to 224 ns. In `probe_many`, 4,096 hashes take
//! 15.3 to 15.6 ns each, the same as plain loads in consecutive batches of 32. A call with only 32 hashes takes 22 ns
//! each, because its last misses overlap with nothing; plain loads take as long when each batch waits for the one
//! before it.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub(crate) mod build;
pub(crate) mod cost;
mod entry;
mod equation;
mod layout;
pub(crate) mod probe;
mod scalar;
mod solve;
pub(crate) mod sort;
mod walk;
pub(crate) mod width;

pub use equation::ProbeHash;
pub use sort::{EachPiece, SortHashes};
pub use width::{Levels, MAX_LEVELS, Width};

#[cfg(test)]
mod tests;
