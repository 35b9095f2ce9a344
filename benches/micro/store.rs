//! Calls to a store that fits in its cache: `cargo bench -p micro --bench store`. For comparisons with other
//! stores, see `benches/versus`.

#![expect(clippy::expect_used, reason = "a benchmark: a failure ends it")]

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use sidebloom::{Batch, Db, Options};
use std::hint::black_box;

const KEYS: u64 = 200_000;
const BATCH: u64 = 1000;
const MULTI: u64 = 32;

/// Present keys end in `+`, missing keys in `-`, of the same length and between present keys.
fn key(index: u64, present: bool) -> String {
    let spread = index.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    format!("user{spread:020}{}", if present { '+' } else { '-' })
}

fn loaded(dir: &std::path::Path) -> sidebloom::Result<Db> {
    let db = Options::new().memtable_bytes(4 << 20).segment_bytes(4 << 20).open(dir)?;
    for first in (0..KEYS).step_by(BATCH as usize) {
        let mut batch = Batch::new();
        (first..first + BATCH).for_each(|index| batch.put(key(index, true), [7; 100]));
        db.write(batch)?;
    }
    db.flush()?;
    db.wait_for_compaction()?;
    db.warm()?;
    Ok(db)
}

fn store(c: &mut Criterion) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let db = loaded(dir.path()).expect("a store");
    let keys = |present| -> Vec<String> { (0..KEYS).step_by(7).map(|index| key(index, present)).collect() };
    let (hits, misses) = (keys(true), keys(false));
    let outside: Vec<String> = misses.iter().map(|key| key.replace("user", "vser")).collect();

    for (name, keys) in [("get hit", &hits), ("get miss", &misses), ("get miss out of range", &outside)] {
        let mut keys = keys.iter().cycle();
        c.bench_function(name, |b| {
            b.iter(|| black_box(db.get(keys.next().expect("a key")).expect("an answer")))
        });
    }

    let mut group = c.benchmark_group("multi_get");
    group.throughput(Throughput::Elements(MULTI));
    for (name, keys) in [("hit", &hits), ("miss", &misses)] {
        let mut chunks = keys.chunks_exact(MULTI as usize).cycle();
        group.bench_function(name, |b| {
            b.iter(|| black_box(db.multi_get(chunks.next().expect("keys")).expect("answers")))
        });
    }
    group.finish();

    let mut group = c.benchmark_group("range");
    group.throughput(Throughput::Elements(100));
    let mut from = hits.iter().cycle();
    group.bench_function("seek and 100 rows", |b| {
        b.iter(|| {
            db.range(from.next().expect("a key").as_str()..)
                .take(100)
                .map(|row| row.expect("a row").1.len())
                .sum::<usize>()
        })
    });
    group.finish();
}

fn writes(c: &mut Criterion) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let db = Db::open(dir.path()).expect("a store");
    let mut next = 0u64;
    c.bench_function("put", |b| {
        b.iter_batched(
            || {
                next += 1;
                key(next, true)
            },
            |key| db.put(key, [7; 100]).expect("a write"),
            BatchSize::SmallInput,
        )
    });
}

criterion_group!(benches, store, writes);
criterion_main!(benches);
