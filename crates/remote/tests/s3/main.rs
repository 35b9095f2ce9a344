//! Publishing and reading over the S3 protocol: an S3 server behind a proxy that counts requests and makes
//! some of them fail.
//!
//! Without a server, the tests print a warning and do nothing: see `support/moto.rs`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a step that fails is a test that fails")]

#[path = "../support/moto.rs"]
mod moto;
#[path = "../support/proxy.rs"]
mod proxy;

mod bucket;
mod faults;
mod large;
mod lookups;
mod lost_answers;
mod proxied;
mod race;
mod refusals;
