//! I6: every byte on disk is covered by a checksum. With a flipped bit, a read returns the right answer or an
//! error that names the file and the offset; never a wrong value or a panic.

use crate::support::{Contents, Crash, Rng, STORE, Sequence, SimFs, damage_of, tiny_on};
use sidebloom::{Compression, Db, Error, Options, Result};
use std::path::PathBuf;

const BATCHES: u64 = 60;

/// An open store's disk: a manifest with edits, segments on several levels, sidecars, and a log with records.
struct Fixture {
    fs: SimFs,
    sequence: Sequence,
    expected: Contents,
}

fn options(fs: &SimFs) -> Options {
    tiny_on(fs).compression(Compression::Lz4)
}

impl Fixture {
    fn new(seed: u64) -> Fixture {
        let (live, sequence) = (SimFs::new(), Sequence(seed));
        let db = options(&live).open(STORE).unwrap();
        (1..=BATCHES).for_each(|i| db.write(sequence.batch(i)).unwrap());
        db.flush().unwrap();
        (BATCHES + 1..=BATCHES + 6).for_each(|i| db.write(sequence.batch(i)).unwrap());
        db.wait_for_compaction().unwrap();
        let fs = live.crash(Crash::Kill, 0);
        Fixture { fs, sequence, expected: sequence.after(BATCHES + 6) }
    }

    fn files(&self, ending: &str) -> Vec<PathBuf> {
        let files = self.fs.files();
        files.into_iter().filter(|path| path.to_str().unwrap().ends_with(ending)).collect()
    }

    /// The disk with one byte of one file changed.
    fn flipped(&self, path: &PathBuf, at: usize, mask: u8) -> SimFs {
        let fs = self.fs.crash(Crash::Kill, 0);
        let mut bytes = fs.read(path).unwrap();
        bytes[at] ^= mask;
        fs.write(path, bytes);
        fs
    }

    /// Calls `check` with the disk damaged at up to `samples` bytes of each file, and at each of the last 16,
    /// where a segment has its version.
    fn each_flip(&self, ending: &str, samples: usize, check: impl Fn(&SimFs, &PathBuf, usize)) {
        let mut rng = Rng::new(self.sequence.0);
        let files = self.files(ending);
        assert!(!files.is_empty());
        for path in files {
            let len = self.fs.read(&path).unwrap().len();
            let step = len.div_ceil(samples).max(1);
            let sampled = (rng.below(step as u64) as usize..len).step_by(step);
            for at in sampled.chain(len.saturating_sub(16)..len) {
                let bit = 1 << rng.below(8);
                let mask = *rng.pick(&[0xff, bit, bit]);
                let fs = self.flipped(&path, at, mask);
                let outcome =
                    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(&fs, &path, at)));
                assert!(outcome.is_ok(), "byte {at} of {len} of {} changed by {mask:#x}", path.display());
            }
        }
    }
}

/// Checks that the error names the damaged file and an offset within it.
#[track_caller]
fn assert_names(error: &Error, path: &PathBuf, fs: &SimFs) {
    let (file, offset) = damage_of(error);
    assert_eq!(&PathBuf::from(file), path, "{error}");
    assert!(offset <= fs.read(path).unwrap().len() as u64, "{error}");
}

/// Checks that each answer is right or an error that names the file. Returns whether there was an error.
fn right_or_named(db: &Db, expected: &Contents, path: &PathBuf, fs: &SimFs) -> bool {
    let mut damaged = false;
    for i in 0..61 {
        let key = format!("key{i:03}").into_bytes();
        match db.get(&key) {
            Ok(value) => assert_eq!(value.as_deref(), expected.get(&key).map(Vec::as_slice)),
            Err(error) => {
                assert_names(&error, path, fs);
                damaged = true;
            }
        }
    }
    let backwards: Vec<_> = db.iter().rev().collect();
    for (walk, reverse) in [(db.iter().collect::<Vec<_>>(), false), (backwards, true)] {
        let mut right: Vec<_> = expected.iter().collect();
        if reverse {
            right.reverse();
        }
        for (i, step) in walk.iter().enumerate() {
            match step {
                Ok((key, value)) => assert_eq!((key, &value.to_vec()), right[i]),
                Err(error) => {
                    assert_names(error, path, fs);
                    assert_eq!(i, walk.len() - 1, "a walk ends with its error");
                    damaged = true;
                }
            }
        }
        let failed = walk.last().is_some_and(Result::is_err);
        assert!(failed || walk.len() == right.len(), "a walk ended early without an error");
    }
    damaged
}

