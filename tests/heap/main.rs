//! Tests with limits on memory. They have their own process, since the allocator counts process-wide.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

mod allocator;
#[path = "../support/mod.rs"]
mod support;

mod compaction_memory;
mod no_memory_for_filters;
mod parity_build_memory;
