//! Runs workloads on engines in turn, A B C A B C …, each in its own process.

use crate::child;
use crate::engine::EngineKind;
use crate::engines;
use crate::error::Result;
use crate::format;
use crate::kernel;
use crate::limit::{Cgroup, CgroupParent};
use crate::machine::Machine;
use crate::output::StoreDirs;
use crate::quiet::CpuSample;
use crate::results::{BenchRecord, Measured};
use crate::settings::BenchSettings;
use crate::task::{WorkerOutcome, WorkerTask};
use crate::terminal::progress;
use crate::workload::{CacheState, StoreRole, WORKLOADS, WorkloadKind, WorkloadSpec};
use std::collections::HashMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::Instant;

/// The smallest useful limit: threads, internal tables and the allocator's slack take a few MiB.
const LIMIT_MIN_BYTES: u64 = 5 << 20;
const SIGKILL: i32 = 9;

/// A session in progress.
pub struct BenchSession {
    /// The results so far.
    pub record: BenchRecord,
    stores: StoreDirs,
    wanted: Vec<String>,
    /// Where groups with a memory limit are created, if a workload needs one.
    home: Option<CgroupParent>,
    generation: u64,
    added: HashMap<EngineKind, u64>,
    begin: Instant,
}

impl BenchSession {
    /// Prepares a session with its stores in `stores`, of the workloads in `wanted` and their loads.
    pub fn new(
        stores: &Path,
        engines: &[EngineKind],
        wanted: Vec<String>,
        settings: &BenchSettings,
        rounds: u64,
    ) -> Result<Self> {
        fs::create_dir_all(stores)?;
        let machine = Machine::here(stores);
        let run = BenchRecord {
            date: format::now(),
            seconds: 0.0,
            notes: Vec::new(),
            machine,
            engines: engines.iter().map(|&kind| (kind, engines::describe(kind, settings))).collect(),
            settings: settings.clone(),
            rounds,
            results: Vec::new(),
        };
        let mut session = BenchSession {
            record: run,
            stores: StoreDirs::new(stores, engines.iter().map(|&kind| directory(kind))),
            wanted,
            home: None,
            generation: 0,
            added: HashMap::new(),
            begin: Instant::now(),
        };
        session.find_limits();
        session.note_lacks();
        Ok(session)
    }

    /// Checks whether memory can be limited. If not, leaves out the limited workloads and adds a note.
    fn find_limits(&mut self) {
        let limited: Vec<&str> = WORKLOADS
            .iter()
            .filter(|workload| workload.cache == CacheState::Limited && self.wants(workload))
            .map(|workload| workload.name)
            .collect();
        if limited.is_empty() {
            return;
        }
        let settings = &self.record.settings;
        let limit = settings.limit_bytes();
        let why = if limit < LIMIT_MIN_BYTES {
            format!(
                "a limit of {} is too small for any engine; use --num {} or more",
                format::bytes(limit as f64),
                format::count(
                    (4 * LIMIT_MIN_BYTES).div_ceil(settings.key_bytes + settings.value_bytes) as f64
                )
            )
        } else {
            match CgroupParent::find() {
                Ok(home) => {
                    self.home = Some(home);
                    return;
                }
                Err(why) => why,
            }
        };
        self.record.notes.push(format!("not available: {}: {why}", limited.join(", ")));
    }

    /// Notes which engines cannot run which of the wanted workloads, and why. Their tables show dashes.
    fn note_lacks(&mut self) {
        let mut lacks: Vec<(String, Vec<&str>)> = Vec::new();
        for (kind, _) in &self.record.engines {
            for workload in WORKLOADS.iter().filter(|workload| self.wants(workload)) {
                let Some(why) = kind.lacks(workload) else { continue };
                let what = format!("not available in {}, {why}", kind.name());
                match lacks.iter_mut().find(|(other, _)| *other == what) {
                    Some((_, names)) => names.push(workload.name),
                    None => lacks.push((what, vec![workload.name])),
                }
            }
        }
        let notes = lacks.into_iter().map(|(what, names)| format!("{what}: {}", names.join(", ")));
        self.record.notes.extend(notes);
    }

