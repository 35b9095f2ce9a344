//! Each kind of I/O fails, at each index of random workloads, with each possible error, once and for good.
//!
//! 1. A workload runs undisturbed, to count its operations of each kind.
//! 2. It runs again for each fault, which is planned before the store is created, so that openings, closings
//!    and repairs meet it too. Every call returns the right answer, or an error that names the operation and
//!    the path of a fault that the call depends on.
//! 3. Once the fault is gone: the open store has what it acknowledged, and takes writes unless it must not;
//!    the same holds for the reopened one; a crash soon after the fault loses nothing that was synced; no
//!    file is left over.

mod after_fault;
mod history;
mod judge;
mod neighbour;
mod plan;
mod session;
mod shared;
mod trial;
mod workload;

use crate::harness::{Args, Counts, Harness, report};
use crate::support::Fault;
use plan::{KINDS, is_lasting_shortage};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use trial::Trial;
use workload::Workload;

/// The faults of a workload are spread over this many seeds.
const SLICES: u64 = 10;
/// The workloads of the long form.
const WORKLOADS: u64 = 80;
/// Concurrent executions per seed. Some wait for pauses of the store.
const RUNS_AT_ONCE: usize = 4;
/// An execution that takes longer hangs.
const HANGS_AFTER: Duration = Duration::from_secs(40);

const FLOORS: &[(&str, u64)] = &[
    ("faults", 200_000),
    ("faults of create directory", 1000),
    ("faults of create", 1000),
    ("faults of append", 1000),
    ("faults of sync", 1000),
    ("faults of rename", 1000),
    ("faults of remove", 1000),
    ("faults of link", 1000),
    ("faults of directory sync", 1000),
    ("faults of lock", 1000),
    ("faults of open", 1000),
    ("faults of read", 1000),
    ("faults of map", 1000),
    ("faults of list", 1000),
    ("faults of inspect", 1000),
    ("lasting shortages of descriptors", 3800),
];

pub fn harness(args: &Args) -> ExitCode {
    Harness { name: "faults", short: 30, long: WORKLOADS * SLICES, floors: FLOORS }.run(args, seed)
}

/// Runs one slice of the faults of a workload.
fn seed(seed: u64, counts: &Counts) {
    let (workload, slice) = (Workload::new(seed % WORKLOADS), seed / WORKLOADS % SLICES);
    let mut undisturbed = Trial::new(&workload, None);
    undisturbed.sessions();
    let operations = KINDS.map(|(kind, _)| (kind, undisturbed.shared.fs.ops_of(kind)));
    after_fault::check_left(undisturbed);
    let run = |fault: Fault| {
        let mut trial = Trial::new(&workload, Some(fault));
        trial.sessions();
        let struck = trial.strikes() > 0;
        if struck {
            after_fault::check_left(trial);
        }
        struck
    };
    let faults = plan::faults(&operations);
    let faults: Vec<Fault> = faults.into_iter().skip(slice as usize).step_by(SLICES as usize).collect();
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let running: Vec<Mutex<Option<(Fault, Instant)>>> = (0..RUNS_AT_ONCE).map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        let threads: Vec<_> = running
            .iter()
            .map(|slot| {
                let work = || {
                    while let Some(fault) =
                        faults.get(next.fetch_add(1, Relaxed)).filter(|_| !failed.load(Relaxed))
                    {
                        *slot.lock().unwrap() = Some((*fault, Instant::now()));
                        match catch_unwind(AssertUnwindSafe(|| run(*fault))) {
                            Ok(struck) => count(counts, fault, struck),
                            Err(_) => {
                                failed.store(true, Relaxed);
                                eprintln!("faults: seed {seed}, {fault:?} failed");
                            }
                        }
                        *slot.lock().unwrap() = None;
                    }
                };
                scope.spawn(work)
            })
            .collect();
        while threads.iter().any(|thread| !thread.is_finished()) {
            std::thread::sleep(Duration::from_millis(5));
            for (fault, since) in running.iter().filter_map(|slot| *slot.lock().unwrap()) {
                if since.elapsed() > HANGS_AFTER {
                    report("faults", seed, &format!("hangs with {fault:?}"));
                    std::process::exit(1);
                }
            }
        }
    });
    assert!(!failed.into_inner(), "seed {seed} failed");
    counts.add("runs", faults.len() as u64);
}

fn count(counts: &Counts, fault: &Fault, struck: bool) {
    let name = KINDS.iter().find(|(kind, _)| Some(*kind) == fault.kind).map(|(_, name)| *name);
    if let (true, Some(name)) = (struck, name) {
        counts.add("faults", 1);
        counts.add(name, 1);
        counts.add("lasting shortages of descriptors", u64::from(is_lasting_shortage(fault)));
    }
}
