//! Parity filters in real SlateDB databases, in memory, and copies of stores.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

mod copies;
mod counted;
mod filters;
mod lookups;
mod prefixes;
mod support;
