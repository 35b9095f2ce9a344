//! A file system in memory that can crash, fail, fill up and stall (invariant I8), as seeds and plans decide.

use super::crash::Crash;
use super::disk::{Contents, Disk, File, Holder, NameOp};
use super::faults::{Errno, Fault, OpKind};
use super::sim_dir::SimDir;
use super::sim_file::Handle;
use super::sim_locks::{Lock, VersionLocks};
use super::watch::{Before, Watcher};
use sidebloom::IoOp;
use sidebloom::fs::{AppendFile, Fs, LockGuard, LockMode, Map, ReadFile, ReaderLocks, Stamp};
use sidebloom::{Error, Result};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

/// The file system. Clones share the disk.
#[derive(Debug, Clone, Default)]
pub struct SimFs(pub(super) Arc<Shared>);

#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Held while a directory is moved; held for reading by anyone about to use a handle of one.
    pub moving: RwLock<()>,
    pub disk: Mutex<Disk>,
    pub released: Condvar,
    pub before: Before,
    pub watcher: OnceLock<Watcher>,
    /// Calls of `will_need` by the ending of the file.
    pub advised: Mutex<BTreeMap<OsString, usize>>,
}

/// Set-up and inspection for tests.
impl SimFs {
    /// An empty disk.
    pub fn new() -> Self {
        Self::default()
    }

    /// The disk as the next process finds it after this crash. The original stays usable and unchanged.
    pub fn crash(&self, crash: Crash, seed: u64) -> SimFs {
        let after = self.disk().after(crash, seed);
        SimFs::of(after)
    }

    /// Plans a failure, in addition to those planned before.
    pub fn fail(&self, fault: Fault) {
        self.disk().faults.push(fault);
    }

    /// The number of planned failures that have not occurred yet or recur forever.
    pub fn faults_left(&self) -> usize {
        self.disk().faults.len()
    }

    /// Makes reads of these bytes of a file fail with EIO: bad sectors. A crash forgets them.
    pub fn make_unreadable(&self, path: impl AsRef<Path>, bytes: Range<u64>) {
        self.disk().unreadable.push((path.as_ref().to_path_buf(), bytes));
    }

    /// Removes all planned failures, bad sectors and the space limit.
    pub fn heal(&self) {
        let mut disk = self.disk();
        disk.faults.clear();
        disk.unreadable.clear();
        disk.space = None;
    }

    /// Lets `bytes` more be appended to all files together. The append that exceeds this writes what fits and
    /// fails with ENOSPC.
    pub fn limit_space(&self, bytes: u64) {
        self.disk().space = Some(bytes);
    }

    /// Gives directories times of whole seconds, as old file systems do.
    pub fn keep_coarse_times(&self) {
        self.disk().has_coarse_times = true;
    }

    /// Leaves this name out of listings, as tmpfs does while a name is being replaced.
    pub fn leave_out(&self, name: &str) {
        self.disk().unlisted = Some(name.to_owned());
    }

    /// Makes all operations of this kind wait until the returned guard is dropped.
    #[must_use = "operations wait only as long as this lives"]
    pub fn hold(&self, kind: OpKind) -> Held {
        self.disk().held.push(kind);
        Held(self.clone(), kind)
    }

    /// How many operations are waiting, because their kind is held or their thread has used up its reads.
    pub fn waiting(&self) -> usize {
        self.disk().waiting
    }

    /// How many operations so far changed the disk or synced it; see [`Fault::stop`].
    pub fn writes(&self) -> u64 {
        self.disk().writes
    }

    /// The last writing operations, numbered from 1, one per line.
    pub fn log(&self) -> String {
        let line =
            |(n, kind, path): &(u64, OpKind, PathBuf)| format!("{n} {} {}\n", kind.op(), path.display());
        self.disk().log.iter().map(line).collect()
    }

    /// The bytes of a file; `None` if it does not exist.
    pub fn read(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        let file = self.disk().names.files.get(path.as_ref()).cloned()?;
        let bytes = file.contents().bytes.clone();
        Some(bytes.to_vec())
    }

    /// Puts a file with these bytes at `path`, durable at once, to simulate damage or a foreign file. Open
    /// handles keep the old file.
    pub fn write(&self, path: impl AsRef<Path>, bytes: impl Into<Vec<u8>>) {
        let file = Arc::new(File::new(Contents::durable(Arc::new(bytes.into()))));
        let disk = &mut *self.disk();
        for tree in [&mut disk.names, &mut disk.durable] {
            let dirs = path.as_ref().ancestors().skip(1).filter(|dir| !dir.as_os_str().is_empty());
            tree.dirs.extend(dirs.map(Path::to_path_buf));
            tree.files.insert(path.as_ref().to_path_buf(), Arc::clone(&file));
        }
    }

