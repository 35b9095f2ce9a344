//! The guarantees of a log, checked on whole files.

mod gaps;
mod golden;
mod misdirected;
mod newer;
mod refused;
mod tail;

use super::format::{HEADER_BYTES, LogHeader, RecordHead, encode_record};
use super::reader::{ReadTo, Replay};
use super::salvage::Unreadable;
use super::{Batch, ExpectedLog, LogEnd, LogRecord, LogWriter, ops, replay, salvage};
use crate::error::{Error, Result};
use crate::id::FileId;
use crate::key::Seq;
use crate::support::SimFs;
use bytes::Bytes;
use proptest::prelude::*;
use std::path::Path;

const ID: FileId = FileId(7);
const STORE: u64 = 0x5eed_cafe;
const FIRST: Seq = 100;
const EXPECTED: ExpectedLog = ExpectedLog { id: ID, store_id: STORE, next_seq: FIRST, synced: 0 };

/// A log, with what the test wrote to it.
struct TestLog {
    fs: SimFs,
    writer: LogWriter,
    written: Vec<(Seq, Bytes, u32)>,
    /// Offsets of the records, and the end of the last one.
    bounds: Vec<usize>,
}

impl TestLog {
    fn new() -> Self {
        let fs = SimFs::new();
        let writer = LogWriter::create(&fs, Path::new("log"), ID, STORE, FIRST).unwrap();
        TestLog { fs, writer, written: Vec::new(), bounds: vec![HEADER_BYTES] }
    }

    /// Appends batches of one put each, with values of these sizes, as one group.
    fn append(&mut self, value_sizes: &[usize]) -> &mut Self {
        let start = self.written.len();
        for &size in value_sizes {
            let seq = FIRST + self.written.len() as u64;
            let mut batch = Batch::new();
            batch.put(seq.to_be_bytes(), vec![seq as u8 | 1; size]);
            self.written.push((seq, batch.into_bytes(), 1));
        }
        let group: Vec<_> = self.written[start..]
            .iter()
            .map(|(first_seq, payload, count)| LogRecord { first_seq: *first_seq, count: *count, payload })
            .collect();
        self.writer.append_group(group).unwrap();
        let bytes = self.bytes();
        for _ in value_sizes {
            let at = *self.bounds.last().unwrap();
            self.bounds.push(at + RecordHead::decode(&bytes[at..]).unwrap().record_len() as usize);
        }
        assert_eq!(self.bounds.last(), Some(&bytes.len()));
        self
    }

    fn sync(&mut self) -> &mut Self {
        self.writer.sync().unwrap();
        self
    }

    /// The outcome of a replay of the whole log, which ends before `own_next`.
    fn whole(&self, next_seq: Seq, own_next: Seq) -> Replay {
        let offset = self.bytes().len() as u64;
        let read = Some(ReadTo { first_seq: FIRST, offset, next_seq: own_next });
        Replay { next_seq, end: LogEnd::Clean, read }
    }

    fn bytes(&self) -> Vec<u8> {
        self.fs.read("log").unwrap()
    }

    /// Replays `bytes` as this log and checks that the result is a prefix of what was written. Returns its
    /// length and how the log ended.
    fn prefix_in(&self, bytes: &[u8]) -> Result<(usize, LogEnd)> {
        self.fs.write("damaged", bytes);
        let (replayed, outcome) = self.replay_as("damaged", ID, STORE, FIRST);
        assert!(self.written.starts_with(&replayed), "not a prefix of what was written");
        let Replay { next_seq, end, .. } = outcome?;
        assert_eq!(next_seq, FIRST + replayed.len() as u64);
        Ok((replayed.len(), end))
    }

    fn replay_as(
        &self,
        name: &str,
        id: FileId,
        store: u64,
        expected: Seq,
    ) -> (Vec<(Seq, Bytes, u32)>, Result<Replay>) {
        self.replay(name, ExpectedLog { id, store_id: store, next_seq: expected, synced: 0 })
    }

