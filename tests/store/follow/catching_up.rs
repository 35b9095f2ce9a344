//! Following: another process's writes become visible, whole batches only, and what a follower reads stays.

use crate::support::{
    Errno, Fault, OpKind, STORE, Sequence, SimFs, contents, eventually, fast_dir, files_with, fill_deep,
    sized, tiny, tiny_on,
};
use sidebloom::{Batch, Db, Durability, Error, FilterPolicy, Options};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

fn follow(path: impl AsRef<Path>) -> Db {
    tiny().follow(true).open(path).unwrap()
}

/// Operations other than writes, so that the store's files change in every way.
fn do_other_things(db: &Db, i: u64) {
    match i % 41 {
        3 => db.flush().unwrap(),
        9 => db.compact().unwrap(),
        17 => _ = db.rebuild_filters(FilterPolicy::bits_per_key((4 + i % 12) as f64)).unwrap(),
        25 => db.wait_for_compaction().unwrap(),
        33 => db.sync().unwrap(),
        _ => {}
    }
}

/// A follower shows what was written before it caught up, whatever the writer does.
#[test]
fn a_follower_shows_what_was_written_before_it_caught_up() {
    let dir = fast_dir();
    let sequence = Sequence(16);
    let mut writer = tiny().open(dir.path()).unwrap();
    writer.write(sequence.batch(1)).unwrap();
    let follower = follow(dir.path());
    let mut snapshots = Vec::new();
    for i in 2..=800 {
        writer.write(sequence.batch(i)).unwrap();
        do_other_things(&writer, i);
        if i % 150 == 0 {
            drop(writer);
            writer = tiny().open(dir.path()).unwrap();
        }
        if i % 7 == 0 || i % 100 == 0 {
            follower.catch_up().unwrap();
            assert_eq!(contents(&follower), sequence.after(i), "batch {i}");
        }
        if i % 100 == 0 {
            snapshots.push((follower.snapshot(), sequence.after(i)));
            let late = follow(dir.path());
            assert_eq!(contents(&late), sequence.after(i), "batch {i}, a new follower");
            assert!(late.verify().unwrap().is_ok());
        }
    }
    assert!(follower.verify().unwrap().is_ok());
    drop((writer, follower));
    for (snapshot, then) in snapshots {
        let rows = snapshot.iter().map(|kv| kv.map(|(k, v)| (k, v.to_vec())).unwrap());
        assert!(rows.eq(then), "a snapshot outlives the writer and its follower");
    }
}

#[test]
fn deleted_ranges_ingested_rows_and_an_empty_log_show() {
    let dir = fast_dir();
    let writer = tiny().open(dir.path()).unwrap();
    let follower = follow(dir.path());
    let agree = |what: &str| {
        follower.catch_up().unwrap();
        assert_eq!(contents(&follower), contents(&writer), "{what}");
    };
    let rows = |from: u32| (from..from + 500).map(|i| Ok((i.to_be_bytes(), [7; 20])));
    for round in 0..5u32 {
        writer.ingest(rows(round * 400)).unwrap();
        agree("ingested");
        writer.delete_range((round * 400 + 10).to_be_bytes()..(round * 400 + 90).to_be_bytes()).unwrap();
        agree("deleted");
        writer.ingest_unsorted(rows(10_000 + round * 100).collect::<Vec<_>>().into_iter().rev()).unwrap();
        agree("ingested unsorted");
        writer.put("z", round.to_be_bytes()).unwrap();
        writer.flush().unwrap();
        writer.flush().unwrap();
        agree("flushed");
    }
    writer.delete_range(..).unwrap();
    writer.compact().unwrap();
    agree("empty");
    assert_eq!(follower.iter().count().unwrap(), 0);
}

#[test]
fn a_follower_catches_up_by_itself_within_a_few_milliseconds() {
    let dir = fast_dir();
    let writer = Db::open(dir.path()).unwrap();
    let follower = Options::new().follow(true).open(dir.path()).unwrap();
    for i in 0..50u32 {
        writer.put("n", i.to_be_bytes()).unwrap();
        if i == 25 {
            writer.flush().unwrap();
        }
        eventually("seen", || follower.get("n").unwrap().is_some_and(|n| *n == i.to_be_bytes()));
    }
    assert!(follower.stats().follower_age.is_some());
    assert_eq!(writer.stats().follower_age, None);
}

