//! `Db::ingest` into a store with rows, concurrent with writers, snapshots, compactions and other ingests.

use crate::support::{
    Contents, Crash, Fault, OpKind, Rng, STORE, SimFs, contents, eventually, fill_deep, promptly, tiny_on,
};
use sidebloom::{Compression, Db, Error, Result};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

type Row = (Vec<u8>, Vec<u8>);

/// Rows of these keys with one value.
fn rows(keys: impl IntoIterator<Item = u32>, value: &str) -> Vec<Row> {
    keys.into_iter().map(|key| (format!("key{key:05}").into_bytes(), value.into())).collect()
}

fn ok(rows: Vec<Row>) -> impl Iterator<Item = Result<Row>> {
    rows.into_iter().map(Ok)
}

fn check(db: &Db, expected: &Contents) {
    assert_eq!(contents(db), *expected);
    for key in (0..3100).map(|key| format!("key{key:05}").into_bytes()) {
        assert_eq!(db.get(&key).unwrap().map(|v| v.to_vec()), expected.get(&key).cloned());
    }
    let report = db.verify().unwrap();
    assert!(report.is_ok(), "{:?}", report.problems);
}

fn segments(db: &Db) -> Vec<usize> {
    db.stats().levels.iter().map(|level| level.segments).collect()
}

/// Ingested rows replace those of any level and of memory, and later writes replace them.
#[test]
fn i10_rows_replace_older_ones_of_any_level_and_later_writes_replace_them() {
    for seed in 0..6 {
        let fs = SimFs::new();
        let mut db = tiny_on(&fs).compression(Compression::None).open(STORE).unwrap();
        let mut expected = fill_deep(&db, seed);
        let mut rng = Rng::new(seed);
        for round in 0..8 {
            let from = rng.below(2800) as u32;
            let step = [1, 7, 100][rng.below(3) as usize];
            let keys = (from..3050.min(from + rng.below(1500) as u32)).step_by(step);
            let new = rows(keys, &format!("ingested in round {round}"));
            // Some of the keys are in memory, as values and as tombstones.
            for (key, _) in new.iter().step_by(3) {
                db.delete(key).unwrap();
                db.put([key.as_slice(), b"+"].concat(), "in memory").unwrap();
                expected.insert([key.as_slice(), b"+"].concat(), b"in memory".to_vec());
            }
            let (snapshot, before) = (db.snapshot(), contents(&db));
            db.ingest(ok(new.clone())).unwrap();
            expected.extend(new.clone());
            check(&db, &expected);
            for (key, _) in new.iter().step_by(5) {
                db.delete(key).unwrap();
                expected.remove(key);
            }
            check(&db, &expected);
            let seen: Contents =
                snapshot.iter().map(|row| row.map(|(k, v)| (k, v.to_vec())).unwrap()).collect();
            assert_eq!(seen, before, "a snapshot taken before sees no row");
            drop(snapshot);
            match round {
                2 => db.compact().unwrap(),
                4 => db.wait_for_compaction().unwrap(),
                6 => {
                    drop(db);
                    db = tiny_on(&fs).open(STORE).unwrap();
                }
                _ => {}
            }
            check(&db, &expected);
        }
    }
}

#[test]
fn no_rows_write_nothing() {
    let fs = SimFs::new();
    let db = tiny_on(&fs).open(STORE).unwrap();
    db.put("a", "1").unwrap();
    let writes = fs.writes();
    db.ingest(ok(Vec::new())).unwrap();
    db.ingest_unsorted(ok(Vec::new())).unwrap();
    assert_eq!(fs.writes(), writes);
}

/// The rows get their number before these writes; in an empty store it is the next, so they are rewritten.
#[test]
fn writes_that_come_between_the_rows_are_older_than_all_of_them() {
    for (is_empty, flush) in [(true, false), (true, true), (false, false), (false, true)] {
        let fs = SimFs::new();
        let db = tiny_on(&fs).open(STORE).unwrap();
        if !is_empty {
            db.put("before", "").unwrap();
        }
        let new = rows(0..3000, "ingested");
        let (writer, half) = (db.clone(), new[1500].0.clone());
        let writing = new.clone().into_iter().map(move |(key, value)| {
            if key == half {
                writer.put("key00003", "written")?;
                writer.put("key00003+", "written")?;
                writer.delete("key02000")?;
                if flush {
                    writer.compact()?;
                }
            }
            Ok((key, value))
        });
        let ingesting = db.clone();
        promptly("ingest", move || ingesting.ingest(writing).unwrap());
        let mut expected: Contents = new.into_iter().collect();
        expected.insert(b"key00003+".to_vec(), b"written".to_vec());
        expected.extend((!is_empty).then(|| (b"before".to_vec(), Vec::new())));
        check(&db, &expected);
        // A compaction may have outputs that are not in the store yet.
        eventually("no segment but those of the store", || {
            let files = fs.files();
            let of_segments = files.iter().filter(|path| path.to_str().unwrap().ends_with("segment"));
            of_segments.count() == segments(&db).iter().sum::<usize>()
        });
        db.compact().unwrap();
        drop(db);
        check(&tiny_on(&fs).open(STORE).unwrap(), &expected);
    }
}

