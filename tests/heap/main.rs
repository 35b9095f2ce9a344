//! Tests that bound the memory in use. A process of their own, because the allocator counts for all of it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

mod allocator;
#[path = "../support/mod.rs"]
mod support;

mod compaction_memory;
mod parity_build_memory;
