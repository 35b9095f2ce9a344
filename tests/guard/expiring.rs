//! Keys that expire, by a clock that the tests set.

use crate::guard_support::fine;
use crate::support::{Crash, Fault, SimFs, TestClock, sized};
use sidebloom::filter::Verdict;
use sidebloom::guard::{Change, Changes, Guard, GuardOptions, Source};
use sidebloom::{Durability, Error, Expiry, Result, WallClock};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const SECOND: Duration = Duration::from_secs(1);

fn options(clock: &Arc<TestClock>) -> GuardOptions {
    fine().durability(Durability::Os).clock(Arc::clone(clock) as _)
}

fn build(dir: &Path, clock: &Arc<TestClock>, keys: &[&str]) -> Guard {
    options(clock).build(dir.join("guard"), keys).unwrap()
}

fn add(guard: &Guard, key: &str, expiry: Expiry) -> Result<bool> {
    Ok(guard.write_each(Changes::new().insert_new_with(key, expiry))? == [true])
}

fn add_for(guard: &Guard, key: &str, seconds: u64) -> bool {
    add(guard, key, Expiry::after(Duration::from_secs(seconds))).unwrap()
}

/// Rows in memory, and something that happens while they are read.
struct Rows<'a> {
    rows: &'a BTreeMap<String, u64>,
    meanwhile: &'a mut dyn FnMut(),
}

impl Source for Rows<'_> {
    fn stream(&mut self, visit: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.rows.iter().try_for_each(|(key, count)| (0..*count).try_for_each(|_| visit(key.as_bytes())))?;
        (self.meanwhile)();
        Ok(())
    }
    fn count(&mut self, key: &[u8]) -> Result<u64> {
        Ok(self.rows.get(std::str::from_utf8(key).unwrap()).copied().unwrap_or(0))
    }
    fn apply(&mut self, _: &[Change<'_>]) -> Result<()> {
        Ok(())
    }
}

#[test]
fn a_key_is_there_until_it_expires_and_can_be_added_again() {
    let (dir, clock) = (tempfile::tempdir().unwrap(), Arc::new(TestClock::new()));
    let guard = build(dir.path(), &clock, &["stays"]);
    assert!(!guard.may_expire());
    assert!(add_for(&guard, "a", 10) && !add_for(&guard, "a", 99) && !add_for(&guard, "stays", 1));
    assert!(guard.may_expire());
    assert_eq!((guard.stats().rows, guard.stats().keys), (1, 1), "of keys that stay");
    clock.advance(10 * SECOND - Duration::from_millis(1));
    let both = [Verdict::Maybe; 2];
    assert_eq!((guard.count("a").unwrap(), guard.may_contain_many(&["a", "stays"])), (1, both.to_vec()));
    assert_eq!((guard.may_contain("a"), guard.may_contain("b")), (Verdict::Maybe, Verdict::Absent));
    clock.advance(Duration::from_millis(1));
    assert_eq!((guard.count("a").unwrap(), guard.contains("stays").unwrap()), (0, true));
    clock.set_back(5 * SECOND);
    assert!(!guard.contains("a").unwrap(), "time runs forwards");
    assert!(add_for(&guard, "a", 20), "it was absent");
}

#[test]
fn a_key_that_expires_survives_reopening_and_images_have_it() {
    let (dir, clock) = (tempfile::tempdir().unwrap(), Arc::new(TestClock::new()));
    let mut guard = build(dir.path(), &clock, &[]);
    add_for(&guard, "a", 10);
    for _ in 0..2 {
        drop(guard);
        guard = options(&clock).open(dir.path().join("guard")).unwrap();
        assert!(guard.contains("a").unwrap() && !add_for(&guard, "a", 99));
        let image = guard.image().unwrap(); // Flushes.
        let copy = GuardOptions::new().open_image(&image).unwrap();
        assert_eq!((copy.may_contain("a"), copy.may_contain("b")), (Verdict::Maybe, Verdict::Absent));
    }
    clock.advance(10 * SECOND);
    assert!(!guard.contains("a").unwrap());
    drop(guard);
    let guard = options(&clock).open(dir.path().join("guard")).unwrap();
    assert!(guard.may_expire() && !guard.contains("a").unwrap());
}