#[test]
fn an_ingest_within_an_ingest_is_published_first() {
    for is_empty in [true, false] {
        let fs = SimFs::new();
        let db = tiny_on(&fs).open(STORE).unwrap();
        if !is_empty {
            db.put("before", "").unwrap();
        }
        let inner = db.clone();
        let nested = rows(0..3000, "outer").into_iter().map(move |(key, value)| {
            if key.ends_with(b"00") {
                inner.ingest(ok(rows([5, 4000], "inner")))?;
                assert_eq!(&*inner.get("key04000")?.unwrap(), b"inner");
            }
            Ok((key, value))
        });
        let outer = db.clone();
        promptly("ingest", move || outer.ingest(nested).unwrap());
        assert_eq!(&*db.get("key00005").unwrap().unwrap(), b"outer");
        assert_eq!(&*db.get("key04000").unwrap().unwrap(), b"inner");
        assert_eq!(db.iter().count().unwrap(), 3001 + u64::from(!is_empty));
        assert!(db.verify().unwrap().is_ok());
    }
}

/// Two keys always change together. An iterator that saw half of an ingest, or rows under older ones, would
/// find two values.
#[test]
fn i10_ingests_beside_writers_and_compactions_lose_and_mix_nothing() {
    for threads in [2, 3, 8] {
        let fs = SimFs::new();
        let db = tiny_on(&fs).background_threads(threads).compression(Compression::None).open(STORE).unwrap();
        let (done, ingests) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let db = &db;
            let writers: Vec<_> = (0..2u32)
                .map(|writer| {
                    scope.spawn(move || {
                        // Each writer has keys that no ingest has, and keys that one has, which it writes
                        // only after its own ingest.
                        let mut mine = Contents::new();
                        let mut rng = Rng::new(writer.into());
                        for round in 0..25 {
                            let from = rng.below(2000) as u32;
                            let keys = (from..from + 300).step_by(1 + rng.below(20) as usize);
                            let keys: Vec<u32> = keys.map(|key| key * 2 + writer).collect();
                            let new = rows(keys, &format!("{round} of {writer}"));
                            if rng.percent(50) {
                                db.ingest(ok(new.clone())).unwrap()
                            } else {
                                db.ingest_unsorted(ok(new.iter().rev().cloned().collect())).unwrap()
                            }
                            mine.extend(new.clone());
                            for (key, _) in new.iter().step_by(3) {
                                db.put(key, format!("put {round}")).unwrap();
                                mine.insert(key.clone(), format!("put {round}").into());
                            }
                            for (key, _) in new.iter().step_by(4) {
                                db.delete(key).unwrap();
                                mine.remove(key);
                            }
                            for (key, _) in &new {
                                assert_eq!(db.get(key).unwrap().map(|v| v.to_vec()), mine.get(key).cloned());
                            }
                        }
                        mine
                    })
                })
                .collect();
            scope.spawn(|| {
                while !done.load(SeqCst) {
                    let round = ingests.fetch_add(1, SeqCst);
                    let pair =
                        [b"a".to_vec(), b"z".to_vec()].map(|key| (key, round.to_string().into_bytes()));
                    db.ingest(ok(pair.to_vec())).unwrap();
                }
            });
            scope.spawn(|| {
                while !done.load(SeqCst) {
                    let seen = contents(db);
                    assert_eq!(seen.get(&b"a"[..]), seen.get(&b"z"[..]));
                    db.compact().unwrap();
                }
            });
            let of_writers: Vec<Contents> =
                writers.into_iter().map(|writer| writer.join().unwrap()).collect();
            done.store(true, SeqCst);
            let mut found = contents(db);
            found.retain(|key, _| key.starts_with(b"key"));
            assert_eq!(found, of_writers.into_iter().flatten().collect::<Contents>());
        });
        assert!(ingests.load(SeqCst) > 1);
        db.wait_for_compaction().unwrap();
        let report = db.verify().unwrap();
        assert!(report.is_ok(), "{threads} threads: {:?}", report.problems);
    }
}

