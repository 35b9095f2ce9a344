//! Helpers shared by the integration tests. Each test binary uses some of them.
#![allow(dead_code, unused_imports, reason = "every test binary compiles all of it and uses some of it")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop where it is"
)]

mod clock;
mod crash;
mod disk;
mod fault_hits;
mod faults;
mod files;
mod holes;
mod layout;
mod log_record;
mod rng;
mod sim_dir;
mod sim_file;
mod sim_fs;
mod sim_locks;
mod store;
mod test_length;
mod warnings;
mod watch;

pub use clock::TestClock;
pub use crash::Crash;
pub use faults::{Errno, Fault, OpKind, Strike};
pub use files::*;
pub use layout::*;
pub use log_record::{LogRecord, put_varint};
pub use rng::Rng;
pub use sim_fs::SimFs;
pub use store::*;
pub use test_length::sized;
pub use warnings::*;
pub use watch::Moment;

/// A directory for tests not about durability: in memory if possible, where an fsync costs nothing.
pub fn fast_dir() -> tempfile::TempDir {
    let memory = std::path::Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}
