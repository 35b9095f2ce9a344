//! `Range::skip_damaged`: rows after unreadable parts are reached, what is skipped is named, and no row is
//! shown that an unreadable part may change.

use crate::support::{
    Contents, Crash, Errno, Fault, Layout, OpKind, Part, Rng, STORE, SimFs, fast_dir, files_with, fill_deep,
    tiny, tiny_on,
};
use sidebloom::fs::Fs;
use sidebloom::{Compression, Db, Options, Skipped, SkippedKeys};
use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// So that each store has as few segments as it is given.
fn options(fs: &SimFs) -> Options {
    tiny_on(fs).memtable_bytes(1 << 20).segment_bytes(1 << 20).compression(Compression::None)
}

fn key(n: u32) -> Vec<u8> {
    format!("key{n:04}").into_bytes()
}

/// The segments, the oldest first.
fn segments(fs: &SimFs) -> Vec<PathBuf> {
    let is_segment = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "segment");
    fs.files().into_iter().filter(is_segment).collect()
}

/// Flips a bit in each part of a segment that `choose` accepts, and returns these parts.
fn damage(fs: &SimFs, path: &PathBuf, choose: impl Fn(&Layout) -> Vec<Part>) -> Vec<Part> {
    let mut bytes = fs.read(path).unwrap();
    let parts = choose(&Layout::of(&bytes));
    parts.iter().for_each(|part| bytes[part.bytes.start + 9] ^= 4);
    fs.write(path, bytes);
    parts
}

/// Old rows of even keys below 1000 in a deep level, and above them `change`, flushed.
fn two_levels(change: impl Fn(&Db)) -> (SimFs, Vec<PathBuf>) {
    let fs = SimFs::new();
    let db = options(&fs).open(STORE).unwrap();
    (0..1000).step_by(2).for_each(|n| db.put(key(n), "old").unwrap());
    db.compact().unwrap();
    change(&db);
    db.flush().unwrap();
    drop(db);
    let segments = segments(&fs);
    assert_eq!(segments.len(), 2);
    (fs, segments)
}

/// What iterators in both directions show, and what they skip, which must be equal.
#[track_caller]
fn walked(db: &Db) -> (Contents, Vec<SkippedKeys>) {
    let walk = |backwards: bool| {
        let skipped = Skipped::new();
        let range = db.iter().skip_damaged(&skipped);
        let rows: Vec<_> = if backwards {
            range.rev().map(Result::unwrap).collect()
        } else {
            range.map(Result::unwrap).collect()
        };
        assert!(rows.is_sorted_by(|a, b| if backwards { a.0 > b.0 } else { a.0 < b.0 }));
        let rows: Contents = rows.into_iter().map(|(key, value)| (key, value.to_vec())).collect();
        (rows, skipped.take_keys())
    };
    let (forwards, backwards) = (walk(false), walk(true));
    assert_eq!(forwards.0, backwards.0);
    // What lies below other damage need not be found.
    let all = (0..3000).flat_map(|n| [key(n), format!("key{n:05}").into_bytes()]);
    for key in all {
        let [found, backwards] =
            [&forwards.1, &backwards.1].map(|all| all.iter().any(|lost| lost.keys.contains(&key)));
        assert_eq!(found, backwards, "{}", key.escape_ascii());
    }
    forwards
}

/// Checks that iterators show no wrong row, and every right one outside of the skipped keys. Returns these.
#[track_caller]
fn check(db: &Db, expected: &Contents) -> Vec<SkippedKeys> {
    let (rows, skipped) = walked(db);
    for (key, value) in &rows {
        assert_eq!(expected.get(key), Some(value), "{} is wrong", key.escape_ascii());
    }
    for key in expected.keys().filter(|key| !rows.contains_key(*key)) {
        assert!(skipped.iter().any(|lost| lost.keys.contains(key)), "{} is missing", key.escape_ascii());
    }
    skipped
}

