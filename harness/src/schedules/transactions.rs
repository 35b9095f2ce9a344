//! Transactions and conditional writes of a schedule, in keys of their own: lists, of which `history.rs` says
//! whether some order explains them.

use crate::history::{Committed, appended, check, parse};
use crate::support::{Contents, Rng};
use sidebloom::{Db, Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// The lists: few, so that transactions conflict.
const LISTS: u64 = 6;
/// They are among the keys of the writers, which share segments with them.
const PREFIX: &str = "key01list";

/// What all of them did.
#[derive(Debug, Default)]
pub struct Histories {
    last: AtomicU64,
    committed: Mutex<Vec<Committed>>,
    /// Those whose commit failed for another reason than a conflict.
    unknown: Mutex<BTreeSet<u64>>,
    pub conflicts: AtomicU64,
}

fn key(list: u64) -> String {
    format!("{PREFIX}{list}")
}

impl Histories {
    /// Checks what was done against a store's contents.
    #[track_caller]
    pub fn check(&self, found: &Contents, what: &str) {
        let lists: BTreeMap<u64, Vec<u64>> = (0..LISTS)
            .map(|list| (list, parse(found.get(key(list).as_bytes()).map(Vec::as_slice))))
            .filter(|(_, numbers)| !numbers.is_empty())
            .collect();
        let (committed, unknown) = (self.committed.lock().unwrap(), self.unknown.lock().unwrap());
        check(&committed, &unknown, &lists).unwrap_or_else(|error| panic!("{what}: {error}"));
    }

    /// How many were committed.
    pub fn commits(&self) -> u64 {
        self.committed.lock().unwrap().len() as u64
    }

    /// A transaction, or a conditional write.
    pub fn attempt(&self, db: &Db, rng: &mut Rng) -> Result<()> {
        let number = self.last.fetch_add(1, SeqCst) + 1;
        let mut done = Committed { number, reads: Vec::new(), appends: BTreeSet::new() };
        let outcome = match rng.below(8) {
            0 => self.update(db, &mut done, rng.below(LISTS)),
            1 => self.insert_new(db, &mut done, rng.below(LISTS)),
            _ => transaction(db, &mut done, rng),
        };
        match outcome {
            Ok(()) => self.committed.lock().unwrap().push(done),
            Err(Error::Conflict { .. }) => _ = self.conflicts.fetch_add(1, SeqCst),
            Err(error) => {
                self.unknown.lock().unwrap().insert(number);
                return Err(error);
            }
        }
        Ok(())
    }

    fn update(&self, db: &Db, done: &mut Committed, list: u64) -> Result<()> {
        db.update(key(list), |before| {
            done.reads = vec![(list, parse(before))];
            Some(appended(&parse(before), done.number))
        })?;
        done.appends.insert(list);
        Ok(())
    }

    fn insert_new(&self, db: &Db, done: &mut Committed, list: u64) -> Result<()> {
        if db.insert_new(key(list), appended(&[], done.number))? {
            done.reads.push((list, Vec::new()));
            done.appends.insert(list);
        }
        Ok(())
    }
}

/// Reads some lists, alone or in a walk, and appends to some.
fn transaction(db: &Db, done: &mut Committed, rng: &mut Rng) -> Result<()> {
    let tx = db.transaction();
    let mut lists: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    if rng.percent(30) {
        let mut rows: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for row in tx.prefix(PREFIX) {
            let (key, value) = row?;
            rows.insert(String::from_utf8(key).unwrap(), parse(Some(&value)));
        }
        lists.extend((0..LISTS).map(|list| (list, rows.remove(&key(list)).unwrap_or_default())));
    }
    for _ in 0..rng.below(3) {
        let list = rng.below(LISTS);
        lists.insert(list, parse(tx.get(key(list))?.as_deref()));
    }
    for _ in 0..1 + rng.below(2) {
        let list = rng.below(LISTS);
        if done.appends.insert(list) {
            let before = match lists.get(&list) {
                Some(before) => before.clone(),
                None => parse(tx.get(key(list))?.as_deref()),
            };
            tx.put(key(list), appended(&before, done.number))?;
            lists.insert(list, before);
        }
    }
    done.reads = lists.into_iter().collect();
    tx.commit()
}
