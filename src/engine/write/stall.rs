//! Write stalls: writers wait when flushes and compactions cannot keep up.

use super::Writer;
use super::log::ActiveLog;
use crate::engine::backoff::TaskKind;
use crate::engine::compact::reservation::Reservation;
use crate::engine::control::Control;
use crate::engine::metrics::{WriteStall, add};
use crate::error::Result;
use crate::sync::Instant;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// How many full memtables may wait for a flush, or be in one, before writers stall.
pub(crate) const MEMTABLES_WAITING_MAX: usize = 2;
/// The numbers of level-0 segments at which writers slow down and stall. RocksDB's defaults.
pub(crate) const LEVEL0_SLOWDOWN: usize = 20;
const LEVEL0_STOP: usize = 36;
/// A longer stall is worth a line in the log.
const NOTE_STALL_AFTER: Duration = Duration::from_secs(1);
/// The write rate at the slowdown threshold. It falls linearly to an eighth of this at the stop threshold.
const SLOWDOWN_BYTES_PER_SEC: u64 = 64 << 20;
/// Writers accumulate their delays up to this length: most of a shorter sleep would be timer slack.
const SLEEP_MIN: Duration = Duration::from_millis(1);
impl Writer {
    /// Stalls the writer while level 0 is full.
    pub fn wait_for_level0(&self) -> Result<()> {
        self.stall(|_| self.level0_is_at_stop().then_some(TaskKind::Compaction))
    }

    pub(super) fn level0_is_at_stop(&self) -> bool {
        self.shared.view().live.levels()[0].segments().len()
            >= LEVEL0_STOP.max(self.shared.storage.options.level0_trigger)
    }

    /// Stalls the writer until `wanted` returns `None`. If that takes a while, logs what it waits for.
    pub(super) fn stall(&self, mut wanted: impl FnMut(&mut Control) -> Option<TaskKind>) -> Result<()> {
        let stalled = Instant::now();
        let mut waiting = |control: &mut Control| {
            let kind = wanted(control);
            let metric = kind.map_or(0, |kind| WriteStall::of(kind).map_or(0, WriteStall::to_metric));
            self.shared.storage.metrics.write_stall.store(metric, Relaxed);
            kind
        };
        // A simulated schedule has no use for a wait that ends by itself.
        let limit = (!cfg!(sidebloom_schedules)).then_some(NOTE_STALL_AFTER);
        let mut outcome = self.shared.wait_for_work_within(limit, &mut waiting);
        if let Ok(false) = outcome {
            self.note_stall();
            outcome = self.shared.wait_for_work(&mut waiting).map(|()| true);
        }
        self.shared.storage.metrics.write_stall.store(0, Relaxed);
        add(&self.shared.storage.metrics.stall_micros, stalled.elapsed().as_micros() as u64);
        outcome.map(|_| ())
    }

    #[cold]
    fn note_stall(&self) {
        let level0 = self.shared.view().live.levels()[0].segments().len();
        let control = self.shared.control.lock();
        let memtables = control.flushes.memtables();
        let compacting: usize = control.compactions.running.iter().map(Reservation::segments).sum();
        drop(control);
        tracing::warn!(
            level0,
            memtables,
            compacting,
            "writes wait until fewer than {LEVEL0_STOP} segments are in level 0 and fewer than {MEMTABLES_WAITING_MAX} memtables wait for a flush; \
             compactions of {compacting} segments are running"
        );
    }

    pub(super) fn slow_down(&self, log: &mut ActiveLog, level0: usize, bytes: usize) {
        let span = (LEVEL0_STOP - LEVEL0_SLOWDOWN) as u64;
        let over = (level0 - LEVEL0_SLOWDOWN).min(span as usize) as u64;
        let bytes_per_sec = SLOWDOWN_BYTES_PER_SEC / 8 * (8 * span - 7 * over) / span;
        log.sleep_debt += Duration::from_nanos(bytes as u64 * 1_000_000_000 / bytes_per_sec);
        if log.sleep_debt >= SLEEP_MIN {
            let started = Instant::now();
            crate::sync::sleep(log.sleep_debt);
            add(&self.shared.storage.metrics.stall_micros, started.elapsed().as_micros() as u64);
            log.sleep_debt = Duration::ZERO;
        }
    }
}
