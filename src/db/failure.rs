//! What an error means for the store: the one place that decides whether to try again or to stop writing (I5).
//!
//! 1. The machine is short of space or descriptors, or a sidecar cannot be written ([`Remedy::Retry`]): what failed is done again later,
//!    from memory or from the inputs and into new files. The file whose write or sync failed is never written again.
//! 2. Bytes cannot be read ([`Remedy::Quarantine`]): a live segment goes to quarantine; anything else is tried again later.
//! 3. Anything else poisons: what reached the disk is unknown, so the store serves reads only until it is opened again.

use super::core::{Control, Core, lock};
use super::metrics::add;
use super::recover::TEMPORARY;
use crate::error::{Error, Result};
use crate::id::FileKind;
use std::any::Any;
use std::ffi::OsStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The pause before the first retry; each further one is twice as long.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// What to do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// The disk is full, no descriptor is left, or a sidecar cannot be written: try again later.
    Retry,
    /// A read failed, which is not a failed write.
    Quarantine,
    /// A write failed, or something that must not happen has happened.
    Poison,
}

impl Remedy {
    pub fn of(error: &Error) -> Self {
        match error {
            // Only an opening fails so: nothing was changed.
            error if error.is_out_of_descriptors() => Remedy::Retry,
            // A directory cannot be written anew, so a failed sync of one stays unknown.
            Error::Io { op: "sync directory", .. } => Remedy::Poison,
            Error::Io { source, .. } if is_full(source) => Remedy::Retry,
            Error::Io { path, .. } if is_sidecar(path) => Remedy::Retry,
            Error::Io { op: "read" | "open" | "map" | "inspect", .. } => Remedy::Quarantine,
            Error::Corruption { .. } | Error::UnsupportedVersion { .. } => Remedy::Quarantine,
            _ => Remedy::Poison,
        }
    }
}

/// Derived data never stops a write (I2).
fn is_sidecar(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let kind = FileKind::parse(name.strip_suffix(TEMPORARY).unwrap_or(name));
    matches!(kind, Some((_, FileKind::Filter)))
}

fn is_full(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded)
}

/// What waits for its next try by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Job {
    /// Makes room in memory: without it writers come to stand.
    Flush,
    /// Compactions: while level 0 is full, writers come to stand without them.
    Upkeep,
    /// Sidecars. Derived data: no writer waits for it, and no compaction rests because it cannot be written (I2).
    Sidecars,
}

/// How the tries of one kind of job go.
#[derive(Default)]
pub(crate) struct Tries {
    /// Those that failed since the store was opened.
    failed: u64,
    /// `None` when the last one did not fail.
    waiting: Option<Waiting>,
}

struct Waiting {
    error: Error,
    failed_at: Instant,
    pause: Duration,
}

impl Tries {
    /// How long to rest before the next try; zero when it need not.
    pub fn pause(&self, now: Instant) -> Duration {
        let left = |w: &Waiting| (w.failed_at + w.pause).saturating_duration_since(now);
        self.waiting.as_ref().map_or(Duration::ZERO, left)
    }

    /// Has the next try made soon: somebody waits for it.
    fn hurry(&mut self) {
        if let Some(waiting) = &mut self.waiting {
            waiting.pause = PAUSE_MIN;
        }
    }

    /// The error of a try that failed after the first `seen` of them. Descriptors come back soon: those who wait need not hear of it.
    fn check_since(&self, seen: u64) -> Result<()> {
        match &self.waiting {
            Some(waiting) if self.failed > seen && !waiting.error.is_out_of_descriptors() => {
                Err(waiting.error.clone())
            }
            _ => Ok(()),
        }
    }
}

impl Control {
    pub fn tries(&mut self, job: Job) -> &mut Tries {
        match job {
            Job::Flush => &mut self.flush_tries,
            Job::Upkeep => &mut self.upkeep_tries,
            Job::Sidecars => &mut self.sidecar_tries,
        }
    }
}

impl Core {
    /// Takes note of an error and gives it back for the caller to pass on: unless it may pass, the store is read-only from here on (I5).
    pub fn fail(&self, error: Error) -> Error {
        if Remedy::of(&error) == Remedy::Poison {
            self.stop_writing(error.to_string());
        }
        error
    }

