//! Ranges and batches of reads in a store that was just written, by several threads:
//!
//! ```sh
//! cargo run --release -p micro --bin written                  # 200,000 rows, 8 threads
//! cargo run --release -p micro --bin written -- 200000 8 5    # rows, threads, seconds for each operation
//! ```
//!
//! Each row of about 1 KB is written once and then updated once, in random order and one by one, with the
//! default options. So the memtables and several sorted runs hold two versions of each row.

#![expect(clippy::expect_used, reason = "a benchmark: a failure ends it")]

use sidebloom::{Db, Result};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

const VALUE_BYTES: usize = 1000;
const LIMIT: usize = 100;
const SKIP: usize = 5000;
const BATCH: u64 = 1000;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1).map(|word| word.parse().expect("a number"));
    let [rows, threads, seconds] = [200_000, 8, 3].map(|default| arguments.next().unwrap_or(default));
    let dir = tempfile::tempdir().expect("a temporary directory");
    let db = Db::open(dir.path())?;
    for seed in [1, 2] {
        for number in shuffled(rows, seed) {
            db.put(key(number), value(number, seed))?;
        }
    }
    let stats = db.stats();
    let levels: Vec<_> = stats.levels.iter().map(|level| level.segments).collect();
    println!("segments by level: {levels:?}");
    let measure = |name: &str, call: &(dyn Fn(u64) + Sync)| {
        let rate = calls_per_second(threads, Duration::from_secs(seconds), call);
        println!("{name:32} {rate:12.1}/s");
    };
    measure("first 100 rows", &|_| first(db.iter()));
    measure("first 100 keys", &|_| {
        let mut keys = db.iter().keys();
        (0..LIMIT).for_each(|_| _ = black_box(keys.next_key().expect("a key")));
    });
    measure("5,000 skipped, then 100 rows", &|_| {
        let mut rows = db.iter();
        _ = black_box(rows.nth(SKIP - 1));
        first(rows);
    });
    measure("count", &|_| assert_eq!(db.iter().count().expect("a count"), rows));
    measure("all rows lent", &|_| {
        let mut rows = db.iter();
        while let Some(row) = rows.next_row().expect("a row") {
            black_box(row);
        }
    });
    measure("multi_get of 1,000", &|call| {
        let keys: Vec<_> = (0..BATCH).map(|at| key(mix(call * BATCH + at) % rows)).collect();
        black_box(db.multi_get(&keys).expect("answers"));
    });
    let levels: Vec<_> = db.stats().levels.iter().map(|level| level.segments).collect();
    println!("segments by level: {levels:?}");
    Ok(())
}

fn first(rows: sidebloom::Range) {
    rows.take(LIMIT).for_each(|row| _ = black_box(row.expect("a row")));
}

/// Calls `call` with increasing numbers from several threads.
fn calls_per_second(threads: u64, time: Duration, call: &(dyn Fn(u64) + Sync)) -> f64 {
    let (stop, calls) = (AtomicBool::new(false), AtomicU64::new(0));
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    call(calls.fetch_add(1, Relaxed));
                }
            });
        }
        std::thread::sleep(time);
        stop.store(true, Relaxed);
    });
    calls.load(Relaxed) as f64 / start.elapsed().as_secs_f64()
}

/// The numbers below `rows`, in random order.
fn shuffled(rows: u64, seed: u64) -> Vec<u64> {
    let mut numbers: Vec<_> = (0..rows).collect();
    numbers.sort_unstable_by_key(|number| mix(number + (seed << 40)));
    numbers
}

fn key(number: u64) -> [u8; 12] {
    let mut key = *b"row\0........";
    key[4..].copy_from_slice(&mix(number).to_be_bytes());
    key
}

/// Half of it does not compress.
fn value(number: u64, seed: u64) -> Vec<u8> {
    let word = |at: u64| if at.is_multiple_of(2) { mix(number + seed * 31 + (at << 32)) } else { number };
    (0..VALUE_BYTES as u64 / 8).flat_map(|at| word(at).to_le_bytes()).collect()
}

/// Spreads `x` over all bits (the finalizer of SplitMix64).
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}
