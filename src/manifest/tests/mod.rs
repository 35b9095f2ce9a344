//! The guarantees of a manifest, on a simulated disk.

mod extremes;
mod golden;
mod refused;
mod tail;
mod versions;

use super::format::{decode_payload, encode_edit, encode_header, place_of, tag};
use super::*;
use crate::error::{Error, Result};
use crate::fs::create_dir_durably;
use crate::hash::KeyHasher;
use crate::id::FileId;
use crate::key::Time;
use crate::segment::{Expiries, Facts, SegmentSummary, StoreIdentity};
use crate::support::{Crash, Errno, Fault, OpKind, SimFs};
use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;

const HEADER: StoreIdentity = StoreIdentity { store_id: 0x5eed_cafe, hasher: KeyHasher::siphash13([77, 78]) };

fn segment(id: u64) -> SegmentMeta {
    let summary = SegmentSummary {
        id: FileId(id),
        version: 5,
        digest: id.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        file_bytes: 4096,
        data_bytes: 4000,
        facts: Facts {
            smallest: format!("key {id}").into_bytes(),
            largest: format!("key {id}{}", "\0".repeat(290)).into_bytes().into(),
            entries: 1000 * id,
            tombstones: id,
            longest_streak: id / 2,
            ranges: id % 3,
            min_seq: id,
            max_seq: 2 * id,
            raw_bytes: 9000,
            expiries: Expiries { count: id % 2, quartiles: [1, 2, 2, 3, 4].map(|n| n * (id % 2)) },
            bucket: Time::of_millis(id % 5),
        },
    };
    SegmentMeta { place: Place::Level((id % 7) as u8), summary }
}

fn segment_to(largest: &[u8], id: u64) -> SegmentMeta {
    let mut meta = segment(id);
    meta.summary.facts.largest = largest.to_vec().into();
    meta
}

fn segment_of(max_seq: u64, level: u8) -> SegmentMeta {
    let mut meta = SegmentMeta { place: Place::Level(level), ..segment(1) };
    meta.summary.facts.max_seq = max_seq;
    meta
}

/// A sequence of valid edits: edit n adds segment n, and sometimes removes one or moves one to another level.
fn edit(n: u64) -> Edit {
    let mut edit = Edit { added: vec![segment(n)], ..Edit::default() };
    match n % 3 {
        0 => edit.removed = vec![FileId(n - 1)],
        1 if n > 1 => {
            edit.removed = vec![FileId(n - 3)];
            edit.added.push(SegmentMeta { place: Place::Level(6), ..segment(n - 3) });
        }
        _ => {}
    }
    edit.last_seq = Some(2 * n);
    edit.log_floor = Some(FileId(n));
    edit
}

fn disk() -> SimFs {
    let fs = SimFs::new();
    create_dir_durably(&fs, Path::new("db")).unwrap();
    fs
}

/// Writes a manifest with the edits 1 to n. Returns the state and the length of the file after each.
fn store(fs: &SimFs, n: u64) -> Result<(Vec<ManifestState>, Vec<usize>)> {
    let mut states = vec![ManifestState::new(HEADER)];
    let mut manifest = Manifest::create(Arc::new(fs.clone()), Path::new("db"), &states[0])?;
    let len = || fs.read("db/MANIFEST").unwrap().len();
    let mut lens = vec![len()];
    for n in 1..=n {
        let mut state = states.last().unwrap().clone();
        manifest.append(&edit(n), &mut state)?;
        states.push(state);
        lens.push(len());
    }
    Ok((states, lens))
}

/// The state that readers and writers find, which must be the same.
fn reopened(fs: &SimFs) -> Result<ManifestState> {
    let read_only = read_state(fs, Path::new("db"));
    let opened = Manifest::open(Arc::new(fs.clone()), Path::new("db")).map(|(_, state)| state);
    match (&read_only, &opened) {
        (Ok(read_only), Ok(opened)) => assert!(read_only == opened),
        _ => assert_eq!(
            read_only.as_ref().err().map(Error::to_string),
            opened.as_ref().err().map(Error::to_string)
        ),
    }
    opened
}

