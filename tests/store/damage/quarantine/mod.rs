//! An unreadable block does not stop the store. Its segment is quarantined, writes still succeed, readable
//! blocks serve reads, and a key that the damaged block may hold gives the error, never an older version.

mod compaction;

use crate::support::{
    Contents, Crash, Fault, Layout, OpKind, Rng, STORE, SimFs, contents, damage_of, eventually, fill_deep,
    sized, tiny_on,
};
use sidebloom::filter::Verdict;
use sidebloom::fs::Fs;
use sidebloom::{Compression, Db, Error, FilterPolicy, Options};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;

fn options(fs: &SimFs) -> Options {
    tiny_on(fs)
}

fn files(fs: &SimFs, ending: &str) -> Vec<PathBuf> {
    fs.files().into_iter().filter(|path| path.to_str().unwrap().ends_with(ending)).collect()
}

/// Flips a bit in each of these bytes.
fn damage(fs: &SimFs, path: &PathBuf, at: impl IntoIterator<Item = usize>) {
    let mut bytes = fs.read(path).unwrap();
    at.into_iter().for_each(|at| bytes[at] ^= 4);
    fs.write(path, bytes);
}

fn numbered(i: u64) -> Vec<u8> {
    format!("key{i:05}").into_bytes()
}

/// 40 bytes that do not compress.
fn value(rng: &mut Rng) -> Vec<u8> {
    (0..5).flat_map(|_| rng.next().to_le_bytes()).collect()
}

/// Checks that each answer is right or an error that names the file. Returns how many keys gave the error.
#[track_caller]
fn errors(db: &Db, expected: &Contents, path: &Path) -> usize {
    unreadable(db, expected, path).len()
}

/// Checks that each answer is right or an error that names the file. Returns the keys that gave the error.
#[track_caller]
fn unreadable(db: &Db, expected: &Contents, path: &Path) -> BTreeSet<Vec<u8>> {
    let mut errors = BTreeSet::new();
    let keys: BTreeSet<_> = (0..3000).map(numbered).chain(expected.keys().cloned()).collect();
    for key in keys {
        match db.get(&key) {
            Ok(found) => {
                assert_eq!(found.as_deref(), expected.get(&key).map(Vec::as_slice), "{}", key.escape_ascii());
            }
            Err(error) => {
                assert_eq!(damage_of(&error).0, path.display().to_string());
                assert_eq!(db.may_contain(&key), Verdict::Maybe);
                errors.insert(key);
            }
        }
    }
    errors
}

/// Checks that each row of an iteration is right and that only an error ends it early.
#[track_caller]
fn assert_walks(db: &Db, expected: &Contents, path: &Path) {
    let mut right = expected.iter();
    for row in db.iter() {
        match row {
            Ok((key, value)) => assert_eq!(Some((&key, &value.to_vec())), right.next()),
            Err(error) => {
                assert_eq!(damage_of(&error).0, path.display().to_string());
                return;
            }
        }
    }
    assert_eq!(right.next(), None);
}

/// Checks that an iteration from or to a key gives its row or the error of the damaged file.
#[track_caller]
fn assert_walks_from_keys(db: &Db, expected: &Contents, path: &Path) {
    for (key, value) in expected {
        let (to, from) = (db.range(..=key.clone()).next_back(), db.range(key.clone()..).next());
        for row in [
            to,
            from,
            db.range(key.clone()..=key.clone()).next(),
            db.range(key.clone()..=key.clone()).next_back(),
        ] {
            match row {
                Some(Ok((found, of))) => assert_eq!((&found, &of.to_vec()), (key, value)),
                Some(Err(error)) => assert_eq!(damage_of(&error).0, path.display().to_string()),
                None => panic!("{} is missing", key.escape_ascii()),
            }
        }
    }
}

/// The keys that one damaged byte affects: every key of `must` gives the error, those of `may` can give it,
/// and no other does.
struct Cost {
    must: BTreeSet<Vec<u8>>,
    /// Keys that the damaged part could hold but does not. Whether a get reads the segment for them depends
    /// on its filter and on its newest entry.
    may: BTreeSet<Vec<u8>>,
}

