//! Copies of a store: the files of one moment, and a second store made of them.

mod checkpoint;
pub(crate) mod file_set;
