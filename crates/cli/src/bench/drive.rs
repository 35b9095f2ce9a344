//! Runs an operation many times on several threads, and times it.
//!
//! Throughput and the mean come from the whole loop. Reading the clock takes about 25 ns, a tenth of a fast
//! lookup, so long workloads time one call in [`SAMPLED`]. Percentiles are of timed calls, clock included.

use super::keys::{KeySpace, Rng, Values, mix};
use super::keyspaces::Keyspaces;
use crate::context::Failure;
use hdrhistogram::Histogram;
use indicatif::ProgressBar;
use sidebloom::Keyspace;
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// Keys in a call of multireadrandom.
pub const KEYS_PER_CALL: usize = 16;
/// Long workloads time one call in this many.
const SAMPLED: u64 = 16;
/// Calls per thread that make a workload long.
const LONG_RUN: u64 = 100_000;
/// Calls between two moves of the bar.
const BAR_STEP: u64 = 4096;

/// The state of one thread of a workload.
pub struct Worker<'a> {
    pub spaces: &'a Keyspaces,
    pub keys: &'a KeySpace,
    pub values: &'a Values,
    /// This thread's random numbers.
    pub rng: Rng,
    /// Buffer for a key.
    pub key: Vec<u8>,
    /// Buffers for the keys of one call of multireadrandom.
    pub many_keys: [Vec<u8>; KEYS_PER_CALL],
}

/// Runs workloads on a store.
pub struct Driver<'a> {
    pub spaces: &'a Keyspaces,
    pub keys: &'a KeySpace,
    pub values: &'a Values,
    pub threads: u64,
    /// Seed of all random choices.
    pub seed: u64,
    /// The progress bar.
    pub bar: ProgressBar,
}

/// The timing of a workload.
pub struct Timing {
    /// Calls made.
    pub calls: u64,
    /// Rows found or written, summed over the calls.
    pub rows: u64,
    /// From the start of the first call to the end of the last.
    pub elapsed: Duration,
    /// Latencies of the timed calls, in nanoseconds.
    pub latencies: Histogram<u64>,
}

/// The result of a workload.
pub struct WorkloadResult {
    /// Operations: rows for fills, multireadrandom and scan; calls for the others.
    pub ops: u64,
    /// How many operations found a row; `None` for workloads that only write.
    pub found: Option<u64>,
    /// Times and rows.
    pub timing: Timing,
    /// Puts by a concurrent thread.
    pub concurrent_puts: Option<u64>,
}

impl WorkloadResult {
    /// One operation per call.
    pub fn of_calls(timing: Timing, found: bool) -> Self {
        WorkloadResult {
            ops: timing.calls,
            found: found.then_some(timing.rows),
            timing,
            concurrent_puts: None,
        }
    }

    /// One operation per row.
    pub fn of_rows(timing: Timing, found: bool) -> Self {
        WorkloadResult { ops: timing.rows, ..WorkloadResult::of_calls(timing, found) }
    }
}

impl<'a> Worker<'a> {
    /// The keyspace of the keys of an index.
    #[inline]
    pub fn space(&self, index: u64) -> &'a Keyspace {
        self.spaces.of(index)
    }
}

impl<'a> Driver<'a> {
    /// A worker. `stream` selects its sequence of random numbers.
    pub fn worker(&self, stream: u64) -> Worker<'a> {
        let rng = Rng::new(mix(self.seed) ^ stream);
        Worker {
            spaces: self.spaces,
            keys: self.keys,
            values: self.values,
            rng,
            key: Vec::new(),
            many_keys: Default::default(),
        }
    }

    /// Calls `call` `calls` times with the number of the call. It returns how many rows it found or wrote.
    pub fn run<F>(&self, calls: u64, call: F) -> Result<Timing, Failure>
    where
        F: Fn(&mut Worker<'_>, u64) -> sidebloom::Result<u64> + Sync,
    {
        let together = Barrier::new(self.threads as usize);
        let parts = (0..self.threads).map(|_| ThreadPart::new()).collect::<Result<Vec<_>, _>>()?;
        let parts: Vec<Result<ThreadPart, Failure>> = std::thread::scope(|scope| {
            let spawn = |(thread, mut part): (u64, ThreadPart)| {
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

/// One thread's part of a workload.
struct ThreadPart {
    begin: Instant,
    end: Instant,
    rows: u64,
    latencies: Histogram<u64>,
}

impl ThreadPart {
    fn new() -> Result<Self, Failure> {
        let latencies = Histogram::new_with_bounds(1, 3_600_000_000_000, 3)
            .map_err(|e| Failure::message(format!("cannot make a histogram: {e}")))?;
        let now = Instant::now();
        Ok(ThreadPart { begin: now, end: now, rows: 0, latencies })
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

fn merge(calls: u64, parts: Vec<Result<ThreadPart, Failure>>) -> Result<Timing, Failure> {
    let mut whole = ThreadPart::new()?;
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
