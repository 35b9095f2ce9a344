//! What somebody sees who looks at a running store: counters, metrics, events, latencies and progress.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop where it is"
)]

#[path = "../support/mod.rs"]
mod support;

mod counters;
mod dashboard;
mod events;
mod exposition;
mod latencies;
mod progress;
mod prometheus;
#[cfg(feature = "serde")]
mod serialise;
