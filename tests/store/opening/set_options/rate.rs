//! The rate of compactions. Times are compared with lower bounds, and with a minute.

use crate::support::{Rng, eventually, fast_dir, promptly};
use sidebloom::{Compression, Db, OptionChanges, Options};
use std::path::Path;
use std::time::{Duration, Instant};

/// The least: 8 MB take two minutes.
const SLOWEST: u64 = 64 << 10;

fn options() -> Options {
    Options::new().compression(Compression::None).memtable_bytes(16 << 20).segment_bytes(1 << 20)
}

fn limit(bytes_per_second: u64) -> OptionChanges {
    OptionChanges::new().compaction_bytes_per_second(bytes_per_second)
}

/// Writes about these bytes over the whole range of keys, and flushes them.
fn add_run(db: &Db, bytes: usize, rng: &mut Rng) {
    for _ in 0..bytes / 1000 {
        let value: Vec<u8> = (0..125).flat_map(|_| rng.next().to_le_bytes()).collect();
        db.put(rng.next().to_be_bytes(), value).unwrap();
    }
    db.flush().unwrap();
}

/// A store with two runs of 2 MB in level 0, too few for a compaction by itself.
fn two_runs(dir: &Path, options: Options) -> Db {
    let (db, mut rng) = (options.open(dir).unwrap(), Rng::new(1));
    (0..2).for_each(|_| add_run(&db, 2_000_000, &mut rng));
    assert_eq!(db.stats().compactions, 0);
    db
}

#[test]
fn a_compaction_takes_at_least_its_bytes_divided_by_the_rate() {
    for from_start in [true, false] {
        let dir = fast_dir();
        let rate = 4 << 20;
        let db = if from_start {
            two_runs(dir.path(), options().compaction_bytes_per_second(rate))
        } else {
            let db = two_runs(dir.path(), options());
            db.set_options(limit(rate)).unwrap();
            db
        };
        let (began, before) = (Instant::now(), db.stats());
        db.compact().unwrap();
        let (took, after) = (began.elapsed().as_secs_f64(), db.stats());
        let written = after.compaction_bytes - before.compaction_bytes;
        let read = after.compaction_read_bytes - before.compaction_read_bytes;
        assert!(written > 3_900_000 && read > 3_900_000, "{written} and {read} bytes");
        // The indexes that it reads do not count.
        let bytes = (written + read / 100 * 97) as f64;
        let least = (bytes - rate as f64 / 10.0) / rate as f64;
        assert!(took >= least, "{took} s instead of {least} s");
        let waited = after.compaction_throttled_micros - before.compaction_throttled_micros;
        assert!(waited > 500_000 && (waited as f64) < took * 1e6, "{waited} µs of {took} s");
        assert_eq!(after.compaction_bytes_per_second, rate);
    }
}

#[test]
fn raising_the_rate_or_turning_it_off_frees_a_waiting_compaction() {
    for raised in [1 << 30, 0] {
        let dir = fast_dir();
        let db = two_runs(dir.path(), options());
        db.set_options(limit(SLOWEST)).unwrap();
        let compacting = db.clone();
        let compaction = std::thread::spawn(move || compacting.compact());
        eventually("it runs", || db.stats().compactions_running == 1);
        std::thread::sleep(Duration::from_millis(500));
        assert!(!compaction.is_finished());
        let before = db.iter().count().unwrap();
        db.set_options(limit(raised)).unwrap();
        promptly("the compaction ends", || compaction.join()).unwrap().unwrap();
        assert_eq!(db.iter().count().unwrap(), before);
    }
}

#[test]
fn closing_does_not_wait_for_the_rate() {
    let dir = fast_dir();
    let db = two_runs(dir.path(), options().compaction_bytes_per_second(SLOWEST));
    (0..2).for_each(|seed| add_run(&db, 2_000_000, &mut Rng::new(seed)));
    eventually("a background thread compacts", || db.stats().compactions_running == 1);
    std::thread::sleep(Duration::from_millis(300));
    let rows = db.iter().count().unwrap();
    promptly("it closes", move || db.close()).unwrap();
    let db = options().open(dir.path()).unwrap();
    assert_eq!(db.iter().count().unwrap(), rows);
}

#[test]
fn flushes_ingests_and_rebuilt_filters_are_not_limited() {
    let dir = fast_dir();
    let db = two_runs(dir.path(), options().compaction_bytes_per_second(SLOWEST));
    promptly("all that", move || {
        add_run(&db, 8_000_000, &mut Rng::new(3));
        db.ingest((0..8000u32).map(|n| Ok((format!("ingested {n:05}"), vec![1; 1000])))).unwrap();
        db.rebuild_filters(sidebloom::FilterPolicy::bits_per_key(14.0)).unwrap();
        assert_eq!(db.stats().compaction_throttled_micros, 0);
    });
}

/// The limit on writers at 20 and 36 segments would otherwise be a limit by the rate.
#[test]
fn the_rate_does_not_hold_while_level_0_slows_writers_down() {
    let dir = fast_dir();
    let db = options().compaction_bytes_per_second(SLOWEST).open(dir.path()).unwrap();
    promptly("writing", move || {
        let mut rng = Rng::new(4);
        (0..60).for_each(|_| add_run(&db, 400_000, &mut rng));
        assert!(db.stats().compactions > 0);
        db.close()
    })
    .unwrap();
}