    fn replay(&self, name: &str, expected: ExpectedLog) -> (Vec<(Seq, Bytes, u32)>, Result<Replay>) {
        let mut replayed = Vec::new();
        let outcome = replay(&self.fs, Path::new(name), expected, &mut |seq, payload, count| {
            replayed.push((seq, payload, count));
            Ok(())
        });
        (replayed, outcome)
    }

    /// The numbers, from 0, of the batches that a salvage of `bytes` finds, and what it cannot read.
    fn salvaged_from(&self, bytes: &[u8]) -> (Vec<u64>, Unreadable) {
        self.fs.write("damaged", bytes);
        let mut found = Vec::new();
        let tag = LogHeader::tag(ID, STORE);
        let unreadable =
            salvage(&self.fs, Path::new("damaged"), EXPECTED, tag, &mut |seq, payload, count| {
                assert_eq!(self.written[(seq - FIRST) as usize], (seq, payload, count));
                found.push(seq - FIRST);
                Ok(())
            });
        (found, unreadable.unwrap())
    }
}

fn is_corruption<T>(outcome: &Result<T>) -> bool {
    matches!(outcome, Err(Error::Corruption { .. }))
}

#[test]
fn groups_come_back_whole_and_in_order() {
    let mut log = TestLog::new();
    log.append(&[10, 0, 3000]).append(&[1 << 21]).sync().append(&[5]);
    assert_eq!(log.writer.len(), log.bytes().len() as u64);
    assert_eq!(log.prefix_in(&log.bytes()).unwrap(), (5, LogEnd::Clean));
}

#[test]
fn i4_a_log_cut_at_any_byte_gives_exactly_the_records_before_the_cut() {
    let mut log = TestLog::new();
    log.append(&[10, 0]).sync().append(&[300]).append(&[700, 1]);
    let bytes = log.bytes();
    for cut in 0..bytes.len() {
        let whole = log.bounds.iter().filter(|&&bound| bound <= cut).count().saturating_sub(1);
        let end = match log.bounds[..=whole].last() {
            _ if cut < HEADER_BYTES => LogEnd::Torn { offset: 0 },
            Some(&bound) if bound == cut => LogEnd::Clean,
            bound => LogEnd::Torn { offset: *bound.unwrap() as u64 },
        };
        assert_eq!(log.prefix_in(&bytes[..cut]).unwrap(), (whole, end), "cut at {cut}");
    }
}

#[test]
fn i6_every_flipped_bit_is_corruption_in_the_last_record_too() {
    // The last record starts and ends at every offset within a sector.
    for fill in 0..520 {
        let mut log = TestLog::new();
        log.append(&[10, 0]).sync().append(&[fill]).append(&[0]);
        let bytes = log.bytes();
        let from = if fill == 300 { 0 } else { log.bounds[log.bounds.len() - 2] };
        for (at, bit) in (from..bytes.len()).flat_map(|at| (0..8).map(move |bit| (at, 1 << bit))) {
            let mut flipped = bytes.clone();
            flipped[at] ^= bit;
            let outcome = log.prefix_in(&flipped);
            assert!(is_corruption(&outcome), "byte {at}: {outcome:?}");
        }
    }
}

#[test]
fn i4_a_log_that_ends_before_what_was_synced_is_corruption_at_its_end() {
    let mut log = TestLog::new();
    log.append(&[10]).append(&[20]).sync().append(&[30]);
    let (bytes, synced) = (log.bytes(), log.bounds[2] as u64);
    for cut in 0..=bytes.len() {
        log.fs.write("damaged", &bytes[..cut]);
        let (replayed, outcome) = log.replay("damaged", ExpectedLog { synced, ..EXPECTED });
        if cut as u64 >= synced {
            assert!(outcome.is_ok() && replayed.len() >= 2, "cut at {cut}");
        } else {
            assert!(is_corruption(&outcome), "cut at {cut}: {outcome:?}");
        }
    }
}

