//! The binary as a user runs it: its output, its exit codes, and the files it leaves.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a step that fails is a test that fails")]

mod backup;
mod bench;
mod copy;
mod expiring;
mod filter;
mod guard;
#[cfg(feature = "postgres")]
mod guard_postgres;
mod guard_remote;
mod guard_serve;
mod guard_serve_expiring;
mod guard_serve_hostile;
mod guard_serve_transactions;
mod keyspaces;
mod load;
mod load_files;
mod metrics;
#[cfg(feature = "postgres")]
#[path = "../../../postgres/tests/support/mod.rs"]
mod postgres_support;
mod put;
mod readme;
mod remote;
mod removed_store;
mod report;
mod rows;
mod sandbox;
mod seen;
mod serve;
mod serve_hostile;
mod serve_keys;
mod serve_network;
mod serve_transactions;
mod serve_turns;
mod server;
mod shown;
mod store;
mod usage;
mod wait;
