//! Repair of damaged segments: every readable row comes back, and the report says where rows are lost.

use crate::support::{Contents, Crash, Rng, STORE, SimFs, assert_holds, contents, fill_deep, sized, tiny_on};
use sidebloom::{Compression, Db, Error, LostRange, RepairReport};
use std::ops::RangeBounds;
use std::path::{Path, PathBuf};

const KEYS: u64 = 2000;

fn numbered(i: u64) -> Vec<u8> {
    format!("key{i:05}").into_bytes()
}

fn value(i: u64, version: u64) -> Vec<u8> {
    let mut rng = Rng::new(i ^ (version << 32));
    (0..2 + rng.below(8)).flat_map(|_| rng.next().to_le_bytes()).collect()
}

fn files(fs: &SimFs, ending: &str) -> Vec<PathBuf> {
    fs.files().into_iter().filter(|path| path.to_str().unwrap().ends_with(ending)).collect()
}

/// A store with one large segment, and its contents.
fn one_segment(compression: Compression) -> (SimFs, PathBuf, Contents) {
    let fs = SimFs::new();
    let options = tiny_on(&fs).memtable_bytes(8 << 20).segment_bytes(8 << 20).compression(compression);
    let db = options.open(STORE).unwrap();
    let expected: Contents = (0..KEYS).map(|i| (numbered(i), value(i, 0))).collect();
    expected.iter().for_each(|(key, value)| db.put(key, value).unwrap());
    db.flush().unwrap();
    drop(db);
    let path = files(&fs, ".segment").pop().unwrap();
    (fs, path, expected)
}

fn number(bytes: &[u8], at: usize) -> usize {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize
}

/// The offsets of a segment's top index and properties, from its footer.
fn areas(bytes: &[u8]) -> (usize, usize) {
    let footer = bytes.len() - 56;
    let (properties, top_len) = (number(bytes, footer + 16), number(bytes, footer + 32) & 0xffff_ffff);
    (properties - top_len, properties)
}

fn contains(range: &LostRange, key: &[u8]) -> bool {
    let bound = |bound: &std::ops::Bound<Vec<u8>>| bound.clone();
    (bound(&range.first), bound(&range.last)).contains(&key.to_vec())
}

fn open(fs: &SimFs) -> Db {
    tiny_on(fs).open(STORE).unwrap()
}

/// Repairs the store. Checks that all rows are right, losses were reported, and the store works.
#[track_caller]
fn assert_repaired(fs: &SimFs, path: &Path, expected: &Contents) -> RepairReport {
    let damaged = fs.read(path).unwrap();
    let report = tiny_on(fs).repair(STORE).unwrap();
    let aside = PathBuf::from(format!("{}.damaged", path.display()));
    assert_eq!(fs.read(&aside).unwrap(), damaged);
    assert!(fs.read(path).is_none());
    assert_eq!((report.bytes_set_aside, report.set_aside.len()), (damaged.len() as u64, 1));
    let again = tiny_on(fs).repair(STORE).unwrap();
    assert!(!again.rebuilt && again.set_aside.is_empty() && again.lost.is_empty(), "{again:?}");

    let db = open(fs);
    let found = contents(&db);
    assert_eq!(found.len() as u64, report.rows_salvaged);
    found.iter().for_each(|(key, value)| assert_eq!(expected.get(key), Some(value)));
    let missing: Vec<_> = expected.keys().filter(|key| !found.contains_key(*key)).collect();
    for key in &missing {
        let announced = report.lost.iter().any(|range| contains(range, key));
        assert!(announced, "{} of {:?}", key.escape_ascii(), report.lost);
    }
    assert_eq!(missing.is_empty(), report.lost.is_empty(), "{:?}", report.lost);
    assert_eq!(report.bytes_unreadable == 0, report.lost.is_empty());
    assert_holds(&db, &found);
    assert!(db.verify().unwrap().is_ok());
    db.put(b"new", b"1").unwrap();
    db.compact().unwrap();
    report
}

fn with_damage(fs: &SimFs, path: &Path, at: &[usize]) -> SimFs {
    let fs = fs.crash(Crash::Kill, 0);
    let mut bytes = fs.read(path).unwrap();
    at.iter().for_each(|at| bytes[*at] ^= 0x20);
    fs.write(path, bytes);
    fs
}

