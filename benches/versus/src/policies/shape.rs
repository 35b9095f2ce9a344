//! Stores of the same sorted runs. After a load, RocksDB leaves two to five of them, depending on when its
//! compactions ran. Each run asks one filter more, which would outweigh what the filters differ by.

use super::workloads::{ENGINE, LOADED};
use crate::engine::Engine;
use crate::engines::rocksdb::RocksEngine;
use crate::error::Result;
use crate::format::{self, number};
use crate::kernel;
use crate::keys::{KeyGenerator, KeyPresence, ValueGenerator};
use crate::settings::BenchSettings;
use std::ops::Range;
use std::path::Path;

/// Sorted runs, each over the whole range of keys.
pub const RUNS: u64 = 3;
/// Shares of the runs, the last level first: those of a tree whose levels grow tenfold, RocksDB's default.
const SHARES: [u64; RUNS as usize] = [100, 10, 1];
/// Keys per batch.
const BATCH: usize = 100;
/// Enough for a run above the last level to be flushed at once.
const RUN_MEMTABLE_MIB: u64 = 1024;

/// The indexes of the keys of each run.
pub fn runs(num: u64) -> [Range<u64>; RUNS as usize] {
    let all: u64 = SHARES.iter().sum();
    let mut shares = 0;
    SHARES.map(|share| {
        let first = (u128::from(num) * u128::from(shares) / u128::from(all)) as u64;
        shares += share;
        first..(u128::from(num) * u128::from(shares) / u128::from(all)) as u64
    })
}

/// The shape, in words.
pub fn describe(num: u64) -> String {
    let [last, upper, top] =
        runs(num).map(|keys| format!("{} %", number(100.0 * (keys.end - keys.start) as f64 / num as f64)));
    format!(
        "lookups in stores of the same shape: level 6 has {last} of the keys, two runs of level 0 have {upper} and {top}; no automatic compactions"
    )
}

/// Makes a store, with the settings of [`RUNS`] sorted runs: keys in random order, in batches.
pub fn make(dir: &Path, settings: &BenchSettings) -> Result<()> {
    let [last, upper, top] = runs(settings.num);
    let engine = RocksEngine::open(ENGINE, dir, settings, false)?;
    write(&engine, settings, last)?;
    engine.compact_all()?;
    drop(engine);
    let settings = &BenchSettings { memtable_mib: RUN_MEMTABLE_MIB, ..settings.clone() };
    let engine = RocksEngine::open(ENGINE, dir, settings, false)?;
    for run in [upper, top] {
        write(&engine, settings, run)?;
        engine.finish_compactions()?;
    }
    let facts = engine.facts()?;
    if facts.runs() != Some(RUNS) {
        let found = facts.describe_runs().unwrap_or_default();
        return Err(
            format!("a store of {} keys has the runs {found}", format::count(settings.num as f64)).into()
        );
    }
    drop(engine);
    Ok(kernel::write_back(&kernel::files(dir))?)
}

fn write(engine: &RocksEngine, settings: &BenchSettings, indexes: Range<u64>) -> Result<()> {
    let keys = KeyGenerator::new(settings.key_bytes as usize, settings.seed);
    let values = ValueGenerator::new(settings.value_bytes as usize, settings.seed);
    let mut pairs = vec![(Vec::new(), Vec::new()); BATCH];
    for first in indexes.clone().step_by(BATCH) {
        pairs.truncate((indexes.end - first) as usize);
        for (index, (key, value)) in (first..).zip(&mut pairs) {
            keys.write(keys.rank(index, KeyPresence::Present), KeyPresence::Present, key);
            values.write(index, LOADED, value);
        }
        engine.put_all(&pairs)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runs_have_all_keys_once_and_grow_tenfold() {
        assert_eq!(runs(111), [0..100, 100..110, 110..111]);
        for num in [1_000, 12_345, 10_000_000] {
            let [last, upper, top] = runs(num);
            assert_eq!((last.start, last.end, upper.end, top.end), (0, upper.start, top.start, num));
            assert!(top.end - top.start >= num / 112);
        }
    }
}
