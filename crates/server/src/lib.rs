//! Named Bloom and cuckoo filters in a sidebloom store ([`filters`]), and a server that gives them and guards
//! to Redis clients ([`server`]).

pub mod filters;
pub mod resp;
pub mod server;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
