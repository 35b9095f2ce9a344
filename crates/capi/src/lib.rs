//! The C interface of sidebloom.
//!
//! The documentation for C programs is the header, `include/sidebloom.h`, which is generated from these
//! sources; [README.md](https://github.com/sidebloom/sidebloom/tree/main/crates/capi) shows how to build and
//! link it.
//!
//! Choose it for programs in C, C++, Go, or another language that calls C. Rust programs use the crate
//! `sidebloom` itself, and Python has a package of its own.
//!
//! ```c
//! sb_db *db = NULL;
//! if (sb_open(SB_INTERFACE, "songs.db", NULL, &db, NULL) != SB_OK) return 1;
//! bool is_new = false;
//! sb_insert_new(db, "Sinnerman", 9, "1965", 4, &is_new, NULL);
//! sb_close(db, NULL);
//! sb_db_free(db);
//! ```
//!
//! # How a call crosses the border
//! Every function is the body of one closure, which [`boundary`] runs: it catches panics, and turns an error
//! into a code and, if the caller wants one, an error object. Before anything is read through a pointer,
//! [`bytes`] has refused null pointers, misaligned arrays and lengths that no memory can have. What may be
//! closed while other threads use it is in a [`handle`].
//!
//! # Safety
//! No function can check that a pointer which is not null points to what its type says, to as many elements
//! as the length says, and to an object that was not freed. That is the caller's promise.

// What every function uses.
pub mod boundary;
pub mod handle;

// In the order of the header.
pub mod version;

pub mod error;

pub mod bytes;

pub mod value;

pub mod options;

pub mod db;

pub mod conditional;

pub mod batch;

pub mod snapshot;

pub mod iterator;

pub mod keyspace;

pub mod maintenance;

pub mod stats;

pub mod filter;

pub mod filter_build;

pub mod filter_query;

pub mod guard;
