//! A read-only tree of files that are elsewhere: in memory, or under other names.

use super::file::{AppendFile, ReadFile};
use super::map::Map;
use super::traits::{Fs, LockGuard, LockMode, Stamp};
use crate::error::{Error, IoOp, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where a file's bytes are.
#[derive(Debug, Clone)]
pub(crate) enum TreeFile {
    /// In memory.
    Bytes(Arc<[u8]>),
    /// In another file, which nobody changes.
    File(PathBuf),
    /// Not available: the file only has a name.
    Missing,
}

/// A file system with only these files and their directories. It cannot be changed, and its locks are free.
#[derive(Debug)]
pub(crate) struct ReadOnlyTreeFs {
    /// Has the other files.
    pub fs: Arc<dyn Fs>,
    /// By their paths.
    pub files: BTreeMap<PathBuf, TreeFile>,
}

#[derive(Debug)]
struct NoLock;

impl LockGuard for NoLock {}

/// A file in memory.
#[derive(Debug)]
struct BytesFile {
    bytes: Arc<[u8]>,
    path: PathBuf,
}

impl ReadFile for BytesFile {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let found = self.bytes.get(start..).and_then(|rest| rest.get(..buf.len()));
        let Some(found) = found else {
            return Err(Error::corruption(&self.path, offset, "the file ends here"));
        };
        buf.copy_from_slice(found);
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

impl ReadOnlyTreeFs {
    fn find(&self, path: &Path, op: IoOp) -> Result<&TreeFile> {
        self.files.get(path).ok_or_else(|| Error::io(op, path, ErrorKind::NotFound.into()))
    }

    fn is_dir(&self, path: &Path) -> bool {
        self.files.keys().any(|file| file != path && file.starts_with(path))
    }
}

fn missing(path: &Path, op: IoOp) -> Error {
    Error::io(op, path, std::io::Error::new(ErrorKind::Unsupported, "the file was left where it is"))
}

impl Fs for ReadOnlyTreeFs {
    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        let below = self.files.keys().filter_map(|file| file.strip_prefix(dir).ok()?.iter().next()?.to_str());
        Ok(below.map(str::to_owned).collect::<BTreeSet<String>>().into_iter().collect())
    }

    fn file_len(&self, path: &Path) -> Result<Option<u64>> {
        match self.files.get(path) {
            Some(TreeFile::Bytes(bytes)) => Ok(Some(bytes.len() as u64)),
            Some(TreeFile::File(elsewhere)) => self.fs.file_len(elsewhere),
            Some(TreeFile::Missing) => Ok(Some(0)),
            None => Ok(self.is_dir(path).then_some(0)),
        }
    }

    /// Nothing changes.
    fn stamp(&self, path: &Path) -> Result<Option<Stamp>> {
        Ok(self.file_len(path)?.map(|len| Stamp { file: 0, len, changed: 0 }))
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn ReadFile>> {
        match self.find(path, IoOp::Open)? {
            TreeFile::Bytes(bytes) => {
                Ok(Arc::new(BytesFile { bytes: Arc::clone(bytes), path: path.to_path_buf() }))
            }
            TreeFile::File(elsewhere) => self.fs.open(elsewhere),
            TreeFile::Missing => Err(missing(path, IoOp::Open)),
        }
    }

    unsafe fn map(&self, path: &Path) -> Result<Map> {
        match self.find(path, IoOp::Map)? {
            TreeFile::Bytes(bytes) => Map::copied(bytes).map_err(|error| Error::io(IoOp::Map, path, error)),
            // SAFETY: the caller makes the same promise.
            TreeFile::File(elsewhere) => unsafe { self.fs.map(elsewhere) },
            TreeFile::Missing => Err(missing(path, IoOp::Map)),
        }
    }

    fn lock(&self, _: &Path, _: LockMode) -> Result<Box<dyn LockGuard>> {
        Ok(Box::new(NoLock))
    }

    fn sync_dir(&self, _: &Path) -> Result<()> {
        Ok(())
    }

    fn create_dir(&self, _: &Path) -> Result<()> {
        Err(Error::ReadOnly)
    }

    fn create(&self, _: &Path) -> Result<Box<dyn AppendFile>> {
        Err(Error::ReadOnly)
    }

    fn append(&self, _: &Path) -> Result<Box<dyn AppendFile>> {
        Err(Error::ReadOnly)
    }

    fn rename(&self, _: &Path, _: &Path) -> Result<()> {
        Err(Error::ReadOnly)
    }

    fn remove(&self, _: &Path) -> Result<()> {
        Err(Error::ReadOnly)
    }

    fn remove_dir(&self, _: &Path) -> Result<()> {
        Err(Error::ReadOnly)
    }

    fn hard_link(&self, _: &Path, _: &Path) -> Result<()> {
        Err(Error::ReadOnly)
    }
}
