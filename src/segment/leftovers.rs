//! Obsolete segments and their sidecars: removed at once, unless another process reads a version of the store that needs them.
//!
//! Readers beside a writer mark the version that they read ([`ReaderLocks`]). What they need keeps the name of an obsolete segment until
//! they are done; the writer looks again every second, and the next writer does so after a crash.

use crate::error::Result;
use crate::fs::{Fs, Process, ReaderLocks, has_no_reader_locks};
use crate::id::{FileId, FileKind, LOCK};
use crate::sync::{Instant, Mutex, lock};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How often the versions that others read are looked up again.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Removes the files of segments.
pub struct Leftovers {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    process: Process,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    /// Opened when a file is to be removed for the first time.
    locks: Option<Box<dyn ReaderLocks>>,
    /// Segments with the first version of the store that does not have them.
    segments: Vec<(FileId, u64)>,
    /// When they are next looked at.
    due: Option<Instant>,
    /// Users know that files stay because the versions cannot be looked up.
    has_warned: bool,
}

impl Leftovers {
    /// Those of the store in `dir`.
    pub fn new(fs: Arc<dyn Fs>, dir: &Path) -> Self {
        Leftovers { fs, dir: dir.to_path_buf(), process: Process::current(), waiting: Mutex::default() }
    }

    /// Removes the files of a segment, which no version of the store from `gone_since` on has, now or once nobody needs them. Leaves that to the
    /// parent in a forked process.
    pub fn remove(&self, id: FileId, gone_since: u64) {
        if !self.process.is_current() {
            return;
        }
        if gone_since > 0 {
            let mut waiting = lock(&self.waiting);
            if self.is_needed(&mut waiting, gone_since) {
                waiting.segments.push((id, gone_since));
                waiting.due.get_or_insert_with(|| Instant::now() + LOOK_EVERY);
                return;
            }
        }
        self.remove_now(id);
    }

    /// How long until [`look_again`](Self::look_again) should be called; `None` if nothing waits.
    pub fn until_look(&self, now: Instant) -> Option<Duration> {
        lock(&self.waiting).due.map(|due| due.saturating_duration_since(now))
    }

    /// Removes what nobody needs any more.
    pub fn look_again(&self) {
        let mut waiting = lock(&self.waiting);
        let segments = std::mem::take(&mut waiting.segments);
        let (kept, free): (Vec<_>, Vec<_>) =
            segments.into_iter().partition(|(_, since)| self.is_needed(&mut waiting, *since));
        waiting.due = (!kept.is_empty()).then(|| Instant::now() + LOOK_EVERY);
        waiting.segments = kept;
        drop(waiting);
        free.into_iter().for_each(|(id, _)| self.remove_now(id));
    }

    /// Whether another process reads a version before this one. If that cannot be found out, somebody may.
    fn is_needed(&self, waiting: &mut Waiting, gone_since: u64) -> bool {
        let needed = self.locks(waiting).and_then(|locks| match locks {
            Some(locks) => locks.held_below(gone_since),
            None => Ok(false),
        });
        match needed {
            Err(error) if has_no_reader_locks(&error) => false,
            Err(error) => {
                if !std::mem::replace(&mut waiting.has_warned, true) {
                    let file = self.dir.join(LOCK);
                    tracing::warn!(file = %file.display(), %error, "cannot find out whether other processes read obsolete segments, so these stay on disk");
                }
                true
            }
            Ok(needed) => needed,
        }
    }

    fn locks<'a>(&self, waiting: &'a mut Waiting) -> Result<Option<&'a dyn ReaderLocks>> {
        if waiting.locks.is_none() {
            waiting.locks = self.fs.reader_locks(&self.dir.join(LOCK))?;
        }
        Ok(waiting.locks.as_deref())
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
