//! How an open store acts on an error, according to its [`Remedy`].

use crate::engine::backoff::TaskKind;
use crate::engine::control::Control;
use crate::engine::shared::Shared;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::remedy::{Remedy, is_full};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The kind of work that a caller waits for, and how many attempts at it failed before.
#[derive(Default)]
pub(crate) struct AwaitedWork(Option<(TaskKind, u64)>);

impl Shared {
    /// Applies an error's remedy and returns the error. [`Remedy::Poison`] makes the store read-only (I5).
    pub fn fail(&self, error: Error) -> Error {
        if Remedy::of(&error) == Remedy::Poison {
            self.stop_writing(error.to_string());
        }
        error
    }

    /// Records how an attempt at background work ended. Logs the first failure of a series and its end.
    pub fn record_attempt(&self, control: &mut Control, kind: TaskKind, failure: Option<&Error>) {
        let retries = control.retries(kind);
        match failure {
            None => {
                if retries.reset() {
                    tracing::info!(?kind, "background work succeeds again");
                }
            }
            Some(error) if Remedy::of(error) == Remedy::Poison => {
                retries.reset();
            }
            Some(error) => {
                self.count_shortage(error);
                self.storage.metrics.background_failures.fetch_add(1, Relaxed);
                if retries.record_failure(error) {
                    tracing::warn!(%error, ?kind, "background work failed; retrying until it succeeds");
                }
            }
        }
    }

    pub fn count_shortage(&self, error: &Error) {
        let (counter, resource) = if error.is_out_of_descriptors() {
            (&self.storage.metrics.descriptor_waits, "descriptors")
        } else if matches!(error, Error::Io { source, .. } if is_full(source)) {
            (&self.storage.metrics.shortages, "disk")
        } else {
            return;
        };
        counter.fetch_add(1, Relaxed);
        self.storage.events.emit(Event::Shortage { resource, error: error.to_string() });
    }

    /// Waits until `wanted` returns `None`. Fails if an attempt at the work that it returned fails.
    pub fn wait_for_work(&self, wanted: impl FnMut(&mut Control) -> Option<TaskKind>) -> Result<()> {
        self.wait_for_work_within(None, wanted).map(|_| ())
    }

    /// [`wait_for_work`](Self::wait_for_work) with a time limit; `false` once that has passed.
    pub fn wait_for_work_within(
        &self,
        limit: Option<Duration>,
        mut wanted: impl FnMut(&mut Control) -> Option<TaskKind>,
    ) -> Result<bool> {
        let (mut awaited, mut outcome) = (AwaitedWork::default(), Ok(()));
        let is_over = self.wait_until_within(limit, |control| {
            let Some(kind) = wanted(control) else { return true };
            outcome = self.check_awaited(&mut awaited, control, kind);
            outcome.is_err()
        })?;
        outcome.map(|()| is_over)
    }

    /// Speeds up work that a caller waits for. Fails if an attempt at it has failed since the first call.
    pub fn check_awaited(
        &self,
        awaited: &mut AwaitedWork,
        control: &mut Control,
        kind: TaskKind,
    ) -> Result<()> {
        let retries = control.retries(kind);
        let before = match awaited.0 {
            Some((of, before)) if of == kind => before,
            _ => {
                retries.hurry();
                self.wake_workers();
                retries.failures()
            }
        };
        awaited.0 = Some((kind, before));
        retries.check_since(before)
    }

    /// Runs a part of a background thread. A panic makes the store read-only and wakes every waiter.
    pub fn guarded<T>(&self, part: impl FnOnce() -> T) -> Option<T> {
        let caught = catch_unwind(AssertUnwindSafe(part));
        caught
            .map_err(|panic| self.stop_writing(format!("a background thread panicked: {}", text_of(&*panic))))
            .ok()
    }
}

fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
