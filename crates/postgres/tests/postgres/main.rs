//! A guard in front of a real PostgreSQL server, started for the tests from the system's packages.
//!
//! Without an installed server, the tests print a warning and do nothing; with
//! `SIDEBLOOM_TEST_POSTGRES=required` they fail.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop where it is"
)]

mod catalog;
mod follow;
mod spellings;
mod strangers;
#[path = "../support/mod.rs"]
mod support;
mod tls;
