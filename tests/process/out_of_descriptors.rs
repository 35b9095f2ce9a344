//! EMFILE and ENFILE are temporary: operations that need a descriptor are retried or fail without harm, and
//! none is held longer than needed.

use crate::support::{Contents, Errno, Fault, OpKind, Rng, STORE, SimFs, TestClock};
use crate::support::{assert_holds, contents, eventually, fast_dir, files_with, promptly, tiny, tiny_on};
use crate::{arguments_for, exclusive};
use sidebloom::{Db, Keyspace, KeyspaceOptions, Options, Result};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// Tells the child process where its store is.
const STORE_OF_CHILD: &str = "SIDEBLOOM_TEST_STORE_OF_CHILD";
const ROWS: u64 = 6000;

fn row(n: u64) -> (Vec<u8>, Vec<u8>) {
    let mut rng = Rng::new(n);
    (format!("key{n:06}").into_bytes(), (0..100).flat_map(|_| rng.next().to_le_bytes()).collect())
}

/// Fails all operations of this kind after the next `after` of them.
fn none_left(kind: OpKind, after: u64, errno: Errno) -> Fault {
    Fault { forever: true, ..Fault::once(kind, after).with(errno) }
}

/// A store of a thousand segments works in a process limited to 64 descriptors.
#[test]
fn i12_a_store_of_a_thousand_segments_works_with_64_descriptors() {
    let _exclusive = exclusive();
    let dir = fast_dir();
    let store = dir.path().join("store");
    let db = tiny().open(&store).unwrap();
    db.ingest((0..ROWS).map(|n| Result::Ok(row(n)))).unwrap();
    drop(db);
    assert!(files_with(&store, ".segment").len() >= 1000);
    run_with_64_descriptors("child_with_few_descriptors", &store);
}

/// Runs a test of this file that writes the file `done` into the store.
fn run_with_64_descriptors(test: &str, store: &Path) {
    let child = Command::new("sh")
        .args(["-c", "ulimit -n 64 && exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(arguments_for(module_path!(), test))
        .env(STORE_OF_CHILD, store)
        .output()
        .unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stderr));
    assert!(files_with(store, "done").len() == 1, "the child has run");
}

/// Run by the test above.
#[test]
fn child_with_few_descriptors() {
    let Some(store) = std::env::var_os(STORE_OF_CHILD).map(PathBuf::from) else { return };
    // With the default of 512 open files, far more than there are.
    let db = tiny().open(&store).unwrap();
    let mut expected: Contents = (0..ROWS).map(row).collect();
    for (key, value) in &expected {
        assert_eq!(db.get(key).unwrap().as_deref(), Some(value.as_slice()));
    }
    assert!(db.stats().segment_opens > 512);
    for n in (0..ROWS).step_by(5) {
        let (key, value) = (row(n).0, row(n + 1).1);
        db.put(&key, &value).unwrap();
        expected.insert(key, value);
    }
    db.flush().unwrap();
    db.wait_for_compaction().unwrap();
    assert_holds(&db, &expected);
    assert!(db.verify().unwrap().is_ok());
    drop(db);
    assert_eq!(contents(&tiny().read_only(true).open(&store).unwrap()), expected);
    std::fs::write(store.join("done"), "").unwrap();
}

/// A memtable has rows of 20 windowed keyspaces, each in a dozen time buckets.
#[test]
fn i12_a_flush_of_many_windows_works_with_64_descriptors() {
    let _exclusive = exclusive();
    let dir = fast_dir();
    let store = dir.path().join("store");
    drop(tiny().open(&store).unwrap());
    run_with_64_descriptors("child_that_flushes_many_windows", &store);
}

/// Run by the test above.
#[test]
fn child_that_flushes_many_windows() {
    let Some(store) = std::env::var_os(STORE_OF_CHILD).map(PathBuf::from) else { return };
    let clock = Arc::new(TestClock::new());
    let options = tiny().memtable_bytes(1 << 20).clock(Arc::clone(&clock) as _);
    let db = options.open(&store).unwrap();
    let window = || KeyspaceOptions::new().window(Duration::from_secs(120));
    let windows: Vec<Keyspace> =
        (0..20).map(|n| db.create_keyspace(&format!("{n}"), window()).unwrap()).collect();
    for n in 0..12 {
        windows.iter().for_each(|recent| recent.put(row(n).0, row(n).1).unwrap());
        clock.advance(Duration::from_secs(9));
    }
    db.flush().unwrap();
    assert!(windows.iter().all(|recent| recent.iter().count().unwrap() == 12));
    assert!(db.stats().levels[0].segments > 200);
    std::fs::write(store.join("done"), "").unwrap();
}

#[test]
fn a_read_that_finds_no_descriptor_is_an_error_and_the_next_one_works() {
    for errno in [Errno::TooManyFiles, Errno::TooManyFilesInSystem] {
        let fs = SimFs::new();
        let db = tiny_on(&fs).open(STORE).unwrap();
        (0..100).for_each(|n| db.put(row(n).0, row(n).1).unwrap());
        db.flush().unwrap();
        db.wait_for_compaction().unwrap();
        drop(db);
        let db = tiny_on(&fs).read_only(true).max_open_files(8).open(STORE).unwrap();
        db.warm().unwrap();
        fs.fail(Fault::once(OpKind::Open, 0).with(errno));
        (0..100)
            .for_each(|n| assert!(db.get(row(n).0).unwrap().is_some(), "another segment was closed for it"));
        fs.fail(none_left(OpKind::Open, 0, errno));
        let refused = (0..100).filter_map(|n| db.get(row(n).0).err());
        assert!(refused.inspect(|e| assert!(e.is_out_of_descriptors(), "{e}")).count() > 0);
        fs.heal();
        (0..100).for_each(|n| assert!(db.get(row(n).0).unwrap().is_some()));
    }
}