#[test]
fn a_salvage_keeps_every_batch_before_and_behind_the_damage() {
    let mut log = TestLog::new();
    log.append(&[10, 700]).append(&[300]).append(&[700, 1]);
    let bytes = log.bytes();
    assert_eq!(log.salvaged_from(&bytes), (vec![0, 1, 2, 3, 4], Unreadable::default()));
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 4;
        let damaged = log.bounds.iter().filter(|&&bound| bound <= at).count() as u64;
        let (from, to) = match damaged {
            0 => (0, HEADER_BYTES),
            n => (log.bounds[n as usize - 1], log.bounds[n as usize]),
        };
        let whole = (0..5).filter(|&n| n + 1 != damaged).collect();
        let unreadable = Unreadable { first: Some(from as u64), bytes: (to - from) as u64 };
        assert_eq!(log.salvaged_from(&flipped), (whole, unreadable), "byte {at}");
    }
}

/// A sector that a power cut lost ends the log only where nothing was synced.
#[test]
fn i4_a_lost_sector_ends_the_log_only_where_nothing_was_synced() {
    for sync_before_last in [false, true] {
        let mut log = TestLog::new();
        log.append(&[400]).sync().append(&[2000]).append(&[2000]);
        if sync_before_last {
            log.sync();
        }
        log.append(&[10]);
        let bytes = log.bytes();
        for sector in 0..bytes.len() / 512 {
            // A sector keeps its durable bytes: here, the header and the first record.
            let (from, to) = ((sector * 512).max(log.bounds[1]), (sector + 1) * 512);
            let mut lost = bytes.clone();
            lost[from..to].fill(0);
            let whole = log.bounds.iter().filter(|&&bound| bound <= from).count() - 1;
            let offset = log.bounds[whole] as u64;
            let outcome = log.prefix_in(&lost);
            match () {
                () if to > log.bounds[3] => assert!(matches!(outcome.unwrap(), (_, LogEnd::Torn { .. }))),
                () if sync_before_last && whole < 3 => assert!(is_corruption(&outcome), "sector {sector}"),
                () => assert_eq!(outcome.unwrap(), (whole, LogEnd::Lost { offset }), "sector {sector}"),
            }
        }
    }
}

/// Damage that leaves no sector of zeros is corruption, even where nothing was synced.
#[test]
fn i6_damage_without_a_sector_of_zeros_is_always_corruption() {
    let mut log = TestLog::new();
    log.append(&[400]).append(&[2000]).append(&[10]);
    let mut bytes = log.bytes();
    bytes[1025..1536].fill(0);
    assert!(is_corruption(&log.prefix_in(&bytes)));
    bytes[1024] = 0;
    assert!(log.prefix_in(&bytes).is_ok());
}

/// A log of which only zeros reached the disk is empty, unless something was synced.
#[test]
fn i4_a_log_of_zeros_is_empty_unless_something_was_synced() {
    let mut log = TestLog::new();
    let zeros = vec![0; 5000];
    assert_eq!(log.prefix_in(&zeros).unwrap(), (0, LogEnd::Torn { offset: 0 }));
    log.append(&[600, 600]).append(&[10]);
    let mut first_sector_lost = log.bytes();
    first_sector_lost[..512].fill(0);
    assert_eq!(log.prefix_in(&first_sector_lost).unwrap(), (0, LogEnd::Lost { offset: 0 }));
    log.sync().append(&[10]);
    let mut first_sector_lost = log.bytes();
    first_sector_lost[..512].fill(0);
    assert!(is_corruption(&log.prefix_in(&first_sector_lost)));
}

/// Records of another log or store after the end are damage and are not taken.
#[test]
fn records_of_another_log_or_store_after_the_end_are_damage() {
    let mut log = TestLog::new();
    log.append(&[10]);
    for (id, store) in [(FileId(6), STORE), (ID, STORE + 1)] {
        let mut bytes = log.bytes();
        encode_record(&mut bytes, LogHeader::tag(id, store), FIRST + 1, 1, 0, &log.written[0].1).unwrap();
        assert!(is_corruption(&log.prefix_in(&bytes)));
        assert_eq!(log.salvaged_from(&bytes).0, [0]);
    }
}

