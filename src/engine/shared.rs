//! What all parts of an open store share: its files, what readers see, and the state of its background work.
//!
//! Locks of a store are always taken in this order. Readers take none of them.
//! 1. The log ([`Writer`](super::write::Writer)): held by the writer at the head of the queue. Protects the
//!    write-ahead log and the active memtable.
//! 2. The manifest ([`Publisher`](super::publish::Publisher)): held while segments or sidecars are published.
//! 3. [`control`](Shared::control): held briefly, never during I/O or work that grows with the store. Whoever
//!    holds it may replace the view and assign background work.

use super::control::Control;
use super::read::view::View;
use super::storage::Storage;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::id::FileId;
use crate::key::{AsOf, Seq};
use crate::live::LiveSet;
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{ArcSwap, Condvar, Instant, ShortGuard, ShortLock};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// What tells the current view from all others. Every lookup reads it, so it has its own cache line.
#[repr(align(128))]
pub(crate) struct CurrentView {
    /// Identifies an open store within this process.
    pub store: u64,
    /// Rises after each change of the view, before what depends on the change is visible.
    pub number: AtomicU64,
}

/// A moment from which a writer reads, before it writes on the condition that nothing has changed since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The newest sequence number visible then. What is read later is at least as new.
    pub seq: Seq,
    /// As long as the epoch is the same, the active memtable has everything newer than `seq`.
    pub epoch: u64,
}

/// The core of an open store.
pub(crate) struct Shared {
    pub storage: Storage,
    pub control: ShortLock<Control>,
    view: ArcSwap<View>,
    pub current: CurrentView,
    /// The newest sequence number that readers may see.
    visible: AtomicU64,
    /// The number of segments in level 0 of the view, for writers, who look at nothing else of it.
    level0_depth: AtomicUsize,
    /// See [`Seen`].
    epoch: AtomicU64,
    /// Signals background threads that there may be work.
    work: Arc<Condvar>,
    /// Signals stalled writers and other waiters that background work has finished.
    progress: Condvar,
    /// Why the store became read-only (I5).
    failure: OnceLock<Arc<str>>,
    /// A thread has panicked during a write: what it began never ends.
    has_panicked: AtomicBool,
}

impl Shared {
    /// The state right after recovery. `work` is the signal that `storage` also has.
    pub fn new(storage: Storage, work: Arc<Condvar>, view: View, visible: Seq) -> Self {
        let before_own_logs = FileId(storage.first_own_id.0.saturating_sub(1));
        Shared {
            level0_depth: AtomicUsize::new(view.live.level0_depth()),
            view: ArcSwap::from_pointee(view),
            current: CurrentView { store: storage.keyspaces.store, number: AtomicU64::new(0) },
            visible: AtomicU64::new(visible),
            epoch: AtomicU64::new(0),
            control: ShortLock::new(Control::new(before_own_logs, storage.in_force.compaction_rate())),
            work,
            progress: Condvar::new(),
            failure: OnceLock::new(),
            has_panicked: AtomicBool::new(false),
            storage,
        }
    }

    /// The view that readers see now, for a short look.
    #[inline(always)]
    pub fn view(&self) -> impl Deref<Target = Arc<View>> {
        self.view.load()
    }

    /// The view that readers see now.
    pub fn current_view(&self) -> Arc<View> {
        self.view.load_full()
    }

    /// The number of the current view.
    pub fn view_number(&self) -> u64 {
        self.current.number.load(Ordering::Acquire)
    }

    /// The number of segments in level 0.
    #[inline]
    pub fn level0_depth(&self) -> usize {
        self.level0_depth.load(Ordering::Acquire)
    }

    pub fn live(&self) -> Arc<LiveSet> {
        Arc::clone(&self.view.load().live)
    }

    /// Whether this is the live set of the current view.
    pub fn is_current(&self, live: &Arc<LiveSet>) -> bool {
        Arc::ptr_eq(&self.view.load().live, live)
    }

    /// The newest sequence number that readers may see.
    #[inline(always)]
    pub fn visible(&self) -> Seq {
        self.visible.load(Ordering::Acquire)
    }

    /// Lets readers see everything up to this number.
    pub fn show(&self, visible: Seq) {
        self.visible.store(visible, Ordering::Release);
    }

    /// Lets readers see everything up to this number, if they see less now.
    pub fn show_at_least(&self, visible: Seq) {
        self.visible.fetch_max(visible, Ordering::AcqRel);
    }

    /// The moment for reads that start after this call.
    pub fn seen(&self) -> Seen {
        // Loaded first: a reader that sees the epoch after a change also sees the change.
        let epoch = self.epoch();
        Seen { seq: self.visible(), epoch }
    }

    /// The current epoch of writes. It only changes while the log is locked.
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Begins another epoch, because another memtable is active, or newer rows are in segments. The caller
    /// holds the log, and readers already see the change.
    pub fn begin_epoch(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
    }

