//! Runs one workload on one engine in its own process: reads a [`WorkerTask`] from standard input, and writes a [`WorkerOutcome`] to
//! standard output.

use crate::engine::{Engine, EngineFacts};
use crate::engines;
use crate::error::Result;
use crate::kernel::{self, ResourceCounters};
use crate::keys::{KeyGenerator, KeyPresence, SplitMix64, ValueGenerator};
use crate::limit::Cgroup;
use crate::measure::{CallDriver, CallTiming};
use crate::task::{WorkerOutcome, WorkerTask};
use crate::workload::{
    self, CacheState, CallGenerator, ExpectedAnswer, KeyLookup, MULTI, WorkloadKind, WorkloadSpec,
};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Keys per batch of `load`.
const LOAD_BATCH: u64 = 1000;
/// The quantiles of a latency curve.
const QUANTILES: [f64; 24] = [
    0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.925, 0.95, 0.97, 0.98, 0.99,
    0.995, 0.998, 0.999, 0.9999, 1.0,
];

/// Reads a task, runs it, and writes the outcome.
pub fn main() -> Result<()> {
    let task: WorkerTask = serde_json::from_reader(std::io::stdin().lock())?;
    let workload = workload::by_name(&task.workload).ok_or("unknown workload")?;
    let runner = TaskRunner {
        keys: KeyGenerator::new(task.settings.key_bytes as usize, task.settings.seed),
        values: ValueGenerator::new(task.settings.value_bytes as usize, task.settings.seed),
        workload,
        task,
    };
    let outcome = runner.run()?;
    serde_json::to_writer(std::io::stdout().lock(), &outcome)?;
    Ok(())
}

struct TaskRunner {
    task: WorkerTask,
    workload: WorkloadSpec,
    keys: KeyGenerator,
    values: ValueGenerator,
}

