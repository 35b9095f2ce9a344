//! Whether a store holds what it should after a kill.

use super::expected::{Expected, INGESTED, Ingest, KEYS, Record, WRITERS, ingested, key, keys_of, value};
use crate::brief;
use crate::contents::rows;
use crate::home::Home;
use crate::support::{Contents, Rng};
use sidebloom::{Db, Keyspace};
use std::collections::BTreeSet;

fn show(value: Option<&Vec<u8>>) -> String {
    let Some(value) = value else { return "nothing".into() };
    let number = value.first_chunk().map_or(0, |number| u64::from_be_bytes(*number));
    format!("{} bytes of batch {number}", value.len())
}

/// Checks each key against what was acknowledged, or is in doubt. Returns the number of keys.
pub fn check(keyspace: &Keyspace, expected: &Expected, rng: &mut Rng, what: &str) -> u64 {
    let found = rows(keyspace.iter(), rng.percent(50)).unwrap_or_else(|e| panic!("{what}: {e}"));
    let mut known = 0;
    for writer in 0..WRITERS {
        // The one batch in doubt exists as a whole or not at all.
        let mut in_doubt: Option<(bool, u64)> = None;
        for index in 0..KEYS {
            let (key, record) = (key(writer, index), expected.record(writer, index));
            let row = found.get(&key);
            let alone =
                keyspace.get(&key).unwrap_or_else(|e| panic!("{what}: get {}: {e}", key.escape_ascii()));
            assert_eq!(alone.as_deref(), row.map(Vec::as_slice), "{what}: get and iteration differ");
            known += u64::from(row.is_some());
            let [pending, acknowledged] =
                [record.pending, record.acknowledged].map(|number| value(writer, index, number));
            let [is_pending, is_acknowledged] = [&pending, &acknowledged].map(|value| row == value.as_ref());
            if !is_pending && !is_acknowledged {
                let name = key.get(..20).unwrap_or(&key).escape_ascii();
                panic!(
                    "{what}: key {index} of writer {writer} (\"{name}\"), {record:?}: expected {} or {}, found {}",
                    show(acknowledged.as_ref()),
                    show(pending.as_ref()),
                    show(row)
                );
            }
            if is_pending != is_acknowledged {
                let number = record.pending.max(record.acknowledged);
                if record.pending != record.acknowledged {
                    let (before, _) = *in_doubt.get_or_insert((is_pending, number));
                    assert_eq!(before, is_pending, "{what}: half of batch {number} of writer {writer}");
                }
            }
        }
    }
    let rows = ingested_rows(&found);
    match expected.ingest() {
        Ingest::No => assert_eq!(rows, 0, "{what}: rows that nobody ingested"),
        Ingest::Pending => assert!(rows == 0 || rows == INGESTED, "{what}: {rows} rows of an ingest"),
        Ingest::Done => assert_eq!(rows, INGESTED, "{what}: ingested rows"),
    }
    assert_eq!(found.len() as u64, known + rows as u64, "{what}: the store holds keys that nobody wrote");
    (WRITERS * KEYS + INGESTED) as u64
}

fn ingested_rows(found: &Contents) -> usize {
    (0..INGESTED).map(ingested).filter(|(key, value)| found.get(key) == Some(value)).count()
}

/// Notes the fate of the batches in doubt.
pub fn settle(keyspace: &Keyspace, expected: &Expected) {
    for (writer, index) in (0..WRITERS).flat_map(|writer| (0..KEYS).map(move |index| (writer, index))) {
        let Record { pending, acknowledged } = expected.record(writer, index);
        if pending == acknowledged {
            continue;
        }
        let found = keyspace.get(key(writer, index)).unwrap();
        let is_pending = found.as_deref() == value(writer, index, pending).as_deref();
        let number = if is_pending { pending } else { acknowledged };
        expected.set_record(writer, index, Record { pending: number, acknowledged: number });
    }
    if expected.ingest() == Ingest::Pending {
        let is_there = keyspace.get(ingested(0).0).unwrap().is_some();
        expected.set_ingest(if is_there { Ingest::Done } else { Ingest::No });
    }
}

