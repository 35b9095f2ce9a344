//! The file system interface: operations on files and directories.

use super::file::{AppendFile, ReadFile};
use super::map::Map;
use crate::error::{Error, Result};
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file system. Every error carries the path and the operation.
///
/// A crash may undo the following, which an implementation for tests should model: bytes appended since the last `sync` of the file, and
/// creations, renames, links and removals (of directories too) since the last `sync_dir` of the parent directory.
pub trait Fs: Send + Sync + Debug {
    /// The path from the root, where a working directory can change. By default the path as it is.
    fn absolute(&self, path: &Path) -> Result<PathBuf> {
        Ok(path.to_path_buf())
    }
    /// This file system with a handle of the directory `path`: there, paths into that directory lead to it even after it was moved and
    /// something else was put in its place. All other paths lead to where they lead here. `None` if there are no handles, as by default.
    fn open_dir(&self, path: &Path) -> Result<Option<Arc<dyn Fs>>> {
        _ = path;
        Ok(None)
    }
    /// This file system, where new files have these permission bits (those of `chmod`), and new directories may also be searched by those
    /// who may read. `None` if files have no such bits, as by default.
    fn with_mode(&self, mode: u32) -> Option<Arc<dyn Fs>> {
        _ = mode;
        None
    }
    /// Creates a directory; its parent must exist, and it may exist already. Stores use [`create_dir_durably`](super::create_dir_durably).
    fn create_dir(&self, path: &Path) -> Result<()>;
    /// The names in a directory, in any order, without those that are not UTF-8 (no store file has such a name). A name that a rename
    /// replaces meanwhile may be missing, as it is at times on tmpfs.
    fn list(&self, dir: &Path) -> Result<Vec<String>>;
    /// The length of a file in bytes; `None` if the path does not exist.
    fn file_len(&self, path: &Path) -> Result<Option<u64>>;
    /// What tells whether a file or a directory has changed; `None` if the path does not exist.
    fn stamp(&self, path: &Path) -> Result<Option<Stamp>>;
    /// Creates a file for appending; it must not exist.
    fn create(&self, path: &Path) -> Result<Box<dyn AppendFile>>;
    /// [`create`](Self::create) for a secret: unless [`with_mode`](Self::with_mode) says who may read it, only the owner may.
    fn create_private(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        self.create(path)
    }
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
    /// [`Error::Locked`](crate::Error::Locked) at once if the lock is held. When this returns, the path leads to the locked file.
    fn lock(&self, path: &Path, mode: LockMode) -> Result<Box<dyn LockGuard>>;
    /// Opens a file for [`ReaderLocks`]. `None` if it does not exist, or there are no such locks, as by default.
    fn reader_locks(&self, path: &Path) -> Result<Option<Box<dyn ReaderLocks>>> {
        _ = path;
        Ok(None)
    }
}

/// The state of a file or a directory, to compare with an earlier one.
///
/// It differs after another file was renamed to the path, and after the file was appended to. That of a directory differs after its entries
/// have changed, unless that happened within the same tick of the clock that gives files their times, a few milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Tells files that exist at the same time apart.
    pub file: u64,
    /// The length in bytes.
    pub len: u64,
    /// When contents or attributes last changed, in nanoseconds of whatever clock.
    pub changed: i128,
}

/// Locks by which the processes that read a store beside its writer tell it which version of the store they read. They do not exclude
/// each other, and end with the process.
///
/// An error of the kind `InvalidInput` (EINVAL) or `Unsupported` (ENOSYS) says that the system has no such locks, as in gVisor and proot. Then
/// nobody can hold one.
pub trait ReaderLocks: Send + Sync + Debug {
    /// Marks a version as read, until it is released. A version that is marked already stays marked.
    fn hold(&self, version: u64) -> Result<()>;
    /// Releases a version.
    fn release(&self, version: u64);
    /// The lowest version that anybody else has marked; `None` if there is none.
    fn lowest_held(&self) -> Result<Option<u64>>;
    /// Closes the file without releasing anything, for a forked process, which shares the locks with its parent. Not used again after that.
    /// By default it does nothing: then the locks last until the forked process ends.
    fn abandon(&self) {}
}

/// Whether an error of [`ReaderLocks`] says that nobody can hold such a lock.
pub(crate) fn has_no_reader_locks(error: &Error) -> bool {
    use std::io::ErrorKind::{InvalidInput, Unsupported};
    matches!(error, Error::Io { op: "lock", source, .. } if matches!(source.kind(), InvalidInput | Unsupported))
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
pub trait LockGuard: Send + Sync + Debug {
    /// The [`Stamp::file`] of the locked file; `None` if nobody can remove or replace it, as by default.
    fn file(&self) -> Option<u64> {
        None
    }
    /// The permission bits of the locked file; `None` if it has none, as by default.
    fn mode(&self) -> Option<u32> {
        None
    }
}

/// The file system where new files have the permissions of a locked file, if it has any with which its owner can go on.
pub fn with_mode_of(fs: Arc<dyn Fs>, lock: &dyn LockGuard) -> Arc<dyn Fs> {
    let usable = lock.mode().filter(|mode| mode & 0o600 == 0o600);
    usable.and_then(|mode| fs.with_mode(mode)).unwrap_or(fs)
}

/// A handle of a directory ([`Fs::open_dir`]), or `fs` itself if it has none.
pub fn open_dir(fs: &Arc<dyn Fs>, path: &Path) -> Result<Arc<dyn Fs>> {
    Ok(fs.open_dir(path)?.unwrap_or_else(|| Arc::clone(fs)))
}
