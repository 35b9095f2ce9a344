//! The maps of one store's sidecars. The options limit their number for any number of segments.
//!
//! 1. The first reader that probes a sidecar maps it, without a lock. If the budget is used up, the sidecar
//!    answers "maybe".
//! 2. A map is never taken from a reader. When few are left, the store's next live set has unmapped copies
//!    ([`Sidecar::unmapped`](super::Sidecar::unmapped)) of sidecars that were not probed recently. The old
//!    sidecar's memory and file are freed with the last view that includes it (`live.rs`), the map itself
//!    with the last thread that keeps the view's filters.

use super::read_ahead::VerifyReads;
use crate::fs::Fs;
use crate::sync::Condvar;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use std::fmt;
use std::sync::Arc;

/// Maps sidecars, counts the maps, and tells the store when it must act.
pub struct Maps {
    pub(super) fs: Arc<dyn Fs>,
    max: usize,
    mapped: AtomicUsize,
    /// Few maps are left, or the kernel refused one.
    is_short: AtomicBool,
    /// A reader has condemned a sidecar.
    has_bad: AtomicBool,
    pub(super) reads: VerifyReads,
    /// Wakes the store's background threads.
    wake: Arc<Condvar>,
}

/// One map of the budget, released on drop.
pub(super) struct Share(Arc<Maps>);

impl Maps {
    /// A budget of `max` maps for sidecars on `fs`. Notifies `wake` when maps run short or a sidecar is bad.
    pub fn new(fs: Arc<dyn Fs>, max: usize, wake: Arc<Condvar>) -> Self {
        let [is_short, has_bad] = [false, false].map(AtomicBool::new);
        Maps { fs, max, mapped: AtomicUsize::new(0), is_short, has_bad, reads: VerifyReads::default(), wake }
    }

    /// How many sidecars are mapped, including those that only active readers or snapshots still hold.
    pub fn mapped(&self) -> usize {
        self.mapped.load(Relaxed)
    }

    /// How many sidecars to unmap so that a quarter of the budget is free.
    pub fn excess(&self) -> usize {
        self.mapped().saturating_sub(self.max - self.max / 4)
    }

    /// Whether maps have run short since the last call.
    pub fn take_shortage(&self) -> bool {
        self.is_short.load(Relaxed) && self.is_short.swap(false, AcqRel)
    }

    /// Whether a reader has condemned a sidecar since the last call.
    pub fn take_condemned(&self) -> bool {
        self.has_bad.load(Relaxed) && self.has_bad.swap(false, AcqRel)
    }

    /// Takes one map from the budget; `None` if it is used up.
    pub(super) fn take(self: &Arc<Self>) -> Option<Share> {
        let taken = self.mapped.fetch_add(1, Relaxed);
        let share = Share(Arc::clone(self));
        if taken + 1 > self.max - self.max / 8 {
            self.ask_for_room();
        }
        (taken < self.max).then_some(share)
    }

    /// Whether a caller that can do without a map may take one: the last quarter is reserved for readers.
    pub(super) fn has_spare(&self) -> bool {
        self.mapped() < self.max - self.max / 4
    }

    pub(super) fn ask_for_room(&self) {
        self.is_short.store(true, Release);
        self.wake.notify_all();
    }

    pub(super) fn tell_of_bad(&self) {
        self.has_bad.store(true, Release);
        self.wake.notify_all();
    }

    /// Repeats the notification: no thread may have been waiting for the first one.
    pub(super) fn tell_again(&self) {
        if self.has_bad.load(Relaxed) {
            self.wake.notify_all();
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.0.mapped.fetch_sub(1, Relaxed);
    }
}

impl fmt::Debug for Maps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Maps({} of {})", self.mapped(), self.max)
    }
}
