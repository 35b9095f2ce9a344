//! Makes stores of the same [`shape`](crate::shape).

use super::workloads::{ENGINE, LOADED};
use crate::engine::Engine;
use crate::engines::rocksdb::RocksEngine;
use crate::error::Result;
use crate::format;
use crate::kernel;
use crate::keys::{KeyGenerator, KeyPresence, ValueGenerator};
use crate::settings::{BenchSettings, RUN_MEMTABLE_MIB};
use crate::shape::{RUNS, runs};
use std::ops::Range;
use std::path::Path;

/// Keys per batch.
const BATCH: usize = 100;

/// Makes a store whose settings preserve [`RUNS`] sorted runs: keys in random order, in batches.
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
