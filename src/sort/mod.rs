//! External sorting: any number of fixed-width records, in bounded memory.
//!
//! ```
//! use sidebloom::fs::RealFs;
//! use sidebloom::internal::ExternalSorter;
//! use std::sync::Arc;
//! # fn main() -> sidebloom::Result<()> {
//! # let dir = tempfile::tempdir()
//! #     .map_err(|e| sidebloom::Error::io(sidebloom::IoOp::Create, "a temporary directory", e))?;
//! # let path = dir.path().join("sort.tmp");
//! let mut sorter = ExternalSorter::new(Arc::new(RealFs), &path, 64 << 20);
//! for hash in [7u64, 3, 7] {
//!     sorter.push(hash)?;
//! }
//! let counted = sorter.counted()?.collect::<sidebloom::Result<Vec<_>>>()?;
//! assert_eq!(counted, [(3, 1), (7, 2)]);
//! # Ok(()) }
//! ```
//!
//! # How it works
//! 1. Records are collected in memory. A full buffer is sorted and appended to one temporary file: a *chunk*.
//! 2. To merge, each chunk is read sequentially through its own buffer. The smallest last record of all these
//!    buffers is a bound: no record at or below it is still unread. Everything up to the bound is copied to
//!    one piece and sorted there (a merge of a few presorted ranges, which the standard library's stable sort
//!    recognizes), and the emptied buffers are refilled.
//!
//! All chunks share one file, so a merge needs one descriptor, no matter how many chunks there are. Each
//! chunk's digest is kept in memory and compared when the chunk has been read to its end.

mod merge;
mod record;
mod sorter;
#[cfg(test)]
mod tests;

pub use record::Record;
pub use sorter::{Counted, ExternalSorter};
