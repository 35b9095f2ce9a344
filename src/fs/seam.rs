//! The file system interface: operations on files and directories.

use super::file::{AppendFile, ReadFile};
use super::map::Map;
use crate::error::Result;
use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;

/// A file system. Every error carries the path and the operation.
///
/// A crash may undo the following, which an implementation for tests should model: bytes appended since the last `sync` of the file, and
/// creations, renames, links and removals (of directories too) since the last `sync_dir` of the parent directory.
pub trait Fs: Send + Sync + Debug {
    /// Creates a directory; its parent must exist, and it may exist already. Stores use [`create_dir_durably`](super::create_dir_durably).
    fn create_dir(&self, path: &Path) -> Result<()>;
    /// The names in a directory, in any order, without those that are not UTF-8 (no store file has such a name).
    fn list(&self, dir: &Path) -> Result<Vec<String>>;
    /// The length of a file in bytes; `None` if the path does not exist.
    fn file_len(&self, path: &Path) -> Result<Option<u64>>;
    /// Creates a file for appending; it must not exist.
    fn create(&self, path: &Path) -> Result<Box<dyn AppendFile>>;
    /// Opens an existing file for appending at its end.
    fn append(&self, path: &Path) -> Result<Box<dyn AppendFile>>;
    /// Opens a file for reading at offsets.
    fn open(&self, path: &Path) -> Result<Arc<dyn ReadFile>>;
    /// Maps a whole file, read-only. An implementation without mappings returns [`Map::copied`].
    ///
    /// ```compile_fail,E0133
    /// use sidebloom::fs::{Fs, RealFs};
    /// let map = RealFs.map("a file that anybody may change".as_ref()); // Needs the promise below.
    /// ```
    ///
    /// # Safety
    /// Nobody may change or truncate the file while the map exists, because its bytes are exposed as a plain slice.
    unsafe fn map(&self, path: &Path) -> Result<Map>;
    /// Renames, replacing the target atomically.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;
    /// Unlinks a file. Open readers and maps keep working.
    fn remove(&self, path: &Path) -> Result<()>;
    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> Result<()>;
    /// Gives a file a second name; the target must not exist.
    fn hard_link(&self, from: &Path, to: &Path) -> Result<()>;
    /// Makes the directory's entries durable.
    fn sync_dir(&self, dir: &Path) -> Result<()>;
    /// Locks a file until the returned guard is dropped or the process ends. An exclusive lock creates a missing file. Returns
    /// [`Error::Locked`](crate::Error::Locked) at once if the lock is held.
    fn lock(&self, path: &Path, mode: LockMode) -> Result<Box<dyn LockGuard>>;
}

/// The kind of lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockMode {
    /// One holder, who may write.
    Exclusive,
    /// Any number of holders, who only read.
    Shared,
}

/// A held lock.
pub trait LockGuard: Send + Sync + Debug {}
