//! Parity filters as the filter policy of real databases.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

mod both_ways;
mod damage;
mod figures;
mod ingest;
mod model;
mod partitions;
mod prefixes;
mod strings;
mod support;
mod threads;
