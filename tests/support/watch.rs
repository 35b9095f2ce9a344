//! Watches a simulated disk: a function sees each writing operation just before it takes effect.

use super::crash::Crash;
use super::disk::Disk;
use super::faults::OpKind;
use super::sim_fs::{Shared, SimFs};
use std::ffi::OsStr;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

/// A disk just before an operation. No other operation takes effect at the same time.
#[derive(Debug)]
pub struct Moment<'a> {
    pub kind: OpKind,
    pub path: &'a Path,
    disk: &'a Disk,
}

impl Moment<'_> {
    /// The disk as the next process finds it if this is the end.
    pub fn crash(&self, crash: Crash, seed: u64) -> SimFs {
        SimFs::of(self.disk.after(crash, seed))
    }

    /// The number of this operation among those that write, from 1.
    pub fn number(&self) -> u64 {
        self.disk.writes
    }
}

/// See [`SimFs::watch`].
pub struct Watcher(Box<dyn Fn(&Moment<'_>) + Send + Sync>);

impl Watcher {
    pub(super) fn call(&self, kind: OpKind, path: &Path, disk: &Disk) {
        self.0(&Moment { kind, path, disk });
    }
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watcher")
    }
}

impl SimFs {
    /// Calls of `will_need` for files with this ending since the last call.
    pub fn take_advised(&self, ending: &str) -> usize {
        self.0.advised.lock().unwrap().remove(OsStr::new(ending)).unwrap_or(0)
    }

    /// Lets the threads with this name do this many reads from now on. Their next read then waits for the
    /// next call. Other operations do not wait, because a writing thread may hold a lock that others need.
    pub fn meter(&self, thread: &str, reads: u64) {
        self.disk().metered = Some((thread.to_owned(), reads));
        self.0.released.notify_all();
    }

    pub(super) fn of(disk: Disk) -> SimFs {
        SimFs(Arc::new(Shared { disk: Mutex::new(disk), ..Shared::default() }))
    }

    /// Calls `watcher` just before each writing operation takes effect. It must not use this disk. A disk has
    /// one watcher, which a crash does not copy.
    pub fn watch(&self, watcher: impl Fn(&Moment<'_>) + Send + Sync + 'static) {
        assert!(self.0.watcher.set(Watcher(Box::new(watcher))).is_ok(), "the disk is watched already");
    }

    /// Calls `each` with the path and the bytes of every file below `dir`, in order.
    pub fn visit(&self, dir: impl AsRef<Path>, mut each: impl FnMut(&Path, &[u8])) {
        let disk = self.disk();
        let below = disk.names.files.iter().filter(|(path, _)| path.starts_with(&dir));
        below.for_each(|(path, file)| each(path, &file.contents().bytes));
    }

    /// Runs `before` before each operation from now on, in the thread that does it. Once per disk.
    pub fn before_each(&self, before: impl Fn(&SimFs, OpKind, &Path) + Send + Sync + 'static) {
        assert!(self.0.before.0.set(Box::new(before)).is_ok(), "there is a hook already");
    }

    /// How many edits were appended to manifests so far.
    pub fn publications(&self) -> u64 {
        self.disk().publications
    }
}

/// What runs before each operation, without the disk's lock.
#[derive(Default)]
pub(super) struct Before(pub OnceLock<Hook>);

type Hook = Box<dyn Fn(&SimFs, OpKind, &Path) + Send + Sync>;

impl fmt::Debug for Before {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Before").field(&self.0.get().is_some()).finish()
    }
}
