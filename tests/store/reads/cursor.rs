//! Cursors: every seek and step lands where a sorted map says, whatever happens concurrently.

use crate::support::{
    Contents, Crash, Rng, STORE, SimFs, contents, damage_of, fast_dir, fill_deep, sized, tiny_on,
};
use sidebloom::{Batch, Compression, Cursor, Db, Options};
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Keys that share prefixes, are prefixes of one another, or are long.
fn key(rng: &mut Rng) -> Vec<u8> {
    match rng.below(20) {
        0 => vec![b'k'; rng.below(400) as usize],
        1 => Vec::new(),
        2 => vec![0xff; 1 + rng.below(3) as usize],
        _ => format!("key{:04}", rng.below(1500)).into_bytes(),
    }
}

fn value(rng: &mut Rng) -> Vec<u8> {
    let len = match rng.below(100) {
        0 => 20_000 + rng.below(20_000),
        1..20 => 0,
        _ => rng.below(60),
    };
    (0..len.div_ceil(8)).flat_map(|_| rng.next().to_le_bytes()).collect()
}

/// Writes a few hundred rows and tombstones, also to the model.
fn write(db: &Db, model: &mut Contents, rng: &mut Rng) {
    let mut batch = Batch::new();
    for _ in 0..200 + rng.below(300) {
        let key = key(rng);
        if rng.below(4) == 0 {
            batch.delete(&key);
            model.remove(&key);
        } else {
            let value = value(rng);
            batch.put(&key, &value);
            model.insert(key, value);
        }
    }
    db.write(batch).unwrap();
}

fn options(rng: &mut Rng) -> Options {
    Options::new()
        .segment_bytes(4 << 10)
        .memtable_bytes(64 << 10)
        .block_bytes([256, 512, 4096][rng.below(3) as usize])
        .block_cache_bytes([0, 20 << 10, 8 << 20][rng.below(3) as usize])
        .compression(Compression::None)
}

/// A cursor, and its position according to the model.
struct Checked<'a> {
    cursor: Cursor,
    model: &'a Contents,
    at: Option<(&'a Vec<u8>, &'a Vec<u8>)>,
}

impl<'a> Checked<'a> {
    fn new(cursor: Cursor, model: &'a Contents) -> Self {
        assert!(!cursor.is_valid() && cursor.key().is_none(), "a new cursor is at no row");
        Checked { cursor, model, at: None }
    }

    /// One random call.
    fn step(&mut self, rng: &mut Rng) {
        let sought = match (rng.below(3), self.at) {
            (0, Some((key, _))) => [key, &b"\0"[..rng.below(2) as usize]].concat(),
            _ => key(rng),
        };
        let (found, name) = match rng.below(20) {
            0 => {
                self.at = self.model.first_key_value();
                (self.cursor.seek_to_first(), "seek_to_first")
            }
            1 => {
                self.at = self.model.last_key_value();
                (self.cursor.seek_to_last(), "seek_to_last")
            }
            2..5 => {
                self.at = self.model.range(sought.clone()..).next();
                (self.cursor.seek(&sought), "seek")
            }
            5..8 => {
                self.at = self.model.range(..=sought.clone()).next_back();
                (self.cursor.seek_for_prev(&sought), "seek_for_prev")
            }
            8..15 => {
                let after =
                    |(key, _): (&Vec<u8>, _)| self.model.range((Excluded(key.clone()), Unbounded)).next();
                self.at = self.at.and_then(after);
                (self.cursor.next(), "next")
            }
            _ => {
                let before = |(key, _): (&Vec<u8>, _)| self.model.range(..key.clone()).next_back();
                self.at = self.at.and_then(before);
                (self.cursor.prev(), "prev")
            }
        };
        let what = || format!("{name}, sought {}", sought.escape_ascii());
        assert_eq!(found.unwrap(), self.at.is_some(), "{}", what());
        assert_eq!(self.cursor.is_valid(), self.at.is_some(), "{}", what());
        assert_eq!(self.cursor.key(), self.at.map(|(key, _)| &**key), "{}", what());
        assert_eq!(self.cursor.value(), self.at.map(|(_, value)| &**value), "{}", what());
        assert_eq!(self.cursor.to_value().as_deref(), self.cursor.value());
    }
}

