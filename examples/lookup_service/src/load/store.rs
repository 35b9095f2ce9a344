//! The rows of the load test.

use crate::error::Result;
use sidebloom::{Batch, Db};
use std::path::Path;
use std::time::Instant;

const VALUE_BYTES: usize = 100;
const BATCH_ROWS: u64 = 100;

/// 24 bytes. Consecutive numbers are far apart in the order of keys, so a store that is filled in their order
/// has several runs of segments, as one that serves writes.
pub fn key(number: u64) -> String {
    format!("lookups/{:016x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Half of it compresses.
pub fn value(number: u64) -> Vec<u8> {
    let mut value = vec![b'-'; VALUE_BYTES];
    fastrand::Rng::with_seed(number).fill(&mut value[..VALUE_BYTES / 2]);
    value
}

/// Puts rows 0 to `keys` into a store, unless there is one.
pub fn fill(dir: &Path, keys: u64) -> Result<()> {
    if dir.exists() {
        return Ok(());
    }
    let begun = Instant::now();
    let unfinished = dir.with_extension("unfinished");
    _ = std::fs::remove_dir_all(&unfinished);
    let db = Db::open(&unfinished)?;
    for first in (0..keys).step_by(BATCH_ROWS as usize) {
        let mut batch = Batch::new();
        (first..keys.min(first + BATCH_ROWS)).for_each(|number| batch.put(key(number), value(number)));
        db.write(batch)?;
    }
    db.wait_for_compaction()?;
    db.close()?;
    std::fs::rename(unfinished, dir)?;
    println!("{keys} rows written in {:.0?}", begun.elapsed());
    Ok(())
}

/// What is asked for.
#[derive(Clone, Copy)]
pub enum Request {
    Ping,
    Missing(u64),
    Found(u64),
    /// Of a row that is there, as it is there.
    Put(u64),
}

/// The shares of requests.
#[derive(Clone, Copy)]
pub struct Mix {
    pub keys: u64,
    /// Percentages. The others are missing keys and /ping, half each.
    pub found: u8,
    pub puts: u8,
}

impl Mix {
    pub fn next(self) -> Request {
        let number = fastrand::u64(..self.keys.max(1));
        match fastrand::u8(..100) {
            percent if percent < self.found => Request::Found(number),
            percent if percent < self.found.saturating_add(self.puts) => Request::Put(number),
            _ if fastrand::bool() => Request::Missing(self.keys + number),
            _ => Request::Ping,
        }
    }
}