#[test]
fn a_key_that_expires_and_also_stays_is_counted_and_removed_as_both() {
    let (dir, clock) = (tempfile::tempdir().unwrap(), Arc::new(TestClock::new()));
    let guard = build(dir.path(), &clock, &[]);
    for key in ["added new", "added", "removed"] {
        assert!(add_for(&guard, key, 10));
    }
    assert!(!guard.insert_new("added new").unwrap(), "it exists");
    guard.insert("added").unwrap();
    guard.insert("removed").unwrap();
    let count = |key| guard.count(key).unwrap();
    assert_eq!([count("added new"), count("added"), count("removed")], [2, 2, 2]);
    guard.remove("removed").unwrap();
    assert_eq!((count("removed"), guard.stats().keys), (1, 2), "the row first");
    clock.advance(10 * SECOND);
    assert_eq!([count("added new"), count("added"), count("removed")], [1, 1, 0]);
    // In one batch.
    let mut changes = Changes::new();
    let (later, passed) = (Expiry::after(SECOND), Expiry::at(UNIX_EPOCH));
    changes.insert_new_with("x", passed).insert_new_with("x", later).insert_new_with("x", later);
    changes.insert("x").remove("x").remove("x").remove("x").insert_new_with("x", later).insert_new("x");
    let done = guard.write_each(&changes).unwrap();
    assert_eq!(done, [true, true, false, true, true, true, false, true, false]);
    assert_eq!((count("x"), guard.stats().unknown_removals), (2, 1));
}

#[test]
fn expiries_that_are_not_possible_are_errors_and_passed_ones_add_nothing() {
    let (dir, clock) = (tempfile::tempdir().unwrap(), Arc::new(TestClock::new()));
    let guard = build(dir.path(), &clock, &[]);
    let too_late = UNIX_EPOCH + Duration::from_secs(253_402_300_800);
    for bad in [
        Expiry::at(too_late),
        Expiry::after(Duration::MAX),
        Expiry::after(too_late.duration_since(UNIX_EPOCH).unwrap() - 1000 * SECOND),
        Expiry::after(Duration::ZERO),
    ] {
        let mut changes = Changes::new();
        let refused = guard.write_each(changes.insert("other").insert_new_with("a", bad));
        assert!(matches!(refused, Err(Error::InvalidArgument(_))), "{bad:?}: {refused:?}");
    }
    assert!(!guard.contains("other").unwrap() && !guard.may_expire(), "all or none");
    for passed in [UNIX_EPOCH, UNIX_EPOCH - SECOND, UNIX_EPOCH + Duration::from_millis(clock.millis())] {
        assert!(add(&guard, "a", Expiry::at(passed)).unwrap() && !guard.contains("a").unwrap());
    }
    assert!(add(&guard, "never", Expiry::never()).unwrap() && !guard.may_expire());
    assert_eq!(guard.stats().keys, 1);
    assert!(add(&guard, "last", Expiry::at(too_late - SECOND)).unwrap() && guard.contains("last").unwrap());
}

#[test]
fn a_key_once_confirmed_to_be_absent_is_there_when_it_was_added() {
    let (dir, clock) = (tempfile::tempdir().unwrap(), Arc::new(TestClock::new()));
    let guard = options(&clock).known_absent(10).build(dir.path().join("guard"), [b""; 0]).unwrap();
    assert!(guard.confirm_absent("a").unwrap());
    assert!(add_for(&guard, "a", 10) && !guard.confirm_absent("a").unwrap());
    assert_eq!(guard.may_contain("a"), Verdict::Maybe);
}

