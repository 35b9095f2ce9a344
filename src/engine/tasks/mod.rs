//! The background threads. Each runs the most urgent task or sleeps. `failure.rs` handles errors and panics.

pub(crate) mod queue;
mod schedule;
mod task;

use self::task::BackgroundTask;
use super::Engine;
use crate::error::{Error, IoOp, Result};
use crate::sync::{self, JoinHandle};
use std::sync::Arc;

/// The nice value of a follower's background thread.
#[cfg(target_os = "linux")]
const BEHIND: i32 = 10;

/// The threads of an open store.
#[derive(Default)]
pub(crate) struct Threads {
    /// By number.
    workers: Vec<(usize, JoinHandle<()>)>,
    follower: Option<JoinHandle<()>>,
}

impl Threads {
    /// Starts the threads of a store. After an error, this has those that were started.
    pub fn start(&mut self, engine: &Arc<Engine>) -> Result<()> {
        self.start_workers(engine)?;
        if engine.follower.is_some() {
            self.follower = Some(spawn_one(engine, "sidebloom-follow".into(), Engine::follow_until_closed)?);
        }
        Ok(())
    }

    /// Starts workers until there are as many as there shall be. After an error, some may have started.
    pub fn start_workers(&mut self, engine: &Arc<Engine>) -> Result<()> {
        let (shared, wanted) = (&engine.shared, engine.shared.storage.in_force.background_threads());
        let ended = std::mem::take(&mut shared.control.lock().workers.ended);
        for (_, thread) in self.workers.extract_if(.., |(number, _)| ended.contains(number)) {
            join(thread); // It has nothing left to do.
        }
        loop {
            let mut control = shared.control.lock();
            if control.workers.running.len() >= wanted {
                return Ok(());
            }
            let number = control.workers.begin();
            drop(control);
            let work = move |engine: &Engine| engine.work_until_closed(number);
            match spawn_one(engine, format!("sidebloom-{number}"), work) {
                Ok(thread) => self.workers.push((number, thread)),
                Err(error) => {
                    shared.control.lock().workers.forget(number);
                    return Err(error);
                }
            }
        }
    }

    /// Waits for all of them. They end once the store is closing.
    pub fn join(self) {
        self.workers.into_iter().map(|(_, thread)| thread).chain(self.follower).for_each(join);
    }
}

fn join(thread: JoinHandle<()>) {
    if thread.join().is_err() {
        tracing::error!("a background thread panicked");
    }
}

/// Starts the thread that calls the callback for events, if there is one.
pub(crate) fn spawn_events(engine: &Arc<Engine>) -> Result<Option<JoinHandle<()>>> {
    let events = engine.shared.storage.events.have_callback();
    let deliver = |engine: &Engine| engine.shared.storage.events.deliver();
    events.then(|| spawn_one(engine, "sidebloom-events".into(), deliver)).transpose()
}

fn spawn_one(
    engine: &Arc<Engine>,
    name: String,
    work: impl FnOnce(&Engine) + Send + 'static,
) -> Result<JoinHandle<()>> {
    let its = Arc::clone(engine);
    let spawned = sync::Builder::new().name(name).spawn(move || work(&its));
    spawned.map_err(|e| Error::io(IoOp::Other("start a thread for"), &engine.shared.storage.dir, e))
}

impl Engine {
    /// The work of a thread: until the store closes, or there are too many of them.
    fn work_until_closed(&self, number: usize) {
        // Freeing memtables and verifying filters must not delay the thread that follows: with eight
        // followers on two cores, the longest lag fell from 250 to 100 ms
        // (`cargo run --release --example followers`).
        #[cfg(target_os = "linux")]
        if self.follower.is_some() {
            let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), BEHIND);
        }
        while let Some(Some(mut task)) = self.shared.guarded(|| self.next_task(number)) {
            let result =
                self.shared.guarded(|| self.perform(&task)).unwrap_or_else(|| self.shared.check_writable());
            let failed = result.is_err();
            let failure = result
                .err()
                .filter(|error| !self.publisher.quarantine(error))
                .map(|error| self.shared.fail(error));
            task.let_go();
            let mut control = self.shared.control.lock();
            if let Some(kind) = task.kind() {
                self.shared.record_attempt(&mut control, kind, failure.as_ref());
            }
            task.hand_back(&mut control, failed, failure.is_some());
            control.finished += 1;
            drop(control);
            drop(task);
            self.shared.wake_all();
        }
    }

    fn perform(&self, task: &BackgroundTask) -> Result<()> {
        match task {
            BackgroundTask::Flush(table, next_log) => self.writer.flush_one(table, *next_log),
            BackgroundTask::RotateTombstones => self.writer.rotate_tombstones(),
            BackgroundTask::UnmapCold => {
                self.filters.unmap_cold();
                Ok(())
            }
            BackgroundTask::RemoveLeftovers => {
                self.shared.storage.files.leftovers().look_again();
                Ok(())
            }
            BackgroundTask::FreeMemtables => {
                let retired = std::mem::take(&mut self.shared.control.lock().retired);
                drop(retired); // Without the lock.
                Ok(())
            }
            BackgroundTask::QueueBadSidecars => {
                self.filters.queue_bad();
                Ok(())
            }
            BackgroundTask::QueueMissingSidecars => {
                self.filters.queue_missing_sidecars();
                Ok(())
            }
            BackgroundTask::QueueSuspects => {
                self.compactor.queue_suspects();
                Ok(())
            }
            BackgroundTask::CheckSidecar(meta, ahead) => {
                self.filters.read_sidecars_ahead(ahead);
                self.filters.check_sidecar(meta)
            }
            BackgroundTask::WarmIndex(meta) => self.filters.warm_index(meta),
            BackgroundTask::Compact(compaction) => self.compactor.carry_out(compaction),
            BackgroundTask::Retune(meta, spec) => self.filters.retune(meta, *spec),
        }
    }

    fn follow_until_closed(&self) {
        if let Some(follower) = &self.follower {
            follower.follow_until_closed();
        }
    }
}
