//! What a simulated disk holds: files, and names that are durable or not yet.

use super::faults::{Fault, OpKind};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Operations kept in the log.
const LOGGED: usize = 2000;

pub type Names = BTreeMap<PathBuf, Arc<File>>;

/// A file, whatever its names.
#[derive(Debug, Default)]
pub struct File(Mutex<Contents>);

impl File {
    pub fn new(contents: Contents) -> Self {
        File(Mutex::new(contents))
    }

    /// Even after a test panicked with the lock held: guards that are dropped then must not panic again.
    pub fn contents(&self) -> MutexGuard<'_, Contents> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A file's bytes and which of them are durable. Cloning shares the bytes until one side appends.
#[derive(Debug, Clone, Default)]
pub struct Contents {
    pub bytes: Arc<Vec<u8>>,
    /// So many bytes are durable.
    pub synced: usize,
    /// Where the appends that are not durable end.
    pub append_ends: Vec<usize>,
    /// A sync failed: the pages that it should have written are marked clean, and no later sync writes them.
    pub sync_failed: bool,
}

impl Contents {
    pub fn append(&mut self, bytes: &[u8]) {
        Arc::make_mut(&mut self.bytes).extend_from_slice(bytes);
        self.append_ends.push(self.bytes.len());
    }

    pub fn sync(&mut self) {
        if !self.sync_failed {
            self.synced = self.bytes.len();
            self.append_ends.clear();
        }
    }

    /// Bytes that are all durable.
    pub fn durable(bytes: Arc<Vec<u8>>) -> Self {
        Contents { synced: bytes.len(), bytes, append_ends: Vec::new(), sync_failed: false }
    }
}

/// A change of names that is not durable yet.
#[derive(Debug, Clone)]
pub enum NameOp {
    Link(PathBuf, Arc<File>),
    Unlink(PathBuf),
    Rename(PathBuf, PathBuf, Arc<File>),
}

impl NameOp {
    pub fn apply(&self, names: &mut Names) {
        match self {
            NameOp::Link(path, file) => {
                names.insert(path.clone(), file.clone());
            }
            NameOp::Unlink(path) => {
                names.remove(path);
            }
            NameOp::Rename(from, to, file) => {
                names.remove(from);
                names.insert(to.clone(), file.clone());
            }
        }
    }

    /// The directory whose sync makes it durable.
    fn dir(&self) -> Option<&Path> {
        let (NameOp::Link(path, _) | NameOp::Unlink(path) | NameOp::Rename(_, path, _)) = self;
        path.parent()
    }
}

/// Who holds a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    Exclusive,
    Shared(u32),
}

/// A disk and the kernel's view of it. Directories are durable as soon as they are made.
#[derive(Debug, Default)]
pub struct Disk {
    pub dirs: BTreeSet<PathBuf>,
    /// As processes see them.
    pub names: Names,
    /// As they would be found after a power cut that loses all `pending`.
    pub durable: Names,
    pub pending: Vec<NameOp>,
    pub locks: BTreeMap<PathBuf, Holder>,
    pub faults: Vec<Fault>,
    /// Operations that wait.
    pub held: Vec<OpKind>,
    /// Bytes that can still be appended; `None` without a limit.
    pub space: Option<u64>,
    pub ops: u64,
    pub writes: u64,
    pub log: VecDeque<String>,
}

impl Disk {
    /// Counts an operation, logs a writing one, and tells how it fails.
    pub fn begin(&mut self, kind: OpKind, path: &Path) -> Option<Fault> {
        self.ops += 1;
        if kind.is_write() {
            self.writes += 1;
            if self.log.len() == LOGGED {
                self.log.pop_front();
            }
            self.log.push_back(format!("{} {} {}", self.writes, kind.verb(), path.display()));
        }
        let mut struck = None;
        self.faults.retain_mut(|fault| {
            let strikes = fault.strikes(kind);
            if strikes {
                struck = Some(*fault);
            }
            !strikes || fault.forever
        });
        struck
    }

    pub fn change_names(&mut self, op: NameOp) {
        op.apply(&mut self.names);
        self.pending.push(op);
    }

    pub fn sync_dir(&mut self, dir: &Path) {
        let durable = &mut self.durable;
        self.pending.retain(|op| {
            let is_here = op.dir() == Some(dir);
            if is_here {
                op.apply(durable);
            }
            !is_here
        });
    }

    pub fn has_dir(&self, dir: &Path) -> bool {
        dir.as_os_str().is_empty() || self.dirs.contains(dir)
    }
}
