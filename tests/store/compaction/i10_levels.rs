//! I10: levels below 0 are disjoint. A compaction owns the hull of its inputs' keys, and a store whose levels
//! overlap is not opened.

use crate::support::{STORE, SimFs, fast_dir, sized, tiny_on};
use sidebloom::{Db, Options};

const KEYS: u32 = 30_000;

fn put_all(db: &Db, first: char, range: impl Iterator<Item = u32>) {
    range.for_each(|i| db.put(format!("{first}{i:08}"), format!("value {i}")).unwrap());
    db.flush().unwrap();
}

/// How many of the keys exist, by point reads and by iteration.
fn count(db: &Db) -> (usize, usize) {
    let keys = (0..KEYS).flat_map(|i| [format!("a{i:08}"), format!("z{i:08}")]).chain(["m00000000".into()]);
    (keys.filter(|key| db.contains_key(key).unwrap()).count(), db.iter().map(Result::unwrap).count())
}

/// Keys do not vanish when a flush falls into the gap of a running compaction, with three threads or more. An
/// output of the compaction of `a…` and `z…` spans the gap between them, into which `m…` is flushed at the
/// same time.
#[test]
fn i10_keys_do_not_vanish_when_a_flush_falls_into_the_gap_of_a_compaction() {
    for &threads in sized(&[3, 8][..], &[2, 3, 4, 8]) {
        for _ in 0..sized(1, 3) {
            let dir = fast_dir();
            let path = dir.path().join("store");
            let options = Options::new().background_threads(threads);
            let db = options.clone().open(&path).unwrap();
            for round in 0..2 {
                put_all(&db, 'a', (round..KEYS).step_by(2));
                put_all(&db, 'z', (round..KEYS).step_by(2));
            }
            put_all(&db, 'm', 0..1);
            db.wait_for_compaction().unwrap();
            let all = 2 * KEYS as usize + 1;
            assert_eq!(count(&db), (all, all), "{threads} threads");
            assert!(db.verify().unwrap().is_ok());
            drop(db);
            assert_eq!(count(&options.open(&path).unwrap()), (all, all), "{threads} threads, reopened");
        }
    }
}

/// Many small flushes of keys with gaps, including deletions, against a model.
#[test]
fn i10_levels_stay_disjoint_under_many_threads_and_key_ranges_with_gaps() {
    for threads in [3, 5, 8] {
        let fs = SimFs::new();
        let db = tiny_on(&fs).background_threads(threads).open(STORE).unwrap();
        let mut rng = crate::support::Rng::new(threads as u64);
        let mut expected = crate::support::Contents::new();
        for flush in 0..150u64 {
            let area = rng.below(26) as u8 + b'a';
            for _ in 0..rng.below(40) {
                let key = format!("{}{:03}", char::from(area), rng.below(200)).into_bytes();
                if rng.percent(25) {
                    db.delete(&key).unwrap();
                    expected.remove(&key);
                } else {
                    let value = flush.to_be_bytes().repeat(1 + rng.below(8) as usize);
                    db.put(&key, &value).unwrap();
                    expected.insert(key, value);
                }
            }
            db.flush().unwrap();
        }
        crate::support::assert_holds(&db, &expected);
        db.wait_for_compaction().unwrap();
        crate::support::assert_holds(&db, &expected);
        assert!(db.verify().unwrap().is_ok());
    }
}
