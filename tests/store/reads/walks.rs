//! All ways to iterate agree: owned and lent rows and keys, row by row and in bulk, from both ends.

use crate::support::fast_dir;
use fastrand::Rng;
use sidebloom::{Batch, Compression, Db, Keys, Options, Range};
use std::collections::{BTreeMap, VecDeque};

const KEYS: u32 = 3000;

type Row = (Vec<u8>, Vec<u8>);

fn key(n: u32) -> Vec<u8> {
    format!("{}{n:06}", if n.is_multiple_of(97) { "a long prefix that few keys share " } else { "key" })
        .into_bytes()
}

fn write(
    db: &Db,
    model: &mut BTreeMap<Vec<u8>, Vec<u8>>,
    numbers: impl Iterator<Item = u32>,
    deletes: u32,
    rng: &mut Rng,
) {
    let mut batch = Batch::new();
    for n in numbers {
        let key = key(n);
        if rng.u32(0..100) < deletes {
            batch.delete(&key);
            model.remove(&key);
        } else {
            let value = rng.u32(..).to_be_bytes().repeat(rng.usize(0..20));
            batch.put(&key, &value);
            model.insert(key, value);
        }
    }
    db.write(batch).unwrap();
}

/// A store with blocks of a few rows, with one run of several segments up to several runs below a memtable,
/// and tombstones in all but the deepest.
fn store(dir: &std::path::Path, runs: u32, rng: &mut Rng) -> (Db, Vec<Row>) {
    let options = Options::new()
        .segment_bytes(16 << 10)
        .block_bytes(512)
        .block_cache_bytes([0, 20 << 10, 1 << 20][rng.usize(0..3)])
        .compression(Compression::None);
    let db = options.open(dir).unwrap();
    let mut model = BTreeMap::new();
    // Every other hundred keys are missing from the deepest run, so that other runs lead there.
    let deepest = (0..KEYS).filter(|n| runs == 1 || n / 100 % 2 == 0);
    write(&db, &mut model, deepest, 0, rng);
    db.compact().unwrap();
    for run in 1..runs {
        let upper: Vec<_> = (0..KEYS).filter(|_| rng.u32(0..2 * run) == 0).collect();
        write(&db, &mut model, upper.into_iter(), 10, rng);
        if run + 1 < runs {
            db.flush().unwrap();
        }
    }
    (db, model.into_iter().collect())
}

/// A range or its keys, walked by the methods under test.
enum Walk {
    Rows(Range),
    Keys(Keys),
}

/// Owned, so that a row outlives the walk. `None` as the value where only a key was read.
type Found = Option<(Vec<u8>, Option<Vec<u8>>)>;

impl Walk {
    fn lend(&mut self, back: bool) -> Found {
        let with_value = |(key, value): (&[u8], &[u8])| (key.to_vec(), Some(value.to_vec()));
        match self {
            Walk::Rows(rows) if back => rows.next_row_back().unwrap().map(with_value),
            Walk::Rows(rows) => rows.next_row().unwrap().map(with_value),
            Walk::Keys(keys) if back => keys.next_key_back().unwrap().map(|key| (key.to_vec(), None)),
            Walk::Keys(keys) => keys.next_key().unwrap().map(|key| (key.to_vec(), None)),
        }
    }

    fn nth(&mut self, n: usize, back: bool) -> Found {
        match self {
            Walk::Rows(rows) => {
                let row = if back { rows.nth_back(n) } else { rows.nth(n) };
                row.map(Result::unwrap).map(|(key, value)| (key, Some(value.to_vec())))
            }
            Walk::Keys(keys) => {
                let key = if back { keys.nth_back(n) } else { keys.nth(n) };
                key.map(|key| (key.unwrap(), None))
            }
        }
    }
}

