//! I7: readers never wait for writers, flushes or compactions. Here the disk stalls all of those.

use crate::support::{Contents, OpKind, STORE, SimFs, assert_holds, contents, eventually, promptly, tiny_on};
use sidebloom::{Db, Durability};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

/// A store with a compacted level, a segment of level 0 above it, and nothing in its memtable.
fn filled(fs: &SimFs) -> Db {
    let db = tiny_on(fs).open(STORE).unwrap();
    for i in 0..400u32 {
        db.put(format!("key{:04}", i * 37 % 400), [i as u8; 40]).unwrap();
    }
    db.compact().unwrap();
    db.wait_for_compaction().unwrap();
    db.delete(b"key0007").unwrap();
    db.put(b"key0008", b"fresh").unwrap();
    db.flush().unwrap();
    db
}

/// Everything that reads.
fn read_all(db: Db, expected: Contents) {
    promptly("a read", move || {
        assert_holds(&db, &expected);
        let snapshot = db.snapshot();
        assert_eq!(snapshot.get(b"key0008").unwrap().as_deref(), Some(b"fresh".as_slice()));
        assert_eq!(snapshot.prefix(b"key000").count().unwrap(), 9);
        let keys = ["key0001", "key0007", "nothing"];
        let found: Vec<bool> = db.multi_get(&keys).unwrap().iter().map(Option::is_some).collect();
        assert_eq!(found, [true, false, false]);
        assert!(db.stats().levels.len() > 1);
    });
}

fn settle() {
    std::thread::sleep(Duration::from_millis(30));
}

fn finished(threads: &[(&'static str, JoinHandle<()>)]) -> Vec<&'static str> {
    threads.iter().filter(|(_, thread)| thread.is_finished()).map(|(name, _)| *name).collect()
}

/// Reads succeed while a compaction, then a syncing writer, then a flush are stuck on the disk.
#[test]
fn i7_reads_go_on_while_a_compaction_a_writer_or_a_flush_is_stuck() {
    for kind in [OpKind::Append, OpKind::Sync, OpKind::Create, OpKind::SyncDir] {
        let fs = SimFs::new();
        let db = filled(&fs);
        let expected = contents(&db);
        let (snapshot, mut half_read) = (db.snapshot(), db.iter());
        assert!(half_read.next().is_some());
        let held = fs.hold(kind);

        let compaction = db.clone();
        let mut threads = vec![("compaction", spawn(move || compaction.compact().unwrap()))];
        eventually("the compaction is stuck", || fs.waiting() > 0);
        let writer = db.clone();
        threads.push((
            "writer",
            spawn(move || {
                for i in 0..100u32 {
                    writer.put(format!("late{i}"), [0; 100]).unwrap();
                }
                let mut batch = sidebloom::Batch::new();
                batch.put(b"last", b"synced");
                writer.write_with(batch, Durability::Sync).unwrap();
            }),
        ));
        let is_writing = || fs.waiting() > 1 || db.contains_key("late0").unwrap();
        eventually("the writer is stuck, or there is something to flush", is_writing);
        let flush = db.clone();
        threads.push(("flush", spawn(move || flush.flush().unwrap())));
        settle();
        assert_eq!(finished(&threads), [""; 0], "{kind:?} is held, but not all of them wait for it");

        let late = contents(&db);
        assert_eq!(late.get(b"last".as_slice()), None, "visible before it is durable");
        read_all(db.clone(), late);
        let rest = promptly("an iterator that had begun", move || half_read.count().unwrap());
        assert_eq!(rest, expected.len() as u64 - 1);
        let then =
            promptly("a snapshot", move || snapshot.iter().map(|kv| kv.unwrap().0).collect::<Vec<_>>());
        assert!(then.iter().eq(expected.keys()));
        assert_eq!(finished(&threads), [""; 0], "{kind:?}");

        drop(held);
        threads.into_iter().for_each(|(_, thread)| thread.join().unwrap());
        assert_eq!(contents(&db).len(), expected.len() + 101);
    }
}

#[test]
fn i7_reads_go_on_while_writers_are_stalled_because_no_flush_gets_through() {
    let fs = SimFs::new();
    let db = filled(&fs);
    let held = fs.hold(OpKind::Rename); // Every flush ends with a rename, the log has none.
    let writer = db.clone();
    let stalled =
        spawn(move || (0..500u32).for_each(|i| writer.put(format!("late{i:03}"), [0; 100]).unwrap()));
    eventually("the writer has begun", || contents(&db).len() > 410);
    settle();
    assert!(!stalled.is_finished(), "nothing flushed, and yet there is room in the memtables");
    let so_far = contents(&db);
    read_all(db.clone(), so_far);
    drop(held);
    stalled.join().unwrap();
    assert_eq!(contents(&db).len(), 399 + 500);
}
