//! I4, durability: a simulated disk stops after any of its writes and loses power; then the store is
//! reopened. `CRASH_SEED=n cargo test --test store i4_crash` runs one workload alone.

use crate::support::{Crash, Fault, Rng, STORE, Sequence, SimFs, sized, tiny_on};
use sidebloom::{Db, Durability, FilterPolicy};

const BATCHES: u64 = 40;

/// What the store promised about its batches.
#[derive(Debug, Clone, Copy, Default)]
struct Told {
    /// The last acknowledged batch.
    acknowledged: u64,
    /// The last batch acknowledged as durable.
    synced: u64,
    /// The last batch submitted, acknowledged or not.
    handed_over: u64,
}

impl Told {
    /// The last batch that a store must have after this crash.
    fn least(self, crash: Crash) -> u64 {
        if crash == Crash::Kill { self.acknowledged } else { self.synced }
    }
}

/// Opens the store and writes the batches from `from + 1` on, with syncs, flushes and compactions in between,
/// until the disk fails.
fn work(fs: &SimFs, sequence: Sequence, from: u64) -> Told {
    let mut told = Told { acknowledged: from, synced: from, handed_over: from };
    let Ok(db) = tiny_on(fs).open(STORE) else { return told };
    let mut rng = Rng::new(sequence.0 ^ from);
    for i in from + 1..=from + BATCHES {
        told.handed_over = i;
        let durability = if rng.percent(15) { Durability::Sync } else { Durability::Os };
        if db.write_with(sequence.batch(i), durability).is_err() {
            return told;
        }
        told.acknowledged = i;
        // Operations that make the batches so far durable, and others.
        let synced = match rng.below(100) {
            0..10 => db.sync().is_ok(),
            10..15 => db.flush().is_ok(),
            15..19 => db.compact().is_ok(),
            19..22 => {
                let _ = db.rebuild_filters(FilterPolicy::bits_per_key(2.0 + rng.below(12) as f64));
                false
            }
            22..25 => {
                let _ = db.wait_for_compaction();
                false
            }
            _ => false,
        };
        let synced = synced || durability == Durability::Sync;
        if synced {
            told.synced = i;
        }
    }
    drop(db); // Closing makes durable what is left, if the disk still works.
    told
}

/// Opens the store after a crash and checks the promise. Returns how many batches exist.
#[track_caller]
fn check(fs: &SimFs, sequence: Sequence, told: Told, crash: Crash) -> (Db, u64) {
    let db = tiny_on(fs).open(STORE).unwrap();
    let found = sequence.prefix_of(&db);
    let least = told.least(crash);
    assert!((least..=told.handed_over).contains(&found), "{found} batches after {crash:?} of {told:?}");
    (db, found)
}

/// Runs each workload with its disk stopping after each number of writes, or `at_most` of these.
fn stops(seeds: u64, at_most: u64, run: impl Fn(Sequence, u64) + Sync) {
    let seeds = match std::env::var("CRASH_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => (0..seeds).collect(),
    };
    for seed in seeds {
        let sequence = Sequence(seed);
        let undisturbed = SimFs::new();
        assert_eq!(work(&undisturbed, sequence, 0).acknowledged, BATCHES);
        let writes = undisturbed.writes();
        let step = writes.div_ceil(at_most).max(1) as usize;
        for stop in (seed % step as u64..writes).step_by(step) {
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(sequence, stop)));
            assert!(outcome.is_ok(), "CRASH_SEED={seed}, stopped after {stop} writes of {writes}");
        }
    }
}

const CRASHES: [Crash; 3] = [Crash::Kill, Crash::PowerOrdered, Crash::Power];

