//! [`ReaderLocks`] on Linux: a shared lock on one byte of a file for each version. The kernel releases these
//! locks when the process ends, for any reason.
//!
//! They are open file description locks (fcntl, F_OFD_SETLK). Unlike the older record locks, they belong to
//! one opening of the file. So several stores in a process do not disturb each other, and closing another
//! descriptor of the file does not release them. [`Fs::lock`](super::Fs::lock) uses flock, which is
//! independent.

use super::traits::ReaderLocks;
use crate::error::{Error, IoOp, Result};
use arc_swap::ArcSwapOption;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(super) struct ByteLocks {
    /// `None` once abandoned.
    file: ArcSwapOption<File>,
    path: PathBuf,
}

impl ByteLocks {
    /// Locks bytes of an open file. `path` is for messages.
    pub fn new(file: File, path: &Path) -> Self {
        ByteLocks { file: ArcSwapOption::from_pointee(file), path: path.to_path_buf() }
    }

    /// Calls fcntl for the bytes from `start` on; `len` 0 means up to the end.
    fn fcntl(&self, command: libc::c_int, kind: libc::c_int, start: u64, len: u64) -> Result<libc::flock> {
        let Some(file) = self.file.load_full() else { return Err(Error::Forked) };
        // SAFETY: a plain C structure for which all zeros is valid. F_OFD commands need process number 0.
        let mut lock: libc::flock = unsafe { std::mem::zeroed() };
        lock.l_type = kind as libc::c_short;
        lock.l_whence = libc::SEEK_SET as libc::c_short;
        lock.l_start = offset(start);
        lock.l_len = offset(len);
        loop {
            // SAFETY: the descriptor is open while `file` lives, and the pointer is valid.
            if unsafe { libc::fcntl(file.as_raw_fd(), command, &mut lock) } == 0 {
                return Ok(lock);
            }
            let error = io::Error::last_os_error();
            match error.kind() {
                io::ErrorKind::Interrupted => {}
                // Somebody holds the byte exclusively, as flock does on a network file system.
                io::ErrorKind::WouldBlock => return Err(Error::Locked { path: self.path.clone() }),
                _ => return Err(Error::io(IoOp::Lock, &self.path, error)),
            }
        }
    }
}

/// File numbers begin at 1 and never come near the end of the range.
fn offset(version: u64) -> libc::off_t {
    libc::off_t::try_from(version).unwrap_or(libc::off_t::MAX - 1)
}

impl ReaderLocks for ByteLocks {
    fn hold(&self, version: u64) -> Result<()> {
        self.fcntl(libc::F_OFD_SETLK, libc::F_RDLCK, version, 1).map(drop)
    }

    fn release(&self, version: u64) {
        if let Err(error) = self.fcntl(libc::F_OFD_SETLK, libc::F_UNLCK, version, 1) {
            tracing::warn!(%error, "cannot release a version of the store; its files stay until this process closes the store");
        }
    }

    fn lowest_held(&self) -> Result<Option<u64>> {
        let mut lowest = None;
        // The kernel names one lock, the first in its list, which is not the lowest. So this asks again below
        // that, at most once per holder. At first a length of 0 means all bytes.
        while lowest != Some(0) {
            let found = self.fcntl(libc::F_OFD_GETLK, libc::F_WRLCK, 0, lowest.unwrap_or(0))?;
            let start = u64::try_from(found.l_start).unwrap_or(0);
            if libc::c_int::from(found.l_type) == libc::F_UNLCK
                || lowest.is_some_and(|before| start >= before)
            {
                break;
            }
            lowest = Some(start);
        }
        Ok(lowest)
    }

    fn abandon(&self) {
        self.file.store(None);
    }
}

#[cfg(test)]
mod tests {
    use crate::fs::{Fs, RealFs};

    /// Another opening sees lower versions; nobody sees a released or closed one.
    #[test]
    fn another_opening_sees_lower_versions_until_they_are_released() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("LOCK");
        std::fs::write(&path, []).unwrap();
        let open = || RealFs.reader_locks(&path).unwrap().unwrap();
        let (writer, reader, other) = (open(), open(), open());
        assert_eq!(writer.lowest_held().unwrap(), None);
        other.hold(9).unwrap();
        reader.hold(7).unwrap();
        other.hold(7).unwrap();
        assert_eq!(writer.lowest_held().unwrap(), Some(7));
        reader.release(7);
        assert_eq!(reader.lowest_held().unwrap(), Some(7), "another reader has it still");
        other.release(7);
        reader.hold(4).unwrap();
        assert_eq!(other.lowest_held().unwrap(), Some(4));
        assert_eq!(reader.lowest_held().unwrap(), Some(9), "its own do not count");
        assert_eq!(writer.lowest_held().unwrap(), Some(4));
        reader.hold(0).unwrap();
        assert_eq!(writer.lowest_held().unwrap(), Some(0));
        drop(reader);
        assert_eq!(writer.lowest_held().unwrap(), Some(9));
        drop(other);
        assert_eq!(writer.lowest_held().unwrap(), None);
        let reader = open();
        reader.hold(u64::MAX).unwrap();
        assert!(writer.lowest_held().unwrap().is_some());
    }
}