#[test]
fn rows_behind_a_bad_block_are_reached_if_a_range_skips_damage() {
    let fs = SimFs::new();
    let db = options(&fs).open(STORE).unwrap();
    let all: Contents = (0..2000).map(|n| (key(n), b"value".to_vec())).collect();
    all.iter().for_each(|(key, value)| db.put(key, value).unwrap());
    db.compact().unwrap();
    drop(db);
    let path = segments(&fs).remove(0);
    // Two neighbours, one alone, and the last one.
    let bad = damage(&fs, &path, |layout| {
        let last = layout.data.len() - 1;
        [3, 4, 20, last].map(|at| layout.data[at].clone()).to_vec()
    });
    let db = options(&fs).read_only(true).open(STORE).unwrap();
    let lost: Vec<_> = bad.iter().flat_map(|part| &part.rows).map(|(key, _)| key.clone()).collect();
    let left: Vec<_> = all.keys().filter(|key| !lost.contains(key)).cloned().collect();

    // Without it, the first error ends the iteration, as always.
    let mut plain = db.iter().skip_while(Result::is_ok);
    assert!(plain.next().unwrap().is_err() && plain.next().is_none());

    let skipped = check(&db, &all);
    assert_eq!(skipped.iter().map(|lost| lost.blocks.unwrap()).collect::<Vec<_>>(), [2, 1, 1]);
    for (skipped, (first, last)) in skipped.iter().zip([(0, 1), (2, 2), (3, 3)]) {
        let keys =
            (Bound::Excluded(bad[first].after.clone().unwrap()), Bound::Included(bad[last].up_to.clone()));
        assert_eq!(skipped.keys, keys);
        let text = skipped.error.to_string();
        let named = [path.display().to_string(), format!("offset {}", bad[first].bytes.start)];
        let keys = [&keys.0, &keys.1].map(|bound| match bound {
            Bound::Included(key) | Bound::Excluded(key) => key.escape_ascii().to_string(),
            Bound::Unbounded => unreachable!(),
        });
        named.iter().chain(&keys).for_each(|part| assert!(text.contains(part), "{text}"));
    }

    let skipped = Skipped::new();
    let range = || db.iter().skip_damaged(&skipped);
    assert_eq!(range().count().unwrap(), left.len() as u64);
    assert_eq!(range().keys().map(Result::unwrap).collect::<Vec<_>>(), left);
    assert_eq!(range().last().unwrap().unwrap().0, *left.last().unwrap());
    for n in [0, 50, 100, 1500] {
        assert_eq!(range().nth(n).unwrap().unwrap().0, left[n]);
        assert_eq!(range().nth_back(n).unwrap().unwrap().0, left[left.len() - 1 - n]);
    }
    let hundreds = left.iter().filter(|key| key.starts_with(b"key00")).count() as u64;
    assert_eq!(db.prefix("key00").skip_damaged(&skipped).count().unwrap(), hundreds);
    assert_eq!(skipped.keys().len(), 3);

    // Both ends at once, and one that has started before.
    let (mut range, mut ends) = (db.iter(), (Vec::new(), Vec::new()));
    ends.0.push(range.next().unwrap().unwrap().0);
    let skipped = Skipped::new();
    let mut range = range.skip_damaged(&skipped);
    while let Some(row) = range.next() {
        ends.0.push(row.unwrap().0);
        ends.1.extend(range.next_back().map(|row| row.unwrap().0));
    }
    ends.0.extend(ends.1.into_iter().rev());
    assert_eq!((ends.0, skipped.keys().len()), (left, 3));

    // Nothing is skipped in a range that ends before a bad block.
    let skipped = Skipped::new();
    for range in [db.range(..=bad[0].after.clone().unwrap()), db.range(bad[3].after.clone().unwrap()..)] {
        _ = range.skip_damaged(&skipped).rev().take(1).map(Result::unwrap).count();
    }
    assert_eq!(skipped.keys().len(), 1, "the last block alone: {skipped:?}");
    assert!(db.range(..bad[0].up_to.clone()).skip_damaged(&Skipped::new()).all(|row| row.is_ok()));
    let before = db.range(..=bad[0].after.clone().unwrap()).skip_damaged(&skipped);
    skipped.take_keys();
    assert!(before.count().unwrap() > 20 && skipped.is_empty());
}

