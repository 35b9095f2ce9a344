//! I4 and I5 for guards: the disk fails at every write of builds, changes and refreshes, and the guard is
//! reopened. Acknowledged keys stay "maybe", and the counts are from before or after the change in progress.

use crate::support::{Crash, Fault, OpKind, SimFs, sized};
use sidebloom::filter::Verdict;
use sidebloom::guard::{Change, Changes, Guard, GuardOptions, Source};
use sidebloom::{Error, Result};
use std::collections::BTreeMap;
use std::sync::Arc;

const GUARD: &str = "disk/guard";
const CRASHES: [Crash; 3] = [Crash::Kill, Crash::Power, Crash::PowerOrdered];

type Rows = BTreeMap<String, u64>;

struct Database<'a>(&'a Rows);

impl Source for Database<'_> {
    fn stream(&mut self, visit: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.0.iter().try_for_each(|(key, count)| (0..*count).try_for_each(|_| visit(key.as_bytes())))
    }
    fn count(&mut self, key: &[u8]) -> Result<u64> {
        Ok(self.0.get(std::str::from_utf8(key).unwrap()).copied().unwrap_or(0))
    }
    fn apply(&mut self, _changes: &[Change<'_>]) -> Result<()> {
        Ok(())
    }
}

/// A database and its guard, which change while a refresh reads them.
struct Busy<'a> {
    rows: &'a Rows,
    change: &'a mut dyn FnMut() -> Result<()>,
}

impl Source for Busy<'_> {
    fn stream(&mut self, visit: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        Database(self.rows).stream(visit)?;
        (self.change)()
    }
    fn count(&mut self, key: &[u8]) -> Result<u64> {
        Database(self.rows).count(key)
    }
    fn apply(&mut self, _changes: &[Change<'_>]) -> Result<()> {
        Ok(())
    }
}

fn options(fs: &SimFs) -> GuardOptions {
    GuardOptions::new().filesystem(Arc::new(fs.clone())).memtable_bytes(4096).known_absent(10)
}

fn first_rows() -> Rows {
    (0..40).map(|n| (format!("song {n:03}"), 1 + n % 2)).collect()
}

/// What a crash may leave: the rows last acknowledged, or these with the change in progress.
#[derive(Debug, Clone, Default)]
struct Told {
    built: bool,
    rows: Rows,
    next: Rows,
}

/// Builds a guard, changes it, refreshes it during changes, and reopens it, until the disk fails.
fn work(fs: &SimFs) -> Told {
    let mut told = Told { next: first_rows(), ..Told::default() };
    let _ = run(fs, &mut told);
    told
}

