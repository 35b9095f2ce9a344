//! `versus run`: each workload on each engine in turn, A B C A B C …, each in a process of its own.

use crate::engine::{Kind, Result};
use crate::format;
use crate::kernel;
use crate::results::{self, Machine, Measured, RUN_FILE, Run};
use crate::settings::Settings;
use crate::table;
use crate::worker::{Outcome, Task};
use crate::workload::{self, WORKLOADS, What, Workload};
use std::collections::HashMap;
use std::fs;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Measure the engines: tables on the terminal, all figures in DIR/run.json
#[derive(clap::Args)]
pub struct Args {
    /// Where results are written
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Where the stores live meanwhile; on the disk to measure [default: DIR/stores]
    #[arg(long, value_name = "DIR")]
    stores: Option<PathBuf>,
    /// Fewer keys, calls and rounds: a minute instead of ten
    #[arg(long)]
    quick: bool,
    /// Times that each workload runs on each engine [default: 3; with --quick 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100))]
    rounds: Option<u64>,
    /// Engines, separated by commas; the first is the baseline [default: all]
    #[arg(long, value_enum, value_delimiter = ',')]
    engines: Vec<Kind>,
    /// Workloads, separated by commas [default: all]
    #[arg(long, value_delimiter = ',', value_parser = known)]
    workloads: Vec<String>,
    #[command(flatten)]
    settings: Settings,
}

fn known(name: &str) -> Result<String, String> {
    let names = || WORKLOADS.map(|workload| workload.name).join(", ");
    workload::by_name(name)
        .map(|workload| workload.name.to_owned())
        .ok_or_else(|| format!("one of {}", names()))
}

/// Now, as dates are written.
pub fn now() -> String {
    format::date(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()))
}

impl Args {
    /// Runs everything.
    pub fn run(mut self) -> Result<()> {
        if self.quick {
            self.settings.shrink();
        }
        let rounds = self.rounds.unwrap_or(if self.quick { 1 } else { 3 });
        let stores = self.stores.clone().unwrap_or_else(|| self.out.join("stores"));
        fs::create_dir_all(&self.out)?;
        fs::create_dir_all(&stores)?;
        let engines = if self.engines.is_empty() { Kind::all() } else { self.engines.clone() };
        self.check_space(&stores, engines.len() as u64)?;
        let machine = Machine::here(&stores);
        let run = Run {
            date: now(),
            seconds: 0.0,
            notes: notes(&machine, &stores, &engines),
            machine,
            engines: engines.iter().map(|&kind| (kind, kind.settings(&self.settings))).collect(),
            settings: self.settings.clone(),
            rounds,
            results: Vec::new(),
        };
        let mut session = Session {
            run,
            stores,
            generation: 0,
            added: HashMap::new(),
            begin: Instant::now(),
            wanted: self.workloads,
            out: self.out,
        };
        session.print_head()?;
        let outcome = session.measure();
        for (kind, _) in &session.run.engines {
            fs::remove_dir_all(session.dir(*kind)).ok();
        }
        fs::remove_dir(&session.stores).ok();
        outcome
    }

    /// Stores at their largest, copy-on-write trees included: about six times the data.
    fn check_space(&self, stores: &Path, engines: u64) -> Result<()> {
        let settings = &self.settings;
        let need = 6 * engines * settings.num * (settings.key_bytes + settings.value_bytes) + (1 << 30);
        let disk = rustix::fs::statvfs(stores)?;
        let free = disk.f_bavail * disk.f_frsize;
        if free >= need {
            return Ok(());
        }
        let (need, free) = (format::bytes(need as f64), format::bytes(free as f64));
        Err(format!(
            "{} has {free} free, this run may need {need}: use --stores or a smaller --num",
            stores.display()
        )
        .into())
    }
}

fn notes(machine: &Machine, stores: &Path, engines: &[Kind]) -> Vec<String> {
    let mut notes = Vec::new();
    if machine.load_average.parse().is_ok_and(|load: f64| load > 0.3) {
        notes
            .push(format!("the machine was not quiet: load average {} before the run", machine.load_average));
    }
    if kernel::is_memory(stores) {
        notes.push("the stores lie in a file system in memory: cold runs are rejected".to_owned());
    }
    if !engines.contains(&Kind::Rocksdb) {
        notes.push(
            "the baseline is not RocksDB's default: speeds are relative to the first engine of the table"
                .to_owned(),
        );
    }
    notes.push(
        "memory-limited runs are not available: O_DIRECT is offered by RocksDB only, and a memory limit needs a cgroup that this program does not create"
            .to_owned(),
    );
    notes
}

struct Session {
    run: Run,
    stores: PathBuf,
    out: PathBuf,
    wanted: Vec<String>,
    generation: u64,
    added: HashMap<Kind, u64>,
    begin: Instant,
}

