//! Sizes and reads of a store under each compression, with the lines of files as values:
//!
//! ```sh
//! cargo run --release -p micro --bin codecs -- ROWS CACHE_MIB FILE...     # 2000000 40 urls.txt
//! ```
//!
//! Row `n` has a random key and line `n` of the file, which starts again with other digits once all lines are
//! used. Instead of a file, `half` stands for values of 100 bytes of which half are zeros, eight bytes by
//! eight, as in `versus`. Reads are of present keys, after one pass that fills the block cache; the rest is
//! in the page cache.

#![expect(clippy::expect_used, reason = "a benchmark: a failure ends it")]

use sidebloom::{Batch, Compression, Db, Options, Result};
use std::hint::black_box;
use std::time::Instant;

const READS: usize = 1_000_000;
const BATCH: u64 = 100;
const CODECS: [Compression; 4] = [Compression::None, Compression::Lz4, Compression::Fsst, Compression::Auto];

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |what| arguments.next().expect(what).parse::<u64>().expect(what);
    let (rows, cache_bytes) = (number("the number of rows"), number("the cache in MiB") << 20);
    for file in arguments {
        let lines = if file == "half" { half_zeros() } else { lines_of(&file) };
        println!("{file}: {rows} rows of {} lines", lines.len());
        for codec in CODECS {
            let dir = tempfile::tempdir().expect("a temporary directory");
            let options = Options::new().compression(codec).block_cache_bytes(cache_bytes);
            measure(&options.open(dir.path())?, rows, &lines, codec)?;
        }
    }
    Ok(())
}

fn lines_of(file: &str) -> Vec<Vec<u8>> {
    let text = std::fs::read_to_string(file).expect("a text file");
    text.lines().filter(|line| !line.is_empty()).map(|line| line.as_bytes().to_vec()).collect()
}

/// An index, a zero, and then bytes of which every other eight are zeros.
fn half_zeros() -> Vec<Vec<u8>> {
    let value = |n: u64| {
        let words = (0..8).flat_map(|i| [mix(n << 3 | i), 0]).flat_map(u64::to_le_bytes);
        let head = [n, 0].into_iter().flat_map(u64::to_le_bytes);
        head.chain(words.skip(mix(n) as usize % 16)).take(100).collect()
    };
    (0..100_000).map(value).collect()
}

fn measure(db: &Db, rows: u64, lines: &[Vec<u8>], codec: Compression) -> Result<()> {
    let started = Instant::now();
    for first in (0..rows).step_by(BATCH as usize) {
        let mut batch = Batch::new();
        (first..rows.min(first + BATCH)).for_each(|n| batch.put(key(n), value(n, lines)));
        db.write(batch)?;
    }
    db.flush()?;
    db.wait_for_compaction()?;
    let (loaded, stats) = (started.elapsed(), db.stats());
    let bytes: u64 = stats.levels.iter().map(|level| level.data_bytes).sum();
    let mut times = Vec::with_capacity(READS);
    for pass in 0..2 {
        times.clear();
        for read in 0..READS as u64 {
            let n = mix(pass << 40 | read) % rows;
            let key = key(n);
            let started = Instant::now();
            let found = db.get(&key)?;
            times.push(started.elapsed().as_nanos());
            assert_eq!(found.as_deref(), Some(&*value(n, lines)));
        }
    }
    times.sort_unstable();
    let started = Instant::now();
    let mut walk = db.iter();
    while let Some(row) = walk.next_row()? {
        black_box(row);
    }
    println!(
        "  {:4}  {:7.1} MiB  loaded in {:5.1} s  found key {:5} ns, p99.9 {:6} ns  scan {:4.0} ns a row",
        codec.name(),
        bytes as f64 / f64::from(1 << 20),
        loaded.as_secs_f64(),
        times[READS / 2],
        times[READS / 1000 * 999],
        started.elapsed().as_nanos() as f64 / rows as f64,
    );
    Ok(())
}

fn key(n: u64) -> String {
    format!("user{:020}", mix(n))
}

fn value(n: u64, lines: &[Vec<u8>]) -> Vec<u8> {
    let (round, line) = (n / lines.len() as u64, n % lines.len() as u64);
    let mut value = lines[line as usize].clone();
    if round > 0 {
        let mut seed = mix(n);
        for digit in value.iter_mut().filter(|byte| byte.is_ascii_digit()) {
            seed = mix(seed);
            *digit = b'0' + (seed % 10) as u8;
        }
    }
    value
}

/// A permutation of the 64-bit numbers (the finalizer of SplitMix64).
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