    /// Runs all rounds of each wanted workload on each engine. Calls `done` after each workload's last round.
    pub fn measure(&mut self, mut done: impl FnMut(&BenchRecord, WorkloadSpec) -> Result<()>) -> Result<()> {
        let wanted: Vec<WorkloadSpec> = WORKLOADS
            .into_iter()
            .filter(|workload| self.wants(workload))
            .filter(|workload| workload.cache != CacheState::Limited || self.home.is_some())
            .collect();
        let (loads, others): (Vec<_>, Vec<_>) =
            wanted.into_iter().partition(|workload| workload.kind == WorkloadKind::Load);
        let (reads, writes): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|workload| workload.only_reads());
        // Each store is loaded once. Every round reads the same files, so writing workloads come last.
        for (workloads, rounds) in [(loads, 1), (reads, self.record.rounds), (writes, self.record.rounds)] {
            for round in 0..rounds {
                for workload in &workloads {
                    self.turn(*workload, round, rounds)?;
                    if round + 1 == rounds {
                        progress("");
                        done(&self.record, *workload)?;
                    }
                }
            }
        }
        self.record.seconds = self.begin.elapsed().as_secs_f64();
        self.record.notes.extend(self.record.disturbance());
        progress("");
        Ok(())
    }

    fn wants(&self, workload: &WorkloadSpec) -> bool {
        let named = |workload: &WorkloadSpec| self.wanted.iter().any(|name| name == workload.name);
        let loads_for = |other: &WorkloadSpec| {
            workload.kind == WorkloadKind::Load && other.store == workload.store && named(other)
        };
        named(workload) || WORKLOADS.iter().any(loads_for)
    }

    /// Runs one workload on each engine in turn.
    fn turn(&mut self, workload: WorkloadSpec, round: u64, rounds: u64) -> Result<()> {
        self.generation += 1;
        let engines = self.record.engines.iter().map(|(kind, _)| *kind);
        let able = engines.filter(|kind| kind.lacks(&workload).is_none());
        for engine in able.collect::<Vec<_>>() {
            progress(&format!("round {}/{}: {} on {}", round + 1, rounds, workload.name, engine.name()));
            let work = || self.work(engine, workload);
            let outcome = if workload.only_reads() { second_chance(work)? } else { work()? };
            *self.added.entry(engine).or_default() += outcome.inserted;
            self.record.results.push(Measured { engine, workload: workload.name.to_owned(), round, outcome });
        }
        Ok(())
    }

    fn work(&self, engine: EngineKind, workload: WorkloadSpec) -> Result<WorkerOutcome> {
        let dir = self.stores.dir(&directory(engine)).join(match workload.store {
            StoreRole::Main => "store",
            StoreRole::Rows => "rows",
            StoreRole::Fresh => "fresh",
            StoreRole::Written => "written",
        });
        if workload.store.is_new() || workload.kind == WorkloadKind::Load {
            fs::remove_dir_all(&dir).ok();
        }
        fs::create_dir_all(&dir)?;
        let home = self.home.as_ref().filter(|_| workload.cache == CacheState::Limited);
        let limit = self.record.settings.limit_bytes();
        let task = WorkerTask {
            engine,
            workload: workload.name.to_owned(),
            dir: dir.clone(),
            settings: match workload.store {
                StoreRole::Rows => self.record.settings.for_rows(),
                StoreRole::Written => self.record.settings.for_written(),
                _ => self.record.settings.clone(),
            },
            // Only YCSB inserts, and only into the main store.
            added: match workload.store {
                StoreRole::Main => self.added.get(&engine).copied().unwrap_or(0),
                _ => 0,
            },
            generation: self.generation,
            group: home.map(|home| home.group(limit)).transpose()?,
        };
        let outcome = spawn(&task);
        if let Some(group) = &task.group {
            group.remove();
        }
        let outcome = outcome.map_err(|error| format!("{} on {}: {error}", workload.name, engine.name()))?;
        if workload.store.is_new() {
            fs::remove_dir_all(&dir)?;
        }
        Ok(outcome)
    }
}

/// The directory of an engine's stores.
fn directory(kind: EngineKind) -> String {
    kind.name().replace(' ', "-")
}

/// Notes for the reader.
pub fn notes(stores: &Path, engines: &[EngineKind]) -> Vec<String> {
    let mut notes = Vec::new();
    if kernel::is_memory(stores) {
        notes.push("the stores are in a memory-backed file system: cold workloads are rejected".to_owned());
    }
    if !engines.contains(&EngineKind::Rocksdb) {
        notes.push(
            "the baseline is not RocksDB with its defaults: speeds are relative to the first engine in the table"
                .to_owned(),
        );
    }
    notes
}