    /// All files, in order.
    pub fn files(&self) -> Vec<PathBuf> {
        self.disk().names.files.keys().cloned().collect()
    }

    pub(super) fn disk(&self) -> MutexGuard<'_, Disk> {
        self.0.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts an operation: waits while its kind is held, counts it, and fails as planned.
    pub(super) fn begin(&self, kind: OpKind, path: &Path) -> Result<MutexGuard<'_, Disk>> {
        let (disk, fault) = self.begin_or_fault(kind, path);
        match fault {
            None => Ok(disk),
            Some(fault) => Err(Error::io(kind.op(), path, fault.errno.error())),
        }
    }

    pub(super) fn begin_or_fault(&self, kind: OpKind, path: &Path) -> (MutexGuard<'_, Disk>, Option<Fault>) {
        if let Some(before) = self.0.before.0.get() {
            before(self, kind, path);
        }
        let is_held = |disk: &mut Disk| disk.held.contains(&kind) || disk.is_metered_out(kind);
        let mut disk = self.disk();
        if is_held(&mut disk) {
            disk.waiting += 1;
            disk = self.0.released.wait_while(disk, is_held).unwrap_or_else(PoisonError::into_inner);
            disk.waiting -= 1;
        }
        let fault = disk.begin(kind, path);
        if let Some(watcher) = self.0.watcher.get().filter(|_| kind.is_write()) {
            watcher.call(kind, path, &disk);
        }
        (disk, fault)
    }
}

/// Makes operations wait; see [`SimFs::hold`].
#[derive(Debug)]
pub struct Held(SimFs, OpKind);

impl Drop for Held {
    fn drop(&mut self) {
        let mut disk = self.0.disk();
        if let Some(at) = disk.held.iter().position(|kind| *kind == self.1) {
            disk.held.remove(at);
        }
        self.0.0.released.notify_all();
    }
}

fn refuse<T>(kind: OpKind, path: &Path, why: ErrorKind) -> Result<T> {
    Err(Error::io(kind.op(), path, io::Error::from(why)))
}

impl Fs for SimFs {
    fn open_dir(&self, path: &Path) -> Result<Option<Arc<dyn Fs>>> {
        Ok(Some(SimDir::open(self, None, path)?))
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        let mut disk = self.begin(OpKind::CreateDir, path)?;
        if disk.names.files.contains_key(path) {
            return refuse(OpKind::CreateDir, path, ErrorKind::AlreadyExists);
        }
        if !path.parent().is_some_and(|parent| disk.names.has_dir(parent)) {
            return refuse(OpKind::CreateDir, path, ErrorKind::NotFound);
        }
        if !disk.names.has_dir(path) {
            disk.change_names(NameOp::MakeDir(path.to_path_buf()));
        }
        Ok(())
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        let disk = self.begin(OpKind::List, dir)?;
        if !disk.names.has_dir(dir) {
            return refuse(OpKind::List, dir, ErrorKind::NotFound);
        }
        let inside =
            disk.names.files.keys().chain(&disk.names.dirs).filter(|path| path.parent() == Some(dir));
        let names = inside.filter_map(|path| path.file_name()?.to_str());
        Ok(names.filter(|name| disk.unlisted.as_deref() != Some(*name)).map(String::from).collect())
    }

    fn file_len(&self, path: &Path) -> Result<Option<u64>> {
        let disk = self.begin(OpKind::Inspect, path)?;
        let len = |file: &Arc<File>| file.contents().len();
        Ok(disk.names.files.get(path).map(len).or(disk.names.dirs.contains(path).then_some(0)))
    }

    fn stamp(&self, path: &Path) -> Result<Option<Stamp>> {
        let disk = self.begin(OpKind::Inspect, path)?;
        let of_file = |file: &Arc<File>| {
            let len = file.contents().len();
            Stamp { file: file.number, len, changed: 0 }
        };
        let of_dir = || Stamp { file: 0, len: 0, changed: disk.names_changed.into() };
        let file = disk.names.files.get(path).map(of_file);
        Ok(file.or_else(|| disk.names.has_dir(path).then(of_dir)))
    }

