//! The guard against a model: random changes and lookups, with refreshes and reopenings in between, and never
//! a wrong "no". `SIDEBLOOM_TEST_LONG=1` runs the full million operations.

#[cfg(feature = "unicode")]
use crate::guard_support::fine;
use crate::support::sized;
use sidebloom::filter::Verdict;
use sidebloom::guard::{Change, Changes, Guard, GuardOptions, HashWidth, Source};
use sidebloom::{Durability, Result};
use std::collections::BTreeMap;

/// The database: the number of rows of each key.
#[derive(Default, Clone)]
struct Rows(BTreeMap<u32, u64>);

fn key(n: u32) -> String {
    format!("title {n:05}")
}

impl Source for Rows {
    fn stream(&mut self, visit: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let rows = self.0.iter().flat_map(|(n, count)| std::iter::repeat_n(key(*n), *count as usize));
        rows.into_iter().try_for_each(|key| visit(key.as_bytes()))
    }

    fn count(&mut self, key: &[u8]) -> Result<u64> {
        let n = std::str::from_utf8(key).ok().and_then(|key| key.strip_prefix("title ")?.parse().ok());
        Ok(n.and_then(|n: u32| self.0.get(&n).copied()).unwrap_or(0))
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<()> {
        for change in changes {
            let (Change::Insert(key) | Change::Remove(key)) = change;
            let n: u32 = std::str::from_utf8(key).unwrap().strip_prefix("title ").unwrap().parse().unwrap();
            let count = self.0.entry(n).or_default();
            *count = if matches!(change, Change::Insert(_)) { *count + 1 } else { count.saturating_sub(1) };
        }
        self.0.retain(|_, count| *count > 0);
        Ok(())
    }
}

fn options(width: HashWidth) -> GuardOptions {
    let options = GuardOptions::new().hash_width(width).durability(Durability::Os).known_absent(500);
    options.memtable_bytes(64 << 10) // Small, so that most keys are in segments.
}

/// Checks that every count is right, no existing key is denied, and the filters are effective.
fn check(guard: &Guard, rows: &Rows) {
    let keys: Vec<String> = (0..20_000).map(key).collect();
    let verdicts = guard.may_contain_many(&keys);
    for (n, (key, verdict)) in (0..).zip(keys.iter().zip(verdicts)) {
        let count = rows.0.get(&n).copied().unwrap_or(0);
        assert_eq!(guard.count(key).unwrap(), count, "{key}");
        let verdicts = [verdict, guard.may_contain(key)];
        assert!(count == 0 || verdicts == [Verdict::Maybe; 2], "{key} exists and was denied");
    }
    let stats = guard.stats();
    assert_eq!((stats.rows, stats.keys), (rows.0.values().sum(), rows.0.len() as u64));
}

/// Refreshes and reopens the guard five times for either length: that is where keys could get lost.
fn operations(steps: u32, seed: u64, width: HashWidth) {
    let steps = steps / sized(20, 1);
    let cycle = steps / 5;
    let mut random = fastrand::Rng::with_seed(seed);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("guard");
    let mut rows = Rows((0..5000).map(|n| (n * 4, 1 + u64::from(n % 3))).collect());
    let mut guard = options(width).build_from(&path, &mut rows).unwrap();
    check(&guard, &rows);
    let (mut asked, mut wrong_maybes, mut remembered) = (0u64, 0u64, 0u64);
    for step in 0..steps {
        let n = random.u32(..20_000);
        let title = key(n);
        match random.u32(..100) {
            0..25 => {
                guard.insert(&title).unwrap();
                *rows.0.entry(n).or_default() += 1;
            }
            25..50 => {
                // Only existing rows are removed here; removing missing ones is tested below.
                if let Some(count) = rows.0.get_mut(&n) {
                    *count -= 1;
                    rows.0.retain(|_, count| *count > 0);
                    guard.remove(&title).unwrap();
                }
            }
            50..52 => {
                let others: Vec<u32> = (0..random.usize(1..20)).map(|_| random.u32(..20_000)).collect();
                let mut changes = Changes::new();
                for &other in &others {
                    changes.insert(key(other));
                    *rows.0.entry(other).or_default() += 1;
                }
                changes.note(step.to_le_bytes());
                guard.write(&changes).unwrap();
                assert_eq!(guard.note().unwrap().unwrap(), step.to_le_bytes());
            }
            52..54 => {
                let absent = format!("absent {n}");
                let before = guard.stats().unknown_removals;
                guard.remove(&absent).unwrap();
                assert_eq!(guard.stats().unknown_removals, before + 1);
                assert!(!guard.contains(&absent).unwrap());
            }
            _ => {
                asked += 1;
                let exists = rows.0.contains_key(&n);
                match guard.may_contain(&title) {
                    Verdict::Absent => assert!(!exists, "{title} exists and was denied"),
                    Verdict::Maybe if !exists => {
                        wrong_maybes += 1;
                        if guard.confirm_absent(&title).unwrap() {
                            remembered += 1;
                            assert_eq!(guard.may_contain(&title), Verdict::Absent);
                        }
                    }
                    Verdict::Maybe => assert!(!guard.confirm_absent(&title).unwrap(), "{title} exists"),
                }
            }
        }
        if step % cycle == cycle / 2 {
            guard.refresh(&mut rows).unwrap();
            assert!(guard.note().unwrap().is_some(), "a refresh keeps the note");
            check(&guard, &rows);
        }
        if step % cycle == cycle - 1 {
            drop(guard);
            guard = options(width).open(&path).unwrap();
            check(&guard, &rows);
        }
    }
    assert!(
        asked > u64::from(steps) / 3 && wrong_maybes > 0 && remembered > 0,
        "{asked} {wrong_maybes} {remembered}"
    );
    let report = guard.reconcile(&mut rows).unwrap();
    assert_eq!((report.missing, report.surplus, report.miscounted), (0, 0, 0));
}

#[test]
fn no_wrong_no_in_a_million_operations_with_narrow_hashes() {
    operations(500_000, 1, HashWidth::Bits64);
    operations(500_000, 2, HashWidth::Bits64);
}

#[test]
fn no_wrong_no_with_wide_hashes() {
    operations(200_000, 3, HashWidth::Bits128);
}

#[test]
#[cfg(feature = "unicode")]
fn equal_keys_share_a_count() {
    let dir = tempfile::tempdir().unwrap();
    let options = fine().canonical(sidebloom::guard::Canonical::EXACT.fold_case().trim_padding());
    let guard = options.build(dir.path().join("guard"), ["ABBA", "abba  ", "Straße"]).unwrap();
    assert_eq!(guard.count("Abba").unwrap(), 2);
    guard.remove("aBBa").unwrap();
    assert_eq!(guard.may_contain("ABBA   "), Verdict::Maybe);
    guard.remove("abba").unwrap();
    assert_eq!(guard.may_contain("ABBA"), Verdict::Absent);
    assert_eq!(guard.may_contain("STRASSE"), Verdict::Maybe);
    assert_eq!(
        guard.may_contain([0xff, b'x']),
        Verdict::Maybe,
        "what cannot be a key is for the database to judge"
    );
}