/// Runs a workload again if it was rejected.
pub fn second_chance(run: impl Fn() -> Result<WorkerOutcome>) -> Result<WorkerOutcome> {
    let outcome = run()?;
    if outcome.rejected.is_some() { run() } else { Ok(outcome) }
}

/// Runs a task in a new process, and measures the load of other processes at the same time.
pub fn spawn(task: &WorkerTask) -> Result<WorkerOutcome> {
    let before = CpuSample::now();
    let mut outcome = spawn_worker(task)?;
    outcome.others = CpuSample::now().others_since(&before);
    Ok(outcome)
}

fn spawn_worker(task: &WorkerTask) -> Result<WorkerOutcome> {
    let output = child::run("worker", task)?;
    if output.status.success() {
        return Ok(serde_json::from_slice(&output.stdout)?);
    }
    if let Some(rejected) = killed_by_the_limit(task, output.status.signal()) {
        return Ok(WorkerOutcome { rejected: Some(rejected), ..WorkerOutcome::default() });
    }
    Err(format!("the worker failed ({})", output.status).into())
}

/// Being killed is a result: the engine cannot work in this little memory.
fn killed_by_the_limit(task: &WorkerTask, signal: Option<i32>) -> Option<String> {
    let group: &Cgroup = task.group.as_ref()?;
    let killed = signal == Some(SIGKILL) && group.usage().is_ok_and(|usage| usage.killed > 0);
    killed.then(|| format!("killed by the kernel: it needs more than {}", format::bytes(group.bytes as f64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_whose_limit_is_too_small_are_noted_and_left_out() {
        let stores = std::env::temp_dir().join(format!("versus-session-{}", std::process::id()));
        let settings = BenchSettings::of_flags("--num 20000");
        let wanted = vec!["readmissing-limited".to_owned()];
        let session = BenchSession::new(&stores, &[EngineKind::Sidebloom], wanted, &settings, 1).unwrap();
        let [note] = session.record.notes.as_slice() else { panic!("{:?}", session.record.notes) };
        assert!(note.starts_with("not available: readmissing-limited: a limit of 576 KiB"), "{note}");
        assert!(note.contains("--num"), "{note}");
        assert!(session.home.is_none());
        drop(session);
        assert!(!stores.exists());
    }

    #[test]
    fn workloads_that_an_engine_cannot_run_are_noted() {
        let stores = std::env::temp_dir().join(format!("versus-lacks-{}", std::process::id()));
        let settings = BenchSettings::of_flags("--num 20000");
        let notes = |wanted: &str| {
            let engines = [EngineKind::Sidebloom, EngineKind::Candystore];
            let wanted = wanted.split(' ').map(str::to_owned).collect();
            BenchSession::new(&stores, &engines, wanted, &settings, 1).unwrap().record.notes.clone()
        };
        let expected = "not available in candystore, whose keys have no order: rows-scan, ycsb-e";
        assert_eq!(notes("rows-scan readrandom ycsb-e"), [expected]);
        let limited = notes("readmissing-limited");
        assert!(limited.iter().any(|note| note.contains("does not fit the limit: readmissing-limited")));
        assert!(notes("readrandom load").is_empty());
    }

    #[test]
    fn a_store_is_loaded_once_and_only_if_a_workload_needs_it() {
        let stores = std::env::temp_dir().join(format!("versus-loads-{}", std::process::id()));
        let settings = BenchSettings::of_flags("--num 20000");
        let wanted = vec!["rows-range".to_owned()];
        let session = BenchSession::new(&stores, &[EngineKind::Sidebloom], wanted, &settings, 1).unwrap();
        let all = WORKLOADS.into_iter().filter(|workload| session.wants(workload));
        assert_eq!(all.map(|workload| workload.name).collect::<Vec<_>>(), ["rows-load", "rows-range"]);
    }

    #[test]
    fn the_cache_gets_half_of_the_limit() {
        let settings = BenchSettings::of_flags("--limit-mib 64");
        assert_eq!(settings.limit_bytes(), 64 << 20);
        assert_eq!(settings.in_limited_memory().cache_bytes(), 32 << 20);
        let settings = BenchSettings::of_flags("--num 4000000");
        assert!(settings.limit_bytes().abs_diff(settings.data_bytes() / 4) < 1 << 16);
    }
}
