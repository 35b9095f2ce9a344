//! Runs one workload on one engine in its own process: reads a [`WorkerTask`] from standard input, and writes
//! a [`WorkerOutcome`] to standard output.

mod load;
mod open;
mod threads;

use crate::engine::{Engine, EngineFacts};
use crate::engines;
use crate::error::Result;
use crate::kernel::{self, ResourceCounters};
use crate::keys::{KeyGenerator, KeyPresence, SplitMix64, ValueGenerator};
use crate::limit::Cgroup;
use crate::measure::{CallDriver, CallTiming};
use crate::task::{WorkerOutcome, WorkerTask};
use crate::workload::{
    self, CacheState, CallGenerator, ExpectedAnswer, KeyLookup, MULTI, StoreRole, WorkloadKind, WorkloadSpec,
};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// One get for so many bytes of a cache that cannot hold the store: two for each block of 4 KiB, as some find
/// their block there already.
const WARM_BYTES_PER_GET: u64 = 2048;
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

/// The calls of a task, and what they did to the store.
struct MadeCalls {
    timing: CallTiming,
    /// The rate of the writer beside them, if there was one.
    writer_puts_per_second: Option<f64>,
    /// Keys that they inserted.
    inserted: u64,
    /// CPU time that went into making a load's keys and values.
    making_cpu_ns: Option<u64>,
}

impl From<CallTiming> for MadeCalls {
    fn from(timing: CallTiming) -> Self {
        MadeCalls { timing, writer_puts_per_second: None, inserted: 0, making_cpu_ns: None }
    }
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
        if self.workload.opens() {
            return self.opening();
        }
        if let Some(group) = &self.task.group {
            return self.run_limited(group);
        }
        let begin = Instant::now();
        let making_runs = kind == WorkloadKind::Load && self.task.settings.runs > 0;
        let settings = if making_runs { &self.task.settings.for_making_runs() } else { &self.task.settings };
        let engine = engines::open(self.task.engine, dir, settings, kind == WorkloadKind::Count)?;
        let open = begin.elapsed();
        // Readers need the state that they measure, and writers must not pay for what the workload before
        // them did to the page cache.
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

    /// Runs the workload in a control group with a limit. This program's own tables are allocated before, and
    /// do not count.
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

    fn driver<'a>(&'a self, engine: &'a dyn Engine) -> CallDriver<'a> {
        CallDriver { engine, keys: &self.keys, values: &self.values, generation: self.task.generation }
    }

    /// Reads filters and indexes into memory. For a warm run, also fills the engine's cache, and the page
    /// cache with what does not fit.
    fn warm_up(&self, engine: &dyn Engine) -> Result<()> {
        engine.warm()?;
        if self.workload.cache != CacheState::Warm {
            return Ok(());
        }
        let settings = &self.task.settings;
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let mut get = |rank| {
            self.keys.write(rank, KeyPresence::Present, &mut key);
            engine.get(&key, &mut value)
        };
        if settings.fits_cache() {
            // Two keys for every block of 4 KiB, so that each block is read.
            let step = 2048 / (settings.key_bytes + settings.value_bytes);
            for rank in self.keys.sorted(settings.num).into_iter().step_by(step.clamp(1, 8) as usize) {
                get(rank)?;
            }
        } else {
            kernel::fill_page_cache(&kernel::files(&self.task.dir))?;
            let mut rng = SplitMix64::new(settings.seed ^ 0x7761_726d);
            for _ in 0..settings.cache_bytes() / WARM_BYTES_PER_GET {
                get(self.keys.rank(rng.below(settings.num), KeyPresence::Present))?;
            }
        }
        Ok(())
    }

    /// Drops the store from the page cache for a cold run. Returns why the store is not in the state that the
    /// workload needs, if it is not.
    fn why_not_ready(&self, engine: &dyn Engine) -> Result<Option<String>> {
        if engine.busy() {
            return Ok(Some("a compaction was running".to_owned()));
        }
        if self.workload.cache == CacheState::Warm {
            return Ok(None);
        }
        let mut files = kernel::files(&self.task.dir);
        files.retain(|file| !self.task.engine.stays_in_memory(file));
        kernel::drop_page_cache(&files)?;
        self.why_still_cached(&files)
    }

    /// Why a cold run is rejected whose files stayed in the page cache.
    fn why_still_cached(&self, files: &[PathBuf]) -> Result<Option<String>> {
        if kernel::is_memory(&self.task.dir) {
            return Ok(Some("the store is in a memory-backed file system".to_owned()));
        }
        let share = kernel::cached_share(files)?;
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
        let (wanted, found) = (self.task.settings.runs, facts.runs()?);
        (wanted > 0 && found != wanted).then(|| format!("{found} sorted runs instead of {wanted}"))
    }

    fn calls(&self, engine: &dyn Engine) -> Result<MadeCalls> {
        let (settings, generation) = (&self.task.settings, self.task.generation);
        let driver = self.driver(engine);
        let rng = SplitMix64::new(settings.seed ^ generation << 32);
        let calls = self.workload.calls(settings);
        // A fill writes one key per call.
        let loaded = if self.workload.store == StoreRole::Fresh { calls } else { settings.num };
        let present = settings.num + self.task.added;
        match self.workload.kind {
            WorkloadKind::Load => {
                let (timing, making_cpu_ns) = self.load(engine)?;
                return Ok(MadeCalls { making_cpu_ns: Some(making_cpu_ns), ..timing.into() });
            }
            WorkloadKind::Scan => return Ok(driver.scan_all(present)?.into()),
            WorkloadKind::ScanKeys => return Ok(driver.scan_all_keys(present)?.into()),
            _ if self.workload.threads > 1 => return Ok(self.on_threads(&driver, calls)?.into()),
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
        let inserted = generator.present() - loaded - self.task.added;
        Ok(MadeCalls { writer_puts_per_second, inserted, ..timing.into() })
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
            major_faults_per_op: per_op(run.major_faults),
            disk_bytes_per_op: per_op(run.read_bytes),
            memory_bytes,
            mapped_bytes,
            disk_bytes: kernel::disk_bytes(Path::new(&self.task.dir)),
            open_ns: open.as_nanos() as f64,
            ..WorkerOutcome::default()
        }
    }
}
