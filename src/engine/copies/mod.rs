//! Copies of a store: the files of one moment, and a second store made of them.

mod checkpoint;
mod copied_log;
pub(crate) mod file_set;
pub(crate) mod from_outside;
pub(crate) mod new_copy;
