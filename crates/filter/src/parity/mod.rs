//! The parity filter: each 64-byte line is a small linear system over GF(2). It is static: all keys must be
//! known when it is built.
//!
//! Choose it for key sets that never change, such as segments. At equal size it has a sixth of the false
//! positives of a [`blocked`](crate::blocked) Bloom filter (at 8.8 bits per key, 0.28 % instead of 1.6 %),
//! and reads 1.05 lines per probe instead of one. It takes 4 % more than the least that a filter of its rate
//! can take. `docs/parity.md` has the reasons, a model, and a comparison.
//!
//! # Lanes
//! A line holds `L` lanes of `R` bits and a control byte. Read crosswise, the lanes are a table of `R` rows
//! of `L` bits: lane `j` is bit `j` of every row. A hash gives a vector `c` of `R` coefficients and a
//! fingerprint `f` of `L` bits. A probe first tests whether
//!
//! > for each lane j: parity(lane_j & c) = bit j of f
//!
//! that is, whether the XOR of the rows that `c` selects is `f`. The builder makes this true for members:
//! every member adds one linear equation (per lane, all with the same left side `c`) to its line, and
//! elimination finds a table that solves them. For any other key, `f` is independent of the table, so the key
//! passes with probability 2^−L, in full lines and in empty ones. (This is the idea of the XOR and Ribbon
//! filters, Dillinger and Walzer 2021, in the smallest system that a CPU reads at once: with lanes, a probe
//! is one AND, one population count and one comparison, and it touches no second line.)
//!
//! # Bumping
//! `R` unknowns satisfy about `R` equations: random vectors stay independent until there are `R` − 1.61 of
//! them on average (Σ over d ≥ 0 of 1 − Π_{j>d} (1 − 2^−j) = 1.61), and a dependent one is contradictory
//! unless its fingerprint happens to fit. Lines receive a binomial number of keys, so some receive more. Each
//! key has a *place* in its line, and a *rank* by its place. The builder adds equations in descending places
//! until the first contradiction, at rank `t`, and sets the threshold of the line to `t` + 1. All keys with a
//! rank below the threshold are *bumped*: they are stored in the next level, a filter of the same kind over
//! rehashed hashes. A probe whose rank is below the threshold of the line that it read continues with the
//! next level. (Bumping by thresholds: Dillinger, Hübschle-Schneider, Sanders, Walzer, "Fast Succinct
//! Retrieval and Approximate Membership using Ribbon", 2022.)
//!
//! Each level is a twentieth of the one before, so a few levels hold everything; each has at least one line.
//! For keys that the seventh level would bump (only an adversary has any), the threshold rule itself answers
//! "maybe". A build can therefore neither fail nor loop forever.
//!
//! # Checks across the lanes
//! A line with fewer keys than rows leaves `L` bits free for each row that is no pivot. Checks use them: a
//! *check* wants a parity of bits from all words, which another vector selects, and a key that is not a
//! member passes it with probability 1/2. Each member of the line has as many checks as the line's *quota*
//! says, so a line with few keys has fewer false positives; lines that bump also have a few, for the 1.61
//! rows that they lose. Only keys that pass all lanes reach the checks: 0.4 % of the absent ones, so checks
//! add little to the cost of a miss.
//!
//! # The control byte
//! Bit 63 of the eight words, word 0 lowest. With t the threshold, q the quota in sixteenths, and s 0 to 3:
//!
//! | byte | t | q |
//! |---|---|---|
//! | 0 to 63 | 0 | the byte |
//! | 64 + 4 (t − 1) + s | 1 to 48 | s × 2; × 3 with 10 and 11 lanes, × 4 with 12, × 8 with 16 |
//!
//! The place u of a key is a fraction of the line, 0 ≤ u < 1, of which the rank takes the first 32 binary
//! digits: it is ⌊128 u⌋ (⌊96 u⌋ with 12 lanes, ⌊80 u⌋ with 16), and 47 if that is more. A key has ⌊q / 16⌋
//! checks, and one more if u ≥ 1 − (q mod 16) / 16.
//!
//! # Where the bits are
//! With `w0` … `w7` the little-endian words of a line, bits numbered from 0, and bit 63 of each for control:
//!
//! | L × R | lanes 0 to 7 | the other rows |
//! |---|---|---|
//! | 7 × 72 | rows 0 to 62 of lane j: bits 0 to 62 of `wj` | rows 63 to 71 of lane j: bits 9j to 9j + 8 of `w7` |
//! | 8 × 63 | bits 0 to 62 of `wj` | |
//! | 9 × 56 | bits 0 to 55 of `wj` | lane 8: bits 56 to 62 of `w0`, then of `w1`, … `w7` |
//! | 10 × 50 | bits 0 to 49 of `wj` | lane 8: bits 50 to 62 of `w0` to `w2`, 50 to 60 of `w3`; lane 9: the same of `w4` to `w7` |
//! | 11 × 45 | bits 0 to 44 of `wj` | bits 45 to 62 of all words, one after the other: 45 for lane 8, then 9, then 10 |
//! | 12 × 42 | bits 0 to 41 of `wj` | lane 8 + i: bits 42 to 62 of `w(2i)`, then of `w(2i+1)` |
//! | 16 × 31 | bits 0 to 30 of `wj` | lane 8 + i: bits 31 to 61 of `wi` |
//!
//! Left-over bits (4 with 10 lanes, 9 with 11, 8 with 16) belong to no lane. Checks read them like others.
//!
//! # From a hash to its equations
//! For a level of n lines, the line is the high word of hash × n, and the place is its *low* word. Within a
//! line, places rise with the hash, so sorting the hashes is all the grouping that a build needs. `p` is the
//! folded product (high word XOR low word) of the hash with one constant, and `c` is its low `R` bits. `f` is
//! the high `L` bits of the hash's plain product with another constant; for 72 rows, `c` is the low 63 bits
//! of `p`, then bits 39 to 47 of the plain product. Check e (0 to 3) selects in word j the bits of `p`
//! rotated left by 2 (8e + (2e + 1) j mod 8) + 1, without bit 63 and, with 7 lanes, without `w7`; it wants
//! bit 32 + e of the plain product. The hash for the next level is a bijective mix. The constants are in
//! `equation.rs`.
//!
//! # Measured
//! Sizes and rates for 1 million and for 100 million keys, including all levels, from
//! `sidebloom filter table --kind parity` and `sidebloom filter table --kind parity --keys 100000000`. The
//! rate comes from the lines themselves; the tests compare it with probes. The bound is log2(1 / rate) bits
//! per key.
//!
//! | width | L × R | bits per key, 1 M | 100 M | false positives | bits ÷ bound | lines per probe |
//! |---|---|---|---|---|---|---|
//! | 7 | 7 × 72 | 7.686 | 7.682 | 0.596 % | 1.04 | 1.043 |
//! | 8 | 8 × 63 | 8.849 | 8.848 | 0.278 % | 1.04 | 1.046 |
//! | 9 | 9 × 56 | 10.085 | 10.079 | 0.128 % | 1.05 | 1.044 |
//! | 10 | 10 × 50 | 11.391 | 11.392 | 0.0570 % | 1.06 | 1.046 |
//! | 11 | 11 × 45 | 12.786 | 12.776 | 0.0249 % | 1.07 | 1.049 |
//! | 12 | 12 × 42 | 13.759 | 13.754 | 0.0128 % | 1.06 | 1.049 |
//! | 16 | 16 × 31 | 19.451 | 19.447 | 0.000578 % | 1.12 | 1.049 |
//!
//! Times on one thread of an AMD EPYC (Zen 5), in nanoseconds: a probe of an absent key with all lines in L2,
//! without the hash (`cargo bench -p micro --bench filter -- hot`), and the build of 10 million keys,
//! including the sort (`… -- build`). A build uses 17.6 to 19.3 bytes per key, including its input and its
//! result (`cargo test --test heap -- --nocapture` prints them); when a [`SortHashes`] keeps the hashes
//! elsewhere, it uses only its result.
//!
//! | width | AVX-512 | AVX2 | scalar | build, per key, AVX-512 |
//! |---|---|---|---|---|
//! | 7 | 3.3 | 3.9 | 7.6 | 32 |
//! | 8 | 2.7 | 3.4 | 5.9 | 31 |
//! | 9 | 2.6 | 3.4 | 5.7 | 33 |
//! | 10 | 2.7 | 3.4 | 5.8 | 37 |
//! | 11 | 2.8 | 3.5 | 5.9 | 41 |
//! | 12 | 3.0 | 3.5 | 6.0 | 40 |
//! | 16 | 3.0 | 3.5 | 8.1 | 40 |
//!
//! With a GiB of lines (`cargo bench -p micro --bench memory`, 8 and 12 lanes), a probe that waits for the
//! previous one takes 1.06 to 1.07 times as long as a plain load, which takes 220 to 229 ns. In `probe_many`,
//! 4,096 hashes take 9.8 to 9.9 ns each, plain loads in consecutive batches of 32 take 7.3 to 7.4. A call
//! with only 32 hashes takes 14 to 16 ns each, because its last misses overlap with nothing; plain loads take
//! 11.5 when each batch waits for the previous one.

mod algebra;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod avx512_algebra;
pub(crate) mod build;
mod checks;
pub(crate) mod cost;
mod entry;
pub(crate) mod equation;
mod layout;
mod line_builder;
mod loops;
pub(crate) mod probe;
mod scalar;
mod solve;
pub(crate) mod sort;
pub(crate) mod width;

pub use equation::ProbeHash;
pub use loops::{ProbeLoop, Probes};
pub use sort::{EachPiece, SortHashes};
pub use width::{Levels, MAX_LEVELS, Width};

#[cfg(test)]
mod tests;
