//! Guards published and read through an object store, in memory or in a directory.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop where it is")]

#[path = "../support/forged.rs"]
mod forged;

mod both_kinds;
mod cache;
mod damage;
mod one_publisher;
mod publish;
mod staleness;
mod support;
