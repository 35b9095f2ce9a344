//! Opening: which paths, options and files a store accepts, what it creates, and its lock.

mod i13_lock;
mod i13_own_files;
#[cfg(target_os = "linux")]
mod irregular_files;
mod key_hash;
mod limits;
mod modes;
mod open_files;
mod releases;
mod set_options;
