//! The background threads. Each takes the most urgent task, or sleeps. `failure.rs` decides what an error or a panic means.

pub(crate) mod id_queue;

use crate::engine::compact::compaction::Compaction;
use crate::engine::compact::pick::pick;
use crate::engine::control::{Control, TombstoneFlush};
use crate::engine::retry::TaskKind;
use crate::engine::shared::Inner;
use crate::error::{Error, Result};
use crate::filter::FilterSpec;
use crate::fs::sigbus_faults;
use crate::id::FileId;
use crate::live::LiveSet;
use crate::manifest::SegmentMeta;
use crate::memtable::Memtable;
use crate::sync::atomic::Ordering;
use crate::sync::{self, Instant, JoinHandle, lock};
use std::sync::Arc;
use std::time::Duration;

/// A signal handler cannot wake a thread. With [`catch_sigbus`](crate::fs::catch_sigbus), the threads poll for faults at this interval.
const LOOK_FOR_FAULTS_EVERY: Duration = Duration::from_secs(1);

/// Segments whose index partitions are read in one task.
const INDEXES_AT_ONCE: usize = 16;

/// How nice the background thread of a follower is.
#[cfg(target_os = "linux")]
const BEHIND: i32 = 10;

/// A unit of background work. The variants are in order of urgency.
enum BackgroundTask {
    UnmapCold,
    RemoveLeftovers,
    FreeMemtables,
    QueueBadSidecars,
    QueueMissingSidecars,
    QueueSuspects,
    Flush(Arc<Memtable>, FileId),
    /// Hands a memtable with many tombstones over to a flush.
    RotateTombstones,
    /// Checks the sidecar of a segment, and has those of others read meanwhile.
    CheckSidecar(FileId, Vec<FileId>),
    WarmIndexes(Vec<FileId>),
    Compact(Compaction),
    TakeBack(Compaction),
    Retune(Arc<SegmentMeta>, FilterSpec),
}

impl BackgroundTask {
    /// The kind whose retries its outcome counts for; `None` if it cannot fail.
    fn kind(&self) -> Option<TaskKind> {
        match self {
            BackgroundTask::UnmapCold
            | BackgroundTask::RemoveLeftovers
            | BackgroundTask::FreeMemtables
            | BackgroundTask::QueueBadSidecars
            | BackgroundTask::QueueMissingSidecars
            | BackgroundTask::QueueSuspects => None,
            BackgroundTask::Flush(..) | BackgroundTask::RotateTombstones => Some(TaskKind::Flush),
            BackgroundTask::Compact(_) | BackgroundTask::TakeBack(_) => Some(TaskKind::Compaction),
            BackgroundTask::CheckSidecar(..)
            | BackgroundTask::WarmIndexes(_)
            | BackgroundTask::Retune(..) => Some(TaskKind::Sidecars),
        }
    }

    /// Lets go of what a finished task was about. That may remove files, so it comes before whoever waits for the task hears of its end.
    fn let_go(&mut self) {
        if let BackgroundTask::Compact(compaction) | BackgroundTask::TakeBack(compaction) = self {
            compaction.let_go();
        }
    }

