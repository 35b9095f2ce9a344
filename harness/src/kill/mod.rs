//! Real kills: a process that writes to a store is killed by SIGKILL at random moments, and the next one
//! checks what it left against a file of expected states.

mod backup;
mod check;
mod child;
mod expected;
mod fork;

use backup::Backup;
use child::{Aim, FORKED};
pub use child::{ChildArgs, child};

use crate::config;
use crate::harness::{Args, Counts, Harness};
use crate::home::Home;
use crate::support::{self, Rng};
use clap::ValueEnum;
use expected::Expected;
use sidebloom::fs::RealFs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Kills per store.
const KILLS: u64 = 25;
const SIGKILL: i32 = 9;
/// What the child mainly does, what it prints before it is killed, and the kill's maximum delay in µs.
const MOMENTS: [(Aim, Option<&str>, u64); 11] = [
    (Aim::Anything, None, 3000),
    (Aim::Anything, None, 20_000),
    (Aim::Anything, Some("closed"), 5000),
    (Aim::Anything, Some("writes"), 3000),
    (Aim::Anything, Some("writes"), 30_000),
    (Aim::Anything, Some("writes"), 100_000),
    (Aim::Compaction, Some("writes"), 30_000),
    (Aim::Checkpoint, Some("checkpoint"), 3000),
    (Aim::Copy, Some("checkpoint"), 500),
    (Aim::Repair, Some("repair"), 1000),
    (Aim::Repair, Some("repair"), 5000),
];

/// About a third of what 120 seeds count.
const FLOORS: &[(&str, u64)] = &[
    ("kills", 1000),
    ("keys checked", 470_000),
    ("kills while opening or checking", 130),
    ("kills while writing", 300),
    ("kills in or after a checkpoint", 250),
    ("kills in or after a repair", 160),
    ("kills between closing and opening", 80),
    ("checkpoints beside writers", 90),
    ("checkpoints that a kill left", 30),
    ("half checkpoints that a kill left", 15),
    ("forked processes", 300),
    ("backups beside the writer", 20),
    ("backups of one opening, compared", 10),
];

pub fn harness(args: &Args) -> ExitCode {
    Harness { name: "kill", short: 24, long: 120, floors: FLOORS }.run(args, one)
}

/// A store in memory, or sometimes on a disk, whose operations take longer.
fn directory(rng: &mut Rng) -> tempfile::TempDir {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target");
    if rng.percent(15) && target.is_dir() {
        tempfile::tempdir_in(target).unwrap()
    } else {
        support::fast_dir()
    }
}

fn one(seed: u64, counts: &Counts) {
    let mut rng = Rng::new(seed);
    let dir = directory(&mut rng);
    let file = dir.path().join("expected");
    Expected::create(&file).unwrap();
    for kill in 0..KILLS {
        let what = format!("seed {seed}, kill {kill}");
        run_and_kill(dir.path(), seed << 8 | kill, &mut rng, &what, counts);
    }
    // What the last one left, checked in this process.
    let what = format!("seed {seed}, at the end");
    let store = dir.path().join("store");
    let options = config::random(&mut rng, Arc::new(RealFs));
    if child::is_without_manifest(&store) {
        options.clone().repair(&store).unwrap();
    }
    let (db, expected) = (options.open(store).unwrap(), Expected::open(&file).unwrap());
    let rows = Home::of_seed(seed).so_far(&db).unwrap();
    counts.add("keys checked", check::check(&rows, &expected, &mut rng, &what));
    check::settle(&rows, &expected);
    db.compact().unwrap();
    counts.add("keys checked", check::check(&rows, &expected, &mut rng, &what));
    let report = db.verify().unwrap();
    assert!(report.is_ok(), "{what}: {:?}", report.problems);
}

/// Kills the child also when the parent fails.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// Waits until the directory of a checkpoint exists, but not for long: the child may make no more.
fn wait_for_copy(dir: &Path) {
    let started = Instant::now();
    while !dir.join("copy").exists() && started.elapsed() < Duration::from_millis(50) {
        std::thread::sleep(Duration::from_micros(20));
    }
}

/// Starts a child and kills it at a random moment.
fn run_and_kill(dir: &Path, seed: u64, rng: &mut Rng, what: &str, counts: &Counts) {
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new(program);
    let (aim, wait_for, longest) = *rng.pick(&MOMENTS);
    let name = aim.to_possible_value().unwrap();
    command.arg("kill-child").arg(dir).arg(seed.to_string()).arg(name.get_name());
    let spawned = command.stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(Stdio::null()).spawn();
    let mut child = Killed(spawned.unwrap());
    let mut output = BufReader::new(child.0.stdout.take().unwrap()).lines();
    let mut lines: Vec<String> = Vec::new();
    if let Some(wait_for) = wait_for {
        for line in output.by_ref().map_while(Result::ok) {
            let is_here = line == wait_for;
            lines.push(line);
            if is_here {
                break;
            }
        }
    }
    if aim == Aim::Copy {
        wait_for_copy(dir);
    }
    let backup = (wait_for == Some("writes") && rng.percent(10)).then(|| Backup::begin(dir));
    std::thread::sleep(Duration::from_micros(rng.below(longest)));
    child.0.kill().unwrap();
    let status = child.0.wait().unwrap();
    let before = lines.len();
    lines.extend(output.map_while(Result::ok));
    let mut errors = String::new();
    _ = child.0.stderr.take().unwrap().read_to_string(&mut errors);
    assert!(
        status.signal() == Some(SIGKILL) && errors.is_empty(),
        "{what}: the child ended by itself: {status}\n{errors}"
    );
    if let Some(backup) = backup {
        let stayed_open = !lines[before..].iter().any(|line| line == "closed");
        let made = backup.check(dir, stayed_open, Home::of_seed(seed >> 8), rng, what);
        counts.add("backups beside the writer", u64::from(made));
        counts.add("backups of one opening, compared", u64::from(made && stayed_open));
    }
    count(&lines, counts);
}

/// Counts what the child reported, and where it was killed.
fn count(lines: &[String], counts: &Counts) {
    let checked = lines.iter().filter_map(|line| line.strip_prefix("checked ")?.parse::<u64>().ok());
    counts.add("keys checked", checked.sum());
    counts.add("kills", 1);
    for line in lines {
        match line.as_str() {
            "checked a checkpoint" => counts.add("checkpoints beside writers", 1),
            "a whole checkpoint" => counts.add("checkpoints that a kill left", 1),
            "half a checkpoint" => counts.add("half checkpoints that a kill left", 1),
            FORKED => counts.add("forked processes", 1),
            _ => {}
        }
    }
    let moment = match lines.iter().map(String::as_str).rfind(|line| *line != FORKED) {
        Some("writes") => "kills while writing",
        Some("checkpoint") => "kills in or after a checkpoint",
        Some("repair") => "kills in or after a repair",
        Some("closed") => "kills between closing and opening",
        _ => "kills while opening or checking",
    };
    counts.add(moment, 1);
}
