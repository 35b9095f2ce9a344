//! Named Bloom and cuckoo filters in a sidebloom store ([`filters`]), and a server that gives them and guards
//! to Redis clients ([`server`]).
//!
//! Choose it if programs in other languages ask the filters, over the protocol of RedisBloom. The command
//! `sidebloom serve` (package `sidebloom-cli`) is this server, ready to run. In a Rust program, a
//! [keyspace](https://docs.rs/sidebloom/latest/sidebloom/struct.Keyspace.html) of the store answers the same
//! questions without a server; [`filters`] adds what clients of RedisBloom expect: names, capacities,
//! refusals.
//!
//! ```
//! use sidebloom_server::filters::{Bloom, Filters, FiltersOptions, Parameters};
//!
//! # fn main() -> Result<(), sidebloom_server::filters::Refusal> {
//! # let dir = tempfile::tempdir().map_err(|_| sidebloom_server::filters::Refusal::NotFound)?;
//! let filters = Filters::open(dir.path().join("filters"), FiltersOptions::default())?;
//! let songs = filters.create(0, b"songs", Parameters::Bloom(Bloom::default()))?.filter();
//! assert_eq!(filters.add(&songs, &["Sinnerman"])?, [true]);
//! assert_eq!(filters.contains(&songs, &["Sinnerman", "Freebird"])?, [true, false]);
//! # Ok(()) }
//! ```

pub mod filters;
pub mod resp;
pub mod server;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