#[test]
fn rows_beside_a_bad_sector_are_shown_though_a_read_ahead_meets_it() {
    let (fs, segments) = two_levels(|db| (0..1000).for_each(|n| db.put(key(n), [n as u8; 99]).unwrap()));
    let read = || options(&fs).read_only(true).open(STORE).unwrap();
    let expected = walked(&read()).0;
    let blocks = Layout::of(&fs.read(&segments[1]).unwrap()).data;
    let bad = [30, 31, 90].map(|at| &blocks[at]);
    bad.iter()
        .for_each(|part| fs.make_unreadable(&segments[1], part.bytes.start as u64..part.bytes.end as u64));
    let skipped = check(&read(), &expected);
    assert_eq!(skipped.iter().map(|lost| lost.blocks).collect::<Vec<_>>(), [Some(2), Some(1)]);
    assert!(skipped.iter().zip([30, 90]).all(|(lost, at)| {
        lost.error.to_string().contains(&format!("offset {}: Input/output error", blocks[at].bytes.start))
    }));
    let lost = bad.iter().flat_map(|part| &part.rows).count();
    assert_eq!(walked(&read()).0.len(), expected.len() - lost);
}

#[test]
fn no_row_is_shown_that_a_bad_block_may_overwrite_or_delete() {
    let (fs, segments) = two_levels(|db| {
        for n in (0..1000).step_by(3) {
            match n % 4 {
                0 => db.delete(key(n)).unwrap(),
                _ => db.put(key(n), "new").unwrap(),
            }
        }
    });
    let db = options(&fs).open(STORE).unwrap();
    db.put(key(301), "newest").unwrap();
    db.delete(key(302)).unwrap();
    drop(db);
    let read = || options(&fs).read_only(true).open(STORE).unwrap();
    let expected = walked(&read()).0;
    let sound = fs.read(&segments[1]).unwrap();
    damage(&fs, &segments[1], |layout| layout.data[2..layout.data.len() - 2].to_vec());
    let db = read();
    let skipped = check(&db, &expected);
    assert_eq!(skipped.len(), 1);
    assert!(skipped[0].keys.contains(&key(301)), "{skipped:?}");
    let rows = walked(&db).0;
    assert_eq!(rows[&key(301)], b"newest", "newer than the block");
    let doubtful = rows.keys().filter(|key| skipped[0].keys.contains(*key)).count();
    assert_eq!(doubtful, 1, "no older row");

    // Damage in the older segment makes nothing newer doubtful.
    fs.write(&segments[1], sound);
    damage(&fs, &segments[0], |layout| layout.data[1..3].to_vec());
    let db = read();
    let skipped = check(&db, &expected);
    let rows = walked(&db).0;
    for (key, value) in expected.iter().filter(|(_, value)| *value != b"old") {
        assert_eq!(rows.get(key), Some(value));
    }
    assert_eq!(skipped.iter().map(|lost| lost.blocks).collect::<Vec<_>>(), [Some(2)]);
}