#[test]
fn a_follower_uses_the_filters_that_the_writer_has_rebuilt() {
    let dir = fast_dir();
    let writer = Db::open(dir.path()).unwrap();
    writer.ingest((0..50_000u32).map(|i| Ok((i.to_be_bytes(), b"")))).unwrap();
    let follower = Options::new().follow(true).open(dir.path()).unwrap();
    follower.warm().unwrap();
    let bits = |db: &Db| db.stats().levels.iter().map(|level| level.filter_bytes).sum::<u64>() * 8 / 50_000;
    assert_eq!(bits(&follower), bits(&writer));
    writer.rebuild_filters(FilterPolicy::bits_per_key(19.0)).unwrap();
    assert!(bits(&writer) > 15);
    eventually("the follower has them", || bits(&follower) == bits(&writer));
    assert!((0..50_000u32).all(|i| follower.contains_key(i.to_be_bytes()).unwrap()));
}

/// Followers in threads see whole batches in order, and every key, while files come and go.
#[test]
fn i4_followers_in_threads_see_whole_batches_in_order_and_every_key() {
    const KEYS: u64 = 300;
    let dir = fast_dir();
    let writer = tiny().background_threads(4).open(dir.path()).unwrap();
    let batch = |n: u64| {
        let mut batch = Batch::new();
        (0..KEYS).for_each(|key| batch.put(key.to_be_bytes(), n.to_be_bytes()));
        batch
    };
    writer.write(batch(0)).unwrap();
    let (done, written) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for seed in 0..3u64 {
            let (done, written, path) = (&done, &written, dir.path());
            scope.spawn(move || {
                let mut last = 0;
                let mut follower = follow(path);
                while !done.load(Ordering::Acquire) {
                    let least = written.load(Ordering::Acquire);
                    if last % 2 == seed % 2 {
                        follower.catch_up().unwrap();
                    }
                    let snapshot = follower.snapshot();
                    let number = |value: &[u8]| u64::from_be_bytes(value.try_into().unwrap());
                    let first = number(&snapshot.get(5u64.to_be_bytes()).unwrap().unwrap());
                    assert!(first >= last, "back from {last} to {first}");
                    assert!(
                        last % 2 != seed % 2 || first >= least,
                        "caught up with {least}, but shows {first}"
                    );
                    let rows: Vec<_> = snapshot.iter().map(Result::unwrap).collect();
                    assert_eq!(rows.len() as u64, KEYS);
                    assert!(rows.iter().all(|(_, value)| number(value) == first), "part of a batch");
                    let got =
                        follower.multi_get(&(0..KEYS).map(u64::to_be_bytes).collect::<Vec<_>>()).unwrap();
                    assert!(got.iter().all(Option::is_some), "a key is missing");
                    last = first;
                    if last % 50 == 49 {
                        let verified = follower.verify().unwrap();
                        assert!(verified.is_ok(), "{:?}", verified.problems);
                        follower = follow(path);
                    }
                }
            });
        }
        let until = Instant::now() + Duration::from_secs(sized(4, 60));
        for n in 1.. {
            writer.write(batch(n)).unwrap();
            written.store(n, Ordering::Release);
            if Instant::now() > until {
                break;
            }
        }
        done.store(true, Ordering::Release);
    });
    writer.compact().unwrap();
    eventually("no obsolete file is left", || files_with(dir.path(), ".obsolete").is_empty());
}

/// The writer keeps what a follower's snapshot reads, across reopening, and no longer.
#[test]
fn the_writer_keeps_what_a_followers_snapshot_reads_and_no_longer() {
    let dir = fast_dir();
    let writer = tiny().open(dir.path()).unwrap();
    let then = fill_deep(&writer, 1);
    let follower = follow(dir.path());
    let snapshot = follower.snapshot();
    let rewrite = |writer: &Db| {
        for i in 0..3000u32 {
            writer.put(format!("key{i:05}"), b"new").unwrap();
        }
        writer.compact().unwrap();
    };
    let check = || {
        let rows = snapshot.iter().map(|kv| kv.map(|(k, v)| (k, v.to_vec())).unwrap());
        assert!(rows.eq(then.clone()));
    };
    rewrite(&writer);
    check();
    follower.catch_up().unwrap();
    assert!(follower.iter().all(|kv| *kv.unwrap().1 == *b"new"));
    check();
    drop(writer);
    let writer = tiny().open(dir.path()).unwrap();
    rewrite(&writer);
    drop(follower);
    check();
    assert!(!files_with(dir.path(), ".obsolete").is_empty());
    drop(snapshot);
    eventually("the files go", || files_with(dir.path(), ".obsolete").is_empty());
    assert!(writer.verify().unwrap().is_ok());
}

