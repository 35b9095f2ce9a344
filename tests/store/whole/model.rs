//! Random operations against a `BTreeMap`, with memtables and segments small enough for constant flushes and
//! compactions. A failing seed is printed; `MODEL_SEED=n cargo test --test store model` runs it alone.
//! `SIDEBLOOM_TEST_LONG=1` runs 300 seeds instead of 20.

use crate::support::sized;
use fastrand::Rng;
use sidebloom::{
    Batch, Compression, Db, Durability, FilterPolicy, Options, PrefixExtractor, Range, Residency, Snapshot,
    filter::Verdict,
};
use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds};
use std::path::Path;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

const STEPS: usize = 400;

#[test]
fn every_answer_equals_the_models_for_hundreds_of_seeds() {
    let seeds = match std::env::var("MODEL_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => (0..sized(20, 300)).collect(),
    };
    for seed in seeds {
        let outcome = std::panic::catch_unwind(|| run(seed));
        assert!(outcome.is_ok(), "seed {seed}: rerun with MODEL_SEED={seed}");
    }
}

fn run(seed: u64) {
    let dir = crate::support::fast_dir();
    let mut rng = Rng::with_seed(seed);
    let mut model = Model::new();
    let mut db = open(dir.path(), &mut rng);
    let mut snapshots: Vec<(Snapshot, Model)> = Vec::new();
    for _ in 0..STEPS {
        match rng.u32(0..100) {
            0..=35 => write_one(&db, &mut model, &mut rng),
            36..=39 => delete_some(&db, &mut model, &mut rng),
            40..=52 => write_batch(&db, &mut model, &mut rng),
            53..=54 => ingest(&db, &mut model, &mut rng),
            55..=69 => read_some(&db, &model, &mut rng),
            70..=74 => seek_some(&db.snapshot(), &model, &mut rng),
            75..=79 => walk(&db.snapshot(), &model, &mut rng),
            80..=84 => snapshots.push((db.snapshot(), model.clone())),
            85..=88 => {
                _ = (!snapshots.is_empty()).then(|| snapshots.swap_remove(rng.usize(0..snapshots.len())))
            }
            89..=91 => db.flush().unwrap(),
            92 => {
                if rng.bool() {
                    db.compact().unwrap()
                } else {
                    db.compact_range((bound(&mut rng), bound(&mut rng))).unwrap()
                }
            }
            93 => _ = db.rebuild_filters(policy(&mut rng)).unwrap(),
            94 => db.sync().unwrap(),
            95 => match rng.u32(0..3) {
                0 => check_copy(&db, &model, &mut rng),
                _ => db.wait_for_compaction().unwrap(),
            },
            _ => {
                snapshots.clear();
                drop(db);
                db = open(dir.path(), &mut rng);
            }
        }
        if let Some((snapshot, then)) = snapshots.last() {
            walk(snapshot, then, &mut rng);
        }
    }
    check_all(&db, &model);
    let report = db.verify().unwrap();
    assert!(report.is_ok(), "{report:?}");
    drop(db);
    check_all(&open(dir.path(), &mut rng), &model);
}

fn policy(rng: &mut Rng) -> FilterPolicy {
    FilterPolicy::bits_per_key(2.0 + 14.0 * rng.f64())
}

fn open(dir: &Path, rng: &mut Rng) -> Db {
    let extractors = [
        PrefixExtractor::fixed(4),
        PrefixExtractor::fixed(7),
        PrefixExtractor::delimited(b'/', 1),
        PrefixExtractor::fixed(1),
    ];
    let options = Options::new()
        .prefixes(extractors.into_iter().filter(|_| rng.bool()))
        .background_threads(rng.usize(2..4))
        .memtable_bytes(rng.u64(4096..32768))
        .segment_bytes(rng.u64(4096..16384))
        .block_bytes(rng.usize(256..2048))
        .block_cache_bytes([0, 4096, 1 << 20][rng.usize(0..3)])
        .compression(
            [Compression::None, Compression::Lz4, Compression::Fsst, Compression::Auto][rng.usize(0..4)],
        )
        .durability([Durability::Os, Durability::Os, Durability::Os, Durability::Sync][rng.usize(0..4)])
        .residency([Residency::Mapped, Residency::Pinned][rng.usize(0..2)])
        .filter_policy(if rng.u32(0..5) == 0 { FilterPolicy::OFF } else { policy(rng) });
    options.open(dir).unwrap()
}

/// One of a few hundred keys, including the empty key; many share prefixes.
fn key(rng: &mut Rng) -> Vec<u8> {
    match rng.u32(0..50) {
        0 => Vec::new(),
        1 => vec![0xff; rng.usize(0..12)],
        _ => format!("{}/{:04}", ["user", "users", "title", "t"][rng.usize(0..4)], rng.u32(0..120))
            .into_bytes(),
    }
}