fn run(fs: &SimFs, told: &mut Told) -> Result<()> {
    let mut guard = options(fs).build_from(GUARD, &mut Database(&first_rows()))?;
    told.built = true;
    told.rows = told.next.clone();
    for round in 0..60u64 {
        let mut changes = Changes::new();
        for n in 0..3 {
            let key = format!("song {:03}", (round * 7 + n * 13) % 60);
            match told.next.get_mut(&key) {
                Some(count) if (round + n) % 2 == 0 => {
                    changes.remove(&key);
                    *count -= 1;
                }
                _ => {
                    changes.insert(&key);
                    *told.next.entry(key).or_default() += 1;
                }
            }
            told.next.retain(|_, count| *count > 0);
        }
        changes.note(round.to_le_bytes());
        guard.write(&changes)?;
        told.rows = told.next.clone();
        match round % 20 {
            11 => {
                let rows = told.rows.clone();
                let mut change = || {
                    let key = format!("song {round:03}");
                    *told.next.entry(key.clone()).or_default() += 1;
                    guard.insert(&key)?;
                    told.rows = told.next.clone();
                    Ok(())
                };
                guard.refresh(&mut Busy { rows: &rows, change: &mut change })?;
            }
            13 => {
                guard.confirm_absent("never there")?;
            }
            17 => {
                drop(guard);
                guard = options(fs).open(GUARD)?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn counts(guard: &Guard) -> Rows {
    let keys = (0..60).map(|n| format!("song {n:03}"));
    let counted = keys.map(|key| (guard.count(&key).unwrap(), key)).filter(|(count, _)| *count > 0);
    counted.map(|(count, key)| (key, count)).collect()
}

#[track_caller]
fn check(fs: &SimFs, told: &Told, at: &str) {
    let guard = match options(fs).open(GUARD) {
        Ok(guard) => guard,
        Err(Error::NotAGuard { .. }) if !told.built => {
            // An interrupted build: the same command works again.
            drop(options(fs).build_from(GUARD, &mut Database(&first_rows())).unwrap());
            options(fs).open(GUARD).unwrap()
        }
        Err(error) => panic!("{at}: {error}"),
    };
    let found = counts(&guard);
    assert!(found == told.rows || found == told.next, "{at}: {found:?} of {told:?}");
    for key in found.keys() {
        assert_eq!(guard.may_contain(key), Verdict::Maybe, "{at}: {key}");
    }
    let stats = guard.stats();
    assert_eq!((stats.rows, stats.keys), (found.values().sum(), found.len() as u64), "{at}");
    // The guard continues from there, and the crash leaves nothing on disk.
    guard.insert("song 001").unwrap();
    guard.refresh(&mut Database(&found)).unwrap();
    assert_eq!(counts(&guard), found, "{at}");
    let number = guard.stats().generation;
    let is_ours = |name: &str| name.starts_with(&format!("disk/guard/{number:06}.keys/"));
    let strays: Vec<_> = fs.files().into_iter().filter(|path| !is_ours(path.to_str().unwrap())).collect();
    assert_eq!(strays, ["disk/guard/GUARD", "disk/guard/LOCK"].map(std::path::PathBuf::from), "{at}");
}

#[test]
fn i4_what_was_acknowledged_survives_a_crash_at_every_write() {
    let undisturbed = SimFs::new();
    let told = work(&undisturbed);
    assert_eq!(told.rows, told.next);
    check(&undisturbed, &told, "undisturbed");
    let writes = work_writes();
    assert!(writes > 300, "{writes}");
    for stop in (0..writes).step_by(sized(7, 1)) {
        let fs = SimFs::new();
        fs.fail(Fault::stop(stop));
        let told = work(&fs);
        let crash = CRASHES[stop as usize % 3];
        check(&fs.crash(crash, stop), &told, &format!("{crash:?} after {stop} writes"));
    }
}

/// The number of writes of the work; background work makes it vary slightly.
fn work_writes() -> u64 {
    let fs = SimFs::new();
    work(&fs);
    fs.writes()
}

#[test]
fn i5_after_a_failed_write_nothing_is_acknowledged_and_the_answers_stay() {
    for kind in [OpKind::Append, OpKind::Sync, OpKind::Create, OpKind::Rename, OpKind::SyncDir] {
        let mut failures = 0;
        for after in 0..12 {
            let fs = SimFs::new();
            let rows = first_rows();
            let guard = options(&fs).build_from(GUARD, &mut Database(&rows)).unwrap();
            fs.fail(Fault::once(kind, after));
            let mut known = rows.clone();
            for n in 100..130 {
                let key = format!("song {n}");
                match guard.insert(&key) {
                    Ok(()) => {
                        known.insert(key, 1);
                    }
                    Err(_) => failures += 1,
                }
                if n % 10 == 5 {
                    failures += u32::from(guard.refresh(&mut Database(&known)).is_err());
                }
                for key in known.keys() {
                    assert_eq!(guard.may_contain(key), Verdict::Maybe, "{kind:?} {after}: {key}");
                }
            }
            drop(guard);
            let guard = options(&fs.crash(Crash::Power, after)).open(GUARD).unwrap();
            for key in known.keys() {
                assert_eq!(
                    guard.may_contain(key),
                    Verdict::Maybe,
                    "{kind:?} {after}: {key} was acknowledged"
                );
            }
        }
        assert!(failures > 0, "{kind:?} never failed: nothing was tested");
    }
}
