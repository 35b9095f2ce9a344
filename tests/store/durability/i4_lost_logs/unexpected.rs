//! Logs that an opening does not expect: from a failed rotation, or of another version.

use super::*;

/// A log that a failed rotation began and could not remove does not stop the next opening.
#[test]
fn a_log_left_by_a_failed_rotation_does_not_stop_the_next_opening() {
    let no_space = |kind, after| Fault::once(kind, after).with(Errno::NoSpace);
    for fault in [no_space(OpKind::Append, 0), no_space(OpKind::Append, 0).short()] {
        let fs = SimFs::new();
        let db = options(&fs).open(STORE).unwrap();
        put(&db, key(0), b"v", Durability::Sync);
        fs.fail(fault);
        fs.fail(Fault::once(OpKind::Remove, 0));
        assert!(db.flush().is_err());
        assert_eq!((logs(&fs).len(), fs.faults_left()), (2, 0), "what the rotation began is there");
        put(&db, key(1), b"v", Durability::Sync);
        // The next rotation succeeds; the manifest records later syncs, but the flush has no space.
        fs.fail(Fault { forever: true, ..no_space(OpKind::Create, 1) });
        assert!(db.flush().is_err());
        put(&db, key(2), b"v", Durability::Sync);
        assert_eq!(logs(&fs).len(), 3);
        drop(db);
        fs.heal();
        for crash in [Crash::Kill, Crash::PowerOrdered, Crash::Power] {
            let fs = fs.crash(crash, 1);
            assert_eq!(logs(&fs).len(), 3, "{crash:?}");
            let checked = fs.crash(Crash::Kill, 0);
            assert_eq!(repair(&checked).logs, None, "nothing is wrong with the logs");
            assert_works(&fs, 0..3);
            assert_eq!(logs(&fs).len(), 1);
        }
        // The loss of a log with records that was truncated to nothing is still detected.
        let first = &logs(&fs)[0];
        for len in [0, 39] {
            let cut = with(&fs, first, &fs.read(first).unwrap()[..len]);
            assert!(options(&cut).open(STORE).is_err(), "cut to {len} bytes");
        }
    }
}

#[test]
fn a_log_of_another_version_is_named() {
    let (fs, log) = closed(1, b"v");
    let mut bytes = fs.read(&log).unwrap();
    bytes[8] ^= 3;
    let error = options(&with(&fs, &log, &bytes)).open(STORE).map(|_| ()).unwrap_err();
    assert!(matches!(error, Error::Corruption { .. }), "the checksum fails: {error}");
}

/// Operations between the manifest and the first log that no segment has are reported as lost. A segment
/// half-written at a kill could have held the lost log's operations.
#[test]
fn operations_that_no_log_and_no_segment_has_are_reported_as_lost() {
    let (fs, counts) = two_logs();
    fs.remove(&logs(&fs)[0]).unwrap();
    let segments =
        fs.files().into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "segment"));
    // A flush may have written it, but not yet published it.
    segments.for_each(|path| fs.remove(&path).unwrap());
    fs.write(Path::new(STORE).join("000999.segment"), Vec::new());
    let report = repair(&fs);
    assert_eq!(report.logs.unwrap().operations_lost, [1..=counts[0]]);
    assert!(report.lost.iter().any(|lost| lost.file.ends_with("MANIFEST")), "{:?}", report.lost);
    assert_works(&fs, counts[0]..counts[0] + counts[1]);
}

/// The manifest has lost its last edits, and one of the segments that they named is gone.
#[test]
fn a_missing_segment_that_only_lost_edits_named_is_reported() {
    let fs = SimFs::new();
    let db = options(&fs).open(STORE).unwrap();
    let segments =
        || fs.files().into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "segment"));
    put(&db, key(0), b"v", Durability::Sync);
    db.flush().unwrap();
    let manifest = Path::new(STORE).join("MANIFEST");
    let old = fs.read(&manifest).unwrap();
    put(&db, key(1), b"v", Durability::Sync);
    db.flush().unwrap();
    let before: Vec<_> = segments().collect();
    put(&db, key(2), b"v", Durability::Sync);
    db.flush().unwrap();
    put(&db, key(3), b"v", Durability::Sync);
    let newest = segments().find(|path| !before.contains(path)).unwrap();
    let fs = with(&fs, &manifest, &old);
    fs.remove(&newest).unwrap();
    let report = repair(&fs);
    assert!(report.lost.iter().any(|lost| lost.file.ends_with("MANIFEST")), "{report:?}");
    assert_works(&fs, [0, 1, 3]);
}