fn value(rng: &mut Rng) -> Vec<u8> {
    let len = if rng.u32(0..40) == 0 { rng.usize(0..9000) } else { rng.usize(0..120) };
    (0..len).map(|i| if i % 7 == 0 { rng.u8(..) } else { b'v' }).collect()
}

fn write_one(db: &Db, model: &mut Model, rng: &mut Rng) {
    let key = key(rng);
    if rng.u32(0..4) == 0 {
        db.delete(&key).unwrap();
        model.remove(&key);
    } else {
        let value = value(rng);
        db.put(&key, &value).unwrap();
        model.insert(key, value);
    }
}

/// Rows of a few neighbourhoods, in any order or sorted.
fn ingest(db: &Db, model: &mut Model, rng: &mut Rng) {
    let mut rows = Vec::new();
    for _ in 0..rng.usize(1..4) {
        let (space, first) = (["user", "users", "title", "t"][rng.usize(0..4)], rng.u32(0..120));
        let numbers = first..first + rng.u32(0..60);
        rows.extend(numbers.map(|n| (format!("{space}/{n:04}").into_bytes(), value(rng))));
    }
    if rng.bool() {
        rng.shuffle(&mut rows);
        db.ingest_unsorted(rows.iter().map(|(key, value)| Ok((key, value)))).unwrap();
    } else {
        rows.sort_by(|a, b| a.0.cmp(&b.0));
        rows.dedup_by(|later, earlier| later.0 == earlier.0);
        db.ingest(rows.iter().map(|(key, value)| Ok((key, value)))).unwrap();
    }
    model.extend(rows);
}

fn write_batch(db: &Db, model: &mut Model, rng: &mut Rng) {
    let mut batch = Batch::new();
    for _ in 0..rng.usize(0..30) {
        let key = key(rng);
        if rng.u32(0..20) == 0 {
            batch.delete_range(range(model, rng));
        } else if rng.u32(0..4) == 0 {
            batch.delete(&key);
            model.remove(&key);
        } else {
            let value = value(rng);
            batch.put(&key, &value);
            model.insert(key, value);
        }
    }
    db.write(batch).unwrap();
}

/// A range to delete: mostly a short one, so that the store does not stay empty. Keys in it leave the model.
fn range(model: &mut Model, rng: &mut Rng) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let (mut lower, mut upper) = (bound(rng), bound(rng));
    if rng.u32(0..8) > 0 {
        let (namespace, first) = (["user", "users", "title", "t"][rng.usize(0..4)], rng.u32(0..120));
        let key = |number: u32| format!("{namespace}/{number:04}").into_bytes();
        lower = [Bound::Included(key(first)), Bound::Excluded(key(first))][rng.usize(0..2)].clone();
        let last = key(first + rng.u32(0..20));
        upper = [Bound::Included(last.clone()), Bound::Excluded(last)][rng.usize(0..2)].clone();
    }
    if let (Bound::Included(from) | Bound::Excluded(from), Bound::Included(to) | Bound::Excluded(to)) =
        (&lower, &upper)
        && from > to
    {
        std::mem::swap(&mut lower, &mut upper);
    }
    model.retain(|key, _| !(lower.clone(), upper.clone()).contains(key));
    (lower, upper)
}

fn delete_some(db: &Db, model: &mut Model, rng: &mut Rng) {
    match rng.u32(0..4) {
        0 => {
            let prefix =
                format!("{}/{:03}", ["user", "users", "title", "t"][rng.usize(0..4)], rng.u32(0..12));
            db.delete_prefix(&prefix).unwrap();
            model.retain(|key, _| !key.starts_with(prefix.as_bytes()));
        }
        _ => db.delete_range(range(model, rng)).unwrap(),
    }
}

fn read_some(db: &Db, model: &Model, rng: &mut Rng) {
    let keys: Vec<_> = (0..rng.usize(1..40)).map(|_| key(rng)).collect();
    for key in &keys {
        assert_eq!(db.get(key).unwrap().as_deref(), model.get(key).map(Vec::as_slice));
        assert_eq!(db.contains_key(key).unwrap(), model.contains_key(key));
    }
    for key in &keys {
        let mut prefix = key.clone();
        prefix.truncate(rng.usize(0..=key.len()));
        if model.range(prefix.clone()..).next().is_some_and(|(key, _)| key.starts_with(&prefix)) {
            assert_eq!(db.may_contain_prefix(&prefix), Verdict::Maybe);
        }
    }
    let many = db.multi_get(&keys).unwrap();
    let expected: Vec<_> = keys.iter().map(|key| model.get(key).map(Vec::as_slice)).collect();
    assert_eq!(many.iter().map(|value| value.as_deref()).collect::<Vec<_>>(), expected);
}

