//! Manual compaction of a range of keys: small, restartable steps while the store is in use, and one run
//! without tombstones at the end.

use crate::support::{
    Contents, Crash, Fault, OpKind, Rng, STORE, SimFs, assert_holds, contents, eventually, fill_deep,
    promptly, sized, tiny_on,
};
use sidebloom::fs::Fs;
use sidebloom::{Compression, Db, Result};
use std::collections::BTreeSet;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::thread::Builder;
use std::time::Duration;

fn level0(db: &Db) -> usize {
    db.stats().levels.first().map_or(0, |level| level.segments)
}

fn segments(fs: &SimFs) -> BTreeSet<PathBuf> {
    fs.files().into_iter().filter(|path| path.extension().is_some_and(|e| e == "segment")).collect()
}

/// Checks that the store is one sorted run with each key once and no tombstones.
#[track_caller]
fn assert_one_run(db: &Db, expected: &Contents) {
    let levels = db.stats().levels;
    assert!(levels.iter().filter(|level| level.segments > 0).count() <= 1, "{levels:?}");
    assert_eq!(levels.iter().map(|level| level.keys).sum::<u64>(), expected.len() as u64, "{levels:?}");
}

#[test]
fn i7_level_0_is_compacted_and_writers_go_on_during_a_manual_compaction() {
    /// Level 0 is due at this many segments, however large level 1 is.
    const DUE: usize = 12;
    let fs = SimFs::new();
    let db = tiny_on(&fs).open(STORE).unwrap();
    let mut expected = fill_deep(&db, 1);
    let mut rng = Rng::new(2);
    for i in 0..6000 {
        let (key, value) = (format!("key{i:05}, too").into_bytes(), rng.next().to_le_bytes().repeat(8));
        db.put(&key, &value).unwrap();
        expected.insert(key, value);
    }
    db.flush().unwrap(); // Otherwise the compaction would wait for it, metered.
    eventually("level 0 is compacted", || level0(&db) < DUE);
    assert!(segments(&fs).len() > 60);
    fs.meter("compaction", 0);
    let compacting = db.clone();
    let compaction = Builder::new().name("compaction".into()).spawn(move || compacting.compact().unwrap());
    let compaction = compaction.unwrap();
    let (mut relieved, mut level0_max) = (0, 0);
    for i in 0.. {
        let (key, value) = (format!("key{:05}", rng.below(3000)).into_bytes(), vec![i as u8; 100]);
        let (writer, k, v) = (db.clone(), key.clone(), value.clone());
        if i % 10 == 0 {
            promptly("a put", move || writer.put(k, v).unwrap());
        } else {
            db.put(k, v).unwrap();
        }
        expected.insert(key, value);
        level0_max = level0_max.max(level0(&db));
        while level0(&db) >= DUE {
            fs.meter("compaction", 2);
            std::thread::sleep(Duration::from_millis(1));
            relieved += u64::from(level0(&db) < DUE && !compaction.is_finished());
            assert!(!compaction.is_finished() || relieved > 0, "level 0 waits for the whole compaction");
        }
        if relieved == sized(3, 5) {
            break;
        }
        assert!(!compaction.is_finished(), "relieved only {relieved} times");
    }
    assert!(level0_max < 20, "writers were slowed: {level0_max} segments");
    fs.meter("nobody", 0);
    promptly("the compaction", move || compaction.join().unwrap());
    assert_holds(&db, &expected);
    assert!(db.verify().unwrap().is_ok());
}

#[test]
fn a_compaction_ends_although_writers_go_on() {
    let fs = SimFs::new();
    let db = tiny_on(&fs).background_threads(3).open(STORE).unwrap();
    fill_deep(&db, 3);
    let writer = db.clone();
    let compaction = std::thread::spawn(move || (0..3).for_each(|_| db.compact().unwrap()));
    promptly("a compaction under load", move || {
        let mut rng = Rng::new(4);
        while !compaction.is_finished() {
            writer.put(format!("key{:05}", rng.below(3000)), [7; 60]).unwrap();
        }
        compaction.join().unwrap();
    });
}

