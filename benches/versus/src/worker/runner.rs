//! Shared by all ways to run a task: the calls, the check of their effects, and the figures.

use crate::engine::Engine;
use crate::error::Result;
use crate::kernel::{self, ResourceCounters};
use crate::keys::{KeyGenerator, KeyPresence, SplitMix64, ValueGenerator};
use crate::measure::{CallDriver, CallTiming};
use crate::task::{WorkerOutcome, WorkerTask};
use crate::workload::{
    self, CallGenerator, ExpectedAnswer, KeyLookup, StoreRole, WorkloadKind, WorkloadSpec,
};
use std::time::Duration;

/// The quantiles of a latency curve.
const QUANTILES: [f64; 24] = [
    0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.925, 0.95, 0.97, 0.98, 0.99,
    0.995, 0.998, 0.999, 0.9999, 1.0,
];

/// A task, its workload, and their keys and values.
pub struct TaskRunner {
    pub task: WorkerTask,
    pub workload: WorkloadSpec,
    pub keys: KeyGenerator,
    pub values: ValueGenerator,
}

impl TaskRunner {
    /// Prepares a task.
    pub fn new(task: WorkerTask) -> Result<Self> {
        Ok(TaskRunner {
            keys: KeyGenerator::new(task.settings.key_bytes as usize, task.settings.seed),
            values: ValueGenerator::new(task.settings.value_bytes as usize, task.settings.seed),
            workload: workload::by_name(&task.workload).ok_or("unknown workload")?,
            task,
        })
    }

    /// Makes the calls, and checks the answers.
    pub fn driver<'a>(&'a self, engine: &'a dyn Engine) -> CallDriver<'a> {
        CallDriver { engine, keys: &self.keys, values: &self.values, generation: self.task.generation }
    }

    /// Generates calls of a store that was loaded with this many keys.
    pub fn generator(&self, kind: WorkloadKind, loaded: u64, seed: u64) -> CallGenerator<'_> {
        let (added, generation) = (self.task.added, self.task.generation);
        let calls = CallGenerator::new(kind, &self.keys, loaded, added, generation, SplitMix64::new(seed));
        if self.workload.store == StoreRole::Written { calls.all_written() } else { calls }
    }

    /// The seed of the timed calls.
    pub fn seed(&self) -> u64 {
        self.task.settings.seed ^ self.task.generation << 32
    }

    /// Checks that the store has what the calls wrote.
    pub fn check_written(&self, driver: &CallDriver<'_>, generator: &CallGenerator<'_>) -> Result<()> {
        if self.workload.only_reads() {
            return Ok(());
        }
        let before = self.task.settings.num + self.task.added;
        let (mut key, mut got) = (Vec::new(), (false, Vec::new()));
        for index in
            generator.written().step_by(16).filter(|&index| index < self.task.settings.num || index >= before)
        {
            let asked = KeyLookup {
                index,
                presence: KeyPresence::Present,
                expect: ExpectedAnswer::Exactly(self.task.generation),
            };
            self.keys.write(self.keys.rank(index, asked.presence), asked.presence, &mut key);
            got.0 = driver.engine.get(&key, &mut got.1)?;
            driver.check_one(&asked, &got)?;
        }
        Ok(())
    }

    /// The figures of the calls.
    pub fn outcome(&self, timing: &CallTiming, run: ResourceCounters, open: Duration) -> WorkerOutcome {
        let per_op = |n: u64| n as f64 / timing.calls.max(1) as f64;
        let quantile = |q: f64| timing.latencies.value_at_quantile(q) as f64 / timing.keys_per_call as f64;
        let (memory_bytes, mapped_bytes) = kernel::resident_memory();
        WorkerOutcome {
            ops: timing.calls,
            ops_per_second: 1e9 / timing.mean_ns,
            mean_ns: timing.mean_ns,
            p50_ns: quantile(0.5),
            p99_ns: quantile(0.99),
            p999_ns: quantile(0.999),
            curve: QUANTILES.map(|q| (q, quantile(q))).to_vec(),
            cpu_ns_per_op: per_op(run.cpu_ns.saturating_sub(timing.cpu.aside_ns)),
            disk_reads_per_op: run.device_reads.map(per_op),
            major_faults_per_op: per_op(run.major_faults),
            disk_bytes_per_op: per_op(run.read_bytes),
            memory_bytes,
            mapped_bytes,
            page_cache_bytes: Some(kernel::cached_bytes(&kernel::files(&self.task.dir))),
            disk_bytes: kernel::disk_bytes(&self.task.dir),
            open_ns: open.as_nanos() as f64,
            ..WorkerOutcome::default()
        }
    }
}
