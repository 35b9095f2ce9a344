//! Locks on the operating system's files.

use super::dir_descriptor::At;
use super::process::Process;
use super::traits::{LockGuard, LockMode};
use crate::error::{Error, IoOp, Result};
use rustix::fs::{AtFlags, OFlags, fstat};
use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// How often to open a file again that was replaced while it was being locked.
const ATTEMPTS: usize = 100;

#[derive(Debug)]
struct RealLock {
    file: File,
    number: u64,
    process: Process,
}

impl LockGuard for RealLock {
    fn file(&self) -> Option<u64> {
        Some(self.number)
    }

    fn mode(&self) -> Option<u32> {
        self.file.metadata().ok().map(|found| found.mode() & 0o777)
    }
}

impl Drop for RealLock {
    /// Unlocks explicitly: after a mere close, a process that was forked in between and has not called exec
    /// yet would keep the lock. The forked process itself only closes the file: it shares the lock, so
    /// unlocking would release its parent's.
    fn drop(&mut self) {
        if self.process.is_current() {
            let _ = self.file.unlock(); // Fails only if the lock is not held.
        }
    }
}

/// Locks the file at `at`. The previous holder may have removed or replaced the file between open and lock.
/// Then this lock is worth nothing, and the file that is there now is locked. `mode` is for a new file,
/// `path` for messages.
pub fn lock(at: At<'_>, path: &Path, lock_mode: LockMode, mode: Option<u32>) -> Result<Box<dyn LockGuard>> {
    for _ in 0..ATTEMPTS {
        let file = match lock_mode {
            LockMode::Shared => at.open_regular(OFlags::RDONLY, path)?,
            LockMode::Exclusive => match open_or_create(at, path, mode)? {
                Some(file) => file,
                None => continue,
            },
        };
        let outcome = match lock_mode {
            LockMode::Exclusive => file.try_lock(),
            LockMode::Shared => file.try_lock_shared(),
        };
        match outcome {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::Locked { path: path.to_path_buf() }),
            Err(TryLockError::Error(e)) => return Err(Error::io(IoOp::Lock, path, e)),
        }
        let locked = fstat(&file).map_err(|e| Error::io(IoOp::Inspect, path, e.into()))?;
        let lock = RealLock { file, number: locked.st_ino, process: Process::current() };
        if at
            .stat(AtFlags::empty())
            .is_ok_and(|now| (now.st_dev, now.st_ino) == (locked.st_dev, locked.st_ino))
        {
            return Ok(Box::new(lock));
        }
    }
    let why = io::Error::new(ErrorKind::ResourceBusy, "the file keeps being replaced");
    Err(Error::io(IoOp::Lock, path, why))
}

/// `None` if the file has appeared or disappeared in between. Follows no symbolic link, which would create a
/// file elsewhere.
fn open_or_create(at: At<'_>, path: &Path, mode: Option<u32>) -> Result<Option<File>> {
    match at.open_regular(OFlags::WRONLY | OFlags::NOFOLLOW, path) {
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {}
        opened => return opened.map(Some),
    }
    match at.create(mode, 0o666, OFlags::NOFOLLOW) {
        Ok(created) => Ok(Some(created)),
        Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(None),
        Err(e) => Err(Error::io(IoOp::Open, path, e)),
    }
}

#[cfg(test)]
mod tests {
    use crate::error::Error;
    use crate::fs::{Fs, LockMode, RealFs};
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    #[test]
    fn i13_whoever_locks_a_file_that_others_remove_and_create_is_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("LOCK");
        let (inside, locked) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let contend = || {
            for _ in 0..2000 {
                match RealFs.lock(&path, LockMode::Exclusive) {
                    Ok(guard) => {
                        assert_eq!(inside.fetch_add(1, SeqCst), 0);
                        assert_eq!(RealFs.stamp(&path).unwrap().map(|stamp| stamp.file), guard.file());
                        locked.fetch_add(1, SeqCst);
                        inside.fetch_sub(1, SeqCst);
                        RealFs.remove(&path).unwrap();
                    }
                    Err(Error::Locked { .. } | Error::Io { op: crate::error::IoOp::Lock, .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        };
        std::thread::scope(|scope| (0..4).for_each(|_| _ = scope.spawn(contend)));
        assert!(locked.into_inner() > 0);
    }
}
