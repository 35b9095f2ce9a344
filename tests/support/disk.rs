//! The contents of a simulated disk: files, and names that may not be durable yet.

use super::faults::{Fault, OpKind, Strike};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::UNIX_EPOCH;

/// Operations kept in the log.
const LOGGED: usize = 2000;

/// Names of files and directories. The root has the empty name and always exists.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    pub files: BTreeMap<PathBuf, Arc<File>>,
    pub dirs: BTreeSet<PathBuf>,
}

impl Tree {
    pub fn has_dir(&self, dir: &Path) -> bool {
        dir.as_os_str().is_empty() || self.dirs.contains(dir)
    }

    /// Drops the contents of directories that do not exist.
    pub fn drop_unreachable(&mut self) {
        let mut reached = Tree::default();
        for dir in &self.dirs {
            // In order, so parents come first.
            if dir.parent().is_some_and(|parent| reached.has_dir(parent)) {
                reached.dirs.insert(dir.clone());
            }
        }
        self.files.retain(|path, _| path.parent().is_some_and(|dir| reached.has_dir(dir)));
        self.dirs = reached.dirs;
    }
}

/// A file, independent of its names.
#[derive(Debug)]
pub struct File {
    contents: Mutex<Contents>,
    /// Distinguishes existing files. As on real disks, a new file reuses the number of a removed one.
    pub number: u64,
}

/// The numbers of removed files, and how many there are in total.
static NUMBERS: Mutex<(Vec<u64>, u64)> = Mutex::new((Vec::new(), 0));

impl File {
    pub fn new(contents: Contents) -> Self {
        let (free, all) = &mut *NUMBERS.lock().unwrap_or_else(PoisonError::into_inner);
        let number = free.pop().unwrap_or_else(|| {
            *all += 1;
            *all
        });
        File { contents: Mutex::new(contents), number }
    }

    /// Ignores poisoning: after a test has panicked, dropped guards must not panic again.
    pub fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        NUMBERS.lock().unwrap_or_else(PoisonError::into_inner).0.push(self.number);
    }
}

/// A file's bytes and which of them are durable. Cloning shares the bytes until one side appends.
#[derive(Debug, Clone, Default)]
pub struct Contents {
    pub bytes: Arc<Vec<u8>>,
    /// Zeros after the bytes.
    pub hole: u64,
    /// The number of durable bytes.
    pub synced: usize,
    /// The ends of the appends that are not durable.
    pub append_ends: Vec<usize>,
    /// A sync failed: the pages that it should have written are marked clean, and no later sync writes them.
    pub sync_failed: bool,
    /// An append or a sync failed.
    pub failed: bool,
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

    /// A file whose bytes are all durable.
    pub fn durable(bytes: Arc<Vec<u8>>) -> Self {
        Contents { synced: bytes.len(), bytes, ..Contents::default() }
    }
}

/// A change of names that is not durable yet.
#[derive(Debug, Clone)]
pub enum NameOp {
    Link(PathBuf, Arc<File>),
    Unlink(PathBuf),
    Rename(PathBuf, PathBuf, Arc<File>),
    MakeDir(PathBuf),
    RemoveDir(PathBuf),
}

impl NameOp {
    pub fn apply(&self, Tree { files, dirs }: &mut Tree) {
        match self {
            NameOp::Link(path, file) => {
                files.insert(path.clone(), file.clone());
            }
            NameOp::Unlink(path) => {
                files.remove(path);
            }
            NameOp::Rename(from, to, file) => {
                files.remove(from);
                files.insert(to.clone(), file.clone());
            }
            NameOp::MakeDir(path) => {
                dirs.insert(path.clone());
            }
            // It was empty, so the removals of its former contents are durable with it.
            NameOp::RemoveDir(path) => {
                files.retain(|inside, _| !inside.starts_with(path));
                dirs.retain(|inside| !inside.starts_with(path));
            }
        }
    }

    /// The directory whose sync makes the change durable.
    fn dir(&self) -> Option<&Path> {
        let (NameOp::Link(path, _)
        | NameOp::Unlink(path)
        | NameOp::Rename(_, path, _)
        | NameOp::MakeDir(path)
        | NameOp::RemoveDir(path)) = self;
        path.parent()
    }
}