impl Cost {
    /// The effect of a damaged byte of the segment `path`, before anything else is written.
    fn of(sound: &SimFs, path: &Path, at: usize, has_filter: bool) -> Cost {
        let layouts: Vec<Layout> =
            files(sound, ".segment").iter().map(|path| Layout::of(&sound.read(path).unwrap())).collect();
        let mut newest: BTreeMap<&[u8], u64> = BTreeMap::new();
        for (key, seq) in layouts.iter().flat_map(Layout::rows) {
            let newest = newest.entry(key).or_default();
            *newest = (*newest).max(*seq);
        }
        let layout = Layout::of(&sound.read(path).unwrap());
        let part = layout.part_at(at);
        let here: BTreeMap<&[u8], u64> = layout.rows().map(|(key, seq)| (key.as_slice(), *seq)).collect();
        let newest_here = here.values().max().unwrap();
        let numbered: Vec<_> = (0..3000).map(numbered).collect();
        let keys = numbered.iter().map(Vec::as_slice).chain(newest.keys().copied());
        let mut cost = Cost { must: BTreeSet::new(), may: BTreeSet::new() };
        for key in keys.filter(|key| layout.is_asked(part, key)) {
            let known = newest.get(key);
            let lost = match here.get(key) {
                Some(seq) => known == Some(seq),
                None => known.is_none() && !has_filter,
            };
            if lost {
                cost.must.insert(key.to_vec());
            } else if known.is_none_or(|known| known < newest_here) {
                cost.may.insert(key.to_vec());
            }
        }
        cost
    }

    /// Keys that are written again are readable again.
    fn is_written(&mut self, key: &[u8]) {
        self.must.remove(key);
        self.may.remove(key);
    }

    #[track_caller]
    fn assert_is(&self, unreadable: &BTreeSet<Vec<u8>>) {
        let text = |key: &Vec<u8>| key.escape_ascii().to_string();
        let missed: Vec<_> = self.must.difference(unreadable).map(text).collect();
        assert!(missed.is_empty(), "answers that nobody can know: {missed:?}");
        let excess = unreadable.iter().filter(|key| !self.must.contains(*key) && !self.may.contains(*key));
        let excess: Vec<_> = excess.map(text).collect();
        assert!(excess.is_empty(), "errors for keys that the damage does not concern: {excess:?}");
    }
}

/// One damaged block, wherever it is, does not stop writes, and costs only the keys that it answers for.
#[test]
fn one_damaged_block_does_not_stop_writes_and_costs_only_its_own_keys() {
    let sound = SimFs::new();
    let options = |fs: &SimFs| options(fs).compression(Compression::None);
    let filled = {
        let db = options(&sound).open(STORE).unwrap();
        let mut filled = fill_deep(&db, 1);
        // Level 0 has segments too.
        (0..3).for_each(|i| {
            db.put(numbered(i * 1000), b"in level 0").unwrap();
            db.flush().unwrap();
            filled.insert(numbered(i * 1000), b"in level 0".to_vec());
        });
        filled
    };
    let segments = files(&sound, ".segment");
    let some = segments.iter().step_by((segments.len() / 12).max(1)).chain(segments.iter().rev().take(3));
    let (mut rounds, mut quarantined, mut had_errors) = (0, 0, 0);
    for (round, path) in some.enumerate().step_by(sized(3, 1)) {
        let mut rng = Rng::new(round as u64);
        let fs = sound.crash(Crash::Kill, 0);
        let layout = Layout::of(&fs.read(path).unwrap());
        let part = match round % 4 {
            0 => rng.pick(&layout.partitions),
            1 if round > 8 => &layout.rest,
            _ => rng.pick(&layout.data),
        };
        let at = part.bytes.start + rng.below(part.bytes.len() as u64) as usize;
        damage(&fs, path, [at]);
        let has_filter = round % 2 == 1;
        if !has_filter {
            fs.remove(&path.with_extension("filter")).unwrap();
        }
        let mut cost = Cost::of(&sound, path, at, has_filter);
        let db = options(&fs).background_threads(2 + round / sized(3, 1) % 3).open(STORE).unwrap();
        cost.assert_is(&unreadable(&db, &filled, path));
        rounds += 1;
        had_errors += usize::from(!cost.must.is_empty());
        let mut expected = filled.clone();
        let flushed = db.stats().flush_bytes;
        while db.stats().flush_bytes < flushed + 45 * 4096 {
            let key = numbered(rng.below(3000));
            cost.is_written(&key);
            if rng.percent(30) {
                db.delete(&key).unwrap();
                expected.remove(&key);
            } else {
                let value = value(&mut rng);
                db.put(&key, &value).unwrap();
                expected.insert(key, value);
            }
        }
        db.flush().unwrap();
        db.wait_for_compaction().unwrap();
        let found = unreadable(&db, &expected, path);
        cost.assert_is(&found);
        assert_walks(&db, &expected, path);
        quarantined += db.stats().segments_quarantined;
        let known = db.stats().segments_quarantined;
        assert!(!db.verify().unwrap().is_ok() || known == 0);
        drop(db);

        let db = options(&fs).open(STORE).unwrap();
        assert!(db.stats().segments_quarantined >= known, "the manifest remembers it");
        db.put(b"key", b"new").unwrap();
        expected.insert(b"key".to_vec(), b"new".to_vec());
        if let Err(error) = db.compact() {
            assert_eq!(damage_of(&error).0, path.display().to_string());
            db.compact().unwrap();
        }
        let after = unreadable(&db, &expected, path);
        cost.assert_is(&after);
        assert!(found.is_subset(&after), "nothing is better for it");
        db.put(b"key", b"newer").unwrap();
        db.flush().unwrap();
        db.sync().unwrap();
    }
    let (least, found, told) = sized((3, 2, 1), (10, 7, 5));
    assert!(
        rounds > least && quarantined > found && had_errors > told,
        "{rounds} {quarantined} {had_errors}"
    );
}

