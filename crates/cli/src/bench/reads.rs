//! readrandom, readmissing, multireadrandom, readwhilewriting, seekrandom, scan.

use super::drive::{Driver, Worker, WorkloadResult};
use super::keys::KeyKind;
use super::writes;
use crate::context::Failure;
use std::sync::atomic::{AtomicBool, Ordering};

/// Random stream of the thread that writes concurrently.
const WRITER: u64 = 1 << 32;

/// Gets of present keys.
pub fn present(driver: &Driver<'_>, calls: u64) -> Result<WorkloadResult, Failure> {
    let timing = driver.run(calls, |worker, _| random_get(worker, KeyKind::Present))?;
    Ok(WorkloadResult::of_calls(timing, true))
}

/// Gets of absent keys.
pub fn absent(driver: &Driver<'_>, calls: u64) -> Result<WorkloadResult, Failure> {
    let timing = driver.run(calls, |worker, _| random_get(worker, KeyKind::Absent))?;
    Ok(WorkloadResult::of_calls(timing, true))
}

#[inline]
fn random_get(worker: &mut Worker<'_>, kind: KeyKind) -> sidebloom::Result<u64> {
    let index = worker.rng.below(worker.keys.num());
    get(worker, index, kind)
}

/// Gets a key. Returns 1 if it was found, else 0.
#[inline]
pub fn get(worker: &mut Worker<'_>, index: u64, kind: KeyKind) -> sidebloom::Result<u64> {
    worker.keys.write(index, kind, &mut worker.key);
    Ok(u64::from(worker.space(index).get(&worker.key)?.is_some()))
}

/// Gets of present keys, several per call.
pub fn many(driver: &Driver<'_>, calls: u64) -> Result<WorkloadResult, Failure> {
    let timing = driver.run(calls, |worker, _| {
        let chosen = worker.spaces.choose(&mut worker.rng);
        for key in &mut worker.many_keys {
            let index = worker.spaces.random_index(chosen, worker.keys, &mut worker.rng);
            worker.keys.write(index, KeyKind::Present, key);
        }
        let values = worker.space(chosen).multi_get(&worker.many_keys)?;
        Ok(values.iter().flatten().count() as u64)
    })?;
    Ok(WorkloadResult::of_rows(timing, true))
}

/// Gets of present keys while another thread overwrites as fast as it can.
pub fn while_writing(driver: &Driver<'_>, calls: u64) -> Result<WorkloadResult, Failure> {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut worker = driver.worker(WRITER);
            let mut puts = 0;
            while !done.load(Ordering::Relaxed) {
                let index = worker.rng.below(worker.keys.num());
                writes::put(&mut worker, index)?;
                puts += 1;
            }
            Ok::<u64, Failure>(puts)
        });
        let result = present(driver, calls);
        done.store(true, Ordering::Relaxed);
        let puts = writer.join().unwrap_or_else(|_| Err(Failure::message("the writing thread panicked")))?;
        Ok(WorkloadResult { concurrent_puts: Some(puts), ..result? })
    })
}

/// Seeks to a random present key and reads its row.
pub fn seek(driver: &Driver<'_>, calls: u64) -> Result<WorkloadResult, Failure> {
    let timing = driver.run(calls, |worker, _| {
        let index = worker.rng.below(worker.keys.num());
        rows_from(worker, index, 1)
    })?;
    Ok(WorkloadResult::of_calls(timing, true))
}

/// Reads up to `limit` rows, starting at a present key. Returns their number.
#[inline]
pub fn rows_from(worker: &mut Worker<'_>, index: u64, limit: usize) -> sidebloom::Result<u64> {
    worker.keys.write(index, KeyKind::Present, &mut worker.key);
    let mut range = worker.space(index).range(worker.key.as_slice()..);
    let mut rows = 0;
    while rows < limit && range.next_row()?.is_some() {
        rows += 1;
    }
    Ok(rows as u64)
}

/// Reads all rows.
pub fn scan(driver: &Driver<'_>) -> Result<WorkloadResult, Failure> {
    let timing = driver.run(1, |worker, _| {
        let mut rows = 0;
        for keyspace in worker.spaces.all() {
            let mut range = keyspace.iter();
            while range.next_row()?.is_some() {
                rows += 1;
            }
        }
        Ok(rows)
    })?;
    Ok(WorkloadResult::of_rows(timing, true))
}
