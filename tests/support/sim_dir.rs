//! Handles of directories on a simulated disk, and moved directories.

use super::disk::{Disk, NameOp, Tree};
use super::faults::OpKind;
use super::sim_fs::SimFs;
use sidebloom::Result;
use sidebloom::fs::{AppendFile, Fs, LockGuard, LockMode, Map, ReadFile, ReaderLocks, Stamp};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};

/// Tells handles apart.
static HANDLES: AtomicU64 = AtomicU64::new(0);

/// The disk with a handle of a directory.
#[derive(Debug, Clone)]
pub struct SimDir(Arc<Handle>);

#[derive(Debug)]
struct Handle {
    fs: SimFs,
    /// Its path when it was opened.
    path: PathBuf,
    number: u64,
    outside: Option<SimDir>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.fs.disk().handles.remove(&self.number);
    }
}

impl SimDir {
    /// Opens the directory `path` on a disk, where other paths lead where `outside` leads.
    pub fn open(fs: &SimFs, outside: Option<&SimDir>, path: &Path) -> Result<Arc<dyn Fs>> {
        let _still = fs.0.moving.read().unwrap_or_else(PoisonError::into_inner);
        let now = outside.map_or_else(|| path.to_path_buf(), |outside| outside.now(path));
        let mut disk = fs.begin(OpKind::Open, &now)?;
        if !disk.names.has_dir(&now) {
            return Err(sidebloom::Error::io(
                sidebloom::IoOp::Open,
                path,
                std::io::ErrorKind::NotFound.into(),
            ));
        }
        let number = HANDLES.fetch_add(1, Ordering::Relaxed);
        disk.handles.insert(number, now);
        drop(disk);
        let (fs, path, outside) = (fs.clone(), path.to_path_buf(), outside.cloned());
        Ok(Arc::new(SimDir(Arc::new(Handle { fs, path, number, outside }))))
    }

    /// Does something while no directory is moved.
    fn while_still<T>(&self, operation: impl FnOnce(&SimFs) -> T) -> T {
        let _still = self.0.fs.0.moving.read().unwrap_or_else(PoisonError::into_inner);
        operation(&self.0.fs)
    }

    /// The current target of a path.
    fn now(&self, path: &Path) -> PathBuf {
        let Handle { fs, path: from, number, outside } = &*self.0;
        match (path.strip_prefix(from), outside) {
            (Ok(rest), _) => {
                let dir = fs.disk().handles[number].clone();
                if rest.as_os_str().is_empty() { dir } else { dir.join(rest) }
            }
            (Err(_), Some(outside)) => outside.now(path),
            (Err(_), None) => path.to_path_buf(),
        }
    }
}

impl SimFs {
    /// Moves an existing directory to a free path, durably at once. Handles follow it.
    pub fn move_dir(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) {
        let (from, to) = (from.as_ref(), to.as_ref());
        let _alone = self.0.moving.write().unwrap_or_else(PoisonError::into_inner);
        let disk = &mut *self.disk();
        assert!(disk.names.has_dir(from) && !disk.names.has_dir(to));
        disk.relocate(|path| match path.strip_prefix(from) {
            Ok(rest) if rest.as_os_str().is_empty() => to.to_path_buf(),
            Ok(rest) => to.join(rest),
            Err(_) => path.to_path_buf(),
        });
    }
}

impl Disk {
    /// Changes the paths of files, directories and handles.
    fn relocate(&mut self, moved: impl Fn(&Path) -> PathBuf) {
        for Tree { files, dirs } in [&mut self.names, &mut self.durable] {
            *files = std::mem::take(files).into_iter().map(|(path, file)| (moved(&path), file)).collect();
            *dirs = dirs.iter().map(|path| moved(path)).collect();
        }
        for op in &mut self.pending {
            *op = match op {
                NameOp::Link(path, file) => NameOp::Link(moved(path), file.clone()),
                NameOp::Unlink(path) => NameOp::Unlink(moved(path)),
                NameOp::Rename(from, to, file) => NameOp::Rename(moved(from), moved(to), file.clone()),
                NameOp::MakeDir(path) => NameOp::MakeDir(moved(path)),
                NameOp::RemoveDir(path) => NameOp::RemoveDir(moved(path)),
            };
        }
        self.handles.values_mut().for_each(|path| *path = moved(path));
        self.unreadable.iter_mut().for_each(|(path, _)| *path = moved(path));
        self.names_changed += 1;
    }

    /// Handles of a removed directory lead nowhere, whatever is created in its place.
    pub fn lose(&mut self, dir: &Path) {
        for place in self.handles.values_mut().filter(|place| *place == dir) {
            *place = Path::new("(removed)").join(&*place);
        }
    }
}

impl Fs for SimDir {
    fn open_dir(&self, path: &Path) -> Result<Option<Arc<dyn Fs>>> {
        Ok(Some(SimDir::open(&self.0.fs, Some(self), path)?))
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        self.while_still(|fs| fs.create_dir(&self.now(path)))
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        self.while_still(|fs| fs.list(&self.now(dir)))
    }

    fn file_len(&self, path: &Path) -> Result<Option<u64>> {
        self.while_still(|fs| fs.file_len(&self.now(path)))
    }

    fn stamp(&self, path: &Path) -> Result<Option<Stamp>> {
        self.while_still(|fs| fs.stamp(&self.now(path)))
    }

    fn create(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        self.while_still(|fs| fs.create(&self.now(path)))
    }

    fn append(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        self.while_still(|fs| fs.append(&self.now(path)))
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn ReadFile>> {
        self.while_still(|fs| fs.open(&self.now(path)))
    }

    unsafe fn map(&self, path: &Path) -> Result<Map> {
        // SAFETY: the caller makes the same promise.
        self.while_still(|fs| unsafe { fs.map(&self.now(path)) })
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.while_still(|fs| fs.rename(&self.now(from), &self.now(to)))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.while_still(|fs| fs.remove(&self.now(path)))
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.while_still(|fs| fs.remove_dir(&self.now(path)))
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        self.while_still(|fs| fs.hard_link(&self.now(from), &self.now(to)))
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.while_still(|fs| fs.sync_dir(&self.now(dir)))
    }

    fn lock(&self, path: &Path, mode: LockMode) -> Result<Box<dyn LockGuard>> {
        self.while_still(|fs| fs.lock(&self.now(path), mode))
    }

    fn reader_locks(&self, path: &Path) -> Result<Option<Box<dyn ReaderLocks>>> {
        self.while_still(|fs| fs.reader_locks(&self.now(path)))
    }
}