/// The holders of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    Exclusive,
    Shared(u32),
}

/// A disk, and the kernel's view of it.
#[derive(Debug, Default)]
pub struct Disk {
    /// The names that processes see.
    pub names: Tree,
    /// The names after a power cut that loses all of `pending`. May have contents of lost directories.
    pub durable: Tree,
    pub pending: Vec<NameOp>,
    /// By the numbers of the locked files, which their guards keep.
    pub locks: BTreeMap<u64, Holder>,
    /// Numbers of lock files, their openings, and the versions that these hold.
    pub held_versions: BTreeSet<(u64, u64, u64)>,
    /// The current paths of directories with open handles.
    pub handles: BTreeMap<u64, PathBuf>,
    /// The time of directories: how often any name has changed, or the clock's seconds in nanoseconds.
    pub names_changed: u64,
    pub has_coarse_times: bool,
    /// A name that listings omit.
    pub unlisted: Option<String>,
    pub faults: Vec<Fault>,
    /// The planned failures that occurred, in order.
    pub strikes: Vec<Strike>,
    /// Files that were appended to or synced after one of these had failed.
    pub written_again: Vec<PathBuf>,
    /// Unreadable bytes of files.
    pub unreadable: Vec<(PathBuf, Range<u64>)>,
    /// Held kinds of operations.
    pub held: Vec<OpKind>,
    /// How many operations wait, held or metered.
    pub waiting: usize,
    /// A thread's name, and how many reads it may do before it waits.
    pub metered: Option<(String, u64)>,
    /// How many bytes can still be appended; `None` without a limit.
    pub space: Option<u64>,
    pub ops: u64,
    pub ops_by_kind: BTreeMap<OpKind, u64>,
    pub writes: u64,
    /// Appends to manifests, without temporary ones.
    pub publications: u64,
    /// The last writing operations, with their numbers.
    pub log: VecDeque<(u64, OpKind, PathBuf)>,
}

fn is_this_thread(name: &str) -> bool {
    std::thread::current().name() == Some(name)
}

impl Disk {
    /// Counts an operation, logs it if it writes, and returns how it fails.
    pub fn begin(&mut self, kind: OpKind, path: &Path) -> Option<Fault> {
        self.ops += 1;
        *self.ops_by_kind.entry(kind).or_default() += 1;
        if let Some((name, left)) = &mut self.metered
            && kind == OpKind::Read
            && is_this_thread(name)
        {
            *left = left.saturating_sub(1);
        }
        self.publications += u64::from(kind == OpKind::Append && path.ends_with("MANIFEST"));
        if kind.is_write() {
            self.writes += 1;
            if self.log.len() == LOGGED {
                self.log.pop_front();
            }
            self.log.push_back((self.writes, kind, path.to_path_buf()));
        }
        let (mut struck, mut spread) = (None, Vec::new());
        self.faults.retain_mut(|fault| {
            let strikes = fault.strikes(kind, path);
            if strikes {
                struck = Some(*fault);
                spread.extend(fault.spread());
                fault.times = fault.times.saturating_sub(1);
            }
            !strikes || fault.forever || fault.times > 0
        });
        self.faults.extend(spread);
        if let Some(Fault { errno, short, .. }) = struck {
            self.strikes.push(Strike { kind, path: path.to_path_buf(), errno, short });
        }
        struck
    }

    /// Notes an append to a file or a sync of it.
    pub fn note_write(&mut self, contents: &mut Contents, path: &Path, fails: bool) {
        if contents.failed {
            self.written_again.push(path.to_path_buf());
        }
        contents.failed |= fails;
    }

    /// Whether this is a read and the calling thread has used up its reads.
    pub fn is_metered_out(&self, kind: OpKind) -> bool {
        let has_used_up = |(name, left): &(String, u64)| *left == 0 && is_this_thread(name);
        kind == OpKind::Read && self.metered.as_ref().is_some_and(has_used_up)
    }

    pub fn change_names(&mut self, op: NameOp) {
        op.apply(&mut self.names);
        self.names_changed = if self.has_coarse_times {
            UNIX_EPOCH.elapsed().map_or(0, |time| time.as_secs() * 1_000_000_000)
        } else {
            self.names_changed + 1
        };
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
}