/// Two versions of 200 keys: the old one in level 1, the new one in a level-0 segment damaged in its middle.
fn two_versions() -> (SimFs, PathBuf, Contents) {
    let fs = SimFs::new();
    let db = options(&fs).memtable_bytes(1 << 20).segment_bytes(1 << 20).open(STORE).unwrap();
    (0..200).for_each(|i| db.put(numbered(i), b"old").unwrap());
    db.compact().unwrap();
    let mut rng = Rng::new(3);
    let mut expected = Contents::new();
    for i in 0..200 {
        expected.insert(numbered(i), value(&mut rng));
        db.put(numbered(i), &expected[&numbered(i)]).unwrap();
    }
    db.flush().unwrap();
    drop(db);
    let path = files(&fs, ".segment").pop().unwrap();
    let len = fs.read(&path).unwrap().len();
    damage(&fs, &path, [len / 3]);
    (fs, path, expected)
}

/// Tries to merge both versions, which the damage prevents.
#[track_caller]
fn provoke(db: &Db, path: &Path) {
    assert_eq!(damage_of(&db.compact().unwrap_err()).0, path.display().to_string());
    assert_eq!(db.stats().segments_quarantined, 1);
}

#[test]
fn probes_of_a_segment_in_quarantine_count_for_no_level() {
    let (fs, path, _) = two_versions();
    let db = options(&fs).open(STORE).unwrap();
    provoke(&db, &path);
    let beside_levels = || {
        let stats = db.stats();
        stats.filter_probes - stats.levels.iter().map(|level| level.filter_probes).sum::<u64>()
    };
    let before = beside_levels();
    (0..200).for_each(|i| drop(db.get(numbered(i))));
    assert_eq!(beside_levels() - before, 200);
}

