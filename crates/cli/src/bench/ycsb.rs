//! YCSB A to F (Cooper et al., "Benchmarking Cloud Serving Systems with YCSB", SoCC 2010); C also with
//! missing keys.

use super::drive::{Driver, Worker, WorkloadResult};
use super::keys::KeyKind;
use super::reads;
use super::writes;
use super::zipf::Zipf;
use crate::context::Failure;
use std::sync::atomic::{AtomicU64, Ordering};

/// Longest scan of E, in rows.
const SCAN_ROWS_MAX: u64 = 100;
/// Percentage of D's and E's operations that insert.
const INSERTS: u64 = 5;

fn popular(driver: &Driver<'_>, calls: u64) -> Zipf {
    driver.bar.set_message("drawing keys");
    Zipf::new(driver.keys.num(), calls, driver.seed)
}

/// The index of operation `i`. Popular indexes are spread over the key space.
#[inline]
fn index(worker: &Worker<'_>, zipf: &Zipf, i: u64) -> u64 {
    worker.keys.shuffled(zipf.rank(i))
}

#[inline]
fn chance(worker: &mut Worker<'_>, percent: u64) -> bool {
    worker.rng.below(100) < percent
}

/// A and B: gets, and `updates` percent puts of present keys.
pub fn read_or_update(driver: &Driver<'_>, calls: u64, updates: u64) -> Result<WorkloadResult, Failure> {
    let zipf = popular(driver, calls);
    let timing = driver.run(calls, |worker, i| {
        let index = index(worker, &zipf, i);
        if chance(worker, updates) {
            return writes::put(worker, index).map(|()| 1);
        }
        reads::get(worker, index, KeyKind::Present)
    })?;
    Ok(WorkloadResult::of_calls(timing, true))
}

/// C: gets, `missing` percent of them of absent keys.
pub fn read(driver: &Driver<'_>, calls: u64, missing: u64) -> Result<WorkloadResult, Failure> {
    let zipf = popular(driver, calls);
    let timing = driver.run(calls, |worker, i| {
        let kind = if chance(worker, missing) { KeyKind::Absent } else { KeyKind::Present };
        let index = index(worker, &zipf, i);
        reads::get(worker, index, kind)
    })?;
    Ok(WorkloadResult::of_calls(timing, true))
}

/// D: gets of the latest inserts, and inserts.
pub fn read_latest(driver: &Driver<'_>, calls: u64) -> Result<WorkloadResult, Failure> {
    let zipf = popular(driver, calls);
    let inserts = Inserts::default();
    let timing = driver.run(calls, |worker, i| {
        if chance(worker, INSERTS) {
            return inserts.insert(worker);
        }
        let (rank, inserted) = (zipf.rank(i), inserts.finished());
        match inserted.checked_sub(rank + 1) {
            Some(nth) => reads::get(worker, worker.keys.shuffled(nth % worker.keys.num()), KeyKind::Inserted),
            None => reads::get(worker, worker.keys.shuffled(rank - inserted), KeyKind::Present),
        }
    })?;
    Ok(WorkloadResult::of_calls(timing, true))
}

/// E: scans of 1 to 100 rows, and inserts.
pub fn short_scans(driver: &Driver<'_>, calls: u64) -> Result<WorkloadResult, Failure> {
    let zipf = popular(driver, calls);
    let inserts = Inserts::default();
    let timing = driver.run(calls, |worker, i| {
        if chance(worker, INSERTS) {
            return inserts.insert(worker);
        }
        let index = index(worker, &zipf, i);
        let rows = 1 + worker.rng.below(SCAN_ROWS_MAX) as usize;
        reads::rows_from(worker, index, rows).map(|rows| rows.min(1))
    })?;
    Ok(WorkloadResult::of_calls(timing, true))
}

/// F: gets, half of them followed by a put of the same key.
pub fn read_modify_write(driver: &Driver<'_>, calls: u64) -> Result<WorkloadResult, Failure> {
    let zipf = popular(driver, calls);
    let timing = driver.run(calls, |worker, i| {
        let index = index(worker, &zipf, i);
        let found = reads::get(worker, index, KeyKind::Present)?;
        if chance(worker, 50) {
            writes::put(worker, index)?;
        }
        Ok(found)
    })?;
    Ok(WorkloadResult::of_calls(timing, true))
}

/// New keys, spread over the key space. They repeat after `num` inserts.
#[derive(Default)]
struct Inserts {
    begun: AtomicU64,
    finished: AtomicU64,
}

impl Inserts {
    fn insert(&self, worker: &mut Worker<'_>) -> sidebloom::Result<u64> {
        let nth = self.begun.fetch_add(1, Ordering::Relaxed);
        let index = worker.keys.shuffled(nth % worker.keys.num());
        worker.keys.write(index, KeyKind::Inserted, &mut worker.key);
        worker.space(index).put(&worker.key, worker.values.pick(worker.rng.bits()))?;
        self.finished.fetch_add(1, Ordering::Release);
        Ok(1)
    }

    /// The number of finished inserts. A reader misses earlier inserts that other threads have not finished.
    fn finished(&self) -> u64 {
        self.finished.load(Ordering::Acquire)
    }
}
