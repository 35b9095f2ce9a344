//! The background threads: each takes the most urgent work there is, or sleeps.

use super::core::{Control, Core, lock};
use super::pick::{Compaction, pick};
use crate::error::{Error, Result};
use crate::id::FileId;
use crate::memtable::Memtable;
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;

/// In the order of urgency.
enum Work {
    Flush(Arc<Memtable>, FileId),
    CheckSidecar(FileId),
    Compact(Compaction),
}

/// Starts the threads of a store.
pub(crate) fn spawn(core: &Arc<Core>) -> Result<Vec<JoinHandle<()>>> {
    let threads = if core.options.read_only { 1 } else { core.options.background_threads };
    let spawn_one = |n: usize| {
        let core = Arc::clone(core);
        let builder = std::thread::Builder::new().name(format!("sidebloom-{n}"));
        builder.spawn(move || core.work_until_closed())
    };
    let handles: std::io::Result<Vec<_>> = (0..threads).map(spawn_one).collect();
    handles.map_err(|e| Error::io("start a thread for", &core.dir, e))
}

impl Core {
    fn work_until_closed(&self) {
        while let Some(work) = self.next_work() {
            let (result, done): (Result<()>, Box<dyn FnOnce(&mut Control)>) = match work {
                Work::Flush(table, next_log) => {
                    let result = self.flush_one(&table, next_log);
                    let failed = result.is_err();
                    let done = move |control: &mut Control| {
                        control.flushing = None;
                        if failed {
                            control.to_flush.push_front((table, next_log));
                        }
                    };
                    (result, Box::new(done))
                }
                Work::CheckSidecar(id) => {
                    let done = |control: &mut Control| control.checking_sidecars = false;
                    (self.check_sidecar(id), Box::new(done))
                }
                Work::Compact(compaction) => {
                    let result = self.compact_one(&compaction);
                    let done = move |control: &mut Control| {
                        control.compactions -= 1;
                        compaction.inputs().for_each(|s| _ = control.busy.remove(&s.meta.id));
                    };
                    (result, Box::new(done))
                }
            };
            if let Err(error) = result {
                self.fail(error);
            }
            done(&mut lock(&self.control));
            self.work.notify_all();
            self.progress.notify_all();
        }
    }

    /// Waits for work; `None` when the store closes.
    fn next_work(&self) -> Option<Work> {
        let mut control = lock(&self.control);
        loop {
            if control.closing {
                return None;
            }
            if let Some(work) = self.choose(&mut control) {
                return Some(work);
            }
            control = self.work.wait(control).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn choose(&self, control: &mut Control) -> Option<Work> {
        if self.failure.get().is_some() {
            return None;
        }
        if control.flushing.is_none()
            && let Some((table, next_log)) = control.to_flush.pop_front()
        {
            control.flushing = Some(next_log);
            return Some(Work::Flush(table, next_log));
        }
        if !control.checking_sidecars
            && let Some(id) = control.sidecars_to_check.pop_front()
        {
            control.checking_sidecars = true;
            return Some(Work::CheckSidecar(id));
        }
        // One thread stays free, so that a flush never waits for a long compaction.
        let spare = self.options.background_threads - 1;
        if self.options.read_only || control.exclusive || control.compactions >= spare {
            return None;
        }
        let compaction = pick(&self.live(), &self.options, &control.busy)?;
        control.compactions += 1;
        control.busy.extend(compaction.inputs().map(|s| s.meta.id));
        Some(Work::Compact(compaction))
    }
}
