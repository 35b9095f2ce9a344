//! sidebloom's filters for users of RocksDB, in two forms:
//!
//! - [`register`] and [`options`]: **parity filters inside the SST files**, in place of RocksDB's Bloom
//!   filters, with 70 to 90 % fewer false positives at the same memory or less. Reads and writes stay
//!   RocksDB's. Try this first.
//! - [`GuardedRocks`]: **a guard in front of the database**, which answers lookups of missing keys without a
//!   call to RocksDB. Choose it when most lookups are for missing keys and all writes go through one program.
//!   [`GuardedRocks`] has the calls of a database.
//!
//! ```no_run
//! use rocksdb::{BlockBasedOptions, DB};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let mut table = BlockBasedOptions::default();
//!     table.set_cache_index_and_filter_blocks(true);
//!     let mut options = sidebloom_rocksdb::options(&table, "sidebloom.parity:8".parse()?)?;
//!     options.create_if_missing(true);
//!     let db = DB::open(&options, "songs")?;
//!     db.put("Thriller", "1982")?;
//!     assert!(db.get("Freebird Forever")?.is_none());
//!     Ok(())
//! }
//! ```

#![deny(unsafe_code)]

mod guarded_rocks;
#[expect(unsafe_code, reason = "the call of the C++ function that registers the policy")]
mod policy;
mod source;

pub use guarded_rocks::{GuardedBatch, GuardedRocks};
pub use policy::{Error, options, register};
pub use sidebloom_rocksdb_plugin::{Policy, PolicyError};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