/// Wherever the disk stops, synced batches survive, and the rest is a prefix of whole batches.
#[test]
fn i4_synced_batches_survive_and_the_rest_is_a_prefix_of_whole_batches() {
    stops(sized(4, 8), sized(60, 400), |sequence, stop| {
        let fs = SimFs::new();
        fs.fail(Fault::stop(stop));
        let told = work(&fs, sequence, 0);
        for (i, crash) in CRASHES.into_iter().enumerate() {
            let after = fs.crash(crash, stop * 3 + i as u64);
            let (db, found) = check(&after, sequence, told, crash);
            assert!(db.verify().unwrap().is_ok());
            // What a reader has seen after recovery persists, whatever happens next.
            let again = after.crash(Crash::Power, stop);
            drop(db);
            let seen = Told { acknowledged: found, synced: found, handed_over: found };
            check(&again, sequence, seen, Crash::Power);
        }
    });
}

#[test]
fn i4_a_recovered_store_takes_writes_and_they_survive_the_next_crash() {
    stops(sized(2, 6), 40, |sequence, stop| {
        let mut fs = SimFs::new();
        fs.fail(Fault::stop(stop));
        let mut told = work(&fs, sequence, 0);
        for (i, crash) in CRASHES.into_iter().chain(CRASHES).enumerate() {
            fs = fs.crash(crash, stop + i as u64);
            let (db, found) = check(&fs, sequence, told, crash);
            drop(db);
            fs.fail(Fault::stop(stop / 2 + 7 * i as u64));
            told = work(&fs, sequence, found);
        }
    });
}

#[test]
fn i4_recovery_can_crash_at_each_of_its_writes_and_start_again() {
    stops(sized(2, 5), 12, |sequence, stop| {
        let stopped = SimFs::new();
        stopped.fail(Fault::stop(stop));
        let told = work(&stopped, sequence, 0);
        for (i, first) in CRASHES.into_iter().enumerate() {
            let broken = stopped.crash(first, stop + i as u64);
            let whole = broken.crash(Crash::Kill, 0);
            let before = whole.writes();
            drop(tiny_on(&whole).open(STORE).unwrap());
            for step in 0..whole.writes() - before {
                let fs = broken.crash(Crash::Kill, 0);
                fs.fail(Fault::stop(step));
                drop(tiny_on(&fs).open(STORE));
                let second = CRASHES[(step % 3) as usize];
                // A power cut after a kill may lose what survived only the kill.
                let worst = if first == Crash::Kill { second } else { first };
                check(&fs.crash(second, stop ^ step), sequence, told, worst);
            }
        }
    });
}

#[test]
fn i4_a_store_that_was_flushed_or_synced_or_closed_loses_nothing_at_all() {
    for seed in 0..60 {
        let fs = SimFs::new();
        let sequence = Sequence(seed);
        let mut db = tiny_on(&fs).open(STORE).unwrap();
        for i in 1..=30 {
            db.write(sequence.batch(i)).unwrap();
        }
        match seed % 4 {
            0 => db.flush().unwrap(),
            1 => db.sync().unwrap(),
            2 => db.compact().unwrap(),
            _ => {
                drop(db);
                db = tiny_on(&SimFs::new()).open("disk/elsewhere").unwrap();
            }
        }
        let after = fs.crash(Crash::Power, seed);
        drop(db);
        assert_eq!(sequence.prefix_of(&tiny_on(&after).open(STORE).unwrap()), 30, "seed {seed}");
    }
}

/// The unsynced end of one log is never skipped by a synced batch in the next.
#[test]
fn i4_a_synced_batch_never_skips_the_unsynced_end_of_the_log_before() {
    // Memtables fill up after a few batches, so many logs wait for a flush while a later one is synced.
    for seed in 0..100 {
        let fs = SimFs::new();
        let sequence = Sequence(seed);
        let db = tiny_on(&fs).open(STORE).unwrap();
        let last = 10 + seed % 30;
        for i in 1..=last {
            let durability = if i == last { Durability::Sync } else { Durability::Os };
            db.write_with(sequence.batch(i), durability).unwrap();
        }
        let after = fs.crash(Crash::Power, seed);
        drop(db);
        assert_eq!(sequence.prefix_of(&tiny_on(&after).open(STORE).unwrap()), last, "seed {seed}");
    }
}
