//! Times lookups of many titles and counts their disk reads.

use super::catalogue::generated;
use crate::context::Failure;
use crate::progress;
use crate::system::{DiskMeter, DiskReads, PageCache};
use indicatif::ProgressBar;
use serde::Serialize;
use sidebloom::{Db, FilterPolicy, Options, Stats};
use std::path::Path;
use std::time::{Duration, Instant};

/// The demo's block cache: small, so that lookups need filters or the disk.
pub const BLOCK_CACHE_BYTES: u64 = 8 << 20;
/// A measurement ends at this time, however many lookups were made.
const TIME_MAX: Duration = Duration::from_secs(4);
/// Lookups between two drops of the page cache, since each lookup's reads make later ones cheaper.
pub const COLD_LOOKUPS: usize = 4000;
/// Lookups between two checks of the clock.
const CLOCK_EVERY: usize = 32;

/// The cost of one kind of lookup, with filters on or off.
#[derive(Serialize)]
pub struct Cost {
    /// Titles looked up.
    pub lookups: u64,
    /// Titles found.
    pub found: u64,
    /// With no segment data in memory.
    pub cold_ns_per_lookup: f64,
    /// The same titles, all in memory.
    pub warm_ns_per_lookup: f64,
    /// Blocks that the store read from the file system, including index blocks.
    pub block_reads_per_lookup: f64,
    /// Reads that the device completed, for the whole machine.
    pub disk_reads_per_lookup: Option<f64>,
    /// Bytes that the kernel read from disk for this process, read-ahead included.
    pub disk_bytes_per_lookup: Option<f64>,
    /// Filter probes that answered "maybe" for an absent title.
    pub false_positives: u64,
    /// The sum over the levels of probes for absent keys times the level's expected rate.
    pub expected_false_positives: f64,
}

/// Costs of absent and present titles.
#[derive(Serialize)]
pub struct Costs {
    /// Not in the store.
    pub absent: Cost,
    /// In the store.
    pub present: Cost,
}

/// Which titles to look up.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    /// Titles in the store.
    pub titles: u64,
    /// Maximum number of lookups of each kind.
    pub lookups: u64,
}

/// Measures the store in `dir`, opened with or without filters.
pub fn measure(dir: &Path, filters: bool, asked: Asked) -> Result<(Costs, PageCache), Failure> {
    let name = if filters { "filters on" } else { "filters off" };
    let (absent, _) = cost(dir, filters, asked.keys(asked.titles), &format!("{name}: absent titles"))?;
    let (present, page_cache) = cost(dir, filters, asked.keys(0), &format!("{name}: present titles"))?;
    Ok((Costs { absent, present }, page_cache))
}

impl Asked {
    /// Keys of the titles from `first` on, spread over `titles` titles.
    fn keys(self, first: u64) -> Vec<Vec<u8>> {
        let step = (self.titles / self.lookups).max(1);
        (0..self.lookups.min(self.titles)).map(|i| generated(first + i * step).key().into_bytes()).collect()
    }
}

fn cost(dir: &Path, filters: bool, keys: Vec<Vec<u8>>, label: &str) -> Result<(Cost, PageCache), Failure> {
    let bar = progress::bar(label, keys.len() as u64);
    let policy = if filters { FilterPolicy::default() } else { FilterPolicy::OFF };
    let db = Options::new()
        .block_cache_bytes(BLOCK_CACHE_BYTES)
        .filter_policy(policy)
        .read_only(true)
        .open(dir)?;
    db.warm()?;
    let before = db.stats();
    let (cold, page_cache) = look_up_cold(&db, dir, &keys, &bar)?;
    let after = db.stats();
    let asked = keys.get(..cold.lookups).unwrap_or(&keys);
    bar.set_position(0);
    look_up(&db, asked, TIME_MAX, &bar)?; // Reloads what the last drop removed.
    bar.set_position(0);
    let warm = look_up(&db, asked, TIME_MAX, &bar)?;
    bar.finish_and_clear();
    Ok((Cost::new(&cold, &warm, &before, &after), page_cache))
}

/// Lookups made.
struct Pass {
    lookups: usize,
    found: u64,
    elapsed: Duration,
    disk: DiskReads,
}

/// Looks up the keys, dropping the page cache at intervals, which counts neither as time nor as reads.
fn look_up_cold(
    db: &Db,
    dir: &Path,
    keys: &[Vec<u8>],
    bar: &ProgressBar,
) -> Result<(Pass, PageCache), Failure> {
    let meter = DiskMeter::new(dir);
    let none = DiskReads { reads: Some(0), bytes: Some(0) };
    let mut whole = Pass { lookups: 0, found: 0, elapsed: Duration::ZERO, disk: none };
    let mut page_cache = PageCache::drop_for(dir);
    for keys in keys.chunks(COLD_LOOKUPS) {
        let left = TIME_MAX.saturating_sub(whole.elapsed);
        if left.is_zero() {
            break;
        }
        if whole.lookups > 0 {
            page_cache = PageCache::drop_for(dir);
        }
        let before = meter.read();
        let pass = look_up(db, keys, left, bar)?;
        whole.disk = whole.disk.plus(meter.read().since(before));
        whole.lookups += pass.lookups;
        whole.found += pass.found;
        whole.elapsed += pass.elapsed;
    }
    Ok((whole, page_cache))
}

fn look_up(db: &Db, keys: &[Vec<u8>], time_max: Duration, bar: &ProgressBar) -> Result<Pass, Failure> {
    let start = Instant::now();
    let (mut lookups, mut found) = (0, 0);
    for keys in keys.chunks(CLOCK_EVERY) {
        for key in keys {
            found += u64::from(db.get(key)?.is_some());
        }
        lookups += keys.len();
        bar.inc(keys.len() as u64);
        if start.elapsed() > time_max {
            break;
        }
    }
    Ok(Pass { lookups, found, elapsed: start.elapsed(), disk: DiskReads::default() })
}

impl Cost {
    fn new(cold: &Pass, warm: &Pass, before: &Stats, after: &Stats) -> Self {
        let per_lookup = |n: u64| n as f64 / cold.lookups.max(1) as f64;
        let nanos = |pass: &Pass| pass.elapsed.as_nanos() as f64 / pass.lookups.max(1) as f64;
        Cost {
            lookups: cold.lookups as u64,
            found: cold.found,
            cold_ns_per_lookup: nanos(cold),
            warm_ns_per_lookup: nanos(warm),
            block_reads_per_lookup: per_lookup(after.block_reads - before.block_reads),
            disk_reads_per_lookup: cold.disk.reads.map(per_lookup),
            disk_bytes_per_lookup: cold.disk.bytes.map(per_lookup),
            false_positives: after.filter_false_positives - before.filter_false_positives,
            expected_false_positives: expected_false_positives(before, after),
        }
    }
}

fn expected_false_positives(before: &Stats, after: &Stats) -> f64 {
    let levels = before.levels.iter().zip(&after.levels);
    let expected = levels.map(|(before, after)| {
        let absent = |level: &sidebloom::LevelStats| level.filter_negatives + level.filter_false_positives;
        (absent(after) - absent(before)) as f64 * after.expected_fpr
    });
    expected.sum()
}
