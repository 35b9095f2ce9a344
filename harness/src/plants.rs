//! Planted mistakes: patches of the engine, each of which a given harness must find within a number of seeds.
//!
//! A plant is a file of `harness/plants`: lines `harness:`, `seeds:` and `mistake:`, then a patch.

use crate::{record, schedules};
use indicatif::ProgressBar;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Minimum number of plants in a complete set.
const PLANTS_MIN: usize = 30;
/// How much of a panic's message the table shows.
const SHOWN_CHARS: usize = 100;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Runs each mistake's harness on an engine with it; without --long, only checks that patches apply
    #[arg(long)]
    long: bool,
    /// Only plants whose name contains this
    #[arg(long)]
    only: Option<String>,
}

#[derive(Debug)]
struct Plant {
    name: String,
    path: PathBuf,
    harness: String,
    seeds: String,
    mistake: String,
}

pub fn harness(args: &Args) -> ExitCode {
    let plants = plants(args.only.as_deref().unwrap_or_default());
    if plants.is_empty() {
        eprintln!("plants: no plant has this name");
        return ExitCode::from(2);
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let stale = plants.iter().filter(|plant| !git(root, &["apply", "--check"], &plant.path));
    let stale: Vec<_> = stale.map(|plant| plant.name.as_str()).collect();
    if !stale.is_empty() {
        eprintln!("plants: no longer apply: {}", stale.join(", "));
        return ExitCode::from(1);
    }
    if args.only.is_none() && plants.len() < PLANTS_MIN {
        eprintln!("plants: {}, fewer than {PLANTS_MIN}", plants.len());
        return ExitCode::from(1);
    }
    if !args.long {
        println!("plants: all {} patches apply", plants.len());
        return ExitCode::SUCCESS;
    }
    run_all(root, &plants, args.only.is_none())
}

fn plants(only: &str) -> Vec<Plant> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("plants");
    let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut patches: Vec<_> = files.filter(|path| path.extension().is_some_and(|e| e == "patch")).collect();
    patches.sort();
    let plants = patches.into_iter().map(|path| {
        let text = std::fs::read_to_string(&path).unwrap();
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            line.unwrap_or_else(|| panic!("{} has no line `{name}: …`", path.display())).to_owned()
        };
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let [harness, seeds, mistake] = ["harness", "seeds", "mistake"].map(field);
        Plant { name, path, harness, seeds, mistake }
    });
    plants.filter(|plant| plant.name.contains(only)).collect()
}

fn git(dir: &Path, arguments: &[&str], last: &Path) -> bool {
    Command::new("git")
        .current_dir(dir)
        .args(arguments)
        .arg(last)
        .status()
        .is_ok_and(|status| status.success())
}

/// The result of a harness in the second working tree: `None` if it found nothing.
struct Outcome {
    found: Option<String>,
    took: Duration,
}

/// Runs a harness in the second working tree, over its first seeds. An error says why there is no result.
fn run_harness(tree: &Path, harness: &str, seeds: &[&str]) -> Result<Outcome, String> {
    let started = Instant::now();
    let mut command = match harness {
        "schedules" => schedules::command(tree),
        _ => {
            let mut command = Command::new(env!("CARGO"));
            command.current_dir(tree).arg("harness");
            command
        }
    };
    command.arg(harness).args(seeds).env("CARGO_INCREMENTAL", "1").stdout(Stdio::null());
    let output = command.output().map_err(|error| error.to_string())?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let found = match (output.status.code(), what_it_found(&errors)) {
        (Some(0), _) => None,
        (Some(1) | None, Some(found)) => Some(found), // A second panic aborts it.
        _ => return Err(errors.lines().last().unwrap_or_default().to_owned()),
    };
    Ok(Outcome { found, took: started.elapsed() })
}

/// The report of the first seed that failed, and the first line of its panic.
fn what_it_found(errors: &str) -> Option<String> {
    let report = errors.lines().find_map(|line| Some(line.split_once("; to repeat it")?.0))?;
    let mut lines = errors.lines().skip_while(|line| !line.contains("panicked at")).skip(1);
    let panic: String = lines.next().unwrap_or_default().chars().take(SHOWN_CHARS).collect();
    Some(
        [report, &panic.replace('|', "\\|")]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(": "),
    )
}

