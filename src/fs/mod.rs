//! The I/O seam (invariant I8): this crate accesses files only through [`Fs`], so that a test can fail, tear,
//! drop or reorder any operation. [`RealFs`] is the operating system's file system.

mod around;
mod directory;
mod dirs;
mod file;
mod irregular;
mod locked;
mod map;
mod own;
mod pieces;
mod presented;
mod process;
#[cfg(target_os = "linux")]
mod reader_locks;
mod real;
mod real_lock;
mod seam;
mod sector;
mod sigbus;
mod sparing;

pub(crate) use around::read_around_errors;
pub use dirs::{create_dir_durably, parent_of};
pub use file::{AppendFile, ReadFile};
pub(crate) use locked::LockedFs;
pub use map::Map;
pub(crate) use map::READ_BYTES;
pub(crate) use pieces::{HOLE_BYTES, Pieces};
pub(crate) use presented::{Presented, PresentedFs};
pub use process::Process;
pub use real::RealFs;
pub use seam::{Fs, LockGuard, LockMode, ReaderLocks, Stamp};
pub(crate) use seam::{has_no_reader_locks, open_dir, with_mode_of};
pub use sector::{SECTOR_BYTES, has_lost_sector};
pub use sigbus::catch_sigbus;
pub(crate) use sigbus::{any_fault, sigbus_faults};
pub(crate) use sparing::{Reclaim, SparingFs, with_descriptor};
