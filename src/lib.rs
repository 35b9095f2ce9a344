//! An embedded key-value store whose lookups for missing keys cost a cache line instead of a disk read.

pub mod error;
pub mod fs;
pub mod id;

mod codec;
mod db;
pub mod filter;
#[cfg(test)]
mod golden;
mod hash;
mod key;
mod manifest;
mod memtable;
mod merge;
mod segment;
mod sidecar;
mod wal;

pub use db::{
    Db, Durability, FilterPolicy, LevelStats, Options, Range, RebuildReport, RepairReport, Snapshot, Stats,
    VerifyReport, repair,
};
pub use error::{Error, Result};
pub use key::{MAX_KEY_BYTES, MAX_VALUE_BYTES, Value};
pub use segment::Compression;
pub use sidecar::{Residency, read_filter, receive_filter, send_filter, write_filter};
pub use wal::Batch;

#[cfg(test)]
extern crate self as sidebloom;
/// The simulated file system of the integration tests; it names this crate from outside.
#[cfg(test)]
#[path = "../tests/support/mod.rs"]
mod support;
