//! The harness, in a build whose engine runs under the scheduler.

use super::expiring;
use super::keyspaces::come_and_go;
use super::model::{KEYS, Writer, key};
use super::snapshots;
use super::threads::{Shared, fill_gaps, follow, hold, operate, press, read, transact, write};
use super::transactions::Histories;
use crate::generations;
use crate::harness::{Args, Counts, Harness};
use crate::history::Outcome;
use crate::support::{Contents, Crash, Errno, Fault, OpKind, Rng, STORE, SimFs, contents, tiny_on};
use shuttle::rand::{Rng as _, thread_rng};
use shuttle::scheduler::{PctScheduler, RandomScheduler, RoundRobinScheduler, Scheduler};
use shuttle::sync::atomic::{AtomicBool, Ordering::SeqCst};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner};
use sidebloom::{FilterPolicy, Options, Residency};
use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, OnceLock};

/// Schedules of each seed's workload.
const SCHEDULES: usize = 10;
/// More steps than any schedule takes: longer ones hang.
const STEPS_MAX: usize = 2_000_000;

pub fn harness(args: &Args) -> ExitCode {
    let bases: [OnceLock<(SimFs, Contents)>; 4] = std::array::from_fn(|_| OnceLock::new());
    let harness = Harness { name: "schedules", short: 80, long: 1200, floors: &[("schedules", 10_000)] };
    harness.run(args, |seed, counts: &Counts| {
        let number = seed % 4;
        let (disk, base) = bases[number as usize].get_or_init(|| prepared(number));
        let (disk, base) = (disk.crash(Crash::Kill, 0), base.clone());
        let done = Arc::new(Mutex::new([0; 6]));
        let counted = Arc::clone(&done);
        let one = move || {
            if is_of_snapshots(seed) || is_of_expiries(seed) {
                if is_of_snapshots(seed) {
                    snapshots::schedule(seed)
                } else {
                    expiring::schedule(seed)
                }
                counted.lock().unwrap()[0] += 1;
                return;
            }
            let number = counted.lock().unwrap()[0];
            let [created, removed, commits, conflicts] = schedule(seed, number, &disk, &base);
            let switches = shuttle::current::context_switches() as u64;
            let mut done = counted.lock().unwrap();
            *done = std::array::from_fn(|n| done[n] + [1, switches, created, removed, commits, conflicts][n]);
        };
        match seed / 4 % 3 {
            _ if is_pressed(seed) => run(RandomScheduler::new_from_seed(seed, SCHEDULES), one),
            _ if is_of_snapshots(seed) => run(PctScheduler::new_from_seed(seed, 2, 4 * SCHEDULES), one),
            0 => run(RandomScheduler::new_from_seed(seed, SCHEDULES), one),
            n => run(PctScheduler::new_from_seed(seed, 1 + n as usize, SCHEDULES), one),
        }
        let done = *done.lock().unwrap();
        let names =
            ["schedules", "context switches", "files created", "files removed", "commits", "conflicts"];
        names.into_iter().zip(done).for_each(|(name, n)| counts.add(name, n));
    })
}

/// Whether a writer continues until a manual compaction ends, to show that it ends. Only where each thread
/// gets its turn.
fn is_pressed(seed: u64) -> bool {
    seed % 16 == 15
}

/// Whether nothing runs but a writer and a reader of snapshots, under the scheduler that stops a thread for
/// long.
fn is_of_snapshots(seed: u64) -> bool {
    seed % 16 == 9
}

/// Whether time passes, and rows expire.
fn is_of_expiries(seed: u64) -> bool {
    seed % 16 == 3
}

/// Whether flushes fill gaps between others' keys, on a disk without a store. Nobody else writes, or there
/// would be no gaps.
fn has_gaps(seed: u64) -> bool {
    seed % 8 == 4
}

fn run(scheduler: impl Scheduler + 'static, schedule: impl Fn() + Send + Sync + 'static) {
    let mut config = Config::new();
    config.stack_size = 1 << 20;
    config.failure_persistence = FailurePersistence::None;
    config.max_steps = MaxSteps::FailAfter(STEPS_MAX);
    config.silence_warnings = true;
    Runner::new(scheduler, config).run(schedule);
}

