//! Counts the live segments that have a sidecar, in all views.

use crate::sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{AcqRel, Relaxed},
};

/// How many owners a sidecar has.
#[derive(Default)]
pub(super) struct Owners {
    count: AtomicUsize,
    /// There were some, and the last one is gone.
    are_gone: AtomicBool,
}

impl Owners {
    pub fn add(&self) {
        self.count.fetch_add(1, Relaxed);
    }

    /// Whether it was the last one.
    pub fn remove(&self) -> bool {
        let is_last = self.count.fetch_sub(1, AcqRel) == 1;
        if is_last {
            self.are_gone.store(true, Relaxed);
        }
        is_last
    }

    /// Whether there were some, and the last one is gone.
    pub fn are_gone(&self) -> bool {
        self.are_gone.load(Relaxed)
    }
}
