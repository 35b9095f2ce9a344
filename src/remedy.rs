//! What an error means for the store. Only this file decides between a retry and a read-only store (I5).
//!
//! 1. The machine lacks space or descriptors, or a sidecar cannot be written ([`Remedy::Retry`]): the work is
//!    done again later, from memory or from its inputs, and into new files. A file whose write or sync failed
//!    is never written again.
//! 2. Bytes cannot be read ([`Remedy::Quarantine`]): a live segment goes to quarantine. Any other read is
//!    retried later, even of an undamaged segment with a code of a newer version: it stays where that version
//!    will look for it.
//! 3. Anything else ([`Remedy::Poison`]): what reached the disk is unknown, so the store is read-only until
//!    it is reopened.

use crate::error::{Error, IoOp};
use crate::id::{FileKind, LOCK, TEMPORARY};
use std::ffi::OsStr;
use std::path::Path;

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
            Error::Io { op: IoOp::SyncDir, .. } => Remedy::Poison,
            Error::Io { source, .. } if is_full(source) => Remedy::Retry,
            Error::Io { path, .. } if is_sidecar(path) => Remedy::Retry,
            // No memory to build a filter in: nothing was written.
            Error::OutOfMemory { .. } => Remedy::Retry,
            // Nobody knows whether another process writes the store.
            Error::Io { op: IoOp::Inspect, path, .. } if path.ends_with(LOCK) => Remedy::Poison,
            Error::Io { op, .. } => Remedy::of_io(*op),
            Error::Corruption { .. } | Error::UnsupportedVersion { .. } | Error::UnknownCode { .. } => {
                Remedy::Quarantine
            }
            _ => Remedy::Poison,
        }
    }

    /// The remedy for an operation that failed for no reason known to be temporary.
    fn of_io(op: IoOp) -> Self {
        match op {
            IoOp::Open | IoOp::Read | IoOp::Map | IoOp::Inspect => Remedy::Quarantine,
            IoOp::List
            | IoOp::Create
            | IoOp::Write
            | IoOp::Sync
            | IoOp::Rename
            | IoOp::Link
            | IoOp::Remove
            | IoOp::CreateDir
            | IoOp::RemoveDir
            | IoOp::SyncDir
            | IoOp::Lock
            | IoOp::Other(_) => Remedy::Poison,
        }
    }

    /// Whether the operation reads: failure says that bytes cannot be read, nothing about what is written.
    pub fn is_read(op: IoOp) -> bool {
        Remedy::of_io(op) == Remedy::Quarantine
    }
}

/// Derived data never stops a write (I2).
fn is_sidecar(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let kind = FileKind::parse(name.strip_suffix(TEMPORARY).unwrap_or(name));
    matches!(kind, Some((_, FileKind::Filter)))
}

/// Whether there is no space for a write.
pub(crate) fn is_full(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shortages are waited for, a failed read is not a failed write, and everything else poisons.
    #[test]
    fn i2_i5_shortages_pass_failed_reads_quarantine_the_rest_poisons() {
        let io = |op, code| Error::io(op, "f", std::io::Error::from_raw_os_error(code));
        let (eio, enospc, edquot, enfile, emfile) = (5, 28, 122, 23, 24);
        for op in [IoOp::Write, IoOp::Sync, IoOp::Create, IoOp::Rename] {
            assert_eq!(Remedy::of(&io(op, enospc)), Remedy::Retry, "{op}");
            assert_eq!(Remedy::of(&io(op, edquot)), Remedy::Retry, "{op}");
            assert_eq!(Remedy::of(&io(op, eio)), Remedy::Poison, "{op}");
        }
        for op in [IoOp::Open, IoOp::Create, IoOp::Map, IoOp::SyncDir] {
            assert_eq!(Remedy::of(&io(op, emfile)), Remedy::Retry, "{op}");
            assert_eq!(Remedy::of(&io(op, enfile)), Remedy::Retry, "{op}");
        }
        assert_eq!(Remedy::of(&io(IoOp::SyncDir, enospc)), Remedy::Poison);
        for (file, remedy) in [
            ("000007.filter", Remedy::Retry),
            ("000007.filter.tmp", Remedy::Retry),
            ("000007.wal", Remedy::Poison),
        ] {
            let error =
                Error::io(IoOp::Write, Path::new("db").join(file), std::io::Error::from_raw_os_error(eio));
            assert_eq!(Remedy::of(&error), remedy, "{file}");
        }
        assert_eq!(Remedy::of(&Error::OutOfMemory { bytes: 1 << 40 }), Remedy::Retry);
        assert_eq!(Remedy::of(&io(IoOp::Read, eio)), Remedy::Quarantine);
        assert_eq!(Remedy::of(&Error::corruption("f", 0, "bad")), Remedy::Quarantine);
        assert_eq!(Remedy::of(&Error::unknown_code("f", 0, "codec 9")), Remedy::Quarantine);
        assert_eq!(Remedy::of(&io(IoOp::Inspect, eio)), Remedy::Quarantine);
        let lock = || Path::new("db").join(LOCK);
        let unknown = Error::io(IoOp::Inspect, lock(), std::io::Error::from_raw_os_error(eio));
        assert_eq!(Remedy::of(&unknown), Remedy::Poison);
        assert_eq!(Remedy::of(&Error::LockLost { path: lock() }), Remedy::Poison);
        assert_eq!(Remedy::of(&Error::InvalidArgument("x".into())), Remedy::Poison);
        assert_eq!(Remedy::of(&Error::Internal("x".into())), Remedy::Poison);
    }
}