/// A write that finds no descriptor for the next log is refused, and can be repeated.
#[test]
fn a_write_without_a_descriptor_for_the_next_log_may_be_repeated() {
    let fs = SimFs::new();
    let db = tiny_on(&fs).open(STORE).unwrap();
    fs.fail(none_left(OpKind::Create, 0, Errno::TooManyFiles));
    let mut expected = Contents::new();
    let mut n = 0;
    let error = loop {
        let (key, value) = row(n);
        match db.put(&key, &value) {
            Ok(()) => expected.insert(key, value),
            Err(error) => break error,
        };
        n += 1;
    };
    assert!(error.is_out_of_descriptors(), "{error}");
    assert!(db.put(row(n).0, row(n).1).unwrap_err().is_out_of_descriptors(), "refused again, not read-only");
    db.sync().unwrap();
    assert_eq!(contents(&db), expected);
    fs.heal();
    // The log exists, but its name is not durable.
    fs.fail(Fault::once(OpKind::SyncDir, 0).with(Errno::TooManyFiles));
    assert!(db.put(row(n).0, row(n).1).unwrap_err().is_out_of_descriptors());
    for n in n..n + 30 {
        let (key, value) = row(n);
        db.put(&key, &value).unwrap();
        expected.insert(key, value);
    }
    db.flush().unwrap();
    assert_eq!(contents(&db), expected);
    drop(db);
    assert_eq!(contents(&tiny_on(&fs).open(STORE).unwrap()), expected);
}

#[test]
fn background_work_that_finds_no_descriptor_waits_for_one() {
    for kind in [OpKind::Create, OpKind::SyncDir] {
        let fs = SimFs::new();
        let db = tiny_on(&fs).background_threads(3).open(STORE).unwrap();
        let expected: Contents = (0..3).map(row).collect();
        for (key, value) in &expected {
            db.put(key, value).unwrap();
        }
        // The new log gets what it needs; its flush does not.
        fs.fail(none_left(kind, 1, Errno::TooManyFiles));
        let flushing = std::thread::spawn({
            let db = db.clone();
            move || db.flush()
        });
        eventually("background work waits", || db.stats().descriptor_waits >= 2);
        assert_eq!(contents(&db), expected);
        db.put(b"meanwhile", b"written").unwrap();
        let segments =
            |fs: &SimFs| fs.files().iter().filter(|f| f.to_string_lossy().contains(".segment")).count();
        assert!(segments(&fs) <= 1, "failed attempts leave no segments: {:?}", fs.files());
        fs.heal();
        promptly("the flush", move || flushing.join().unwrap().unwrap());
        assert_eq!(segments(&fs), 1);
        db.put(b"after", b"written").unwrap();
        db.flush().unwrap();
        assert_eq!(db.iter().count().unwrap(), 5);
        assert!(db.verify().unwrap().is_ok());
    }
}

/// Unlinked files of the store that this process still has open.
fn deleted_but_open(store: &Path) -> Vec<PathBuf> {
    let links = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let targets = links.filter_map(|link| std::fs::read_link(link.path()).ok());
    targets.filter(|at| at.starts_with(store) && at.to_string_lossy().ends_with("(deleted)")).collect()
}

#[test]
fn a_flushed_log_is_closed_and_gives_its_space_back() {
    let dir = fast_dir();
    let db = Db::open(dir.path()).unwrap();
    for n in 0..10 {
        db.put(row(n).0, row(n).1).unwrap();
        db.flush().unwrap();
        assert_eq!(files_with(dir.path(), ".wal").len(), 1);
        let logs =
            deleted_but_open(dir.path()).into_iter().filter(|at| at.to_string_lossy().contains(".wal"));
        assert_eq!(logs.collect::<Vec<_>>(), [""; 0].map(PathBuf::from));
    }
    db.wait_for_compaction().unwrap();
    eventually("what compactions have replaced is closed", || deleted_but_open(dir.path()).is_empty());
}

#[test]
fn a_sidecar_that_could_not_be_mapped_when_it_was_written_is_mapped_later() {
    for errno in [Errno::NoMemory, Errno::TooManyFiles] {
        let fs = SimFs::new();
        let db = Options::new().filesystem(Arc::new(fs.clone())).open(STORE).unwrap();
        (0..50).for_each(|n| db.put(row(n).0, row(n).1).unwrap());
        fs.fail(none_left(OpKind::Map, 0, errno));
        db.flush().unwrap();
        assert_eq!(db.get(b"key000000 missing").unwrap(), None);
        assert_eq!(db.stats().filter_probes, 0, "there is no map to ask");
        assert!((0..50).all(|n| db.get(row(n).0).unwrap().is_some()));
        let written = db.stats().filter_bytes_written;
        fs.heal();
        let mut missing = (0..).map(|n| format!("key000000 missing {n}"));
        eventually("the filter answers", || {
            assert_eq!(db.get(missing.next().unwrap()).unwrap(), None);
            db.stats().filter_negatives > 0
        });
        let stats = db.stats();
        assert_eq!(stats.filter_bytes_written, written, "it was there, and is not built again");
        assert_eq!((stats.levels[0].filters, stats.filters_unavailable), (1, 0));
    }
}
