//! Whether a store holds what it should after a kill.

use super::expected::{Expected, INGESTED, Ingest, KEYS, Record, WRITERS, ingested, key, value};
use crate::support::{Contents, Rng};
use sidebloom::Db;

/// All rows, by iteration from a random end, each also looked up alone.
fn contents(db: &Db, rng: &mut Rng, what: &str) -> Contents {
    let row = |row: sidebloom::Result<(Vec<u8>, sidebloom::Value)>| {
        let (key, value) = row.unwrap_or_else(|e| panic!("{what}: {e}"));
        (key, value.to_vec())
    };
    match rng.percent(50) {
        true => db.iter().map(row).collect(),
        false => db.iter().rev().map(row).collect(),
    }
}

fn show(value: Option<&Vec<u8>>) -> String {
    let Some(value) = value else { return "nothing".into() };
    let number = value.first_chunk().map_or(0, |number| u64::from_be_bytes(*number));
    format!("{} bytes of batch {number}", value.len())
}

/// Checks each key against what was acknowledged, or is in doubt. Returns the number of keys.
pub fn check(db: &Db, expected: &Expected, rng: &mut Rng, what: &str) -> u64 {
    let found = contents(db, rng, what);
    let mut known = 0;
    for writer in 0..WRITERS {
        // The one batch in doubt is there as a whole or not at all.
        let mut in_doubt: Option<(bool, u64)> = None;
        for index in 0..KEYS {
            let (key, record) = (key(writer, index), expected.record(writer, index));
            let row = found.get(&key);
            let alone = db.get(&key).unwrap_or_else(|e| panic!("{what}: get {}: {e}", key.escape_ascii()));
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
    let rows = (0..INGESTED).map(ingested).filter(|(key, value)| found.get(key) == Some(value)).count();
    match expected.ingest() {
        Ingest::No => assert_eq!(rows, 0, "{what}: rows that nobody ingested"),
        Ingest::Pending => assert!(rows == 0 || rows == INGESTED, "{what}: {rows} rows of an ingest"),
        Ingest::Done => assert_eq!(rows, INGESTED, "{what}: ingested rows"),
    }
    assert_eq!(found.len() as u64, known + rows as u64, "{what}: the store holds keys that nobody wrote");
    (WRITERS * KEYS + INGESTED) as u64
}

/// Notes what became of the batches in doubt.
pub fn settle(db: &Db, expected: &Expected) {
    for (writer, index) in (0..WRITERS).flat_map(|writer| (0..KEYS).map(move |index| (writer, index))) {
        let Record { pending, acknowledged } = expected.record(writer, index);
        if pending == acknowledged {
            continue;
        }
        let found = db.get(key(writer, index)).unwrap();
        let is_pending = found.as_deref() == value(writer, index, pending).as_deref();
        let number = if is_pending { pending } else { acknowledged };
        expected.set_record(writer, index, Record { pending: number, acknowledged: number });
    }
    if expected.ingest() == Ingest::Pending {
        let is_there = db.get(ingested(0).0).unwrap().is_some();
        expected.set_ingest(if is_there { Ingest::Done } else { Ingest::No });
    }
}

/// A checkpoint holds each key as some batch wrote it.
pub fn check_copy(db: &Db, expected: &Expected, what: &str) {
    let report = db.verify().unwrap();
    assert!(report.is_ok(), "{what}: {:?}", report.problems);
    for writer in 0..WRITERS {
        for index in 0..KEYS {
            let Some(found) = db.get(key(writer, index)).unwrap() else { continue };
            let number = found.first_chunk().map_or(0, |number| u64::from_be_bytes(*number));
            assert!(number <= expected.last_number(writer), "{what}: a batch from the future: {number}");
            let value = value(writer, index, number);
            assert_eq!(Some(&*found), value.as_deref(), "{what}: key {index} of writer {writer}");
        }
    }
}
