//! What becomes of a keyspace that was dropped, and of another one with its name.

use crate::support::{Crash, STORE, SimFs, fast_dir, tiny, tiny_on};
use sidebloom::{Batch, Compression, Db, Error, Keyspace, KeyspaceOptions};

fn create(db: &Db, name: &str) -> Keyspace {
    db.create_keyspace(name, KeyspaceOptions::new()).unwrap()
}

fn fill(keyspace: &Keyspace, rows: u32) {
    (0..rows).for_each(|i| keyspace.put(i.to_be_bytes(), [b'x'; 100]).unwrap());
}

#[test]
fn handles_of_a_dropped_keyspace_have_an_error_and_iterators_go_on() {
    let dir = fast_dir();
    let db = tiny().open(dir.path()).unwrap();
    let seen = create(&db, "seen");
    fill(&seen, 500);
    let snapshot = db.snapshot();
    let mut range = seen.iter();
    let mut cursor = seen.cursor();
    assert!(range.next().is_some() && cursor.seek_to_first().unwrap());
    let tx = db.transaction();
    tx.keyspace(&seen).unwrap().put("k", "v").unwrap();
    let mut batch = Batch::new();
    batch.put("mine", "1");
    batch.keyspace(&seen).put("k", "v");
    db.drop_keyspace("seen").unwrap();
    let again = create(&db, "seen");
    let is_dropped =
        |error: Option<Error>| matches!(error, Some(Error::KeyspaceDropped { name }) if name == "seen");
    assert!(is_dropped(seen.get("k").err()));
    assert!(is_dropped(seen.contains_key("k").err()) && is_dropped(seen.multi_get(&["k"]).err()));
    assert!(is_dropped(seen.put("k", "v").err()) && is_dropped(seen.delete("k").err()));
    assert!(is_dropped(seen.delete_range(..).err()) && is_dropped(seen.insert_new("k", "v").err()));
    assert!(is_dropped(seen.insert_new_many(&[("k", "v")]).err()));
    assert!(is_dropped(seen.update("k", |_| Some("v")).err()));
    assert!(is_dropped(seen.ingest([Ok(("k", "v"))]).err()));
    assert!(is_dropped(seen.iter().next().unwrap().err()) && is_dropped(seen.iter().count().err()));
    assert!(is_dropped(seen.cursor().seek_to_first().err()) && is_dropped(seen.cursor().seek("k").err()));
    assert!(is_dropped(seen.snapshot().get("k").err()) && is_dropped(seen.compact().err()));
    assert!(is_dropped(seen.set_options(KeyspaceOptions::new()).err()));
    assert!(is_dropped(seen.rebuild_filters().err()));
    assert!(is_dropped(tx.keyspace(&seen).err()) && is_dropped(tx.commit().err()));
    assert!(is_dropped(db.write(batch).err()));
    assert!(db.get("mine").unwrap().is_none());
    db.compact().unwrap();
    assert_eq!(range.count().unwrap(), 499);
    let mut rows = 1;
    while cursor.next().unwrap() {
        rows += 1;
    }
    assert_eq!(rows, 500);
    assert_eq!(snapshot.keyspace(&seen).unwrap().iter().count().unwrap(), 500);
    assert_eq!(snapshot.keyspace(&again).unwrap().iter().count().unwrap(), 0);
    assert_eq!(again.iter().count().unwrap(), 0);
    again.put("k", "new").unwrap();
    assert_eq!(db.keyspace("seen").unwrap().get("k").unwrap().unwrap(), b"new");
}

#[test]
fn dropping_removes_segments_unread_and_leaves_the_neighbours() {
    let dir = fast_dir();
    let db = tiny().open(dir.path()).unwrap();
    let keyspaces = ["a", "b", "c"].map(|name| create(&db, name));
    keyspaces.iter().for_each(|keyspace| fill(keyspace, 2000));
    fill(&db, 2000);
    db.compact().unwrap();
    let segments = |db: &Db| db.stats().levels.iter().map(|level| level.segments).sum::<usize>();
    let (before, read) = (segments(&db), db.stats().compaction_read_bytes);
    db.drop_keyspace("b").unwrap();
    let after = segments(&db);
    assert!(after < before * 9 / 10, "{before} segments, then {after}");
    assert_eq!(db.stats().compaction_read_bytes, read);
    let counts = |db: &Db| {
        let of = |name| db.keyspace(name).unwrap().iter().count().unwrap();
        (of("a"), of("c"), db.iter().count().unwrap())
    };
    assert_eq!(counts(&db), (2000, 2000, 2000));
    assert_eq!(create(&db, "b").iter().count().unwrap(), 0);
    drop((keyspaces, db));
    let db = tiny().open(dir.path()).unwrap();
    assert_eq!(counts(&db), (2000, 2000, 2000));
    assert_eq!(db.keyspace("b").unwrap().iter().count().unwrap(), 0);
    assert!(db.verify().unwrap().is_ok());
}

