//! The calls whose instructions are counted.

use sidebloom::filter::Verdict;
use sidebloom::{Batch, Db};
use std::hint::black_box;

pub const VALUE: [u8; 100] = [7; 100];
const ROWS: usize = 100;
const SKIP: usize = 5000;

pub fn get(db: &Db, keys: &[Vec<u8>]) {
    black_box(keys.iter().filter(|key| db.get(key).expect("an answer").is_some()).count());
}

pub fn may_contain(db: &Db, keys: &[Vec<u8>]) {
    black_box(keys.iter().filter(|key| db.may_contain(key) == Verdict::Maybe).count());
}

pub fn multi_get(db: &Db, keys: &[Vec<u8>]) {
    drop(black_box(db.multi_get(keys).expect("answers")));
}

pub fn may_contain_many(db: &Db, keys: &[Vec<u8>]) {
    drop(black_box(db.may_contain_many(keys)));
}

pub fn range(db: &Db, keys: &[Vec<u8>]) {
    for key in keys {
        let rows = db.range(key.as_slice()..).take(ROWS);
        black_box(rows.map(|row| row.expect("a row").1.len()).sum::<usize>());
    }
}

pub fn scan(db: &Db, _: &[Vec<u8>]) {
    black_box(db.iter().map(|row| row.expect("a row").1.len()).sum::<usize>());
}

pub fn first(db: &Db, calls: &[Vec<u8>]) {
    calls.iter().for_each(|_| read_first(db, 0));
}

pub fn skip(db: &Db, calls: &[Vec<u8>]) {
    calls.iter().for_each(|_| read_first(db, SKIP));
}

fn read_first(db: &Db, skipped: usize) {
    black_box(db.iter().skip(skipped).take(ROWS).map(|row| row.expect("a row").1.len()).sum::<usize>());
}

pub fn count_rows(db: &Db, _: &[Vec<u8>]) {
    black_box(db.iter().count().expect("a count"));
}

pub fn put(db: &Db, keys: &[Vec<u8>]) {
    keys.iter().for_each(|key| db.put(key, VALUE).expect("a write"));
}

pub fn write(db: &Db, keys: &[Vec<u8>]) {
    let mut batch = Batch::new();
    keys.iter().for_each(|key| batch.put(key, VALUE));
    db.write(batch).expect("a write");
}

pub fn insert_new(db: &Db, keys: &[Vec<u8>]) {
    keys.iter().for_each(|key| _ = black_box(db.insert_new(key, VALUE).expect("a write")));
}

pub fn insert_new_many(db: &Db, keys: &[Vec<u8>]) {
    let rows: Vec<_> = keys.iter().map(|key| (key, VALUE)).collect();
    drop(black_box(db.insert_new_many(&rows).expect("a write")));
}
