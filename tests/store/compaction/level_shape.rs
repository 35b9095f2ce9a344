//! Which runs a store has at rest: as few as its size allows, and level 0 merged within itself rather than
//! into a large level 1.

use crate::support::{STORE, SimFs, assert_holds, tiny_on};
use sidebloom::{Db, Options};
use std::collections::BTreeMap;

const SEGMENT_BYTES: u64 = 64 << 10;

fn options(fs: &SimFs) -> Options {
    tiny_on(fs).memtable_bytes(1 << 20).segment_bytes(SEGMENT_BYTES)
}

/// Rows of about 100 bytes, half of them incompressible.
fn fill(db: &Db, keys: impl Iterator<Item = u64>) -> u64 {
    let mut bytes = 0;
    for n in keys {
        let (key, value) = (n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes(), n.to_be_bytes().repeat(11));
        db.put(key, &value).unwrap();
        bytes += (key.len() + value.len()) as u64;
    }
    bytes
}

fn segments(db: &Db) -> Vec<usize> {
    db.stats().levels.iter().map(|level| level.segments).collect()
}

/// A store of at most sixteen segments has one sorted level, and a larger one has two.
#[test]
fn up_to_sixteen_segments_are_one_sorted_level_and_more_are_two() {
    let fs = SimFs::new();
    let db = options(&fs).compression(sidebloom::Compression::None).open(STORE).unwrap();
    fill(&db, 0..6_000); // Ten segments.
    db.compact().unwrap();
    assert_eq!(db.stats().levels.iter().filter(|level| level.segments > 0).map(|l| l.level).max(), Some(1));
    fill(&db, 6_000..30_000);
    db.compact().unwrap();
    assert_eq!(db.stats().levels.iter().filter(|level| level.segments > 0).map(|l| l.level).max(), Some(2));
    assert_eq!(db.iter().count().unwrap(), 30_000);
}

#[test]
fn small_flushes_at_rest_merge_within_level_0_and_rarely_rewrite_level_1() {
    let fs = SimFs::new();
    let db = options(&fs).compression(sidebloom::Compression::None).open(STORE).unwrap();
    fill(&db, 0..8_000);
    db.compact().unwrap();
    let level1 = db.stats().levels[1].data_bytes;
    let before = db.stats().compaction_bytes;
    let (mut written, mut most) = (0, 0);
    for round in 0..64 {
        written += fill(&db, (round * 50)..(round * 50 + 50));
        db.flush().unwrap();
        db.wait_for_compaction().unwrap();
        most = most.max(segments(&db)[0]);
    }
    // Each merge at least doubles the segment that an entry is in: 64 flushes are 2^6, so at most six merges
    // and one run for each power of two.
    assert!(most <= 7, "{most} runs in level 0");
    let merged = db.stats().compaction_bytes - before;
    assert!(merged < 8 * written && merged < 2 * level1, "{merged} bytes for {written}");
    assert_eq!(db.iter().count().unwrap(), 8_000);
}

#[test]
fn i9_tombstones_stay_in_a_merge_within_level_0() {
    let fs = SimFs::new();
    let db = options(&fs).open(STORE).unwrap();
    fill(&db, 0..8_000);
    db.compact().unwrap();
    let mut expected: BTreeMap<_, _> =
        db.iter().map(|row| row.map(|(key, value)| (key, value.to_vec())).unwrap()).collect();
    let deleted: Vec<Vec<u8>> = expected.keys().step_by(16).take(100).cloned().collect();
    for keys in deleted.chunks(25) {
        for key in keys {
            db.delete(key).unwrap();
            expected.remove(key);
        }
        db.flush().unwrap();
        db.wait_for_compaction().unwrap();
    }
    assert_eq!(segments(&db)[0], 1, "merged");
    assert_holds(&db, &expected);
    drop(db);
    assert_holds(&options(&fs).open(STORE).unwrap(), &expected);
}

/// Keys that occasionally arrive in order are rarely rewritten, and make no giant segment.
#[test]
fn keys_that_arrive_in_order_are_rarely_rewritten() {
    const SEGMENT_BYTES: u64 = 16 << 10;
    let fs = SimFs::new();
    let db = options(&fs)
        .segment_bytes(SEGMENT_BYTES)
        .compression(sidebloom::Compression::None)
        .open(STORE)
        .unwrap();
    for round in 0..200u32 {
        (0..20).for_each(|n| db.put((round * 20 + n).to_be_bytes(), [7; 100]).unwrap());
        db.flush().unwrap();
        db.wait_for_compaction().unwrap();
    }
    let stats = db.stats();
    assert!(
        stats.compaction_bytes < 2 * stats.user_bytes,
        "{} of {}",
        stats.compaction_bytes,
        stats.user_bytes
    );
    let segments =
        fs.files().into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "segment"));
    let largest = segments.map(|path| fs.read(path).unwrap().len() as u64).max();
    assert!(largest < Some(2 * SEGMENT_BYTES), "{largest:?}");
    assert_eq!(db.iter().count().unwrap(), 4_000);
}
