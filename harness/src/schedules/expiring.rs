//! Rows that expire while time passes: two threads insert the same few keys if they are new, one lets time
//! pass, one reads, and one flushes, while the store drops what has expired.

use crate::support::{Rng, STORE, SimFs, TestClock, tiny_on};
use sidebloom::{Db, Expiry, Keyspace, KeyspaceOptions};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

const KEYS: u64 = 3;
/// How long rows live at most, in milliseconds. The window is longer than some.
const LIFETIME_MAX: u64 = 3000;
const WINDOW: Duration = Duration::from_millis(2000);
const INSERTS: usize = 10;

/// An attempt to insert a key.
#[derive(Debug)]
struct Attempt {
    key: u64,
    was_new: bool,
    /// When the row expires.
    until: u64,
    /// The time of the clock before and after.
    time: [u64; 2],
    /// When it began and ended, in the order of all attempts.
    turn: [u64; 2],
}

/// What the threads share.
struct Shared {
    db: Db,
    rows: Keyspace,
    clock: Arc<TestClock>,
    turns: AtomicU64,
    attempts: Mutex<Vec<Attempt>>,
}

/// Of attempts at a key, none succeeds while a row lives, and none fails without one.
pub fn schedule(seed: u64) {
    let (fs, clock, mut rng) = (SimFs::new(), Arc::new(TestClock::new()), Rng::new(seed));
    let db = tiny_on(&fs).clock(Arc::clone(&clock) as _).open(STORE).unwrap();
    let options = KeyspaceOptions::new();
    let options = if rng.percent(50) { options.window(WINDOW) } else { options };
    let rows = db.create_keyspace("rows", options).unwrap();
    let (turns, attempts) = Default::default();
    let shared = Arc::new(Shared { db, rows, clock, turns, attempts });
    let jobs: [fn(&Shared, Rng); 5] = [insert, insert, pass, read, flush];
    let threads = jobs.map(|job| {
        let (shared, rng) = (Arc::clone(&shared), Rng::new(rng.next()));
        shuttle::thread::spawn(move || job(&shared, rng))
    });
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    check(&shared.attempts.lock().unwrap());
    shared.clock.advance(Duration::from_millis(LIFETIME_MAX));
    assert_eq!(shared.rows.iter().count().unwrap(), 0, "all have expired");
}

fn insert(shared: &Shared, mut rng: Rng) {
    for _ in 0..INSERTS {
        let key = rng.below(KEYS);
        let (began, before) = (shared.turns.fetch_add(1, SeqCst), shared.clock.millis());
        let until = before + 1 + rng.below(LIFETIME_MAX);
        let expiry = Expiry::at(UNIX_EPOCH + Duration::from_millis(until));
        let was_new = shared.rows.insert_new_with(key.to_be_bytes(), until.to_be_bytes(), expiry).unwrap();
        let (after, ended) = (shared.clock.millis(), shared.turns.fetch_add(1, SeqCst));
        let attempt = Attempt { key, was_new, until, time: [before, after], turn: [began, ended] };
        shared.attempts.lock().unwrap().push(attempt);
    }
}

/// Whether one row may have been inserted, and then, once it had expired, the other.
fn may_precede(one: &Attempt, other: &Attempt) -> bool {
    one.turn[0] < other.turn[1] && one.until <= other.time[1]
}

fn check(attempts: &[Attempt]) {
    for (at, attempt) in attempts.iter().enumerate() {
        let others = attempts.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, other)| other);
        let mut rows = others.filter(|other| other.was_new && other.key == attempt.key);
        if attempt.was_new {
            let beside = rows.find(|row| !may_precede(row, attempt) && !may_precede(attempt, row));
            assert!(beside.is_none(), "{attempt:?} succeeded, though {beside:?} lived");
        } else {
            let [before, _] = attempt.time;
            let may_live = rows.any(|row| row.turn[0] < attempt.turn[1] && row.until > before);
            assert!(may_live, "{attempt:?} failed, though no row lived: {attempts:?}");
        }
    }
}

fn pass(shared: &Shared, mut rng: Rng) {
    for _ in 0..40 {
        shared.clock.advance(Duration::from_millis(rng.below(300)));
        shuttle::thread::yield_now();
    }
}

/// A snapshot shows the same rows twice, and none that had expired before it was taken.
fn read(shared: &Shared, _: Rng) {
    for _ in 0..5 {
        let asked = shared.clock.millis();
        let snapshot = shared.rows.snapshot();
        let walk = || snapshot.iter().map(|row| row.unwrap()).collect::<Vec<_>>();
        let found = walk();
        (0..4).for_each(|_| shuttle::thread::yield_now());
        for (key, value) in &found {
            let until = u64::from_be_bytes(*value.first_chunk().unwrap());
            assert!(until > asked, "a row that expired at {until} was there at {asked}");
            assert_eq!(snapshot.get(key).unwrap().as_ref(), Some(value), "a get after the walk");
        }
        assert_eq!(walk(), found, "a snapshot has changed");
    }
}

fn flush(shared: &Shared, mut rng: Rng) {
    for _ in 0..4 {
        match rng.below(4) {
            0 => shared.db.compact().unwrap(),
            1 => shared.db.wait_for_compaction().unwrap(),
            _ => shared.db.flush().unwrap(),
        }
    }
}
