//! Tests of guards over in-memory databases.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop where it is"
)]

mod guard_support;
#[path = "../support/mod.rs"]
mod support;

mod backup;
mod bad_input;
mod chosen_keys;
mod crash;
mod expiring;
mod image;
mod model;
mod refresh;
mod refresh_model;
mod set;
