//! I12: a store maps at most as many filters as its options allow, and gives the same answers.

use crate::support::{Contents, Rng, assert_holds, eventually, fast_dir, files_with, sized, tiny};
use sidebloom::{Db, Options, Residency, Result};
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::mpsc;
use std::thread;

const ROWS: u64 = 4000;
const BUDGET: usize = 16;

/// Row number `n`. Every second one does not exist. The values do not compress.
fn row(n: u64) -> (Vec<u8>, Vec<u8>) {
    let mut rng = Rng::new(n);
    (format!("key{n:06}").into_bytes(), (0..100).flat_map(|_| rng.next().to_le_bytes()).collect())
}

fn rows() -> Contents {
    (0..ROWS).step_by(2).map(row).collect()
}

/// Fills a store with [`rows`] in hundreds of segments.
fn fill(path: &Path) {
    let db = tiny().open(path).unwrap();
    db.ingest(rows().into_iter().map(Result::Ok)).unwrap();
    drop(db);
    let segments = files_with(path, ".segment").len();
    assert!(segments >= 20 * BUDGET, "{segments} segments");
}

fn few() -> Options {
    tiny().max_mapped_filters(BUDGET)
}

/// The store's filters that this process maps. Not atomic: other threads map and unmap some.
fn mapped(path: &Path) -> usize {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().filter(|map| map.contains(path.to_str().unwrap()) && map.contains(".filter")).count()
}

/// Mapped filters whose file is gone.
fn deleted(path: &Path) -> usize {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().filter(|map| map.contains(path.to_str().unwrap()) && map.ends_with("(deleted)")).count()
}

fn segments(db: &Db) -> usize {
    db.stats().levels.iter().map(|level| level.segments).sum()
}

fn verified(db: &Db) -> usize {
    db.stats().levels.iter().map(|level| level.filters).sum()
}

/// Looks up missing keys, every second number of a range, and counts how many read a segment.
fn missing_that_read(db: &Db, numbers: Range<u64>) -> usize {
    let reads = |n: &u64| {
        let before = db.stats().block_reads;
        assert!(db.get(row(n | 1).0).unwrap().is_none());
        db.stats().block_reads > before
    };
    numbers.step_by(2).filter(reads).count()
}

/// Idle threads keep no file of a removed segment, nor of a closed store.
#[test]
fn idle_threads_keep_no_file_of_a_removed_segment_or_a_closed_store() {
    for residency in [Residency::Mapped, Residency::Pinned] {
        let dir = fast_dir();
        let db = tiny().residency(residency).open(dir.path()).unwrap();
        thread::scope(|threads| {
            let mut idle = Vec::new();
            for round in 0..8 {
                (0..400).for_each(|n| db.put(row(n * 2).0, round.to_string()).unwrap());
                db.flush().unwrap();
                let (db, (asked, has_asked)) = (db.clone(), mpsc::channel::<()>());
                let (end, ended) = mpsc::channel::<()>();
                threads.spawn(move || {
                    (0..400).for_each(|n| assert!(db.get(row(n * 2 + 1).0).unwrap().is_none()));
                    drop((db, asked));
                    _ = ended.recv();
                });
                has_asked.recv().unwrap_err();
                idle.push(end);
            }
            db.compact().unwrap();
            eventually("no map of a segment that is gone", || deleted(dir.path()) == 0);
            assert_eq!(residency == Residency::Mapped, mapped(dir.path()) > 0);
            drop(db);
            assert_eq!(mapped(dir.path()), 0, "{residency:?}: of a closed store");
        });
    }
}

#[test]
fn i12_a_store_of_hundreds_of_segments_maps_as_few_filters_as_it_is_told() {
    let dir = fast_dir();
    fill(dir.path());
    for read_only in [true, false] {
        let db = few().read_only(read_only).open(dir.path()).unwrap();
        assert!(mapped(dir.path()) <= BUDGET + 8, "{} after opening", mapped(dir.path()));
        db.warm().unwrap();
        assert_eq!(verified(&db), segments(&db), "those without a map are verified too");
        for n in (0..ROWS).rev() {
            assert_eq!(db.get(row(n).0).unwrap().is_some(), n % 2 == 0, "row {n}");
            if n % sized(8, 1) == 0 {
                assert!(mapped(dir.path()) <= BUDGET, "{} at row {n}", mapped(dir.path()));
            }
        }
        assert!(db.stats().filters_mapped <= BUDGET as u64);
        assert_eq!(db.stats().filters_unavailable, 0, "nothing is wrong with a filter that is not mapped");
        assert_eq!(verified(&db), segments(&db));
    }
}