impl Walk {
    /// Consumes the iterator by one of the consuming methods.
    fn check_rest(self, mut left: VecDeque<Row>, rng: &mut Rng) {
        let (count, last) = (left.len(), left.pop_back());
        let key = last.as_ref().map(|row| row.0.clone());
        let owned = |row: (Vec<u8>, sidebloom::Value)| (row.0, row.1.to_vec());
        match (self, rng.u32(0..4)) {
            (Walk::Rows(rows), 0) => assert_eq!(rows.count().unwrap(), count as u64),
            (Walk::Keys(keys), 0) => assert_eq!(keys.count().unwrap(), count as u64),
            (Walk::Rows(rows), 1) => assert_eq!(Iterator::count(rows), count),
            (Walk::Keys(keys), 1) => assert_eq!(Iterator::count(keys), count),
            (Walk::Rows(rows), 2) => assert_eq!(rows.last().unwrap().map(owned), last),
            (Walk::Keys(keys), 2) => assert_eq!(keys.last().unwrap(), key),
            (Walk::Rows(rows), _) => assert_eq!(Iterator::last(rows).map(|row| owned(row.unwrap())), last),
            (Walk::Keys(keys), _) => assert_eq!(Iterator::last(keys).map(Result::unwrap), key),
        }
    }
}

/// The results of `nth` and `nth_back` of a standard iterator.
fn expected(left: &mut VecDeque<Row>, n: usize, back: bool) -> Option<Row> {
    for _ in 0..n {
        _ = if back { left.pop_back()? } else { left.pop_front()? };
    }
    if back { left.pop_back() } else { left.pop_front() }
}

fn check(mut walk: Walk, rows: &[Row], rng: &mut Rng) {
    let mut left: VecDeque<Row> = rows.iter().cloned().collect();
    let (backwards, longest) = ([0, 0, 50, 100][rng.usize(0..4)], [1, 3, 40, 700][rng.usize(0..4)]);
    loop {
        if rng.usize(0..50) == 0 {
            return walk.check_rest(left, rng);
        }
        let (back, n) = (rng.u32(0..100) < backwards, rng.usize(0..longest));
        let (found, n) = if rng.bool() { (walk.lend(back), 0) } else { (walk.nth(n, back), n) };
        let expected = expected(&mut left, n, back);
        let Some((key, value)) = found else {
            assert_eq!(expected, None, "the walk ended too early");
            break;
        };
        let (expected_key, expected_value) = expected.expect("the walk should have ended");
        assert_eq!(key, expected_key);
        assert!(value.is_none_or(|value| value == expected_value), "the value of {key:?}");
    }
    for back in [false, true] {
        assert_eq!(walk.lend(back), None, "an ended walk stays ended");
        assert_eq!(walk.nth(3, back), None);
    }
}

#[test]
fn lent_rows_and_skips_equal_a_sorted_map_in_any_mixture() {
    for seed in 0..12 {
        let (dir, mut rng) = (fast_dir(), Rng::with_seed(seed));
        let (db, rows) = store(dir.path(), 1 + seed as u32 % 4, &mut rng);
        for _ in 0..40 {
            let mut bounds = [key(rng.u32(0..KEYS)), key(rng.u32(0..KEYS))];
            bounds.sort();
            let [first, end] = bounds;
            let (range, from, to) = match rng.u32(0..3) {
                0 => (db.iter(), 0, rows.len()),
                1 => (db.range(first.clone()..), rows.partition_point(|row| row.0 < first), rows.len()),
                _ => (
                    db.range(first.clone()..end.clone()),
                    rows.partition_point(|row| row.0 < first),
                    rows.partition_point(|row| row.0 < end),
                ),
            };
            let walk = if rng.bool() { Walk::Rows(range) } else { Walk::Keys(range.keys()) };
            check(walk, rows.get(from..to).unwrap_or_default(), &mut rng);
        }
    }
}

#[test]
fn keys_continue_where_the_rows_were() {
    let dir = fast_dir();
    let (db, rows) = store(dir.path(), 3, &mut Rng::with_seed(7));
    let mut range = db.iter();
    assert_eq!(range.nth(99).unwrap().unwrap().0, rows[99].0);
    assert_eq!(range.next_row_back().unwrap().unwrap().0, rows[rows.len() - 1].0);
    let keys: Vec<_> = range.keys().map(Result::unwrap).collect();
    let expected: Vec<_> = rows[100..rows.len() - 1].iter().map(|row| row.0.clone()).collect();
    assert_eq!(keys, expected);
}
