//! A guard in front of a real SQLite database.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop where it is"
)]

mod crash;
mod keys;
mod quoting;
mod support;
