//! The maps of one store's sidecars, and the budget of them: a store needs as many maps as its options say, however many segments it
//! has.
//!
//! 1. A sidecar is mapped when it is first asked, by whoever asks, without a lock. Without room it answers "maybe".
//! 2. A map is never taken from a reader. When few are left, the store replaces sidecars that were not asked lately by unmapped ones in its
//!    next live set ([`Sidecar::unmapped`](super::Sidecar::unmapped)); a map goes with the last reader of a live set that has it.

use crate::fs::Fs;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use std::sync::{Arc, Condvar};

/// Who maps sidecars, how many there may be, and what their store should see to.
pub struct Maps {
    pub(super) fs: Arc<dyn Fs>,
    max: usize,
    mapped: AtomicUsize,
    /// Few maps are left, or the kernel gave none.
    is_short: AtomicBool,
    /// A sidecar was condemned by a reader.
    has_bad: AtomicBool,
    /// Wakes the store's background threads.
    wake: Arc<Condvar>,
}

/// One of the maps, until dropped.
pub(super) struct Share(Arc<Maps>);

impl Maps {
    /// For sidecars on `fs`, of which at most `max` are mapped. Notifies `wake` when there is something to see to.
    pub fn new(fs: Arc<dyn Fs>, max: usize, wake: Arc<Condvar>) -> Self {
        let [is_short, has_bad] = [false, false].map(AtomicBool::new);
        Maps { fs, max, mapped: AtomicUsize::new(0), is_short, has_bad, wake }
    }

    /// How many sidecars are mapped, those that only readers at work or snapshots still hold included.
    pub fn mapped(&self) -> usize {
        self.mapped.load(Relaxed)
    }

    /// How many should be unmapped, so that a quarter of the budget is free.
    pub fn excess(&self) -> usize {
        self.mapped().saturating_sub(self.max - self.max / 4)
    }

    /// Whether there was too little room since the last call.
    pub fn was_short(&self) -> bool {
        self.is_short.load(Relaxed) && self.is_short.swap(false, AcqRel)
    }

    /// Whether a reader has condemned a sidecar since the last call.
    pub fn had_bad(&self) -> bool {
        self.has_bad.load(Relaxed) && self.has_bad.swap(false, AcqRel)
    }

    /// One more map; `None` without room.
    pub(super) fn take(self: &Arc<Self>) -> Option<Share> {
        let taken = self.mapped.fetch_add(1, Relaxed);
        let share = Share(Arc::clone(self));
        if taken + 1 > self.max - self.max / 8 {
            self.ask_for_room();
        }
        (taken < self.max).then_some(share)
    }

    /// Whether there is room for who can do without: the last quarter is left to readers.
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

    /// Nobody may have waited when it was first told.
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