#[test]
fn a_cursor_moves_as_in_a_sorted_map_over_memtables_and_many_runs() {
    for seed in 0..sized(15, 60) as u64 {
        let (dir, mut rng, mut model) = (fast_dir(), Rng::new(seed), Contents::new());
        let db = options(&mut rng).open(dir.path()).unwrap();
        for _ in 0..rng.below(6) {
            write(&db, &mut model, &mut rng);
            match rng.below(4) {
                0 => db.compact().unwrap(),
                1 => {}
                _ => db.flush().unwrap(),
            }
        }
        let mut checked = Checked::new(db.cursor(), &model);
        (0..1500).for_each(|_| checked.step(&mut rng));
    }
}

/// A cursor shows its moment during writes, flushes and compactions.
#[test]
fn i7_a_cursor_stays_in_its_moment_through_writes_and_compactions() {
    let (dir, mut rng, mut model) = (fast_dir(), Rng::new(5), Contents::new());
    let db = options(&mut rng).open(dir.path()).unwrap();
    for _ in 0..4 {
        write(&db, &mut model, &mut rng);
    }
    let (stop, rounds) = (AtomicBool::new(false), sized(30, 200));
    let mut others = model.clone();
    for round in 0..rounds as u64 {
        let (snapshot, model) = (db.snapshot(), others.clone());
        stop.store(false, Ordering::Relaxed);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut rng = Rng::new(1000 + round);
                while !stop.load(Ordering::Relaxed) {
                    write(&db, &mut others, &mut rng);
                    match rng.below(3) {
                        0 => db.compact().unwrap(),
                        1 => db.flush().unwrap(),
                        _ => {}
                    }
                }
            });
            let mut checked = Checked::new(snapshot.cursor(), &model);
            (0..800).for_each(|_| checked.step(&mut rng));
            stop.store(true, Ordering::Relaxed);
        });
        assert_eq!(contents(&db), others);
    }
}

/// The first key of a walk in the model.
fn beside(expected: &Contents, key: &[u8], back: bool) -> Option<(Vec<u8>, Vec<u8>)> {
    let row = if back {
        expected.range((Unbounded, Included(key.to_vec()))).next_back()
    } else {
        expected.range(key.to_vec()..).next()
    };
    row.map(|(key, value)| (key.clone(), value.clone()))
}

/// Seeks to every key, upwards and then downwards. Each answer is right, or the error of the damaged file,
/// after which the cursor is at no row. Returns how many keys gave the error.
fn errors(cursor: &mut Cursor, expected: &Contents, path: &Path) -> usize {
    let mut errors = 0;
    let (upwards, downwards) = (expected.keys(), expected.keys().rev());
    for (key, back) in upwards.map(|key| (key, false)).chain(downwards.map(|key| (key, true))) {
        let found = if back { cursor.seek_for_prev(key) } else { cursor.seek(key) };
        match found {
            Ok(true) => {
                let row = (cursor.key().unwrap().to_vec(), cursor.value().unwrap().to_vec());
                assert_eq!(Some(row), beside(expected, key, back));
            }
            Ok(false) => panic!("{} is there", key.escape_ascii()),
            Err(error) => {
                assert_eq!(damage_of(&error).0, path.display().to_string());
                assert!(!cursor.is_valid() && cursor.key().is_none() && cursor.to_value().is_none());
                assert!(!cursor.next().unwrap() && !cursor.prev().unwrap(), "only a seek helps");
                errors += 1;
            }
        }
    }
    errors
}