/// Plants one mistake, runs its harness, and cleans up.
fn run_one(tree: &Path, plant: &Plant) -> Result<Outcome, String> {
    assert!(git(tree, &["apply"], &plant.path), "{}", plant.name);
    let outcome = run_harness(tree, &plant.harness, &["--seeds", &plant.seeds]);
    assert!(git(tree, &["reset", "--quiet", "--hard"], Path::new("HEAD")), "{}", plant.name);
    outcome
}

/// Runs the short form of each harness without a mistake: finding something there, it would find every plant.
fn run_clean(tree: &Path, plants: &[Plant]) -> Result<(), String> {
    let harnesses: BTreeSet<&str> = plants.iter().map(|plant| plant.harness.as_str()).collect();
    for harness in harnesses {
        let Outcome { found, took } = run_harness(tree, harness, &[])?;
        if let Some(found) = found {
            return Err(format!("without any plant, {found}"));
        }
        println!("{harness}: finds nothing without a plant ({} s)", took.as_secs());
    }
    Ok(())
}

/// Plants the mistakes one by one in a second working tree of the last commit, whose build is kept.
fn run_all(root: &Path, plants: &[Plant], is_complete: bool) -> ExitCode {
    let (tree, started) = (root.join("target/plants"), Instant::now());
    let exists = tree.exists() || git(root, &["worktree", "add", "--quiet", "--force", "--detach"], &tree);
    let head = record::output("git", &["rev-parse", "HEAD"]);
    if !exists || !git(&tree, &["reset", "--quiet", "--hard"], Path::new(&head)) {
        eprintln!("plants: no working tree at {}", tree.display());
        return ExitCode::from(2);
    }
    if is_complete && let Err(error) = run_clean(&tree, plants) {
        eprintln!("plants: {error}");
        return ExitCode::from(2);
    }
    let bar = ProgressBar::new(plants.len() as u64);
    let (mut table, mut missed) = (String::new(), Vec::new());
    for plant in plants {
        let Plant { name, mistake, harness, seeds, .. } = plant;
        let (is_found, text, took) = match run_one(&tree, plant) {
            Ok(Outcome { found: Some(found), took }) => (true, found, took),
            Ok(Outcome { found: None, took }) => (false, format!("not found in {seeds} seeds"), took),
            Err(error) => (false, format!("no result: {error}"), Duration::ZERO),
        };
        bar.suspend(|| println!("{name}: {mistake} ({} s): {text}", took.as_secs()));
        _ = writeln!(
            table,
            "| [{name}]({name}.patch) | {mistake} | {harness} | {seeds} | {text} | {} s |",
            took.as_secs()
        );
        missed.extend((!is_found).then_some(name.as_str()));
        bar.inc(1);
    }
    bar.finish_and_clear();
    println!("plants: {} of {} found", plants.len() - missed.len(), plants.len());
    if !missed.is_empty() {
        eprintln!("plants: not found: {}", missed.join(", "));
        return ExitCode::from(1);
    }
    if is_complete && let Err(error) = write_table(root, &table, started.elapsed()) {
        eprintln!("plants: the table is not written: {error}");
        return ExitCode::from(2);
    }
    ExitCode::SUCCESS
}

fn write_table(root: &Path, rows: &str, took: Duration) -> std::io::Result<()> {
    let date = record::output("date", &["-u", "+%F"]);
    let commit = record::output("git", &["rev-parse", "--short", "HEAD"]);
    let text = format!(
        "# Planted mistakes\n\nEach patch makes one mistake in the engine, which the harness in its row must find within that many \
         seeds, from 0 on. Written by\n`cargo harness plants --long` on {date}, at {commit}, in {} s. The times include building the \
         engine.\n\n| plant | mistake | harness | seeds | found | time |\n|---|---|---|---|---|---|\n{rows}",
        took.as_secs()
    );
    std::fs::write(root.join("harness/plants/README.md"), text)
}
