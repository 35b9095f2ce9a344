//! Segments where no public call puts them: overlapping in level 1 (I10), and in every kind of quarantine.

use super::compaction::{Compaction, CompactionKind};
use super::pick::pick_level0;
use super::reservation::Reservation;
use crate::engine::filters::level_sizes::LevelSizes;
use crate::engine::open::{OldFiles, open_writable};
use crate::error::Error;
use crate::filter::PrefixSet;
use crate::fs::RealFs;
use crate::id::FileKind;
use crate::manifest::{Manifest, Place, Quarantine, read_state};
use crate::segment::SegmentSummary;
use crate::segment::format::block_crc;
use crate::support::{eventually, fast_dir};
use crate::{Compression, Db, FilterPolicy, Options, repair};
use std::path::PathBuf;
use std::sync::Arc;

/// Opening a store with an overlapping sorted level fails with its file name; a repair recovers every key.
#[test]
fn i10_an_overlapping_level_is_refused_and_repair_keeps_every_key() {
    let dir = fast_dir();
    let path = dir.path().join("store");
    let db = Db::open(&path).unwrap();
    for (round, keys) in [["a", "m", "z"], ["b", "m", "n"]].iter().enumerate() {
        keys.iter().for_each(|key| db.put(key, [round as u8]).unwrap());
        db.flush().unwrap();
    }
    drop(db);
    let mut state = read_state(&RealFs, &path).unwrap();
    assert_eq!(state.segments.len(), 2);
    state.segments.values_mut().for_each(|meta| meta.place = Place::Level(1));
    Manifest::create(Arc::new(RealFs), &path, &state).unwrap();

    for read_only in [false, true] {
        match crate::Options::new().read_only(read_only).open(&path) {
            Err(Error::Corruption { file, what, .. }) => {
                assert!(file.ends_with("MANIFEST") && what.contains("overlap"), "{what}");
            }
            other => panic!("not refused: {:?}", other.map(|_| ())),
        }
    }
    assert!(repair(&path).unwrap().rebuilt);
    let db = Db::open(&path).unwrap();
    for (key, round) in [("a", 0), ("b", 1), ("m", 1), ("n", 1), ("z", 0)] {
        assert_eq!(db.get(key).unwrap().as_deref(), Some([round].as_slice()), "{key}");
    }
}

/// Level and rows of a segment.
pub(crate) type InPlace<'a> = (Place, &'a [(&'a str, &'a str)]);

/// A store with these segments, oldest first, in their levels.
pub(crate) fn store_of(segments: &[(u8, &[(&str, &str)])]) -> (tempfile::TempDir, PathBuf) {
    let segments: Vec<InPlace<'_>> =
        segments.iter().map(|(level, rows)| (Place::Level(*level), *rows)).collect();
    store_with(&segments, |_| ())
}

