//! Waiting until nothing is left to do.

use super::Compactor;
use super::pick::pick;
use crate::engine::backoff::TaskKind;
use crate::engine::control::TombstoneFlush;
use crate::engine::failure::AwaitedWork;
use crate::engine::shared::Shared;
use crate::error::{Error, Result};
use crate::sync::lock;

impl Compactor {
    /// Waits until nothing is left to flush, compact or retune.
    pub fn wait_for_compaction(&self) -> Result<()> {
        self.shared.check_writable()?;
        let _wait = CompactionWait::begin(&self.shared);
        let mut awaited = AwaitedWork::default();
        loop {
            let seen = (self.shared.view_number(), self.shared.control.lock().finished);
            let Some(kind) = self.work_left() else { return Ok(()) };
            let mut control = self.shared.control.lock();
            self.shared.check_writable()?;
            if control.closing {
                return Err(Error::Closing);
            }
            self.shared.check_awaited(&mut awaited, &mut control, kind)?;
            if seen == (self.shared.view_number(), control.finished) {
                let _control = self.shared.wait_for_progress(control);
            }
        }
    }

    /// The work that is left, or running, in a store that counts as idle.
    fn work_left(&self) -> Option<TaskKind> {
        {
            let control = self.shared.control.lock();
            let rotates = control.flushes.tombstones != TombstoneFlush::NotNeeded;
            if control.flushes.memtables() > 0 || rotates {
                return Some(TaskKind::Flush);
            }
            if !control.compactions.running.is_empty() {
                return Some(TaskKind::Compaction);
            }
        }
        if pick(
            &mut lock(&self.costs),
            &self.shared.live(),
            &self.shared.storage.options,
            &[],
            true,
            self.shared.storage.clock.moment(),
        )
        .is_some()
        {
            return Some(TaskKind::Compaction);
        }
        let retunes =
            self.shared.control.lock().sidecars.checking || self.filters.segment_to_retune().is_some();
        retunes.then_some(TaskKind::Sidecars)
    }
}

/// While this lives, background threads treat the store as idle and compact everything.
struct CompactionWait<'a>(&'a Shared);

impl<'a> CompactionWait<'a> {
    fn begin(shared: &'a Shared) -> Self {
        shared.control.lock().idleness.waiters += 1;
        shared.wake_workers();
        CompactionWait(shared)
    }
}

impl Drop for CompactionWait<'_> {
    fn drop(&mut self) {
        self.0.control.lock().idleness.waiters -= 1;
    }
}
