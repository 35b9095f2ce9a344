//! What an error means for the store. This is the one place that decides between a retry and a read-only store (I5).
//!
//! 1. The machine lacks space or descriptors, or a sidecar cannot be written ([`Remedy::Retry`]): the work is done again later, from memory
//!    or from its inputs, and into new files. A file whose write or sync failed is never written again.
//! 2. Bytes cannot be read ([`Remedy::Quarantine`]): a live segment goes to quarantine; any other read is retried later.
//! 3. Anything else ([`Remedy::Poison`]): what reached the disk is unknown, so the store is read-only until it is reopened.

use crate::engine::backoff::TaskKind;
use crate::engine::control::Control;
use crate::engine::metrics::add;
use crate::engine::shared::Shared;
use crate::error::{Error, Result};
use crate::id::{FileKind, LOCK, TEMPORARY};
use std::any::Any;
use std::ffi::OsStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// What to do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// The disk is full, no descriptor is left, or a sidecar cannot be written: retry later.
    Retry,
    /// A read failed. No write is affected.
    Quarantine,
    /// A write failed, or an error occurred that should be impossible.
    Poison,
}

impl Remedy {
    pub fn of(error: &Error) -> Self {
        match error {
            // Only opening a file fails this way, and it changes nothing.
            error if error.is_out_of_descriptors() => Remedy::Retry,
            // A directory cannot be rewritten, so the outcome of its failed sync stays unknown.
            Error::Io { op: "sync directory", .. } => Remedy::Poison,
            Error::Io { source, .. } if is_full(source) => Remedy::Retry,
            Error::Io { path, .. } if is_sidecar(path) => Remedy::Retry,
            // No memory to build a filter in: nothing was written.
            Error::OutOfMemory { .. } => Remedy::Retry,
            // Nobody knows whether another process writes the store.
            Error::Io { op: "inspect", path, .. } if path.ends_with(LOCK) => Remedy::Poison,
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

/// The kind of work that a caller waits for, and how many attempts at it had failed before.
#[derive(Default)]
pub(crate) struct AwaitedWork(Option<(TaskKind, u64)>);

impl Shared {
    /// Applies an error's remedy and returns the error. With [`Remedy::Poison`] the store becomes read-only (I5).
    pub fn fail(&self, error: Error) -> Error {
        if Remedy::of(&error) == Remedy::Poison {
            self.stop_writing(error.to_string());
        }
        error
    }

    /// Records how an attempt at background work ended. Logs the first failure of a series, and its end.
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
                if retries.record_failure(error) {
                    tracing::warn!(%error, ?kind, "background work failed; retrying until it succeeds");
                }
            }
        }
    }

    pub fn count_shortage(&self, error: &Error) {
        if error.is_out_of_descriptors() {
            add(&self.storage.metrics.descriptor_waits, 1);
        } else if matches!(error, Error::Io { source, .. } if is_full(source)) {
            add(&self.storage.metrics.shortages, 1);
        }
    }

    /// Waits until `wanted` returns `None`. Fails if an attempt at the kind of work that it returned fails meanwhile.
    pub fn wait_for_work(&self, wanted: impl FnMut(&mut Control) -> Option<TaskKind>) -> Result<()> {
        self.wait_for_work_within(None, wanted).map(|_| ())
    }

    /// [`wait_for_work`](Self::wait_for_work), but not for longer than the limit; `false` if that has passed.
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

    /// Hurries work that a caller waits for. Fails if an attempt at it has failed since the first call.
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

    pub fn stop_writing(&self, cause: String) {
        if !self.storage.process.is_current() {
            return; // Nothing is written anyway, and a thread of the parent may have held the lock.
        }
        let cause: Arc<str> = cause.into();
        if self.set_failure(Arc::clone(&cause)) {
            tracing::error!(%cause, "store is read-only until it is reopened");
        }
        let _control = self.control.lock(); // A thread that has just checked for a failure must not miss the wake-up.
        self.wake_all();
    }

    /// Runs a part of a background thread. A panic makes the store read-only and wakes every waiter.
    pub fn guarded<T>(&self, part: impl FnOnce() -> T) -> Option<T> {
        let caught = catch_unwind(AssertUnwindSafe(part));
        caught
            .map_err(|panic| self.stop_writing(format!("a background thread panicked: {}", text_of(&*panic))))
            .ok()
    }

    /// Runs a part of a write. A panic may leave the memtable behind the log, so it makes the store read-only.
    pub fn poison_on_panic<T>(&self, part: impl FnOnce() -> T) -> T {
        let armed = PoisonOnDrop(self);
        let outcome = part();
        std::mem::forget(armed);
        outcome
    }
}

struct PoisonOnDrop<'a>(&'a Shared);

impl Drop for PoisonOnDrop<'_> {
    fn drop(&mut self) {
        self.0.stop_writing("a thread panicked during a write".into());
    }
}

fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i2_i5_shortages_are_waited_for_a_failed_read_is_no_failed_write_and_the_rest_poisons() {
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
        assert_eq!(Remedy::of(&Error::OutOfMemory { bytes: 1 << 40 }), Remedy::Retry);
        assert_eq!(Remedy::of(&io("read", eio)), Remedy::Quarantine);
        assert_eq!(Remedy::of(&Error::corruption("f", 0, "bad")), Remedy::Quarantine);
        assert_eq!(Remedy::of(&io("inspect", eio)), Remedy::Quarantine);
        let lock = || Path::new("db").join(LOCK);
        let unknown = Error::io("inspect", lock(), std::io::Error::from_raw_os_error(eio));
        assert_eq!(Remedy::of(&unknown), Remedy::Poison);
        assert_eq!(Remedy::of(&Error::LockLost { path: lock() }), Remedy::Poison);
        assert_eq!(Remedy::of(&Error::InvalidArgument("x".into())), Remedy::Poison);
        assert_eq!(Remedy::of(&Error::Internal("x".into())), Remedy::Poison);
    }
}
