//! An unreadable segment returns from quarantine once it is readable, to its place in the order of ages:
//! reads return the newest version of each key, and deleted keys stay deleted.

use crate::support::{
    Contents, Crash, Fault, Layout, OpKind, Rng, STORE, SimFs, assert_holds, contents, eventually, fill_deep,
    sized, tiny_on,
};
use sidebloom::fs::Fs;
use sidebloom::{Compression, Db};
use std::path::PathBuf;

fn numbered(i: u64) -> Vec<u8> {
    format!("key{i:05}").into_bytes()
}

fn segments(fs: &SimFs) -> Vec<PathBuf> {
    fs.files().into_iter().filter(|path| path.extension().is_some_and(|e| e == "segment")).collect()
}

fn quarantined(db: &Db) -> u64 {
    db.stats().segments_quarantined
}

/// A store with several levels, and its contents.
fn deep_store() -> (SimFs, Contents) {
    let fs = SimFs::new();
    let db = tiny_on(&fs).compression(Compression::None).open(STORE).unwrap();
    let mut filled = fill_deep(&db, 7);
    for i in 0..60 {
        db.put(numbered(i * 50), b"in level 0").unwrap();
        filled.insert(numbered(i * 50), b"in level 0".to_vec());
        if i % 30 == 29 {
            db.flush().unwrap();
        }
    }
    drop(db);
    (fs, filled)
}

/// Makes one block in each of some segments unreadable, which the store notices on opening.
fn with_bad_blocks(sound: &SimFs, count: u64, rng: &mut Rng) -> SimFs {
    let fs = sound.crash(Crash::Kill, 0);
    let all = segments(&fs);
    for _ in 0..count {
        // Newer segments have greater numbers, so upper levels are as likely as the much larger lowest one.
        let from = if rng.percent(50) { all.len() * 3 / 4 } else { 0 };
        let path = &all[from + rng.below((all.len() - from) as u64) as usize];
        let bad = rng.pick(&Layout::of(&fs.read(path).unwrap()).data).bytes.clone();
        fs.make_unreadable(path, bad.start as u64..bad.end as u64);
        if fs.read(path.with_extension("filter")).is_some() {
            fs.remove(&path.with_extension("filter")).unwrap();
        }
    }
    fs
}

/// Overwrites and deletes this many keys, some of them in every round of compactions.
fn change(db: &Db, expected: &mut Contents, count: u64, rng: &mut Rng) {
    for i in 0..count {
        let key = numbered(rng.below(3000));
        if rng.percent(40) {
            db.delete(&key).unwrap();
            expected.remove(&key);
        } else {
            let value = i.to_be_bytes().repeat(4);
            db.put(&key, &value).unwrap();
            expected.insert(key, value);
        }
        if rng.below(200) == 0 {
            db.flush().unwrap();
            db.wait_for_compaction().unwrap();
        }
    }
}

/// Checks that no answer is wrong; answers that depend on unreadable blocks are errors.
fn assert_right_or_error(db: &Db, expected: &Contents) {
    for key in (0..3000).map(numbered) {
        if let Ok(found) = db.get(&key) {
            assert_eq!(found.as_deref(), expected.get(&key).map(Vec::as_slice), "{}", key.escape_ascii());
        }
    }
}

/// A segment that is readable again returns without bringing back old values or deleted keys.
#[test]
fn a_segment_that_reads_well_again_brings_no_old_value_or_deleted_key() {
    let (sound, filled) = deep_store();
    let mut most = 0;
    for round in (0..24).step_by(sized(5, 1)) {
        let mut rng = Rng::new(round);
        let fs = with_bad_blocks(&sound, 1 + round % 4, &mut rng);
        let db = tiny_on(&fs).background_threads(2 + round as usize % 4).open(STORE).unwrap();
        eventually("unreadable segments are quarantined", || quarantined(&db) > 0);
        db.wait_for_compaction().unwrap();
        most = most.max(quarantined(&db));
        let mut expected = filled.clone();
        change(&db, &mut expected, [0, 20, 300, 2500][round as usize / 6], &mut rng);
        assert_right_or_error(&db, &expected);
        fs.heal();
        let meanwhile = std::thread::scope(|scope| {
            let compacting = scope.spawn(|| db.compact());
            change(&db, &mut expected, 100, &mut rng);
            compacting.join().unwrap()
        });
        meanwhile.unwrap();
        assert_eq!(quarantined(&db), 0, "round {round}");
        assert_holds(&db, &expected);
        assert!(db.verify().unwrap().is_ok());
        db.compact().unwrap();
        assert_holds(&db, &expected);
        drop(db);
        let db = tiny_on(&fs).open(STORE).unwrap();
        assert_eq!((quarantined(&db), contents(&db)), (0, expected), "round {round}");
    }
    assert!(most > 1, "{most}");
}

/// After a transient read error the segment returns by itself, also in a reopened store.
#[test]
fn after_a_passing_read_error_the_segment_returns_by_itself() {
    let (sound, filled) = deep_store();
    for reopens in [false, true] {
        let mut rng = Rng::new(5);
        let mut fs = with_bad_blocks(&sound, 3, &mut rng);
        let mut db = tiny_on(&fs).open(STORE).unwrap();
        eventually("unreadable segments are quarantined", || quarantined(&db) > 0);
        let mut expected = filled.clone();
        change(&db, &mut expected, 500, &mut rng);
        if reopens {
            db.sync().unwrap();
            fs = fs.crash(Crash::Power, 1);
            db = tiny_on(&fs).open(STORE).unwrap();
            assert!(quarantined(&db) > 0, "the manifest remembers it");
        }
        fs.heal();
        eventually("all is back", || quarantined(&db) == 0);
        assert_holds(&db, &expected);
        db.flush().unwrap();
        db.wait_for_compaction().unwrap();
        assert_holds(&db, &expected);
        assert!(db.verify().unwrap().is_ok());
    }
}

#[test]
fn a_compaction_takes_back_what_the_one_before_it_could_not_read() {
    let (sound, expected) = deep_store();
    let mut had_some = 0;
    for after in 0..40 {
        let fs = sound.crash(Crash::Kill, 0);
        let db = tiny_on(&fs).open(STORE).unwrap();
        db.wait_for_compaction().unwrap();
        fs.fail(Fault::once(OpKind::Read, after));
        let _ = db.compact();
        fs.heal();
        had_some += quarantined(&db);
        db.compact().unwrap();
        assert_eq!(quarantined(&db), 0);
        assert_holds(&db, &expected);
    }
    assert!(had_some > 5, "{had_some}");
}

/// A segment that stays unreadable stays in quarantine, and stops no compaction.
#[test]
fn an_unreadable_segment_stays_in_quarantine_and_stops_no_compaction() {
    let (sound, filled) = deep_store();
    let fs = with_bad_blocks(&sound, 2, &mut Rng::new(11));
    let bad = segments(&fs).iter().filter(|path| fs.read(path.with_extension("filter")).is_none()).count();
    let db = tiny_on(&fs).open(STORE).unwrap();
    eventually("unreadable segments are quarantined", || quarantined(&db) == bad as u64);
    db.wait_for_compaction().unwrap();
    let before = quarantined(&db);
    db.compact().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1500)); // The background has checked it too.
    assert_eq!(quarantined(&db), before);
    assert_right_or_error(&db, &filled);
    fs.heal();
    db.compact().unwrap();
    assert_eq!(quarantined(&db), 0);
    assert_holds(&db, &filled);
}
