//! Tests of the store through its public interface, in one binary, since each binary links everything again.
//! `cargo test --test store durability::` runs one folder, `cargo test --test store i4_crash` one module.
//! README.md says which tests check which rule of the design.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop where it is"
)]

#[path = "../../fixtures/all_kinds.rs"]
#[allow(dead_code, reason = "the unit tests use all of it")]
mod all_kinds;
#[path = "../../fixtures/archive.rs"]
mod archive;
#[path = "../support/mod.rs"]
mod support;

mod backup;
mod compaction;
mod damage;
mod durability;
mod expiry;
mod filters;
mod follow;
mod ingest;
mod keyspaces;
mod opening;
mod reads;
mod repair;
mod whole;
mod writes;
