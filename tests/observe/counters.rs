//! Counters of a store only rise, whoever reads them.

use crate::support::fast_dir;
use sidebloom::{Options, Stats};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// All counters: those of the store, and those of each level.
fn all(stats: &Stats) -> Vec<(String, u64)> {
    let of_store = stats.counters().map(|(name, count)| (name.to_owned(), count));
    let of_levels = stats.levels.iter().flat_map(|level| {
        let counts = [level.filter_probes, level.filter_negatives, level.filter_false_positives];
        ["probes", "negatives", "false positives"]
            .into_iter()
            .zip(counts)
            .map(move |(name, count)| (format!("{name} of level {}", level.level), count))
    });
    of_store.chain(of_levels).collect()
}

/// Missing keys are counted in a word per thread, which now and then moves to the counters of the levels:
/// somebody who polls must see neither a moment without these nor one with twice as many.
#[test]
fn counters_never_fall_while_threads_read_and_others_poll() {
    const READERS: usize = 3;
    let dir = fast_dir();
    let db = Options::new().open(dir.path().join("store")).unwrap();
    for run in 0..3 {
        (0..2000).for_each(|n| db.put(format!("key{n:06}{run}"), "value").unwrap());
        db.flush().unwrap();
    }
    let is_over = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        for reader in 0..READERS {
            let db = &db;
            scope.spawn(move || {
                let mut n = 0u64;
                while !is_over.load(Relaxed) {
                    let key =
                        format!("key{:06}{}", n % 2000, if n.is_multiple_of(8) { "0" } else { "absent" });
                    db.get(key).unwrap();
                    n += 1 + reader as u64;
                }
            });
        }
        let pollers: Vec<_> = (0..2)
            .map(|_| {
                let db = &db;
                scope.spawn(move || {
                    let mut before = all(&db.stats());
                    for _ in 0..20_000 {
                        let stats = db.stats();
                        let now = all(&stats);
                        let fell = before.iter().zip(&now).find(|((_, before), (_, now))| now < before);
                        assert!(fell.is_none(), "{fell:?}");
                        let [probes, negatives] = [stats.filter_probes, stats.filter_negatives];
                        assert!(negatives <= probes, "{negatives} of {probes}");
                        before = now;
                    }
                })
            })
            .collect();
        let polled: Vec<_> = pollers.into_iter().map(|poller| poller.join()).collect();
        is_over.store(true, Relaxed);
        polled.into_iter().for_each(|outcome| outcome.unwrap());
    });
    // Nothing is lost either, once all threads have ended.
    let before = db.stats().filter_probes;
    (0..1000).for_each(|n| drop(db.get(format!("key{n:06}gone")).unwrap()));
    assert!(db.stats().filter_probes >= before + 1000, "{before}, {}", db.stats().filter_probes);
}