    /// Notes how a job ended. One that failed comes again after a pause; warns at the first of a row.
    pub fn note_try(&self, control: &mut Control, job: Job, failure: Option<&Error>) {
        let tries = control.tries(job);
        let last = tries.waiting.take();
        let Some(error) = failure else {
            if last.is_some() {
                tracing::info!(?job, "background work goes on");
            }
            return;
        };
        if Remedy::of(error) == Remedy::Poison {
            return;
        }
        self.count_shortage(error);
        if last.is_none() {
            tracing::warn!(%error, ?job, "background work fails: it is tried again until it succeeds");
        }
        tries.failed += 1;
        let pause = last.map_or(PAUSE_MIN, |last| (2 * last.pause).min(PAUSE_MAX));
        tries.waiting = Some(Waiting { error: error.clone(), failed_at: Instant::now(), pause });
    }

    pub fn count_shortage(&self, error: &Error) {
        if error.is_out_of_descriptors() {
            add(&self.metrics.descriptor_waits, 1);
        } else if matches!(error, Error::Io { source, .. } if is_full(source)) {
            add(&self.metrics.shortages, 1);
        }
    }

    /// Waits until `wanted` names no job any more. When a try of the job that it names fails meanwhile, that ends the wait.
    pub fn wait_for_jobs(&self, mut wanted: impl FnMut(&mut Control) -> Option<Job>) -> Result<()> {
        let (mut seen, mut outcome) = (None, Ok(()));
        self.wait_until(|control| {
            let Some(job) = wanted(control) else { return true };
            let tries = control.tries(job);
            let before = match seen {
                Some((of, before)) if of == job => before,
                _ => {
                    tries.hurry();
                    self.work.notify_all();
                    tries.failed
                }
            };
            seen = Some((job, before));
            outcome = tries.check_since(before);
            outcome.is_err()
        })?;
        outcome
    }

    fn stop_writing(&self, cause: String) {
        let cause: Arc<str> = cause.into();
        if self.failure.set(Arc::clone(&cause)).is_ok() {
            tracing::error!(%cause, "the store is read-only until it is reopened");
        }
        let _control = lock(&self.control); // So that nobody who has just checked goes to sleep and misses this.
        self.work.notify_all();
        self.progress.notify_all();
    }

    /// Runs a part of a background thread. A panic there makes the store read-only and wakes all who wait for that thread.
    pub fn guarded<T>(&self, part: impl FnOnce() -> T) -> Option<T> {
        let caught = catch_unwind(AssertUnwindSafe(part));
        caught
            .map_err(|panic| self.stop_writing(format!("a background thread panicked: {}", text_of(&*panic))))
            .ok()
    }

    /// Runs a part of a write. A panic there leaves log and memtable apart: the store is read-only from then on.
    pub fn poison_on_panic<T>(&self, part: impl FnOnce() -> T) -> T {
        let armed = PoisonOnDrop(self);
        let outcome = part();
        std::mem::forget(armed);
        outcome
    }
}

struct PoisonOnDrop<'a>(&'a Core);

impl Drop for PoisonOnDrop<'_> {
    fn drop(&mut self) {
        self.0.stop_writing("a thread panicked while it wrote".into());
    }
}

fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_waited_for_a_failed_read_is_no_failed_write_and_the_rest_poisons() {
        let io = |op, code| Error::io(op, "f", std::io::Error::from_raw_os_error(code));
        let (eio, enospc, edquot, enfile, emfile) = (5, 28, 122, 23, 24);
        for op in ["write", "sync", "create", "rename"] {
            assert_eq!(Remedy::of(&io(op, enospc)), Remedy::Retry, "{op}");
            assert_eq!(Remedy::of(&io(op, edquot)), Remedy::Retry, "{op}");
            assert_eq!(Remedy::of(&io(op, eio)), Remedy::Poison, "{op}");
        }
        for op in ["open", "create", "map", "sync directory"] {
            assert_eq!(Remedy::of(&io(op, emfile)), Remedy::Retry, "{op}");
            assert_eq!(Remedy::of(&io(op, enfile)), Remedy::Retry, "{op}");
        }
        assert_eq!(Remedy::of(&io("sync directory", enospc)), Remedy::Poison);
        for (file, remedy) in [
            ("000007.filter", Remedy::Retry),
            ("000007.filter.tmp", Remedy::Retry),
            ("000007.wal", Remedy::Poison),
        ] {
            let error =
                Error::io("write", Path::new("db").join(file), std::io::Error::from_raw_os_error(eio));
            assert_eq!(Remedy::of(&error), remedy, "{file}");
        }
        assert_eq!(Remedy::of(&io("read", eio)), Remedy::Quarantine);
        assert_eq!(Remedy::of(&Error::corruption("f", 0, "bad")), Remedy::Quarantine);
        assert_eq!(Remedy::of(&Error::Internal("x".into())), Remedy::Poison);
    }
}