/// A changed byte of a segment never gives a wrong answer, and `verify` finds each one.
#[test]
fn i6_a_changed_byte_of_a_segment_gives_no_wrong_answer_and_is_found() {
    for seed in [1, 2] {
        Fixture::new(seed).each_flip(".segment", 150, |fs, path, _| {
            let fixture = Sequence(seed).after(BATCHES + 6);
            match options(fs).read_only(true).open(STORE) {
                Err(error) => assert_names(&error, path, fs),
                Ok(db) => {
                    right_or_named(&db, &fixture, path, fs);
                    let problems = db.verify().unwrap().problems;
                    assert!(!problems.is_empty(), "verify did not find it");
                    problems.iter().for_each(|problem| assert_names(problem, path, fs));
                }
            }
        });
    }
}

#[test]
fn i6_compaction_of_a_damaged_segment_says_so_and_writes_nothing_wrong() {
    let fixture = Fixture::new(3);
    fixture.each_flip(".segment", 25, |fs, path, _| {
        let Ok(db) = options(fs).open(STORE) else { return };
        if let Err(error) = db.compact() {
            let text = error.to_string();
            assert!(text.contains(path.to_str().unwrap()) && text.contains("offset"), "{text}");
            right_or_named(&db, &fixture.expected, path, fs);
        } else {
            // It was compacted before the damaged byte was reached, or compaction does not read that byte.
            right_or_named(&db, &fixture.expected, path, fs);
        }
    });
}

#[test]
fn i6_a_changed_byte_of_the_manifest_is_noticed() {
    for seed in [4, 5] {
        let fixture = Fixture::new(seed);
        fixture.each_flip("MANIFEST", 3000, |fs, path, _| {
            let before = fs.read(path);
            let error = options(fs).open(STORE).map(|_| ()).unwrap_err();
            assert_names(&error, path, fs);
            assert_eq!(fs.read(path), before, "left as it is");
        });
    }
}

#[test]
fn i6_a_changed_byte_of_the_log_is_refused_in_the_last_record_too() {
    Fixture::new(6).each_flip(".wal", 3000, |fs, path, at| {
        let error = options(fs).open(STORE).map(|_| ()).unwrap_err();
        assert_names(&error, path, fs);
        let (_, offset) = damage_of(&error);
        assert!(offset as usize <= at, "damage at {at} is reported at {offset}");
    });
}

#[test]
fn i6_a_log_cut_short_anywhere_gives_a_prefix_of_whole_batches() {
    let fixture = Fixture::new(8);
    let path = fixture.files(".wal").pop().unwrap();
    let whole = fixture.fs.read(&path).unwrap();
    let mut before = 0;
    for len in 0..=whole.len() {
        let fs = fixture.fs.crash(Crash::Kill, 0);
        fs.write(&path, &whole[..len]);
        let found = fixture.sequence.prefix_of(&options(&fs).open(STORE).unwrap());
        assert!(found >= before.max(BATCHES), "{found} batches of {len} bytes, {before} of one byte less");
        before = found;
    }
    assert_eq!(before, BATCHES + 6);
}

#[test]
fn i6_a_changed_byte_of_a_sidecar_changes_no_answer() {
    let fixture = Fixture::new(9);
    fixture.each_flip(".filter", 60, |fs, path, _| {
        let db = options(fs).open(STORE).unwrap();
        assert!(!right_or_named(&db, &fixture.expected, path, fs));
        db.warm().unwrap();
        assert!(!right_or_named(&db, &fixture.expected, path, fs));
    });
}

