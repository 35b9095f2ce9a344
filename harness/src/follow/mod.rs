//! Following: processes read a store while another one writes it. All of them are killed by SIGKILL at random
//! moments and restarted under other options.
//!
//! Each batch of a writer sets all of its keys to one number. So whatever a reader sees must be of one
//! number: not older than the last one acknowledged before, nor than what the same reader has seen.

mod reader;
mod rows;
mod writer;

pub use reader::reader;
pub use rows::ChildArgs;
pub use writer::writer;

use crate::config;
use crate::harness::{Args, Counts, Harness};
use crate::home::Home;
use crate::support::{self, Rng};
use rows::Numbers;
use sidebloom::fs::RealFs;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

const SIGKILL: i32 = 9;
/// How long the processes of one seed run, with pauses of up to [`PAUSE_MICROS`] between kills.
const LASTS: Duration = Duration::from_millis(2500);
const PAUSE_MICROS: u64 = 300_000;

/// About a third of what 240 seeds count.
const FLOORS: &[(&str, u64)] = &[
    ("writers killed", 500),
    ("readers killed", 500),
    ("stores checked", 50_000),
    ("snapshots checked again", 5000),
];

pub fn harness(args: &Args) -> ExitCode {
    Harness { name: "follow", short: 10, long: 240, floors: FLOORS }.run(args, one)
}

/// A child, killed also when the parent fails.
struct Process(Child);

impl Process {
    fn start(command: &str, dir: &Path, seed: u64) -> Self {
        let mut program = Command::new(std::env::current_exe().unwrap());
        program.arg(command).arg(dir).arg(seed.to_string());
        let spawned = program.stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(Stdio::null()).spawn();
        Process(spawned.unwrap())
    }

    /// Kills it and returns what it printed.
    fn kill(mut self, what: &str) -> String {
        self.0.kill().unwrap();
        let status = self.0.wait().unwrap();
        let (mut output, mut errors) = (String::new(), String::new());
        _ = self.0.stdout.take().unwrap().read_to_string(&mut output);
        _ = self.0.stderr.take().unwrap().read_to_string(&mut errors);
        assert!(
            status.signal() == Some(SIGKILL) && errors.is_empty(),
            "{what}: a child ended by itself: {status}\n{errors}"
        );
        output
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

fn one(seed: u64, counts: &Counts) {
    let mut rng = Rng::new(seed);
    let dir = support::fast_dir();
    Numbers::create(dir.path());
    let what = format!("seed {seed}");
    let mut children = 0;
    let mut start = |command: &str| {
        children += 1;
        Process::start(command, dir.path(), seed << 16 | children)
    };
    let mut writing = start("follow-writer");
    let mut reading: Vec<Process> = (0..1 + rng.below(3)).map(|_| start("follow-reader")).collect();
    let count = |output: &str| {
        for line in output.lines() {
            let name = if line == "checked" { "stores checked" } else { "snapshots checked again" };
            counts.add(name, 1);
        }
    };
    let until = Instant::now() + LASTS;
    while Instant::now() < until {
        std::thread::sleep(Duration::from_micros(rng.below(PAUSE_MICROS)));
        if rng.percent(50) {
            std::mem::replace(&mut writing, start("follow-writer")).kill(&what);
            counts.add("writers killed", 1);
        } else {
            let which = rng.below(reading.len() as u64) as usize;
            let killed = std::mem::replace(&mut reading[which], start("follow-reader"));
            count(&killed.kill(&what));
            counts.add("readers killed", 1);
        }
    }
    writing.kill(&what);
    reading.into_iter().for_each(|reader| count(&reader.kill(&what)));
    settle(dir.path(), Home::of_seed(seed), &mut rng, &what);
}

/// Nobody reads the store any more, so the next writer leaves no obsolete file.
fn settle(dir: &Path, home: Home, rng: &mut Rng, what: &str) {
    let store = dir.join("store");
    let db = config::random(rng, Arc::new(RealFs)).open(&store).unwrap();
    let numbers = Numbers::open(dir);
    let seen = rows::check(home.so_far(&db).unwrap().iter(), [0; rows::SOURCES])
        .unwrap_or_else(|e| panic!("{what}, at the end: {e}"));
    for (source, seen) in seen.into_iter().enumerate() {
        let (least, most) = (numbers.acknowledged(source), numbers.started(source));
        assert!(
            (least..=most).contains(&seen),
            "{what}: source {source} shows {seen}, not {least} to {most}"
        );
    }
    db.put("one more", "").unwrap();
    db.compact().unwrap();
    let report = db.verify().unwrap();
    assert!(report.is_ok(), "{what}: {:?}", report.problems);
    support::eventually("no obsolete file is left", || support::files_with(&store, ".obsolete").is_empty());
}
