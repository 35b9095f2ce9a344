//! Opens a store and gets its first answers.

use super::runner::TaskRunner;
use crate::engines;
use crate::error::Result;
use crate::kernel::{self, ResourceCounters};
use crate::measure::{CallCpu, CallTiming, latency_histogram};
use crate::task::WorkerOutcome;
use crate::workload::{CacheState, StoreCall};
use std::time::Instant;

impl TaskRunner {
    /// Times an opening with its first answers. Together they count as one call.
    pub fn opening(&self) -> Result<WorkerOutcome> {
        let (dir, settings) = (self.task.dir.as_path(), &self.task.settings);
        let mut generator = self.generator(self.workload.kind, settings.num, self.seed());
        let mut lookups = Vec::new();
        for _ in 0..self.workload.calls(settings) {
            if let StoreCall::Get(asked) = generator.next_call() {
                let mut key = Vec::new();
                self.keys.write(self.keys.rank(asked.index, asked.presence), asked.presence, &mut key);
                lookups.push((asked, key, (false, Vec::new())));
            }
        }
        let mut rejected = None;
        if self.workload.cache == CacheState::Cold {
            let files = kernel::files(dir);
            kernel::drop_page_cache(&files)?;
            rejected = self.why_still_cached(&files)?;
        }
        let closed = ResourceCounters::now(dir);
        let begin = Instant::now();
        let engine = engines::open(self.task.engine, dir, settings, false)?;
        let open = begin.elapsed();
        let mut first_answer = open;
        for (at, (_, key, (found, value))) in lookups.iter_mut().enumerate() {
            *found = engine.get(key, value)?;
            if at == 0 {
                first_answer = begin.elapsed();
            }
        }
        let elapsed = begin.elapsed();
        let used = ResourceCounters::now(dir).since(closed);
        let driver = self.driver(engine.as_ref());
        lookups.iter().try_for_each(|(asked, _, got)| driver.check_one(asked, got))?;
        let mut latencies = latency_histogram()?;
        latencies.saturating_record(elapsed.as_nanos() as u64);
        let mean_ns = elapsed.as_nanos() as f64;
        let timing = CallTiming {
            calls: 1,
            mean_ns,
            latencies,
            keys_per_call: 1,
            user_bytes: 0,
            cpu: CallCpu::default(),
        };
        let mut outcome = self.outcome(&timing, used, open);
        outcome.first_answer_ns = Some(first_answer.as_nanos() as f64);
        outcome.rejected = rejected;
        Ok(outcome)
    }
}
