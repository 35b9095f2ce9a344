//! What latency histograms cost a missing key: times lookups in one store that is opened with and without
//! them in turn, and prints the medians.
//!
//! ```sh
//! cargo run --release -p micro --bin latencies                # 10,000,000 keys, 15 rounds
//! cargo run --release -p micro --bin latencies -- 1000000 31
//! ```

#![expect(clippy::expect_used, reason = "a benchmark: a failure ends it")]

use sidebloom::{Options, Result};
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

/// Lookups in a round.
const LOOKUPS: u64 = 2_000_000;

type Key = [u8; 24];

/// Present keys end in `+`, missing keys in `-`.
fn key(index: u64, end: char) -> Key {
    let spread = index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 1;
    format!("user{spread:019}{end}").into_bytes().try_into().expect("24 bytes")
}

/// Nanoseconds for a missing key.
fn round(path: &Path, missing: &[Key], histograms: bool) -> Result<f64> {
    let db = Options::new().latency_histograms(histograms).open(path)?;
    db.warm()?;
    let look_up = |keys: &[Key]| -> Result<f64> {
        let began = Instant::now();
        for key in keys {
            black_box(db.get(key)?.is_some());
        }
        Ok(began.elapsed().as_nanos() as f64 / keys.len() as f64)
    };
    look_up(&missing[..missing.len() / 4])?;
    look_up(missing)
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>().expect("a number"));
    let (keys, rounds) = (arguments.next().unwrap_or(10_000_000), arguments.next().unwrap_or(15));
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("store");
    let db = Options::new().open(&path)?;
    db.ingest_unsorted((0..keys).map(|n| Ok((key(n, '+'), [7; 20]))))?;
    db.close()?;
    let missing: Vec<Key> = (0..LOOKUPS).map(|n| key(n.wrapping_mul(7919) % keys, '-')).collect();
    let (mut off, mut on, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for n in 0..rounds {
        // Whoever comes second finds warmer caches, so they take turns.
        let first = round(&path, &missing, n % 2 == 1)?;
        let second = round(&path, &missing, n % 2 == 0)?;
        let [without, with] = if n % 2 == 0 { [first, second] } else { [second, first] };
        off.push(without);
        on.push(with);
        ratios.push(with / without);
    }
    let (without, with, ratio) = (median(&mut off), median(&mut on), median(&mut ratios));
    println!("{keys} keys, {rounds} rounds of {LOOKUPS} missing keys");
    println!("without histograms {without:.1} ns, with {with:.1} ns; median of the ratios {ratio:.3}");
    Ok(())
}
