//! `Db::ingest`: sorted rows become segments all at once, or not at all.

use crate::support::{Crash, Errno, Fault, OpKind, STORE, SimFs, eventually, promptly, tiny_on};
use sidebloom::filter::Verdict;
use sidebloom::{Batch, Db, Durability, Error, IoOp, MAX_KEY_BYTES, Options, Result};

const ROWS: u32 = 3000;

fn row(n: u32) -> (Vec<u8>, Vec<u8>) {
    (format!("key {n:06}").into_bytes(), n.to_be_bytes().to_vec())
}

fn rows(to: u32) -> impl Iterator<Item = Result<(Vec<u8>, Vec<u8>)>> {
    (0..to).map(row).map(Ok)
}

fn is_empty(db: &Db) -> bool {
    db.iter().next().is_none()
}

#[test]
fn i9_what_is_ingested_is_found_and_later_writes_are_newer() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Options::new().segment_bytes(4 << 10).open(dir.path().join("db")).unwrap();
    let db = open();
    db.ingest(rows(ROWS)).unwrap();
    assert!(db.stats().levels.iter().map(|level| level.segments).sum::<usize>() > 3);
    assert_eq!(db.stats().memtable_bytes, 0, "past the log and the memtable");
    assert!(db.iter().map(Result::unwrap).map(|(key, value)| (key, value.to_vec())).eq((0..ROWS).map(row)));
    db.put(row(7).0, "newer").unwrap();
    db.delete(row(8).0).unwrap();
    assert_eq!((db.may_contain(row(7).0), db.may_contain(row(8).0)), (Verdict::Maybe, Verdict::Absent));
    for compacted in [false, true] {
        let check = |db: &Db| {
            db.warm().unwrap();
            assert_eq!(db.get(row(7).0).unwrap().unwrap(), b"newer", "compacted: {compacted}");
            assert!(db.get(row(8).0).unwrap().is_none());
            assert_eq!(*db.get(row(9).0).unwrap().unwrap(), row(9).1);
            assert_eq!(db.iter().count().unwrap(), ROWS as u64 - 1);
            assert!(db.verify().unwrap().problems.is_empty());
            let absent = (0..2000).filter(|n| db.may_contain(format!("key {n:06}x")) == Verdict::Absent);
            assert!(absent.count() > 1950, "the filters answer");
        };
        check(&db);
        if compacted {
            drop(db);
            return check(&open());
        }
        db.compact().unwrap();
    }
}

#[test]
fn rows_that_cannot_be_taken_leave_the_store_as_it_was() {
    let fs = SimFs::new();
    let db = tiny_on(&fs).open(STORE).unwrap();
    let files = fs.files();
    let broken = || Err(Error::InvalidArgument("the reader broke".into()));
    let long = vec![b'z'; MAX_KEY_BYTES + 1];
    let out_of_order = rows(ROWS).chain([Ok(row(5))]);
    let twice = rows(ROWS).chain([Ok(row(ROWS - 1))]);
    let failing = rows(ROWS).chain([broken()]);
    let too_long = rows(ROWS).chain([Ok((long, vec![]))]);
    type IsExpected = fn(&Error) -> bool;
    let is_out_of_order: IsExpected = |error| matches!(error, Error::KeyOutOfOrder { .. });
    let bad: [(Box<dyn Iterator<Item = _>>, IsExpected); 4] = [
        (Box::new(out_of_order), is_out_of_order),
        (Box::new(twice), is_out_of_order),
        (Box::new(failing), |error| matches!(error, Error::InvalidArgument(_))),
        (Box::new(too_long), |error| matches!(error, Error::KeyTooLarge { .. })),
    ];
    for (rows, is_expected) in bad {
        let error = db.ingest(rows).unwrap_err();
        assert!(is_expected(&error), "{error}");
        assert!(is_empty(&db));
        assert_eq!(fs.files(), files, "no segment is left");
    }
    // The order is also checked between two segments, where the segment's writer has no previous key.
    let three_segments = 1200;
    {
        let other = tiny_on(&SimFs::new()).open(STORE).unwrap();
        other.ingest(rows(three_segments)).unwrap();
        assert!(other.stats().levels.iter().map(|level| level.segments).sum::<usize>() >= 3);
    }
    for from in 1..three_segments {
        let error = db.ingest((0..from).map(row).chain([row(from - 1)]).map(Ok)).unwrap_err();
        assert!(error.to_string().contains("keys must increase"), "{error}");
    }
    db.ingest(std::iter::empty::<Result<(&[u8], &[u8])>>()).unwrap();
    db.ingest(rows(ROWS)).unwrap();
    assert_eq!(db.iter().count().unwrap(), ROWS as u64);
}

#[test]
fn i4_a_crash_at_any_write_leaves_all_rows_or_none() {
    let ingest = |fs: &SimFs| -> Result<()> { tiny_on(fs).open(STORE)?.ingest(rows(300)) };
    let undisturbed = SimFs::new();
    ingest(&undisturbed).unwrap();
    let (mut none, mut all) = (0, 0);
    for stop in 0..=undisturbed.writes() {
        let fs = SimFs::new();
        fs.fail(Fault::stop(stop));
        let acknowledged = ingest(&fs).is_ok();
        for (seed, crash) in (0..).zip([Crash::Kill, Crash::Power, Crash::PowerOrdered]) {
            let db = tiny_on(&fs.crash(crash, stop * 3 + seed)).open(STORE).unwrap();
            match db.iter().count().unwrap() {
                300 => all += 1,
                found => {
                    assert_eq!((found, acknowledged), (0, false), "stopped after {stop} writes, {crash:?}");
                    none += 1;
                }
            }
        }
    }
    assert!(none > 10 && all > 3, "{none} {all}");
}