impl TaskRunner {
    fn run(&self) -> Result<WorkerOutcome> {
        let (dir, kind) = (self.task.dir.as_path(), self.workload.kind);
        let mut rejected = None;
        if kind == WorkloadKind::Open && self.workload.cache == CacheState::Cold {
            kernel::drop_page_cache(&kernel::files(dir))?;
        }
        if let Some(group) = &self.task.group {
            return self.run_limited(group);
        }
        let closed = ResourceCounters::now(dir);
        let begin = Instant::now();
        let making_runs = kind == WorkloadKind::Load && self.task.settings.runs > 0;
        let settings = match making_runs {
            true => &self.task.settings.for_making_runs(),
            false => &self.task.settings,
        };
        let engine = engines::open(self.task.engine, dir, settings, kind == WorkloadKind::Count)?;
        let open = begin.elapsed();
        if kind == WorkloadKind::Open {
            return self.first_answer(engine.as_ref(), begin, open, closed);
        }
        if self.workload.only_reads() {
            self.warm_up(engine.as_ref())?;
            rejected = self.why_not_ready(engine.as_ref())?;
        }
        let before = ResourceCounters::now(dir);
        let (timing, writer_puts_per_second, inserted) = self.calls(engine.as_ref())?;
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
            let written =
                (timing.user_bytes > 0).then(|| whole.write_bytes as f64 / timing.user_bytes as f64);
            outcome.write_amplification = written.filter(|_| kind != WorkloadKind::GetWhileWriting);
        }
        Ok(outcome)
    }

    /// Runs the workload in a control group with a limit. This program's own tables are allocated before, and do not count.
    fn run_limited(&self, group: &Cgroup) -> Result<WorkerOutcome> {
        let (dir, settings) = (self.task.dir.as_path(), &self.task.settings);
        let generator = |kind, seed| {
            let generation = self.task.generation;
            CallGenerator::new(
                kind,
                &self.keys,
                settings.num,
                self.task.added,
                generation,
                SplitMix64::new(seed),
            )
        };
        let mut warming = generator(WorkloadKind::Get { missing: 0 }, settings.seed ^ 0x7761_726d);
        let mut asking = generator(self.workload.kind, settings.seed ^ self.task.generation << 32);
        // A page that is already in the page cache is charged to the process that read it.
        let files = kernel::files(dir);
        kernel::drop_page_cache(&files)?;
        let share = kernel::cached_share(&files)?;
        let mut rejected =
            (share > 0.02).then(|| format!("{:.0} % of the store stayed in the page cache", 100.0 * share));
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

    fn driver<'a>(&'a self, engine: &'a dyn Engine) -> CallDriver<'a> {
        CallDriver { engine, keys: &self.keys, values: &self.values, generation: self.task.generation }
    }

    /// Reads filters and indexes into memory. A warm run also reads every block, by getting one key in eight.
    fn warm_up(&self, engine: &dyn Engine) -> Result<()> {
        engine.warm()?;
        let (mut key, mut value) = (Vec::new(), Vec::new());
        if self.workload.cache == CacheState::Warm {
            for rank in self.keys.sorted(self.task.settings.num).into_iter().step_by(8) {
                self.keys.write(rank, KeyPresence::Present, &mut key);
                engine.get(&key, &mut value)?;
            }
        }
        Ok(())
    }

    /// Drops the store from the page cache for a cold run. Returns why the store is not in the state that the workload needs, if it is not.
    fn why_not_ready(&self, engine: &dyn Engine) -> Result<Option<String>> {
        if engine.busy() {
            return Ok(Some("a compaction was running".to_owned()));
        }
        if self.workload.cache == CacheState::Warm {
            return Ok(None);
        }
        let mut files = kernel::files(&self.task.dir);
        files.retain(|file| !self.task.engine.stays_in_memory(file));
        if kernel::is_memory(&self.task.dir) {
            return Ok(Some("the store is in a memory-backed file system".to_owned()));
        }
        kernel::drop_page_cache(&files)?;
        let share = kernel::cached_share(&files)?;
        Ok((share > 0.02).then(|| format!("{:.0} % of the store stayed in the page cache", 100.0 * share)))
    }

    fn why_rejected_after(&self, engine: &dyn Engine, run: ResourceCounters, calls: u64) -> Option<String> {
        if engine.busy() || run.write_bytes > 1 << 20 {
            return Some("a compaction was running".to_owned());
        }
        let from_disk = run.read_bytes > 4096 * (calls / 1000 + 16);
        (self.workload.cache == CacheState::Warm && from_disk)
            .then(|| format!("a warm run read {} bytes from disk", run.read_bytes))
    }

    /// Why the number of sorted runs is wrong, if the settings ask for a number and it is.
    fn why_wrong_runs(&self, facts: &EngineFacts) -> Option<String> {
        let (wanted, found) = (self.task.settings.runs, facts.runs?);
        (wanted > 0 && found != wanted).then(|| format!("{found} sorted runs instead of {wanted}"))
    }

    fn calls(&self, engine: &dyn Engine) -> Result<(CallTiming, Option<f64>, u64)> {
        let (settings, generation) = (&self.task.settings, self.task.generation);
        let driver = self.driver(engine);
        let rng = SplitMix64::new(settings.seed ^ generation << 32);
        let calls = self.workload.calls(settings);
        // A fill writes one key per call.
        let loaded = if self.workload.fresh_store() { calls } else { settings.num };
        match self.workload.kind {
            WorkloadKind::Load => return Ok((self.load(engine)?, None, 0)),
            WorkloadKind::Scan => return Ok((driver.scan_all(settings.num + self.task.added)?, None, 0)),
            _ => {}
        }
        let mut generator =
            CallGenerator::new(self.workload.kind, &self.keys, loaded, self.task.added, generation, rng);
        let (mut timing, writer_puts_per_second) = match self.workload.kind {
            WorkloadKind::GetWhileWriting => self.with_writer(&driver, &mut generator, calls)?,
            _ => (driver.run(&mut generator, calls)?, None),
        };
        if let WorkloadKind::MultiGet { .. } = self.workload.kind {
            timing.keys_per_call = MULTI as u64;
            timing.calls *= MULTI as u64;
            timing.mean_ns /= MULTI as f64;
        }
        self.check_written(&driver, &generator)?;
        Ok((timing, writer_puts_per_second, generator.present() - loaded - self.task.added))
    }

    /// Checks that the store has what the calls wrote.
    fn check_written(&self, driver: &CallDriver<'_>, generator: &CallGenerator<'_>) -> Result<()> {
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

    fn load(&self, engine: &dyn Engine) -> Result<CallTiming> {
        let (num, generation) = (self.task.settings.num, self.task.generation);
        let mut latencies = hdrhistogram::Histogram::new_with_bounds(1, 3_600_000_000_000, 3)?;
        let mut pairs = vec![(Vec::new(), Vec::new()); LOAD_BATCH as usize];
        let (mut ns, mut user_bytes) = (0, 0);
        for first in (0..num).step_by(LOAD_BATCH as usize) {
            pairs.truncate((num - first) as usize);
            for (index, (key, value)) in (first..).zip(&mut pairs) {
                self.keys.write(self.keys.rank(index, KeyPresence::Present), KeyPresence::Present, key);
                self.values.write(index, generation, value);
                user_bytes += (key.len() + value.len()) as u64;
            }
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
        Ok(CallTiming {
            calls: num,
            mean_ns: ns as f64 / num as f64,
            latencies,
            keys_per_call: LOAD_BATCH,
            user_bytes,
        })
    }

    /// Makes the calls while another thread overwrites at the rate in the settings.
    fn with_writer(
        &self,
        driver: &CallDriver<'_>,
        generator: &mut CallGenerator<'_>,
        calls: u64,
    ) -> Result<(CallTiming, Option<f64>)> {
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| self.write_until(driver, &done));
            let timing = driver.run(generator, calls);
            done.store(true, Relaxed);
            let rate = writer.join().map_err(|_| "the writer thread panicked")??;
            Ok((timing?, Some(rate)))
        })
    }

    fn write_until(&self, driver: &CallDriver<'_>, done: &AtomicBool) -> Result<f64> {
        let mut rng = SplitMix64::new(self.task.generation ^ 0x7772_6974_6572);
        let pause = Duration::from_nanos(1_000_000_000 / self.task.settings.put_rate);
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let (begin, mut puts) = (Instant::now(), 0u32);
        while !done.load(Relaxed) {
            let index = rng.below(self.task.settings.num);
            self.keys.write(self.keys.rank(index, KeyPresence::Present), KeyPresence::Present, &mut key);
            self.values.write(index, self.task.generation, &mut value);
            driver.engine.put(&key, &value)?;
            puts += 1;
            std::thread::sleep((pause * puts).saturating_sub(begin.elapsed()));
        }
        Ok(f64::from(puts) / begin.elapsed().as_secs_f64())
    }

    fn first_answer(
        &self,
        engine: &dyn Engine,
        begin: Instant,
        open: Duration,
        closed: ResourceCounters,
    ) -> Result<WorkerOutcome> {
        let mut got = (false, Vec::new());
        let mut key = Vec::new();
        let asked = KeyLookup {
            index: SplitMix64::new(self.task.generation).below(self.task.settings.num),
            presence: KeyPresence::Present,
            expect: ExpectedAnswer::Before(self.task.generation),
        };
        self.keys.write(self.keys.rank(asked.index, asked.presence), asked.presence, &mut key);
        got.0 = engine.get(&key, &mut got.1)?;
        let answered = begin.elapsed();
        self.driver(engine).check_one(&asked, &got)?;
        let mut latencies = hdrhistogram::Histogram::new_with_bounds(1, 60_000_000_000, 3)?;
        latencies.saturating_record(answered.as_nanos() as u64);
        let mean_ns = answered.as_nanos() as f64;
        let timing = CallTiming { calls: 1, mean_ns, latencies, keys_per_call: 1, user_bytes: 0 };
        let mut outcome = self.outcome(&timing, ResourceCounters::now(&self.task.dir).since(closed), open);
        outcome.first_answer_ns = Some(mean_ns);
        Ok(outcome)
    }

    fn outcome(&self, timing: &CallTiming, run: ResourceCounters, open: Duration) -> WorkerOutcome {
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
            cpu_ns_per_op: per_op(run.cpu_ns),
            disk_reads_per_op: run.device_reads.map(per_op),
            disk_bytes_per_op: per_op(run.read_bytes),
            memory_bytes,
            mapped_bytes,
            disk_bytes: kernel::disk_bytes(Path::new(&self.task.dir)),
            open_ns: open.as_nanos() as f64,
            ..WorkerOutcome::default()
        }
    }
}