fn with_bytes(bytes: &[u8]) -> SimFs {
    let fs = disk();
    fs.write("db/MANIFEST", bytes);
    fs
}

fn is_corruption(outcome: &Result<ManifestState>) -> bool {
    matches!(outcome, Err(Error::Corruption { file, .. }) if file == Path::new("db/MANIFEST"))
}

#[test]
fn what_was_appended_is_there_when_the_store_is_opened_again() {
    let fs = disk();
    let (mut states, _) = store(&fs, 10).unwrap();
    let (mut manifest, mut state) = Manifest::open(Arc::new(fs.clone()), Path::new("db")).unwrap();
    assert_eq!(&state, states.last().unwrap());
    manifest.rewrite(&state).unwrap();
    assert_eq!(state.segments[&FileId(7)].place, Place::Level(6), "moved");
    manifest.append(&edit(11), &mut state).unwrap();
    states.push(state);
    assert_eq!(reopened(&fs).unwrap(), states[11]);
}

#[test]
fn a_directory_without_a_manifest_is_no_store() {
    assert!(matches!(reopened(&disk()), Err(Error::NotAStore { .. })));
}

#[test]
fn an_edit_that_does_not_fit_changes_nothing() {
    let mut state = ManifestState::new(HEADER);
    for n in 1..=3 {
        state.apply(&edit(n)).unwrap();
    }
    let before = state.clone();
    let unknown = Edit { removed: vec![FileId(2)], added: vec![segment(9)], ..Edit::default() };
    let twice_removed = Edit { removed: vec![FileId(1), FileId(1)], ..Edit::default() };
    let duplicate = Edit { added: vec![segment(9), segment(1)], ..Edit::default() };
    let twice_added = Edit { added: vec![segment(9), segment(9)], ..Edit::default() };
    let lower_floor = Edit { log_floor: Some(FileId(2)), ..Edit::default() };
    let lower_seq = Edit { last_seq: Some(5), ..Edit::default() };
    let floor_of_no_file = Edit { log_floor: Some(FileId(5)), next_id: Some(FileId(4)), ..Edit::default() };
    for edit in [unknown, twice_removed, duplicate, twice_added, lower_floor, lower_seq, floor_of_no_file] {
        assert!(state.apply(&edit).is_err(), "{edit:?}");
        assert_eq!(state, before);
    }
}

#[test]
fn the_next_file_number_is_beyond_every_segment_and_never_goes_down() {
    let mut state = ManifestState::new(HEADER);
    state.apply(&Edit { added: vec![segment(9)], next_id: Some(FileId(5)), ..Edit::default() }).unwrap();
    assert_eq!(state.next_id, FileId(10));
    state.apply(&Edit { next_id: Some(FileId(20)), ..Edit::default() }).unwrap();
    state.apply(&Edit { removed: vec![FileId(9)], next_id: Some(FileId(3)), ..Edit::default() }).unwrap();
    assert_eq!(state.next_id, FileId(20));
}

/// A manifest cut at any byte gives the edits before the cut, and is intact once rewritten.
#[test]
fn i4_a_manifest_cut_at_any_byte_gives_the_edits_before_the_cut() {
    let fs = disk();
    let (states, lens) = store(&fs, 5).unwrap();
    let bytes = fs.read("db/MANIFEST").unwrap();
    for cut in 0..bytes.len() {
        let fs = with_bytes(&bytes[..cut]);
        let outcome = reopened(&fs);
        let Some(whole) = lens.iter().rposition(|&len| len <= cut) else {
            assert!(is_corruption(&outcome), "cut at {cut}");
            continue;
        };
        assert_eq!(outcome.unwrap(), states[whole], "cut at {cut}");
        let (mut manifest, mut state) = Manifest::open(Arc::new(fs.clone()), Path::new("db")).unwrap();
        manifest.rewrite(&state).unwrap();
        let next = edit(whole as u64 + 1);
        manifest.append(&next, &mut state).unwrap();
        assert_eq!(reopened(&fs).unwrap(), state, "cut at {cut}");
    }
}

