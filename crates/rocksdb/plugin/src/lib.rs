//! Parity filters as a filter policy of RocksDB.
//!
//! This package is the Rust part: it parses policy strings, builds the filter of an SST file, stores it in a
//! filter block and probes it there, as C functions that the C++ plug-in in `sidebloom/` calls. Use it
//! through one of these:
//!
//! - `sidebloom-rocksdb` for programs that use the `rocksdb` crate,
//! - `sidebloom-rocksdb-shared` for programs that link or preload a shared library,
//! - RocksDB's own build, with `sidebloom/` as one of its plug-ins.
//!
//! No function unwinds into C++, and none aborts for lack of memory while building a filter.

mod block;
mod builder;
mod ffi;
mod policy;
mod reader;
mod size;

pub use policy::{Policy, PolicyError};