/// The rows of a failed group disappear again when the writer reuses their numbers.
#[test]
fn i5_rows_of_a_failed_group_vanish_when_the_writer_reuses_their_numbers() {
    let fs = SimFs::new();
    let writer = tiny_on(&fs).open(STORE).unwrap();
    let sequence = Sequence(3);
    (1..=20).for_each(|i| writer.write(sequence.batch(i)).unwrap());
    let follower = tiny_on(&fs).follow(true).open(STORE).unwrap();
    // The group is in the file, but its sync fails, so it was never acknowledged.
    fs.fail(Fault { only: Some(".wal"), errno: Errno::NoSpace, ..Fault::once(OpKind::Sync, 0) });
    let mut failed = Batch::new();
    failed.put("failed", "1");
    writer.write_with(failed, Durability::Sync).unwrap_err();
    follower.catch_up().unwrap();
    for i in 21..=60 {
        writer.write(sequence.batch(i)).unwrap();
        follower.catch_up().unwrap();
        assert_eq!(contents(&follower), sequence.after(i), "batch {i}");
    }
}

/// Damage is an error that leaves what is visible, and following continues after it.
#[test]
fn i6_damage_is_an_error_that_hides_nothing_and_following_goes_on() {
    let fs = SimFs::new();
    let writer = tiny_on(&fs).open(STORE).unwrap();
    let sequence = Sequence(4);
    (1..=100).for_each(|i| writer.write(sequence.batch(i)).unwrap());
    writer.flush().unwrap();
    writer.wait_for_compaction().unwrap(); // Nobody changes the manifest from here on.
    let follower = tiny_on(&fs).follow(true).open(STORE).unwrap();
    let manifest = Path::new(STORE).join("MANIFEST");
    let sound = fs.read(&manifest).unwrap();
    let mut damaged = sound.clone();
    damaged[60] ^= 1;
    fs.write(&manifest, damaged);
    let error = follower.catch_up().unwrap_err();
    assert!(matches!(&error, Error::Corruption { file, .. } if *file == manifest), "{error}");
    assert_eq!(contents(&follower), sequence.after(100));
    fs.write(&manifest, sound);
    follower.catch_up().unwrap();
    assert_eq!(contents(&follower), sequence.after(100));
}

/// A store without a writer can be followed, and nothing can be written through a follower.
#[test]
fn a_store_without_a_writer_can_be_followed_and_not_written() {
    let dir = fast_dir();
    let path = dir.path().join("store");
    let missing = Options::new().follow(true).open(&path);
    assert!(matches!(missing, Err(Error::NotAStore { .. })));
    assert!(!path.exists());
    let writer = Db::open(&path).unwrap();
    writer.put("a", "1").unwrap();
    drop(writer);
    let follower = Options::new().follow(true).open(&path).unwrap();
    assert_eq!(follower.get("a").unwrap().as_deref(), Some(&b"1"[..]));
    assert!(matches!(follower.put("b", "2"), Err(Error::ReadOnly)));
    assert!(matches!(follower.flush(), Err(Error::ReadOnly)));
    let read_only = Options::new().read_only(true).open(&path).unwrap();
    read_only.catch_up().unwrap();
    assert!(matches!(Db::open(&path), Err(Error::Locked { .. })), "a plain reader excludes writers");
    drop(read_only);
    let writer = Db::open(&path).unwrap();
    writer.put("b", "2").unwrap();
    follower.catch_up().unwrap();
    assert_eq!(contents(&follower), contents(&writer));
}

/// A follower sees new logs even if directory times have whole seconds.
#[test]
fn a_follower_sees_new_logs_where_directory_times_are_whole_seconds() {
    let fs = SimFs::new();
    fs.keep_coarse_times();
    let writer = tiny_on(&fs).open(STORE).unwrap();
    let follower = tiny_on(&fs).follow(true).open(STORE).unwrap();
    for i in 0..60 {
        // Some of these begin a new log, which the manifest does not name yet.
        let value = [i; 1000];
        writer.put("key", value).unwrap();
        follower.catch_up().unwrap();
        assert_eq!(follower.get("key").unwrap().as_deref(), Some(value.as_slice()), "write {i}");
        thread::sleep(Duration::from_millis(30));
    }
}