#[test]
fn no_row_is_shown_that_unreadable_range_tombstones_may_delete() {
    let (fs, segments) = two_levels(|db| {
        db.put(key(199), "new").unwrap();
        db.delete_range(key(300)..key(400)).unwrap();
        db.put(key(601), "newest").unwrap();
    });
    let read = || options(&fs).read_only(true).open(STORE).unwrap();
    let expected = walked(&read()).0;
    assert!(!expected.contains_key(&key(350)));
    damage(&fs, &segments[1], |layout| layout.ranges.iter().cloned().collect());
    let db = read();
    assert!(db.iter().any(|row| row.is_err()));
    let skipped = check(&db, &expected);
    assert_eq!(skipped.len(), 1);
    assert_eq!(skipped[0].keys, (Bound::Included(key(199)), Bound::Included(key(601))));
    assert!(skipped[0].error.to_string().contains("the range tombstones with keys from"), "{skipped:?}");
    let rows = walked(&db).0;
    assert!(rows.contains_key(&key(198)) && rows.contains_key(&key(602)) && rows.contains_key(&key(601)));
}

#[test]
fn a_segment_or_partition_that_cannot_be_read_is_skipped_with_its_keys() {
    let (fs, segments) = two_levels(|db| (200..400).for_each(|n| db.put(key(n), "new").unwrap()));
    let read = || options(&fs).read_only(true).open(STORE).unwrap();
    let expected = walked(&read()).0;
    let (path, sound) = (segments[1].clone(), fs.read(&segments[1]).unwrap());
    let all = (Bound::Included(key(200)), Bound::Included(key(399)));
    let harms: [fn(&SimFs, &PathBuf); 3] = [
        |fs, path| _ = damage(fs, path, |layout| vec![layout.rest.clone()]),
        |fs, path| fs.write(path, fs.read(path).unwrap().split_last().unwrap().1.to_vec()),
        |fs, path| fs.remove(path).unwrap(),
    ];
    // A store does not open without the file, and a background thread may be the first to open that.
    let due = Arc::new(Mutex::new(None::<fn(&SimFs, &PathBuf)>));
    let (harm, harmed) = (Arc::clone(&due), path.clone());
    fs.before_each(move |fs, kind, path| {
        if kind == OpKind::Open && path == harmed {
            // Locked until it is harmed: another thread may be about to open it, too.
            let mut due = harm.lock().unwrap();
            due.take().into_iter().for_each(|harm| harm(fs, &harmed));
        }
    });
    for harm in harms {
        *due.lock().unwrap() = Some(harm);
        let db = read();
        let skipped = check(&db, &expected);
        assert_eq!(skipped.len(), 1, "{skipped:?}");
        assert_eq!((&skipped[0].keys, skipped[0].blocks), (&all, None));
        assert!(skipped[0].error.to_string().contains("not readable: the segment with keys"), "{skipped:?}");
        drop(db);
        fs.write(&path, sound.clone());
    }
}

#[test]
fn blocks_of_an_unreadable_index_partition_are_skipped_and_no_others() {
    let (fs, segments) = two_levels(|db| (0..1000).for_each(|n| db.put(key(n), [n as u8; 99]).unwrap()));
    let db = options(&fs).open(STORE).unwrap();
    (0..1000).step_by(10).for_each(|n| db.put(key(n), "newest").unwrap());
    drop(db);
    let read = || options(&fs).read_only(true).open(STORE).unwrap();
    let expected = walked(&read()).0;
    let bad = damage(&fs, &segments[1], |layout| vec![layout.partitions[1].clone()]);
    let keys = (Bound::Excluded(bad[0].after.clone().unwrap()), Bound::Included(bad[0].up_to.clone()));
    let skipped = check(&read(), &expected);
    assert_eq!((skipped.len(), skipped[0].blocks, &skipped[0].keys), (1, None, &keys));
    let rows = walked(&read()).0;
    let mut doubtful = rows.iter().filter(|(key, _)| keys.contains(*key)).peekable();
    assert!(doubtful.peek().is_some() && doubtful.all(|(_, value)| value == b"newest"));
}