/// A cursor that seeks and steps in both directions, compared with the map.
fn seek_some(snapshot: &Snapshot, model: &Model, rng: &mut Rng) {
    let mut cursor = snapshot.cursor();
    for _ in 0..rng.usize(1..6) {
        let (sought, forwards) = (key(rng), rng.bool());
        let mut at = if forwards {
            model.range(sought.clone()..).next()
        } else {
            model.range(..=sought.clone()).next_back()
        };
        _ = if forwards { cursor.seek(&sought) } else { cursor.seek_for_prev(&sought) }.unwrap();
        for _ in 0..rng.usize(0..12) {
            assert_eq!(cursor.key(), at.map(|(key, _)| &**key));
            assert_eq!(cursor.value(), at.map(|(_, value)| &**value));
            let Some((key, _)) = at else { break };
            let forwards = rng.bool();
            at = if forwards {
                model.range((Bound::Excluded(key.clone()), Bound::Unbounded)).next()
            } else {
                model.range(..key.clone()).next_back()
            };
            _ = if forwards { cursor.next() } else { cursor.prev() }.unwrap();
        }
        assert_eq!(cursor.key(), at.map(|(key, _)| &**key));
    }
}

fn bound(rng: &mut Rng) -> Bound<Vec<u8>> {
    match rng.u32(0..3) {
        0 => Bound::Unbounded,
        1 => Bound::Included(key(rng)),
        _ => Bound::Excluded(key(rng)),
    }
}

/// Drains a random range, a prefix or everything from both ends in random order.
fn walk(snapshot: &Snapshot, model: &Model, rng: &mut Rng) {
    let mut prefix = key(rng);
    prefix.truncate(rng.usize(0..=prefix.len()));
    let (lower, upper) = (bound(rng), bound(rng));
    let within = |k: &[u8]| {
        let above = match &lower {
            Bound::Included(l) => k >= l.as_slice(),
            Bound::Excluded(l) => k > l.as_slice(),
            Bound::Unbounded => true,
        };
        let below = match &upper {
            Bound::Included(u) => k <= u.as_slice(),
            Bound::Excluded(u) => k < u.as_slice(),
            Bound::Unbounded => true,
        };
        above && below
    };
    let by_prefix = rng.u32(0..4) == 0;
    let keep = |k: &[u8]| if by_prefix { k.starts_with(&prefix) } else { within(k) };
    let expected: Vec<_> =
        model.iter().filter(|(k, _)| keep(k)).map(|(k, v)| (k.clone(), v.clone())).collect();
    let range =
        if by_prefix { snapshot.prefix(&prefix) } else { snapshot.range((lower.clone(), upper.clone())) };
    let again =
        || if by_prefix { snapshot.prefix(&prefix) } else { snapshot.range((lower.clone(), upper.clone())) };
    let skip = rng.usize(0..=expected.len() + 1);
    let keys = |rows: &[(Vec<u8>, Vec<u8>)]| rows.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>();
    let rest: Vec<_> = again().keys().skip(skip).map(Result::unwrap).collect();
    assert_eq!(rest, keys(expected.get(skip..).unwrap_or_default()));
    let rest: Vec<_> = again().rev().skip(skip).map(|kv| kv.unwrap().0).collect();
    let before = expected.get(..expected.len().saturating_sub(skip)).unwrap_or_default();
    assert_eq!(rest, keys(before).into_iter().rev().collect::<Vec<_>>());
    assert_eq!(drain(range, rng), expected);
}

fn drain(mut range: Range, rng: &mut Rng) -> Vec<(Vec<u8>, Vec<u8>)> {
    let (mut front, mut back) = (Vec::new(), Vec::new());
    let forwards = [0, 50, 100][rng.usize(0..3)];
    loop {
        let from_front = rng.u32(0..100) < forwards;
        let item = if from_front { range.next() } else { range.next_back() };
        let Some(item) = item else { break };
        let (key, value) = item.unwrap();
        (if from_front { &mut front } else { &mut back }).push((key, value.to_vec()));
    }
    assert!(range.next().is_none() && range.next_back().is_none(), "an ended range stays ended");
    back.reverse();
    front.extend(back);
    front
}

/// A checkpoint, opened for reading and for writing.
fn check_copy(db: &Db, model: &Model, rng: &mut Rng) {
    let dir = crate::support::fast_dir();
    let copy = dir.path().join("copy");
    db.checkpoint(&copy).unwrap();
    check_all(&Options::new().read_only(true).open(&copy).unwrap(), model);
    check_all(&open(&copy, rng), model);
}

fn check_all(db: &Db, model: &Model) {
    let found: Vec<_> = db.iter().map(|kv| kv.map(|(k, v)| (k, v.to_vec())).unwrap()).collect();
    let expected: Vec<_> = model.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
    assert_eq!(found, expected);
}
