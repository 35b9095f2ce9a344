//! Runs one workload on one engine in its own process: reads a [`WorkerTask`] from standard input, and writes
//! a [`WorkerOutcome`] to standard output.

mod calls;
mod load;
mod open;
mod runner;
mod state;
mod threads;
mod written;

use crate::engines;
use crate::error::Result;
use crate::kernel::{self, ResourceCounters};
use crate::limit::Cgroup;
use crate::task::{WorkerOutcome, WorkerTask};
use crate::workload::{StoreRole, WorkloadKind};
use calls::MadeCalls;
use runner::TaskRunner;
use std::time::Instant;

/// Reads a task, runs it, and writes the outcome.
pub fn main() -> Result<()> {
    let task: WorkerTask = serde_json::from_reader(std::io::stdin().lock())?;
    let outcome = TaskRunner::new(task)?.run()?;
    serde_json::to_writer(std::io::stdout().lock(), &outcome)?;
    Ok(())
}

impl TaskRunner {
    fn run(&self) -> Result<WorkerOutcome> {
        let (dir, kind) = (self.task.dir.as_path(), self.workload.kind);
        let mut rejected = None;
        if self.workload.opens() {
            return self.opening();
        }
        if let Some(group) = &self.task.group {
            return self.run_limited(group);
        }
        if self.workload.store == StoreRole::Written {
            return self.run_written();
        }
        let begin = Instant::now();
        let making_runs = kind == WorkloadKind::Load && self.task.settings.runs > 0;
        let settings = if making_runs { &self.task.settings.for_making_runs() } else { &self.task.settings };
        let engine = engines::open(self.task.engine, dir, settings, kind == WorkloadKind::Count)?;
        let open = begin.elapsed();
        // Readers need the state that they measure, and writers must not pay for the page cache that the
        // previous workload left.
        if kind != WorkloadKind::Load && self.workload.store != StoreRole::Fresh {
            self.warm_up(engine.as_ref())?;
        }
        if self.workload.only_reads() {
            rejected = self.why_not_ready(engine.as_ref())?;
        }
        let before = ResourceCounters::now(dir);
        let MadeCalls { timing, writer_puts_per_second, inserted, making_cpu_ns } =
            self.calls(engine.as_ref())?;
        let run = ResourceCounters::now(dir).since(before);
        let finishing = Instant::now();
        if !self.workload.only_reads() {
            engine.finish_compactions()?;
        }
        let finished_after = finishing.elapsed();
        let whole = ResourceCounters::now(dir).since(before);
        if rejected.is_none() && self.workload.only_reads() {
            rejected = self.why_rejected_after(engine.as_ref(), run, timing.calls);
        }
        let mut outcome = self.outcome(&timing, run, open);
        outcome.facts = engine.facts()?;
        outcome.rejected = rejected.or_else(|| self.why_wrong_runs(&outcome.facts));
        outcome.inserted = inserted;
        outcome.beside_per_second = writer_puts_per_second;
        if !self.workload.only_reads() {
            outcome.settle_seconds = Some(finished_after.as_secs_f64());
            let seconds = timing.mean_ns * timing.calls as f64 / 1e9 + finished_after.as_secs_f64();
            outcome.settled_per_second = Some(timing.calls as f64 / seconds);
            outcome.load_cpu_seconds =
                making_cpu_ns.map(|making| whole.cpu_ns.saturating_sub(making) as f64 / 1e9);
            let written =
                (timing.user_bytes > 0).then(|| whole.write_bytes as f64 / timing.user_bytes as f64);
            outcome.write_amplification = written.filter(|_| kind != WorkloadKind::GetWhileWriting);
            if self.workload.store != StoreRole::Fresh {
                kernel::write_back(&kernel::files(dir))?;
            }
        }
        Ok(outcome)
    }

    /// Runs the workload in a control group with a limit. This program's own tables are allocated before and
    /// do not count.
    fn run_limited(&self, group: &Cgroup) -> Result<WorkerOutcome> {
        let (dir, settings) = (self.task.dir.as_path(), &self.task.settings);
        let mut warming =
            self.generator(WorkloadKind::Get { missing: 0 }, settings.num, settings.seed ^ 0x7761_726d);
        let mut asking = self.generator(self.workload.kind, settings.num, self.seed());
        // A page in the page cache is charged to the process that read it first.
        let files = kernel::files(dir);
        kernel::drop_page_cache(&files)?;
        let mut rejected = self.why_still_cached(&files)?;
        group.join()?;
        let begin = Instant::now();
        let engine = engines::open(self.task.engine, dir, &settings.in_limited_memory(), false)?;
        let open = begin.elapsed();
        engine.warm()?;
        let driver = self.driver(engine.as_ref());
        // Get present keys until the pages read would fill the limit.
        driver.run(&mut warming, settings.limit_bytes() / 4096)?;
        let before = ResourceCounters::now(dir);
        let timing = driver.run(&mut asking, self.workload.calls(settings))?;
        let run = ResourceCounters::now(dir).since(before);
        let usage = group.usage()?;
        rejected = rejected.or_else(|| usage.why_not_in_force(group.bytes, kernel::disk_bytes(dir)));
        rejected = rejected.or_else(|| self.why_rejected_after(engine.as_ref(), run, timing.calls));
        let mut outcome = self.outcome(&timing, run, open);
        outcome.facts = engine.facts()?;
        outcome.limited = Some(usage);
        outcome.rejected = rejected;
        Ok(outcome)
    }
}
