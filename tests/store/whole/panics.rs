//! A panic in a thread of the store or in the caller's code leaves no thread waiting, and no lock or file.

use crate::support::{Errno, Fault, OpKind, STORE, SimFs, promptly, tiny_on};
use sidebloom::{Db, Durability, Error, FilterPolicy, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};

type Caller = (&'static str, fn(&Db) -> Result<()>);

/// Every call that waits for a background thread.
const CALLERS: [Caller; 4] = [
    ("flush", |db| db.flush()),
    ("compact", Db::compact),
    ("wait_for_compaction", |db| db.flush().and_then(|()| db.wait_for_compaction())),
    ("put", |db| (0..2000u32).try_for_each(|i| db.put(i.to_be_bytes(), [0; 100]))),
];

#[test]
fn a_panic_in_a_background_thread_hangs_nobody_and_poisons_the_store() {
    // Only the background renames files: when a segment's filter is complete.
    for after in [0, 3] {
        for threads in [2, 3, 5] {
            for (name, call) in CALLERS {
                let fs = SimFs::new();
                let db = tiny_on(&fs).background_threads(threads).open(STORE).unwrap();
                (0..20u32).for_each(|i| db.put(i.to_be_bytes(), b"kept").unwrap());
                fs.fail(Fault::once(OpKind::Rename, after).with(Errno::Panic));
                let caller = db.clone();
                let outcome = promptly(name, move || {
                    loop {
                        if let Err(error) = call(&caller) {
                            return error;
                        }
                        (0..50u32).for_each(|i| _ = caller.put(i.to_be_bytes(), [1; 100]));
                    }
                });
                match outcome {
                    Error::Poisoned { cause } => {
                        assert!(cause.contains("panicked: a planned panic"), "{cause}")
                    }
                    other => panic!("{name}: {other}"),
                }
                assert!(matches!(db.put("k", "v"), Err(Error::Poisoned { .. })));
                assert!(db.get(7u32.to_be_bytes()).unwrap().is_some(), "reads go on");
                promptly("closing", move || drop(db));
                let db = tiny_on(&fs).open(STORE).unwrap();
                assert!((0..20u32).all(|i| db.get(i.to_be_bytes()).unwrap().is_some()));
            }
        }
    }
}

#[test]
fn a_panic_of_a_writer_hangs_no_writer_that_it_took_along() {
    for seed in 0..20 {
        let fs = SimFs::new();
        let db = tiny_on(&fs).open(STORE).unwrap();
        fs.fail(Fault::once(OpKind::Sync, 3 + seed).with(Errno::Panic));
        let writer = |n: u32| {
            let db = db.clone();
            move || {
                catch_unwind(AssertUnwindSafe(|| {
                    for i in 0..2000u32 {
                        let mut batch = sidebloom::Batch::new();
                        batch.put((i * 8 + n).to_be_bytes(), b"v");
                        if db.write_with(batch, Durability::Sync).is_err() {
                            return;
                        }
                    }
                }))
                .is_err()
            }
        };
        let writers: Vec<_> = (0..4).map(|n| std::thread::spawn(writer(n))).collect();
        let panicked = promptly("a writer", move || {
            writers.into_iter().map(|writer| writer.join().unwrap()).filter(|panicked| *panicked).count()
        });
        assert!(panicked <= 1);
        assert!(matches!(db.put("k", "v"), Err(Error::Poisoned { .. })));
    }
}

#[test]
fn a_panic_in_the_callers_own_code_leaves_the_store_as_it_was() {
    let fs = SimFs::new();
    let db = tiny_on(&fs).open(STORE).unwrap();
    let files = fs.files();
    let rows = (0..3000u32).map(|i| {
        assert!(i < 2000, "planned");
        Ok((i.to_be_bytes(), [0u8; 40]))
    });
    assert!(catch_unwind(AssertUnwindSafe(|| db.ingest(rows))).is_err());
    assert_eq!(fs.files(), files, "a file of the broken ingest is left");
    db.put("k", "v").unwrap();
    db.flush().unwrap();
    let progress = |_: &_| panic!("planned");
    let rebuild = || db.rebuild_filters_with(FilterPolicy::bits_per_key(9.0), progress);
    assert!(catch_unwind(AssertUnwindSafe(rebuild)).is_err());
    promptly("the store", move || {
        db.put("l", "w").unwrap();
        db.compact().unwrap();
        db.wait_for_compaction().unwrap();
        assert_eq!(db.iter().count().unwrap(), 2);
    });
}

/// Without `AssertUnwindSafe`: by its type, the handle may be used afterwards.
#[test]
fn a_panic_in_the_rows_of_an_ingest_changes_nothing_and_the_store_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let db = Db::open(&path).unwrap();
    db.put("a", "before").unwrap();
    let (snapshot, mut range) = (db.snapshot(), db.iter());
    let files = || std::fs::read_dir(&path).unwrap().count();
    for unsorted in [false, true] {
        let before = files();
        let caught = catch_unwind(|| {
            let rows = (0..20_000u32).map(|n| match n {
                19_999 => std::panic::panic_any("the caller's"),
                n => Ok((n.to_be_bytes(), [0; 100])),
            });
            if unsorted { db.ingest_unsorted(rows) } else { db.ingest(rows) }
        });
        assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"the caller's"));
        assert!(files() <= before + 1, "what was built is removed"); // Another log may have begun.
        db.put("b", "after").unwrap();
        db.flush().unwrap();
        db.compact().unwrap();
        let caught =
            catch_unwind(|| db.rebuild_filters_with(FilterPolicy::bits_per_key(12.0), |_| panic!("again")));
        assert!(caught.is_err());
        db.ingest([Ok(("c", "ingested"))]).unwrap();
        assert_eq!(db.iter().count().unwrap(), 3);
        assert_eq!(snapshot.iter().count().unwrap(), 1);
    }
    assert_eq!(range.next_row().unwrap(), Some((&b"a"[..], &b"before"[..])));
    drop((db, snapshot, range));
    assert_eq!(Db::open(&path).unwrap().iter().count().unwrap(), 3);
}
