//! I1 and I2: a sidecar is trusted only if it is exactly its segment's. Whatever happens to sidecars, the
//! store opens and gives the same answers; it counts and logs bad sidecars, and rebuilds them.

use crate::support::{
    Contents, Crash, Fault, OpKind, Rng, STORE, SimFs, assert_holds, contents, copy_store, count_warnings,
    eventually, fast_dir, files_with, fill_deep, fingerprints, sized, tiny, tiny_on, warnings_about,
};
use sidebloom::{Db, FilterPolicy, Options, Residency};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const HEADER_BYTES: usize = 4096;
const VERSION_AT: usize = 8;
const KIND_AT: usize = 12;
const EXPECTED_FPR_AT: usize = 104;
const HEADER_CRC_AT: usize = HEADER_BYTES - 4;

fn options() -> Options {
    tiny().memtable_bytes(32 << 10)
}

/// A closed store with many segments, including tombstones, and valid sidecars.
fn filled(dir: &Path, salt: u8) -> Contents {
    let db = options().open(dir).unwrap();
    for i in 0..2000u32 {
        db.put(format!("key{:05}", i * 7919 % 2000), [i as u8 ^ salt; 30]).unwrap();
    }
    (0..2000).step_by(9).for_each(|i| db.delete(format!("key{i:05}")).unwrap());
    db.flush().unwrap();
    db.wait_for_compaction().unwrap();
    contents(&db)
}

fn is_whole(db: &Db) -> bool {
    let levels = db.stats().levels;
    let verified = levels.iter().map(|l| l.filters).sum::<usize>();
    verified == levels.iter().map(|l| l.segments).sum::<usize>() && !db.stats().levels.is_empty()
}

/// Opens the store, which has `bad` unusable sidecars, and checks everything that I2 promises.
fn assert_heals(dir: &Path, bad: &[PathBuf], expected: &Contents, options: Options) {
    count_warnings();
    let sound: Vec<_> = files_with(dir, ".segment");
    let before: Vec<usize> = bad.iter().map(|path| warnings_about(path)).collect();
    let segments = fingerprints(dir, ".segment");
    let db = options.clone().open(dir).unwrap();
    assert_holds(&db, expected);
    eventually("all sidecars are sound again", || is_whole(&db));
    assert_holds(&db, expected);
    eventually("every bad sidecar is counted", || db.stats().filters_unavailable as usize >= bad.len());
    let stats = db.stats();
    assert_eq!(stats.filters_unavailable as usize, bad.len());
    assert!(stats.filter_negatives > 0, "the filters answer again");
    for (path, before) in bad.iter().zip(before) {
        assert_eq!(warnings_about(path) - before, 1, "{}", path.display());
    }
    let report = db.verify().unwrap();
    assert!(report.is_ok() && report.unusable_filters.is_empty(), "{report:?}");
    drop(db);

    assert_eq!(fingerprints(dir, ".segment"), segments, "no segment was touched");
    assert_eq!(files_with(dir, ".filter").len(), sound.len());
    assert!(files_with(dir, ".tmp").is_empty());
    let db = options.open(dir).unwrap();
    db.warm().unwrap();
    assert_eq!(db.stats().filters_unavailable, 0, "what was rebuilt is sound");
    assert_holds(&db, expected);
}

/// Damages every sidecar of a copy of a store in the same way, then only the last two of another copy.
fn check(damage: impl Fn(&[PathBuf], &mut Rng) -> Vec<PathBuf>) {
    let dir = fast_dir();
    let sound = dir.path().join("sound");
    let expected = filled(&sound, 0);
    assert!(files_with(&sound, ".filter").len() >= 4);
    for (name, only_one, residency) in [
        ("all", false, Residency::Mapped),
        ("one", true, Residency::Mapped),
        ("pinned", false, Residency::Pinned),
    ] {
        let copy = dir.path().join(name);
        copy_store(&sound, &copy);
        let mut sidecars = files_with(&copy, ".filter");
        if only_one {
            sidecars.drain(..sidecars.len() - 2);
        }
        let mut rng = Rng::new(7);
        let bad = damage(&sidecars, &mut rng);
        assert_heals(&copy, &bad, &expected, options().residency(residency));
    }
}