/// The rows around a damaged block come back, and the report names the keys that may be lost.
#[test]
fn rows_around_a_damaged_block_come_back_and_the_report_names_the_others() {
    for compression in [Compression::None, Compression::Lz4, Compression::Fsst] {
        let (sound, path, expected) = one_segment(compression);
        let (top, _) = areas(&sound.read(&path).unwrap());
        let mut rng = Rng::new(1);
        for _ in 0..8 {
            let fs = with_damage(&sound, &path, &[rng.below(top as u64 * 8 / 10) as usize]);
            let report = assert_repaired(&fs, &path, &expected);
            assert_eq!(report.lost.len(), 1, "{:?}", report.lost);
            assert!((KEYS - 12..KEYS).contains(&report.rows_salvaged), "{}", report.rows_salvaged);
            assert!((1..1000).contains(&report.bytes_unreadable), "{}", report.bytes_unreadable);
            assert!(expected.keys().filter(|key| contains(&report.lost[0], key)).count() < 12);
        }
        let many: Vec<usize> = (0..10).map(|_| rng.below(top as u64 * 8 / 10) as usize).collect();
        let report = assert_repaired(&with_damage(&sound, &path, &many), &path, &expected);
        assert!(report.lost.len() > 5 && report.rows_salvaged > KEYS - 120, "{}", report.rows_salvaged);
    }
}

#[test]
fn a_damaged_index_footer_or_property_costs_no_row() {
    for compression in [Compression::None, Compression::Lz4, Compression::Fsst] {
        let (sound, path, expected) = one_segment(compression);
        let len = sound.read(&path).unwrap().len();
        let (top, properties) = areas(&sound.read(&path).unwrap());
        let places: [&[usize]; 10] = [
            &[top - 30],
            &[top - 30, top - 700, top - 1500],
            &[top + 10],
            &[properties + 10],
            &[len - 1],
            &[len - 12],
            &[len - 13],
            &[len - 16],
            &[len - 45],
            &[top - 30, top + 10, len - 50],
        ];
        for at in places {
            for without_manifest in [false, true] {
                let fs = with_damage(&sound, &path, at);
                if without_manifest {
                    sidebloom::fs::Fs::remove(&fs, &PathBuf::from(STORE).join("MANIFEST")).unwrap();
                }
                let report = assert_repaired(&fs, &path, &expected);
                let lost = u64::from(!report.lost.is_empty());
                assert!(report.rows_salvaged == KEYS, "{at:?}: {} {lost}", report.rows_salvaged);
            }
        }
    }
}

#[test]
fn a_segment_of_a_newer_version_is_refused_by_name_and_left_as_it_is() {
    let (fs, path, _) = one_segment(Compression::None);
    let mut bytes = fs.read(&path).unwrap();
    let (footer, crc) = (bytes.len() - 56, bytes.len() - 4);
    bytes[footer + 40] = 8;
    let sealed = crc32fast::hash(&bytes[footer..crc]).to_le_bytes();
    bytes[crc..].copy_from_slice(&sealed);
    fs.write(&path, bytes.clone());
    for without_manifest in [false, true] {
        if without_manifest {
            sidebloom::fs::Fs::remove(&fs, &PathBuf::from(STORE).join("MANIFEST")).unwrap();
        }
        let error = tiny_on(&fs).repair(STORE).unwrap_err();
        assert!(matches!(error, Error::UnsupportedVersion { found: 8, .. }), "{error}");
        assert_eq!(fs.read(&path).unwrap(), bytes);
    }
}

#[test]
fn blocks_are_found_without_any_index_also_behind_a_damaged_one() {
    for compression in [Compression::None, Compression::Lz4, Compression::Fsst] {
        let (sound, path, expected) = one_segment(compression);
        let bytes = sound.read(&path).unwrap();
        let (top, properties) = areas(&bytes);
        // Neither partitions nor a top index: every byte between the data and the footer is damaged.
        let partitions = number(&bytes, top);
        let index: Vec<usize> = (partitions..properties).step_by(20).chain([100, 3000]).collect();
        let report = assert_repaired(&with_damage(&sound, &path, &index), &path, &expected);
        assert!(report.rows_salvaged > KEYS - 24, "{}", report.rows_salvaged);
        assert_eq!(report.lost.len(), 2, "{:?}", report.lost);
    }
}

#[test]
fn of_a_segment_that_is_cut_short_the_rows_before_the_cut_come_back() {
    let (sound, path, expected) = one_segment(Compression::Lz4);
    let bytes = sound.read(&path).unwrap();
    for len in [bytes.len() / 2, bytes.len() / 3, 700, 10] {
        let fs = sound.crash(Crash::Kill, 0);
        fs.write(&path, &bytes[..len]);
        let report = assert_repaired(&fs, &path, &expected);
        let at_least = KEYS * len as u64 / bytes.len() as u64;
        assert!(report.rows_salvaged + 24 >= at_least, "{} of {at_least}", report.rows_salvaged);
    }
}