impl Session {
    fn dir(&self, kind: Kind) -> PathBuf {
        self.stores.join(kind.name().replace(' ', "-"))
    }

    fn measure(&mut self) -> Result<()> {
        for round in 0..self.run.rounds {
            // A new load in each round: where compaction stops differs from one load to the next, and what lookups cost with it.
            for workload in WORKLOADS.into_iter().filter(|workload| self.wants(workload)).collect::<Vec<_>>()
            {
                self.turn(workload, round)?;
                if round + 1 == self.run.rounds {
                    self.print(workload)?;
                }
            }
        }
        self.run.seconds = self.begin.elapsed().as_secs_f64();
        results::write(&self.out.join(RUN_FILE), &self.run)?;
        progress("");
        let mut out = std::io::stdout().lock();
        for (one, why) in self.run.rejections() {
            writeln!(
                out,
                "rejected: {} on {}, round {}: {why}",
                one.workload,
                one.engine.name(),
                one.round + 1
            )?;
        }
        self.run.notes.iter().try_for_each(|note| writeln!(out, "note: {note}"))?;
        writeln!(out, "{:.0} s; all figures: {}", self.run.seconds, self.out.join(RUN_FILE).display())?;
        Ok(writeln!(out, "as a page: versus report {}", self.out.display())?)
    }

    fn wants(&self, workload: &Workload) -> bool {
        // Nothing else runs without a load.
        workload.what == What::Load
            || self.wanted.is_empty()
            || self.wanted.iter().any(|name| name == workload.name)
    }

    /// One workload on each engine, one after the other.
    fn turn(&mut self, workload: Workload, round: u64) -> Result<()> {
        self.generation += 1;
        for engine in self.run.engines.iter().map(|(kind, _)| *kind).collect::<Vec<_>>() {
            progress(&format!(
                "round {}/{}: {} on {}",
                round + 1,
                self.run.rounds,
                workload.name,
                engine.name()
            ));
            let mut outcome = self.work(engine, workload)?;
            if outcome.rejected.is_some() && workload.only_reads() {
                outcome = self.work(engine, workload)?;
            }
            let before =
                if workload.what == What::Load { 0 } else { self.added.get(&engine).copied().unwrap_or(0) };
            self.added.insert(engine, before + outcome.inserted);
            self.run.results.push(Measured { engine, workload: workload.name.to_owned(), round, outcome });
        }
        Ok(())
    }

    fn work(&self, engine: Kind, workload: Workload) -> Result<Outcome> {
        let dir = if workload.fresh_store() {
            self.dir(engine).join("fresh")
        } else {
            self.dir(engine).join("store")
        };
        if workload.fresh_store() || workload.what == What::Load {
            fs::remove_dir_all(&dir).ok();
        }
        fs::create_dir_all(&dir)?;
        let task = Task {
            engine,
            workload: workload.name.to_owned(),
            dir: dir.clone(),
            settings: self.run.settings.clone(),
            added: if workload.fresh_store() { 0 } else { self.added.get(&engine).copied().unwrap_or(0) },
            generation: self.generation,
        };
        let outcome =
            spawn(&task).map_err(|error| format!("{} on {}: {error}", workload.name, engine.name()))?;
        if workload.fresh_store() {
            fs::remove_dir_all(&dir)?;
        }
        Ok(outcome)
    }

    fn print_head(&self) -> Result<()> {
        let (mut out, settings) = (std::io::stdout().lock(), &self.run.settings);
        writeln!(out, "{}: {}", self.run.date, self.run.machine.describe())?;
        writeln!(
            out,
            "{} keys of {} bytes, values of {} bytes; {} rounds; speed is that of the first engine ÷ that of each, by means",
            format::count(settings.num as f64),
            settings.key_bytes,
            settings.value_bytes,
            self.run.rounds
        )?;
        Ok(self
            .run
            .engines
            .iter()
            .try_for_each(|(kind, settings)| writeln!(out, "  {}: {settings}", kind.name()))?)
    }

    fn print(&self, workload: Workload) -> Result<()> {
        progress("");
        Ok(write!(
            std::io::stdout().lock(),
            "\n{}\n{}",
            workload.name,
            table::aligned(&table::rows(&self.run, workload.name))
        )?)
    }
}

/// Hands a task to a new process of this program.
fn spawn(task: &Task) -> Result<Outcome> {
    let mut command = Command::new(std::env::current_exe()?);
    let mut child = command.arg("worker").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let stdin = child.stdin.take().ok_or("no pipe to the worker")?;
    serde_json::to_writer(stdin, task)?;
    let output = child.wait_with_output()?;
    if !output.status.success() {
        return Err(format!("the worker failed ({})", output.status).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Shows what runs now, on a terminal.
fn progress(text: &str) {
    let mut err = std::io::stderr().lock();
    if err.is_terminal() {
        write!(err, "\r\x1b[K{text}").and_then(|()| err.flush()).ok();
    }
}