#[test]
fn a_log_of_another_number_or_store_or_version_is_refused_by_name() {
    let log = TestLog::new();
    for (id, store) in [(FileId(6), STORE), (ID, STORE + 1)] {
        let error = log.replay_as("log", id, store, FIRST).1.unwrap_err();
        assert!(error.to_string().contains("belongs to"), "{error}");
    }
    for version in [1, 2, 3, 5] {
        let mut other = log.bytes();
        other[8] = version;
        let crc = crate::codec::crc32(&[&other[..36]]);
        other[36..].copy_from_slice(&crc.to_le_bytes());
        let error = log.prefix_in(&other).unwrap_err();
        assert!(matches!(error, Error::UnsupportedVersion { found, .. } if found == u32::from(version)));
    }
}

#[test]
fn a_log_that_starts_late_is_a_gap() {
    for synced in [false, true] {
        let mut log = TestLog::new();
        log.append(&[10]);
        if synced {
            log.sync();
        }
        log.append(&[10]);
        let (replayed, outcome) = log.replay_as("log", ID, STORE, FIRST - 3);
        assert!(replayed.is_empty());
        let end = LogEnd::Gap { first_seq: FIRST, had_synced: synced };
        assert_eq!(outcome.unwrap(), Replay { next_seq: FIRST - 3, end, read: None });
    }
}

#[test]
fn a_log_that_repeats_the_one_before_it_goes_on_where_that_ends() {
    let mut log = TestLog::new();
    log.append(&[10]).append(&[10, 20]);
    for done in 0..6 {
        let (replayed, outcome) = log.replay_as("log", ID, STORE, FIRST + done);
        assert_eq!(replayed, log.written[3.min(done as usize)..]);
        assert_eq!(outcome.unwrap(), log.whole(FIRST + done.max(3), FIRST + 3));
    }
    let mut batch = Batch::new();
    (0..3u8).for_each(|key| batch.put([key], b""));
    log.writer
        .append_group([LogRecord { first_seq: FIRST + 3, count: 3, payload: &batch.into_bytes() }])
        .unwrap();
    let (_, within_a_batch) = log.replay_as("log", ID, STORE, FIRST + 4);
    let starts_at = log.bounds[3] as u64;
    assert!(
        matches!(&within_a_batch, Err(Error::Corruption { offset, .. }) if *offset == starts_at),
        "{within_a_batch:?}"
    );
}

/// A valid record out of sequence, or with contents other than it says, is corruption.
#[test]
fn i6_a_valid_record_that_is_out_of_place_is_corruption() {
    let log = TestLog::new();
    let mut batch = Batch::new();
    batch.put(b"k", b"v");
    let payload = batch.into_bytes();
    assert_eq!(ops(payload.clone()).count(), 1);
    for (seq, count) in [(FIRST + 1, 1), (FIRST - 1, 1), (FIRST, 2), (FIRST, 0)] {
        let mut bytes = log.bytes();
        encode_record(&mut bytes, LogHeader::tag(ID, STORE), seq, count, 0, &payload).unwrap();
        assert!(is_corruption(&log.prefix_in(&bytes)), "sequence number {seq}, {count} operations");
    }
}

#[test]
fn an_error_of_the_sink_ends_the_replay() {
    let mut log = TestLog::new();
    log.append(&[1, 1]);
    let outcome = replay(&log.fs, Path::new("log"), EXPECTED, &mut |_, _, _| Err(Error::ReadOnly));
    assert!(matches!(outcome, Err(Error::ReadOnly)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn i6_no_damage_makes_anything_but_a_prefix_or_an_error(
        sizes in prop::collection::vec(prop::collection::vec(0usize..900, 1..4), 1..6),
        patches: Vec<(prop::sample::Index, Vec<u8>)>,
        cut: prop::sample::Index,
    ) {
        let mut log = TestLog::new();
        sizes.iter().for_each(|group| { log.append(group); });
        let mut bytes = log.bytes();
        for (at, patch) in patches {
            let at = at.index(bytes.len());
            bytes.iter_mut().skip(at).zip(patch).for_each(|(byte, new)| *byte = new);
        }
        bytes.truncate(cut.index(bytes.len()) + 1);
        let _ = log.prefix_in(&bytes); // Itself checks that what is replayed is a prefix.
    }
}
