//! I3: retuning filters never rewrites data.

use crate::support::{assert_holds, contents, fast_dir, fingerprints, tiny};
use sidebloom::{Db, Error, FilterPolicy};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

fn filled(dir: &std::path::Path) -> Db {
    let db = tiny().memtable_bytes(64 << 10).segment_bytes(32 << 10).open(dir).unwrap();
    for i in 0..5000u32 {
        db.put(format!("key{:05}", i * 7919 % 5000), [i as u8; 30]).unwrap();
    }
    (0..5000).step_by(11).for_each(|i| db.delete(format!("key{i:05}")).unwrap());
    db.flush().unwrap();
    db.wait_for_compaction().unwrap();
    db
}

fn bits_per_key(db: &Db) -> f64 {
    let levels = db.stats().levels;
    let (bytes, keys) = levels.iter().fold((0, 0), |sum, l| (sum.0 + l.filter_bytes, sum.1 + l.keys));
    8.0 * bytes as f64 / keys as f64
}

/// New filters leave every segment unchanged, and take the given space.
#[test]
fn i3_new_filters_leave_segments_as_they_are_and_take_the_given_space() {
    let dir = fast_dir();
    let db = filled(dir.path());
    let (expected, segments) = (contents(&db), fingerprints(dir.path(), ".segment"));
    let written = db.stats();
    let mut expected_fpr = f64::INFINITY;
    for bits in [3.0, 6.0, 12.0, 24.0] {
        let sidecars = fingerprints(dir.path(), ".filter");
        let report = db.rebuild_filters(FilterPolicy::blocked_bloom(bits)).unwrap();
        assert_eq!((report.segments as usize, report.kept), (segments.len(), 0));
        assert_eq!(report.keys, db.stats().levels.iter().map(|l| l.keys).sum::<u64>());
        assert_eq!(fingerprints(dir.path(), ".segment"), segments, "at {bits} bits a key");
        let renewed = fingerprints(dir.path(), ".filter");
        assert!(
            sidecars.iter().all(|(path, old)| renewed[path].inode != old.inode),
            "not overwritten in place"
        );

        let found = bits_per_key(&db);
        assert!((bits..bits * 1.15 + 0.5).contains(&found), "{found} bits a key instead of {bits}");
        let fpr = db.stats().expected_false_positives();
        assert!(fpr < expected_fpr, "{fpr} at {bits} bits a key, {expected_fpr} with fewer");
        expected_fpr = fpr;
        assert_holds(&db, &expected);
        assert!(db.verify().unwrap().is_ok());

        // Filters that already fit are kept.
        let again = db.rebuild_filters(FilterPolicy::blocked_bloom(bits)).unwrap();
        assert_eq!((again.segments, again.kept as usize), (0, segments.len()));
        assert_eq!(fingerprints(dir.path(), ".filter"), renewed);
    }
    for policy in
        [FilterPolicy::bits_per_key(9.0), FilterPolicy::target_fpr(0.01), FilterPolicy::memory_budget(9000)]
    {
        db.rebuild_filters(policy).unwrap();
        assert_eq!(fingerprints(dir.path(), ".segment"), segments, "{policy:?}");
        assert_holds(&db, &expected);
        let report = db.verify().unwrap();
        assert!(report.is_ok() && report.filters as usize == segments.len(), "{policy:?}: {report:?}");
    }
    assert_holds(&db, &expected);
    db.rebuild_filters(FilterPolicy::blocked_bloom(24.0)).unwrap();
    let now = db.stats();
    assert_eq!(
        (now.flush_bytes, now.compaction_bytes, now.log_bytes),
        (written.flush_bytes, written.compaction_bytes, written.log_bytes)
    );

    // The policy also applies to later segments.
    db.put(b"later", b"").unwrap();
    db.compact().unwrap();
    assert!(bits_per_key(&db) >= 24.0);
}