#[test]
fn i6_a_file_cut_short_or_missing_or_of_another_number_is_named() {
    let fixture = Fixture::new(10);
    let other = Fixture::new(12);
    let other = other.fs.read(&other.files(".segment")[0]).unwrap();
    let mut rng = Rng::new(1);
    for path in &fixture.files(".segment") {
        let bytes = fixture.fs.read(path).unwrap();
        let cut = bytes[..rng.below(bytes.len() as u64) as usize].to_vec();
        for wrong in [vec![], cut, vec![0; bytes.len()], [&bytes[..], b"more"].concat(), other.clone()] {
            let fs = fixture.fs.crash(Crash::Kill, 0);
            fs.write(path, wrong);
            // Opening checks only the length; the first read of the segment reports other damage.
            let read = |db: Db| db.iter().find_map(Result::err).unwrap();
            assert_names(&options(&fs).open(STORE).map_or_else(|error| error, read), path, &fs);
        }
        let fs = fixture.fs.crash(Crash::Kill, 0);
        sidebloom::fs::Fs::remove(&fs, path).unwrap();
        let error = options(&fs).open(STORE).map(|_| ()).unwrap_err();
        assert_eq!(damage_of(&error).0, path.display().to_string());
        assert!(error.to_string().contains("missing"), "{error}");
    }
}

#[test]
fn i6_verify_compares_the_manifest_on_disk_with_what_is_open() {
    let fixture = Fixture::new(11);
    let fs = &fixture.fs;
    let db = options(fs).open(STORE).unwrap();
    assert!(db.verify().unwrap().is_ok());
    let manifest = PathBuf::from(STORE).join("MANIFEST");
    let mut bytes = fs.read(&manifest).unwrap();
    bytes[20] ^= 1;
    fs.write(&manifest, bytes);
    let problems = db.verify().unwrap().problems;
    assert_names(&problems[0], &manifest, fs);
}

/// A segment from another time under the name of a present one is an error, and its rows are not shown: a
/// valid file in place of another one, as after a partial restore of a backup. Only the digest distinguishes
/// the two.
#[test]
fn i6_a_segment_of_another_time_under_the_same_name_is_an_error() {
    let store = |value: &[u8]| {
        let fs = SimFs::new();
        let db = tiny_on(&fs).open(STORE).unwrap();
        (0..20).for_each(|i| db.put(format!("key{i:02}"), value).unwrap());
        db.flush().unwrap();
        drop(db);
        let segment =
            fs.files().into_iter().find(|path| path.to_str().unwrap().ends_with(".segment")).unwrap();
        (fs, segment)
    };
    let (now, path) = store(b"the new value");
    let bytes = now.read(&path).unwrap().len();
    // The hash of keys is random, and decides how small a block gets.
    let (then, same) = std::iter::repeat_with(|| store(b"the old value"))
        .find(|(fs, path)| fs.read(path).unwrap().len() == bytes)
        .unwrap();
    assert_eq!(path, same);
    now.write(&path, then.read(&same).unwrap());
    for read_only in [true, false] {
        let db = tiny_on(&now).read_only(read_only).open(STORE).unwrap();
        assert_names(&db.get("key07").unwrap_err(), &path, &now);
        assert_names(&db.iter().next().unwrap().unwrap_err(), &path, &now);
        assert!(!db.verify().unwrap().is_ok());
    }
}

/// A segment that a copy of the store wrote under the same name is refused.
#[test]
fn a_segment_that_a_copy_of_the_store_wrote_under_its_name_is_refused() {
    let disk = SimFs::new();
    drop(tiny_on(&disk).open(STORE).unwrap());
    let copy = disk.crash(Crash::Kill, 0);
    for (disk, value) in [(&disk, "1"), (&copy, "2")] {
        let db = tiny_on(disk).compression(Compression::None).open(STORE).unwrap();
        db.put("key", value).unwrap();
        db.flush().unwrap();
    }
    let is_segment = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "segment");
    let path = disk.files().into_iter().find(is_segment).unwrap();
    let (ours, theirs) = (disk.read(&path).unwrap(), copy.read(&path).unwrap());
    assert!(ours != theirs && ours.len() == theirs.len());
    disk.write(&path, theirs);
    match tiny_on(&disk).open(STORE).unwrap().get("key") {
        Err(Error::Corruption { file, what, .. }) => {
            assert!(file == path && what.contains("another segment"), "{what}");
        }
        other => panic!("it answers from it: {other:?}"),
    }
}