/// What is known of the store when a copy of it began.
pub struct Noted {
    /// By writer: the last batch before the store was opened, and the one that wrote each key.
    opened: Vec<(u64, [u64; KEYS])>,
    /// By writer: the last batch that was acknowledged before the copy began.
    acknowledged: Vec<u64>,
}

impl Noted {
    /// The store is still open.
    pub fn of(expected: &Expected, acknowledged: Vec<u64>) -> Self {
        Noted { opened: (0..WRITERS).map(|writer| expected.opened(writer)).collect(), acknowledged }
    }
}

/// A checkpoint holds each writer's batches up to one no older than the last acknowledged before it began.
pub fn check_copy(db: &Db, home: Home, expected: &Expected, what: &str) {
    let copied = (0..WRITERS).map(|writer| expected.copied(writer)).collect();
    check_copied(db, home, expected, &Noted::of(expected, copied), &format!("{what}: a checkpoint"));
}

/// The same for any copy.
pub fn check_copied(db: &Db, home: Home, expected: &Expected, noted: &Noted, what: &str) {
    let report = db.verify().unwrap_or_else(|e| panic!("{what}: verify: {e}"));
    assert!(report.is_ok(), "{what}: {:?}", report.problems);
    brief::check(db).unwrap_or_else(|e| panic!("{what}: {e}"));
    let keyspace = home.so_far(db).unwrap_or_else(|e| panic!("{what}: {e}"));
    let found = rows(keyspace.iter(), false).unwrap_or_else(|e| panic!("{what}: {e}"));
    let mut known = 0;
    for writer in 0..WRITERS {
        let mine: [_; KEYS] = std::array::from_fn(|index| found.get(&key(writer, index)));
        known += mine.iter().flatten().count();
        for (index, row) in mine.iter().enumerate() {
            let alone = keyspace.get(key(writer, index)).unwrap_or_else(|e| panic!("{what}: get: {e}"));
            assert_eq!(alone.as_deref(), row.map(Vec::as_slice), "{what}: get and iteration differ");
        }
        if let Err(why) = explain(writer, &mine, expected, noted) {
            panic!("{what}: writer {writer}: {why}");
        }
    }
    let rows = ingested_rows(&found);
    let due = if expected.ingest() == Ingest::Done { INGESTED } else { 0 };
    assert_eq!(rows, due, "{what}: ingested rows");
    assert_eq!(found.len(), known + rows, "{what}: keys that nobody wrote");
}

/// Looks for a number of batches after which a writer's keys had these values. Otherwise says why.
fn explain(
    writer: usize,
    found: &[Option<&Vec<u8>>; KEYS],
    expected: &Expected,
    noted: &Noted,
) -> Result<(), String> {
    let (opened, mut state) = noted.opened[writer];
    let [least, last] = [noted.acknowledged[writer].max(opened), expected.last_number(writer)];
    let is_as = |index: usize, number| found[index] == value(writer, index, number).as_ref();
    let mut wrong: BTreeSet<usize> = (0..KEYS).filter(|&index| !is_as(index, state[index])).collect();
    let mut nearest = None;
    for number in opened..=last {
        let keys = if number > opened { keys_of(writer, number) } else { BTreeSet::new() };
        for index in keys {
            state[index] = number;
            if is_as(index, number) {
                wrong.remove(&index)
            } else {
                wrong.insert(index)
            };
        }
        if number < least {
            continue;
        }
        let Some(&index) = wrong.first() else { return Ok(()) };
        if nearest.as_ref().is_none_or(|(count, _)| wrong.len() < *count) {
            let due = show(value(writer, index, state[index]).as_ref());
            let why = format!("after batch {number}, key {index} must be {due}, not {}", show(found[index]));
            nearest = Some((wrong.len(), why));
        }
    }
    let (count, why) = nearest.unwrap_or_default();
    Err(format!("no batch from {least} to {last} explains the keys; {count} are wrong at least: {why}"))
}