#[test]
fn i6_every_flipped_bit_is_corruption() {
    let fs = disk();
    store(&fs, 4).unwrap();
    let bytes = fs.read("db/MANIFEST").unwrap();
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let outcome = read_state(&with_bytes(&flipped), Path::new("db"));
        assert!(is_corruption(&outcome), "bit {bit}: {outcome:?}");
    }
}

/// A zero sector is a lost write in the last edit, and corruption before it.
#[test]
fn i4_a_zero_sector_is_a_lost_write_only_in_the_last_edit() {
    let fs = disk();
    let (states, lens) = store(&fs, 6).unwrap();
    let bytes = fs.read("db/MANIFEST").unwrap();
    let last = lens[5];
    for sector in 0..bytes.len().div_ceil(512) {
        let (from, to) = (sector * 512, ((sector + 1) * 512).min(bytes.len()));
        if to > last {
            let mut lost = bytes.clone();
            lost[from.max(last)..to].fill(0);
            assert_eq!(reopened(&with_bytes(&lost)).unwrap(), states[5], "sector {sector}");
        }
        if from < last {
            let mut damaged = bytes.clone();
            damaged[from..to.min(last)].fill(0);
            assert!(is_corruption(&reopened(&with_bytes(&damaged))), "sector {sector}");
        }
    }
}

#[test]
fn a_manifest_that_outgrows_its_snapshot_is_written_anew() {
    let fs = disk();
    let mut state = ManifestState::new(HEADER);
    let mut manifest = Manifest::create(Arc::new(fs.clone()), Path::new("db"), &state).unwrap();
    let mut longest = 0;
    for n in 1..200 {
        let mut edit = Edit { added: vec![segment_to(&[0xff; 60_000], n)], ..Edit::default() };
        if n > 1 {
            edit.removed = vec![FileId(n - 1)];
        }
        manifest.append(&edit, &mut state).unwrap();
        longest = longest.max(fs.read("db/MANIFEST").unwrap().len());
        assert_eq!(read_state(&fs, Path::new("db")).unwrap(), state);
    }
    assert!((900_000..=1 << 20).contains(&longest), "{longest} bytes");
    assert_eq!(fs.files(), [Path::new("db/MANIFEST")]);
}

/// The workload of the crash tests: large keys, so that the manifest is rewritten on the way.
fn edit_until_failure(fs: &SimFs) -> (ManifestState, Option<ManifestState>) {
    let mut acknowledged = ManifestState::new(HEADER);
    let mut manifest = match Manifest::create(Arc::new(fs.clone()), Path::new("db"), &acknowledged) {
        Ok(manifest) => manifest,
        Err(_) => return (acknowledged, None),
    };
    for n in 1..=25 {
        let mut edit = Edit { added: vec![segment_to(&[0xff; 60_000], n)], ..Edit::default() };
        if n > 1 {
            edit.removed = vec![FileId(n - 1)];
        }
        let mut state = acknowledged.clone();
        if manifest.append(&edit, &mut state).is_err() {
            assert_eq!(state, acknowledged, "a failed edit leaves the state as it was");
            state.apply(&edit).unwrap();
            return (acknowledged, Some(state));
        }
        acknowledged = state;
    }
    (acknowledged, None)
}

/// After a crash at any write, the acknowledged edits are there, and at most one more.
#[test]
fn i4_a_crash_keeps_acknowledged_edits_and_at_most_one_more() {
    let fs = disk();
    edit_until_failure(&fs);
    let writes = fs.writes();
    assert!(fs.log().contains("rename"));
    for stop in 0..writes {
        let fs = disk();
        fs.fail(Fault::stop(stop).short());
        let (acknowledged, unknown) = edit_until_failure(&fs);
        for seed in 0..8 {
            let crash = [Crash::Kill, Crash::Power, Crash::PowerOrdered, Crash::Power][seed as usize % 4];
            let found = fs.crash(crash, seed);
            let state = match reopened(&found) {
                Err(Error::NotAStore { .. }) if unknown.is_none() => continue,
                outcome => {
                    outcome.unwrap_or_else(|e| panic!("stop {stop}, {crash:?} {seed}: {e}\n{}", fs.log()))
                }
            };
            assert!(
                state == acknowledged || Some(&state) == unknown.as_ref(),
                "stop {stop}, {crash:?} {seed}"
            );
            // Once rewritten, a power cut does not revert what a process has seen.
            let (mut manifest, state) = Manifest::open(Arc::new(found.clone()), Path::new("db")).unwrap();
            manifest.rewrite(&state).unwrap();
            let again = found.crash(Crash::Power, seed);
            assert!(reopened(&again).unwrap() == state, "stop {stop}, {crash:?} {seed}, then a power cut");
        }
    }
}