/// The disk of a closed store: empty, or with some levels.
fn prepared(seed: u64) -> (SimFs, Contents) {
    let (fs, expected) = (SimFs::new(), Arc::new(Mutex::new(Contents::new())));
    if seed == 0 {
        return (fs, Contents::new());
    }
    let (disk, filled) = (fs.clone(), Arc::clone(&expected));
    run(RoundRobinScheduler::new(1), move || {
        let db = tiny_on(&disk).open(STORE).unwrap();
        let (mut rng, mut filled) = (Rng::new(seed), filled.lock().unwrap());
        for n in 0..600 * seed {
            let (key, value) = (key(rng.below(KEYS)), rng.next().to_le_bytes().repeat(10));
            db.put(&key, &value).unwrap();
            filled.insert(key, value);
            if n == 400 * seed {
                db.compact().unwrap();
            }
        }
        if seed > 1 {
            db.flush().unwrap();
        }
    });
    let expected = expected.lock().unwrap().clone();
    (fs, expected)
}

fn options(fs: &SimFs, rng: &mut Rng) -> Options {
    let filters = *rng.pick(&[FilterPolicy::default(), FilterPolicy::bits_per_key(4.0), FilterPolicy::OFF]);
    tiny_on(fs)
        .background_threads(*rng.pick(&[2, 3, 4]))
        .segment_bytes(*rng.pick(&[4096, 8192]))
        .block_bytes(1024)
        .block_cache_bytes(*rng.pick(&[0, 1 << 20]))
        .max_open_files(8)
        .max_mapped_filters(8)
        .residency(*rng.pick(&[Residency::Mapped, Residency::Mapped, Residency::Pinned]))
        .filter_policy(filters)
}