/// A quarantined segment is salvaged, and returns to a level where it is in order.
#[test]
fn a_segment_in_quarantine_is_salvaged_and_returns_to_a_level_in_order() {
    let (fs, path, mut expected) = one_segment(Compression::None);
    let fs = with_damage(&fs, &path, &[5000]);
    let db = open(&fs);
    assert!(db.compact().is_ok(), "a lone segment needs no merge");
    db.put(numbered(5), b"newer").unwrap();
    assert!(db.compact().is_err());
    db.delete(numbered(6)).unwrap();
    db.compact().unwrap();
    assert_eq!(db.stats().segments_quarantined, 1);
    drop(db);
    expected.insert(numbered(5), b"newer".to_vec());
    expected.remove(&numbered(6));
    let report = tiny_on(&fs).repair(STORE).unwrap();
    assert!(report.rows_salvaged > KEYS - 12 && report.lost.len() == 1, "{report:?}");
    expected.retain(|key, _| !contains(&report.lost[0], key));
    let db = open(&fs);
    assert_eq!(db.stats().segments_quarantined, 0);
    assert_holds(&db, &expected);
    (0..30).for_each(|i| {
        db.put(numbered(i * 60), b"x").unwrap();
        expected.insert(numbered(i * 60), b"x".to_vec());
        db.flush().unwrap();
    });
    db.compact().unwrap();
    assert_holds(&db, &expected);
}

/// Segments that return from quarantine neither hide newer rows nor bring back deleted ones. Segments with
/// bad sectors are quarantined and stay so while the store takes writes and compacts around them, until
/// repair finds them readable.
#[test]
fn segments_back_from_quarantine_bring_no_old_or_deleted_row_back() {
    let (mut went, mut returned) = (0, 0);
    for seed in 0..sized(8, 24) {
        let fs = SimFs::new();
        let open = || tiny_on(&fs).compression(Compression::None).open(STORE).unwrap();
        let (mut rng, mut expected) = (Rng::new(seed), Contents::new());
        for round in 0..6u8 {
            let db = open();
            for step in 0..30u8 {
                let first = rng.below(50);
                for i in first..=first + rng.below(6) {
                    if rng.percent(25) {
                        db.delete(numbered(i)).unwrap();
                        expected.remove(&numbered(i));
                    } else {
                        let value = [round, step].repeat(400); // Four or five rows fill a segment.
                        db.put(numbered(i), &value).unwrap();
                        expected.insert(numbered(i), value);
                    }
                }
                db.flush().unwrap();
                let from = rng.below(56);
                match rng.below(10) {
                    0 => {
                        let segments = files(&fs, ".segment");
                        fs.make_unreadable(rng.pick(&segments), 0..1);
                        let _ = db.compact();
                    }
                    1..4 => _ = db.compact_range(numbered(from)..=numbered(from + rng.below(10))),
                    _ => {}
                }
            }
            let in_quarantine = db.stats().segments_quarantined;
            drop(db);
            fs.heal();
            let report = tiny_on(&fs).repair(STORE).unwrap();
            assert!(report.lost.is_empty(), "{report:?}");
            let db = open();
            went += in_quarantine;
            returned += in_quarantine.saturating_sub(db.stats().segments_quarantined);
            assert_holds(&db, &expected);
            db.compact().unwrap();
            assert_holds(&db, &expected);
        }
    }
    assert!(returned > sized(16, 50) && went > returned, "{returned} of {went} returned to a level");
}

#[test]
fn damage_in_a_segment_of_any_level_costs_the_rows_of_its_block_only() {
    let sound = SimFs::new();
    let db = open(&sound);
    let filled = fill_deep(&db, 4);
    drop(db);
    let segments = files(&sound, ".segment");
    for (round, path) in segments.iter().step_by((segments.len() / 12).max(1)).enumerate() {
        let mut rng = Rng::new(round as u64);
        let len = sound.read(path).unwrap().len();
        // Every third time in the footer's last fields, which include its version.
        let from = if round % 3 == 1 { len - 16 } else { 0 };
        let at = from + rng.below((len - from) as u64) as usize;
        let fs = with_damage(&sound, path, &[at]);
        if round % 3 == 0 {
            sidebloom::fs::Fs::remove(&fs, &PathBuf::from(STORE).join("MANIFEST")).unwrap();
        }
        let report = tiny_on(&fs).repair(STORE).unwrap();
        assert!(report.lost.len() <= 1, "{:?}", report.lost);
        let db = open(&fs);
        let found = contents(&db);
        let announced = |key: &[u8]| report.lost.iter().any(|range| contains(range, key));
        let mut differ: Vec<_> = filled.keys().chain(found.keys()).collect();
        differ.retain(|key| filled.get(*key) != found.get(*key));
        for key in &differ {
            assert!(announced(key), "{}: {:?}", key.escape_ascii(), report.lost);
        }
        assert!(differ.len() < 24, "{}", differ.len());
        assert!(db.verify().unwrap().is_ok());
        assert_holds(&db, &found);
        db.compact().unwrap();
        assert_holds(&db, &found);
    }
}
