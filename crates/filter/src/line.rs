//! Lines, the unit of memory of every filter, and the line of a hash.
//!
//! # From a hash to a line (frozen: stored filters depend on it)
//! The line is the *multiply-shift range* of the hash, `(hash × lines) >> 64` (Lemire, "Fast random integer
//! generation in an interval", 2019): it depends on the high bits, is even for any number of lines, and takes
//! no division. Positions within the line come from other bits. [`blocked`](crate::blocked) takes the low 32
//! bits; with at most 2³² lines, the hashes that share a line still take every value of them.
//! [`parity`](crate::parity) takes the fraction that the shift drops and a mix of all bits.

use std::sync::atomic::AtomicU64;

/// The size of a line in bytes. It is one cache line, so one probe costs one cache miss.
pub const LINE_BYTES: usize = 64;

/// The size of a line in bits.
pub const LINE_BITS: usize = 8 * LINE_BYTES;

/// The most lines of one filter (256 GiB). The line depends on a hash's high 32 bits, so the low ones stay
/// free.
pub const MAX_LINES: u64 = 1 << 32;

/// One line: 512 bits. Bit `p` is bit `p % 8` of byte `p / 8`.
pub type Line = [u8; LINE_BYTES];

/// A line that several threads change.
#[derive(Default)]
#[repr(C, align(64))]
pub(crate) struct AtomicLine(pub [AtomicU64; LINE_BYTES / 8]);

const _: () = assert!(size_of::<AtomicLine>() == LINE_BYTES);

/// The line of a hash among `lines`, which must not be 0.
#[inline]
pub(crate) fn line_of(hash: u64, lines: usize) -> usize {
    ((u128::from(hash) * lines as u128) >> 64) as usize
}
