//! What other programs can use of the comparison: a RocksDB behind a sidebloom guard.

#[cfg(feature = "rocksdb")]
mod guarded_rocks;

#[cfg(feature = "rocksdb")]
pub use guarded_rocks::{Batch, GuardedRocks, Result};