#[test]
fn i5_a_failed_write_or_sync_is_reported_and_not_retried() {
    for (kind, attempts) in [(OpKind::Append, 1), (OpKind::Sync, 2)] {
        let fs = disk();
        let mut manifest =
            Manifest::create(Arc::new(fs.clone()), Path::new("db"), &ManifestState::new(HEADER)).unwrap();
        fs.fail(Fault::once(kind, 0).with(Errno::NoSpace));
        let mut state = ManifestState::new(HEADER);
        let writes = fs.writes();
        assert!(
            matches!(manifest.append(&edit(1), &mut state), Err(Error::Io { op, .. }) if op == kind.op())
        );
        assert_eq!(fs.writes(), writes + attempts, "nothing follows the failure:\n{}", fs.log());
    }
}

fn any_segment() -> impl Strategy<Value = SegmentMeta> {
    (any::<[u64; 4]>(), any::<[u64; 2]>(), any::<[u32; 2]>(), any::<[Vec<u8>; 2]>(), 0..7u8).prop_map(
        |([id, digest, file_bytes, data_bytes], mut seqs, [entries, deleted], mut keys, level)| {
            seqs = seqs.map(|seq| seq >> 1);
            seqs.sort();
            keys.sort();
            let [smallest, largest] = keys;
            let summary = SegmentSummary {
                id: file_id(id),
                version: digest as u32,
                digest,
                file_bytes: file_bytes.max(data_bytes),
                data_bytes: file_bytes.min(data_bytes),
                facts: Facts {
                    smallest,
                    largest: largest.into(),
                    entries: u64::from(entries) + u64::from(deleted) + 2,
                    tombstones: u64::from(deleted),
                    longest_streak: u64::from(deleted) / 3 + digest / 2,
                    ranges: digest,
                    min_seq: seqs[0],
                    max_seq: seqs[1],
                    ..segment(1).summary.facts
                },
            };
            SegmentMeta { place: place_of(level), summary }
        },
    )
}

fn file_id(number: u64) -> FileId {
    FileId(number >> 2)
}

proptest! {
    #[test]
    fn i6_edits_come_back_as_they_were_and_no_cut_payload_is_one(
        removed: Vec<u64>,
        added in prop::collection::vec(any_segment(), 0..4),
        numbers: [Option<u64>; 3],
        mark: Option<(u64, u64, u64)>,
        time in prop::option::of(0..=Time::MAX.millis()),
    ) {
        let edit = Edit {
            removed: removed.into_iter().map(file_id).collect(),
            added,
            log_floor: numbers[0].map(file_id),
            next_id: numbers[1].map(file_id),
            last_seq: numbers[2].map(|seq| seq >> 1),
            log_mark: mark.map(|(log, bytes, seq)| LogMark { log: file_id(log), bytes, next_seq: seq >> 1 }),
            time: time.map(Time::of_millis),
        };
        let encoded = encode_edit(&edit, tag(HEADER)).unwrap();
        let payload = &encoded[format::EDIT_HEAD_BYTES..];
        prop_assert_eq!(decode_payload(payload), Some(edit));
        for cut in 0..payload.len() {
            prop_assert_eq!(decode_payload(&payload[..cut]), None);
        }
    }

    #[test]
    fn i6_arbitrary_payloads_never_panic(payload: Vec<u8>) {
        let _ = decode_payload(&payload);
    }
}
