//! Random calls, compared with a map that keeps the moment of each row.

use super::{Timed, secs};
use crate::support::{Rng, sized};
use sidebloom::filter::Verdict;
use sidebloom::{Expiry, Keyspace, KeyspaceOptions, Snapshot};
use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

/// Values, with the moment at which they expire.
type Rows = BTreeMap<Vec<u8>, (Vec<u8>, u64)>;

#[test]
fn i15_random_calls_agree_with_a_map_that_forgets() {
    (0..sized(6, 60)).for_each(|seed| run(seed, None));
}

#[test]
fn i15_random_calls_on_a_windowed_keyspace_agree_with_a_map_that_forgets() {
    (0..sized(6, 60)).for_each(|seed| run(seed, Some(30)));
}

/// The default keyspace, or another one with a window of so many seconds.
fn keyspace(timed: &Timed, window: Option<u64>) -> Keyspace {
    let Some(window) = window else { return Keyspace::clone(&timed.db) };
    let options = KeyspaceOptions::new().window(secs(window));
    timed.db.keyspace("recent").unwrap_or_else(|_| timed.db.create_keyspace("recent", options).unwrap())
}

fn run(seed: u64, window: Option<u64>) {
    let mut rng = Rng::new(seed);
    let mut timed = Timed::new();
    let mut db = keyspace(&timed, window);
    let (mut rows, mut now) = (Rows::new(), timed.clock.millis());
    let mut snapshots: Vec<(Snapshot, Rows, u64)> = Vec::new();
    for step in 0..3000u64 {
        let key = format!("{:03}", rng.below(150)).into_bytes();
        let value = format!("{step}").into_bytes();
        let lifetime = secs(1 + rng.below(40));
        let until = now + lifetime.as_millis() as u64;
        let is_absent = rows.get(&key).is_none_or(|row| row.1 <= now);
        let context = || format!("seed {seed}, step {step}");
        match rng.below(100) {
            0..25 => {
                db.put_with(&key, &value, Expiry::after(lifetime)).unwrap();
                rows.insert(key, (value, until));
            }
            25..35 => {
                db.put(&key, &value).unwrap();
                rows.insert(key, (value, window.map_or(u64::MAX, |secs| now + 1000 * secs)));
            }
            35..50 => {
                let is_new = db.insert_new_with(&key, &value, Expiry::after(lifetime)).unwrap();
                assert_eq!(is_new, is_absent, "{}", context());
                if is_new {
                    rows.insert(key, (value, until));
                }
            }
            50..58 => {
                assert_eq!(db.touch(&key, Expiry::after(lifetime)).unwrap(), !is_absent, "{}", context());
                rows.entry(key).and_modify(|row| row.1 = if is_absent { row.1 } else { until });
            }
            58..66 => {
                db.delete(&key).unwrap();
                rows.remove(&key);
            }
            66..68 => {
                let end = format!("{:03}", rng.below(150)).into_bytes();
                if key < end {
                    db.delete_range(key.clone()..end.clone()).unwrap();
                    rows.retain(|at, _| *at < key || *at >= end);
                }
            }
            68..88 => {
                let due = rows.get(&key).filter(|row| row.1 > now).map(|row| row.0.as_slice());
                assert_eq!(db.get(&key).unwrap().as_deref(), due, "{}", context());
                let verdicts = [db.may_contain(&key), db.may_contain_many(&[&key])[0]];
                assert!(due.is_none() || verdicts == [Verdict::Maybe; 2], "{}", context());
            }
            88..91 => {
                timed.clock.advance(secs(rng.below(10)));
                db.put_with("~", "", Expiry::after(lifetime)).unwrap(); // So the store has seen it.
            }
            91 => timed.clock.set_back(secs(rng.below(20))),
            92..94 => timed.db.flush().unwrap(),
            94 => db.compact().unwrap(),
            95..97 => snapshots.push((db.snapshot(), rows.clone(), now)),
            97 if rng.percent(20) => {
                snapshots.clear();
                drop(db);
                timed = timed.reopened();
                db = keyspace(&timed, window);
            }
            _ => {
                check(&db.snapshot(), &rows, now, &context());
                for (snapshot, rows, then) in snapshots.drain(..) {
                    check(&snapshot, &rows, then, &context());
                }
            }
        }
        now = now.max(timed.clock.millis());
    }
    assert!(timed.db.verify().unwrap().is_ok());
}

fn check(snapshot: &Snapshot, rows: &Rows, now: u64, context: &str) {
    let due: Vec<_> =
        rows.iter().filter(|row| row.1.1 > now).map(|(key, row)| (key.clone(), row.0.clone())).collect();
    let found: Vec<_> =
        snapshot.range(.."~").map(|row| row.map(|(key, value)| (key, value.to_vec())).unwrap()).collect();
    assert_eq!(found, due, "{context}");
    let mut back: Vec<_> = snapshot.range(.."~").rev().map(|row| row.unwrap().0).collect();
    back.reverse();
    assert!(back.iter().eq(due.iter().map(|row| &row.0)), "{context}, backwards");
    let mut cursor = snapshot.cursor();
    for (key, (value, until)) in rows.iter().filter(|row| row.1.1 > now) {
        assert!(cursor.seek(key).unwrap(), "{context}");
        let until = (*until < u64::MAX).then(|| UNIX_EPOCH + Duration::from_millis(*until));
        assert_eq!((cursor.value(), cursor.expires_at()), (Some(&value[..]), until), "{context}");
    }
}
