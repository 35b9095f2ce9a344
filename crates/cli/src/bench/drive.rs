//! Runs an operation many times on several threads, and times it.
//!
//! Throughput and the mean come from the whole loop. Reading the clock costs about 25 ns, a tenth of a fast lookup, so that long
//! runs time one call in [`SAMPLED`] only; percentiles are those of the timed calls, clock included.

use super::keys::{KeySpace, Rng, Values, mix};
use crate::context::Failure;
use hdrhistogram::Histogram;
use indicatif::ProgressBar;
use sidebloom::Db;
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// Keys in a call of multireadrandom.
pub const KEYS_PER_CALL: usize = 16;
/// One call in so many is timed, on long runs.
const SAMPLED: u64 = 16;
/// From this many calls a thread, not every call is timed.
const LONG_RUN: u64 = 100_000;
/// The bar moves once in so many calls.
const BAR_STEP: u64 = 4096;

/// What each thread of a workload works with.
pub struct Worker<'a> {
    /// The store.
    pub db: &'a Db,
    /// Its keys.
    pub keys: &'a KeySpace,
    /// Its values.
    pub values: &'a Values,
    /// This thread's random numbers.
    pub rng: Rng,
    /// Room for a key.
    pub key: Vec<u8>,
    /// Room for the keys of one call of multireadrandom.
    pub many_keys: [Vec<u8>; KEYS_PER_CALL],
}

/// What a workload is run with.
pub struct Driver<'a> {
    /// The store.
    pub db: &'a Db,
    /// Its keys.
    pub keys: &'a KeySpace,
    /// Its values.
    pub values: &'a Values,
    /// Threads that call.
    pub threads: u64,
    /// Of all random choices.
    pub seed: u64,
    /// Moves as calls are made.
    pub bar: ProgressBar,
}

/// How a run went.
pub struct Timing {
    /// Calls made.
    pub calls: u64,
    /// Sum of what the calls returned: rows found.
    pub rows: u64,
    /// From the first call's begin to the last one's end.
    pub elapsed: Duration,
    /// Nanoseconds of the timed calls.
    pub latencies: Histogram<u64>,
}

/// A workload's run.
pub struct WorkloadRun {
    /// Operations: rows for fills, multireadrandom and scan, calls for the others.
    pub ops: u64,
    /// Reads that should have found a row, and how many did; `None` for workloads that only write.
    pub found: Option<u64>,
    /// The clock's part.
    pub timing: Timing,
    /// Puts that another thread made meanwhile.
    pub concurrent_puts: Option<u64>,
}

impl WorkloadRun {
    /// One operation a call.
    pub fn of_calls(timing: Timing, found: bool) -> Self {
        WorkloadRun { ops: timing.calls, found: found.then_some(timing.rows), timing, concurrent_puts: None }
    }

    /// One operation a row.
    pub fn of_rows(timing: Timing, found: bool) -> Self {
        WorkloadRun { ops: timing.rows, ..WorkloadRun::of_calls(timing, found) }
    }
}

impl<'a> Driver<'a> {
    /// A worker; `stream` tells the random numbers of one apart from another's.
    pub fn worker(&self, stream: u64) -> Worker<'a> {
        let rng = Rng::new(mix(self.seed) ^ stream);
        Worker {
            db: self.db,
            keys: self.keys,
            values: self.values,
            rng,
            key: Vec::new(),
            many_keys: Default::default(),
        }
    }

    /// Makes `calls` calls of `call`, which is given the number of the call, and returns how many rows it found or wrote.
    pub fn run<F>(&self, calls: u64, call: F) -> Result<Timing, Failure>
    where
        F: Fn(&mut Worker<'_>, u64) -> sidebloom::Result<u64> + Sync,
    {
        let together = Barrier::new(self.threads as usize);
        let parts = (0..self.threads).map(|_| ThreadRun::new()).collect::<Result<Vec<_>, _>>()?;
        let parts: Vec<Result<ThreadRun, Failure>> = std::thread::scope(|scope| {
            let spawn = |(thread, mut part): (u64, ThreadRun)| {
                let (together, call) = (&together, &call);
                let range = thread * calls / self.threads..(thread + 1) * calls / self.threads;
                scope.spawn(move || {
                    let mut worker = self.worker(thread);
                    together.wait();
                    part.run(&mut worker, range, &self.bar, call)?;
                    Ok(part)
                })
            };
            let threads: Vec<_> = (0..).zip(parts).map(spawn).collect();
            let joined = threads.into_iter().map(|thread| {
                thread.join().unwrap_or_else(|_| Err(Failure::message("a thread of the workload panicked")))
            });
            joined.collect()
        });
        merge(calls, parts)
    }
}

/// One thread's share of a run.
struct ThreadRun {
    begin: Instant,
    end: Instant,
    rows: u64,
    latencies: Histogram<u64>,
}

impl ThreadRun {
    fn new() -> Result<Self, Failure> {
        let latencies = Histogram::new_with_bounds(1, 3_600_000_000_000, 3)
            .map_err(|e| Failure::message(format!("cannot make a histogram: {e}")))?;
        let now = Instant::now();
        Ok(ThreadRun { begin: now, end: now, rows: 0, latencies })
    }

    fn run<F>(
        &mut self,
        worker: &mut Worker<'_>,
        range: std::ops::Range<u64>,
        bar: &ProgressBar,
        call: &F,
    ) -> sidebloom::Result<()>
    where
        F: Fn(&mut Worker<'_>, u64) -> sidebloom::Result<u64>,
    {
        let every = if range.end - range.start >= LONG_RUN { SAMPLED } else { 1 };
        let mut rows = 0;
        self.begin = Instant::now();
        for i in range {
            if i.is_multiple_of(every) {
                let start = Instant::now();
                rows += call(worker, i)?;
                self.latencies.saturating_record(start.elapsed().as_nanos() as u64);
            } else {
                rows += call(worker, i)?;
            }
            if i.is_multiple_of(BAR_STEP) {
                bar.inc(BAR_STEP);
            }
        }
        self.end = Instant::now();
        self.rows = rows;
        Ok(())
    }
}

fn merge(calls: u64, parts: Vec<Result<ThreadRun, Failure>>) -> Result<Timing, Failure> {
    let mut whole = ThreadRun::new()?;
    for (i, part) in parts.into_iter().enumerate() {
        let part = part?;
        whole.begin = if i == 0 { part.begin } else { whole.begin.min(part.begin) };
        whole.end = if i == 0 { part.end } else { whole.end.max(part.end) };
        whole.rows += part.rows;
        whole
            .latencies
            .add(&part.latencies)
            .map_err(|e| Failure::message(format!("cannot add histograms: {e}")))?;
    }
    let elapsed = whole.end.duration_since(whole.begin);
    Ok(Timing { calls, rows: whole.rows, elapsed, latencies: whole.latencies })
}
