//! A RocksDB behind a sidebloom guard. Use it when a RocksDB gets many lookups for keys that it does not have: [`GuardedRocks`] has the
//! calls of a database, and answers most of those lookups from memory.
//!
//! Use RocksDB's own Bloom filter instead when other code writes to the database, or when lookups rarely miss.

#![forbid(unsafe_code)]

mod guarded_rocks;
mod source;

pub use guarded_rocks::{GuardedBatch, GuardedRocks};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
