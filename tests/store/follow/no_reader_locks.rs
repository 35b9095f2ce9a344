//! Systems without open-file-description locks, such as gVisor and proot: locks cannot tell which version of
//! a store somebody reads.

use crate::support::{
    Errno, Fault, OpKind, SimFs, contents, count_warnings, eventually, tiny, warnings_about,
};
use sidebloom::{Db, Error};
use std::path::Path;
use std::sync::Arc;

/// Replaces its segments a few times. Every lock after the store's own fails during this.
fn compact_repeatedly(fs: &SimFs, dir: &str, errno: Errno) -> Db {
    let db = tiny().filesystem(Arc::new(fs.clone())).open(dir).unwrap();
    fs.fail(Fault { forever: true, ..Fault::once(OpKind::Lock, 0).with(errno) });
    for round in 0..3 {
        (0..50).for_each(|i| db.put(format!("k{i:03}"), round.to_string()).unwrap());
        db.flush().unwrap();
        db.compact().unwrap();
    }
    db
}

fn obsolete(fs: &SimFs) -> usize {
    fs.files().iter().filter(|path| path.extension().is_some_and(|its| its == "obsolete")).count()
}

/// Without version locks, no obsolete file stays, and readers share the lock.
#[test]
fn without_version_locks_nothing_obsolete_stays_and_readers_share_a_lock() {
    for errno in [Errno::Invalid, Errno::NoSuchCall] {
        let fs = SimFs::new();
        let options = || tiny().filesystem(Arc::new(fs.clone()));
        let db = compact_repeatedly(&fs, "db", errno);
        eventually("obsolete segments are removed", || obsolete(&fs) == 0);
        drop(db);
        fs.heal();
        fs.fail(Fault::once(OpKind::Lock, 0).with(errno));
        let reader = options().follow(true).open("db").unwrap();
        assert_eq!((fs.faults_left(), contents(&reader).len()), (0, 50), "{errno:?}");
        assert!(matches!(options().open("db"), Err(Error::Locked { .. })), "the reader keeps writers out");
    }
}

#[test]
fn other_errors_of_version_locks_keep_the_files_and_warn_once() {
    count_warnings();
    let fs = SimFs::new();
    let db = compact_repeatedly(&fs, "failing-locks", Errno::Io);
    assert!(obsolete(&fs) > 1);
    assert_eq!(warnings_about(Path::new("failing-locks/LOCK")), 1);
    drop(db);
    fs.heal();
    let db = tiny().filesystem(Arc::new(fs.clone())).open("failing-locks").unwrap();
    db.put("k", "").unwrap();
    eventually("the next writer removes them", || obsolete(&fs) == 0);
}
