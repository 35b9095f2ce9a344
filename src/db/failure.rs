//! What an error means for the store: the one place that decides whether to try again or to stop writing (I5).
//!
//! 1. The machine is short of something ([`Remedy::Retry`]): what failed is done again later, from memory or from the inputs and into
//!    new files. The file whose write or sync failed is never written again.
//! 2. Bytes cannot be read ([`Remedy::Quarantine`]).
//! 3. Anything else poisons: what reached the disk is unknown, so the store serves reads only until it is opened again.

use super::core::{Core, lock};
use crate::error::Error;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// What to do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// The disk is full, or no descriptor is left: try again later.
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
            Error::Io { op: "read" | "open" | "map" | "inspect", .. } => Remedy::Quarantine,
            Error::Corruption { .. } | Error::UnsupportedVersion { .. } => Remedy::Quarantine,
            _ => Remedy::Poison,
        }
    }
}

fn is_full(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded)
}

impl Core {
    /// Takes note of an error and gives it back for the caller to pass on: the store is read-only from here on (I5), unless the error is
    /// of a read, or no descriptor was left.
    pub fn fail(&self, error: Error) -> Error {
        match Remedy::of(&error) {
            Remedy::Quarantine => {}
            // Whoever asked may ask again, and the background does.
            Remedy::Retry if error.is_out_of_descriptors() => {}
            Remedy::Retry | Remedy::Poison => self.stop_writing(error.to_string()),
        }
        error
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
        assert_eq!(Remedy::of(&io("read", eio)), Remedy::Quarantine);
        assert_eq!(Remedy::of(&Error::corruption("f", 0, "bad")), Remedy::Quarantine);
        assert_eq!(Remedy::of(&Error::InvalidArgument("x".into())), Remedy::Poison);
    }
}