/// A schedule of a seed: all threads of the seed's workload, a crash at some moment, and a reopening. Returns
/// how many files the threads created and removed, and how many transactions committed and conflicted.
fn schedule(seed: u64, schedule: u64, disk: &SimFs, base: &Contents) -> [u64; 4] {
    let mut rng = Rng::new(seed);
    let fs = disk.crash(Crash::Kill, 0);
    let number = if has_gaps(seed) { 0 } else { 1 + rng.below(5) };
    let writers = (0..number).map(|n| {
        let batches = 2 + rng.below(9);
        Writer::new(n, number, batches, &mut rng)
    });
    let writers: Vec<Writer> = writers.collect();
    let fault = rng.percent(30).then(|| plan_fault(&mut rng));
    let shared = Arc::new(Shared {
        fs: fs.clone(),
        base: base.clone(),
        writers,
        histories: Histories::default(),
        may_fail: fault.is_some(),
    });
    let options = options(&fs, &mut rng);
    let db = options.clone().open(STORE).unwrap();
    let taken = take_images(&fs, &shared, rng.next() ^ schedule);
    if let Some(fault) = fault {
        fs.fail(fault);
    }
    let mut threads = Vec::new();
    for n in 0..shared.writers.len() {
        let (shared, db, rng) = (Arc::clone(&shared), db.clone(), Rng::new(rng.next()));
        threads.push(shuttle::thread::spawn(move || write(&shared, &db, n, rng)));
    }
    for _ in 0..rng.below(3) {
        let (shared, db, rng) = (Arc::clone(&shared), db.clone(), Rng::new(rng.next()));
        threads.push(shuttle::thread::spawn(move || operate(&shared, &db, rng)));
    }
    // They would fill gaps.
    let transacting = if has_gaps(seed) { 0 } else { *rng.pick(&[0, 2, 3]) };
    for _ in 0..transacting {
        let (shared, db, rng) = (Arc::clone(&shared), db.clone(), Rng::new(rng.next()));
        threads.push(shuttle::thread::spawn(move || transact(&shared, &db, rng)));
    }
    if is_pressed(seed) {
        let compacted = Arc::new(AtomicBool::new(false));
        let (done, other) = (Arc::clone(&compacted), db.clone());
        threads.push(shuttle::thread::spawn(move || {
            _ = other.compact();
            done.store(true, SeqCst);
        }));
        let db = db.clone();
        threads.push(shuttle::thread::spawn(move || press(&db, &compacted)));
    }
    if has_gaps(seed) {
        let (shared, db, rng) = (Arc::clone(&shared), db.clone(), Rng::new(rng.next()));
        threads.push(shuttle::thread::spawn(move || fill_gaps(&shared, &db, rng)));
    }
    if !has_gaps(seed) && seed % 2 == 1 {
        let (shared, db, rng) = (Arc::clone(&shared), db.clone(), Rng::new(!seed ^ schedule));
        threads.push(shuttle::thread::spawn(move || come_and_go(&shared, &db, rng)));
    }
    let (beside, closing) = (Arc::clone(&shared), db.clone());
    let rng_of_reader = Rng::new(rng.next());
    threads.push(shuttle::thread::spawn(move || read(&beside, &closing, rng_of_reader)));
    if rng.percent(50) {
        let (shared, options, rng) = (Arc::clone(&shared), options.clone(), Rng::new(rng.next()));
        threads.push(shuttle::thread::spawn(move || follow(&shared, &options, rng)));
    }
    if rng.percent(50) {
        let beside = Arc::clone(&shared);
        threads.push(shuttle::thread::spawn(move || hold(db, &beside)));
    } else {
        drop(db); // Any thread may close the store.
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    fs.heal();
    let failed = shared.may_fail;
    shared
        .histories
        .check(&check_closed(&options, &shared, &shared.acknowledged(), "reopened", failed), "reopened");
    let Taken { files, images, .. } = std::mem::take(&mut *taken.lock().unwrap());
    for (image, least) in images {
        check_closed(&tiny_on(&image), &shared, &least, "after a crash", false);
    }
    let [created, removed] = files;
    [created, removed, shared.histories.count(Outcome::Committed), shared.histories.count(Outcome::Conflict)]
}

fn plan_fault(rng: &mut Rng) -> Fault {
    use OpKind::*;
    let kind = *rng.pick(&[Append, Append, Sync, Sync, Create, Rename, Remove, SyncDir, Read, Open, Map]);
    let fault = Fault::once(kind, rng.below(12)).with(*rng.pick(&[Errno::Io, Errno::NoSpace]));
    if rng.percent(30) { fault.short() } else { fault }
}

/// What the hook of a disk notes.
#[derive(Default)]
struct Taken {
    ops: u64,
    /// Batches known to be durable.
    synced: u64,
    /// Created and removed.
    files: [u64; 2],
    /// The disk after a crash, and how many batches of each writer it must hold.
    images: Vec<(SimFs, Vec<u64>)>,
}

/// Maximum number of images per schedule.
const IMAGES_MAX: usize = 4;
/// Operations per image, on average: always, and just after a sync, when a crash must lose nothing.
const OPERATIONS_PER_IMAGE: [u64; 2] = [60, 6];

/// Takes images of the disk before operations, with what each writer knew to be durable.
fn take_images(fs: &SimFs, shared: &Arc<Shared>, seed: u64) -> Arc<Mutex<Taken>> {
    let all = Arc::new(Mutex::new(Taken::default()));
    let (taken, shared) = (Arc::clone(&all), Arc::clone(shared));
    let point = AtomicBool::new(false);
    let mut rng = Rng::new(seed);
    let crash = *rng.pick(&[Crash::Kill, Crash::Power, Crash::Power, Crash::PowerOrdered]);
    let rng = Mutex::new(rng);
    fs.before_each(move |disk, kind, _| {
        point.load(SeqCst); // Another thread may run here, sometimes for long.
        if thread_rng().gen_ratio(1, 256) {
            (0..300).for_each(|_| shuttle::thread::yield_now());
        }
        let mut taken = taken.lock().unwrap();
        taken.ops += 1;
        taken.files[0] += u64::from(kind == OpKind::Create);
        taken.files[1] += u64::from(kind == OpKind::Remove);
        let synced = shared.writers.iter().map(|writer| writer.synced.load(Relaxed)).sum();
        let before = std::mem::replace(&mut taken.synced, synced);
        let operations = OPERATIONS_PER_IMAGE[usize::from(synced > before)];
        if taken.images.len() < IMAGES_MAX && rng.lock().unwrap().below(operations) == 0 {
            let least = |known: super::model::Known| match crash {
                Crash::Kill => known.acknowledged,
                _ => known.synced,
            };
            let least = shared.writers.iter().map(|writer| least(writer.known())).collect();
            let image = disk.crash(crash, seed.wrapping_add(taken.ops));
            taken.images.push((image, least));
        }
    });
    all
}

/// Opens a store that nobody has open and compares it with what was written. Returns its contents.
fn check_closed(
    options: &Options,
    shared: &Shared,
    least: &[u64],
    what: &str,
    may_be_damaged: bool,
) -> Contents {
    let db = options.clone().open(STORE).unwrap_or_else(|error| panic!("{what}: {error}"));
    let found = contents(&db);
    shared.check(&found, least, what);
    _ = generations::find(&db).unwrap();
    let report = db.verify().unwrap();
    assert!(report.is_ok() || may_be_damaged, "{what}: {report:?}");
    for n in 0..KEYS {
        let found = db.get(key(n)).unwrap();
        assert_eq!(found.is_some(), db.contains_key(key(n)).unwrap(), "{what}: key {n}");
    }
    found
}