/// A store with these segments. `more` runs before each is flushed.
pub(crate) fn store_with(segments: &[InPlace<'_>], more: impl Fn(&Db)) -> (tempfile::TempDir, PathBuf) {
    let dir = fast_dir();
    let path = dir.path().join("store");
    let db = Options::new().compression(Compression::None).open(&path).unwrap();
    for (_, rows) in segments {
        rows.iter().for_each(|(key, value)| db.put(key, value).unwrap());
        more(&db);
        db.flush().unwrap();
    }
    drop(db);
    let mut state = read_state(&RealFs, &path).unwrap();
    assert_eq!(state.segments.len(), segments.len());
    for (meta, (place, _)) in state.segments.values_mut().zip(segments) {
        meta.place = *place;
    }
    Manifest::create(Arc::new(RealFs), &path, &state).unwrap();
    (dir, path)
}

/// A segment returns from quarantine above everything older and below everything newer, in every level.
#[test]
fn a_segment_returns_from_quarantine_between_older_and_newer_ones() {
    // Large, so that other compactions do not reach its level.
    let large = "x".repeat(20_000);
    let was = |left, overtaken| Place::Quarantine(Quarantine { left, overtaken });
    let returning: &[(&str, &str)] = &[("a", "2"), ("j", "2"), ("k", "2"), ("z", "2")];
    let (older, newer): (&[_], &[_]) = (&[("k", "1")], &[("j", "3"), ("y", &large)]);
    let last = &[("j", "3"), ("k", "4")];
    let cases: [&[InPlace<'_>]; 8] = [
        &[(Place::Level(2), older), (was(1, 1), returning), (Place::Level(0), newer)],
        &[(Place::Level(2), older), (was(1, 3), returning), (Place::Level(3), newer)],
        &[(Place::Level(4), older), (was(2, 3), returning), (Place::Level(3), newer)],
        &[(Place::Level(0), older), (was(0, 0), returning), (Place::Level(0), newer)],
        &[(Place::Level(0), older), (was(0, 2), returning), (Place::Level(2), newer)],
        &[(was(0, 1), returning), (Place::Level(0), last), (Place::Level(0), newer)],
        &[(Place::Level(2), returning), (was(1, 3), last), (Place::Level(3), newer)],
        &[(was(2, 2), returning), (was(1, 3), last), (Place::Level(3), newer)],
    ];
    let run = |number: usize, segments: &[InPlace<'_>]| {
        let (_dir, path) = store_with(segments, |_| ());
        let db = Options::new().compression(Compression::None).open(&path).unwrap();
        let is_overwritten = segments.iter().any(|(_, rows)| *rows == last);
        let expected = [("a", "2"), ("j", "3"), ("k", if is_overwritten { "4" } else { "2" }), ("z", "2")];
        let check = |when| {
            for (key, value) in expected {
                let found = db.get(key).unwrap();
                assert_eq!(found.as_deref(), Some(value.as_bytes()), "{key} {when}, case {number}");
            }
        };
        check("in quarantine");
        eventually("it returns", || db.stats().segments_quarantined == 0);
        check("back");
        assert!(db.verify().unwrap().is_ok());
        db.compact().unwrap();
        check("compacted");
    };
    // All at once: each waits a second for its return.
    std::thread::scope(|scope| {
        for (number, segments) in cases.into_iter().enumerate() {
            scope.spawn(move || run(number, segments));
        }
    });
}

/// Compacts a segment that no writer produces: the error names the file, and the store stays writable (I5).
fn compaction_names(path: &std::path::Path, segment: &str) {
    let db = Db::open(path).unwrap();
    ["b", "y"].iter().for_each(|key| db.put(key, "new").unwrap());
    match db.compact() {
        Err(Error::Corruption { file, .. }) => assert!(file.ends_with(segment), "{}", file.display()),
        other => panic!("not refused by name: {other:?}"),
    }
    db.put("e", "new").unwrap();
    db.flush().unwrap();
    assert_eq!(db.stats().segments_quarantined, 1);
    assert_eq!(db.get("e").unwrap().as_deref(), Some(b"new".as_slice()));
}

#[test]
fn i5_keys_out_of_order_under_right_checksums_are_damage_to_their_segment() {
    let (_dir, path) = store_of(&[(1, &[("a", "1"), ("b", "2"), ("c", "3")])]);
    let state = read_state(&RealFs, &path).unwrap();
    let id = state.segments.values().next().unwrap().id;
    let file = path.join(id.file_name(FileKind::Segment));
    let mut bytes = std::fs::read(&file).unwrap();
    let crc_at = |bytes: &[u8], at: usize| block_crc(id, 0, &bytes[..at]).to_le_bytes() == bytes[at..at + 4];
    let end = (1..bytes.len() - 4).find(|&at| crc_at(&bytes, at)).unwrap();
    let b = bytes[..end].iter().rposition(|&byte| byte == b'b').unwrap();
    bytes[b] = b'0';
    let crc = block_crc(id, 0, &bytes[..end]).to_le_bytes();
    bytes[end..end + 4].copy_from_slice(&crc);
    std::fs::write(&file, bytes).unwrap();
    compaction_names(&path, &id.file_name(FileKind::Segment));
}

#[test]
fn i5_no_pair_of_bits_under_a_right_checksum_is_an_internal_error() {
    let rows: &[(&str, &str)] = &[("a", "old"), ("c", "old")];
    let (_dir, path) = store_with(
        &[(Place::Level(3), rows), (Place::Level(2), rows), (Place::Level(1), &[("a", "1"), ("c", "33")])],
        |db| db.delete("b").unwrap(),
    );
    let files = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> = files.map(|file| (std::fs::read(&file).unwrap(), file)).collect();
    let id = *read_state(&RealFs, &path).unwrap().segments.keys().next_back().unwrap();
    let segment = path.join(id.file_name(FileKind::Segment));
    let sound = std::fs::read(&segment).unwrap();
    let crc = |bytes: &[u8], end: usize| block_crc(id, 0, &bytes[..end]).to_le_bytes();
    let end = (1..sound.len() - 4).find(|&at| crc(&sound, at) == sound[at..at + 4]).unwrap();
    let mut damaged = 0;
    // Except for the block type, which may need a feature.
    for (at, bit) in (0..end - 3).flat_map(|at| (0..7).map(move |bit| (at, bit))) {
        std::fs::remove_dir_all(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        files.iter().for_each(|(bytes, file)| std::fs::write(file, bytes).unwrap());
        let mut bytes = sound.clone();
        bytes[at] ^= 3 << bit;
        let crc = crc(&bytes, end);
        bytes[end..end + 4].copy_from_slice(&crc);
        std::fs::write(&segment, bytes).unwrap();
        // Without background threads, which would be faster.
        let engine = open_writable(&path, Options::new(), OldFiles::Remove).unwrap();
        let live = engine.shared.live();
        let damaged_one = live.segments().find(|s| s.meta.id == id).unwrap().clone();
        let planned = Compaction::down(&live, vec![damaged_one], 2, &[]).unwrap();
        match engine.compactor.compact_one(&planned) {
            Ok(()) => {}
            Err(Error::Corruption { file, .. }) if file == segment => damaged += 1,
            // Entry kinds of a newer version.
            Err(Error::UnknownCode { file, .. }) if file == segment => {}
            Err(other) => panic!("bit {bit} at {at}: {other}"),
        }
    }
    assert!(damaged > end, "{damaged} of {end} bytes");
}

#[test]
fn i5_bounds_that_the_manifest_has_wrong_are_damage_to_their_segment() {
    let (_dir, path) = store_of(&[(1, &[("a", "1"), ("b", "2")]), (1, &[("c", "3"), ("d", "4")])]);
    let mut state = read_state(&RealFs, &path).unwrap();
    let first = state.segments.values_mut().next().unwrap();
    (first.summary.facts.smallest, first.summary.facts.largest) = (b"x".to_vec(), b"y".to_vec().into());
    let id = first.id;
    Manifest::create(Arc::new(RealFs), &path, &state).unwrap();
    compaction_names(&path, &id.file_name(FileKind::Segment));
}

/// Verify finds what the manifest says wrongly about a segment, and a repair fixes it.
#[test]
fn verify_finds_and_repair_mends_what_a_manifest_has_wrong() {
    let (_dir, path) = store_of(&[(1, &[("a", "1"), ("b", "2")]), (1, &[("c", "3"), ("d", "4")])]);
    let sound = read_state(&RealFs, &path).unwrap();
    let wrong: [fn(&mut SegmentSummary); 9] = [
        |summary| summary.version -= 1,
        |summary| summary.facts.smallest = b"b".to_vec(),
        |summary| summary.facts.largest = b"a".to_vec().into(),
        |summary| summary.facts.entries += 1,
        |summary| summary.facts.tombstones += 1,
        |summary| summary.facts.min_seq -= 1,
        |summary| summary.facts.max_seq += 1,
        |summary| summary.data_bytes -= 1,
        |summary| summary.facts.raw_bytes += 1,
    ];
    for (field, change) in wrong.into_iter().enumerate() {
        let mut state = sound.clone();
        let first = state.segments.values_mut().next().unwrap();
        change(&mut first.summary);
        let name = first.id.file_name(FileKind::Segment);
        Manifest::create(Arc::new(RealFs), &path, &state).unwrap();
        let read_only = || Options::new().read_only(true).open(&path).unwrap();
        match read_only().verify().unwrap().problems.first() {
            Some(Error::Corruption { file, what, .. }) => {
                assert!(file.ends_with(&name) && what.contains("bounds or counts"), "field {field}: {what}");
            }
            other => panic!("field {field} passes: {other:?}"),
        }
        let report = repair(&path).unwrap();
        assert!(report.rebuilt && report.set_aside.is_empty() && report.lost.is_empty(), "{report:?}");
        let repaired = read_state(&RealFs, &path).unwrap();
        assert_eq!(repaired.segments, sound.segments, "field {field}");
        assert!(read_only().verify().unwrap().is_ok());
        assert_eq!(read_only().iter().count().unwrap(), 4);
    }
}

/// Whether or not a merge has to read it: with others, alone above an empty level, alone in the deepest one,
/// with tombstones there.
#[test]
fn i14_a_compaction_leaves_no_segment_in_an_earlier_format() {
    let rows: &[(&str, &str)] = &[("a", "1"), ("m", "1")];
    let level = Place::Level;
    let cases: [&[InPlace<'_>]; 4] = [
        &[(level(0), rows), (level(0), rows)],
        &[(level(1), rows)],
        &[(level(6), rows)],
        &[(level(5), &[("x", "1")]), (level(4), rows), (level(1), &[("m", "2")])],
    ];
    for segments in cases {
        for deletes in [false, true] {
            let more = |db: &Db| {
                if deletes {
                    db.delete("b").unwrap()
                }
            };
            let (_dir, path) = store_with(segments, more);
            let mut state = read_state(&RealFs, &path).unwrap();
            state.segments.values_mut().for_each(|meta| meta.summary.version -= 1);
            Manifest::create(Arc::new(RealFs), &path, &state).unwrap();
            let read_only = || Options::new().read_only(true).open(&path).unwrap();
            let before: Vec<_> = read_only().iter().map(Result::unwrap).collect();
            assert_eq!(read_only().stats().segments_of_earlier_formats, segments.len() as u64);
            let db = Db::open(&path).unwrap();
            db.compact().unwrap();
            assert_eq!(db.stats().segments_of_earlier_formats, 0, "{segments:?}");
            drop(db);
            let after = read_state(&RealFs, &path).unwrap();
            assert!(after.segments.keys().all(|id| !state.segments.contains_key(id)), "{segments:?}");
            assert!(read_only().verify().unwrap().is_ok());
            assert_eq!(read_only().iter().map(Result::unwrap).collect::<Vec<_>>(), before);
        }
    }
}

/// A segment whose tombstones still hide something keeps them.
#[test]
fn i14_an_earlier_segment_is_not_moved_and_keeps_its_tombstones() {
    let (_dir, path) = store_with(
        &[
            (Place::Quarantine(Quarantine { left: 2, overtaken: 2 }), &[("a", "1"), ("b", "1")]),
            (Place::Level(1), &[("a", "2"), ("c", "2")]),
        ],
        |db| db.delete("b").unwrap(),
    );
    let mut state = read_state(&RealFs, &path).unwrap();
    state.segments.values_mut().for_each(|meta| meta.summary.version -= 1);
    Manifest::create(Arc::new(RealFs), &path, &state).unwrap();
    let db = Options::new().read_only(true).open(&path).unwrap();
    let live = db.engine().shared.live();
    let segment = live.levels()[1].segments().iter().next().unwrap();
    let down = Compaction::down(&live, vec![segment.clone()], 2, &[]).unwrap();
    let rewritten = Compaction::rewrite(&live, segment, &[]).unwrap();
    assert_eq!((down.kind, rewritten.kind), (CompactionKind::Merge, CompactionKind::Rewrite));
    assert!(!down.bottom && !rewritten.bottom);
}

#[test]
fn i14_an_earlier_segment_does_not_move_along() {
    let (_dir, path) = store_of(&[(1, &[("a", "1")]), (1, &[("m", "1")])]);
    for (is_earlier, moved) in [(false, 2), (true, 1)] {
        let mut state = read_state(&RealFs, &path).unwrap();
        state.segments.values_mut().next().unwrap().summary.version -= u32::from(is_earlier);
        Manifest::create(Arc::new(RealFs), &path, &state).unwrap();
        let db = Options::new().read_only(true).open(&path).unwrap();
        let live = db.engine().shared.live();
        let of_level = live.levels()[1].segments();
        let first = Compaction::down(&live, vec![of_level.get(1).unwrap().clone()], 2, &[]).unwrap();
        assert_eq!(first.along(of_level.iter().take(1), u64::MAX, &[]).upper.len(), moved);
    }
}

#[test]
fn a_move_leaves_a_segment_in_quarantine_that_went_there_meanwhile() {
    let (_dir, path) = store_of(&[(1, &[("m", "1")])]);
    let db = Db::open(&path).unwrap();
    let (engine, live) = (db.engine(), db.engine().shared.live());
    let segment = live.segments().next().unwrap();
    let planned = Compaction::down(&live, vec![segment.clone()], 2, &[]).unwrap();
    let file = path.join(segment.meta.id.file_name(FileKind::Segment));
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[0] ^= 1; // So that it does not return by itself.
    std::fs::write(&file, bytes).unwrap();
    assert!(engine.publisher.quarantine(&Error::corruption(&file, 0, "a flipped bit")));
    let plan = FilterPolicy::default().plan(LevelSizes::of(&live, [], &PrefixSet::default())).unwrap();
    engine.filters.retune(&segment.meta, plan.filter_for(&segment.meta)).unwrap(); // It is not even read.
    engine.compactor.compact_one(&planned).unwrap();
    assert_eq!(db.stats().segments_quarantined, 1);
    assert!(engine.shared.live().levels()[2].segments().len() == 0);
}

#[test]
fn a_merge_within_level_0_keeps_no_older_segment_from_leaving_it() {
    let rows: &[(&str, &str)] = &[("a", "1"), ("z", "1")];
    let (_dir, path) = store_of(&[(0, rows), (0, rows), (0, rows)]);
    let db = Options::new().read_only(true).open(&path).unwrap();
    let live = db.engine().shared.live();
    let level0 = live.levels()[0].segments();
    let merging = Reservation::of(level0.iter().take(2), 0);
    let upper = |running: &[Reservation]| -> Vec<_> {
        let picked = pick_level0(&live, &db.engine().shared.storage.options, running)
            .map(|compaction| compaction.upper)
            .unwrap_or_default();
        picked.iter().map(|s| s.meta.id).collect()
    };
    assert_eq!(upper(&[]).len(), 3);
    assert_eq!(upper(merging.as_slice()), [level0.get(2).unwrap().meta.id]);
    assert_eq!(upper(Reservation::of(level0.iter(), 0).as_slice()), []);
}

#[test]
fn segments_in_quarantine_wait_while_another_one_comes_back() {
    let place = Place::Quarantine(Quarantine { left: 1, overtaken: 1 });
    let (_dir, path) = store_with(&[(place, &[("a", "1")]), (place, &[("m", "1")])], |_| ());
    // Read-only, so that no background thread takes one back.
    let db = Options::new().read_only(true).open(&path).unwrap();
    let (control, compactor) = (&db.engine().shared.control, &db.engine().compactor);
    compactor.queue_suspects();
    let next = || compactor.reserve_suspect(|_| true).map(|back| back.upper[0].meta.id);
    let first = next().unwrap();
    assert_eq!(next(), None, "two could pass each other");
    control.lock().compactions.running.clear();
    assert!(next().is_some_and(|second| second != first), "the second one has kept its turn");
    control.lock().compactions.running.clear();
}

/// A read that is scheduled while quarantined segments are queued stays scheduled.
#[test]
fn queueing_segments_in_quarantine_keeps_a_read_that_is_scheduled() {
    for place in [Place::Level(1), Place::Quarantine(Quarantine { left: 1, overtaken: 1 })] {
        let (_dir, path) = store_with(&[(place, &[("a", "1")])], |_| ());
        let db = Options::new().read_only(true).open(&path).unwrap();
        let (control, now) = (&db.engine().shared.control, crate::sync::Instant::now());
        control.lock().suspects.next.schedule_soon();
        let due = control.lock().suspects.next.until(now);
        db.engine().compactor.queue_suspects();
        assert!(due.is_some() && control.lock().suspects.next.until(now) == due, "{place:?}");
    }
}