/// Damages the bytes of each file.
fn check_bytes(damage: impl Fn(&mut Vec<u8>, &mut Rng)) {
    check(|sidecars, rng| {
        for path in sidecars {
            let mut bytes = fs::read(path).unwrap();
            damage(&mut bytes, rng);
            fs::write(path, bytes).unwrap();
        }
        sidecars.to_vec()
    });
}

#[test]
fn i2_missing_sidecars_change_no_answer_and_are_rebuilt() {
    check(|sidecars, _| {
        sidecars.iter().for_each(|path| fs::remove_file(path).unwrap());
        sidecars.to_vec()
    });
}

#[test]
fn i2_empty_sidecars_change_no_answer_and_are_rebuilt() {
    check_bytes(|bytes, _| bytes.clear());
}

#[test]
fn i2_truncated_sidecars_change_no_answer_and_are_rebuilt() {
    check_bytes(|bytes, rng| bytes.truncate(rng.below(bytes.len() as u64) as usize));
    check_bytes(|bytes, _| _ = bytes.pop());
    check_bytes(|bytes, _| bytes.truncate(HEADER_BYTES));
}

#[test]
fn i2_longer_sidecars_change_no_answer_and_are_rebuilt() {
    check_bytes(|bytes, _| bytes.push(0));
}

#[test]
fn i1_zeroed_sidecars_are_not_believed() {
    check_bytes(|bytes, _| bytes.fill(0));
    check_bytes(|bytes, _| bytes[HEADER_BYTES..].fill(0));
    check_bytes(|bytes, _| {
        let digest = bytes.len() - 8;
        bytes[HEADER_BYTES..digest].fill(0);
    });
}

#[test]
fn i1_a_bit_flipped_in_the_header_is_noticed_when_the_store_opens() {
    check_bytes(|bytes, rng| bytes[rng.below(HEADER_BYTES as u64) as usize] ^= 1 << rng.below(8));
    check_bytes(|bytes, rng| bytes[rng.below(96) as usize] ^= 1 << rng.below(8));
}

/// A bit flipped in the lines or in their digest is noticed before a line is probed.
#[test]
fn i1_a_flipped_bit_in_lines_or_digest_is_noticed_before_a_probe() {
    for _ in 0..3 {
        check_bytes(|bytes, rng| {
            let at = HEADER_BYTES + rng.below((bytes.len() - HEADER_BYTES) as u64) as usize;
            bytes[at] ^= 1 << rng.below(8);
        });
    }
    check_bytes(|bytes, _| *bytes.last_mut().unwrap() ^= 0x80);
}

#[test]
fn i1_sidecars_swapped_between_segments_are_not_believed() {
    check(|sidecars, _| {
        let (first, last) = (&sidecars[0], &sidecars[sidecars.len() - 1]);
        let [a, b] = [first, last].map(|path| fs::read(path).unwrap());
        fs::write(first, b).unwrap();
        fs::write(last, a).unwrap();
        vec![first.clone(), last.clone()]
    });
}

#[test]
fn i1_sidecars_of_another_store_are_not_believed_though_the_numbers_match() {
    let other = fast_dir();
    filled(other.path(), 0);
    let foreign = fs::read(files_with(other.path(), ".filter").pop().unwrap()).unwrap();
    check(|sidecars, _| {
        for path in sidecars {
            let same_number = other.path().join(path.file_name().unwrap());
            fs::write(path, fs::read(same_number).unwrap_or_else(|_| foreign.clone())).unwrap();
        }
        sidecars.to_vec()
    });
}

/// Sidecars of an earlier or a later version are not read, and are rebuilt.
#[test]
fn i2_sidecars_of_an_earlier_or_a_later_version_are_rebuilt_unread() {
    let (kind_at, hash_at) = (KIND_AT, KIND_AT + 1);
    for (at, code) in [(VERSION_AT, 1), (VERSION_AT, 2), (VERSION_AT, 200), (kind_at, 8), (hash_at, 5)] {
        check_bytes(|bytes, _| {
            bytes[at] = code;
            if code < 3 {
                // Parity filters had another number, and the rate was missing.
                bytes[KIND_AT] = 2;
                bytes[EXPECTED_FPR_AT..EXPECTED_FPR_AT + 8].fill(0);
            }
            let crc = crc32fast::hash(&bytes[..HEADER_CRC_AT]).to_le_bytes();
            bytes[HEADER_CRC_AT..HEADER_BYTES].copy_from_slice(&crc);
        });
    }
}