/// One flush, and no compaction.
#[test]
fn dropping_gives_back_what_was_flushed_with_other_keyspaces() {
    let dir = fast_dir();
    let db = tiny().memtable_bytes(8 << 20).compression(Compression::None).open(dir.path()).unwrap();
    let keyspaces = ["a", "b", "c"].map(|name| create(&db, name));
    let small: Vec<Keyspace> = (0..100).map(|n| create(&db, &format!("small {n}"))).collect();
    for i in 0..3000u32 {
        keyspaces.iter().for_each(|keyspace| keyspace.put(i.to_be_bytes(), [b'x'; 100]).unwrap());
    }
    small.iter().for_each(|keyspace| keyspace.put("k", "v").unwrap());
    db.flush().unwrap();
    let size = |db: &Db| {
        let levels = db.stats().levels;
        let sum = |of: fn(&sidebloom::LevelStats) -> u64| levels.iter().map(of).sum::<u64>();
        (sum(|level| level.segments as u64), sum(|level| level.data_bytes))
    };
    let (before, read) = (size(&db), db.stats().compaction_read_bytes);
    assert_eq!(before.0, 5, "the catalog, the large keyspaces, and the small ones together");
    db.drop_keyspace("b").unwrap();
    db.drop_keyspace("small 7").unwrap();
    let after = size(&db);
    assert!(after.0 == 4 && after.1 < before.1 * 7 / 10, "{before:?}, then {after:?}");
    assert_eq!(db.stats().compaction_read_bytes, read);
    assert!(keyspaces[0].iter().count().unwrap() == 3000 && keyspaces[2].iter().count().unwrap() == 3000);
    assert_eq!(small.iter().filter(|keyspace| keyspace.get("k").is_ok_and(|v| v.is_some())).count(), 99);
    db.compact().unwrap();
    assert!(db.verify().unwrap().is_ok());
}

#[test]
fn i4_a_dropped_keyspace_stays_dropped_after_a_crash() {
    for crash in [Crash::Power, Crash::PowerOrdered, Crash::Kill] {
        for flushed in [false, true] {
            let fs = SimFs::new();
            let db = tiny_on(&fs).open(STORE).unwrap();
            let (kept, gone) = (create(&db, "kept"), create(&db, "gone"));
            fill(&kept, 300);
            fill(&gone, 300);
            if flushed {
                db.flush().unwrap();
            }
            db.drop_keyspace("gone").unwrap();
            let disk = fs.crash(crash, 7);
            let db = tiny_on(&disk).open(STORE).unwrap();
            assert_eq!(db.keyspaces().unwrap(), ["kept"]);
            assert_eq!(db.keyspace("kept").unwrap().iter().count().unwrap(), 300);
            assert_eq!(create(&db, "gone").iter().count().unwrap(), 0);
            assert!(db.verify().unwrap().is_ok());
        }
    }
}

/// A batch is either before the deletion, and deleted, or refused.
#[test]
fn no_row_is_left_by_writers_that_race_with_a_drop() {
    let dir = fast_dir();
    let db = tiny().open(dir.path()).unwrap();
    for round in 0..20 {
        let racing = create(&db, "racing");
        std::thread::scope(|scope| {
            for thread in 0..3u32 {
                let (racing, db) = (racing.clone(), db.clone());
                scope.spawn(move || {
                    for i in 0u32.. {
                        let key = [thread.to_be_bytes(), i.to_be_bytes()].concat();
                        let mut batch = Batch::new();
                        batch.keyspace(&racing).put(&key, "v");
                        batch.put(&key, "v");
                        match db.write(batch) {
                            Ok(()) => {}
                            Err(Error::KeyspaceDropped { .. }) => return,
                            Err(error) => panic!("{error}"),
                        }
                    }
                });
            }
            std::thread::sleep(std::time::Duration::from_millis(round));
            db.drop_keyspace("racing").unwrap();
        });
        drop(racing);
        db.flush().unwrap();
        db.delete_range(..).unwrap();
        db.compact().unwrap();
        let rows: u64 = db.stats().levels.iter().map(|level| level.keys).sum();
        assert!(rows <= 1, "only the number of the next keyspace is left, but {rows} rows are");
    }
}
