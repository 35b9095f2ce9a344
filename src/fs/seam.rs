//! The I/O seam: the operations on files and directories.

use super::file::{AppendFile, ReadFile};
use super::map::Map;
use crate::error::Result;
use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;

/// A file system. Every error carries the path and what was attempted.
///
/// What a crash may undo, and so what an implementation for tests should model: bytes appended since the last `sync` of the file;
/// creations, renames, links and removals, of directories too, since the last `sync_dir` of their directory.
pub trait Fs: Send + Sync + Debug {
    /// Creates a directory in one that exists; one that is there already is fine. Stores use [`create_dir_durably`].
    fn create_dir(&self, path: &Path) -> Result<()>;
    /// The names in a directory, in no order; names that are not UTF-8 are left out (no store file has one).
    fn list(&self, dir: &Path) -> Result<Vec<String>>;
    /// The length of a file in bytes; `None` when there is nothing at the path.
    fn file_len(&self, path: &Path) -> Result<Option<u64>>;
    /// Creates a file for appending; an existing one is an error.
    fn create(&self, path: &Path) -> Result<Box<dyn AppendFile>>;
    /// Opens an existing file for appending at its end.
    fn append(&self, path: &Path) -> Result<Box<dyn AppendFile>>;
    /// Opens a file for reading at offsets.
    fn open(&self, path: &Path) -> Result<Arc<dyn ReadFile>>;
    /// Maps a whole file, read-only. An implementation without maps of its own returns [`Map::copied`].
    ///
    /// ```compile_fail,E0133
    /// use sidebloom::fs::{Fs, RealFs};
    /// let map = RealFs.map("a file that anybody may change".as_ref()); // Not without the promise below.
    /// ```
    ///
    /// # Safety
    /// Nobody changes or truncates the file while the map lives: its bytes are handed out as a plain slice.
    unsafe fn map(&self, path: &Path) -> Result<Map>;
    /// Renames, replacing the target atomically.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;
    /// Unlinks a file. Open readers and maps go on.
    fn remove(&self, path: &Path) -> Result<()>;
    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> Result<()>;
    /// Gives a file a second name; the target must not exist.
    fn hard_link(&self, from: &Path, to: &Path) -> Result<()>;
    /// Makes the directory's entries durable.
    fn sync_dir(&self, dir: &Path) -> Result<()>;
    /// Locks a file (created when missing, for an exclusive lock) until the returned guard is dropped or the process ends.
    /// [`Error::Locked`](crate::Error::Locked) at once when another holder is in the way.
    fn lock(&self, path: &Path, mode: LockMode) -> Result<Box<dyn LockGuard>>;
}

/// How a store is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockMode {
    /// One writer and nobody else.
    Exclusive,
    /// Any number of readers and no writer.
    Shared,
}

/// A held lock.
pub trait LockGuard: Send + Sync + Debug {}