    fn create(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        let mut disk = self.begin(OpKind::Create, path)?;
        if disk.names.files.contains_key(path) || disk.names.dirs.contains(path) {
            return refuse(OpKind::Create, path, ErrorKind::AlreadyExists);
        }
        if !path.parent().is_some_and(|dir| disk.names.has_dir(dir)) {
            return refuse(OpKind::Create, path, ErrorKind::NotFound);
        }
        let file = Arc::new(File::new(Contents::default()));
        disk.change_names(NameOp::Link(path.to_path_buf(), file.clone()));
        Ok(Box::new(Handle { fs: self.clone(), path: path.to_path_buf(), file }))
    }

    fn append(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        Ok(Box::new(self.handle(OpKind::Open, path)?))
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn ReadFile>> {
        Ok(Arc::new(self.handle(OpKind::Open, path)?))
    }

    unsafe fn map(&self, path: &Path) -> Result<Map> {
        let contents = self.handle(OpKind::Map, path)?.file.contents().clone();
        if contents.hole > 0 {
            return refuse(OpKind::Map, path, ErrorKind::OutOfMemory);
        }
        Map::copied(&contents.bytes).map_err(|e| Error::io(IoOp::Map, path, e))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let mut disk = self.begin(OpKind::Rename, from)?;
        let Some(file) = disk.names.files.get(from).cloned() else {
            return refuse(OpKind::Rename, from, ErrorKind::NotFound);
        };
        disk.change_names(NameOp::Rename(from.to_path_buf(), to.to_path_buf(), file));
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let mut disk = self.begin(OpKind::Remove, path)?;
        if !disk.names.files.contains_key(path) {
            return refuse(OpKind::Remove, path, ErrorKind::NotFound);
        }
        disk.change_names(NameOp::Unlink(path.to_path_buf()));
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        let mut disk = self.begin(OpKind::Remove, path)?;
        if disk.names.files.keys().chain(&disk.names.dirs).any(|inside| inside.parent() == Some(path)) {
            return refuse(OpKind::Remove, path, ErrorKind::DirectoryNotEmpty);
        }
        if !disk.names.dirs.contains(path) {
            return refuse(OpKind::Remove, path, ErrorKind::NotFound);
        }
        disk.change_names(NameOp::RemoveDir(path.to_path_buf()));
        disk.lose(path);
        Ok(())
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        let mut disk = self.begin(OpKind::Link, to)?;
        if disk.names.files.contains_key(to) {
            return refuse(OpKind::Link, to, ErrorKind::AlreadyExists);
        }
        let Some(file) = disk.names.files.get(from).cloned() else {
            return refuse(OpKind::Link, to, ErrorKind::NotFound);
        };
        disk.change_names(NameOp::Link(to.to_path_buf(), file));
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        let mut disk = self.begin(OpKind::SyncDir, dir)?;
        let dir = if dir == Path::new(".") { Path::new("") } else { dir };
        if !disk.names.has_dir(dir) {
            return refuse(OpKind::SyncDir, dir, ErrorKind::NotFound);
        }
        disk.sync_dir(dir);
        Ok(())
    }

    fn lock(&self, path: &Path, mode: LockMode) -> Result<Box<dyn LockGuard>> {
        if mode == LockMode::Exclusive && !self.disk().names.files.contains_key(path) {
            self.create(path)?;
        }
        let mut disk = self.begin(OpKind::Lock, path)?;
        let Some(file) = disk.names.files.get(path).cloned() else {
            return refuse(OpKind::Open, path, ErrorKind::NotFound);
        };
        let holder = match (mode, disk.locks.get(&file.number)) {
            (LockMode::Exclusive, None) => Holder::Exclusive,
            (LockMode::Shared, None) => Holder::Shared(1),
            (LockMode::Shared, Some(Holder::Shared(n))) => Holder::Shared(n + 1),
            _ => return Err(Error::Locked { path: path.to_path_buf() }),
        };
        disk.locks.insert(file.number, holder);
        Ok(Box::new(Lock::new(self.clone(), file)))
    }

    fn reader_locks(&self, path: &Path) -> Result<Option<Box<dyn ReaderLocks>>> {
        let is_there = self.disk().names.files.contains_key(path);
        if !is_there {
            return Ok(None);
        }
        let handle = self.handle(OpKind::Open, path)?;
        Ok(Some(Box::new(VersionLocks::new(handle.fs, handle.path, handle.file))))
    }
}

impl SimFs {
    /// Opens a file.
    fn handle(&self, kind: OpKind, path: &Path) -> Result<Handle> {
        match self.begin(kind, path)?.names.files.get(path).cloned() {
            Some(file) => Ok(Handle { fs: self.clone(), path: path.to_path_buf(), file }),
            None => refuse(OpKind::Open, path, ErrorKind::NotFound),
        }
    }
}