#[test]
fn i2_a_sidecar_that_is_a_directory_is_no_reason_not_to_open() {
    let dir = fast_dir();
    let expected = filled(dir.path(), 0);
    let path = files_with(dir.path(), ".filter").pop().unwrap();
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let db = options().read_only(true).open(dir.path()).unwrap();
    assert_holds(&db, &expected);
    eventually("the directory is counted", || db.stats().filters_unavailable > 0);
    assert_eq!(db.stats().filters_unavailable, 1);
}

/// Half-written sidecars and orphans are removed when the store opens, and nothing else is.
#[test]
fn i2_half_written_and_orphan_sidecars_are_removed_and_nothing_else() {
    let dir = fast_dir();
    let expected = filled(dir.path(), 0);
    let sound = files_with(dir.path(), ".filter");
    let half_written = PathBuf::from(format!("{}.tmp", sound[0].display()));
    let orphans = [dir.path().join("000000.filter"), dir.path().join("999999.filter")];
    for path in orphans.iter().chain([&half_written]) {
        fs::copy(&sound[0], path).unwrap();
    }
    let foreign = [dir.path().join("notes.tmp"), dir.path().join("notes.filter")];
    foreign.iter().for_each(|path| fs::write(path, "not a store's").unwrap());
    let db = options().open(dir.path()).unwrap();
    assert!(orphans.iter().chain([&half_written]).all(|path| !path.exists()));
    assert!(foreign.iter().all(|path| path.exists()));
    assert!(sound.iter().all(|path| path.exists()));
    assert_holds(&db, &expected);
    assert_eq!(db.stats().filters_unavailable, 0);
}

/// A read-only opening of a store with damaged sidecars answers right, and changes nothing.
#[test]
fn i2_a_read_only_opening_of_damaged_sidecars_answers_right() {
    count_warnings();
    let dir = fast_dir();
    let expected = filled(dir.path(), 0);
    let sidecars = files_with(dir.path(), ".filter");
    for (i, path) in sidecars.iter().enumerate() {
        let mut bytes = fs::read(path).unwrap();
        match i % 3 {
            0 => fs::remove_file(path).unwrap(),
            1 => {
                bytes[HEADER_BYTES + 70] ^= 1;
                fs::write(path, bytes).unwrap();
            }
            _ => fs::write(path, &bytes[..bytes.len() / 2]).unwrap(),
        }
    }
    let before = fingerprints(dir.path(), "");
    let db = options().read_only(true).open(dir.path()).unwrap();
    assert_holds(&db, &expected);
    db.warm().unwrap();
    eventually("every bad sidecar is counted", || db.stats().filters_unavailable >= sidecars.len() as u64);
    assert_holds(&db, &expected);
    assert!(db.verify().unwrap().is_ok());
    assert_eq!(db.verify().unwrap().unusable_filters.len(), sidecars.len());
    drop(db);
    assert_eq!(fingerprints(dir.path(), ""), before);
    for path in &sidecars {
        assert_eq!(warnings_about(path), 1, "{}", path.display());
    }
}

#[test]
fn i2_warming_while_the_background_checks_warns_of_each_sidecar_once() {
    count_warnings();
    for seed in 0..sized(10, 20) {
        let dir = fast_dir();
        let expected = filled(dir.path(), 0);
        let sidecars = files_with(dir.path(), ".filter");
        for path in &sidecars {
            let mut bytes = fs::read(path).unwrap();
            bytes[HEADER_BYTES + seed] ^= 4;
            fs::write(path, bytes).unwrap();
        }
        let db = options().open(dir.path()).unwrap();
        std::thread::scope(|scope| {
            (0..3).for_each(|_| _ = scope.spawn(|| db.warm().unwrap()));
        });
        eventually("all sidecars are sound again", || is_whole(&db));
        // A thread may have removed a bad sidecar from the view but not logged it yet.
        eventually("every bad sidecar is counted", || {
            db.stats().filters_unavailable as usize >= sidecars.len()
        });
        sidecars.iter().for_each(|path| assert_eq!(warnings_about(path), 1));
        assert_eq!(db.stats().filters_unavailable as usize, sidecars.len());
        assert_holds(&db, &expected);
    }
}