    /// Clears the marks that `next_task` set. If the task must run `again` and nothing else would remember it, queues it. The caller drops
    /// the task without the lock: that may free a memtable.
    fn hand_back(&self, control: &mut Control, failed: bool, again: bool) {
        match self {
            BackgroundTask::Flush(table, next_log) => {
                control.flushing = None;
                if failed {
                    control.to_flush.push_front((Arc::clone(table), *next_log));
                }
            }
            BackgroundTask::RotateTombstones if control.tombstone_flush == TombstoneFlush::Starting => {
                control.tombstone_flush = match again {
                    true => TombstoneFlush::Due(Instant::now()),
                    false => TombstoneFlush::NotNeeded,
                };
            }
            BackgroundTask::RotateTombstones => {} // It is due again: the next memtable has many, too, or the log was locked.
            BackgroundTask::RemoveLeftovers | BackgroundTask::FreeMemtables => {}
            BackgroundTask::QueueBadSidecars
            | BackgroundTask::QueueMissingSidecars
            | BackgroundTask::QueueSuspects => {}
            BackgroundTask::UnmapCold => {
                control.unmap_from.get_or_insert_with(Instant::now);
            }
            BackgroundTask::CheckSidecar(id, _) => {
                control.checking_sidecars = false;
                if again {
                    control.sidecars_to_check.push(*id);
                }
                if !failed {
                    control.indexes_to_warm.push(*id);
                }
            }
            BackgroundTask::WarmIndexes(ids) => {
                control.checking_sidecars = false;
                ids.iter().filter(|_| again).for_each(|id| control.indexes_to_warm.push(*id));
            }
            BackgroundTask::Retune(..) => control.checking_sidecars = false,
            BackgroundTask::Compact(compaction) | BackgroundTask::TakeBack(compaction) => {
                control.running.retain(|running| running != compaction.reservation());
            }
        }
    }
}

/// Some segments whose index partitions wait to be read, together, because finding each takes a walk through all segments.
fn next_indexes(control: &mut Control) -> Option<Vec<FileId>> {
    let next = std::iter::from_fn(|| control.indexes_to_warm.pop());
    let ids: Vec<FileId> = next.take(INDEXES_AT_ONCE).collect();
    (!ids.is_empty()).then_some(ids)
}

/// Starts the threads of a store. After an error, `threads` has those that were started.
pub(crate) fn spawn(inner: &Arc<Inner>, threads: &mut Vec<JoinHandle<()>>) -> Result<()> {
    let workers = if inner.storage.options.read_only { 1 } else { inner.storage.options.background_threads };
    for n in 0..workers {
        threads.push(spawn_one(inner, format!("sidebloom-{n}"), Inner::work_until_closed)?);
    }
    if inner.following.is_some() {
        threads.push(spawn_one(inner, "sidebloom-follow".into(), Inner::follow_until_closed)?);
    }
    Ok(())
}

fn spawn_one(inner: &Arc<Inner>, name: String, run: fn(&Inner)) -> Result<JoinHandle<()>> {
    let its = Arc::clone(inner);
    let spawned = sync::Builder::new().name(name).spawn(move || run(&its));
    spawned.map_err(|e| Error::io("start a thread for", &inner.storage.dir, e))
}