/// A store with three batches in which the writer has just taken back an edit that it could not sync, and
/// still lacks space. `between` gets the follower after it has read that edit. Returns writer and follower.
fn after_an_edit_was_taken_back(fs: &SimFs, sequence: Sequence, between: impl FnOnce(&Db)) -> (Db, Db) {
    let writer = tiny_on(fs).open(STORE).unwrap();
    (1..=3).for_each(|i| writer.write(sequence.batch(i)).unwrap());
    let follower = tiny_on(fs).follow(true).open(STORE).unwrap();
    let on_manifest = |fault| Fault { only: Some("MANIFEST"), errno: Errno::NoSpace, ..fault };
    // The edit is in the file, but its sync fails. The flush cannot be tried again yet.
    fs.fail(on_manifest(Fault { spreads_to: &[OpKind::Create], ..Fault::once(OpKind::Sync, 0) }));
    writer.flush().unwrap_err();
    follower.catch_up().unwrap();
    between(&follower);
    // The retry rewrites the manifest as it was, and then the edit fails for good.
    let manifest = Path::new(STORE).join("MANIFEST");
    let failed = fs.read(&manifest).unwrap();
    let held = fs.hold(OpKind::Create);
    fs.heal();
    fs.fail(on_manifest(Fault { forever: true, ..Fault::once(OpKind::Append, 1) }));
    drop(held);
    eventually("the manifest is rewritten", || fs.read(&manifest).unwrap() != failed);
    follower.catch_up().unwrap();
    (writer, follower)
}

/// Nothing is missing when the writer takes back an edit that it could not sync.
#[test]
fn i4_nothing_is_missing_when_the_writer_takes_back_an_unsynced_edit() {
    let (fs, sequence) = (SimFs::new(), Sequence(5));
    let is_whole = |follower: &Db| assert_eq!(contents(follower), sequence.after(3), "with the edit");
    let (writer, follower) = after_an_edit_was_taken_back(&fs, sequence, is_whole);
    assert_eq!(contents(&follower), sequence.after(3), "without the edit");
    fs.heal();
    eventually("there is space again", || writer.write(sequence.batch(4)).is_ok());
    follower.catch_up().unwrap();
    assert_eq!(contents(&follower), sequence.after(4));
}

/// What a snapshot of a withdrawn edit needs stays, even after the writer ends.
#[test]
fn what_a_snapshot_of_a_withdrawn_edit_needs_outlives_the_writer() {
    let (fs, sequence) = (SimFs::new(), Sequence(5));
    let mut snapshot = None;
    let (writer, follower) =
        after_an_edit_was_taken_back(&fs, sequence, |follower| snapshot = Some(follower.snapshot()));
    drop(writer); // Its last edits fail.
    fs.heal();
    let writer = tiny_on(&fs).open(STORE).unwrap();
    writer.write(sequence.batch(4)).unwrap();
    follower.catch_up().unwrap();
    assert_eq!(contents(&follower), sequence.after(4));
    let is_kept = || fs.files().iter().any(|path| path.extension().is_some_and(|kind| kind == "obsolete"));
    assert!(is_kept(), "the segment of that edit");
    let snapshot = snapshot.unwrap();
    assert!(snapshot.iter().map(|kv| kv.map(|(k, v)| (k, v.to_vec())).unwrap()).eq(sequence.after(3)));
    drop(snapshot);
    eventually("it is removed", || !is_kept());
}

#[test]
fn a_follower_says_so_when_a_checkpoint_takes_the_place_of_its_store() {
    let dir = fast_dir();
    let [path, old, checkpoint] = ["store", "old", "checkpoint"].map(|name| dir.path().join(name));
    let writer = tiny().open(&path).unwrap();
    writer.put("a", "1").unwrap();
    writer.checkpoint(&checkpoint).unwrap();
    writer.put("b", "1").unwrap();
    writer.flush().unwrap();
    writer.put("c", "1").unwrap();
    let follower = follow(&path);
    let before = contents(&follower);
    drop(writer);
    std::fs::rename(&path, &old).unwrap();
    std::fs::rename(&checkpoint, &path).unwrap();
    let writer = tiny().open(&path).unwrap();
    writer.put("d", "1").unwrap();
    // Its logs are the old directory's, and so are the locks that keep what it reads.
    let error = follower.catch_up().unwrap_err();
    assert!(matches!(&error, Error::NotAStore { what, .. } if what.contains("open it again")), "{error}");
    assert_eq!(contents(&follower), before);
    assert_eq!(contents(&follow(&path)), contents(&writer));
}
