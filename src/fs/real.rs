//! [`Fs`] on the operating system.

use super::dir_descriptor::{At, Directory};
use super::file::{AppendFile, ReadFile};
use super::map::Map;
use super::real_lock;
#[cfg(target_os = "linux")]
use super::traits::ReaderLocks;
use super::traits::{Fs, LockGuard, LockMode, Stamp};
use crate::error::{Error, IoOp, Result};
use rustix::fs::{AtFlags, OFlags, Stat};
use rustix::io::Errno;
use std::fmt::Debug;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The operating system's files. New ones get the permissions that the process's mask leaves;
/// [`with_mode`](Fs::with_mode) chooses others.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealFs;

/// [`RealFs`] with a directory handle, or with other permissions for new files.
#[derive(Debug, Clone, Default)]
struct RealDir {
    dir: Option<Arc<Directory>>,
    mode: Option<u32>,
}

/// What distinguishes the file systems here.
pub trait OnDisk: Debug + Send + Sync + 'static {
    /// Where paths may begin.
    fn dir(&self) -> Option<&Arc<Directory>> {
        None
    }
    /// The exact permission bits of new files.
    fn mode(&self) -> Option<u32> {
        None
    }
}

impl OnDisk for RealFs {}

impl OnDisk for RealDir {
    fn dir(&self) -> Option<&Arc<Directory>> {
        self.dir.as_ref()
    }

    fn mode(&self) -> Option<u32> {
        self.mode
    }
}

fn at<'a>(fs: &'a impl OnDisk, path: &'a Path) -> At<'a> {
    At::new(fs.dir().map(Arc::as_ref), path)
}

fn create(fs: &impl OnDisk, path: &Path, default: u32) -> Result<Box<dyn AppendFile>> {
    let file = at(fs, path).create(fs.mode(), default, OFlags::APPEND);
    let file = file.map_err(|e| Error::io(IoOp::Create, path, e))?;
    Ok(Box::new(RealFile { path: path.to_path_buf(), file }))
}

fn stat(fs: &impl OnDisk, path: &Path) -> Result<Option<Stat>> {
    match at(fs, path).stat(AtFlags::empty()) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(Error::io(IoOp::Inspect, path, errno.into())),
    }
}

fn len(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

#[derive(Debug)]
struct RealFile {
    path: PathBuf,
    file: File,
}

impl AppendFile for RealFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|e| Error::io(IoOp::Write, &self.path, e))
    }

    fn sync(&mut self) -> Result<()> {
        self.file.sync_data().map_err(|e| Error::io(IoOp::Sync, &self.path, e))
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
            _ => Error::io(IoOp::Read, &self.path, e),
        })
    }

    #[cfg(target_os = "linux")]
    fn will_need(&self, offset: u64, bytes: u64) {
        let _ = rustix::fs::fadvise(&self.file, offset, bytes.try_into().ok(), rustix::fs::Advice::WillNeed);
    }

    unsafe fn map(&self) -> Result<Option<Map>> {
        // SAFETY: the caller makes the same promise.
        let map = unsafe { Map::of_file(&self.file) }.map_err(|e| Error::io(IoOp::Map, &self.path, e))?;
        map.expect_single_pages();
        Ok(Some(map))
    }

    fn len(&self) -> Result<u64> {
        self.file.metadata().map(|m| m.len()).map_err(|e| Error::io(IoOp::Inspect, &self.path, e))
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

impl<T: OnDisk> Fs for T {
    fn absolute(&self, path: &Path) -> Result<PathBuf> {
        std::path::absolute(path).map_err(|e| Error::io(IoOp::Other("find"), path, e))
    }

    fn open_dir(&self, path: &Path) -> Result<Option<Arc<dyn Fs>>> {
        let dir = Directory::open(self.dir(), path)?;
        Ok(Some(Arc::new(RealDir { dir: Some(dir), mode: self.mode() })))
    }

    fn with_mode(&self, mode: u32) -> Option<Arc<dyn Fs>> {
        Some(Arc::new(RealDir { dir: self.dir().cloned(), mode: Some(mode) }))
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        let searchable = self.mode().map(|mode| mode | (mode & 0o444) >> 2);
        at(self, path).create_dir(searchable).map_err(|errno| Error::io(IoOp::CreateDir, path, errno.into()))
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        at(self, dir).list().map_err(|errno| Error::io(IoOp::List, dir, errno.into()))
    }

    fn file_len(&self, path: &Path) -> Result<Option<u64>> {
        Ok(stat(self, path)?.map(|stat| len(&stat)))
    }

    fn stamp(&self, path: &Path) -> Result<Option<Stamp>> {
        Ok(stat(self, path)?.map(|stat| {
            let changed = i128::from(stat.st_ctime) * 1_000_000_000 + i128::from(stat.st_ctime_nsec);
            Stamp { file: stat.st_ino, len: len(&stat), changed }
        }))
    }

    fn create(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        create(self, path, 0o666)
    }

    fn create_private(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        create(self, path, 0o600)
    }

    fn append(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        let file = at(self, path).open_regular(OFlags::WRONLY | OFlags::APPEND, path)?;
        Ok(Box::new(RealFile { path: path.to_path_buf(), file }))
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn ReadFile>> {
        let file = at(self, path).open_regular(OFlags::RDONLY, path)?;
        // Point reads need one block, and scans request large ranges themselves: the kernel's read-ahead
        // would only read more.
        #[cfg(target_os = "linux")]
        let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Random);
        Ok(Arc::new(RealFile { path: path.to_path_buf(), file }))
    }

    unsafe fn map(&self, path: &Path) -> Result<Map> {
        let file = at(self, path).open_regular(OFlags::RDONLY, path)?;
        // SAFETY: the caller makes the same promise.
        unsafe { Map::of_file(&file) }.map_err(|e| Error::io(IoOp::Map, path, e))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        at(self, from).rename(at(self, to)).map_err(|errno| Error::io(IoOp::Rename, from, errno.into()))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        at(self, path).remove(AtFlags::empty()).map_err(|errno| Error::io(IoOp::Remove, path, errno.into()))
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        let removed = at(self, path).remove(AtFlags::REMOVEDIR);
        removed.map_err(|errno| Error::io(IoOp::RemoveDir, path, errno.into()))
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        at(self, from).hard_link(at(self, to)).map_err(|errno| Error::io(IoOp::Link, to, errno.into()))
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        at(self, dir).sync_dir().map_err(|errno| Error::io(IoOp::SyncDir, dir, errno.into()))
    }

    fn lock(&self, path: &Path, mode: LockMode) -> Result<Box<dyn LockGuard>> {
        real_lock::lock(at(self, path), path, mode, self.mode())
    }

    #[cfg(target_os = "linux")]
    fn reader_locks(&self, path: &Path) -> Result<Option<Box<dyn ReaderLocks>>> {
        match at(self, path).open_regular(OFlags::RDONLY, path) {
            Ok(file) => Ok(Some(Box::new(super::reader_locks::ByteLocks::new(file, path)))),
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}
