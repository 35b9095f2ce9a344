//! Runs a harness over seeds, several at a time, counts what it did, and prints how to repeat failures.

use crate::record;
use indicatif::{ProgressBar, ProgressStyle};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A seed that takes longer hangs.
const HANGS_AFTER: Duration = Duration::from_secs(120);

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// The long form, whose counts are recorded in harness/records.
    #[arg(long, conflicts_with_all = ["seed", "seeds"])]
    pub long: bool,
    /// This seed alone.
    #[arg(long, conflicts_with = "seeds")]
    pub seed: Option<u64>,
    /// This many seeds instead of the short form's
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub seeds: Option<u64>,
    /// The first seed
    #[arg(long, default_value_t = 0)]
    pub from: u64,
    /// How many seeds run at the same time [default: the number of cores]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub jobs: Option<u64>,
}

/// What a harness has done, by name.
#[derive(Debug, Default)]
pub struct Counts(Mutex<BTreeMap<&'static str, u64>>);

impl Counts {
    pub fn add(&self, what: &'static str, n: u64) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(what).or_default() += n;
    }

    fn all(&self) -> BTreeMap<&'static str, u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A harness: a function of a seed that panics when it finds a mistake.
#[derive(Debug, Clone, Copy)]
pub struct Harness {
    pub name: &'static str,
    /// The seeds of the short form and of the long one.
    pub short: u64,
    pub long: u64,
    /// The minimum counts of the long form.
    pub floors: &'static [(&'static str, u64)],
}

impl Harness {
    pub fn run(&self, args: &Args, work: impl Fn(u64, &Counts) + Sync) -> ExitCode {
        let (from, seeds) = match (args.seed, args.seeds, args.long) {
            (Some(seed), ..) => (seed, 1),
            (None, Some(seeds), _) => (args.from, seeds),
            (None, None, long) => (args.from, if long { self.long } else { self.short }),
        };
        let cores = || std::thread::available_parallelism().map_or(2, usize::from);
        let jobs = args.jobs.map_or_else(cores, |jobs| jobs as usize);
        let (counts, next, failed) = (Counts::default(), AtomicU64::new(from), AtomicBool::new(false));
        let running: Vec<Mutex<Option<(u64, Instant)>>> = (0..jobs).map(|_| Mutex::new(None)).collect();
        report_panics();
        let (bar, started) = (bar(self.name, seeds), Instant::now());
        std::thread::scope(|scope| {
            let jobs: Vec<_> = running
                .iter()
                .map(|slot| {
                    let job = || {
                        while !failed.load(Relaxed) {
                            let seed = next.fetch_add(1, Relaxed);
                            if seed >= from + seeds {
                                break;
                            }
                            *slot.lock().unwrap() = Some((seed, Instant::now()));
                            RUNNING.set(Some((self.name, seed)));
                            let outcome = catch_unwind(AssertUnwindSafe(|| work(seed, &counts)));
                            if outcome.is_err() || PANICKED.load(Relaxed) {
                                failed.store(true, Relaxed);
                                report_running();
                            }
                            RUNNING.set(None);
                            *slot.lock().unwrap() = None;
                            bar.inc(1);
                        }
                    };
                    scope.spawn(job)
                })
                .collect();
            while jobs.iter().any(|job| !job.is_finished()) {
                std::thread::sleep(Duration::from_millis(20));
                for (seed, since) in running.iter().filter_map(|slot| *slot.lock().unwrap()) {
                    if since.elapsed() > HANGS_AFTER {
                        report(self.name, seed, "hangs");
                        std::process::exit(1);
                    }
                }
            }
        });
        bar.finish_and_clear();
        let (counts, took) = (counts.all(), started.elapsed());
        let list: Vec<_> = counts.iter().map(|(what, n)| format!("{n} {what}")).collect();
        println!("{}: {seeds} seeds, {} in {:.1} s", self.name, list.join(", "), took.as_secs_f64());
        if failed.into_inner() {
            return ExitCode::from(1);
        }
        if args.long {
            return self.finish_long(&counts, took);
        }
        ExitCode::SUCCESS
    }

    /// Checks that a long run was long enough, and records it.
    fn finish_long(&self, counts: &BTreeMap<&'static str, u64>, took: Duration) -> ExitCode {
        for (what, floor) in self.floors {
            let found = counts.get(what).copied().unwrap_or(0);
            if found < *floor {
                eprintln!("{}: {found} {what}, fewer than the {floor} of the long form", self.name);
                return ExitCode::from(1);
            }
        }
        if let Err(error) = record::write(self.name, counts, took) {
            eprintln!("{}: the counts are not recorded: {error}", self.name);
            return ExitCode::from(2);
        }
        ExitCode::SUCCESS
    }
}

thread_local!(static RUNNING: Cell<Option<(&'static str, u64)>> = const { Cell::new(None) });

/// Whether a thread has panicked. The engine catches its threads' panics; only a later write would notice.
static PANICKED: AtomicBool = AtomicBool::new(false);

/// Reports a seed as soon as it panics: a second panic, while the first unwinds, would abort the process.
fn report_panics() {
    let default = take_hook();
    set_hook(Box::new(move |panic| {
        PANICKED.store(true, Relaxed);
        report_running();
        default(panic);
    }));
}

/// Reports the seed of this thread, once.
fn report_running() {
    if let Some((name, seed)) = RUNNING.take() {
        report(name, seed, "failed");
    }
}

/// Prints that a seed failed or hangs, and how to repeat it.
pub fn report(name: &str, seed: u64, how: &str) {
    let line = format!("{name}: seed {seed} {how}; to repeat it: cargo harness {name} --seed {seed}\n");
    _ = std::io::stderr().write_all(line.as_bytes()); // One write, so that reports of threads do not mix.
}

fn bar(name: &'static str, seeds: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{prefix} {wide_bar} {pos}/{len} seeds, {eta} left");
    ProgressBar::new(seeds)
        .with_prefix(name)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
