//! Chooses the next task.

use super::task::BackgroundTask;
use crate::engine::Engine;
use crate::engine::compact::next_compaction::NextCompaction;
use crate::engine::control::{Control, TombstoneFlush};
use crate::fs::sigbus_faults;
use crate::sync::Instant;
use std::time::Duration;

/// A signal handler cannot wake a thread. With [`catch_sigbus`](crate::fs::catch_sigbus), the threads poll
/// for faults at this interval.
const LOOK_FOR_FAULTS_EVERY: Duration = Duration::from_secs(1);

/// Reads wake no thread. The threads of a store with keyspaces look at this interval where keys are missing.
const LOOK_AT_MISSES_EVERY: Duration = Duration::from_secs(10);

/// How often the threads of an idle store look for rows that have expired.
const LOOK_AT_EXPIRED_EVERY: Duration = Duration::from_secs(1);

impl Engine {
    /// Waits for a task; `None` once the store is closing, or has too many threads. `worker` is the number of
    /// the calling one.
    pub(super) fn next_task(&self, worker: usize) -> Option<BackgroundTask> {
        let mut control = self.shared.control.lock();
        // What there was when this thread last looked for a compaction and found none.
        let mut looked = None;
        loop {
            if control.closing {
                return None;
            }
            let threads = self.shared.storage.in_force.background_threads();
            if control.workers.may_end(threads, control.compactions.in_background()) {
                control.workers.end(worker);
                return None;
            }
            // One time for all: a pause that ended between two calls would go unnoticed.
            let now = Instant::now();
            if let Some(task) = self.choose(&mut control, now) {
                return Some(task);
            }
            let until_idle = control.idleness.until_idle();
            if self.may_compact(&control, now) {
                let number = self.shared.view_number();
                let seen = (number, control.finished, until_idle.is_zero());
                if looked.replace(seen) != Some(seen) {
                    drop(control);
                    if let Some(task) = self.look_for_work() {
                        return Some(task);
                    }
                    control = self.shared.control.lock();
                    continue; // Something may have happened since.
                }
            }
            let mut later = self.until_next_task(&control, now, until_idle);
            if sigbus_faults().is_some() {
                later = Some(later.map_or(LOOK_FOR_FAULTS_EVERY, |time| time.min(LOOK_FOR_FAULTS_EVERY)));
            }
            control = self.shared.sleep(control, later);
            looked = None;
        }
    }

    /// Whether a thread is free for a compaction. One stays free, so no flush waits for a long compaction.
    fn may_compact(&self, control: &Control, now: Instant) -> bool {
        let spare = self.shared.storage.in_force.background_threads().saturating_sub(1);
        !self.shared.has_failed()
            && !self.shared.storage.options.read_only
            && control.compactions.retries.pause(now).is_zero()
            && control.compactions.in_background() < spare
    }

    fn choose(&self, control: &mut Control, now: Instant) -> Option<BackgroundTask> {
        if control.sidecars.unmap_from.is_some_and(|from| from <= now)
            && self.shared.storage.maps.take_shortage()
        {
            control.sidecars.unmap_from = None;
            return Some(BackgroundTask::UnmapCold);
        }
        if self.shared.storage.files.leftovers().until_look(now).is_some_and(|wait| wait.is_zero()) {
            return Some(BackgroundTask::RemoveLeftovers);
        }
        if !control.retired.is_empty() {
            return Some(BackgroundTask::FreeMemtables);
        }
        if self.shared.has_failed() {
            return None;
        }
        if control.flushes.running.is_none()
            && control.flushes.retries.pause(now).is_zero()
            && let Some((table, next_log)) = control.flushes.waiting.pop_front()
        {
            control.flushes.running = Some(next_log);
            return Some(BackgroundTask::Flush(table, next_log));
        }
        if control.until_tombstone_flush(now).is_some_and(|wait| wait.is_zero()) {
            control.flushes.tombstones = TombstoneFlush::Starting;
            return Some(BackgroundTask::RotateTombstones);
        }
        let faults = sigbus_faults().unwrap_or(0);
        if self.shared.storage.maps.take_condemned() || faults != control.sidecars.faults_seen {
            control.sidecars.faults_seen = faults;
            return Some(BackgroundTask::QueueBadSidecars);
        }
        if control.sidecars.missing.take_due(now) {
            return Some(BackgroundTask::QueueMissingSidecars);
        }
        if control.suspects.next.take_due(now) {
            return Some(BackgroundTask::QueueSuspects);
        }
        let sidecars_pause = !control.sidecars.retries.pause(now).is_zero();
        if !control.sidecars.checking && !sidecars_pause {
            let check = control.sidecars.to_check.pop();
            let check = check.map(|(id, ahead)| BackgroundTask::CheckSidecar(id, ahead));
            // Lookups need the filters first.
            let task =
                check.or_else(|| control.sidecars.indexes_to_warm.pop().map(BackgroundTask::WarmIndex));
            if task.is_some() {
                control.sidecars.checking = true;
                return task;
            }
        }
        None
    }

    /// How long until there may be a task that nobody signals: a pause after a failure ends, a check is due
    /// again, or the store becomes idle with something to compact.
    fn until_next_task(&self, control: &Control, now: Instant, until_idle: Duration) -> Option<Duration> {
        let leftovers = self.shared.storage.files.leftovers().until_look(now);
        if self.shared.has_failed() {
            return leftovers;
        }
        let checks = [control.sidecars.missing.until(now), control.suspects.next.until(now)];
        let retries = [&control.flushes.retries, &control.compactions.retries, &control.sidecars.retries];
        let pauses = retries.map(|retries| retries.pause(now));
        let pauses: Vec<Duration> = pauses.into_iter().filter(|pause| !pause.is_zero()).collect();
        // Something may be waiting for that.
        let may_compact = control.compactions.running.is_empty() && !self.shared.storage.options.read_only;
        let idle = (pauses.is_empty() && may_compact && !until_idle.is_zero()).then_some(until_idle);
        let tombstones = control.until_tombstone_flush(now);
        let counts_misses = self.shared.storage.filters_on() && self.shared.storage.keyspaces.have_heads();
        let idle = idle.or_else(|| (may_compact && counts_misses).then_some(LOOK_AT_MISSES_EVERY));
        let expires = (may_compact && self.shared.storage.clock.is_needed()).then_some(LOOK_AT_EXPIRED_EVERY);
        checks
            .into_iter()
            .flatten()
            .chain(pauses)
            .chain(idle)
            .chain(expires)
            .chain(tombstones)
            .chain(leftovers)
            .min()
    }

    /// The most urgent compaction, already reserved, or else a filter to replace.
    fn look_for_work(&self) -> Option<BackgroundTask> {
        let may_compact = |control: &Control| !control.closing && self.may_compact(control, Instant::now());
        match self.compactor.next(may_compact) {
            NextCompaction::Reserved(compaction) => return Some(BackgroundTask::Compact(compaction)),
            NextCompaction::NotNow => return None,
            NextCompaction::Nothing => {}
        }
        let may_retune = |control: &Control| {
            !control.closing
                && control.idleness.until_idle().is_zero()
                && control.compactions.running.is_empty()
                && !control.sidecars.checking
                && control.sidecars.retries.pause(Instant::now()).is_zero()
        };
        if !may_retune(&self.shared.control.lock()) {
            return None;
        }
        let (meta, spec) = self.filters.segment_to_retune()?;
        let mut control = self.shared.control.lock();
        if !may_retune(&control) {
            return None;
        }
        control.sidecars.checking = true;
        Some(BackgroundTask::Retune(meta, spec))
    }
}
