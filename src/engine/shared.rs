//! The state of an open store, shared by its handles and background threads.
//!
//! Three locks, always taken in this order. Readers take none of them.
//! 1. `log`: held by the writer at the head of the queue. Protects the write-ahead log and the active memtable.
//! 2. `manifest`: held while segments or sidecars are published.
//! 3. `control`: held briefly, never during I/O or work that grows with the store. Whoever holds it may replace the view and assign
//!    background work.

use crate::engine::compact::costs::MergeCosts;
use crate::engine::control::Control;
use crate::engine::filters::retunes::Retunes;
use crate::engine::follow::position::Following;
use crate::engine::read::view::View;
use crate::engine::storage::Storage;
use crate::engine::write::log::{InheritedLogs, Log, QueuedBatch};
use crate::error::{Error, Result};
use crate::id::FileId;
use crate::key::Seq;
use crate::live::LiveSet;
use crate::manifest::{Manifest, ManifestState};
use crate::options::FilterPolicy;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{ArcSwap, Condvar, Instant, Mutex, ShortLock};
use crate::wal;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Stores opened by this process.
static OPENED: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

/// What tells the current view from all others. Every lookup reads it, so it has a cache line to itself.
#[repr(align(128))]
pub(crate) struct CurrentView {
    /// Tells the open stores of this process apart.
    pub store: u64,
    /// Rises after each change of the view, before what depends on the change is visible.
    pub number: AtomicU64,
}

/// An open store.
pub(crate) struct Inner {
    pub storage: Storage,
    pub view: ArcSwap<View>,
    pub current: CurrentView,
    /// The newest sequence number that readers may see.
    pub visible: AtomicU64,
    pub log: Mutex<Log>,
    /// Batches that wait for the log, oldest first.
    pub write_queue: Mutex<Vec<Arc<QueuedBatch>>>,
    /// Earlier logs that were not synced yet, oldest first. A sync of the current log must sync them first, or a crash could keep later
    /// writes and lose earlier ones. A flush removes the logs that it makes redundant. Locked after `log`; no other lock follows it.
    pub unsynced: Mutex<Vec<(FileId, wal::LogWriter)>>,
    /// `None` in a read-only store.
    pub manifest: Mutex<Option<(Manifest, ManifestState)>>,
    pub control: ShortLock<Control>,
    /// What the last pick has found out about the levels. Held by the thread that looks for a compaction; locked before `control`.
    pub costs: Mutex<MergeCosts>,
    /// What the last look at all filters has found. No other lock is taken while it is held.
    pub retunes: Mutex<Retunes>,
    /// Signals background threads that there may be work.
    pub work: Arc<Condvar>,
    /// Signals stalled writers and other waiters that background work has finished.
    pub progress: Condvar,
    /// Why the store became read-only (I5).
    pub failure: OnceLock<Arc<str>>,
    /// What was read of a store that another process writes.
    pub following: Option<Following>,
    /// The policy for new segments, which `rebuild_filters` changes.
    pub filter_policy: Mutex<FilterPolicy>,
}

/// What only a writable store has.
pub(crate) struct Writable {
    pub logs: InheritedLogs,
    pub manifest: Manifest,
    pub state: ManifestState,
}

impl Inner {
    /// The state right after recovery. A store without `writable` is read-only. `work` is the signal that `storage` knows, too.
    pub fn new(
        storage: Storage,
        work: Arc<Condvar>,
        view: View,
        visible: Seq,
        writable: Option<Writable>,
    ) -> Self {
        let (log, manifest) = writable.map(|w| (Log::Inherited(w.logs), (w.manifest, w.state))).unzip();
        let before_own_logs = FileId(storage.first_own_id.0.saturating_sub(1));
        Inner {
            view: ArcSwap::from_pointee(view),
            current: CurrentView { store: OPENED.fetch_add(1, Relaxed), number: AtomicU64::new(0) },
            visible: AtomicU64::new(visible),
            log: Mutex::new(log.unwrap_or(Log::None)),
            write_queue: Mutex::new(Vec::new()),
            unsynced: Mutex::new(Vec::new()),
            manifest: Mutex::new(manifest),
            control: ShortLock::new(Control::new(before_own_logs)),
            costs: Mutex::default(),
            retunes: Mutex::default(),
            work,
            progress: Condvar::new(),
            failure: OnceLock::new(),
            following: None,
            filter_policy: Mutex::new(storage.options.filter_policy),
            storage,
        }
    }

    /// The view and the sequence number for a read that starts now, loaded in the order that [`View`] requires.
    #[inline]
    pub fn snapshot(&self) -> (Arc<View>, Seq) {
        let view = self.view.load_full();
        (view, self.visible.load(Ordering::Acquire))
    }

    /// Replaces the view. The caller holds `control`, so only one thread at a time does so. Returns the view before, which may be the last to
    /// have its memtables and segments. It is dropped without the lock, and not earlier: its memtables' filters deny everything once they are
    /// gone, and readers must know by then that the view has changed.
    #[must_use]
    pub fn change_view(&self, _control: &mut Control, change: impl FnOnce(&mut View)) -> Arc<View> {
        let view = self.view.load_full().changed(change);
        let before = self.view.swap(Arc::new(view));
        self.current.number.fetch_add(1, Ordering::Release);
        before
    }

    /// Replaces the live set by what `next` makes of it without the lock, and once more if another thread has replaced it meanwhile. `along`
    /// changes the rest of the view at the same time. `None` changes nothing.
    pub fn change_live(
        &self,
        mut next: impl FnMut(&Arc<LiveSet>) -> Option<LiveSet>,
        along: impl FnOnce(&mut View),
    ) -> bool {
        loop {
            let before = self.live();
            let Some(live) = next(&before).map(Arc::new) else { return false };
            let mut control = self.control.lock();
            if Arc::ptr_eq(&self.view.load().live, &before) {
                let change = |view: &mut View| {
                    view.live = live;
                    along(view);
                };
                let previous = self.change_view(&mut control, change);
                drop(control);
                drop(previous);
                return true;
            }
        }
    }

    pub fn live(&self) -> Arc<LiveSet> {
        Arc::clone(&self.view.load().live)
    }

    /// Fails if the store takes no writes.
    pub fn check_writable(&self) -> Result<()> {
        self.storage.process.check()?;
        match self.failure.get() {
            Some(cause) => Err(Error::Poisoned { cause: Arc::clone(cause) }),
            None if self.storage.options.read_only => Err(Error::ReadOnly),
            None => Ok(()),
        }
    }

    /// Waits until `done` returns true. Fails if the store becomes read-only or closes first.
    pub fn wait_until(&self, done: impl FnMut(&mut Control) -> bool) -> Result<()> {
        self.wait_until_within(None, done).map(|_| ())
    }

    /// [`wait_until`](Self::wait_until), but not for longer than the limit; `false` if that has passed.
    pub fn wait_until_within(
        &self,
        limit: Option<Duration>,
        mut done: impl FnMut(&mut Control) -> bool,
    ) -> Result<bool> {
        let began = Instant::now();
        let mut control = self.control.lock();
        while !done(&mut control) {
            self.check_writable()?;
            if control.closing {
                return Err(Error::Closing);
            }
            control = match limit.map(|limit| limit.saturating_sub(began.elapsed())) {
                None => control.wait(&self.progress),
                Some(left) if left.is_zero() => return Ok(false),
                Some(left) => control.wait_timeout(&self.progress, left),
            };
        }
        Ok(true)
    }
}