#[test]
fn i2_sidecars_lost_while_compactions_run_are_rebuilt_and_stay() {
    for _ in 0..5 {
        let dir = fast_dir();
        filled(dir.path(), 0);
        files_with(dir.path(), ".filter").iter().for_each(|path| fs::remove_file(path).unwrap());
        let db = options().segment_bytes(4096).open(dir.path()).unwrap();
        for i in 0..1000u32 {
            db.put(format!("key{:05}", i * 31 % 2000), [1; 30]).unwrap();
        }
        db.flush().unwrap();
        db.wait_for_compaction().unwrap();
        eventually("every segment has its filter", || is_whole(&db));
        assert_holds(&db, &contents(&db));
        assert!(db.verify().unwrap().unusable_filters.is_empty());
    }
}

#[test]
fn i2_sidecars_switched_off_are_neither_asked_nor_written_nor_removed() {
    let dir = fast_dir();
    let expected = filled(dir.path(), 0);
    let before = fingerprints(dir.path(), ".filter");
    let db = options().filter_policy(FilterPolicy::OFF).open(dir.path()).unwrap();
    assert_holds(&db, &expected);
    db.warm().unwrap();
    assert_eq!((db.stats().filter_probes, db.stats().filters_unavailable), (0, 0));
    drop(db);
    assert_eq!(fingerprints(dir.path(), ".filter"), before);
}

/// A sidecar is durable before the manifest names its segment, so nothing needs rebuilding after a power cut.
#[test]
fn i2_a_power_cut_after_a_flush_a_compaction_or_a_rebuild_costs_no_filter() {
    for seed in 0..40 {
        let fs = SimFs::new();
        let db = tiny_on(&fs).open(STORE).unwrap();
        for i in 0..600u32 {
            db.put(format!("key{:05}", i * 7919 % 600), [seed as u8; 30]).unwrap();
        }
        db.flush().unwrap();
        if seed % 2 == 0 {
            db.compact().unwrap();
        }
        db.wait_for_compaction().unwrap();
        let rebuilds = seed % 4 < 2;
        if rebuilds {
            db.rebuild_filters(FilterPolicy::blocked_bloom(7.0)).unwrap();
        }
        let after = fs.crash(Crash::Power, seed);
        drop(db);
        let db = tiny_on(&after).open(STORE).unwrap();
        db.warm().unwrap();
        assert_eq!(db.stats().filters_unavailable, 0, "seed {seed}");
        assert!(is_whole(&db), "seed {seed}");
        let kinds = db.stats().levels.into_iter().flat_map(|level| level.filter_kinds);
        assert!(!rebuilds || kinds.into_iter().all(|kind| kind.starts_with("blocked-bloom")), "seed {seed}");
    }
}

/// Forbids mapping from here on.
fn refuse_maps(fs: &SimFs) {
    fs.fail(Fault { forever: true, ..Fault::once(OpKind::Map, 0) });
}

#[test]
fn pinned_sidecars_are_never_mapped() {
    let fs = SimFs::new();
    let expected = fill_deep(&tiny_on(&fs).residency(Residency::Pinned).open(STORE).unwrap(), 5);
    refuse_maps(&fs);
    let db = tiny_on(&fs).residency(Residency::Pinned).open(STORE).unwrap();
    db.warm().unwrap();
    assert!(is_whole(&db));
    assert_eq!(db.stats().filters_unavailable, 0);
    assert_holds(&db, &expected);
}

/// Sidecars that cannot be written fail no write, and delay no compaction.
#[test]
fn sidecars_that_cannot_be_written_fail_no_write_and_stop_no_compaction() {
    for &threads in sized(&[4][..], &[2, 4]) {
        let dir = fast_dir();
        let db = tiny().background_threads(threads).open(dir.path()).unwrap();
        // Directories in place of the sidecars to be written.
        (1..30_000).for_each(|id| fs::create_dir(dir.path().join(format!("{id:06}.filter.tmp"))).unwrap());
        for i in 0..20_000 {
            db.put(Rng::new(i).next().to_be_bytes(), [7; 40]).unwrap();
            if i % sized(10_000, 4000) == 3999 {
                // The background retries after half a second, and repeatedly from then on.
                std::thread::sleep(Duration::from_millis(600));
            }
        }
        db.flush().unwrap();
        eventually("compaction keeps up", || db.stats().levels[0].segments < 4);
        assert_eq!(db.iter().count().unwrap(), 20_000);
        assert!(files_with(dir.path(), ".filter").is_empty() && db.stats().filters_unavailable > 0);
    }
}