#[test]
fn a_refresh_keeps_what_has_not_expired_and_what_came_meanwhile() {
    let (dir, clock) = (tempfile::tempdir().unwrap(), Arc::new(TestClock::new()));
    let guard = build(dir.path(), &clock, &["row", "gone"]);
    for (key, seconds) in [("before", 100), ("removed", 100), ("short", 1), ("both", 100)] {
        add_for(&guard, key, seconds);
    }
    guard.insert_new("both").unwrap();
    clock.advance(SECOND);
    let rows = BTreeMap::from([("row".to_owned(), 1)]);
    let meanwhile = &mut || {
        assert!(add_for(&guard, "during", 100) && !add_for(&guard, "gone", 100));
        guard.remove("removed").unwrap();
    };
    guard.refresh(&mut Rows { rows: &rows, meanwhile }).unwrap();
    let keys = ["row", "before", "during", "both", "gone", "short", "removed"];
    assert_eq!(keys.map(|key| guard.count(key).unwrap()), [1, 1, 1, 1, 0, 0, 0]);
    assert_eq!((guard.stats().keys, guard.may_contain("before")), (1, Verdict::Maybe));
    drop(guard);
    let guard = options(&clock).open(dir.path().join("guard")).unwrap();
    assert!(guard.contains("during").unwrap() && guard.may_contain("during") == Verdict::Maybe);
    clock.advance(100 * SECOND);
    assert_eq!(keys.map(|key| guard.count(key).unwrap()), [1, 0, 0, 0, 0, 0, 0]);
    guard.refresh(&mut Rows { rows: &rows, meanwhile: &mut || () }).unwrap();
    assert!(!guard.may_expire(), "there is none any more");
}

/// What removals took from the live guard is taken from the new generation, whose rows may differ.
#[test]
fn i1_a_refresh_takes_what_a_removal_took_from_the_live_guard() {
    let (dir, clock) = (tempfile::tempdir().unwrap(), Arc::new(TestClock::new()));
    let guard = build(dir.path(), &clock, &["row"]);
    for key in ["surplus", "unknown", "again"] {
        assert!(add_for(&guard, key, 100));
    }
    // The database refused the row, which the guard keeps.
    let mut failing = guard.transaction();
    failing.insert("surplus").unwrap();
    failing.commit(|| Err::<(), _>(Error::ReadOnly)).unwrap_err();
    let commit_removal = |key| {
        let mut removing = guard.transaction();
        removing.remove(key).unwrap();
        removing.commit(|| Ok::<_, Error>(())).unwrap();
    };
    let keys = ["row", "surplus", "unknown", "again"];
    let counts = || keys.map(|key| guard.count(key).unwrap());
    // A row of "unknown" was written without the guard.
    let rows = BTreeMap::from([("row".to_owned(), 1), ("unknown".to_owned(), 1)]);
    let meanwhile = &mut || {
        assert_eq!(counts(), [1, 2, 1, 1]);
        ["surplus", "unknown", "again"].into_iter().for_each(commit_removal);
        assert!(add_for(&guard, "again", 100));
        assert_eq!(counts(), [1, 1, 0, 1]);
    };
    guard.refresh(&mut Rows { rows: &rows, meanwhile }).unwrap();
    assert_eq!((counts(), guard.may_contain("surplus")), ([1, 1, 0, 1], Verdict::Maybe));
}

/// Only the log has it: it was gone before the expiring keys were taken over.
#[test]
fn an_expiring_key_that_came_and_was_removed_during_a_refresh_stays_away() {
    let (dir, clock) = (tempfile::tempdir().unwrap(), Arc::new(TestClock::new()));
    let guard = build(dir.path(), &clock, &["row"]);
    let rows = BTreeMap::from([("row".to_owned(), 1)]);
    let meanwhile = &mut || {
        assert!(add_for(&guard, "expiring", 100));
        guard.remove("expiring").unwrap();
    };
    guard.refresh(&mut Rows { rows: &rows, meanwhile }).unwrap();
    assert_eq!((guard.count("expiring").unwrap(), guard.stats().doubtful_removals), (0, 0));
}

/// A clock that counts how often it is read.
#[derive(Debug, Default)]
struct CountedClock(AtomicU64);

impl WallClock for CountedClock {
    fn now(&self) -> SystemTime {
        self.0.fetch_add(1, Relaxed);
        UNIX_EPOCH + 1_000_000_000 * SECOND
    }
}

#[test]
fn reads_do_not_read_the_clock_for_a_moment_that_was_only_asked_for() {
    let (dir, clock) = (tempfile::tempdir().unwrap(), Arc::new(CountedClock::default()));
    let guard = fine().clock(Arc::clone(&clock) as _).build(dir.path().join("guard"), ["row"]).unwrap();
    let reads_for_stats = || {
        let before = clock.0.load(Relaxed);
        guard.stats();
        clock.0.load(Relaxed) - before
    };
    let later = guard.moment_of(Expiry::after(SECOND)).unwrap();
    assert_eq!((later, reads_for_stats()), (Expiry::at(clock.now() + SECOND), 0));
    assert!(add(&guard, "a", later).unwrap() && reads_for_stats() > 0);
}