#[test]
fn i12_filters_that_are_asked_are_mapped_and_those_that_are_not_make_room() {
    let dir = fast_dir();
    fill(dir.path());
    let db = few().read_only(true).open(dir.path()).unwrap();
    for from in (0..ROWS).step_by(600) {
        // A few segments of about five rows. One or two of 20 keys may be false positives.
        eventually("the filters of this part answer", || missing_that_read(&db, from..from + 40) <= 3);
    }
    assert!(mapped(dir.path()) <= BUDGET);
}

#[test]
fn i12_threads_that_read_all_over_a_store_share_a_few_maps() {
    let dir = fast_dir();
    fill(dir.path());
    let db = few().background_threads(4).open(dir.path()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let (db, path) = (db.clone(), dir.path());
            scope.spawn(move || {
                let mut rng = Rng::new(thread);
                for i in 0..3000 {
                    let n = rng.below(ROWS);
                    assert_eq!(db.get(row(n).0).unwrap().is_some(), n.is_multiple_of(2), "row {n}");
                    if i % 100 == 0 {
                        // Each of the other threads may have counted one that it does not get.
                        assert!(db.stats().filters_mapped <= BUDGET as u64 + 8, "at row {n}");
                        // A list of maps that others change meanwhile may be longer than it ever was.
                        eventually("few are mapped", || mapped(path) <= BUDGET + 8);
                    }
                }
            });
        }
        scope.spawn(|| {
            for n in (0..ROWS).step_by(6) {
                db.put(row(n).0, row(n).1).unwrap();
            }
            db.flush().unwrap();
            db.compact().unwrap();
        });
    });
    db.wait_for_compaction().unwrap();
    assert_holds(&db, &rows());
    eventually("few are mapped", || mapped(dir.path()) <= BUDGET);
    assert!(db.verify().unwrap().is_ok());
}

#[test]
fn i12_a_snapshot_keeps_its_maps_and_lets_the_others_go() {
    let dir = fast_dir();
    fill(dir.path());
    let db = few().open(dir.path()).unwrap();
    db.warm().unwrap(); // Then no other thread maps filters while they are counted.
    missing_that_read(&db, 0..100);
    let snapshot = db.snapshot();
    for n in 0..ROWS {
        let (here, there) = (db.get(row(n).0).unwrap(), snapshot.get(row(n).0).unwrap());
        assert_eq!((here.is_some(), there.is_some()), (n % 2 == 0, n % 2 == 0), "row {n}");
        assert!(mapped(dir.path()) <= BUDGET, "{} at row {n}", mapped(dir.path()));
    }
    drop(snapshot);
    eventually("the filters answer again", || missing_that_read(&db, 2000..2040) <= 3);
}

#[test]
fn i2_filters_that_go_bad_while_they_are_not_mapped_are_found_and_rebuilt() {
    let dir = fast_dir();
    fill(dir.path());
    let db = few().open(dir.path()).unwrap();
    db.warm().unwrap();
    let filters = files_with(dir.path(), ".filter");
    let is_mapped =
        |path: &Path| fs::read_to_string("/proc/self/maps").unwrap().contains(path.to_str().unwrap());
    let mut bad = 0;
    for (i, path) in filters.iter().enumerate().skip(filters.len() / 2).step_by(5) {
        if is_mapped(path) {
            continue;
        }
        let mut bytes = fs::read(path).unwrap();
        // Replaced rather than changed, because another thread may have it mapped: deleted, truncated,
        // damaged, or another segment's filter.
        fs::remove_file(path).unwrap();
        match i % 4 {
            0 => {}
            1 => fs::write(path, &bytes[..4160]).unwrap(),
            2 => {
                bytes[4100] ^= 1;
                fs::write(path, bytes).unwrap();
            }
            _ => {
                fs::copy(&filters[0], path).unwrap();
            }
        }
        bad += 1;
    }
    assert!(bad > 20, "{bad}");
    eventually("all of them were found", || {
        missing_that_read(&db, 0..ROWS);
        db.stats().filters_unavailable >= bad
    });
    eventually("all filters are sound", || verified(&db) == segments(&db));
    assert_eq!(db.stats().filters_unavailable, bad);
    assert_holds(&db, &rows());
    let report = db.verify().unwrap();
    assert!(report.is_ok() && report.unusable_filters.is_empty(), "{report:?}");
}

#[test]
fn pinned_filters_need_no_map() {
    let dir = fast_dir();
    fill(dir.path());
    let db = few().residency(Residency::Pinned).open(dir.path()).unwrap();
    db.warm().unwrap();
    assert!(missing_that_read(&db, 0..ROWS) < 100, "of 2,000");
    assert_eq!((mapped(dir.path()), db.stats().filters_mapped), (0, 0));
}
