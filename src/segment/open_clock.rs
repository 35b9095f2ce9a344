//! The clock algorithm that chooses which open segment to close.

use super::reader::Segment;
use crate::sync::atomic::{AtomicBool, Ordering::Relaxed};
use arc_swap::ArcSwapOption;
use std::sync::Weak;

/// The open segments, in a ring. The entry of a dropped segment is reused.
#[derive(Default)]
pub(super) struct Clock {
    pub(super) open: Vec<Weak<OpenSlot>>,
    hand: usize,
}

/// Holds a segment while it is open.
#[derive(Default)]
pub(super) struct OpenSlot {
    pub(super) segment: ArcSwapOption<Segment>,
    /// Read since the clock hand's last pass.
    pub(super) used: AtomicBool,
}

impl Clock {
    /// Closes one segment and returns its index in the ring, which must not be empty. After a full round it
    /// takes any segment, because busy readers may have touched every one again.
    pub(super) fn vacate(&mut self) -> usize {
        let round = self.open.len().max(1);
        for step in 0.. {
            let at = self.hand % round;
            self.hand = at + 1;
            let Some(slot) = self.open.get(at).and_then(Weak::upgrade) else { return at };
            if !slot.used.swap(false, Relaxed) || step >= round {
                slot.segment.store(None);
                return at;
            }
        }
        0
    }
}