/// What the guard should have: rows, and when the key expires.
type Model = BTreeMap<String, (u64, u64)>;

#[test]
fn counts_are_those_of_a_model_through_changes_refreshes_and_time() {
    for seed in 0..sized(6, 40) {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (dir, clock) = (tempfile::tempdir().unwrap(), Arc::new(TestClock::new()));
        let mut guard = build(dir.path(), &clock, &[]);
        let mut model = Model::new();
        for _ in 0..400 {
            let key = format!("key {}", rng.u32(..8));
            let (rows, until) = model.entry(key.clone()).or_default();
            let now = clock.millis();
            let expires = *until > now;
            let is_new = *rows == 0 && !expires;
            match rng.u32(..20) {
                0..6 => {
                    let seconds = rng.u64(1..9);
                    assert_eq!(add_for(&guard, &key, seconds), is_new);
                    if is_new {
                        *until = now + 1000 * seconds;
                    }
                }
                6..9 => {
                    assert_eq!(guard.insert_new(&key).unwrap(), is_new);
                    *rows = 1.max(*rows);
                }
                9..11 => {
                    guard.insert(&key).unwrap();
                    *rows += 1;
                }
                11..15 => {
                    let done = guard.write_each(Changes::new().remove(&key)).unwrap();
                    assert_eq!(done, [*rows > 0 || expires]);
                    if *rows == 0 {
                        *until = 0;
                    }
                    *rows = rows.saturating_sub(1);
                }
                15..18 => clock.advance(rng.u32(..3) * SECOND),
                18 => {
                    drop(guard);
                    guard = options(&clock).open(dir.path().join("guard")).unwrap();
                }
                _ => {
                    let rows = model.iter().map(|(key, (rows, _))| (key.clone(), *rows)).collect();
                    guard.refresh(&mut Rows { rows: &rows, meanwhile: &mut || () }).unwrap();
                }
            }
            for (key, (rows, until)) in &model {
                let expected = rows + u64::from(*until > clock.millis());
                assert_eq!(guard.count(key).unwrap(), expected, "seed {seed}, {key}");
                assert!(expected == 0 || guard.may_contain(key) == Verdict::Maybe);
            }
        }
    }
}

/// After a crash at any write, what was acknowledged is there, also after refreshes.
#[test]
fn i4_keys_that_expire_survive_crashes_at_every_write() {
    let guard_of = |fs: &SimFs| GuardOptions::new().filesystem(Arc::new(fs.clone())).memtable_bytes(4096);
    let work = |fs: &SimFs| -> (Vec<u32>, Result<()>) {
        let mut told = Vec::new();
        let mut run = || {
            let guard = guard_of(fs).build("disk/guard", [b""; 0])?;
            for n in 0..60u32 {
                let expiry = Expiry::at(SystemTime::now() + 3600 * SECOND);
                guard.write(Changes::new().insert_new_with(n.to_le_bytes(), expiry))?;
                told.push(n);
                if n % 25 == 20 {
                    guard.refresh(&mut Rows { rows: &BTreeMap::new(), meanwhile: &mut || () })?;
                }
            }
            Ok(())
        };
        let ended = run();
        (told, ended)
    };
    let whole = SimFs::new();
    assert!(work(&whole).1.is_ok());
    for stop in (0..whole.writes()).step_by(sized(5, 1)) {
        let fs = SimFs::new();
        fs.fail(Fault::stop(stop));
        let (told, _) = work(&fs);
        let crash = [Crash::Kill, Crash::Power, Crash::PowerOrdered][stop as usize % 3];
        match guard_of(&fs.crash(crash, stop)).open("disk/guard") {
            Ok(guard) => {
                for n in told {
                    assert!(guard.contains(n.to_le_bytes()).unwrap(), "{crash:?} after {stop}: {n}");
                    assert_eq!(guard.may_contain(n.to_le_bytes()), Verdict::Maybe);
                }
            }
            Err(error) => assert!(told.is_empty(), "{crash:?} after {stop}: {error}"),
        }
    }
}
