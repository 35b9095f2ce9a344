//! Read errors in compactions.

use super::*;
use sidebloom::IoOp;

/// A transient read error of a compaction does not stop writes, and loses nothing.
#[test]
fn a_passing_read_error_of_a_compaction_stops_no_write_and_loses_nothing() {
    for after in (0..12).step_by(sized(4, 1)) {
        let fs = SimFs::new();
        let db = options(&fs).open(STORE).unwrap();
        let mut expected = fill_deep(&db, 2);
        db.put(b"a", b"1").unwrap();
        db.flush().unwrap();
        fs.fail(Fault::once(OpKind::Read, after * 3));
        let outcome = db.compact();
        fs.heal();
        if let Err(error) = outcome {
            assert!(matches!(error, Error::Io { op: IoOp::Read, .. }), "{error}");
        }
        expected.insert(b"a".to_vec(), b"1".to_vec());
        (0..50).for_each(|i| {
            db.put(numbered(i), b"written after it").unwrap();
            expected.insert(numbered(i), b"written after it".to_vec());
            db.flush().unwrap();
        });
        assert_eq!(contents(&db), expected);
        db.compact().unwrap();
        assert_eq!(contents(&db), expected);
        drop(db);
        assert_eq!(contents(&options(&fs).open(STORE).unwrap()), expected);
    }
}

/// A read error in a segment that has since been compacted away does no harm.
#[test]
fn a_read_error_of_a_segment_that_was_compacted_away_concerns_nobody() {
    let mut struck = 0;
    for operations in 0..4 {
        let fs = SimFs::new();
        let db = options(&fs).memtable_bytes(1 << 20).segment_bytes(1 << 20).open(STORE).unwrap();
        for value in [b"old", b"new"] {
            (0..200).for_each(|i| db.put(numbered(i), value).unwrap());
            db.flush().unwrap();
        }
        // The compaction has listed both segments, and stops before or within the first one.
        fs.meter("rebuild", operations);
        let (rebuilding, started) = (db.clone(), Arc::new(AtomicBool::new(false)));
        let start = Arc::clone(&started);
        let rebuild = Builder::new().name("rebuild".into()).spawn(move || {
            rebuilding.rebuild_filters_with(FilterPolicy::bits_per_key(14.0), |_| {
                start.store(true, Ordering::Release);
                ControlFlow::Continue(())
            })
        });
        eventually("the rebuild has begun", || started.load(Ordering::Acquire));
        db.compact().unwrap();
        db.wait_for_compaction().unwrap();
        fs.fail(Fault::once(OpKind::Read, 0));
        fs.meter("nobody", 0);
        let report = rebuild.unwrap().join().unwrap();
        struck += 1 - fs.faults_left();
        assert!(report.is_ok(), "stopped after {operations} operations: {report:?}");
        fs.heal();
        assert_eq!(db.stats().segments_quarantined, 0);
        assert_eq!(db.iter().count().unwrap(), 200);
        assert!(db.verify().unwrap().is_ok());
    }
    assert!(struck > 2, "{struck}");
}