/// A key in a damaged block gives the error, and never the older version below it.
#[test]
fn a_key_in_a_damaged_block_gives_the_error_and_never_an_older_version() {
    let (fs, path, mut expected) = two_versions();
    let db = options(&fs).open(STORE).unwrap();
    let before = errors(&db, &expected, &path);
    assert!((2..20).contains(&before), "{before}");
    let snapshot = db.snapshot();
    provoke(&db, &path);
    assert_eq!(errors(&db, &expected, &path), before);
    let (keys, unreadable): (Vec<_>, Vec<_>) = (0..200).map(numbered).partition(|key| db.get(key).is_ok());
    assert_eq!(db.multi_get(&keys).unwrap().len(), keys.len());
    assert!(db.multi_get(&unreadable).is_err());
    assert!(snapshot.get(&unreadable[0]).is_err() && db.snapshot().get(&unreadable[0]).is_err());
    assert!(db.prefix(&unreadable[0]).next().unwrap().is_err());
    assert_walks(&db, &expected, &path);
    assert_walks_from_keys(&db, &expected, &path);
    assert_eq!(db.range(numbered(150)..).rev().count(), 50, "a walk next to the damage");
    let rows = db.iter().take_while(Result::is_ok).count();
    assert!((1..200).contains(&rows) && Iterator::count(db.iter()) == rows, "an error is not a row");
    assert_eq!(Iterator::count(db.iter().keys()), rows);
    assert_eq!(db.iter().skip(3).count(), rows - 3, "in an adapter that hands its count on");
    for count in [db.iter().count(), db.iter().keys().count()] {
        assert_eq!(damage_of(&count.unwrap_err()).0, path.display().to_string());
    }
    assert_eq!(db.range(numbered(150)..).count().unwrap(), 50);
    let last = db.iter().last().unwrap().unwrap();
    assert_eq!(Some((&last.0, &last.1.to_vec())), expected.last_key_value());
    assert_eq!(
        db.range(..=&unreadable[0]).last().unwrap_err().to_string(),
        db.get(&unreadable[0]).unwrap_err().to_string()
    );

    // Keys that are written again are readable again.
    db.put(&unreadable[0], b"new").unwrap();
    db.delete(&unreadable[1]).unwrap();
    expected.insert(unreadable[0].clone(), b"new".to_vec());
    expected.remove(&unreadable[1]);
    for _ in 0..3 {
        db.flush().unwrap();
        db.wait_for_compaction().unwrap();
        assert_eq!(errors(&db, &expected, &path), before - 2);
        db.compact().unwrap();
        assert_eq!(errors(&db, &expected, &path), before - 2);
    }
    drop(db);
    let db = options(&fs).open(STORE).unwrap();
    assert_eq!(errors(&db, &expected, &path), before - 2);
    let copy = PathBuf::from(STORE).with_file_name("copy");
    db.checkpoint(&copy).unwrap();
    let path = copy.join(path.file_name().unwrap());
    assert_eq!(errors(&options(&fs).open(&copy).unwrap(), &expected, &path), before - 2);
}

#[test]
fn what_is_deleted_stays_deleted_though_its_row_is_in_quarantine() {
    let (fs, path, mut expected) = two_versions();
    let db = options(&fs).open(STORE).unwrap();
    let before = errors(&db, &expected, &path);
    provoke(&db, &path);
    for i in (0..200).step_by(2) {
        db.delete(numbered(i)).unwrap();
        expected.remove(&numbered(i));
    }
    db.compact().unwrap();
    db.put(b"a", b"1").unwrap();
    db.compact().unwrap();
    expected.insert(b"a".to_vec(), b"1".to_vec());
    let left = errors(&db, &expected, &path);
    assert!(left < before && left > 0, "{left} of {before}");
    drop(db);
    let db = options(&fs).open(STORE).unwrap();
    assert_eq!(errors(&db, &expected, &path), left);
    assert_walks(&db, &expected, &path);
}

/// A segment that is unreadable and has no sidecar is not reread forever.
#[test]
fn an_unreadable_segment_without_a_sidecar_is_not_read_again_and_again() {
    let (fs, path, expected) = two_versions();
    fs.remove(&path.with_extension("filter")).unwrap();
    let db = options(&fs).open(STORE).unwrap();
    eventually("the rebuild of the sidecar puts the segment in quarantine", || {
        db.stats().segments_quarantined == 1
    });
    db.wait_for_compaction().unwrap();
    let ops = fs.ops();
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert!(fs.ops() - ops < 10, "{} operations at rest", fs.ops() - ops);
    assert!(errors(&db, &expected, &path) > 0);
    db.put(b"new", b"1").unwrap();
    db.flush().unwrap();
    db.put(b"new", b"2").unwrap();
}

#[test]
fn filters_of_the_other_segments_are_rebuilt_though_one_is_in_quarantine() {
    let (fs, path, expected) = two_versions();
    let db = options(&fs).open(STORE).unwrap();
    let error = db.rebuild_filters(FilterPolicy::bits_per_key(14.0)).unwrap_err();
    assert_eq!(damage_of(&error).0, path.display().to_string(), "it says what it finds out");
    let before = errors(&db, &expected, &path);
    for bits in [9.0, 12.0] {
        let report = db.rebuild_filters(FilterPolicy::bits_per_key(bits)).unwrap();
        assert_eq!((report.segments, report.quarantined, report.total), (1, 1, 2));
        assert_eq!(errors(&db, &expected, &path), before);
    }
}