#[test]
fn i6_a_cursor_reports_a_damaged_block_and_goes_on_with_the_next_seek() {
    let fs = SimFs::new();
    let db = tiny_on(&fs).open(STORE).unwrap();
    let expected = fill_deep(&db, 2);
    drop(db);
    // Compactions decide what each segment holds. The damage is to lie between the first row and the last.
    let damaged = |path: PathBuf| {
        let fs = fs.crash(Crash::Kill, 0);
        let mut bytes = fs.read(&path).unwrap();
        let third = bytes.len() / 3;
        bytes[third] ^= 4;
        fs.write(&path, bytes);
        let db = tiny_on(&fs).open(STORE).unwrap();
        let mut cursor = db.cursor();
        let is_between = cursor.seek_to_first().is_ok() && cursor.seek_to_last().is_ok();
        is_between.then_some((path, db))
    };
    let mut segments =
        fs.files().into_iter().rev().filter(|path| path.extension().is_some_and(|e| e == "segment"));
    let (path, db) = segments.find_map(damaged).unwrap();
    let mut cursor = db.cursor();
    let before = errors(&mut cursor, &expected, &path);
    assert!(before > 0 && before < expected.len(), "{before} of {} keys", expected.len());
    assert_eq!(errors(&mut cursor, &expected, &path), before, "in the same cursor again");
    // A step into the damage is an error too.
    for back in [false, true] {
        let started = if back { cursor.seek_to_last() } else { cursor.seek_to_first() };
        assert!(started.unwrap());
        let error = loop {
            match if back { cursor.prev() } else { cursor.next() } {
                Ok(more) => assert!(more, "the walk passed over the damage"),
                Err(error) => break error,
            }
        };
        assert_eq!(damage_of(&error).0, path.display().to_string());
        assert!(!cursor.is_valid() && cursor.value().is_none());
    }
}

#[test]
fn seeks_within_a_block_read_nothing() {
    let dir = fast_dir();
    let db = Options::new().block_cache_bytes(0).compression(Compression::None).open(dir.path()).unwrap();
    let key = |n: u32| format!("key{n:05}");
    db.ingest((0..20_000u32).map(|n| sidebloom::Result::Ok((key(n), n.to_be_bytes())))).unwrap();
    let mut cursor = db.cursor();
    assert!(cursor.seek(key(7000)).unwrap());
    let reads = |db: &Db| (db.stats().block_reads, db.stats().block_cache_hits);
    let before = reads(&db);
    for n in [7000, 7003, 7001, 7004, 7000] {
        assert!(cursor.seek_for_prev(key(n)).unwrap() && cursor.key() == Some(key(n).as_bytes()));
        assert!(cursor.seek(key(n)).unwrap() && cursor.key() == Some(key(n).as_bytes()));
    }
    assert_eq!(reads(&db), before);
    assert!(cursor.seek(key(15_000)).unwrap());
    assert!(reads(&db) > before);
}

#[test]
fn a_seek_opens_only_the_segments_that_it_needs() {
    let dir = fast_dir();
    let options = || Options::new().filter_policy(sidebloom::FilterPolicy::OFF).segment_bytes(16 << 10);
    let key = |n: u32| format!("key{n:05}");
    let db = options().open(dir.path()).unwrap();
    db.ingest((0..20_000u32).map(|n| sidebloom::Result::Ok((key(n), n.to_be_bytes())))).unwrap();
    drop(db);
    let db = options().open(dir.path()).unwrap();
    assert!(db.stats().levels.iter().map(|level| level.segments).sum::<usize>() > 5);
    let mut cursor = db.cursor();
    assert_eq!(db.stats().segment_opens, 0);
    (0..50).for_each(|n| assert!(cursor.seek(key(10_000 + n % 7)).unwrap()));
    assert_eq!(db.stats().segment_opens, 1);
    assert!(cursor.seek_to_last().unwrap() && cursor.seek_to_first().unwrap());
    assert_eq!(db.stats().segment_opens, 3);
}
