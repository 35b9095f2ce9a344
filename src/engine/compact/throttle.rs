//! Holds compactions to the rate of [`Options::compaction_bytes_per_second`](crate::Options).
//!
//! 1. A compaction counts what its cursors have read from files, and what it has written, whenever it has
//!    passed a few more rows. It takes that from the store's one bucket and waits until the debt is paid.
//! 2. Blocks in the block cache cost no reads and do not count. The indexes of the inputs, about 1 %, do not
//!    count either.
//! 3. The rate does not hold while level 0 slows writers down, or the store closes or has failed. What is
//!    done then, or while there is no limit, does not count later.

use super::Compactor;
use crate::engine::write::commit::LEVEL0_SLOWDOWN;
use crate::sync::Instant;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Bytes of keys and values between two looks at the rate.
const LOOK_AFTER_BYTES: usize = 64 << 10;
/// Whoever waits looks at this interval whether the rate still holds: not all that ends it signals that.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// How far a compaction is, for the rate.
pub(super) struct Pace {
    /// Bytes of keys and values since the last look.
    passed: usize,
    /// Bytes that it had read and written at the last look.
    counted: u64,
    /// Whether the rate held then.
    held: bool,
}

impl Pace {
    /// Counts a row. Whether it is time to look at the rate.
    pub fn pass(&mut self, bytes: usize) -> bool {
        self.passed = self.passed.saturating_add(bytes);
        self.passed >= LOOK_AFTER_BYTES
    }
}

impl Compactor {
    /// The pace of a compaction that begins.
    pub(super) fn pace(&self) -> Pace {
        Pace { passed: 0, counted: 0, held: self.rate_holds() }
    }

    /// Counts the bytes that a compaction has read and written so far, and waits as long as the rate demands.
    /// Returns whether it has waited.
    pub(super) fn keep_pace(&self, pace: &mut Pace, done: u64) -> bool {
        pace.passed = 0;
        let bytes = done.saturating_sub(std::mem::replace(&mut pace.counted, done));
        let held = std::mem::replace(&mut pace.held, self.rate_holds());
        if !held || !pace.held {
            return false;
        }
        let began = Instant::now();
        let mut has_waited = false;
        let mut control = self.shared.control.lock();
        control.compactions.rate.take(bytes, began);
        while !control.closing && self.rate_holds() {
            let wait = control.compactions.rate.until_paid(Instant::now());
            if wait.is_zero() {
                break;
            }
            has_waited = true;
            control = self.shared.sleep(control, Some(wait.min(LOOK_EVERY)));
        }
        drop(control);
        if has_waited {
            let micros = began.elapsed().as_micros() as u64;
            self.shared.storage.metrics.compaction_throttled_micros.fetch_add(micros, Relaxed);
        }
        has_waited
    }

    /// Whether there is a rate, and nothing is more urgent.
    fn rate_holds(&self) -> bool {
        let (shared, slowdown) =
            (&self.shared, LEVEL0_SLOWDOWN.max(self.shared.storage.options.level0_trigger));
        shared.storage.in_force.compaction_rate() > 0
            && shared.level0_depth() < slowdown
            && !shared.has_failed()
    }
}
