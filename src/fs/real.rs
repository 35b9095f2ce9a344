//! [`Fs`] on the operating system.

use super::file::{AppendFile, ReadFile};
use super::map::Map;
use super::seam::{Fs, LockGuard, LockMode, ReaderLocks, Stamp};
use crate::error::{Error, Result};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The operating system's files.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealFs;

#[derive(Debug)]
struct RealFile {
    path: PathBuf,
    file: File,
}

#[derive(Debug)]
struct RealLock(RealFile);

impl LockGuard for RealLock {}

impl Drop for RealLock {
    /// Unlocks explicitly: after a mere close, a process that was forked meanwhile and has not called exec yet would keep the lock.
    fn drop(&mut self) {
        let _ = self.0.file.unlock(); // Fails only if the lock is not held.
    }
}

impl AppendFile for RealFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|e| Error::io("write", &self.path, e))
    }

    fn sync(&mut self) -> Result<()> {
        self.file.sync_data().map_err(|e| Error::io("sync", &self.path, e))
    }
}

impl ReadFile for RealFile {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        self.file.read_exact_at(buf, offset).map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => Error::corruption(
                &self.path,
                offset,
                format!("the file ends before the {} bytes expected here", buf.len()),
            ),
            _ => Error::io("read", &self.path, e),
        })
    }

    #[cfg(target_os = "linux")]
    fn will_need(&self, offset: u64, bytes: u64) {
        let _ = rustix::fs::fadvise(&self.file, offset, bytes.try_into().ok(), rustix::fs::Advice::WillNeed);
    }

    fn len(&self) -> Result<u64> {
        self.file.metadata().map(|m| m.len()).map_err(|e| Error::io("inspect", &self.path, e))
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

fn open_with(options: &OpenOptions, op: &'static str, path: &Path) -> Result<RealFile> {
    let file = options.open(path).map_err(|e| Error::io(op, path, e))?;
    Ok(RealFile { path: path.to_path_buf(), file })
}

impl Fs for RealFs {
    fn create_dir(&self, path: &Path) -> Result<()> {
        match std::fs::create_dir(path) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists || !path.is_dir() => {
                Err(Error::io("create directory", path, e))
            }
            _ => Ok(()),
        }
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        let list = || -> io::Result<Vec<String>> {
            let names = std::fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name().into_string().ok()));
            names.filter_map(Result::transpose).collect()
        };
        list().map_err(|e| Error::io("list", dir, e))
    }

    fn file_len(&self, path: &Path) -> Result<Option<u64>> {
        match std::fs::metadata(path) {
            Ok(metadata) => Ok(Some(metadata.len())),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Error::io("inspect", path, e)),
        }
    }

    fn stamp(&self, path: &Path) -> Result<Option<Stamp>> {
        match std::fs::metadata(path) {
            Ok(its) => {
                let changed = i128::from(its.ctime()) * 1_000_000_000 + i128::from(its.ctime_nsec());
                Ok(Some(Stamp { file: its.ino(), len: its.len(), changed }))
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Error::io("inspect", path, e)),
        }
    }

    fn create(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        Ok(Box::new(open_with(OpenOptions::new().append(true).create_new(true), "create", path)?))
    }

    fn append(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        Ok(Box::new(open_with(OpenOptions::new().append(true), "open", path)?))
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn ReadFile>> {
        let opened = open_with(OpenOptions::new().read(true), "open", path)?;
        // Point reads need one block, and scans request large ranges themselves: the kernel's read-ahead would only read more.
        #[cfg(target_os = "linux")]
        let _ = rustix::fs::fadvise(&opened.file, 0, None, rustix::fs::Advice::Random);
        Ok(Arc::new(opened))
    }

    unsafe fn map(&self, path: &Path) -> Result<Map> {
        let file = File::open(path).map_err(|e| Error::io("open", path, e))?;
        // SAFETY: the caller makes the same promise.
        unsafe { Map::of_file(&file) }.map_err(|e| Error::io("map", path, e))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        std::fs::rename(from, to).map_err(|e| Error::io("rename", from, e))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        std::fs::remove_file(path).map_err(|e| Error::io("remove", path, e))
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        std::fs::remove_dir(path).map_err(|e| Error::io("remove directory", path, e))
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        std::fs::hard_link(from, to).map_err(|e| Error::io("link", to, e))
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        let sync = || File::open(dir)?.sync_all();
        sync().map_err(|e| Error::io("sync directory", dir, e))
    }

    fn lock(&self, path: &Path, mode: LockMode) -> Result<Box<dyn LockGuard>> {
        let mut options = OpenOptions::new();
        let held = match mode {
            LockMode::Exclusive => open_with(options.write(true).create(true).truncate(false), "open", path)?,
            LockMode::Shared => open_with(options.read(true), "open", path)?,
        };
        let outcome = match mode {
            LockMode::Exclusive => held.file.try_lock(),
            LockMode::Shared => held.file.try_lock_shared(),
        };
        match outcome {
            Ok(()) => Ok(Box::new(RealLock(held))),
            Err(TryLockError::WouldBlock) => Err(Error::Locked { path: path.to_path_buf() }),
            Err(TryLockError::Error(e)) => Err(Error::io("lock", path, e)),
        }
    }

    #[cfg(target_os = "linux")]
    fn reader_locks(&self, path: &Path) -> Result<Option<Box<dyn ReaderLocks>>> {
        match File::open(path) {
            Ok(file) => Ok(Some(Box::new(super::reader_locks::ByteLocks::new(file, path)))),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Error::io("open", path, e)),
        }
    }
}