#[test]
fn i3_readers_see_no_wrong_answer_while_filters_are_rebuilt() {
    let dir = fast_dir();
    let db = filled(dir.path());
    let expected = contents(&db);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for reader in 0..2 {
            let (db, expected, done) = (&db, &expected, &done);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    for i in (reader..5000).step_by(7) {
                        let key = format!("key{i:05}");
                        let value = db.get(&key).unwrap();
                        assert_eq!(
                            value.as_deref(),
                            expected.get(key.as_bytes()).map(Vec::as_slice),
                            "{key}"
                        );
                        assert!(!db.contains_key(format!("{key}?")).unwrap());
                    }
                }
            });
        }
        for bits in (0..20).map(|i| [2.0, 16.0, 8.0, 5.0][i % 4]) {
            db.rebuild_filters(FilterPolicy::bits_per_key(bits)).unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn i3_filters_are_rebuilt_beside_writes_and_compactions() {
    let dir = fast_dir();
    let db = filled(dir.path());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            (0..4000u32).for_each(|i| db.put(format!("key{:05}", i * 13 % 6000), i.to_le_bytes()).unwrap());
        });
        for bits in [4.0, 14.0, 9.0] {
            db.rebuild_filters(FilterPolicy::bits_per_key(bits)).unwrap();
        }
    });
    db.flush().unwrap();
    db.wait_for_compaction().unwrap();
    assert_holds(&db, &contents(&db));
    let report = db.verify().unwrap();
    assert!(report.is_ok() && report.unusable_filters.is_empty(), "{report:?}");
}

/// After a rebuild was stopped, every answer is right, and the next rebuild continues where it stopped.
#[test]
fn i3_a_stopped_rebuild_answers_right_and_goes_on_where_it_stopped() {
    let dir = fast_dir();
    let db = filled(dir.path());
    let expected = contents(&db);
    let policy = FilterPolicy::blocked_bloom(7.0);
    let stop_after_two = |so_far: &sidebloom::RebuildReport| match so_far.segments {
        2 => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    let stopped = db.rebuild_filters_with(policy, stop_after_two).unwrap();
    assert_eq!(stopped.segments, 2);
    assert_holds(&db, &expected);
    let rest = db.rebuild_filters(policy).unwrap();
    assert_eq!((rest.kept, rest.segments), (2, stopped.total - 2));
    assert_holds(&db, &expected);
}

/// A policy that is out of range or without filters is refused, and nothing changes.
#[test]
fn i3_a_policy_out_of_range_or_without_filters_is_refused() {
    let dir = fast_dir();
    let db = filled(dir.path());
    let before = fingerprints(dir.path(), ".filter");
    for policy in [0.0, 1.9, 64.1, f64::NAN, f64::INFINITY].map(FilterPolicy::bits_per_key) {
        assert!(matches!(db.rebuild_filters(policy), Err(Error::InvalidArgument(_))), "{policy:?}");
    }
    assert!(matches!(db.rebuild_filters(FilterPolicy::OFF), Err(Error::InvalidArgument(_))));
    assert_eq!(fingerprints(dir.path(), ".filter"), before);
    db.put(b"still", b"writable").unwrap();
}

#[test]
fn each_level_counts_what_its_own_filters_answered() {
    let dir = fast_dir();
    let db = filled(dir.path());
    db.put("key00000", "in level 0").unwrap();
    db.put("key04999", "in level 0").unwrap();
    db.flush().unwrap();
    db.rebuild_filters(FilterPolicy::blocked_bloom(2.0)).unwrap();
    let before = db.stats();
    for i in 0..4999 {
        assert!(!db.contains_key(format!("key{i:05}, not there")).unwrap());
    }
    let after = db.stats();
    let asked = after.levels.iter().zip(&before.levels).map(|(now, then)| {
        let probes = now.filter_probes - then.filter_probes;
        let negatives = now.filter_negatives - then.filter_negatives;
        let wrong = now.filter_false_positives - then.filter_false_positives;
        assert_eq!(probes, negatives + wrong, "no key was there: {now:?}");
        (probes, wrong)
    });
    let asked: Vec<_> = asked.filter(|(probes, _)| *probes > 0).collect();
    assert!(asked.len() >= 2 && asked.iter().any(|(_, wrong)| *wrong > 100), "{asked:?}");
    let probes: u64 = asked.iter().map(|(probes, _)| probes).sum();
    assert_eq!(probes, after.filter_probes - before.filter_probes);
}
