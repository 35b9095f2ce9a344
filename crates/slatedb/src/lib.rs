//! sidebloom for users of [SlateDB](slatedb), the LSM tree on object storage:
//!
//! - [`ParityFilterPolicy`]: **parity filters inside the SST files**, in place of SlateDB's Bloom filters.
//!   Reads and writes stay SlateDB's.
//! - [`export`] and [`import`]: **copies of a store to a SlateDB, and back.**
//!
//! Choose the filters if you use SlateDB and lookups of missing keys cost you requests: of the false
//! positives of a Bloom filter with 10 bits per key, they leave a third. Files written before stay readable.
//!
//! ```
//! use sidebloom_slatedb::{BloomReader, ParityFilterPolicy};
//! use slatedb::object_store::memory::InMemory;
//! use slatedb::{BloomFilterPolicy, Db};
//! use std::sync::Arc;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let db = Db::builder("songs", Arc::new(InMemory::new()))
//!     .with_filter_policies(vec![
//!         Arc::new(ParityFilterPolicy::new(10.0)?), // for all new files
//!         Arc::new(BloomReader::new(BloomFilterPolicy::new(10))), // for existing files
//!     ])
//!     .build()
//!     .await?;
//! assert!(db.get(b"Freebird").await?.is_none());
//! # db.close().await?;
//! # Ok::<(), Box<dyn std::error::Error>>(()) })?;
//! # Ok(()) }
//! ```

mod bloom_reader;
mod copy;
mod filter;
mod policy;

pub use bloom_reader::BloomReader;
pub use copy::{Copied, Error, export, import};
pub use policy::{BitsPerKeyError, ParityFilterPolicy};

/// Runs the code in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
