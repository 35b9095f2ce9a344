//! The shared heart of an open store: what every thread of it needs, and who locks what.
//!
//! Locks, always taken in this order, none of them by a reader:
//! 1. `log`: the writer at the head of the queue (write-ahead log and active memtable).
//! 2. `manifest`: who publishes (flush, compaction, rebuilt sidecars).
//! 3. `control`: short, no I/O under it: replaces the view, hands out background work.

use super::failure::Tries;
use super::metrics::Metrics;
use super::options::Options;
use super::policy::FilterPolicy;
use super::reserve::Reservation;
use super::view::View;
use super::write::{Log, Waiting};
use crate::error::{Error, Result};
use crate::fs::Fs;
use crate::id::{FileId, FileKind};
use crate::key::Seq;
use crate::manifest::{LiveSegment, LiveSet, LogMark, Manifest, ManifestState};
use crate::memtable::Memtable;
use crate::segment::{OpenFiles, StoreIdentity};
use crate::sidecar::Maps;
use crate::wal;
use arc_swap::ArcSwap;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::{Duration, Instant};

pub(crate) struct Core {
    pub fs: Arc<dyn Fs>,
    pub dir: PathBuf,
    pub options: Options,
    pub header: StoreIdentity,
    /// The segments' files, of which the open ones are bounded.
    pub files: Arc<OpenFiles>,
    pub metrics: Metrics,
    pub view: ArcSwap<View>,
    /// The newest sequence number that readers may see.
    pub visible: AtomicU64,
    pub next_id: AtomicU64,
    /// Files with this number or a greater one were written since the store was opened.
    pub first_own_id: FileId,
    /// `None` in a read-only store.
    pub log: Mutex<Option<Log>>,
    pub waiting: Mutex<Vec<Arc<Waiting>>>,
    /// Logs before the current one with bytes that were never synced, oldest first: a sync of the current one must sync them before, or
    /// it would vouch for a suffix without its prefix. Flushed ones leave. Locked after `log`, and nothing is locked after it.
    pub unsynced: Mutex<Vec<(FileId, wal::LogWriter)>>,
    pub manifest: Mutex<Option<(Manifest, ManifestState)>>,
    pub control: Mutex<Control>,
    /// The maps of the sidecars, which are bounded too.
    pub maps: Arc<Maps>,
    /// There may be work for a background thread.
    pub work: Arc<Condvar>,
    /// Background work has finished: there may be room for a stalled writer, or an end to a wait.
    pub progress: Condvar,
    /// The first failed write (I5).
    pub failure: OnceLock<Arc<str>>,
    /// For the next segments; `rebuild_filters` changes it.
    pub filter_policy: Mutex<FilterPolicy>,
}

/// No memtable has been full for this long: the store is at rest.
const REST_AFTER: Duration = Duration::from_secs(5);

/// What the background threads agree on.
pub(crate) struct Control {
    /// Memtables to flush, oldest first, with the first log that is still needed once it is flushed.
    pub to_flush: VecDeque<(Arc<Memtable>, FileId)>,
    /// The memtable being flushed, by the first log needed after it.
    pub flushing: Option<FileId>,
    /// Logs below hold nothing that segments do not have.
    pub log_floor: FileId,
    /// How much of the logs was synced, as far as this process knows.
    pub synced: Option<LogMark>,
    /// When a memtable was last full: a store that takes writes postpones what can wait.
    pub last_full: Option<Instant>,
    /// Threads that wait for compaction to come to an end.
    pub settling: usize,
    /// What the running compactions own.
    pub running: Vec<Reservation>,
    /// How many of them are steps of manual compactions, which take no background thread.
    pub manual: usize,
    /// Segments whose sidecars wait to be verified or rebuilt.
    pub sidecars_to_check: VecDeque<FileId>,
    pub checking_sidecars: bool,
    /// When sidecars may be replaced by unmapped ones again; `None` while a thread is at it.
    pub unmap_from: Option<Instant>,
    /// Faults in maps ([`sigbus_faults`](crate::fs::sigbus_faults)) that have been looked into.
    pub faults_seen: usize,
    /// When segments whose new sidecar could not be opened are looked at again, and how long that wait was the last time.
    pub missing_sidecars_due: Option<Instant>,
    pub missing_sidecars_wait: Duration,
    /// When the segments in quarantine are read again, and how long that wait was the last time.
    pub suspects_due: Option<Instant>,
    pub suspects_wait: Duration,
    pub suspects_to_try: VecDeque<FileId>,
    pub flush_tries: Tries,
    pub upkeep_tries: Tries,
    pub sidecar_tries: Tries,
    /// Segments of a manifest edit that failed: it may be on disk, so their files stay until the manifest is written anew.
    pub doubtful: Vec<LiveSegment>,
    pub closing: bool,
}

