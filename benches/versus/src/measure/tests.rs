//! Wrong answers of a store end a run.

use super::CallDriver;
use crate::engine::{Engine, EngineFacts};
use crate::error::Result;
use crate::keys::{KeyGenerator, KeyPresence, SplitMix64, ValueGenerator};
use crate::workload::{CallGenerator, ExpectedAnswer, WorkloadKind};
use std::collections::BTreeMap;

const ROWS: u64 = 300;
const LAST: u64 = 7;
const FIRST_ROWS: WorkloadKind = WorkloadKind::First { skip: 50, rows: 100 };
const MANY: WorkloadKind = WorkloadKind::MultiGet { missing: 0, keys: 1_000 };

/// Rows in memory, sorted.
struct MapEngine(BTreeMap<Vec<u8>, Vec<u8>>);

impl Engine for MapEngine {
    fn put(&self, _: &[u8], _: &[u8]) -> Result<()> {
        Err("only reads".into())
    }

    fn put_all(&self, _: &[(Vec<u8>, Vec<u8>)]) -> Result<()> {
        Err("only reads".into())
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let found = self.0.get(key);
        found.iter().for_each(|found| value.extend_from_slice(found));
        Ok(found.is_some())
    }

    fn scan(&self, from: &[u8], skip: usize, row: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        let mut rows = self.0.range(from.to_vec()..).skip(skip);
        while rows.next().is_some_and(|(key, value)| row(key, value)) {}
        Ok(())
    }

    fn finish_compactions(&self) -> Result<()> {
        Ok(())
    }

    fn busy(&self) -> bool {
        false
    }

    fn facts(&self) -> Result<EngineFacts> {
        Ok(EngineFacts::default())
    }
}

/// The keys of the store in order, each with its index.
fn keys_in_order(keys: &KeyGenerator) -> Vec<(Vec<u8>, u64)> {
    let key = |index| {
        let mut key = Vec::new();
        keys.write(keys.rank(index, KeyPresence::Present), KeyPresence::Present, &mut key);
        (key, index)
    };
    let mut all: Vec<_> = (0..ROWS).map(key).collect();
    all.sort_unstable();
    all
}

/// What the calls of a kind, and the comparison of all rows (`None`), say of a store with this damage.
fn verdict(
    kind: Option<WorkloadKind>,
    damage: impl Fn(&mut BTreeMap<Vec<u8>, Vec<u8>>, &[(Vec<u8>, u64)], &ValueGenerator),
) -> Option<String> {
    let (keys, values) = (KeyGenerator::new(24, 1), ValueGenerator::new(100, 1));
    let order = keys_in_order(&keys);
    let mut rows = BTreeMap::new();
    for (key, index) in &order {
        let mut value = Vec::new();
        values.write(*index, LAST, &mut value);
        rows.insert(key.clone(), value);
    }
    damage(&mut rows, &order, &values);
    let engine = MapEngine(rows);
    let driver = CallDriver { engine: &engine, keys: &keys, values: &values, generation: LAST };
    let found = match kind {
        None => driver.check_all_rows(&keys.sorted(ROWS), ExpectedAnswer::Exactly(LAST)),
        Some(kind) => {
            let calls = CallGenerator::new(kind, &keys, ROWS, 0, LAST, SplitMix64::new(1)).all_written();
            driver.run(&mut { calls }, 3).map(|_| ())
        }
    };
    let why = found.err()?.to_string();
    assert!(why.starts_with("WRONG ANSWER"), "{why}");
    Some(why)
}

#[test]
fn right_answers_pass() {
    for kind in [None, Some(FIRST_ROWS), Some(WorkloadKind::CountRows), Some(MANY)] {
        assert_eq!(verdict(kind, |_, _, _| ()), None, "{kind:?}");
    }
}

/// The first version of an updated row, in a row that all of the calls read.
#[test]
fn a_version_that_was_overwritten_is_a_wrong_answer() {
    for kind in [None, Some(FIRST_ROWS), Some(MANY)] {
        let why = verdict(kind, |rows, order, values| {
            let (key, index) = &order[100];
            values.write(*index, 0, rows.get_mut(key).unwrap());
        });
        assert!(why.is_some_and(|why| why.contains("generation Some(")), "{kind:?}");
    }
}

#[test]
fn a_missing_row_is_a_wrong_answer() {
    for kind in [None, Some(FIRST_ROWS), Some(WorkloadKind::CountRows), Some(MANY)] {
        let why = verdict(kind, |rows, order, _| {
            rows.remove(&order[100].0);
        });
        assert!(why.is_some(), "{kind:?}");
    }
}

#[test]
fn a_row_too_many_is_a_wrong_answer() {
    for at in [10, 100, 299] {
        let extra = |rows: &mut BTreeMap<Vec<u8>, Vec<u8>>, order: &[(Vec<u8>, u64)], _: &ValueGenerator| {
            let (mut key, value) = (order[at].0.clone(), rows[&order[at].0].clone());
            key.push(b'+');
            rows.insert(key, value);
        };
        assert!(verdict(None, extra).is_some() && verdict(Some(WorkloadKind::CountRows), extra).is_some());
        // Behind the rows that it reads, a row changes nothing.
        assert_eq!(verdict(Some(FIRST_ROWS), extra).is_some(), at < 150);
    }
}

#[test]
fn the_value_of_another_key_is_a_wrong_answer() {
    for kind in [None, Some(FIRST_ROWS), Some(MANY)] {
        let why = verdict(kind, |rows, order, _| {
            let other = rows[&order[101].0].clone();
            rows.insert(order[100].0.clone(), other);
        });
        assert!(why.is_some(), "{kind:?}");
    }
}