    /// A view with everything up to the moment's number, except perhaps rows whose ingest begins another
    /// epoch.
    pub fn exact_snapshot(&self) -> (Arc<View>, Seen) {
        loop {
            let epoch = self.epoch();
            let (view, seq) = (self.current_view(), self.visible());
            // The number may be of an entry in a memtable that became active after the view was loaded.
            if self.epoch() == epoch {
                return (view, Seen { seq, epoch });
            }
        }
    }

    /// The view, the sequence number and the moment for a read that starts now, loaded in the order that
    /// [`View`] requires.
    #[inline]
    pub fn snapshot(&self) -> (Arc<View>, AsOf) {
        let view = self.current_view();
        let seq = self.visible();
        (view, AsOf { seq, time: self.storage.clock.moment() })
    }

    /// Replaces the view. The caller holds `control`, so only one thread at a time does so. Returns the
    /// previous view, which may be the last to hold its memtables and segments. Drop it without the lock and
    /// not earlier: once its memtables are gone, their filters deny everything, and readers must know by then
    /// that the view has changed.
    #[must_use]
    pub fn change_view(&self, _control: &mut Control, change: impl FnOnce(&mut View)) -> Arc<View> {
        let view = self.view.load_full().changed(change);
        self.level0_depth.store(view.live.level0_depth(), Ordering::Release);
        let before = self.view.swap(Arc::new(view));
        self.current.number.fetch_add(1, Ordering::Release);
        before
    }

    /// Computes the next live set with `next`, without the lock, and again if another thread has replaced it
    /// since. `along` changes the rest of the view at the same time. `None` changes nothing.
    pub fn change_live(
        &self,
        mut next: impl FnMut(&Arc<LiveSet>) -> Option<LiveSet>,
        along: impl FnOnce(&mut View),
    ) -> bool {
        loop {
            let before = self.live();
            let Some(live) = next(&before).map(Arc::new) else { return false };
            let mut control = self.control.lock();
            if self.is_current(&before) {
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

    /// Wakes the background threads: there may be work.
    pub fn wake_workers(&self) {
        self.work.notify_all();
    }

    /// Wakes the background threads for what was just done without the lock: one that has found it undone
    /// must not miss the signal.
    pub fn wake_workers_surely(&self) {
        drop(self.control.lock());
        self.work.notify_all();
    }

    /// Wakes the background threads and everybody who waits for them.
    pub fn wake_all(&self) {
        self.work.notify_all();
        self.progress.notify_all();
    }

    /// Wakes everybody who waits in [`wait_until`](Self::wait_until) for what was just done without the lock.
    #[cold]
    pub fn wake_waiters(&self) {
        // One that has just found it undone must not miss the wake-up.
        drop(self.control.lock());
        self.progress.notify_all();
    }

    /// Releases the lock until there may be work, or the timeout. May return earlier.
    pub fn sleep<'a>(
        &self,
        control: ShortGuard<'a, Control>,
        time: Option<Duration>,
    ) -> ShortGuard<'a, Control> {
        match time {
            None => control.wait(&self.work),
            Some(time) => control.wait_timeout(&self.work, time),
        }
    }

    /// Releases the lock until background work has finished. May return earlier.
    pub fn wait_for_progress<'a>(&self, control: ShortGuard<'a, Control>) -> ShortGuard<'a, Control> {
        control.wait(&self.progress)
    }

    /// Makes the store read-only for this cause, unless it is already.
    pub fn stop_writing(&self, cause: String) {
        if !self.storage.process.is_current() {
            return; // Nothing is written anyway, and a thread of the parent may have held the lock.
        }
        let cause: Arc<str> = cause.into();
        if self.failure.set(Arc::clone(&cause)).is_ok() {
            self.storage.events.emit(Event::Failed { cause: cause.to_string() });
        }
        // A thread that has just checked for a failure must not miss the wake-up.
        let _control = self.control.lock();
        self.wake_all();
    }

    /// Runs part of a write. A panic may leave the memtable without what the log has, so it makes the store
    /// read-only.
    pub fn poison_on_panic<T>(&self, part: impl FnOnce() -> T) -> T {
        let armed = PoisonOnDrop(self);
        let outcome = part();
        std::mem::forget(armed);
        outcome
    }

    /// Whether the store takes no more writes after a failure.
    pub fn has_failed(&self) -> bool {
        self.failure.get().is_some()
    }

    /// Fails if a thread has panicked during a write.
    pub fn check_no_panic(&self) -> Result<()> {
        if self.has_panicked.load(Ordering::Acquire) { self.check_writable() } else { Ok(()) }
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

    /// [`wait_until`](Self::wait_until) with a time limit; `false` once that has passed.
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

struct PoisonOnDrop<'a>(&'a Shared);

impl Drop for PoisonOnDrop<'_> {
    fn drop(&mut self) {
        self.0.has_panicked.store(true, Ordering::Release);
        self.0.stop_writing("a thread panicked during a write".into());
    }
}
