//! A process forked during writes, which has the store's memory and shares its locks. It reads, is refused,
//! drops its handle or does not, and ends.

use crate::support::Rng;
use sidebloom::{Db, Error, Options};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// A forked process that takes longer waits for a lock that nobody holds.
const LONGEST_SECONDS: u32 = 60;
const FINE: i32 = 7;

/// Forks, waits for the end of the forked process, and checks that the store in `path` is still locked.
pub fn fork(db: &Db, path: &Path, rng: &mut Rng, what: &str) {
    let (reads, drops) = (rng.percent(50), rng.percent(50));
    let (copy, snapshot) = (db.clone(), db.snapshot());
    // SAFETY: the child only uses the store, whose locks other threads may hold, and ends.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // SAFETY: always allowed. A child that outlived a killed parent would keep its lock.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        // SAFETY: always allowed.
        unsafe { libc::alarm(LONGEST_SECONDS) };
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            if reads {
                snapshot.iter().take(50).for_each(|row| drop(row.map(drop)));
            }
            assert!(matches!(copy.put("forked", ""), Err(Error::Forked)), "a forked process wrote");
            assert!(matches!(copy.flush(), Err(Error::Forked)), "a forked process flushed");
            if drops {
                drop((copy, snapshot));
                // SAFETY: the last handle. Nothing in this process uses the store again, and `_exit` drops
                // nothing.
                drop(unsafe { std::ptr::read(db) });
            }
        }));
        // SAFETY: always allowed.
        unsafe { libc::_exit(if outcome.is_ok() { FINE } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: the pointer is valid.
    let waited = unsafe { libc::waitpid(pid, &mut status, 0) };
    let is_fine = waited == pid && libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == FINE;
    assert!(is_fine, "{what}: a forked process ended with {status:#x}");
    let other = Options::new().read_only(true).open(path);
    assert!(
        matches!(other, Err(Error::Locked { .. })),
        "{what}: while a forked process runs, the store opens with {:?}",
        other.map(drop)
    );
}