impl Inner {
    fn work_until_closed(&self) {
        // Freeing memtables and verifying filters must not hold up the thread that follows: with eight followers on two cores, the longest lag
        // fell from 250 to 100 ms (`cargo run --release --example followers`).
        #[cfg(target_os = "linux")]
        if self.following.is_some() {
            let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), BEHIND);
        }
        while let Some(Some(mut task)) = self.guarded(|| self.next_task()) {
            let result = self.guarded(|| self.perform(&task)).unwrap_or_else(|| self.check_writable());
            let failed = result.is_err();
            let failure = result.err().filter(|error| !self.quarantine(error)).map(|error| self.fail(error));
            task.let_go();
            let mut control = self.control.lock();
            if let Some(kind) = task.kind() {
                self.record_attempt(&mut control, kind, failure.as_ref());
            }
            task.hand_back(&mut control, failed, failure.is_some());
            control.finished += 1;
            drop(control);
            drop(task);
            self.work.notify_all();
            self.progress.notify_all();
        }
    }

    fn perform(&self, task: &BackgroundTask) -> Result<()> {
        match task {
            BackgroundTask::Flush(table, next_log) => self.flush_one(table, *next_log),
            BackgroundTask::RotateTombstones => self.rotate_tombstones(),
            BackgroundTask::UnmapCold => {
                self.unmap_cold();
                Ok(())
            }
            BackgroundTask::RemoveLeftovers => {
                self.storage.files.leftovers().look_again();
                Ok(())
            }
            BackgroundTask::FreeMemtables => {
                let retired = std::mem::take(&mut self.control.lock().retired);
                drop(retired); // Without the lock.
                Ok(())
            }
            BackgroundTask::QueueBadSidecars => {
                self.queue_bad();
                Ok(())
            }
            BackgroundTask::QueueMissingSidecars => {
                self.queue_missing_sidecars();
                Ok(())
            }
            BackgroundTask::QueueSuspects => {
                self.queue_suspects();
                Ok(())
            }
            BackgroundTask::CheckSidecar(id, ahead) => {
                self.read_sidecars_ahead(ahead);
                self.check_sidecar(*id)
            }
            BackgroundTask::WarmIndexes(ids) => self.warm_indexes(ids),
            BackgroundTask::Compact(compaction) => self.compact_one(compaction),
            BackgroundTask::TakeBack(compaction) => self.take_back_if_readable(compaction),
            BackgroundTask::Retune(meta, spec) => self.retune(meta, *spec),
        }
    }

    /// Waits for a task; `None` once the store is closing.
    fn next_task(&self) -> Option<BackgroundTask> {
        let mut control = self.control.lock();
        // What there was when this thread last looked for a compaction and found none.
        let mut looked = None;
        loop {
            if control.closing {
                return None;
            }
            // One time for all: a pause that ended between two calls would go unnoticed.
            let now = Instant::now();
            if let Some(task) = self.choose(&mut control, now) {
                return Some(task);
            }
            let until_idle = control.until_idle();
            if self.may_compact(&control, now) {
                let number = self.current.number.load(Ordering::Acquire);
                let seen = (number, control.finished, until_idle.is_zero());
                if looked.replace(seen) != Some(seen) {
                    drop(control);
                    if let Some(task) = self.look_for_work() {
                        return Some(task);
                    }
                    control = self.control.lock();
                    continue; // Something may have happened meanwhile.
                }
            }
            let mut later = self.until_next_task(&control, now, until_idle);
            if sigbus_faults().is_some() {
                later = Some(later.map_or(LOOK_FOR_FAULTS_EVERY, |time| time.min(LOOK_FOR_FAULTS_EVERY)));
            }
            control = match later {
                None => control.wait(&self.work),
                Some(time) => control.wait_timeout(&self.work, time),
            };
            looked = None;
        }
    }

    /// Whether a thread is free for a compaction. One stays free, so that no flush waits for a long compaction.
    fn may_compact(&self, control: &Control, now: Instant) -> bool {
        let spare = self.storage.options.background_threads - 1;
        self.failure.get().is_none()
            && !self.storage.options.read_only
            && control.compaction_retries.pause(now).is_zero()
            && control.running.len() - control.manual < spare
    }

    /// The most urgent compaction, which is reserved, or else a filter to replace.
    fn look_for_work(&self) -> Option<BackgroundTask> {
        let may_compact = |control: &Control| !control.closing && self.may_compact(control, Instant::now());
        let mut costs = lock(&self.costs);
        if let Some(back) = self.reserve_suspect(may_compact) {
            return Some(BackgroundTask::TakeBack(back));
        }
        let is_idle = |control: &Control| control.until_idle().is_zero();
        loop {
            let (live, running, idle) = {
                let control = self.control.lock();
                (self.live(), control.running.clone(), is_idle(&control))
            };
            let Some(picked) = pick(&mut costs, &live, &self.storage.options, &running, idle) else { break };
            let mut control = self.control.lock();
            if !may_compact(&control) {
                return None;
            }
            if self.reserve_if_current(&mut control, &live, &picked) {
                return Some(BackgroundTask::Compact(picked));
            }
        }
        let may_retune = |control: &Control| {
            is_idle(control)
                && control.running.is_empty()
                && !control.checking_sidecars
                && control.sidecar_retries.pause(Instant::now()).is_zero()
        };
        if !may_retune(&self.control.lock()) {
            return None;
        }
        let (meta, spec) = self.segment_to_retune()?;
        let mut control = self.control.lock();
        if control.closing || !may_retune(&control) {
            return None;
        }
        control.checking_sidecars = true;
        Some(BackgroundTask::Retune(meta, spec))
    }

    /// Reserves a compaction that was chosen without the lock. Does not if another one has taken what it needs, or the live set is not the
    /// one that it was chosen for.
    pub fn reserve_if_current(
        &self,
        control: &mut Control,
        live: &Arc<LiveSet>,
        chosen: &Compaction,
    ) -> bool {
        let wanted = chosen.reservation();
        let is_free = !control.running.iter().any(|other| other.conflicts_with(wanted));
        let is_current = is_free && Arc::ptr_eq(&self.view.load().live, live);
        control.running.extend(is_current.then(|| wanted.clone()));
        is_current
    }

    fn choose(&self, control: &mut Control, now: Instant) -> Option<BackgroundTask> {
        if control.unmap_from.is_some_and(|from| from <= now) && self.storage.maps.was_short() {
            control.unmap_from = None;
            return Some(BackgroundTask::UnmapCold);
        }
        if self.storage.files.leftovers().until_look(now).is_some_and(|wait| wait.is_zero()) {
            return Some(BackgroundTask::RemoveLeftovers);
        }
        if !control.retired.is_empty() {
            return Some(BackgroundTask::FreeMemtables);
        }
        if self.failure.get().is_some() {
            return None;
        }
        if control.flushing.is_none()
            && control.flush_retries.pause(now).is_zero()
            && let Some((table, next_log)) = control.to_flush.pop_front()
        {
            control.flushing = Some(next_log);
            return Some(BackgroundTask::Flush(table, next_log));
        }
        if control.until_tombstone_flush(now).is_some_and(|wait| wait.is_zero()) {
            control.tombstone_flush = TombstoneFlush::Starting;
            return Some(BackgroundTask::RotateTombstones);
        }
        let faults = sigbus_faults().unwrap_or(0);
        if self.storage.maps.had_bad() || faults != control.faults_seen {
            control.faults_seen = faults;
            return Some(BackgroundTask::QueueBadSidecars);
        }
        if control.until_missing_sidecars().is_some_and(|wait| wait.is_zero()) {
            control.missing_sidecars_due = None;
            return Some(BackgroundTask::QueueMissingSidecars);
        }
        if control.until_suspects().is_some_and(|wait| wait.is_zero()) {
            control.suspects_due = None;
            return Some(BackgroundTask::QueueSuspects);
        }
        let sidecars_pause = !control.sidecar_retries.pause(now).is_zero();
        if !control.checking_sidecars && !sidecars_pause {
            let check = control.sidecars_to_check.pop();
            let check = check.map(|(id, ahead)| BackgroundTask::CheckSidecar(id, ahead));
            // Lookups need the filters first.
            let task = check.or_else(|| next_indexes(control).map(BackgroundTask::WarmIndexes));
            if task.is_some() {
                control.checking_sidecars = true;
                return task;
            }
        }
        None
    }

    /// How long until there may be a task that nobody signals: a pause after a failure ends, a check is due again, or
    /// the store becomes idle with something to compact.
    fn until_next_task(&self, control: &Control, now: Instant, until_idle: Duration) -> Option<Duration> {
        let leftovers = self.storage.files.leftovers().until_look(now);
        if self.failure.get().is_some() {
            return leftovers;
        }
        let checks = [control.until_missing_sidecars(), control.until_suspects()];
        let retries = [&control.flush_retries, &control.compaction_retries, &control.sidecar_retries];
        let pauses = retries.map(|retries| retries.pause(now));
        let pauses: Vec<Duration> = pauses.into_iter().filter(|pause| !pause.is_zero()).collect();
        // There may be something to do that waits for that.
        let may_compact = control.running.is_empty() && !self.storage.options.read_only;
        let idle = (pauses.is_empty() && may_compact && !until_idle.is_zero()).then_some(until_idle);
        let tombstones = control.until_tombstone_flush(now);
        checks.into_iter().flatten().chain(pauses).chain(idle).chain(tombstones).chain(leftovers).min()
    }
}