/// What existed at the call is compacted, although newer writes share its segment.
#[test]
fn what_was_there_at_the_call_is_compacted_despite_newer_writes() {
    let fs = SimFs::new();
    let db = tiny_on(&fs).open(STORE).unwrap();
    db.put("there", "at the call").unwrap();
    let writing = fs.hold(OpKind::Append);
    let in_thread = |work: fn(&Db)| {
        let db = db.clone();
        let thread = std::thread::spawn(move || work(&db));
        std::thread::sleep(Duration::from_millis(50));
        thread
    };
    let writer = in_thread(|db| db.put("newer", "and in the same memtable").unwrap());
    let compaction = in_thread(|db| db.compact().unwrap());
    drop(writing);
    writer.join().unwrap();
    compaction.join().unwrap();
    assert_eq!(level0(&db), 0);
}

/// Segments of level 0 that overlap like the links of a chain. A compaction that takes one must take those
/// that it hides, and those that they hide in turn. After a repair without a manifest, their ages interleave
/// as well.
#[test]
fn compacting_ranges_never_brings_older_versions_to_light() {
    let key = |i: u64| vec![b'a' + i as u8];
    let fs = SimFs::new();
    // Segments of two or three rows, so that a level has several.
    let open = || tiny_on(&fs).compression(Compression::None).open(STORE).unwrap();
    let mut db = open();
    let (mut rng, mut expected) = (Rng::new(1), Contents::new());
    for step in 0..sized(1500, 4000u64) {
        let first = rng.below(8);
        let last = first + rng.below(3);
        for i in first..=last {
            if rng.percent(25) {
                db.delete(key(i)).unwrap();
                expected.remove(&key(i));
            } else {
                let value = step.to_string().repeat(400).into_bytes();
                db.put(key(i), &value).unwrap();
                expected.insert(key(i), value);
            }
        }
        db.flush().unwrap();
        let repairs = rng.percent(15);
        if repairs {
            drop(db);
            fs.sync_dir(Path::new(STORE)).unwrap(); // Obsolete segments keep their names.
            fs.remove(&Path::new(STORE).join("MANIFEST")).unwrap();
            tiny_on(&fs).repair(STORE).unwrap();
            db = open();
        }
        if repairs || rng.percent(30) {
            let any = rng.below(10);
            let of = *rng.pick(&[first, last, any]);
            db.compact_range(key(of)..=key(of)).unwrap();
        }
        for (i, found) in (0..10).map(|i| (i, db.get(key(i)).unwrap())) {
            assert!(found.as_deref() == expected.get(&key(i)).map(Vec::as_slice), "key {i}, step {step}");
        }
    }
    assert_holds(&db, &expected);
}

#[test]
fn a_range_touches_only_the_segments_that_have_keys_of_it() {
    let fs = SimFs::new();
    let db = tiny_on(&fs).open(STORE).unwrap();
    let mut expected = fill_deep_quietly(&db);
    let before = segments(&fs);
    assert!(before.len() > 20, "{}", before.len());
    for key in ["key00500", "zzz"] {
        db.delete(key).unwrap();
        db.put([key, "+"].concat(), "new").unwrap();
        db.flush().unwrap();
        expected.remove(key.as_bytes());
        expected.insert([key, "+"].concat().into_bytes(), b"new".to_vec());
    }
    assert_eq!(level0(&db), 2);
    let none = (Bound::Excluded("key00500+"), Bound::Excluded("key00500+"));
    // Both ends are within a segment.
    let inverted = (Bound::Included("key00500%"), Bound::Excluded("key00500!"));
    let of_no_key = (Bound::Included("key00500!"), Bound::Excluded("key00500!"));
    for nothing in [none, inverted, of_no_key, (Bound::Included("x"), Bound::Excluded("y"))] {
        db.compact_range(nothing).unwrap();
        assert_eq!(level0(&db), 2, "{nothing:?}");
    }
    db.compact_range("key00500+"..="key00500+").unwrap(); // The last key of its segment.
    assert_eq!(level0(&db), 1, "the one of zzz stays");
    let gone = before.difference(&segments(&fs)).count();
    assert!((1..=2).contains(&gone), "{gone} segments were rewritten for one key");
    assert_holds(&db, &expected);
    db.compact_range("z"..="zzz").unwrap(); // The first key of its segment.
    assert_eq!(level0(&db), 0);
    db.compact_range("z"..).unwrap();
    assert_one_run(&db, &expected);
    let settled = segments(&fs);
    db.compact().unwrap();
    assert_eq!(segments(&fs), settled, "nothing was left to do");
}