/// A crash at any write leaves all rows of the ingest or none, and everything written before. An operation
/// must not be lost to an ingest that it did not overlap, nor the other way round.
#[test]
fn i4_a_crash_at_any_write_leaves_all_rows_or_none_and_all_older_ones() {
    let fill = |fs: &SimFs| -> Result<Db> {
        let db = tiny_on(fs).open(STORE)?;
        for (key, value) in rows((0..400).step_by(2), "before") {
            db.put(key, value)?;
        }
        db.flush()?;
        db.put("in memory", "")?;
        Ok(db)
    };
    let (mut none, mut all) = (0, 0);
    // Compactions write at any time, too, so the number of writes is not known before.
    for stop in 0.. {
        let fs = SimFs::new();
        let db = fill(&fs).unwrap();
        fs.fail(Fault::stop(stop));
        let acknowledged = db.ingest(ok(rows(100..300, "ingested"))).is_ok();
        for (seed, crash) in (0..).zip([Crash::Kill, Crash::Power, Crash::PowerOrdered]) {
            let db = tiny_on(&fs.crash(crash, stop * 3 + seed)).open(STORE).unwrap();
            let found = contents(&db);
            let ingested = found.values().filter(|value| *value == b"ingested").count();
            let in_memory = usize::from(found.contains_key(&b"in memory"[..]));
            let what = format!("stopped after {stop} writes, {crash:?}: {} rows", found.len());
            match ingested {
                200 => {
                    assert_eq!(
                        (found.len(), in_memory),
                        (301, 1),
                        "what was written before is there, too; {what}"
                    );
                    all += 1;
                }
                _ => {
                    assert_eq!((ingested, found.len(), acknowledged), (0, 200 + in_memory, false), "{what}");
                    none += 1;
                }
            }
        }
        if acknowledged && all > 3 {
            break;
        }
    }
    assert!(none > 10, "{none}");
}

/// The last edit of the manifest is lost, as if the disk had never written it.
#[test]
fn i4_a_manifest_that_has_lost_the_rows_is_an_error() {
    let manifest = std::path::Path::new(STORE).join("MANIFEST");
    for later_writes in [0, 3] {
        for written in ["in memory", "flushed", "between the rows"] {
            let fs = SimFs::new();
            let db = tiny_on(&fs).open(STORE).unwrap();
            db.put("x", "1").unwrap();
            if written == "flushed" {
                db.flush().unwrap();
            }
            // The manifest before the edit that names the rows.
            let before = std::cell::RefCell::new(fs.read(&manifest).unwrap());
            let (writer, disk) = (db.clone(), fs.clone());
            let new = rows(0..50, "ingested").into_iter().map(|row| {
                if written == "between the rows" {
                    writer.put("y", "2")?;
                    writer.flush()?;
                    *before.borrow_mut() = disk.read(&manifest).unwrap();
                }
                Ok(row)
            });
            db.ingest(new).unwrap();
            let with_rows = fs.read(&manifest).unwrap();
            (0..later_writes).for_each(|n| db.put(format!("later {n}"), "value").unwrap());
            let count = contents(&db).len();
            // Closed: a repair would have to call a segment lost that a compaction had just begun.
            drop((db, writer));
            let disk = fs.crash(Crash::Kill, 1);
            assert!(with_rows.len() > before.borrow().len());
            disk.write(&manifest, before.into_inner());
            let error = tiny_on(&disk).open(STORE).map(|_| ()).unwrap_err();
            assert!(matches!(error, Error::Corruption { .. }), "{written}, {later_writes} writes: {error}");
            let report = tiny_on(&disk).repair(STORE).unwrap();
            assert!(report.lost.is_empty(), "{written}: {report:?}");
            assert_eq!(contents(&tiny_on(&disk).open(STORE).unwrap()).len(), count, "{written}: repaired");
        }
    }
}

/// Whichever operation of an ingest fails, the store has all its rows or none.
#[test]
fn i5_each_failed_operation_of_an_ingest_leaves_all_rows_or_none() {
    for kind in [OpKind::Create, OpKind::Append, OpKind::Sync, OpKind::SyncDir, OpKind::Open, OpKind::Rename]
    {
        let mut failures = 0;
        for nth in 0..60 {
            let fs = SimFs::new();
            let db = tiny_on(&fs).open(STORE).unwrap();
            let mut expected: Contents = rows(0..100, "before").into_iter().collect();
            expected.iter().for_each(|(key, value)| db.put(key, value).unwrap());
            fs.fail(Fault::once(kind, nth));
            let result = db.ingest_unsorted(ok(rows((50..300).rev(), "ingested")));
            if fs.faults_left() > 0 {
                break; // No such operation.
            }
            failures += u64::from(result.is_err());
            let with_rows = {
                let mut with_rows = expected.clone();
                with_rows.extend(rows(50..300, "ingested"));
                with_rows
            };
            if result.is_ok() {
                expected = with_rows.clone();
            }
            assert_eq!(contents(&db), expected, "{kind:?} {nth}: {result:?}");
            drop(db);
            let found = contents(&tiny_on(&fs.crash(Crash::Kill, nth)).open(STORE).unwrap());
            assert!(
                found == expected || found == with_rows,
                "{kind:?} {nth}: {result:?}, {} rows",
                found.len()
            );
        }
        assert!(failures > 0 || kind == OpKind::Rename, "{kind:?} never failed");
    }
}
