//! The commands, each a function of its [call](super::command::Call).

pub mod about;
pub mod acl;
pub mod bloom;
pub mod client;
pub mod config;
pub mod cuckoo;
pub mod dump;
pub mod expire;
pub mod glob;
mod guard_info;
pub mod info;
pub mod insert_options;
pub mod item_expiry;
pub mod keys;
mod numbers;
pub mod session;
pub mod watch;