/// Many segments in one run.
fn fill_deep_quietly(db: &Db) -> Contents {
    for i in 0..8000u32 {
        db.put(format!("key{:05}", i * 7 % 8000), [i as u8, (i >> 8) as u8].repeat(20)).unwrap();
    }
    db.compact().unwrap();
    contents(db)
}

#[test]
fn an_interrupted_compaction_goes_on_where_it_stopped() {
    let fs = SimFs::new();
    let open = |fs: &SimFs| tiny_on(fs).open(STORE).unwrap();
    let db = open(&fs);
    let expected = fill_deep(&db, 5);
    drop(db);
    let written = |fs: &SimFs| -> (Result<()>, u64) {
        let db = open(fs);
        let outcome = db.compact();
        (outcome, db.stats().compaction_bytes)
    };
    let whole = fs.crash(Crash::Kill, 0);
    let before = whole.writes();
    let (_, all_bytes) = written(&whole);
    let writes = whole.writes() - before;
    let mut interrupted = 0;
    for (n, percent) in [20, 40, 60, 75].into_iter().enumerate() {
        for crash in [Crash::Kill, Crash::Power] {
            let fs = fs.crash(Crash::Kill, 0);
            fs.fail(Fault::stop(writes * percent / 100));
            if written(&fs).0.is_ok() {
                continue; // The background did more of the work this time.
            }
            interrupted += 1;
            let fs = fs.crash(crash, n as u64);
            let (outcome, rest) = written(&fs);
            outcome.unwrap();
            // The first step, level 0, is a third of the work. Only an unfinished step is lost.
            let is_past_it = percent >= 60;
            assert!(
                !is_past_it || rest < all_bytes * 3 / 4,
                "{rest} of {all_bytes} bytes again, stopped at {percent} %, {crash:?}"
            );
            let db = open(&fs);
            assert_one_run(&db, &expected);
            assert_holds(&db, &expected);
        }
    }
    assert!(interrupted >= 4, "{interrupted}");
}

/// With many threads, and manual compactions during writes, deleted keys stay deleted and levels disjoint.
#[test]
fn deleted_keys_stay_deleted_during_manual_compactions_and_writes() {
    for (seed, threads) in (0..).zip([8, 3, 2, 4, 5, 3, 8, 4]).take(sized(2, 8)) {
        let fs = SimFs::new();
        let db = tiny_on(&fs).background_threads(threads).open(STORE).unwrap();
        let mut expected = fill_deep(&db, seed);
        let mut rng = Rng::new(seed);
        let compacting = db.clone();
        let mut ranges = Rng::new(seed + 100);
        let compactions = std::thread::spawn(move || {
            for _ in 0..6 {
                let from = ranges.below(3000);
                let to = from + ranges.below(1500);
                compacting.compact_range(format!("key{from:05}")..format!("key{to:05}")).unwrap();
                compacting.compact().unwrap();
            }
        });
        let mut i = 0u64;
        while !compactions.is_finished() || i < 3000 {
            i += 1;
            // Keys of a narrow band, so that tombstones meet gaps between the segments below.
            let key = format!("key{:05}", rng.below(40) * 75 + rng.below(3)).into_bytes();
            if rng.percent(50) {
                db.delete(&key).unwrap();
                expected.remove(&key);
            } else {
                db.put(&key, i.to_be_bytes()).unwrap();
                expected.insert(key, i.to_be_bytes().to_vec());
            }
            if rng.percent(1) {
                db.flush().unwrap();
            }
        }
        compactions.join().unwrap();
        assert_holds(&db, &expected);
        db.wait_for_compaction().unwrap();
        assert_holds(&db, &expected);
        db.compact().unwrap();
        assert_one_run(&db, &expected);
        assert_holds(&db, &expected);
        assert!(db.verify().unwrap().is_ok());
        drop(db);
        assert_holds(&tiny_on(&fs).open(STORE).unwrap(), &expected);
    }
}

#[test]
fn two_manual_compactions_at_once_share_the_work() {
    let fs = SimFs::new();
    let db = tiny_on(&fs).background_threads(4).open(STORE).unwrap();
    let expected = fill_deep(&db, 9);
    let held = fs.hold(OpKind::Create);
    let both: Vec<_> =
        (0..2).map(|_| db.clone()).map(|db| std::thread::spawn(move || db.compact())).collect();
    drop(held);
    promptly("both", move || both.into_iter().for_each(|one| one.join().unwrap().unwrap()));
    assert_one_run(&db, &expected);
    assert_holds(&db, &expected);
}
