//! fillseq, fillrandom, overwrite.

use super::drive::{Driver, Worker, WorkloadResult};
use super::keys::KeyKind;
use crate::context::Failure;
use sidebloom::Batch;

/// Every key once, in key order (within each thread's part).
pub fn in_order(driver: &Driver<'_>, calls: u64, batch: u64) -> Result<WorkloadResult, Failure> {
    let timing = driver.run(calls, |worker, call| write(worker, call, batch, |i| i))?;
    Ok(WorkloadResult::of_rows(timing, false))
}

/// Every key once, in random order.
pub fn shuffled(driver: &Driver<'_>, calls: u64, batch: u64) -> Result<WorkloadResult, Failure> {
    let timing = driver.run(calls, |worker, call| write(worker, call, batch, |i| driver.keys.shuffled(i)))?;
    Ok(WorkloadResult::of_rows(timing, false))
}

/// The `call`-th write of `batch` keys; the last one may be shorter.
#[inline]
fn write(
    worker: &mut Worker<'_>,
    call: u64,
    batch: u64,
    index: impl Fn(u64) -> u64,
) -> sidebloom::Result<u64> {
    if batch == 1 {
        return put(worker, index(call)).map(|()| 1);
    }
    let range = call * batch..((call + 1) * batch).min(worker.keys.num());
    let mut writes = Batch::new();
    for i in range.clone() {
        let index = index(i);
        worker.keys.write(index, KeyKind::Present, &mut worker.key);
        writes.keyspace(worker.space(index)).put(&worker.key, worker.values.pick(worker.rng.bits()));
    }
    worker.spaces.write(writes)?;
    Ok(range.end - range.start)
}

/// Puts a present key.
#[inline]
pub fn put(worker: &mut Worker<'_>, index: u64) -> sidebloom::Result<()> {
    worker.keys.write(index, KeyKind::Present, &mut worker.key);
    worker.space(index).put(&worker.key, worker.values.pick(worker.rng.bits()))
}
