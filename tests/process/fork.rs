//! I13: a store belongs to the process that opened it. A forked process reads the state at the fork. It
//! writes nothing, removes nothing, unlocks nothing and waits for nobody.

use crate::support::{contents, eventually, fast_dir, tiny};
use crate::{arguments_for, exclusive};
use sidebloom::filter::Verdict;
use sidebloom::fs::{Fs, RealFs};
use sidebloom::guard::{Changes, Guard};
use sidebloom::{Db, Durability, Error, FilterPolicy, IoOp, OptionChanges, Options};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Tells a process that forks itself where its store is.
const STORE: &str = "SIDEBLOOM_TEST_FORKED_STORE";
/// A child that takes longer hangs, and gets SIGALRM.
const LONGEST_SECONDS: u32 = 60;

/// Forks this process and runs a part in the child. Returns once that has ended well.
#[track_caller]
fn in_child(part: impl FnOnce()) {
    // SAFETY: the child uses memory, the store, and stderr for its panics. That a lock of the store may be
    // held is what is tested.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // SAFETY: always allowed.
        unsafe { libc::alarm(LONGEST_SECONDS) };
        let ended_well = catch_unwind(AssertUnwindSafe(part)).is_ok();
        // SAFETY: the end of the child.
        unsafe { libc::_exit(if ended_well { 7 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: the pointer is valid.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 7, "the child ended with {status:#x}");
}

#[track_caller]
fn assert_forked<T>(outcome: Result<T, Error>) {
    match outcome {
        Err(Error::Forked) => {}
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("a forked process was served"),
    }
}

fn names(dir: &Path) -> BTreeSet<String> {
    std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn fill(db: &Db, segments: usize) {
    for segment in 0..segments {
        (0..50).for_each(|i| db.put(format!("k{segment}-{i:03}"), "before").unwrap());
        db.flush().unwrap();
    }
    (0..50).for_each(|i| db.put(format!("m{i:03}"), "before").unwrap());
}

/// Makes the next compaction rewrite these segments, which may already be where it would put them.
fn overwrite(db: &Db, segments: usize) {
    (0..segments).for_each(|segment| db.put(format!("k{segment}-000"), "after").unwrap());
}

/// Everything that a forked process must refuse.
fn refuses_all(db: &Db, dir: &Path) {
    assert_forked(db.put("child", "1"));
    assert_forked(db.delete("k0-000"));
    assert_forked(db.delete_range("k".."l"));
    assert_forked(db.write_with(Default::default(), Durability::Sync));
    assert_forked(db.sync());
    assert_forked(db.flush());
    assert_forked(db.compact());
    assert_forked(db.compact_range("k".."l"));
    assert_forked(db.wait_for_compaction());
    assert_forked(db.ingest([Ok(("child", "1"))]));
    assert_forked(db.ingest_unsorted([Ok(("child", "1"))]));
    assert_forked(db.checkpoint(dir.join("copy")));
    assert_forked(db.file_set());
    assert_forked(db.set_options(OptionChanges::new()));
    assert_forked(db.set_options(OptionChanges::new().block_cache_bytes(0)));
    assert_forked(db.rebuild_filters(FilterPolicy::default()));
    assert_forked(db.rebuild_filters_with(FilterPolicy::default(), |_| ControlFlow::Break(())));
    assert_forked(db.verify());
    assert_forked(db.warm());
    assert_forked(db.catch_up());
    db.stop_writing("a child");
    assert!(db.stats().levels.len() < 8);
}

/// Children that end in every way while the parent writes: by a drop, a plain exit, after reads, after
/// refused writes.
#[test]
fn i13_a_child_that_drops_its_copy_leaves_the_lock_to_its_parent() {
    let _exclusive = exclusive();
    for way in 0..4 {
        let dir = fast_dir();
        let options = || tiny().durability(Durability::Sync);
        let mut handle = Some(options().open(dir.path()).unwrap());
        fill(handle.as_ref().unwrap(), 2);
        in_child(|| match way {
            0 => drop(handle.take()),
            1 => assert_eq!(contents(handle.as_ref().unwrap()).len(), 150),
            2 => refuses_all(handle.as_ref().unwrap(), dir.path()),
            _ => {
                refuses_all(handle.as_ref().unwrap(), dir.path());
                assert_forked(handle.take().unwrap().close());
                assert!(matches!(options().open(dir.path()), Err(Error::Locked { .. })));
            }
        });
        let db = handle.unwrap();
        for open in [options(), options().read_only(true)] {
            assert!(
                matches!(open.open(dir.path()), Err(Error::Locked { .. })),
                "way {way}: the lock is gone"
            );
        }
        (0..100).for_each(|i| db.put(format!("p{i:03}"), "parent").unwrap());
        drop(db);
        let db = options().open(dir.path()).unwrap();
        assert_eq!(contents(&db).len(), 250, "way {way}");
        assert!(db.get("child").unwrap().is_none() && db.verify().unwrap().is_ok());
    }
}

/// Other threads of the parent hold the store's locks at the fork. They stay locked in the child.
#[test]
fn prefork_children_read_while_their_parent_writes() {
    let _exclusive = exclusive();
    let dir = fast_dir();
    let options = tiny().memtable_bytes(32 << 10).max_open_files(8).block_cache_bytes(4096).block_bytes(256);
    let db = options.background_threads(2).open(dir.path()).unwrap();
    fill(&db, 4);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            (0..).take_while(|_| !stop.load(Relaxed)).for_each(|i| {
                db.put(format!("w{i:08}"), "x".repeat(100)).unwrap();
            })
        });
        for thread in 0..2 {
            let (db, stop) = (&db, &stop);
            // The cache is smaller than the data read, so its locks are taken all the time.
            scope.spawn(move || {
                for i in (thread..).take_while(|_| !stop.load(Relaxed)) {
                    assert!(db.get(format!("k{}-{:03}", i % 4, i % 50)).unwrap().is_some());
                    if i % 1000 == 0 {
                        assert_eq!(db.range("k".."n").count().unwrap(), 250);
                        _ = db.stats();
                    }
                }
            });
        }
        let parent = catch_unwind(AssertUnwindSafe(|| {
            for round in 0..40 {
                let (mut mine, mut snapshot) = (Some(db.clone()), Some(db.snapshot()));
                in_child(|| {
                    let db = mine.take().unwrap();
                    for (segment, i) in (0..4).flat_map(|segment| (0..50).map(move |i| (segment, i))) {
                        // The parent may have removed a segment's file since the fork, which is an error, and
                        // never another value.
                        match db.get(format!("k{segment}-{i:03}")) {
                            Ok(value) => assert_eq!(value.as_deref(), Some(&b"before"[..])),
                            Err(Error::Io { op: IoOp::Open, .. }) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                    assert_eq!(db.may_contain("m001"), Verdict::Maybe);
                    let rows = snapshot.as_ref().unwrap().range("m".."n").map(|row| row.map(drop));
                    assert!(rows.filter(Result::is_ok).count() <= 50);
                    assert_forked(db.put("child", "1"));
                    assert!(db.stats().segments_open < 100);
                    if round % 2 == 0 {
                        drop((snapshot.take(), db));
                    } else {
                        std::mem::forget(db);
                    }
                });
            }
        }));
        stop.store(true, Relaxed);
        parent.unwrap();
    });
    db.flush().unwrap();
    db.compact().unwrap();
    assert!(db.verify().unwrap().is_ok() && db.get("child").unwrap().is_none());
}

#[test]
fn i13_what_a_child_drops_stays_on_disk_for_its_parent() {
    let _exclusive = exclusive();
    let dir = fast_dir();
    let db = tiny().max_open_files(8).open(dir.path()).unwrap();
    fill(&db, 16); // More than are open at once.
    let (snapshot, files) = (db.snapshot(), db.file_set().unwrap());
    let mut held = Some((snapshot.clone(), snapshot.range(..), snapshot.cursor(), files, db.clone()));
    drop(snapshot);
    overwrite(&db, 16);
    db.compact().unwrap();
    let before = names(dir.path());
    assert!(before.iter().filter(|name| name.contains("obsolete")).count() >= 16, "{before:?}");
    in_child(|| drop(held.take()));
    assert_eq!(names(dir.path()), before);
    assert_eq!(held.unwrap().0.iter().map(Result::unwrap).count(), 850);
}

#[test]
fn i13_a_child_of_a_follower_releases_no_version() {
    let _exclusive = exclusive();
    let dir = fast_dir();
    let writer = tiny().open(dir.path()).unwrap();
    fill(&writer, 2);
    let mut follower = Some(Options::new().follow(true).open(dir.path()).unwrap());
    let mut snapshot = Some(follower.as_ref().unwrap().snapshot());
    overwrite(&writer, 2);
    writer.compact().unwrap();
    writer.wait_for_compaction().unwrap();
    let behind = writer.file_set().unwrap().version();
    follower.as_ref().unwrap().catch_up().unwrap();
    let locks = RealFs.reader_locks(&dir.path().join("LOCK")).unwrap().unwrap();
    let is_held = || locks.lowest_held().unwrap().is_some_and(|lowest| lowest < behind);
    assert!(is_held(), "the version of the snapshot");
    in_child(|| {
        assert_forked(follower.as_ref().unwrap().catch_up());
        assert_eq!(contents(follower.as_ref().unwrap()).len(), 150);
        drop((snapshot.take(), follower.take()));
    });
    assert!(is_held(), "released by the child");
    assert_eq!(snapshot.as_ref().unwrap().iter().map(Result::unwrap).count(), 150);
    drop(snapshot);
    eventually("no thread of the follower has the old version", || !is_held());
    assert!(locks.lowest_held().unwrap().is_some());
    drop(follower);
    assert_eq!(locks.lowest_held().unwrap(), None);
}

/// A child does not learn what its parent inserts, so it must not deny it.
#[test]
fn a_child_of_a_guard_denies_no_key() {
    let _exclusive = exclusive();
    let dir = fast_dir();
    let path = dir.path().join("guard");
    let mut handle = Some(Guard::build(&path, [b"abba"]).unwrap());
    assert_eq!(handle.as_ref().unwrap().may_contain("new"), Verdict::Absent);
    in_child(|| {
        let guard = handle.take().unwrap();
        assert_eq!(guard.may_contain("new"), Verdict::Maybe);
        assert_eq!(guard.may_contain_many(&["new", "abba"]), [Verdict::Maybe; 2]);
        assert_forked(guard.contains("new"));
        assert_forked(guard.insert("child"));
        assert_forked(guard.write(Changes::new().remove("abba")));
        assert_forked(guard.sync());
        assert_forked(guard.transaction().commit(|| Ok::<_, Error>(())));
        drop(guard);
        assert!(matches!(Guard::open(&path), Err(Error::Locked { .. })));
    });
    let guard = handle.unwrap();
    assert!(matches!(Guard::open(&path), Err(Error::Locked { .. })));
    guard.insert("new").unwrap();
    assert!(guard.contains("new").unwrap() && guard.contains("abba").unwrap());
}

/// A child forked during an ingest does not touch the ingest's segments.
#[test]
fn i13_a_child_forked_by_an_ingests_rows_does_not_touch_its_segments() {
    let _exclusive = exclusive();
    let dir = fast_dir();
    let db = tiny().open(dir.path()).unwrap();
    let row = |i: u32| Ok((format!("r{i:05}"), "x".repeat(100)));
    let is_child = std::cell::Cell::new(false);
    let fork = || {
        // SAFETY: as in `in_child`.
        let pid = unsafe { libc::fork() };
        is_child.set(pid == 0);
        // SAFETY: the pointer is valid.
        assert!(pid == 0 || unsafe { libc::waitpid(pid, &mut 0, 0) } == pid);
    };
    let rows = (0..5000).map(|i| {
        if i == 2500 {
            fork();
        }
        row(i)
    });
    let outcome = db.ingest(rows);
    if is_child.get() {
        // SAFETY: the end of the child.
        unsafe { libc::_exit(0) };
    }
    outcome.unwrap();
    assert_eq!(contents(&db).len(), 5000);
    assert!(db.verify().unwrap().is_ok());
}

/// Not a test by itself: opens a store, forks, and ends. The child continues, like a daemon.
#[test]
fn process_that_daemonises() {
    let Some(dir) = std::env::var_os(STORE) else { return };
    let mut handle = Some(tiny().durability(Durability::Sync).open(&dir).unwrap());
    handle.as_ref().unwrap().put("a", "1").unwrap();
    // SAFETY: as in `in_child`.
    if unsafe { libc::fork() } != 0 {
        // SAFETY: always allowed. The store is not closed.
        unsafe { libc::_exit(0) };
    }
    // SAFETY: always allowed.
    unsafe { libc::alarm(LONGEST_SECONDS) };
    let went_on = catch_unwind(AssertUnwindSafe(|| {
        let db = handle.take().unwrap();
        assert_eq!(db.get("a").unwrap().as_deref(), Some(&b"1"[..]));
        assert_forked(db.put("b", "2"));
        assert!(tiny().open(&dir).is_err(), "its own copy holds the lock");
        drop(db);
        let db = loop {
            match tiny().open(&dir) {
                Err(Error::Locked { .. }) => std::thread::yield_now(), // The parent has not ended yet.
                opened => break opened.unwrap(),
            }
        };
        db.put("b", "2").unwrap();
        drop(db);
    }));
    println!("the daemon {}", if went_on.is_ok() { "wrote" } else { "failed" });
    // SAFETY: the end of the daemon.
    unsafe { libc::_exit(0) };
}

#[test]
fn a_daemon_opens_the_store_anew_once_its_copy_is_dropped() {
    let _exclusive = exclusive();
    let dir = fast_dir();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(arguments_for(module_path!(), "process_that_daemonises"))
        .env(STORE, dir.path())
        .stdin(Stdio::null())
        .output() // Also waits for the daemon, which has the pipe.
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("the daemon wrote"), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(contents(&tiny().open(dir.path()).unwrap()).len(), 2);
}