impl Control {
    pub fn new(log_floor: FileId) -> Self {
        Control {
            to_flush: VecDeque::new(),
            flushing: None,
            log_floor,
            synced: None,
            last_full: None,
            settling: 0,
            running: Vec::new(),
            manual: 0,
            sidecars_to_check: VecDeque::new(),
            checking_sidecars: false,
            unmap_from: Some(Instant::now()),
            faults_seen: 0,
            missing_sidecars_due: None,
            missing_sidecars_wait: Duration::ZERO,
            suspects_due: None,
            suspects_wait: Duration::ZERO,
            suspects_to_try: VecDeque::new(),
            flush_tries: Tries::default(),
            upkeep_tries: Tries::default(),
            sidecar_tries: Tries::default(),
            doubtful: Vec::new(),
            closing: false,
        }
    }
}

impl Control {
    /// How long until segments without a sidecar are looked at again, if they are.
    pub fn until_missing_sidecars(&self) -> Option<Duration> {
        self.missing_sidecars_due.map(|due| due.saturating_duration_since(Instant::now()))
    }

    /// How long until the segments in quarantine are read again, if there are any.
    pub fn until_suspects(&self) -> Option<Duration> {
        self.suspects_due.map(|due| due.saturating_duration_since(Instant::now()))
    }

    /// How long until the store counts as at rest; zero when it does.
    pub fn until_rest(&self) -> Duration {
        let since = self.last_full.map_or(REST_AFTER, |full| full.elapsed());
        if self.settling > 0 { Duration::ZERO } else { REST_AFTER.saturating_sub(since) }
    }
}

/// A lock that a panicking thread held is taken over: every critical section leaves its data valid at each step.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The lock if nobody holds it.
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

impl Core {
    pub fn path_of(&self, id: FileId, kind: FileKind) -> PathBuf {
        self.dir.join(id.file_name(kind))
    }

    /// The next file number.
    pub fn take_id(&self) -> FileId {
        FileId(self.next_id.fetch_add(1, Ordering::Relaxed))
    }

    /// Whether filters are asked and written.
    #[inline]
    pub fn filters_on(&self) -> bool {
        self.options.filter_policy.is_on()
    }

    /// The view and the sequence number of a read that starts now; in this order, see [`View`].
    #[inline]
    pub fn snapshot(&self) -> (Arc<View>, Seq) {
        let view = self.view.load_full();
        (view, self.visible.load(Ordering::Acquire))
    }

    /// Replaces the view. Callers hold `control`, which makes replacements one after the other.
    pub fn change_view(&self, _control: &mut Control, change: impl FnOnce(&mut View)) {
        let mut view = View::clone(&self.view.load_full());
        change(&mut view);
        self.view.store(Arc::new(view));
    }

    pub fn live(&self) -> Arc<LiveSet> {
        Arc::clone(&self.view.load().live)
    }

    /// An error when the store no longer takes writes.
    pub fn check_writable(&self) -> Result<()> {
        match self.failure.get() {
            Some(cause) => Err(Error::Poisoned { cause: Arc::clone(cause) }),
            None if self.options.read_only => Err(Error::ReadOnly),
            None => Ok(()),
        }
    }

    /// Waits until `done` says so; a store that failed, or is closing, ends the wait with an error.
    pub fn wait_until(&self, mut done: impl FnMut(&mut Control) -> bool) -> Result<()> {
        let mut control = lock(&self.control);
        while !done(&mut control) {
            self.check_writable()?;
            if control.closing {
                return Err(Error::Closing);
            }
            control = self.progress.wait(control).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(())
    }
}