#[test]
fn rows_that_use_the_store_while_they_come_do_not_deadlock() {
    let fs = SimFs::new();
    let db = tiny_on(&fs).open(STORE).unwrap();
    let reader = db.clone();
    let using = (0..ROWS).map(row).map(move |(key, value)| {
        assert_eq!(reader.get(&key)?, None, "visible before all of it is");
        assert!(is_empty(&reader));
        reader.sync()?;
        Ok((key, value))
    });
    let ingesting = db.clone();
    promptly("ingest", move || ingesting.ingest(using).unwrap());
    assert_eq!(db.iter().count().unwrap(), ROWS as u64);
}

/// The rows are in no log. If the manifest has lost them, the log that begins after them reveals it.
#[test]
fn i4_a_manifest_from_before_the_rows_is_an_error_and_not_an_empty_store() {
    let manifest = std::path::Path::new(STORE).join("MANIFEST");
    for (writes, closed) in [(0, true), (0, false), (3, true), (3, false)] {
        let fs = SimFs::new();
        let db = tiny_on(&fs).open(STORE).unwrap();
        let before = fs.read(&manifest).unwrap();
        db.ingest(rows(50)).unwrap();
        (0..writes).for_each(|n| db.put(format!("later {n}"), "value").unwrap());
        let after = if closed { None } else { Some(fs.crash(Crash::Kill, 1)) };
        drop(db);
        let after = after.unwrap_or_else(|| fs.crash(Crash::Kill, 1));
        assert_eq!(
            tiny_on(&after.crash(Crash::Kill, 2)).open(STORE).unwrap().iter().count().unwrap(),
            50 + writes
        );
        after.write(&manifest, before);
        for read_only in [true, false] {
            let error = tiny_on(&after).read_only(read_only).open(STORE).map(|_| ()).unwrap_err();
            assert!(matches!(error, Error::Corruption { .. }), "{writes} writes, closed {closed}: {error}");
        }
        let report = tiny_on(&after).repair(STORE).unwrap();
        assert!(report.lost.is_empty(), "{report:?}");
        assert_eq!(tiny_on(&after).open(STORE).unwrap().iter().count().unwrap(), 50 + writes, "repaired");
    }
}

#[test]
fn i5_an_ingest_that_waited_for_a_sync_that_fails_leaves_that_log_alone() {
    let fs = SimFs::new();
    let db = tiny_on(&fs).open(STORE).unwrap();
    let (writer, ingester, appends) = (db.clone(), db.clone(), fs.ops_of(OpKind::Append));
    fs.fail(Fault::once(OpKind::Sync, 0));
    let held = fs.hold(OpKind::Sync);
    let mut batch = Batch::new();
    batch.put("key", "value");
    let write = std::thread::spawn(move || writer.write_with(batch, Durability::Sync));
    eventually("the writer has the log", || fs.ops_of(OpKind::Append) > appends);
    let ingest = std::thread::spawn(move || ingester.ingest(rows(5)));
    std::thread::sleep(std::time::Duration::from_millis(100)); // By then it waits for the log.
    drop(held);
    assert!(matches!(write.join().unwrap(), Err(Error::Io { .. })));
    assert!(matches!(ingest.join().unwrap(), Err(Error::Poisoned { .. })));
    assert_eq!(fs.written_again(), [""; 0].map(std::path::PathBuf::from));
}

/// An ingest that fails to publish leaves no further log at each retry.
#[test]
fn i12_an_ingest_that_fails_to_publish_adds_no_log_at_each_retry() {
    let fs = SimFs::new();
    let db = tiny_on(&fs).open(STORE).unwrap();
    let manifest = std::path::Path::new(STORE).join("MANIFEST");
    let before = fs.read(&manifest).unwrap();
    for _ in 0..10 {
        fs.fail(Fault { only: Some("MANIFEST"), ..Fault::once(OpKind::Append, 0).with(Errno::NoSpace) });
        assert!(matches!(db.ingest(rows(50)), Err(Error::Io { op: IoOp::Write, .. })));
        assert!(is_empty(&db) && fs.faults_left() == 0);
    }
    let logs = || fs.files().iter().filter(|path| path.to_str().unwrap().ends_with(".wal")).count();
    assert_eq!(logs(), 2, "{:?}", fs.files());
    let syncs = fs.ops_of(OpKind::Sync);
    db.sync().unwrap();
    assert_eq!(fs.ops_of(OpKind::Sync) - syncs, 2, "the logs that are still open");

    db.ingest(rows(50)).unwrap();
    db.put("later", "value").unwrap();
    assert_eq!((db.iter().count().unwrap(), logs()), (51, 1));
    let after = fs.crash(Crash::Kill, 1);
    assert_eq!(tiny_on(&after.crash(Crash::Kill, 2)).open(STORE).unwrap().iter().count().unwrap(), 51);
    after.write(&manifest, before);
    let error = tiny_on(&after).open(STORE).map(|_| ()).unwrap_err();
    assert!(matches!(error, Error::Corruption { .. }), "the rows are missing: {error}");
}