#[test]
fn every_row_beside_random_damage_in_deep_stores_is_found() {
    for seed in 0..1 {
        let fs = SimFs::new();
        let db = tiny_on(&fs).compression(Compression::None).open(STORE).unwrap();
        let expected = fill_deep(&db, seed);
        drop(db);
        let sound: BTreeMap<_, _> =
            segments(&fs).into_iter().map(|path| (fs.read(&path).unwrap(), path)).collect();
        let mut rng = Rng::new(seed);
        for _ in 0..10 {
            let fs = fs.crash(Crash::Kill, 0);
            for (bytes, path) in &sound {
                let (mut bytes, harms) = (bytes.clone(), *rng.pick(&[0, 0, 1, 5]));
                for _ in 0..harms {
                    let at = rng.below(bytes.len() as u64);
                    if rng.percent(50) {
                        bytes[at as usize] ^= 1 << rng.below(8);
                    } else {
                        fs.make_unreadable(path, at..at + 1);
                    }
                }
                fs.write(path, bytes);
            }
            let db = tiny_on(&fs).read_only(true).open(STORE).unwrap();
            let skipped = check(&db, &expected);
            let unreadable = expected.keys().filter(|key| db.get(key).is_err());
            for key in unreadable {
                assert!(skipped.iter().any(|lost| lost.keys.contains(key)), "{}", key.escape_ascii());
            }
        }
    }
}

#[test]
fn a_lack_of_descriptors_is_no_damage_to_skip() {
    let (fs, _) = two_levels(|db| db.put(key(1), "new").unwrap());
    let db = options(&fs).read_only(true).open(STORE).unwrap();
    fs.fail(Fault { forever: true, ..Fault::once(OpKind::Open, 0) }.with(Errno::TooManyFiles));
    let skipped = Skipped::new();
    let mut range = db.iter().skip_damaged(&skipped);
    assert!(range.next().unwrap().unwrap_err().is_out_of_descriptors());
    assert!(range.next().is_none() && skipped.is_empty());
}

/// Gives a block a last value that does not decode, and a valid checksum.
fn spoil_last_value(path: &PathBuf, block: &Part) {
    let mut bytes = std::fs::read(path).unwrap();
    let (start, crc_at) = (block.bytes.start, block.bytes.end - 4);
    bytes[crc_at - 5..crc_at - 1].copy_from_slice(&[253, 0, 253, 0]); // Runs of no zeros.
    let id: u64 = path.file_stem().unwrap().to_str().unwrap().parse().unwrap();
    let place = [id.to_le_bytes(), (start as u64).to_le_bytes()].concat();
    let crc = crc32fast::hash(&[&bytes[start..crc_at], &place].concat());
    bytes[crc_at..crc_at + 4].copy_from_slice(&crc.to_le_bytes());
    std::fs::write(path, bytes).unwrap();
}

/// A long skip reads keys only. It must still pass the rows that it cannot show.
#[test]
fn a_long_skip_passes_values_that_do_not_decode_as_single_steps_do() {
    let dir = fast_dir();
    let options = || tiny().memtable_bytes(1 << 20).compression(Compression::Fsst);
    let db = options().open(dir.path()).unwrap();
    (0..400).for_each(|n| db.put(key(n), format!("the title of song {n}")).unwrap());
    db.flush().unwrap();
    drop(db);
    let path = files_with(dir.path(), ".segment").remove(0);
    let layout = Layout::of(&std::fs::read(&path).unwrap());
    let block = layout.data.iter().find(|block| block.rows[0].0 >= key(100)).unwrap();
    spoil_last_value(&path, block);
    let db = options().open(dir.path()).unwrap();
    let skipping = || db.iter().skip_damaged(&Skipped::new());
    let shown: Vec<_> = skipping().map(|row| row.unwrap().0).collect();
    assert_eq!(shown.len(), 400 - block.rows.len());
    assert_eq!(skipping().count().unwrap(), shown.len() as u64);
    for n in (0..410).step_by(3) {
        assert_eq!(skipping().nth(n).map(|row| row.unwrap().0).as_ref(), shown.get(n));
        assert_eq!(skipping().nth_back(n).map(|row| row.unwrap().0).as_ref(), shown.iter().rev().nth(n));
    }
}
