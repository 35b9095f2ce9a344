//! Long skips and counts over several runs and memtables equal a sorted map. They pass rows by the fronts of
//! their keys, and read the keys of neighbouring blocks in one where values are large.

use crate::support::fast_dir;
use fastrand::Rng;
use sidebloom::{Batch, Db, Options};
use std::collections::BTreeMap;
use std::path::Path;

const KEYS: u32 = 2500;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// Keys of one length or of several; within and beyond what a front decides; with zeros, which pad a front.
fn key(form: usize, n: u32) -> Vec<u8> {
    match form {
        0 => format!("k{n:07}").into_bytes(),
        1 => format!("a shared prefix {:07}", n / 2 * 10 + n % 2).into_bytes(),
        2 => format!("{:020}{n:020}", n / 700).into_bytes(),
        3 => [&(n / 4).to_be_bytes()[..], &vec![0; n as usize % 4]].concat(),
        _ => [vec![b'x'; 15 + n as usize / 1000], (n / 3).to_be_bytes().to_vec(), vec![0; n as usize % 3]]
            .concat(),
    }
}

/// Overlapping runs and a memtable, with two versions of many keys.
fn store(dir: &Path, form: usize, deletes: u32, rng: &mut Rng) -> (Db, Rows) {
    let options = Options::new().block_bytes(1024).segment_bytes(200 << 10);
    let (db, mut rows) = (options.open(dir).unwrap(), Rows::new());
    for run in 0..4 {
        let mut batch = Batch::new();
        for n in 0..KEYS {
            if run > 0 && rng.u32(0..3) > 0 {
                continue;
            }
            let key = key(form, n);
            // Tombstones in one stretch, so that other stretches have none.
            if run > 0 && n / 500 == run && rng.u32(0..100) < deletes {
                batch.delete(&key);
                rows.remove(&key);
            } else {
                let value = rng.u32(..).to_be_bytes().repeat([3, 100][usize::from(rng.u32(0..10) > 0)]);
                batch.put(&key, &value);
                rows.insert(key, value);
            }
        }
        db.write(batch).unwrap();
        match run {
            0 => db.compact().unwrap(),
            1 | 2 => db.flush().unwrap(),
            _ => {}
        }
    }
    (db, rows)
}

#[test]
fn long_skips_and_counts_equal_a_sorted_map() {
    for seed in 0..20 {
        let (dir, mut rng) = (fast_dir(), Rng::with_seed(seed));
        let (form, deletes) = (seed as usize % 5, [0, 30][seed as usize / 5 % 2]);
        let (db, rows) = store(dir.path(), form, deletes, &mut rng);
        let rows: Vec<_> = rows.into_iter().collect();
        for turn in 0..30 {
            let first = if turn % 3 == 0 { 0 } else { rng.usize(0..rows.len()) };
            let range = || db.range(rows[first].0.as_slice()..);
            assert_eq!(range().count().unwrap(), (rows.len() - first) as u64, "seed {seed}");
            let (mut walk, mut at) = (range(), first);
            loop {
                let longest = [2, 100, 1500][rng.usize(0..3)];
                let skipped = rng.usize(0..longest);
                at += skipped;
                let found = walk.nth(skipped).map(Result::unwrap);
                let found = found.as_ref().map(|(key, value)| (key.as_slice(), &**value));
                let expected = rows.get(at).map(|(key, value)| (key.as_slice(), value.as_slice()));
                assert_eq!(found, expected, "seed {seed}, row {at} from {first}");
                at += 1;
                if expected.is_none() {
                    break;
                }
            }
            let (mut keys, skipped) = (range().keys(), rng.usize(0..1000));
            let found: Vec<_> = keys.by_ref().skip(skipped).take(700).map(Result::unwrap).collect();
            let expected = rows.iter().skip(first + skipped).take(700).map(|(key, _)| key.clone());
            assert_eq!(found, expected.collect::<Vec<_>>(), "seed {seed}");
        }
    }
}

/// A walk that has skipped by keys alone still returns the rows of its own moment.
#[test]
fn a_skip_sees_the_moment_of_its_snapshot() {
    let (dir, mut rng) = (fast_dir(), Rng::with_seed(3));
    let (db, rows) = store(dir.path(), 0, 0, &mut rng);
    let snapshot = db.snapshot();
    let mut walk = snapshot.iter();
    for _ in 0..2 {
        let mut batch = Batch::new();
        (0..KEYS)
            .for_each(|n| if n % 2 == 0 { batch.delete(key(0, n)) } else { batch.put(key(0, n), "new") });
        db.write(batch).unwrap();
        db.flush().unwrap();
        assert_eq!(snapshot.iter().count().unwrap(), rows.len() as u64);
        let (key, value) = walk.nth(800).unwrap().unwrap();
        assert_eq!(rows.get(&key).map(Vec::as_slice), Some(&*value));
        assert_eq!(db.iter().skip(100).count() as u32, KEYS / 2 - 100);
    }
}
