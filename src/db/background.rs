//! The background threads: each takes the most urgent work there is, or sleeps. What an error or a panic means is decided in `failure.rs`.

use super::control::Control;
use super::inner::Inner;
use super::lock::lock;
use super::pick::{Compaction, pick};
use super::retry::TaskKind;
use crate::error::{Error, Result};
use crate::filter::FilterSpec;
use crate::fs::sigbus_faults;
use crate::id::FileId;
use crate::memtable::Memtable;
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A signal handler cannot wake a thread: with [`catch_sigbus`](crate::fs::catch_sigbus) the threads look themselves.
const LOOK_FOR_FAULTS_EVERY: Duration = Duration::from_secs(1);

/// In the order of urgency.
enum Work {
    UnmapCold,
    Flush(Arc<Memtable>, FileId),
    CheckSidecar(FileId),
    Compact(Compaction),
    TakeBack(Compaction),
    Retune(FileId, FilterSpec),
}

impl Work {
    /// What its outcome says something about: `None` when it cannot fail.
    fn kind(&self) -> Option<TaskKind> {
        match self {
            Work::UnmapCold => None,
            Work::Flush(..) => Some(TaskKind::Flush),
            Work::Compact(_) | Work::TakeBack(_) => Some(TaskKind::Compaction),
            Work::CheckSidecar(_) | Work::Retune(..) => Some(TaskKind::Sidecars),
        }
    }

    /// Undoes what taking the work marked. What is to be done `again` and would be forgotten is queued.
    fn hand_back(self, control: &mut Control, failed: bool, again: bool) {
        match self {
            Work::Flush(table, next_log) => {
                control.flushing = None;
                if failed {
                    control.to_flush.push_front((table, next_log));
                }
            }
            Work::UnmapCold => {
                control.unmap_from.get_or_insert_with(Instant::now);
            }
            Work::CheckSidecar(id) => {
                control.checking_sidecars = false;
                if again {
                    control.sidecars_to_check.push_back(id);
                }
            }
            Work::Retune(..) => control.checking_sidecars = false,
            Work::Compact(compaction) | Work::TakeBack(compaction) => {
                let done = compaction.reservation();
                control.running.retain(|running| Some(running) != done.as_ref());
            }
        }
    }
}

/// Starts the threads of a store.
pub(crate) fn spawn(inner: &Arc<Inner>) -> Result<Vec<JoinHandle<()>>> {
    let threads = if inner.storage.options.read_only { 1 } else { inner.storage.options.background_threads };
    let spawn_one = |n: usize| {
        let inner = Arc::clone(inner);
        let builder = std::thread::Builder::new().name(format!("sidebloom-{n}"));
        builder.spawn(move || inner.work_until_closed())
    };
    let handles: std::io::Result<Vec<_>> = (0..threads).map(spawn_one).collect();
    handles.map_err(|e| Error::io("start a thread for", &inner.storage.dir, e))
}

impl Inner {
    fn work_until_closed(&self) {
        while let Some(Some(work)) = self.guarded(|| self.next_work()) {
            let result = self.guarded(|| self.perform(&work)).unwrap_or_else(|| self.check_writable());
            let failed = result.is_err();
            let failure = result.err().filter(|error| !self.quarantine(error)).map(|error| self.fail(error));
            let mut control = lock(&self.control);
            if let Some(kind) = work.kind() {
                self.record_attempt(&mut control, kind, failure.as_ref());
            }
            work.hand_back(&mut control, failed, failure.is_some());
            drop(control);
            self.work.notify_all();
            self.progress.notify_all();
        }
    }

    fn perform(&self, work: &Work) -> Result<()> {
        match work {
            Work::Flush(table, next_log) => self.flush_one(table, *next_log),
            Work::UnmapCold => {
                self.unmap_cold();
                Ok(())
            }
            Work::CheckSidecar(id) => self.check_sidecar(*id),
            Work::Compact(compaction) => self.compact_one(compaction),
            Work::TakeBack(compaction) => self.take_back_if_sound(compaction),
            Work::Retune(id, spec) => self.retune(*id, *spec),
        }
    }

