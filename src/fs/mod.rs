//! The I/O seam (invariant I8): this crate accesses files only through [`Fs`], so that a test can fail, tear,
//! drop or reorder any operation. [`RealFs`] is the operating system's file system.

mod dir_descriptor;
mod durable_dirs;
mod file;
mod file_copy;
mod irregular;
mod locked_fs;
mod lost_sector;
mod map;
mod pieces;
mod process;
mod read_only_tree;
#[cfg(target_os = "linux")]
mod reader_locks;
mod real;
mod real_lock;
mod sigbus;
mod skip_unreadable;
mod standard_descriptors;
mod store_fs;
mod traits;
mod verified;

pub use durable_dirs::{create_dir_durably, parent_of};
pub(crate) use file::read_pieces;
pub use file::{AppendFile, ReadFile};
pub(crate) use file_copy::READ_BYTES;
pub(crate) use locked_fs::LockedFs;
pub use lost_sector::{SECTOR_BYTES, has_lost_sector};
pub use map::Map;
pub(crate) use map::any_fault;
pub(crate) use pieces::{HOLE_BYTES, Pieces};
pub use process::Process;
pub(crate) use read_only_tree::{ReadOnlyTreeFs, TreeFile};
pub use real::RealFs;
pub use sigbus::catch_sigbus;
pub(crate) use sigbus::sigbus_faults;
pub(crate) use skip_unreadable::read_around_errors;
pub use standard_descriptors::fill_standard_descriptors;
pub(crate) use store_fs::{Reclaim, StoreFs, with_descriptor};
pub use traits::{Fs, LockGuard, LockMode, ReaderLocks, Stamp};
pub(crate) use traits::{has_no_reader_locks, open_dir, with_mode_of};
pub(crate) use verified::Verified;
