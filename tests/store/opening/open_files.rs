//! Descriptors: a store with any number of segments opens, reads, flushes and compacts with few of them.

use crate::support::{Rng, assert_holds, fast_dir, files_with, sized, tiny};
use sidebloom::{Db, FilterPolicy, Options, Result};
use std::path::Path;

const ROWS: u64 = 6000;
const BUDGET: usize = 8;

/// Row number `n`. Its value does not compress.
fn row(n: u64) -> (Vec<u8>, Vec<u8>) {
    let mut rng = Rng::new(n);
    (format!("key{n:06}").into_bytes(), (0..100).flat_map(|_| rng.next().to_le_bytes()).collect())
}

/// Fills a store with [`ROWS`] rows in more than 1,000 segments.
fn fill(path: &Path) {
    let db = tiny().open(path).unwrap();
    db.ingest((0..ROWS).map(|n| Result::Ok(row(n)))).unwrap();
    drop(db);
    let segments = files_with(path, ".segment").len();
    assert!(segments >= 1000, "{segments} segments");
}

/// This process's open descriptors of the store's segments.
fn open_segments(path: &Path) -> usize {
    let links = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let targets = links.filter_map(|link| std::fs::read_link(link.path()).ok());
    targets.filter(|at| at.starts_with(path) && at.to_string_lossy().contains(".segment")).count()
}

fn open(path: &Path, options: Options) -> Db {
    options.max_open_files(BUDGET).open(path).unwrap()
}

/// A store of a thousand segments keeps no more files open than allowed.
#[test]
fn i12_a_store_of_a_thousand_segments_opens_as_few_files_as_it_is_told() {
    let dir = fast_dir();
    fill(dir.path());
    // Without filters, the background opens no segments, so only this thread's descriptors count.
    let db = open(dir.path(), tiny().read_only(true).filter_policy(FilterPolicy::OFF));
    for n in (0..ROWS).rev().step_by(7) {
        let (key, value) = row(n);
        assert_eq!(db.get(&key).unwrap().as_deref(), Some(value.as_slice()));
        assert!(open_segments(dir.path()) <= BUDGET + 1, "{} at row {n}", open_segments(dir.path()));
    }
    assert_eq!(db.stats().segments_open, BUDGET as u64);
    let opens = db.stats().segment_opens;
    (0..100).for_each(|_| assert!(db.contains_key(row(3).0).unwrap()));
    assert!(db.stats().segment_opens <= opens + 1, "an open segment is not opened again for each read");

    let mut rows = db.iter();
    for n in 0..ROWS {
        let (key, value) = rows.next().unwrap().unwrap();
        assert_eq!((key, value.to_vec()), row(n));
        assert!(open_segments(dir.path()) <= BUDGET + 4, "{} at row {n}", open_segments(dir.path()));
    }
    assert!(db.verify().unwrap().is_ok());
}

#[test]
fn readers_in_many_threads_share_a_few_files() {
    let dir = fast_dir();
    fill(dir.path());
    let db = open(dir.path(), tiny());
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let db = db.clone();
            scope.spawn(move || {
                let mut rng = Rng::new(thread);
                for _ in 0..sized(600, 2000) {
                    let (key, value) = row(rng.below(ROWS));
                    assert_eq!(db.get(&key).unwrap().as_deref(), Some(value.as_slice()));
                }
            });
        }
        scope.spawn(|| {
            for n in (0..ROWS).step_by(sized(24, 3)) {
                db.put(row(n).0, row(n).1).unwrap();
            }
            db.flush().unwrap();
        });
    });
    db.wait_for_compaction().unwrap();
    assert!(open_segments(dir.path()) <= BUDGET, "{}", open_segments(dir.path()));
    assert!(db.stats().segments_open <= BUDGET as u64);
    assert_holds(&db, &(0..ROWS).map(row).collect());
    assert!(db.verify().unwrap().is_ok());
}

/// A missing segment is refused at opening, and a truncated one at its first read.
#[test]
fn a_missing_segment_is_refused_at_opening_and_a_cut_one_when_read() {
    let dir = fast_dir();
    fill(dir.path());
    let segment = files_with(dir.path(), ".segment").pop().unwrap();
    let bytes = std::fs::read(&segment).unwrap();
    std::fs::write(&segment, &bytes[..bytes.len() - 1]).unwrap();
    let db = tiny().read_only(true).open(dir.path()).unwrap();
    let rows: Vec<_> = (0..ROWS).map(row).collect();
    let gets: Vec<_> = rows.iter().map(|(key, _)| db.get(key)).collect();
    let is_right = |(got, (_, value)): (&sidebloom::Result<Option<_>>, &(_, Vec<u8>))| match got {
        Ok(got) => got.as_deref() == Some(value.as_slice()),
        Err(cut) => {
            matches!(cut, sidebloom::Error::Corruption { .. })
                && cut.to_string().contains(segment.to_str().unwrap())
        }
    };
    assert!(gets.iter().zip(&rows).all(is_right), "the error names the segment, and other rows are read");
    assert!(gets.iter().any(Result::is_err) && gets.iter().any(Result::is_ok));
    let problems = db.verify().unwrap().problems;
    assert!(problems.iter().any(|p| p.to_string().contains("bytes, but the manifest says")), "{problems:?}");
    drop(db);
    std::fs::remove_file(&segment).unwrap();
    let missing = tiny().open(dir.path()).map(|_| ()).unwrap_err().to_string();
    assert!(missing.contains(segment.to_str().unwrap()) && missing.contains("missing"), "{missing}");
    std::fs::write(&segment, &bytes).unwrap();
    let db = tiny().read_only(true).filter_policy(FilterPolicy::OFF).open(dir.path()).unwrap();
    assert_eq!(open_segments(dir.path()), 0, "opening a store opens no segment");
    assert!(db.get(row(0).0).unwrap().is_some());
    assert_eq!(open_segments(dir.path()), 1);
}
