//! Loads a store.

use super::runner::TaskRunner;
use crate::engine::Engine;
use crate::error::Result;
use crate::kernel;
use crate::keys::KeyPresence;
use crate::measure::{CallCpu, CallTiming};
use std::time::Instant;

/// Keys per batch.
pub const LOAD_BATCH: u64 = 100;

impl TaskRunner {
    /// Writes all keys in random order, in batches. Also returns the CPU nanoseconds of generating them.
    pub fn load(&self, engine: &dyn Engine) -> Result<(CallTiming, u64)> {
        let (num, generation) = (self.task.settings.num, self.task.generation);
        let mut latencies = hdrhistogram::Histogram::new_with_bounds(1, 3_600_000_000_000, 3)?;
        let mut pairs = vec![(Vec::new(), Vec::new()); LOAD_BATCH as usize];
        let (mut ns, mut making_cpu_ns, mut user_bytes) = (0, 0, 0);
        for first in (0..num).step_by(LOAD_BATCH as usize) {
            let making = kernel::thread_cpu_ns();
            pairs.truncate((num - first) as usize);
            for (index, (key, value)) in (first..).zip(&mut pairs) {
                self.keys.write(self.keys.rank(index, KeyPresence::Present), KeyPresence::Present, key);
                self.values.write(index, generation, value);
                user_bytes += (key.len() + value.len()) as u64;
            }
            making_cpu_ns += kernel::thread_cpu_ns() - making;
            let start = Instant::now();
            engine.put_all(&pairs)?;
            let took = start.elapsed().as_nanos() as u64;
            latencies.saturating_record(took);
            ns += took;
            let done = first + pairs.len() as u64;
            if (1..self.task.settings.runs)
                .any(|run| (first..done).contains(&(run * num / self.task.settings.runs)))
            {
                engine.finish_compactions()?;
            }
        }
        let mean_ns = ns as f64 / num as f64;
        let timing = CallTiming {
            calls: num,
            mean_ns,
            latencies,
            keys_per_call: LOAD_BATCH,
            user_bytes,
            cpu: CallCpu::default(),
        };
        Ok((timing, making_cpu_ns))
    }
}
