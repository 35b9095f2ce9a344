//! Obsolete segments and their sidecars: removed at once, unless another process reads a version of the store
//! that needs them.
//!
//! Readers in other processes mark the version that they read ([`ReaderLocks`]). What they need keeps an
//! obsolete segment's name until they are done. The writer checks every second, with one query for all of
//! them; after a crash, the next writer does.

use crate::error::Result;
use crate::fs::{Fs, Process, ReaderLocks, has_no_reader_locks};
use crate::id::{FileId, FileKind, LOCK};
use crate::sync::{Instant, Mutex, lock};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// How often to look up the versions that others read.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Removes the files of segments.
pub struct Leftovers {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    process: Process,
    /// Opened before the first removal of a file.
    locks: OnceLock<Box<dyn ReaderLocks>>,
    /// Only for a moment: readers that drop an obsolete segment need it.
    waiting: Mutex<Waiting>,
    /// Users have been told that files stay because the versions cannot be looked up.
    has_warned: AtomicBool,
}

#[derive(Default)]
struct Waiting {
    /// Segments with the first version of the store that does not have them.
    segments: Vec<(FileId, u64)>,
    /// When to check them next.
    due: Option<Instant>,
}

impl Leftovers {
    /// The leftovers of the store in `dir`.
    pub fn new(fs: Arc<dyn Fs>, dir: &Path) -> Self {
        let (dir, process) = (dir.to_path_buf(), Process::current());
        let (locks, waiting, has_warned) = (OnceLock::new(), Mutex::default(), AtomicBool::new(false));
        Leftovers { fs, dir, process, locks, waiting, has_warned }
    }

    /// Removes the files of a segment, which no version of the store from `gone_since` on has, now or once
    /// nobody needs them. In a forked process, leaves that to the parent.
    pub fn remove(&self, id: FileId, gone_since: u64) {
        if !self.process.is_current() {
            return;
        }
        // No version before the first one was ever held.
        if gone_since > 0 && self.lowest_needed() < gone_since {
            self.keep(vec![(id, gone_since)])
        } else {
            self.remove_now(id)
        }
    }

    fn keep(&self, segments: Vec<(FileId, u64)>) {
        if segments.is_empty() {
            return;
        }
        let mut waiting = lock(&self.waiting);
        waiting.segments.extend(segments);
        waiting.due.get_or_insert_with(|| Instant::now() + LOOK_EVERY);
    }

    /// How long until [`look_again`](Self::look_again) should be called; `None` if nothing waits.
    pub fn until_look(&self, now: Instant) -> Option<Duration> {
        lock(&self.waiting).due.map(|due| due.saturating_duration_since(now))
    }

    /// Removes what nobody needs any more.
    pub fn look_again(&self) {
        let Waiting { segments, .. } = std::mem::take(&mut *lock(&self.waiting));
        let lowest = self.lowest_needed();
        let (kept, free): (Vec<_>, Vec<_>) = segments.into_iter().partition(|(_, since)| lowest < *since);
        self.keep(kept);
        free.into_iter().for_each(|(id, _)| self.remove_now(id));
    }

    /// The lowest version that another process reads; [`u64::MAX`] if none does. Any, if the lookup fails.
    fn lowest_needed(&self) -> u64 {
        let lowest = self.locks().and_then(|locks| match locks {
            Some(locks) => locks.lowest_held(),
            None => Ok(None),
        });
        match lowest {
            Err(error) if has_no_reader_locks(&error) => u64::MAX,
            Err(error) => {
                if !self.has_warned.swap(true, Relaxed) {
                    let file = self.dir.join(LOCK);
                    tracing::warn!(file = %file.display(), %error, "cannot find out whether other processes read obsolete segments, so these stay on disk");
                }
                0
            }
            Ok(lowest) => lowest.unwrap_or(u64::MAX),
        }
    }

    fn locks(&self) -> Result<Option<&dyn ReaderLocks>> {
        if self.locks.get().is_none()
            && let Some(locks) = self.fs.reader_locks(&self.dir.join(LOCK))?
        {
            _ = self.locks.set(locks); // Another thread may have been first.
        }
        Ok(self.locks.get().map(Box::as_ref))
    }

    fn remove_now(&self, id: FileId) {
        for kind in [FileKind::Segment, FileKind::Obsolete, FileKind::Filter] {
            let path = self.dir.join(id.file_name(kind));
            let removed = match self.fs.file_len(&path) {
                Ok(None) => Ok(()),
                Ok(Some(_)) => self.fs.remove(&path),
                Err(error) => Err(error),
            };
            if let Err(error) = removed {
                // Harmless: the next open of the store removes files that the manifest does not list.
                tracing::warn!(%error, "cannot remove an obsolete file yet");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::create_dir_durably;
    use crate::support::{OpKind, SimFs, promptly};

    const DIR: &str = "db";

    fn store() -> (SimFs, Arc<Leftovers>, Box<dyn ReaderLocks>) {
        let fs = SimFs::new();
        create_dir_durably(&fs, Path::new(DIR)).unwrap();
        let lock = Path::new(DIR).join(LOCK);
        fs.write(&lock, Vec::new());
        let reader = fs.reader_locks(&lock).unwrap().unwrap();
        (fs.clone(), Arc::new(Leftovers::new(Arc::new(fs), Path::new(DIR))), reader)
    }

    fn segment(fs: &SimFs, id: u64) -> PathBuf {
        let path = Path::new(DIR).join(FileId(id).file_name(FileKind::Obsolete));
        fs.write(&path, Vec::new());
        path
    }

    #[test]
    fn one_query_tells_which_of_many_segments_are_needed() {
        let (fs, leftovers, reader) = store();
        reader.hold(40).unwrap();
        let paths: Vec<_> = (0..100).map(|id| segment(&fs, id)).collect();
        (0..100).for_each(|id| leftovers.remove(FileId(id), id + 1));
        let left = || paths.iter().filter(|path| fs.read(path).is_some()).count();
        assert_eq!(left(), 60, "those of version 40");
        let before = fs.ops_of(OpKind::Lock);
        leftovers.look_again();
        assert_eq!((left(), fs.ops_of(OpKind::Lock) - before), (60, 1));
        reader.release(40);
        reader.hold(70).unwrap();
        leftovers.look_again();
        assert_eq!(left(), 30);
        reader.release(70);
        leftovers.look_again();
        assert_eq!((left(), leftovers.until_look(Instant::now())), (0, None));
    }

    #[test]
    fn i7_nobody_waits_for_a_query_of_locks() {
        let (fs, leftovers, reader) = store();
        reader.hold(1).unwrap();
        segment(&fs, 1);
        leftovers.remove(FileId(1), 2);
        let held = fs.hold(OpKind::Lock);
        let looks = Arc::clone(&leftovers);
        let looking = std::thread::spawn(move || looks.look_again());
        std::thread::sleep(Duration::from_millis(50)); // It is in the query now.
        let (asks, path) = (Arc::clone(&leftovers), segment(&fs, 2));
        promptly("another thread's check", move || asks.until_look(Instant::now()));
        let removes = Arc::clone(&leftovers);
        promptly("removal of a file that nobody holds", move || removes.remove(FileId(2), 0));
        assert!(fs.read(path).is_none());
        drop(held);
        looking.join().unwrap();
        assert!(leftovers.until_look(Instant::now()).is_some(), "it waits again");
    }
}