    /// Waits for work; `None` when the store closes.
    fn next_work(&self) -> Option<Work> {
        let mut control = lock(&self.control);
        loop {
            if control.closing {
                return None;
            }
            // One for both looks: a pause that ends between them would end unseen.
            let now = Instant::now();
            if let Some(work) = self.choose(&mut control, now) {
                return Some(work);
            }
            let mut later = self.worth_waiting_for(&control, now);
            if sigbus_faults().is_some() {
                later = Some(later.map_or(LOOK_FOR_FAULTS_EVERY, |time| time.min(LOOK_FOR_FAULTS_EVERY)));
            }
            control = match later {
                None => self.work.wait(control).unwrap_or_else(PoisonError::into_inner),
                Some(time) => self.work.wait_timeout(control, time).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
    }

    fn choose(&self, control: &mut Control, now: Instant) -> Option<Work> {
        if control.unmap_from.is_some_and(|from| from <= now) && self.storage.maps.was_short() {
            control.unmap_from = None;
            return Some(Work::UnmapCold);
        }
        if self.failure.get().is_some() {
            return None;
        }
        if control.flushing.is_none()
            && control.flush_retries.pause(now).is_zero()
            && let Some((table, next_log)) = control.to_flush.pop_front()
        {
            control.flushing = Some(next_log);
            return Some(Work::Flush(table, next_log));
        }
        self.queue_bad(control);
        self.queue_missing_sidecars(control);
        self.queue_suspects(control);
        let sidecars_rest = !control.sidecar_retries.pause(now).is_zero();
        if !control.checking_sidecars
            && !sidecars_rest
            && let Some(id) = control.sidecars_to_check.pop_front()
        {
            control.checking_sidecars = true;
            return Some(Work::CheckSidecar(id));
        }
        if !control.compaction_retries.pause(now).is_zero() {
            return None;
        }
        // One thread stays free, so that a flush never waits for a long compaction.
        let spare = self.storage.options.background_threads - 1;
        if self.storage.options.read_only || control.running.len() - control.manual >= spare {
            return None;
        }
        if let Some(compaction) = self.next_suspect(control) {
            control.running.extend(compaction.reservation());
            return Some(Work::TakeBack(compaction));
        }
        let at_rest = control.until_idle().is_zero();
        if let Some(compaction) = pick(&self.live(), &self.storage.options, &control.running, at_rest) {
            control.running.extend(compaction.reservation());
            return Some(Work::Compact(compaction));
        }
        if !at_rest || sidecars_rest || control.checking_sidecars || !control.running.is_empty() {
            return None;
        }
        let (id, spec) = self.segment_to_retune()?;
        control.checking_sidecars = true;
        Some(Work::Retune(id, spec))
    }

    /// How long until there may be work without anybody's notice: a pause after a failure ends, something is to be looked at again, or the
    /// store comes to rest and there is something to compact then.
    fn worth_waiting_for(&self, control: &Control, now: Instant) -> Option<Duration> {
        if self.failure.get().is_some() {
            return None;
        }
        let looks = [control.until_missing_sidecars(), control.until_suspects()];
        let tries = [&control.flush_retries, &control.compaction_retries, &control.sidecar_retries];
        let pauses = tries.map(|tries| tries.pause(now));
        let pauses: Vec<Duration> = pauses.into_iter().filter(|pause| !pause.is_zero()).collect();
        let rest = if pauses.is_empty() { self.until_work_at_rest(control) } else { None };
        looks.into_iter().flatten().chain(pauses).chain(rest).min()
    }

    fn until_work_at_rest(&self, control: &Control) -> Option<Duration> {
        let idle = control.running.is_empty() && !self.storage.options.read_only;
        let until_idle = control.until_idle();
        if !idle || until_idle.is_zero() {
            return None;
        }
        let compaction = pick(&self.live(), &self.storage.options, &control.running, true).map(|_| ());
        compaction.or_else(|| self.segment_to_retune().map(|_| ())).map(|()| until_idle)
    }
}
